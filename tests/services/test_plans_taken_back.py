"""Plans whose run another engine took back: Apache Hudi leaves the plan on the timeline, and whoever comes next runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from hudimeta import Table
from hudimeta.commit.planned_runs import cancel
from hudimeta.commit.session import WriteSession
from hudimeta.engine import LocalEngine
from hudimeta.errors import CommitConflict, CommitError
from hudimeta.services import clustering, compaction, log_compaction
from hudimeta.services.indexing import beside_writers, create_beside
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import ModelledTable
from hudimeta.timeline.instant_files import InstantFiles
from hudimeta.timeline.restore_record import RestoreRecord, encode_restore_metadata, encode_restore_plan
from hudimeta.timeline.rollback_record import encode_rollback_metadata, encode_rollback_plan
from hudimeta.timeline.transitions import TimelineWriter
from hudimeta.types import Action
from tests.services.test_log_compaction import AT_ONCE, sound, written

SERVICES: dict[str, tuple[Any, Action]] = {
    "compaction": (compaction, Action.COMPACTION),
    "log compaction": (log_compaction, Action.LOG_COMPACTION),
    "clustering": (clustering, Action.CLUSTERING),
}


class Meanwhile(LocalEngine):
    """An engine that lets something else happen before the first tasks."""

    def __init__(self, what: Callable[[], object]) -> None:
        super().__init__(1)
        self._left = [what]

    def map(self, task: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """See `Engine.map`."""
        while self._left:
            self._left.pop()()
        return super().map(task, items)


def take_back(table: ModelledTable, target: str, action: Action, how: Action) -> None:
    """A completed rollback or restore that names an instant whose plan stays."""
    later = table.session().times.next(Table(table.path).timeline.last_time)
    plan = RestoreRecord("", ((target, action),))
    begun, done = (
        (encode_restore_plan(plan), encode_restore_metadata(table.path, later, 1, plan, {}))
        if how is Action.RESTORE
        else (
            encode_rollback_plan(table.path, target, action, {}),
            encode_rollback_metadata(table.path, later, target, action, {}),
        )
    )
    writer = TimelineWriter(table.storage)
    writer.create_requested(later, how, begun)
    writer.create_inflight(later, how)
    writer.complete(later, how, f"{int(later) + 1}", done)


def with_a_plan(path: Path, name: str) -> tuple[ModelledTable, str]:
    table = written(path, **AT_ONCE)
    return table, SERVICES[name][0].schedule(table.session())


@pytest.mark.parametrize("how", [Action.ROLLBACK, Action.RESTORE])
@pytest.mark.parametrize("name", SERVICES)
def test_a_plan_is_run_after_its_run_was_taken_back(tmp_path: Path, name: str, how: Action) -> None:
    (table, planned), (service, action) = with_a_plan(tmp_path / "t", name), SERVICES[name]
    TimelineWriter(table.storage).create_inflight(planned, action)
    take_back(table, planned, action, how)
    service.execute(table.session(), planned)
    assert Table(table.path).timeline.is_committed(planned)
    sound(table)


@pytest.mark.parametrize("how", [Action.ROLLBACK, Action.RESTORE])
@pytest.mark.parametrize("name", SERVICES)
def test_a_run_that_is_taken_back_meanwhile_publishes_nothing(tmp_path: Path, name: str, how: Action) -> None:
    """Its files may be gone by then."""
    (table, planned), (service, action) = with_a_plan(tmp_path / "t", name), SERVICES[name]
    engine = Meanwhile(lambda: take_back(table, planned, action, how))
    with pytest.raises(CommitConflict, match=f"which a {how.value} of another write has taken"):
        service.execute(WriteSession(table.storage, table.options, engine=engine), planned)
    assert not Table(table.path).timeline.is_committed(planned)
    table.check()
    service.execute(table.session(), planned)
    sound(table)


class Before(FaultPlan):
    """Something else happens right before the first call of a verb on a path."""

    def __init__(self, call: str, what: Callable[[], object]) -> None:
        super().__init__(None, Fault.ERROR_BEFORE)
        self._call, self._left = call, [what]

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        if self._left and name == self._call:
            self._left.pop()()
        return super().around(name, act)


@pytest.mark.parametrize("late", [False, True], ids=["after the plan is gone", "while it goes"])
@pytest.mark.parametrize("name", SERVICES)
def test_a_run_that_begins_once_its_plan_is_taken_back_leaves_nothing(tmp_path: Path, name: str, late: bool) -> None:
    """It paused for so long that another process took it for dead; its inflight file alone would stop all writers."""
    (table, planned), (service, action) = with_a_plan(tmp_path / "t", name), SERVICES[name]
    session, folder = table.session(), ".hoodie/timeline"
    writer = TimelineWriter(table.storage)

    def take_plan(storage: Any) -> None:
        cancel(storage, session.properties, session.lock, session.times, planned, action)

    if late:
        call = f"delete {folder}/{planned}.{action.value}.requested"
        take_plan(FaultyStorage(table.storage, Before(call, lambda: writer.begin_planned(planned, action))))
    else:
        call = f"put_if_absent {folder}/{planned}.{action.value}.inflight"
        begins = FaultyStorage(table.storage, Before(call, lambda: take_plan(table.storage)))
        with pytest.raises(CommitError, match=f"the plan of {action.value} {planned} was taken back before it was run"):
            TimelineWriter(begins).begin_planned(planned, action)
    assert not any((tmp_path / "t" / folder).glob(f"{planned}.*"))
    table.check()
    assert service.schedule(table.session()) is not None


@pytest.mark.parametrize("name", [*SERVICES, "an index"])
def test_who_looks_while_a_plan_is_taken_back_goes_on(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Maintenance and the building of an index look at plans without the table lock."""
    if name == "an index":
        table, action = written(tmp_path / "t", **AT_ONCE), Action.INDEXING
        planned = beside_writers.schedule(table.session(), kind="bloom_filters")
    else:
        (table, planned), action = with_a_plan(tmp_path / "t", name), SERVICES[name][1]
    session, read = table.session(), InstantFiles.decoded
    left = [planned]

    def decoded(files: InstantFiles, file: str, completed: bool) -> dict[str, Any]:
        if file == f"{planned}.{action.value}.requested" and left:
            left.pop()
            monkeypatch.undo()
            if action is Action.INDEXING:
                beside_writers.cancel(session, planned)
            else:
                cancel(session.storage, session.properties, session.lock, session.times, planned, action)
        return read(files, file, completed)

    monkeypatch.setattr(InstantFiles, "decoded", decoded)
    if action is Action.INDEXING:
        assert create_beside(table.session(), kind="bloom_filters").partition == "bloom_filters"
    else:
        Table(table.path, table.options.given).maintain(dry_run=True)
    assert not left
    table.check()
