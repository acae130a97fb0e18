"""Tables that exist only as metadata: a real timeline, real properties and a real metadata table, naming files nobody wrote.

Planning never opens a data file, so a table of millions of files needs tens of megabytes. Everything is written by hudimeta's
own writers; Apache Hudi and hudi-rs read the result (their answers are compared in every run). Made once, then kept.
"""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.case import Settings

COLUMNS = tuple(f"c{number}" for number in range(10))
ROWS_PER_FILE = 1000
DOMAIN = 1_000_000_000
"""Values of c1 to c9 lie below it; one file covers a hundredth of it, from a random start."""

COMMITS = 5


@dataclass(frozen=True)
class Shape:
    """How large a table is.

    Attributes:
        name: Folder.
        partitions, files: Partitions, and files in each.
        statistics: Of how many columns column_stats are there, at most ten bigint ones: c0 rises from file to file, the others
            are random ranges. 0 for no such index.
        keys: Rows with an entry in the record index, see `synthetic_keys`; 0 for no such index.
    """

    name: str
    partitions: int
    files: int
    statistics: int = 0
    keys: int = 0

    @property
    def total(self) -> int:
        """All files."""
        return self.partitions * self.files

    @property
    def statistics_groups(self) -> int:
        """File groups of column_stats: Hudi's two, or one for each column, where two would not fit into memory."""
        return 2 if self.total * self.statistics < 5_000_000 else self.statistics


def tiny(settings: Settings) -> Shape:
    """719 partitions of 2 files."""
    return _shape(settings, "t1k", 719, 2)


def small(settings: Settings) -> Shape:
    """1,000 partitions of 100 files, with column statistics."""
    return _shape(settings, "t100k", 1000, 100, statistics=len(COLUMNS))


def middle(settings: Settings) -> Shape:
    """3,617 partitions of 79 files: 285,743."""
    return _shape(settings, "t286k", 3617, 79)


def large(settings: Settings) -> Shape:
    """497 partitions of 4,578 files: 2,275,266."""
    return _shape(settings, "t2m", 497, 4578)


def large_with_bounds(settings: Settings) -> Shape:
    """The same with column statistics of c0."""
    return _shape(settings, "t2m-c0", 497, 4578, statistics=1)


def large_with_ten(settings: Settings) -> Shape:
    """The same with column statistics of all ten columns."""
    return _shape(settings, "t2m-c10", 497, 4578, statistics=len(COLUMNS))


def _shape(settings: Settings, name: str, partitions: int, files: int, statistics: int = 0) -> Shape:
    count = settings.scaled(partitions, least=2)
    return Shape(f"{name}-{count}x{files}", count, files, statistics)


def make(settings: Settings, shape: Shape) -> Path:
    """The table's path; it is generated unless a former run left it whole."""
    path, unfinished = settings.data / shape.name, settings.data / f"{shape.name}.unfinished"
    if not path.is_dir():
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        _generate(unfinished, shape)
        unfinished.rename(path)
    return path


def partition_names(shape: Shape) -> list[str]:
    """Partition paths, days from 2015 on."""
    first = datetime.date(2015, 1, 1)
    return [(first + datetime.timedelta(days=number)).isoformat() for number in range(shape.partitions)]


def bounds(shape: Shape) -> dict[str, npt.NDArray[np.int64]]:
    """Smallest value of each column in each file; c0 spans `ROWS_PER_FILE`, the others a hundredth of `DOMAIN`."""
    random = np.random.default_rng(7)
    low = {name: random.integers(0, DOMAIN - DOMAIN // 100, shape.total) for name in COLUMNS[1:]}
    return {"c0": np.arange(shape.total, dtype=np.int64) * ROWS_PER_FILE, **low}


def bounds_width(column: str) -> int:
    """By how much the greatest value of a column in a file exceeds the smallest."""
    return ROWS_PER_FILE - 1 if column == "c0" else DOMAIN // 100


def _generate(path: Path, shape: Shape) -> None:
    from hudimeta.metadata import files
    from hudimeta.metadata.group_files import file_group_ids
    from hudimeta.metadata.keys import ALL_PARTITIONS
    from hudimeta.metadata.record import layout_of, schema_text
    from hudimeta.metadata.writer import MetadataWriter
    from hudimeta.storage import open_storage
    from hudimeta.table import properties as table_properties
    from hudimeta.table.create import NewTable, create_table_layout
    from hudimeta.timeline.clock import InstantGenerator, SystemClock

    storage, times = open_storage(str(path)), InstantGenerator(SystemClock())
    avro = json.dumps(_avro_schema())
    properties = NewTable(
        name=shape.name, record_keys=["id"], partition_fields=["day"], ordering_fields=["c0"], create_schema=avro
    ).properties()
    create_table_layout(storage, properties)
    instants = [_commit(storage, times, avro) for _ in range(COMMITS)]
    partitions, names = _file_names(shape, instants)
    entries = pa.table(
        {
            "key": pa.concat_arrays([pa.array([ALL_PARTITIONS] * shape.partitions), partitions]),
            "name": pa.concat_arrays([pa.array(partition_names(shape)), names]),
            "size": pa.array(np.concatenate([np.zeros(shape.partitions, np.int64), np.full(shape.total, 1_200_000)])),
            "is_deleted": pa.array(np.zeros(shape.partitions + shape.total, np.bool_)),
        }
    )
    layout = layout_of(schema_text(8))
    content: dict[str, Iterable[tuple[int, Any]]] = {files.PARTITION: [(0, files.encode_values(entries, layout))]}
    groups = {files.PARTITION: 1}
    changes: dict[str, str | None] = {"hoodie.table.metadata.partitions": "files"}
    if shape.statistics:
        groups["column_stats"] = shape.statistics_groups
        content["column_stats"] = _statistics(shape, partitions, names, layout)
        changes["hoodie.table.metadata.partitions"] = "column_stats,files"
        changes["hoodie.table.index.defs.path"] = ".hoodie/.index_defs/index.json"
        storage.put(".hoodie/.index_defs/index.json", json.dumps(_index_definition()).encode())
    writer = MetadataWriter(storage, 8, times)
    writer.create(shape.name)
    for number, (partition, count) in enumerate(groups.items()):
        writer.initialise(partition, f"{number:017d}", file_group_ids(partition, count), content[partition])
    if shape.keys:
        from benchmarks.synthetic_keys import write_index

        write_index(path, writer, shape, partitions, instants[-1], len(groups))
        changes["hoodie.table.metadata.partitions"] = "files,record_index"
    table_properties.update(storage, changes)


def _avro_schema() -> dict[str, Any]:
    fields = [{"name": name, "type": ["null", "string"], "default": None} for name in ("id", "day")]
    fields += [{"name": name, "type": ["null", "long"], "default": None} for name in COLUMNS]
    return {"type": "record", "name": "synthetic_record", "namespace": "hoodie.synthetic", "fields": fields}


def _commit(storage: Any, times: Any, avro: str) -> str:
    """A completed commit of no file of its own: planning reads the metadata table, not what a commit lists."""
    from hudimeta.formats.avro.commit_metadata import encode_commit_metadata
    from hudimeta.timeline.transitions import TimelineWriter
    from hudimeta.types import Action

    timeline, instant = TimelineWriter(storage), str(times.next())
    timeline.create_requested(instant, Action.COMMIT)
    timeline.create_inflight(instant, Action.COMMIT)
    metadata = {"partitionToWriteStats": {}, "operationType": "BULK_INSERT", "extraMetadata": {"schema": avro}}
    timeline.complete(instant, Action.COMMIT, times.next(instant), encode_commit_metadata(metadata))
    return instant


def file_ids(shape: Shape) -> npt.NDArray[np.bytes_]:
    """File id of every file, in the order of `bounds`."""
    return np.char.add(_uuids(shape).view("S36")[:, 0], b"-0")


def _uuids(shape: Shape) -> npt.NDArray[np.uint8]:
    """36 characters a file, random but the same in every run."""
    random = np.random.default_rng(11)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    uuid = digits[random.integers(0, 16, (shape.total, 36))]
    uuid[:, [8, 13, 18, 23]] = ord("-")
    return uuid


def _file_names(shape: Shape, instants: list[str]) -> tuple[pa.Array, pa.Array]:
    """Partition path and file name of every file: `<uuid>-0_0-1-1_<instant>.parquet`, all of one length."""
    uuid = _uuids(shape)
    tails = np.array([f"-0_0-1-1_{instant}.parquet".encode() for instant in instants])
    tail = tails[np.arange(shape.total) % len(instants)]
    text = np.concatenate([uuid, tail.view(np.uint8).reshape(shape.total, -1)], axis=1)
    borders = np.arange(shape.total + 1, dtype=np.int32) * text.shape[1]
    names = pa.Array.from_buffers(pa.string(), shape.total, [None, pa.py_buffer(borders), pa.py_buffer(text.tobytes())])
    rows = pa.array(np.repeat(np.arange(shape.partitions), shape.files))
    return pa.array(partition_names(shape)).take(rows), names


def _statistics(shape: Shape, partitions: pa.Array, names: pa.Array, layout: Any) -> Iterator[tuple[int, Any]]:
    """The records of each file group."""
    from hudimeta.metadata import column_stats
    from hudimeta.metadata.delta import by_group

    piles: list[list[pa.Table]] = [[] for _ in range(shape.statistics_groups)]
    for column, low in list(bounds(shape).items())[: shape.statistics]:
        table = _statistics_of(column, low, partitions, names)
        for group, at in by_group(table["key"].combine_chunks(), len(piles)):
            piles[group].append(table.take(at))
    for group, pile in enumerate(piles):
        yield group, column_stats.encode_values(pa.concat_tables(pile), layout)
        pile.clear()


def _statistics_of(column: str, low: npt.NDArray[np.int64], partitions: pa.Array, names: pa.Array) -> pa.Table:
    from hudimeta.metadata.bounds import wrap_bounds
    from hudimeta.metadata.keys import column_stats_keys

    files = len(names)
    least, most = wrap_bounds(pa.array(low)), wrap_bounds(pa.array(low + bounds_width(column)))
    columns = pa.array([column]).take(pa.array(np.zeros(files, np.int64)))
    return pa.table(
        {
            "key": column_stats_keys(columns, partitions, names).cast(pa.string()),
            "file_name": names,
            "column_name": columns,
            "min_kind": pa.array(least.kinds),
            "min_value": least.bodies,
            "max_kind": pa.array(most.kinds),
            "max_value": most.bodies,
            "value_count": pa.array(np.full(files, ROWS_PER_FILE)),
            "null_count": pa.array(np.zeros(files, np.int64)),
            "total_size": pa.array(np.full(files, 8_000)),
            "total_uncompressed_size": pa.array(np.full(files, 8_100)),
            "is_deleted": pa.array(np.zeros(files, np.bool_)),
            "is_tight_bound": pa.array(np.ones(files, np.bool_)),
        }
    )


def _index_definition() -> dict[str, Any]:
    definition = {
        "indexName": "column_stats",
        "indexType": "column_stats",
        "indexFunction": "column_stats",
        "sourceFields": list(COLUMNS),
        "indexOptions": {},
    }
    return {"indexDefinitions": {"column_stats": definition}}
