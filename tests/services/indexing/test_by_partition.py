"""A record index for each partition is built over rows that are there, and built anew with its file groups as they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import ConfigError, CorruptFileError, UnsupportedFeature
from hudimeta.indexes.plan import PLANNERS, IndexPlan
from hudimeta.indexes.planned import secondary_index_definition
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from tests.conftest import Unpack
from tests.write.indexed_keys import proven

SCHEMA = simple_rows([], 0).schema
ASKS = {"hoodie.metadata.record.level.index.enable": "true"}
LEAST = "hoodie.metadata.record.level.index.min.filegroup.count"
BARE = {**SIMPLE_OPTIONS, "hoodie.write.table.version": "9", "hoodie.metadata.compact.max.delta.commits": "3"}


def _table(folder: Path, options: dict[str, str] | None = None) -> ModelledTable:
    """Keys 0 to 30 in the partitions p0 and p1, and of 1, 2 and 3 a second row in `q-1`."""
    table = ModelledTable(str(folder / "t"), {**BARE, **(options or {})})
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    table.write(Operation.UPSERT, simple_rows(range(15, 30), 2))
    table.write(Operation.UPSERT, simple_rows([1, 2, 3], 1).set_column(1, "part", pa.array(["q-1"] * 3)))
    table.write(Operation.DELETE, simple_rows([4, 16], 0))
    return table


def _groups(path: str) -> list[str]:
    return [group.file_id.removeprefix("record-index-") for group in hudimeta.Table(path).metadata.file_groups("record_index")]


def _goes_on(table: ModelledTable) -> None:
    """Updates find their rows by the index, in their own partition; it stays proven."""
    handle = hudimeta.Table(table.path)
    for turn, keys in enumerate([[1, 4, 29, 50], [2, 50, 51], [1, 3]], 5):
        rows = simple_rows(keys, turn)
        rows = rows.set_column(1, "part", pa.array(["q-1"] * len(keys))) if turn == 6 else rows
        report = handle.upsert(rows)
        table.model.write(Operation.UPSERT, rows)
        assert report.index.startswith("partitioned record index"), report
        check_all(table.storage)
        assert proven(table.path) == {"record_index"}
    handle.cluster()
    check_all(table.storage)
    table.model.check(table.read())


@pytest.mark.rotation(2)
@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_it_is_built_over_rows_that_are_there(tmp_path: Path, kind: str, mode: str) -> None:
    table = _table(tmp_path, {"hoodie.datasource.write.table.type": kind})
    report = hudimeta.Table(table.path).metadata.create_index(type="record_index", options={**ASKS, LEAST: "2"}, mode=mode)
    assert (report.groups, report.records) == (6, 31)
    assert _groups(table.path) == [f"{part}-000{n}-0" for part in ("p0", "p1", "q%2D1") for n in (0, 1)]
    assert hudimeta.Table(table.path).metadata.validate().holds
    assert proven(table.path) == {"record_index"}
    _goes_on(table)


def test_a_write_builds_the_one_that_it_asks_for(tmp_path: Path) -> None:
    table = _table(tmp_path)
    asking = hudimeta.Table(table.path, {**ASKS, LEAST: "3"})
    fresh = simple_rows([7, 40], 4).set_column(1, "part", pa.array(["q-1", "new"]))
    report = asking.upsert(fresh)
    assert [note for note in report.notes if "which the table did not have" in note]
    table.model.write(Operation.UPSERT, fresh)
    assert _groups(table.path) == [f"{part}-000{n}-0" for part in ("new", "p0", "p1", "q%2D1") for n in (0, 1, 2)]
    _goes_on(table)


def test_it_comes_with_the_metadata_table(tmp_path: Path) -> None:
    table = _table(tmp_path, {"hoodie.metadata.enable": "false"})
    fresh = simple_rows([7, 40], 4)
    hudimeta.Table(table.path, {**ASKS, "hoodie.metadata.enable": "true"}).upsert(fresh)
    table.model.write(Operation.UPSERT, fresh)
    assert _groups(table.path) == ["p0-0000-0", "p1-0000-0", "q%2D1-0000-0"]
    _goes_on(table)


def test_a_key_twice_in_a_partition_is_told(tmp_path: Path) -> None:
    table = _table(tmp_path, {"hoodie.parquet.small.file.limit": "0"})
    table.write(Operation.INSERT, simple_rows([5], 3))
    hudimeta.Table(table.path).metadata.create_index(type="record_index", options=ASKS)
    assert not proven(table.path)
    assert hudimeta.Table(table.path).scan("id = 'k0005'").to_table().num_rows == 2


def test_where_it_cannot_be(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.write.table.version": "8"})
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    for asks in (lambda t: t.upsert(simple_rows([1], 2)), lambda t: t.metadata.create_index(type="record_index")):
        with pytest.raises(ConfigError, match="partitioned tables of version 9"):
            asks(hudimeta.Table(table.path, ASKS))
    assert "record_index" not in hudimeta.Table(table.path).metadata.ready
    table.check()


@pytest.mark.parametrize("lost", ["", ".hoodie/metadata/.hoodie", ".hoodie/metadata"])
def test_it_is_built_anew(tmp_path: Path, lost: str) -> None:
    """Beside the old one as many file groups stay, those of a partition without rows among them."""
    table = _table(tmp_path, {**ASKS, LEAST: "2"})
    table.write(Operation.DELETE, simple_rows([1, 2, 3], 0).set_column(1, "part", pa.array(["q-1"] * 3)))
    before = _groups(table.path)
    if lost:
        shutil.rmtree(Path(table.path, lost))
    report = hudimeta.Table(table.path).metadata.rebuild()
    assert report.beside == (not lost)
    assert _groups(table.path) == ([f"{part}-0000-0" for part in ("p0", "p1", "q%2D1")] if lost else before)
    _goes_on(table)


def test_one_that_lost_its_definition_is_built_anew_where_the_options_describe_it(tmp_path: Path) -> None:
    table = _table(tmp_path, ASKS)
    Path(table.path, ".hoodie/.index_defs/index.json").unlink()
    with pytest.raises(CorruptFileError, match=r"record\.level\.index\.enable=true"):
        hudimeta.Table(table.path).metadata.rebuild()
    hudimeta.Table(table.path, ASKS).metadata.rebuild()
    assert hudimeta.Table(table.path).metadata.index_definitions["record_index"].is_partitioned
    _goes_on(table)


def test_a_restore_that_builds_the_metadata_table_anew_builds_it_too(tmp_path: Path) -> None:
    table = _table(tmp_path, ASKS)
    handle = hudimeta.Table(table.path)
    (kept,) = [one.time for one in handle.timeline.completed][-1:]
    handle.services.savepoint(kept)
    table.write(Operation.UPSERT, simple_rows([60, 61], 9))
    for turn in range(10, 16):  # so that the metadata table is compacted beyond the savepoint
        table.write(Operation.UPSERT, simple_rows([60], turn))
    handle = hudimeta.Table(table.path)
    handle.services.restore(kept)
    assert handle.scan("id = 'k0060'").count() == 0
    assert hudimeta.Table(table.path).metadata.index_definitions["record_index"].is_partitioned
    assert hudimeta.Table(table.path).metadata.record_index(["k0001"]).num_rows == 2
    check_all(table.storage)


def test_recorded_ones_are_built_anew(rich_table: Unpack) -> None:
    """Apache Hudi's: in as many file groups, whose names it can go on with."""
    path = rich_table("part_rli", fresh=True)
    groups, before = _groups(str(path)), hudimeta.Table(path).metadata.records("record_index")
    assert hudimeta.Table(path).metadata.rebuild().beside
    assert _groups(str(path)) == groups
    after = hudimeta.Table(path).metadata.records("record_index")
    keys = ["record_key", "partition_path", "file_id"]
    assert sorted(map(str, after.select(keys).to_pylist())) == sorted(map(str, before.select(keys).to_pylist()))
    assert hudimeta.Table(path).metadata.validate().holds


def test_a_secondary_index_beside_it_is_refused(tmp_path: Path) -> None:
    table = _table(tmp_path, ASKS)
    handle = hudimeta.Table(table.path)
    for mode in ("sync", "async"):
        with pytest.raises(UnsupportedFeature, match="kept by partition"):
            handle.metadata.create_index("by_ts", "secondary_index", "ts", mode=mode)
    check_all(table.storage)
    table.check()


def test_one_that_others_made_beside_it_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry of a value and a key speaks of the rows of several partitions: it goes when one of them changes."""
    table = _table(tmp_path, ASKS)
    for part in ("p0", "q-1"):
        table.write(Operation.UPSERT, simple_rows([2], 50).set_column(1, "part", pa.array([part])))
    as_others = IndexPlan("secondary_index_by_ts", secondary_index_definition(SCHEMA, "ts", 9))
    monkeypatch.setitem(PLANNERS, "secondary_index", lambda _: as_others)
    hudimeta.Table(table.path).metadata.create_index("by_ts", "secondary_index", "ts")
    table.write(Operation.UPSERT, simple_rows([2], 57))
    found = hudimeta.Table(table.path).scan("ts = 50").to_table()
    assert found["part"].to_pylist() == ["q-1"]


@pytest.mark.parametrize("doubled", [False, True])
def test_a_downgrade_makes_one_over_the_table_of_it(tmp_path: Path, doubled: bool) -> None:
    """Whatever the options ask for; a key of two partitions it does not prove."""
    table = _table(tmp_path, ASKS)
    if not doubled:
        table.write(Operation.DELETE, simple_rows([1, 2, 3], 0).set_column(1, "part", pa.array(["q-1"] * 3)))
    hudimeta.Table(table.path, ASKS).downgrade()
    metadata = hudimeta.Table(table.path).metadata
    assert "record_index" in metadata.ready
    assert "record_index" not in metadata.index_definitions
    assert proven(table.path) == (set() if doubled else {"record_index"})
    check_all(table.storage)
    table.check()


def test_what_has_a_definition_is_built_anew_whatever_the_options_ask_for(tmp_path: Path) -> None:
    table = _table(tmp_path, ASKS)
    shutil.rmtree(Path(table.path, ".hoodie/metadata"))
    both = {**ASKS, "hoodie.metadata.record.index.enable": "true"}  # which no new table can have
    hudimeta.Table(table.path, both).metadata.rebuild()
    _goes_on(table)
