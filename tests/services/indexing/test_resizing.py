"""More and fewer file groups for the record index, from it alone: every key is found, by whoever opened the table when."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hudimeta
from hudimeta.errors import ConfigError, IndexNotReady, StorageError
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.services.indexing import resize
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Action, Operation

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
def test_each_key_is_found_after_every_change(made: ModelledTable) -> None:
    before = hudimeta.Table(made.path)
    keys = known(before)
    assert len(keys) == before.scan().count()
    ran = 0
    for groups in (8, 9, 6, 2, 1):
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


@pytest.mark.parametrize("groups", [6, 1])
def test_a_reader_and_a_writer_from_before_go_on(made: ModelledTable, groups: int) -> None:
    reader, late = hudimeta.Table(made.path), hudimeta.Table(made.path)
    keys = sorted(known(reader))
    assert late.metadata.partitions, "it has opened the metadata table, and listed no file group yet"
    scan = reader.scan(f"_hoodie_record_key = '{keys[0]}'")
    scan.plan()
    hudimeta.Table(made.path).indexes.resize(groups)
    assert scan.to_table().num_rows == 1
    assert [late.scan(f"_hoodie_record_key = '{key}'").count() for key in keys[:12]] == [1] * 12
    made.write(Operation.UPSERT, simple_rows([5, 200], 50))
    sound(made)


def files_of(path: str) -> set[str]:
    """File ids of which the index has files, whether they count or not."""
    names = (file.name for file in (Path(path) / ".hoodie/metadata/record_index").iterdir())
    return {name.lstrip(".").partition("_")[0] for name in names if "record-index" in name}


def replaced(path: str) -> list[str]:
    return [i.time for i in hudimeta.Table(path).metadata.timeline.instants if i.action is Action.REPLACE_COMMIT]


KEEP_FEW = {"hoodie.keep.min.commits": "22", "hoodie.keep.max.commits": "24", "hoodie.clean.commits.retained": "2"}


@pytest.mark.rotation(2)
def test_what_went_leaves_storage_and_the_timeline_and_may_come_back(made: ModelledTable) -> None:
    path = made.path
    hudimeta.Table(path).indexes.resize(6)
    made.write(Operation.UPSERT, simple_rows([1, 2], 4))
    hudimeta.Table(path).indexes.resize(2)
    assert len(replaced(path)) == 1
    assert len(files_of(path)) == 6, "readers from before may still want them"
    with pytest.raises(ConfigError, match="archived"):
        hudimeta.Table(path).indexes.resize(4)
    with pytest.raises(ConfigError, match="archived"):
        hudimeta.Table(path).indexes.resize(4, dry_run=True)
    hudimeta.Table(path).indexes.resize(1)
    assert len(replaced(path)) == 2
    table, turns = hudimeta.Table(path, {**OPTIONS, **KEEP_FEW}), 0
    while replaced(path):
        table.upsert(simple_rows([turns % 70], 100 + turns))
        table.maintain()
        turns += 1
        assert groups_of(path) == 1
        assert turns < 90, "neither cleaned nor archived"
    assert files_of(path) == {"record-index-0000-0"}
    assert turns > 15
    assert hudimeta.Table(path).indexes.resize(4).groups == 4
    check_all(made.storage)
    table = hudimeta.Table(path)
    assert known(table) == set(table.scan().to_table()["_hoodie_record_key"].to_pylist())
    table.metadata.validate().raise_if_differs()


def test_an_index_that_is_dropped_and_made_anew_has_all_of_its_groups(made: ModelledTable) -> None:
    table = hudimeta.Table(made.path, OPTIONS)
    table.indexes.resize(8)
    table.indexes.resize(2)
    for name in ("secondary_index_ts", "record_index"):
        table.indexes.drop(name)
    assert not replaced(made.path)
    table.indexes.create(type="record_index", options={"hoodie.metadata.record.index.min.filegroup.count": "4"})
    assert groups_of(made.path) == 4
    made.write(Operation.UPSERT, simple_rows([1, 500], 9))
    sound(made)


def test_a_switch_that_died_is_taken_back_by_the_next_write(made: ModelledTable) -> None:
    keys = known(hudimeta.Table(made.path))
    hudimeta.Table(made.path).indexes.resize(6)
    storage = FaultyStorage(made.storage, _BeforeTheSwitch())
    with pytest.raises(StorageError):
        resize(made.session(storage), 2)
    assert replaced(made.path)
    assert groups_of(made.path) == 6
    assert known(hudimeta.Table(made.path)) == keys
    made.write(Operation.UPSERT, simple_rows([1], 9))
    assert not replaced(made.path)
    assert groups_of(made.path) == 6
    sound(made)


class _BeforeTheSwitch(FaultPlan):
    """From the last step on every request fails, as if the process were dead."""

    def __init__(self) -> None:
        super().__init__(None, Fault.ERROR_BEFORE)
        self._gone = False

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        self._gone = self._gone or (name.endswith(".replacecommit") and "metadata/.hoodie/timeline" in name)
        if self._gone and ".locks" not in name:
            raise StorageError(name, "the process is dead")
        return super().around(name, act)


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
        for groups in (4, 12, 3):
            before = len(written)
            hudimeta.Table(made.path, OPTIONS).indexes.resize(groups)
            while len(written) < before + 2 and writer.is_alive():
                known(hudimeta.Table(made.path))
    finally:
        over.set()
        writer.join()
    assert len(written) >= 6
    assert groups_of(made.path) == 3
    check_all(made.storage)
    table = hudimeta.Table(made.path)
    keys = set(table.scan(columns=["_hoodie_record_key"]).to_table()["_hoodie_record_key"].to_pylist())
    assert known(table) == keys
    assert len(keys) >= len(written)
    table.metadata.validate().raise_if_differs()


@pytest.mark.parametrize("groups", [0, 10_001])
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


@pytest.mark.parametrize("groups", [6, 1])
def test_a_rebuild_and_a_restore_keep_the_number(made: ModelledTable, groups: int) -> None:
    table = hudimeta.Table(made.path)
    point = made.session().snapshot_now().timeline.writes[-1].time
    table.savepoint(point)
    table.indexes.resize(groups)
    made.write(Operation.UPSERT, simple_rows([7, 300], 60))
    table.metadata.rebuild()
    assert groups_of(made.path) == groups
    table.metadata.validate().raise_if_differs()
    table.restore(point)
    table = hudimeta.Table(made.path)
    table.metadata.validate().raise_if_differs()
    assert known(table) == set(table.scan().to_table()["_hoodie_record_key"].to_pylist())
