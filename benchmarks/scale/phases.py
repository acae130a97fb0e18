"""The phases that are measured: planning over tables that exist only as metadata, and work on rows of a hundred files.

`wide.py` has one more, the driver of a write by thousands of tasks of Spark.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import ours, synthetic, synthetic_keys
from benchmarks.case import Settings
from benchmarks.scale import wide
from benchmarks.scale.measured import Phase
from benchmarks.written import COW, MOR

__all__ = ["PHASES"]

FILES_EACH = 1000
"""Files of each partition of a table that exists only as metadata."""
UPDATED = 100
"""One row in so many is updated, all over the table."""
INDEXED = 1_000_000
"""Rows of the table into which others are written, and keys of the record index in which ever more are looked up."""
LOOKED_UP, APART = 1_000, 30_000_000
"""Keys that are looked up in ever larger record indexes, and from how many on each of them lies in a block of its own."""
FILES = 1_200_000, 3_000_000, 6_000_000
"""Of tables that exist only as metadata. Smaller ones are in memory as a whole, where larger ones are read in pieces."""
ROWS = 600_000, 1_200_000, 3_000_000
"""Of tables whose files are worked on in tasks. In smaller ones what a task needs anyhow is most of its memory."""
PARTS = 7
FILES_A_PARTITION = 10
STATS = ["column_stats"]


def _planned(statistics: bool) -> Callable[[Path, int], Path]:
    def make(data: Path, files: int) -> Path:
        count = max(1, files // FILES_EACH)
        name = f"scale-{'stats-' if statistics else ''}{count}x{FILES_EACH}"
        return synthetic.make(Settings(1, data), synthetic.Shape(name, count, FILES_EACH, int(statistics)))

    return make


def _parted(data: Path, partitions: int) -> Path:
    return synthetic.make(Settings(1, data), synthetic.Shape(f"scale-parts-{partitions}x1", partitions, 1))


def _indexed(data: Path, keys: int) -> Path:
    return synthetic.make(Settings(1, data), synthetic_keys.of_size(Settings(1, data), keys))


def _rows(count: int, version: int = 0, step: int = 1) -> pa.Table:
    """Every `step`-th of so many rows: a random UUID as key, 7 partitions, ten columns of numbers and texts."""
    keys = synthetic_keys.keys(0, count)
    at = np.arange(0, count, step)
    random = np.random.default_rng(version)
    columns = {
        "id": keys.take(pa.array(at)),
        "part": pa.array([f"p{n}" for n in range(PARTS)]).take(pa.array(at * PARTS // count)),
        "ts": pa.array(np.full(len(at), version)),
        **{f"n{n}": pa.array(random.integers(0, 10**6, len(at))) for n in range(4)},
        **{f"t{n}": pa.array(random.integers(0, 10**5, len(at))).cast(pa.string()) for n in range(3)},
    }
    return pa.table(columns)


def _table(kind: str, indexes: list[str], updated: bool = False) -> Callable[[Path, int], Path]:
    """Makes a table of so many rows; the name says which."""

    def make(data: Path, count: int) -> Path:
        path = data / f"scale-{kind[:1].lower()}-{'-'.join(indexes)}{'-updated' if updated else ''}-{count}"
        unfinished = path.with_suffix(".unfinished")
        if not path.is_dir():
            shutil.rmtree(unfinished, ignore_errors=True)
            rows = _rows(count)
            table = ours.create(unfinished, rows.schema, "id", "part", "ts", kind, indexes)
            table.bulk_insert(rows)
            if updated:
                table.upsert(_rows(count, 1, UPDATED // 10))
            unfinished.rename(path)
        return path

    return make


def _of_one_size(count: int, make: Callable[[Path, int], Path]) -> Callable[[Path, int], Path]:
    return lambda data, _: make(data, count)


def _many_files(data: Path, count: int) -> Path:
    """A table of so many files in a tenth of the partitions, each of which a second write replaced."""
    path = data / f"scale-replaced-{count}"
    unfinished = path.with_suffix(".unfinished")
    if not path.is_dir():
        shutil.rmtree(unfinished, ignore_errors=True)
        partitions = max(1, count // FILES_A_PARTITION)
        ids = [f"{number:08d}" for number in range(partitions)]
        schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
        ours.create(unfinished, schema, "id", "part", "ts", COW, STATS)
        # Inserts that find no small file to fill begin one in each partition.
        options = {
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
        }
        table = ours.open_table(unfinished, options)
        rows = [
            pa.table({"id": [f"{one}-{number}" for one in ids], "part": ids, "ts": [0] * partitions}, schema)
            for number in range(FILES_A_PARTITION)
        ]
        for some in rows:
            table.insert(some)
        table.upsert(pa.concat_tables(rows))
        unfinished.rename(path)
    return path


def _plan(path: Path, _: object) -> object:
    return ours.count_slices(ours.open_table(path))


def _range_of(_: Path, files: int) -> str:
    middle = files * synthetic.ROWS_PER_FILE // 2
    return f"c0 >= {middle} AND c0 <= {middle + middle // 50}"


def _plan_by_statistics(path: Path, where: str) -> object:
    return ours.count_planned(ours.open_table(path), where)


def _list_partitions(path: Path, _: object) -> object:
    return ours.count_partitions(ours.open_table(path))


def _asked(keys: int, count: int) -> pa.Array:
    """Some of the keys of an index."""
    return synthetic_keys.sample(synthetic.Shape("", 7, 15, keys=keys), count)


def _look_up(path: Path, keys: pa.Array) -> object:
    return ours.locate(ours.open_table(path), keys)


def _upsert(path: Path, rows: pa.Table) -> object:
    return ours.open_table(path).upsert(rows)


def _compact(path: Path, _: object) -> object:
    return ours.open_table(path).compact()


def _clean(path: Path, _: object) -> object:
    return ours.clean(path, {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"})


def _build_index(path: Path, _: object) -> object:
    return ours.open_table(path).metadata.create_index(type="record_index")


def _compact_metadata(path: Path, _: object) -> object:
    options = {"hoodie.metadata.compact.max.delta.commits": "1"}
    row = pa.table({"id": ["k"], "day": ["2015-01-01"], **{name: [0] for name in synthetic.COLUMNS}})
    return ours.open_table(path, options).bulk_insert(row)


PHASES = (
    Phase("plan", "files", FILES, _planned(False), _plan),
    Phase(
        "plan by one column's statistics",
        "files",
        FILES,
        _planned(True),
        _plan_by_statistics,
        given=_range_of,
    ),
    Phase("list of all partitions", "partitions", (50_000, 200_000, 1_000_000), _parted, _list_partitions),
    Phase(
        "look-up in the record index",
        "keys asked for",
        (100_000, 200_000, 800_000),
        lambda data, _: _indexed(data, INDEXED),
        _look_up,
        given=lambda _, count: _asked(INDEXED, count),
    ),
    Phase(
        f"look-up of {LOOKED_UP:,} keys",
        "keys",
        (10_000_000, APART, 100_000_000),
        _indexed,
        _look_up,
        given=lambda _, keys: _asked(keys, LOOKED_UP),
        grows_to=APART,
    ),
    Phase(
        "upsert of 1 %, copy on write",
        "rows in the files",
        ROWS,
        _table(COW, ["record_index", *STATS]),
        _upsert,
        given=lambda _, count: _rows(count, 2, UPDATED),
        changes=True,
        spread=True,
    ),
    Phase(
        "upsert, merge on read",
        "rows upserted",
        (10_000, 40_000, 200_000),
        _of_one_size(INDEXED, _table(MOR, ["record_index", *STATS])),
        _upsert,
        given=lambda _, count: _rows(INDEXED, 2, max(1, INDEXED // count)),
        changes=True,
        spread=True,
    ),
    Phase(
        "compaction of slices, 10 % updated",
        "rows of the table",
        ROWS,
        _table(MOR, STATS, updated=True),
        _compact,
        changes=True,
        spread=True,
    ),
    Phase("clean", "files removed", (500, 2_000, 8_000), _many_files, _clean, changes=True, least=20),
    Phase(
        "record index build",
        "keys",
        (100_000, 300_000, 1_200_000),
        _table(COW, STATS),
        _build_index,
        changes=True,
        spread=True,
    ),
    Phase(
        "small commit that compacts the metadata table",
        "files",
        FILES,
        _planned(False),
        _compact_metadata,
        changes=True,
    ),
    wide.DRIVER,
)
"""What is measured, in the order of the tables."""
