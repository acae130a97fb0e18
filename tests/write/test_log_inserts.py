"""New rows in log files: no base file before a compaction, whatever the index."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta import Table
from hudimeta.commit.timings import Timings
from hudimeta.config import OPTIONS
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import prepare, publish, write_batch
from tests.write.hudi_rs import read_with_hudi_rs
from tests.write.routed.sides import contents, routed, rows, same_tables

MOR = {
    **SIMPLE_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hudimeta.log.inserts": "true",
}
INDEXES = {
    "SIMPLE": {"hoodie.index.type": "SIMPLE"},
    "GLOBAL_BLOOM": {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.metadata.index.bloom.filter.enable": "true"},
    "RECORD_INDEX": {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.index.secondary.column": "ts"},
}


def base_files(table: ModelledTable) -> int:
    return sum(".parquet" in f.name for part in ("p0", "p1") for f in table.storage.list(part))


@pytest.mark.rotation(3)
@pytest.mark.parametrize("index", list(INDEXES))
def test_no_base_file_before_a_compaction(tmp_path: Path, index: str) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**MOR, **INDEXES[index]})
    chance = random.Random(7)
    for turn in range(8):
        some = [*range(turn * 6, turn * 6 + 6), *chance.sample(range(turn * 6 + 1), min(turn, 4))]
        report = table.write(Operation.UPSERT, simple_rows(some, turn))
        assert report.inserted == 6
        assert report.file_groups_added == (2 if turn == 0 else 0), "two partitions"
        if turn in (3, 6):
            table.write(Operation.DELETE, simple_rows(range(turn), turn))
            table.write(Operation.INSERT, simple_rows(range(turn), turn + 1))
    assert base_files(table) == 0
    table.check()
    check_all(table.storage)
    assert Table(table.path).compact()
    assert base_files(table) == 2
    report = table.write(Operation.UPSERT, simple_rows(range(40, 60), 20))
    assert (report.inserted, report.updated, report.log_files_written, report.file_groups_added) == (12, 8, 2, 0)
    assert base_files(table) == 2
    table.check()
    check_all(table.storage)
    assert read_with_hudi_rs(table.path).num_rows == 60, "which reads slices with a base file only"


@pytest.mark.parametrize("engine", ["SIMPLE", "CONSISTENT_HASHING"])
def test_buckets_begin_with_log_files(tmp_path: Path, engine: str) -> None:
    buckets = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": engine,
        "hoodie.bucket.index.num.buckets": "2",
    }
    table = ModelledTable(str(tmp_path / "t"), {**MOR, **buckets})
    table.write(Operation.UPSERT, simple_rows(range(9), 1))
    table.write(Operation.INSERT, simple_rows(range(9, 18), 2))
    table.write(Operation.UPSERT, simple_rows(range(6, 24), 3))
    assert base_files(table) == 0
    table.check()
    check_all(table.storage)
    assert Table(table.path).compact()
    assert base_files(table) == 4
    table.check()


def test_writes_in_portions_begin_with_log_files(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), MOR)
    in_portions = Table(table.path, {**MOR, "hudimeta.write.portion.bytes": "1"})
    for write, first in ((in_portions.upsert, 0), (in_portions.insert, 40)):
        some = simple_rows(range(first, first + 40), 1)
        report = write(pa.RecordBatchReader.from_batches(some.schema, some.to_batches(max_chunksize=10)))
        assert report.inserted == 40
        assert report.file_groups_added > 2, "more than one portion"
        table.model.write(Operation.UPSERT, some)
    assert base_files(table) == 0
    table.check()
    check_all(table.storage)


def test_full_slices_are_left_and_other_writes_make_base_files(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**MOR, "hoodie.parquet.small.file.limit": "1"})
    for turn in range(2):
        report = table.write(Operation.INSERT, simple_rows(range(turn * 4, turn * 4 + 4), turn))
        assert (report.file_groups_added, report.log_files_written) == (2, 2)
    report = table.write(Operation.BULK_INSERT, simple_rows(range(20, 24), 2))
    assert (report.file_groups_added, report.log_files_written) == (2, 0)
    table.options = OPTIONS.read({**MOR, "hudimeta.log.inserts": "false"})
    report = table.write(Operation.INSERT, simple_rows(range(30, 34), 2))
    assert report.log_files_written == 0
    table.check()
    check_all(table.storage)


def test_two_writers_fill_the_same_log(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**MOR, "hoodie.index.type": "SIMPLE"})
    table.write(Operation.INSERT, simple_rows(range(4), 0))
    one, other = simple_rows(range(10, 20), 1), simple_rows(range(20, 30), 2)

    first = table.session()
    files = TableFiles.now(first)
    prepared = prepare(files, first, Operation.UPSERT, one)
    with first.coordinator.writing(Operation.UPSERT, files.snapshot.timeline) as (write, _):
        outcome = write_batch(first, files, write, prepared, Timings())
        table.write(Operation.UPSERT, other)
        report = publish(first, files, write, prepared.schema, outcome, Timings())
    assert (report.inserted, report.log_files_written, report.file_groups_added) == (10, 2, 0)
    table.model.write(Operation.UPSERT, one)
    table.model.check(table.read())
    assert Table(table.path).file_slices().num_rows == 2
    assert base_files(table) == 0
    check_all(table.storage)


@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
@pytest.mark.parametrize("operation", [Operation.UPSERT, Operation.INSERT])
def test_tasks_write_no_base_file_either(tmp_path: Path, index: str, operation: Operation) -> None:
    given = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2", "hudimeta.log.inserts": "true"}
    path, alike = same_tables(tmp_path, type="MERGE_ON_READ", options=given)
    parts = [rows(0, 12), rows(12, 30)]
    assert routed(path, operation, parts, given).inserted == 30
    assert not [*path.rglob("*.parquet")]
    assert [*path.rglob(".*.log.*")]
    hudimeta.Table(alike, given).upsert(pa.concat_tables(parts))
    assert contents(path) == contents(alike)
