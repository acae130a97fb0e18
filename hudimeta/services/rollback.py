"""Rollback of one instant: of the newest completed write, or of one that is pending.

As in Apache Hudi, writes are rolled back from the newest on, so that no other rests on what goes; several at once, or one that
a compaction of the metadata table has merged, go by a restore.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudimeta.commit import rollback
from hudimeta.commit.restoring import files_of_instants, metadata_must_be_built, pending_restores
from hudimeta.commit.session import WriteSession
from hudimeta.errors import HudiError, UndoError
from hudimeta.reports import Report
from hudimeta.services.restore import refuse_living
from hudimeta.services.savepoints import refuse_cleaned, refuse_logs
from hudimeta.snapshot.schema_commits import forget_schema_commits
from hudimeta.timeline import Timeline
from hudimeta.timeline.restore_record import RestoreRecord
from hudimeta.timeline.rollback_record import rollback_target
from hudimeta.types import Action, Instant

__all__ = ["RollbackPlan", "RollbackReport", "plan", "roll_back"]

RollbackPlan = rollback.RollbackPlan
_WHAT = "rollback of"


@dataclass(frozen=True, repr=False)
class RollbackReport(Report):
    """What a rollback did.

    Attributes:
        instant: Its requested time; None where it was only to be planned.
        plan: Its plan: which files go.
        deleted: How many files are gone.
    """

    instant: str | None
    plan: RollbackPlan
    deleted: int = 0

    def __str__(self) -> str:
        what = f"{self.plan.action.value} {self.plan.instant}"
        if self.instant is None:
            return f"would roll {what} back: {self.plan.n_files:,} files go"
        return f"ROLLBACK at {self.instant} of {what}: {self.deleted:,} files deleted"


def plan(session: WriteSession, instant: str) -> RollbackPlan:
    """Find out what goes with an instant; changes nothing.

    Args:
        session: The table.
        instant: Requested time of a write or a planned service.

    Raises:
        UndoError: It cannot be rolled back.
    """
    with session.lock.held():
        return _plan(session, session.properties.load_timeline(session.storage), instant)


def _plan(session: WriteSession, timeline: Timeline, instant: str) -> RollbackPlan:
    for restore in pending_restores(timeline):
        raise UndoError(_WHAT, instant, f"the restore at {restore.time} is not finished", "Run t.recover(), which finishes it.")
    found = next((i for i in timeline if i.time == instant and i.action.writes_data), None)
    if found is None:
        raise UndoError(_WHAT, instant, "there is no such write on the active timeline", "t.history() lists what there is.")
    if instant in timeline.savepoints:
        raise UndoError(_WHAT, instant, "it is savepointed", f"Give it up first: t.delete_savepoint({instant!r}).")
    refuse_living(session, timeline, [found], _WHAT, instant)
    if found.is_completed:
        _refuse_unless_newest(timeline, found)
        _refuse_lost(session, timeline, found)
    files = files_of_instants(session.storage, [instant])
    by_partition: dict[str, list[str]] = {}
    for partition, name in zip(files["partition_path"].to_pylist(), files["name"].to_pylist(), strict=True):
        by_partition.setdefault(partition, []).append(name)
    action = found.pending_action or found.action
    return RollbackPlan(instant, action, {p: tuple(names) for p, names in by_partition.items()}, listed=True)


def _refuse_unless_newest(timeline: Timeline, write: Instant) -> None:
    later = [i for i in timeline.writes if i.time > write.time or i.completion_order > write.completion_order]
    pending = [i for i in timeline.pending_writes if i.time > write.time]
    for one in (*later, *pending):
        what = f"{one.action.value} {one.time} came after it"
        raise UndoError(
            _WHAT, write.time, what, "Roll that back first, or restore the table to an earlier write: t.restore(…)."
        )


def _refuse_lost(session: WriteSession, timeline: Timeline, write: Instant) -> None:
    """Refuse where the table of before cannot come back: cleaned, or merged into the metadata table for good."""
    before = [i for i in timeline.by_completion if i != write]
    for clean in (i for i in timeline.pending if i.action is Action.CLEAN):
        raise UndoError(_WHAT, write.time, f"the clean at {clean.time} is under way", "Wait for its end, or run t.clean().")
    if before:
        snapshot = session.snapshot_at(timeline).for_reading()
        refuse_cleaned(snapshot, before[-1], f"rollback of {write.time} to")
        refuse_logs(snapshot, before[-1], f"rollback of {write.time} to")
    record = RestoreRecord(before[-1].time if before else "", ((write.time, write.action),))
    why = metadata_must_be_built(session.storage, session.properties, timeline, record, [write])
    if why:
        to = f"t.restore({before[-1].time!r})" if before else "t.restore(…) to a write"
        raise UndoError(_WHAT, write.time, f"the metadata table cannot follow, {why}", f"{to} builds it anew.")


def roll_back(session: WriteSession, instant: str, *, dry_run: bool = False) -> RollbackReport:
    """Take the newest completed write, or a pending one, out of the table for good.

    Args:
        session: The table.
        instant: Its requested time.
        dry_run: Only plan.

    Raises:
        UndoError: It cannot be rolled back; nothing was changed.
    """
    if dry_run:
        return RollbackReport(None, plan(session, instant))
    with session.lock.held():
        timeline = session.properties.load_timeline(session.storage)
        the_plan = _plan(session, timeline, instant)
        try:
            forget_schema_commits(session.fenced, [instant])
            has_metadata = session.properties.has_metadata_table
            done = rollback.execute(session.fenced, timeline, session.times, the_plan, has_metadata=has_metadata)
            return session.reported(RollbackReport(done.time, the_plan, done.deleted), Action.ROLLBACK)
        except HudiError:
            begun = session.properties.load_timeline(session.storage)
            if begun.completed == timeline.completed and not _begun(begun, instant):
                raise  # nothing of it is on the timeline
    session.coordinator.recover(undoing=True)
    return session.reported(RollbackReport(_recorded(session, instant), the_plan, the_plan.n_files), Action.ROLLBACK)


def _begun(timeline: Timeline, instant: str) -> bool:
    targets = (rollback_target(timeline.plan(i)) for i in timeline.pending if i.action is Action.ROLLBACK)
    return any(target is not None and target[0] == instant for target in targets)


def _recorded(session: WriteSession, instant: str) -> str:
    """Requested time of the rollback that took an instant back."""
    timeline = session.properties.load_timeline(session.storage)
    rollbacks = [i for i in timeline.completed if i.action is Action.ROLLBACK]
    return next(i.time for i in reversed(rollbacks) if instant in timeline.metadata(i)["commitsRollback"])
