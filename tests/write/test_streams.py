"""Streams of batches: one commit whatever their length, one row a key across their portions, and memory that does not grow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.report import CommitReport
from hudimeta.config import OPTIONS
from hudimeta.errors import DuplicateKeys, SchemaMismatch
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.streaming import write_stream

BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
TYPE, PORTION = "hoodie.datasource.write.table.type", "hudimeta.write.portion.bytes"
SMALL = {PORTION: "2000"}


def stream_of(rows: pa.Table, size: int = 20) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(rows.schema, iter(rows.to_batches(max_chunksize=size)))


def write(table: ModelledTable, operation: Operation, rows: pa.Table, **options: str) -> CommitReport:
    given = OPTIONS.read({**table.options.given, **SMALL, **options})
    report = write_stream(table.session(options=given), operation, stream_of(rows))
    table.model.write(operation, rows)
    table.model.remember(report.instant)
    return report


@pytest.mark.rotation(3)
@BOTH
def test_every_operation_equals_the_model_in_one_commit(tmp_path: Path, kind: str) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, TYPE: kind})
    table.write(Operation.INSERT, simple_rows(range(50), 1))
    twice = pa.concat_tables([simple_rows(range(30, 300), 3), simple_rows(range(0, 300, 7), 2), simple_rows(range(40), 4)])
    report = write(table, Operation.UPSERT, twice)
    assert (report.inserted, report.updated) == (250, 50), "a key of three portions is one row"
    assert report.index.count("simple index") <= 3, "the commit keeps the report, which must not grow with the stream"
    table.check()
    report = write(table, Operation.DELETE, simple_rows(range(0, 400, 2), 9).select(["id", "part"]))
    assert (report.deleted, report.unmatched_deletes) == (150, 50)
    table.check()
    for operation in (Operation.INSERT, Operation.BULK_INSERT, Operation.INSERT_OVERWRITE, Operation.INSERT_OVERWRITE_TABLE):
        write(table, operation, simple_rows(range(1, 200, 2), 10))
        table.check()
    check_all(table.storage)
    assert len(Table(table.path).timeline.writes) == 7


@BOTH
def test_indexes_of_keys_and_values_follow_a_stream(tmp_path: Path, kind: str) -> None:
    indexes = {"hoodie.metadata.record.index.enable": "true"}
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **indexes, TYPE: kind})
    table.write(Operation.INSERT, simple_rows(range(50), 1))
    Table(table.path).metadata.create_index("by_time", columns="ts")
    write(table, Operation.UPSERT, simple_rows(range(30, 300), 2))
    write(table, Operation.DELETE, simple_rows(range(0, 400, 2), 9).select(["id", "part"]))
    table.check()
    check_all(table.storage)


@BOTH
def test_deletes_and_late_rows_among_the_rows_of_a_stream(tmp_path: Path, kind: str) -> None:
    def rows(ids: range, ts: int, deleted: bool) -> pa.Table:
        return simple_rows(ids, ts).append_column("_hoodie_is_deleted", pa.array([deleted] * len(ids), pa.bool_()))

    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, TYPE: kind}, rows(range(0), 0, False).schema)
    write(table, Operation.UPSERT, rows(range(200), 5, False))
    write(table, Operation.UPSERT, pa.concat_tables([rows(range(100), 6, True), rows(range(250), 4, False)]))
    table.model.check(table.read())
    check_all(table.storage)


def test_duplicates_are_dropped_or_refused_across_portions(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    table.write(Operation.INSERT, simple_rows(range(50), 1))
    given = OPTIONS.read({**table.options.given, **SMALL, "hoodie.datasource.write.insert.drop.duplicates": "true"})
    rows = pa.concat_tables([simple_rows(range(300), 2), simple_rows(range(200), 2)])
    report = write_stream(table.session(options=given), Operation.INSERT, stream_of(rows))
    assert (report.inserted, report.dropped_duplicates) == (250, 50)
    table.model.write(Operation.INSERT, simple_rows(range(50, 300), 2))
    table.check()
    fail = OPTIONS.read({**table.options.given, **SMALL, "hoodie.datasource.insert.dup.policy": "fail"})
    with pytest.raises(DuplicateKeys):
        write_stream(table.session(options=fail), Operation.INSERT, stream_of(simple_rows(range(250, 500), 2)))
    table.check()
    check_all(table.storage)


def test_a_stream_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    table.write(Operation.INSERT, simple_rows(range(5), 1))

    def broken() -> Iterator[pa.RecordBatch]:
        yield from simple_rows(range(200), 2).to_batches(max_chunksize=50)
        raise RuntimeError("the source is gone")

    for operation in (Operation.UPSERT, Operation.BULK_INSERT):
        reader = pa.RecordBatchReader.from_batches(simple_rows([], 0).schema, broken())
        with pytest.raises(Exception, match="the source is gone"):
            write_stream(table.session(options=OPTIONS.read({**table.options.given, **SMALL})), operation, reader)
    bad = simple_rows(range(200), 2)
    bad = pa.concat_tables([bad, bad.slice(0, 1).set_column(2, "ts", pa.array([None], pa.int64()))])
    with pytest.raises(SchemaMismatch, match="ts"):
        write_stream(table.session(options=OPTIONS.read({**table.options.given, **SMALL})), Operation.UPSERT, stream_of(bad))
    table.check()
    check_all(table.storage)


def _odd_streams() -> dict[str, Callable[[], Any]]:
    """Streams that do not hold what they state, or that end before they do."""
    good = simple_rows(range(9), 2)
    first, cut = good.to_batches()[0], pa.BufferOutputStream()
    with pa.ipc.new_stream(cut, good.schema) as writer:
        writer.write_batch(first)
    sent = cut.getvalue()

    class NoStream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> int:
            return 5

    class Failing:
        """The source's own error, which crosses to Arrow's C interface and back as a text."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            def rows() -> Iterator[pa.RecordBatch]:
                yield first
                raise RuntimeError("the source is gone")

            return pa.RecordBatchReader.from_batches(good.schema, rows()).__arrow_c_stream__()

    odd = {
        "other types": [first, good.set_column(2, "ts", good["ts"].cast(pa.string())).to_batches()[0]],
        "fewer columns": [first, good.select(["id"]).to_batches()[0]],
        "no batch": [first, None],
        "a table": [first, good],
    }
    readers = {
        name: (lambda given=given: pa.RecordBatchReader.from_batches(good.schema, iter(given))) for name, given in odd.items()
    }
    return {
        **readers,
        "cut short": lambda: pa.ipc.open_stream(sent[: sent.size // 2]),
        "no stream": NoStream,
        "a failing source": Failing,
    }


@pytest.mark.parametrize("kind", _odd_streams())
def test_streams_that_do_not_keep_what_they_state(tmp_path: Path, kind: str) -> None:
    make = _odd_streams()[kind]
    rows = simple_rows(range(5), 1)
    table = Table.create(tmp_path / "t", rows.schema, key="id", options={"hudimeta.write.portion.bytes": "1"})
    table.insert(rows)
    acts: tuple[Callable[[], object], ...] = (
        lambda: table.upsert(make()),
        lambda: table.insert_overwrite_table(make()),
        lambda: table.merge(make(), "id").when_matched_update().execute(),
    )
    for act in acts:
        with pytest.raises(SchemaMismatch, match="what was given is"):
            act()
    assert table.scan().count() == 5


def test_frames_and_scans_are_rows_too(tmp_path: Path) -> None:
    import pandas
    import polars

    rows = simple_rows(range(10), 1)
    one = Table.create(tmp_path / "one", rows.schema, key="id", ordering="ts")
    one.insert(rows.to_pandas())
    one.upsert(polars.from_arrow(simple_rows(range(5), 2)))
    one.upsert(pandas.DataFrame({"id": ["k0009"], "part": ["p1"], "ts": [3], "x": [9.5]}))
    one.upsert(stream_of(simple_rows([8], 4)))
    two = Table.create(tmp_path / "two", rows.schema, key="id", ordering="ts")
    two.bulk_insert(one.scan(columns=rows.schema.names))
    found = two.scan(columns=["id", "ts"]).to_table().sort_by("id")["ts"].to_pylist()
    assert found == [2, 2, 2, 2, 2, 1, 1, 1, 4, 3]


CHILD = """
import os, resource, sys
import numpy as np, pyarrow as pa
from hudimeta import Table
path, rows, verb = sys.argv[1], int(sys.argv[2]), sys.argv[3]
STEP = 20_000
schema = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("text", pa.string())])
def batches(shift):
    for at in range(0, rows, STEP):
        ids = (np.arange(at, at + STEP) * 7919 + shift) % rows
        text = pa.array([f"{n:0200d}" for n in ids.tolist()])
        yield pa.record_batch([pa.array(ids), pa.array(np.full(STEP, shift)), text], schema=schema)
options = {"hudimeta.write.portion.bytes": 8 << 20, "hoodie.parquet.max.file.size": 4 << 20,
    "hoodie.parquet.small.file.limit": 0, "hoodie.copyonwrite.record.size.estimate": 30}
table = Table.create(path, schema, key="id", ordering="ts", options=options)
table.bulk_insert(next(batches(0)))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
getattr(table, verb)(pa.RecordBatchReader.from_batches(schema, batches(1)))
resident = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
print(pa.default_memory_pool().max_memory() >> 20, resident, table.scan().count())
"""


@pytest.mark.parametrize("verb", ["bulk_insert", "upsert"])
def test_memory_does_not_grow_with_the_stream(tmp_path: Path, verb: str) -> None:
    arrow, resident = {}, {}
    for rows in (80_000, 400_000):
        arguments = [sys.executable, "-c", CHILD, str(tmp_path / str(rows)), str(rows), verb]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=300)
        arrow[rows], resident[rows], count = (int(number) for number in done.stdout.split())
        assert count == rows + (20_000 if verb == "bulk_insert" else 0)
    # Five times the rows. What Arrow holds at most is the same in every run; resident pages vary with the order of threads.
    assert arrow[400_000] < 1.5 * arrow[80_000], arrow
    assert resident[400_000] < resident[80_000] + 200, resident
