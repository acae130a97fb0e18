"""More file groups for the record index, from the index alone: every key is found, by whoever opened the table when."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import hudimeta
from hudimeta.errors import ConfigError, IndexNotReady
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation

OPTIONS = {
    **SIMPLE_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.index.secondary.column": "ts",
    "hoodie.metadata.compact.max.delta.commits": "4",
}


@pytest.fixture
def made(tmp_path: Path) -> ModelledTable:
    table = ModelledTable(str(tmp_path / "t"), OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(60), 1))
    table.write(Operation.UPSERT, simple_rows(range(0, 80, 3), 2))
    table.write(Operation.DELETE, simple_rows([3, 4], 3))
    return table


def groups_of(path: str) -> int:
    return len(hudimeta.Table(path).metadata.file_groups("record_index"))


def sound(table: ModelledTable) -> None:
    check_all(table.storage)
    table.model.check(hudimeta.Table(table.path).scan().to_table())


def known(table: hudimeta.Table) -> set[str]:
    rows = table.scan(columns=["_hoodie_record_key"]).to_table()
    return set(table.metadata.record_index(rows["_hoodie_record_key"].combine_chunks())["record_key"].to_pylist())


@pytest.mark.rotation(2)
def test_each_key_is_found_after_every_growth(made: ModelledTable) -> None:
    before = hudimeta.Table(made.path)
    keys = known(before)
    assert len(keys) == before.scan().count()
    ran = 0
    for groups in (8, 9):
        table = hudimeta.Table(made.path)
        assert "would go" in str(table.indexes.resize(groups, dry_run=True))
        assert groups_of(made.path) != groups
        report = table.indexes.resize(groups)
        assert (report.groups, report.records) == (groups, len(keys))
        assert groups_of(made.path) == groups
        assert known(table) == keys == known(hudimeta.Table(made.path))
        assert proven_indexes(table.metadata._opened) >= {"record_index", "secondary_index_ts"}
        # many more commits than it takes to compact the metadata table, of few keys each: most groups stay idle
        for _ in range(7):
            ran += 1
            made.write(Operation.UPSERT, simple_rows([ran, 100 + ran], 10 + ran))
        keys = known(hudimeta.Table(made.path))
        sound(made)
    assert known(before) == keys, "a reader from before sees what is there now"


def test_a_reader_and_a_writer_from_before_go_on(made: ModelledTable) -> None:
    reader = hudimeta.Table(made.path)
    (key, *_) = sorted(known(reader))
    scan = reader.scan(f"_hoodie_record_key = '{key}'")
    scan.plan()
    hudimeta.Table(made.path).indexes.resize(6)
    assert scan.to_table().num_rows == 1
    made.write(Operation.UPSERT, simple_rows([5, 200], 50))
    sound(made)


def test_the_key_is_looked_up_in_one_group_only(made: ModelledTable) -> None:
    hudimeta.Table(made.path).indexes.resize(16)
    table = hudimeta.Table(made.path)
    (key,) = table.scan(columns=["_hoodie_record_key"], limit=1).to_table()["_hoodie_record_key"].to_pylist()
    scan = table.scan(f"_hoodie_record_key = '{key}'")
    assert scan.to_table().num_rows == 1
    assert "record_index" not in [one.index for one in scan.report.unused]
    assert "record_index" in [one.by for one in scan.report.skipped]


def test_writers_at_work_meanwhile_lose_nothing(made: ModelledTable) -> None:
    written: list[int] = []
    over = threading.Event()

    def write() -> None:
        table = hudimeta.Table(made.path, OPTIONS)
        while not over.is_set():
            number = 1_000 + len(written)
            table.upsert(simple_rows([number, 5], 100 + len(written)))
            written.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for groups in (4, 8, 12):
            before = len(written)
            hudimeta.Table(made.path, OPTIONS).indexes.resize(groups)
            while len(written) < before + 2 and writer.is_alive():
                known(hudimeta.Table(made.path))
    finally:
        over.set()
        writer.join()
    assert len(written) >= 6
    assert groups_of(made.path) == 12
    check_all(made.storage)
    table = hudimeta.Table(made.path)
    keys = set(table.scan(columns=["_hoodie_record_key"]).to_table()["_hoodie_record_key"].to_pylist())
    assert known(table) == keys
    assert len(keys) >= len(written)
    table.metadata.validate().raise_if_differs()


@pytest.mark.parametrize("groups", [1, 0, 10_001])
def test_other_numbers_are_refused(made: ModelledTable, groups: int) -> None:
    table = hudimeta.Table(made.path)
    instants = table.timeline.instants
    with pytest.raises(ConfigError):
        table.indexes.resize(groups)
    assert "already" in str(table.indexes.resize(2))
    assert hudimeta.Table(made.path).timeline.instants == instants


def test_a_table_without_the_index_is_told_how_to_get_it(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(3), 1))
    with pytest.raises(IndexNotReady, match="create_index"):
        hudimeta.Table(table.path).indexes.resize(4)


def test_a_rebuild_and_a_restore_keep_the_number(made: ModelledTable) -> None:
    table = hudimeta.Table(made.path)
    point = made.session().snapshot_now().timeline.writes[-1].time
    table.savepoint(point)
    table.indexes.resize(6)
    made.write(Operation.UPSERT, simple_rows([7, 300], 60))
    table.metadata.rebuild()
    assert groups_of(made.path) == 6
    table.metadata.validate().raise_if_differs()
    table.restore(point)
    table = hudimeta.Table(made.path)
    table.metadata.validate().raise_if_differs()
    assert known(table) == set(table.scan().to_table()["_hoodie_record_key"].to_pylist())
