"""The phases that are measured: planning over tables that exist only as metadata, and work on rows of a hundred files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import ours, synthetic, synthetic_keys
from benchmarks.case import Settings
from benchmarks.scale.measured import Phase
from benchmarks.written import COW, MOR

__all__ = ["PHASES"]

FILES_EACH = 1000
"""Files of each partition of a table that exists only as metadata."""
UPDATED = 100
"""One row in so many is updated, all over the table."""
INDEXED = 1_000_000
"""Keys of the record index in which keys are looked up."""
PARTS = 7


def _planned(statistics: bool) -> Callable[[Path, int], Path]:
    def make(data: Path, files: int) -> Path:
        count = max(1, files // FILES_EACH)
        name = f"scale-{'stats-' if statistics else ''}{count}x{FILES_EACH}"
        return synthetic.make(Settings(1, data), synthetic.Shape(name, count, FILES_EACH, int(statistics)))

    return make


def _indexed(data: Path, _: int) -> Path:
    return synthetic.make(Settings(1, data), synthetic_keys.million(Settings(1, data)))


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


def _plan(path: Path, _: int) -> object:
    return ours.count_slices(ours.open_table(path))


def _plan_by_statistics(path: Path, files: int) -> object:
    middle = files * synthetic.ROWS_PER_FILE // 2
    return ours.count_planned(ours.open_table(path), f"c0 >= {middle} AND c0 <= {middle + middle // 50}")


def _look_up(path: Path, count: int) -> object:
    shape = synthetic_keys.million(Settings(1, path.parent))
    return ours.locate(ours.open_table(path), synthetic_keys.sample(shape, count))


def _upsert(path: Path, count: int) -> object:
    return ours.open_table(path).upsert(_rows(count, 2, UPDATED))


def _append(path: Path, count: int) -> object:
    return ours.open_table(path).upsert(_rows(INDEXED, 2, INDEXED // count))


def _compact(path: Path, _: int) -> object:
    return ours.open_table(path).compact()


def _build_index(path: Path, _: int) -> object:
    return ours.open_table(path).metadata.create_index(type="record_index")


def _compact_metadata(path: Path, _: int) -> object:
    options = {"hoodie.metadata.compact.max.delta.commits": "1"}
    row = pa.table({"id": ["k"], "day": ["2015-01-01"], **{name: [0] for name in synthetic.COLUMNS}})
    return ours.open_table(path, options).bulk_insert(row)


STATS = ["column_stats"]
PHASES = (
    Phase("plan", "files", (300_000, 1_200_000, 6_000_000), _planned(False), _plan),
    Phase("plan by one column's statistics", "files", (300_000, 1_200_000, 6_000_000), _planned(True), _plan_by_statistics),
    Phase("look-up in the record index", "keys asked for", (30_000, 100_000, 400_000), _indexed, _look_up),
    Phase(
        "upsert of 1 %, copy on write",
        "rows in the files",
        (100_000, 300_000, 1_200_000),
        _table(COW, ["record_index", *STATS]),
        _upsert,
        changes=True,
        spread=True,
    ),
    Phase(
        "upsert, merge on read",
        "rows upserted",
        (10_000, 40_000, 200_000),
        _of_one_size(INDEXED, _table(MOR, ["record_index", *STATS])),
        _append,
        changes=True,
        spread=True,
    ),
    Phase(
        "compaction of slices, 10 % updated",
        "rows in the files",
        (100_000, 300_000, 1_200_000),
        _table(MOR, STATS, updated=True),
        _compact,
        changes=True,
        spread=True,
    ),
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
        (300_000, 1_200_000, 6_000_000),
        _planned(False),
        _compact_metadata,
        changes=True,
    ),
)
"""What is measured, in the order of the tables."""
