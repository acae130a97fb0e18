"""Whoever has a table open while its indexes of keys are dropped, or built anew otherwise, loses and doubles no row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import Options
from hudimeta.table.properties import update
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import Prepared, prepare, write_prepared, write_rows
from tests.concurrency.side_by_side import Interrupted

GROUPS = "hoodie.metadata.record.index.min.filegroup.count"
BY_KEY, BY_VALUE = "id in ('k0001', 'k0002', 'k0030')", "ts = 1"


def _build(table: ModelledTable, groups: int) -> None:
    hudimeta.Table(table.path).metadata.create_index(type="record_index", options={GROUPS: str(groups)})
    hudimeta.Table(table.path).metadata.create_index("by_ts", "secondary_index", "ts")


def _drop(table: ModelledTable) -> None:
    for name in ("by_ts", "record_index"):
        hudimeta.Table(table.path).metadata.drop_index(name)


@pytest.fixture(params=[False, True], ids=["groups by listing", "groups by commit"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> ModelledTable:
    made = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    made.write(Operation.INSERT, simple_rows(range(40), 1))
    _build(made, 3)
    if request.param:  # a commit of ours says how many file groups there are; before one, storage is listed
        made.write(Operation.UPSERT, simple_rows([39], 1))
    return made


@pytest.mark.parametrize("where", [BY_KEY, BY_VALUE])
@pytest.mark.parametrize("groups", [0, 5], ids=["dropped", "built anew"])
def test_a_reader_keeps_its_rows(table: ModelledTable, where: str, groups: int) -> None:
    scan = hudimeta.Table(table.path).scan(where=where)
    assert scan.snapshot.metadata is not None  # opened before
    _drop(table)
    if groups:
        _build(table, groups)
    assert scan.to_table().num_rows == (3 if where is BY_KEY else 40)
    assert any("built anew meanwhile" in note for note in scan.report.notes) is bool(groups)


def test_a_reader_keeps_its_rows_when_it_lists_half_of_a_drop(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(40), 1))
    hudimeta.Table(table.path).metadata.create_index(type="record_index", options={GROUPS: "4"})
    scan = hudimeta.Table(table.path).scan(where=BY_KEY)
    assert scan.snapshot.metadata is not None
    left = [name for name in scan.snapshot.metadata.ready if name != "record_index"]
    update(table.storage, {"hoodie.table.metadata.partitions": ",".join(left)})
    for file in table.storage.list(".hoodie/metadata/record_index"):
        if "-0002-" in file.name or "-0003-" in file.name:
            table.storage.delete(file.path)
    assert scan.to_table().num_rows == 3


def _preparing(
    session: WriteSession, operation: Operation, rows: Any, meanwhile: Callable[[], None]
) -> Callable[..., Prepared]:
    """Prepares rows, and lets something happen once, when the write has its snapshot of the table's indexes."""
    left = [meanwhile]

    def make(files: TableFiles) -> Prepared:
        made = prepare(files, session, operation, rows)
        assert files.snapshot.metadata is not None
        if left:
            left.pop()()
        return made

    return make


@pytest.mark.parametrize("groups", [0, 5], ids=["dropped", "built anew"])
def test_a_writer_doubles_no_row(table: ModelledTable, groups: int) -> None:
    options: Options = table.options
    if groups:
        options = options.having({"hoodie.index.type": "RECORD_INDEX"})

    def meanwhile() -> None:
        _drop(table)
        if groups:
            _build(table, groups)

    session, rows = WriteSession(table.storage, options), simple_rows(range(10, 50), 9)
    report = write_prepared(session, Operation.UPSERT, _preparing(session, Operation.UPSERT, rows, meanwhile))
    table.model.write(Operation.UPSERT, rows)
    assert (report.updated, report.inserted, report.attempts) == (30, 10, 2)
    table.model.check(table.read())
    found = hudimeta.Table(table.path).metadata.validate()
    assert found.holds, found


def _interrupted(table: ModelledTable, rows: pa.Table, meanwhile: Callable[[], object]) -> CommitReport:
    """Upsert rows; something happens while their files are written."""
    session = WriteSession(table.storage, table.options, engine=Interrupted(meanwhile))
    report = write_rows(session, Operation.UPSERT, rows)
    table.model.write(Operation.UPSERT, rows)
    table.model.check(table.read())
    return report


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_bounds_of_partitions_enclose_rows_that_were_being_written_when_they_were_built(tmp_path: Path, kind: str) -> None:
    none = {"hoodie.metadata.index.column.stats.enable": "false", "hoodie.metadata.index.partition.stats.enable": "false"}
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **none, "hoodie.datasource.write.table.type": kind})
    table.write(Operation.INSERT, simple_rows(range(12), 1, partitions=6))

    def meanwhile() -> None:
        for name in ("column_stats", "partition_stats"):
            hudimeta.Table(table.path).metadata.create_index(type=name)

    _interrupted(table, simple_rows([1, 7, 20], 5000, partitions=6), meanwhile)
    by_partitions = hudimeta.Table(table.path, {"hudimeta.index.use": "partition_stats"})
    assert by_partitions.scan(where="ts = 5000").count() == 3
    found = hudimeta.Table(table.path).metadata.validate()
    assert found.holds, found


ANEW: list[tuple[str, str, dict[str, Any], dict[str, Any], str]] = [
    (
        "by",
        "ts = 9",
        {"type": "secondary_index", "columns": "part"},
        {"type": "secondary_index", "columns": "ts"},
        "record_index",
    ),
    (
        "by",
        "lower(part) = 'p1' and ts = 9",
        {"type": "column_stats", "columns": "id", "expression": "lower"},
        {"type": "column_stats", "columns": "part", "expression": "lower"},
        "",
    ),
    ("column_stats", "ts = 9", {"columns": ["id"]}, {"columns": ["ts"]}, ""),
]


@pytest.mark.parametrize(("name", "where", "before", "after", "needs"), ANEW)
def test_an_index_over_another_column_gets_no_entries_of_the_old_one(
    tmp_path: Path, name: str, where: str, before: dict[str, Any], after: dict[str, Any], needs: str
) -> None:
    none = {"hoodie.metadata.index.column.stats.enable": "false", "hoodie.metadata.index.partition.stats.enable": "false"}
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **none})
    table.write(Operation.INSERT, simple_rows(range(12), 1))
    if needs:
        hudimeta.Table(table.path).metadata.create_index(type=needs)
    kind = {"type": name} if name == "column_stats" else {"name": name}
    hudimeta.Table(table.path).metadata.create_index(**kind, **before)

    def meanwhile() -> None:
        hudimeta.Table(table.path).metadata.drop_index(name)
        hudimeta.Table(table.path).metadata.create_index(**kind, **after)

    rows = simple_rows([1, 7, 20, 21], 9)
    assert _interrupted(table, rows, meanwhile).attempts == 2
    wanted = rows.num_rows if "part" not in where else 3
    assert hudimeta.Table(table.path).scan(where=where).count() == wanted
    found = hudimeta.Table(table.path).metadata.validate()
    assert found.holds, found


def test_a_write_hears_of_an_index_that_was_built_before_others_wrote(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(6), 1))
    session = table.session()
    hudimeta.Table(table.path).metadata.create_index(type="bloom_filters")
    table.write(Operation.UPSERT, simple_rows([0], 2))
    write_rows(session, Operation.UPSERT, simple_rows([1], 3))
    hudimeta.Table(table.path).metadata.validate().raise_if_differs()
