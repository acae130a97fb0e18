"""Writes that are about whole partitions: deleting them, and overwriting those that are named though no row goes there."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_writer import delete_partitions, write_rows
from tests.write.hudi_rs import read_with_hudi_rs

TYPE = "hoodie.datasource.write.table.type"
BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def table_of(tmp_path: Path, kind: str, **more: str) -> ModelledTable:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, TYPE: kind, **more})
    table.write(Operation.INSERT, simple_rows(range(30), 1, partitions=3))
    table.write(Operation.UPSERT, simple_rows(range(0, 30, 4), 2, partitions=3))
    return table


def without(table: ModelledTable, *partitions: str) -> None:
    table.model.rows = {place: rows for place, rows in table.model.rows.items() if place[0] not in partitions}


@BOTH
def test_a_deleted_partition_is_gone_for_every_reader_and_may_come_back(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path, kind)
    before = Table(table.path).timeline.writes[-1].time
    report = delete_partitions(table.session(), ["p1"])
    without(table, "p1")
    table.model.remember(report.instant)
    assert report.operation == "DELETE_PARTITION"
    assert report.file_groups_replaced == 1
    assert report.files_written == 0
    table.check()
    check_all(table.storage)
    assert read_with_hudi_rs(table.path).num_rows == 20
    assert Table(table.path).scan(as_of=before).to_table().num_rows == 30, "time travel still sees it"
    assert Table(table.path).timeline.writes[-1].action.value == "replacecommit"
    table.write(Operation.UPSERT, simple_rows([1, 4], 9, partitions=3))
    table.check()
    check_all(table.storage)


@BOTH
def test_stars_and_several_names(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path, kind)
    found = Table(table.path)
    report = found.delete_partition(["p0", "p2*", "nowhere"])
    assert report.file_groups_replaced == 2
    assert "nowhere" in str(report)
    without(table, "p0", "p2")
    table.check()
    nothing = found.delete_partition("p2")
    assert nothing.completion is None
    assert "p2" in "".join(nothing.notes)
    found.delete_partition("*")
    assert found.scan().to_table().num_rows == 0
    check_all(table.storage)


def test_no_name_deletes_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path, "COPY_ON_WRITE")
    for names in ([], "", ["p0", " "]):
        with pytest.raises(ConfigError, match="'p0', 'p1', 'p2'"):
            Table(table.path).delete_partition(names)
    table.check()


def test_a_table_without_partitions_has_one(tmp_path: Path) -> None:
    rows = simple_rows(range(5), 1)
    table = Table.create(tmp_path / "t", rows.schema, key="id")
    table.insert(rows)
    table.delete_partition("")
    assert table.scan().to_table().num_rows == 0
    table.insert(rows)
    assert table.scan().to_table().num_rows == 5


@BOTH
def test_the_partitions_of_rows_are_deleted_whatever_else_the_rows_hold(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path, kind)
    write_rows(table.session(), Operation.DELETE_PARTITION, pa.table({"part": ["p2", "p2"], "other": [1, 2]}))
    without(table, "p2")
    table.check()
    check_all(table.storage)


@BOTH
def test_an_overwrite_replaces_the_partitions_that_are_named_as_well(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path, kind)
    options = OPTIONS.read({**table.options.given, "hoodie.static.overwrite.partition.paths": "p1,p2"})
    rows = simple_rows([0, 3], 5, partitions=3)
    write_rows(table.session(options=options), Operation.INSERT_OVERWRITE, rows)
    without(table, "p1", "p2")
    table.model.write(Operation.INSERT_OVERWRITE, rows)
    table.check()
    write_rows(table.session(options=options), Operation.INSERT_OVERWRITE, rows.slice(0, 0))
    table.check()
    check_all(table.storage)


class _Named(list[str]):
    """Names of partitions that count how often one is searched among them."""

    searches = 0

    def __contains__(self, name: object) -> bool:
        self.searches += 1
        return super().__contains__(name)


def test_the_files_of_many_partitions_are_found_without_searching_their_names_for_each(tmp_path: Path) -> None:
    session = table_of(tmp_path, "COPY_ON_WRITE").session()
    snapshot = session.snapshot_at(session.properties.load_timeline(session.storage))
    names = _Named(["p0", "p2"])
    assert sorted(snapshot.key_files(names)) == ["p0", "p2"]
    assert not names.searches, "partitions times files are too many steps"
