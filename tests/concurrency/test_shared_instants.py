"""A write that died while it had the instant of another action: taking it back leaves the other one's files alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta.api.table import Table
from hudimeta.commit.session import WriteSession
from hudimeta.errors import StorageError
from hudimeta.storage import Storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline import TimelineWriter
from hudimeta.timeline.rollback_record import encode_rollback_metadata, encode_rollback_plan
from hudimeta.types import Action, Operation, State
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Clock, Interrupted, WithoutGuards


@pytest.mark.parametrize("begun", [False, True], ids=["requested", "inflight"])
def test_recovery_keeps_what_a_clean_of_the_same_instant_told(tmp_path: Path, begun: bool) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.clean.automatic": "false"})
    for ts in range(4):
        table.write(Operation.UPSERT, simple_rows(range(3), ts))
    cleaned = Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean()
    assert cleaned.deleted
    writer = TimelineWriter(table.storage)
    writer.create_requested(cleaned.instant, Action.COMMIT)
    if begun:
        writer.create_inflight(cleaned.instant, Action.COMMIT)
    assert Table(table.path).recover() == (cleaned.instant,)
    check_all(table.storage)
    table.model.check(table.read())
    table.write(Operation.UPSERT, simple_rows(range(3), 9))
    check_all(table.storage)


@pytest.mark.parametrize("ended", [False, True], ids=["died half-way", "ended"])
def test_a_write_gives_its_instant_up_to_a_rollback_of_another_write_there(tmp_path: Path, ended: bool) -> None:
    """Two whose clocks lie behind choose one instant, and the first is rolled back: that names the second as well."""
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.UPSERT, simple_rows(range(3), 1))
    begun: list[str] = []

    def rolled_back() -> None:
        timeline = table.session().properties.load_timeline(table.storage)
        begun.extend(i.time for i in timeline.pending_writes)
        later, writer = f"{int(begun[0]) + 1}", TimelineWriter(table.storage)
        writer.create_requested(later, Action.ROLLBACK, encode_rollback_plan(table.path, begun[0], Action.COMMIT, {}))
        if ended:
            writer.create_inflight(later, Action.ROLLBACK)
            content = encode_rollback_metadata(table.path, later, begun[0], Action.COMMIT, {})
            writer.complete(later, Action.ROLLBACK, f"{int(later) + 1}", content)

    session = WriteSession(WithoutGuards(table.path), table.options, engine=Interrupted(rolled_back))
    report = write_rows(session, Operation.UPSERT, simple_rows([1], 2))
    assert (report.attempts, report.instant in begun) == (2, False)
    assert Table(table.path).recover() == ()
    check_all(table.storage)
    table.model.write(Operation.UPSERT, simple_rows([1], 2))
    table.model.check(table.read())


def test_taking_back_a_write_of_a_compactions_instant_leaves_its_base_files(tmp_path: Path) -> None:
    """The metadata table's compaction took the completion of a write for its instant; another began a write at that time."""
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.compact.max.delta.commits": "1"})
    report = table.write(Operation.UPSERT, simple_rows(range(3), 1))
    assert report.compacted_metadata
    assert report.completion is not None
    assert list(tmp_path.glob(f"t/.hoodie/metadata/*/*_{report.completion}.hfile"))
    writer = TimelineWriter(table.storage)
    writer.create_requested(report.completion, Action.COMMIT)
    writer.create_inflight(report.completion, Action.COMMIT)
    assert Table(table.path).recover() == (report.completion,)
    check_all(table.storage)
    assert Table(table.path).recover() == (), "and once more, for what was written after a rollback"
    check_all(table.storage)
    table.check()
    table.write(Operation.UPSERT, simple_rows([1, 7], 3))
    table.check()
    check_all(table.storage)


class _LostAnswer(FaultyStorage):
    """Fails behind the delta commit in the metadata table, when somebody else has just announced an action at its instant."""

    def __init__(self, inner: Storage, table: Storage | None = None) -> None:
        super().__init__(inner, FaultPlan(None, Fault.ERROR_BEFORE))
        self._table = table

    def put_if_absent(self, path: str, data: bytes) -> None:
        super().put_if_absent(path, data)
        if self._table is not None and path.endswith(".deltacommit"):
            instant = path.rpartition("/")[2].partition("_")[0]
            TimelineWriter(self._table).create_requested(instant, Action.REPLACE_COMMIT)
            raise StorageError(path, "no answer")

    def sub(self, path: str) -> FaultyStorage:
        return _LostAnswer(self.inner.sub(path), self.inner)


def test_an_action_that_has_not_begun_keeps_nothing_of_a_write_in_the_metadata_table(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.UPSERT, simple_rows(range(3), 1))
    storage = _LostAnswer(table.storage)
    with pytest.raises(StorageError, match="no answer"):
        write_rows(table.session(storage), Operation.UPSERT, simple_rows([1], 2))
    for other in Table(table.path).timeline.pending_writes:  # which looks around, and takes another instant
        TimelineWriter(table.storage).delete_pending(other.time, Action.REPLACE_COMMIT, State.REQUESTED)
    Table(table.path).recover()
    table.check()
    check_all(table.storage)
    table.write(Operation.UPSERT, simple_rows([2], 3))
    table.check()
    check_all(table.storage)


@pytest.mark.parametrize("action", [Action.INDEXING, Action.CLUSTERING, Action.CLEAN])
def test_a_plan_at_the_instant_of_a_write_is_removed(tmp_path: Path, action: Action) -> None:
    """Its planner stood still for longer than its lock lasted, and went on when the write had the instant."""
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    report = table.write(Operation.UPSERT, simple_rows(range(3), 1))
    TimelineWriter(table.storage).create_requested(report.instant, action, b"a plan")
    Table(table.path).recover()
    assert not list(tmp_path.glob(f"t/.hoodie/timeline/{report.instant}.{action.value}.requested"))
    table.check()
    check_all(table.storage)


class _Meanwhile(WithoutGuards):
    """Somebody else announces a write at the instant that was just chosen, of another action."""

    def __init__(self, path: str, other: WriteSession) -> None:
        super().__init__(path)
        self._other: WriteSession | None = other
        self.met = list[tuple[str, str]]()

    def put(self, path: str, data: bytes) -> None:
        super().put(path, data)
        self._begun(path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        super().put_if_absent(path, data)
        self._begun(path)

    def _begun(self, path: str) -> None:
        other, self._other = self._other, None
        if other is not None:
            instant = path.rpartition("/")[2].partition(".")[0]
            write, _ = other.coordinator.begin(Operation.INSERT_OVERWRITE)
            self.met.append((instant, write.instant))
            other.coordinator.abort(write)


def test_no_two_actions_have_one_instant_where_heartbeats_tell_who_lives(tmp_path: Path) -> None:
    """With clocks that stand still each takes the next one after what it saw."""
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.UPSERT, simple_rows(range(3), 1))
    other = WriteSession(WithoutGuards(table.path), table.options, Clock(1_000_000))
    storage = _Meanwhile(table.path, other)
    report = write_rows(WriteSession(storage, table.options, Clock(1_000_000)), Operation.UPSERT, simple_rows([1], 2))
    ((mine, its),) = storage.met
    assert mine == report.instant
    assert mine < its
    assert Table(table.path).recover() == ()
    table.model.write(Operation.UPSERT, simple_rows([1], 2))
    table.model.check(table.read())
    check_all(table.storage)


class _Deletes(WithoutGuards):
    """Notes what is deleted, in order."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.deleted = list[str]()

    def delete(self, path: str) -> bool:
        self.deleted.append(path)
        return super().delete(path)

    def delete_folder(self, path: str) -> None:
        self.deleted.append(path)
        super().delete_folder(path)


def test_an_instant_is_free_only_when_all_that_bore_it_is_gone(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.UPSERT, simple_rows(range(3), 1))
    storage = _Deletes(table.path)
    with pytest.raises(StorageError, match="no answer"):
        write_rows(WriteSession(storage, table.options, engine=Interrupted(_fails)), Operation.UPSERT, simple_rows([1], 2))
    taken_back = [path for path in storage.deleted if ".hoodie/metadata" not in path]
    assert taken_back[-1].endswith(".requested"), taken_back
    assert any(".heartbeat" in path for path in taken_back)
    assert any(".temp" in path for path in taken_back)


def _fails() -> None:
    raise StorageError("p0", "no answer")
