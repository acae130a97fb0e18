"""Indexes built beside writers: whatever is committed meanwhile is in them, and what died is built by the next."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.coordinator import OpenWrite, Publication
from hudimeta.errors import CommitConflict, CommitError, ConfigError, StorageError, TableError
from hudimeta.formats.hfile import KeyValues
from hudimeta.metadata import writer as metadata_writer
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.services.indexing import beside_writers, create_beside
from hudimeta.slices.slice_rows import SliceRows
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Action, Operation
from hudimeta.write.table_writer import write_rows
from tests.rotation import in_turn

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
GIVEN = {**SIMPLE_OPTIONS, "hoodie.parquet.small.file.limit": "0", "hoodie.metadata.index.column.stats.enable": "false"}
KINDS: dict[str, dict[str, Any]] = {
    "record_index": {"kind": "record_index"},
    "secondary_index_by_ts": {"kind": "secondary_index", "name": "by_ts", "columns": ["ts"]},
    "column_stats": {"kind": "column_stats"},
    "bloom_filters": {"kind": "bloom_filters"},
    "expr_index_low": {"kind": "column_stats", "name": "low", "columns": ["id"], "expression": "upper"},
}


def written(path: Path, type: str, name: str = "record_index") -> ModelledTable:
    """Two partitions with a few files each, and the record index where a secondary one is to come."""
    more = {"hoodie.metadata.record.index.enable": "true"} if name.startswith("secondary") else {}
    table = ModelledTable(str(path), {**GIVEN, "hoodie.datasource.write.table.type": type, **more})
    for first in (0, 10):
        table.write(Operation.INSERT, simple_rows(range(first, first + 10), 1))
    table.write(Operation.UPSERT, simple_rows(range(5, 9), 2))
    return table


def meanwhile(monkeypatch: pytest.MonkeyPatch, table: ModelledTable) -> Callable[[], int]:
    """Commit a write before each look at the table and after it; returns how many there were."""
    look, count = beside_writers.index_source, 0

    def write() -> None:
        nonlocal count
        count += 1
        if count > 6:
            return
        table.write(Operation.INSERT, simple_rows([100 + count], 10 + count))
        table.write(Operation.UPSERT, simple_rows([count, 12 + count], 20 + count))
        table.write(Operation.DELETE, simple_rows([17 - count], 30 + count))

    def looked(*asked: Any, **more: Any) -> Any:
        write()
        source = look(*asked, **more)
        write()
        return source

    monkeypatch.setattr(beside_writers, "index_source", looked)
    monkeypatch.setattr(beside_writers, "_SHORT_S", -1.0)
    monkeypatch.setattr(beside_writers, "_MOST_LOOKS", 3)
    return lambda: count


@pytest.mark.rotation(2)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("type", TYPES)
def test_what_is_committed_meanwhile_is_in_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type: str, name: str
) -> None:
    table = written(tmp_path / "t", type, name)
    writes = meanwhile(monkeypatch, table)
    report = create_beside(table.session(), **KINDS[name])
    assert writes() == 6
    assert (report.partition, report.action) == (name, "built")
    here = Table(table.path)
    assert name in here.metadata.ready
    validation = here.metadata.validate()
    assert validation.holds, str(validation)
    if name in ("record_index", "secondary_index_by_ts"):
        session = table.session()
        assert name in proven_indexes(session.snapshot_now().metadata)
    table.check()
    check_all(table.storage)
    table.write(Operation.UPSERT, simple_rows(range(3, 25), 90))
    table.write(Operation.DELETE, simple_rows([4, 20], 91))
    table.check()
    check_all(table.storage)


def test_under_the_lock_only_what_is_new_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(tmp_path / "t", "COPY_ON_WRITE")
    make, read, before_lock = beside_writers._make_ahead, SliceRows.columns, [0]
    encode, packed = metadata_writer.encode_base, []
    seen: list[FileSlice] = []

    def counted(self: SliceRows, one: FileSlice, names: Any) -> pa.Table:
        seen.append(one)
        return read(self, one, names)

    def encoded(version: int, name: str, pieces: Iterable[KeyValues]) -> tuple[bytes, int]:
        packed.append(name)
        return encode(version, name, pieces)

    def made(*asked: Any) -> object:
        ahead = make(*asked)
        before_lock[0] = len(seen)
        assert len(packed) == ahead.groups
        table.write(Operation.UPSERT, simple_rows([0, 40], 50))
        table.write(Operation.DELETE, simple_rows([13], 51))
        packed.clear()
        return ahead

    monkeypatch.setattr(SliceRows, "columns", counted)
    monkeypatch.setattr(metadata_writer, "encode_base", encoded)
    monkeypatch.setattr(beside_writers, "_make_ahead", made)
    slices = len(Table(table.path).file_slices())
    report = create_beside(table.session(), kind="record_index")
    assert before_lock[0] == slices
    assert len(seen) == slices + 3  # what was rewritten, and the new file
    assert not packed, "the index was packed before the lock"
    assert report.records == len(table.model.rows)
    assert Table(table.path).metadata.validate().holds
    table.check()


def test_doubled_keys_are_found_beside_writers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that cannot name all places of a key is not proven, whenever the second one came."""
    table, make = written(tmp_path / "t", "COPY_ON_WRITE"), beside_writers._make_ahead

    def made(*asked: Any) -> object:
        ahead = make(*asked)
        Table(table.path).bulk_insert(simple_rows([3], 70))
        return ahead

    monkeypatch.setattr(beside_writers, "_make_ahead", made)
    create_beside(table.session(), kind="record_index")
    assert "record_index" not in proven_indexes(table.session().snapshot_now().metadata)
    check_all(table.storage)


@pytest.mark.parametrize("name", ["record_index", "secondary_index_by_ts"])
def test_a_write_that_began_before_is_in_it_or_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    table = written(tmp_path / "t", "MERGE_ON_READ", name)
    slow = table.session()
    publish = slow.coordinator.publish

    def late(write: OpenWrite, publication: Publication) -> str:
        create_beside(table.session(), **KINDS[name])
        return publish(write, publication)

    monkeypatch.setattr(slow.coordinator, "publish", late)
    rows = pa.concat_tables([simple_rows([200], 60), simple_rows([6, 11], 60)])
    try:
        write_rows(slow, Operation.UPSERT, rows)
        table.model.write(Operation.UPSERT, rows)
    except CommitConflict:
        table.write(Operation.UPSERT, rows)
    table.check()
    check_all(table.storage)
    assert Table(table.path).metadata.validate().holds


def test_a_writer_that_read_the_properties_before_runs_again(tmp_path: Path) -> None:
    """It began after the index was complete, and yet does not know of it."""
    table = written(tmp_path / "t", "COPY_ON_WRITE")
    slow = table.session()
    create_beside(table.session(), kind="record_index")
    rows = pa.concat_tables([simple_rows([200], 60), simple_rows([6, 11], 60)])
    assert write_rows(slow, Operation.UPSERT, rows).attempts == 2
    table.model.write(Operation.UPSERT, rows)
    table.check()
    check_all(table.storage)


def test_what_another_process_runs_is_not_due(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "COPY_ON_WRITE")
    steps = Table(table.path).services.indexing
    planned = steps.schedule("bloom_filters")
    assert "indexing" in str(Table(table.path).maintain(dry_run=True))
    with table.session().coordinator.running(planned, Action.INDEXING):
        assert "indexing" not in str(Table(table.path).maintain())
    assert "indexing" in str(Table(table.path).maintain())


def test_a_plan_waits_and_is_run_or_cancelled(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "COPY_ON_WRITE", "secondary")
    steps = Table(table.path).services.indexing
    assert "secondary_index_by_ts" in str(steps.plan("secondary_index", "by_ts", "ts"))
    planned = steps.schedule("secondary_index", "by_ts", "ts")
    with pytest.raises(TableError, match=f"planned at {planned}"):
        steps.schedule("secondary_index", "by_ts", "ts")
    with pytest.raises(TableError, match=f"planned at {planned}"):
        Table(table.path).metadata.create_index("by_ts", columns="ts")
    table.write(Operation.UPSERT, simple_rows([3], 70))
    assert Table(table.path).recover() == ()
    steps.cancel(planned)
    assert "secondary_index_by_ts" not in Table(table.path).metadata.index_definitions
    with pytest.raises(CommitError, match="no pending indexing"):
        steps.execute(planned)
    bloom = steps.schedule("bloom_filters")
    asking = Table(table.path, {**GIVEN, "hoodie.metadata.index.bloom.filter.enable": "true"})
    assert f"planned at {bloom} and not built" in str(asking.upsert(simple_rows([3], 71)))
    table.model.write(Operation.UPSERT, simple_rows([3], 71))
    steps.cancel(bloom)
    again = steps.schedule("secondary_index", "by_ts", "ts")
    assert str(Table(table.path).maintain(dry_run=True)).startswith("indexing")
    Table(table.path).maintain()
    done = [i for i in Table(table.path).timeline.completed if i.action is Action.INDEXING]
    assert again in [i.time for i in done]
    assert "secondary_index_by_ts" in Table(table.path).metadata.ready
    with pytest.raises(ConfigError, match="sync, async"):
        Table(table.path).indexes.create(type="bloom_filters", mode="later")
    Table(table.path).indexes.create(type="bloom_filters", mode="async")
    table.check()
    check_all(table.storage)


def test_a_plan_for_an_index_that_came_another_way_is_taken_back(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "COPY_ON_WRITE")
    steps = Table(table.path).services.indexing
    planned = steps.schedule("bloom_filters")
    file = tmp_path / f"t/.hoodie/timeline/{planned}.indexing.requested"
    content = file.read_bytes()
    steps.cancel(planned)
    Table(table.path).indexes.create(type="bloom_filters")
    file.write_bytes(content)  # as where another engine did not look for plans
    with pytest.raises(TableError, match=f"the index bloom_filters already. The plan at {planned} was taken back"):
        steps.execute(planned)
    assert not file.exists()
    assert "bloom_filters" in Table(table.path).metadata.ready


def test_a_building_that_fails_at_any_call_is_done_by_the_next(tmp_path: Path) -> None:
    source = written(tmp_path / "source", "MERGE_ON_READ")
    whole = source.copy(str(tmp_path / "whole"))
    counted = FaultyStorage(whole.storage, FaultPlan(None, Fault.ERROR_BEFORE))
    create_beside(whole.session(counted), kind="record_index")
    assert len(counted.plan.calls) > 20
    for call in in_turn(range(len(counted.plan.calls)), 12):
        table = source.copy(str(tmp_path / f"t{call}"))
        broken = FaultyStorage(table.storage, FaultPlan(call, Fault.ERROR_BEFORE))
        try:
            create_beside(table.session(broken), kind="record_index")
        except StorageError:
            table.check()
            table.write(Operation.UPSERT, simple_rows([2, 30], 40))
            if "record_index" not in Table(table.path).metadata.ready:
                create_beside(table.session(), kind="record_index")
        assert Table(table.path).metadata.validate().holds
        table.check()
        check_all(table.storage)


def test_a_plan_outlives_a_metadata_table_that_is_laid_out_anew(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "COPY_ON_WRITE")
    Table(table.path).services.indexing.schedule("column_stats", "low", "id", expression="upper")
    table.write(Operation.UPSERT, simple_rows([3, 31], 40))
    shutil.rmtree(tmp_path / "t/.hoodie/metadata")
    Table(table.path).metadata.rebuild()
    Table(table.path).maintain()
    assert "expr_index_low" in Table(table.path).metadata.ready
    table.check()
    check_all(table.storage)
