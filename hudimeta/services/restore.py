"""Restore: the table as it was when one write had just been completed; whatever came later is deleted.

The plan says what goes before anything does. Once it is on the timeline, the table reads as restored; `execute` removes the
files and takes the metadata table back, and a run that dies is finished by the next writer (`commit.restoring`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hudimeta.commit.liveness import is_alive
from hudimeta.commit.restoring import files_of_instants, metadata_must_be_built, newest_last, pending_restores
from hudimeta.commit.session import WriteSession
from hudimeta.config import options as keys
from hudimeta.errors import CommitError, HudiError, StorageError, UndoError
from hudimeta.reports import Report
from hudimeta.services.savepoints import refuse_cleaned, refuse_logs
from hudimeta.storage import join
from hudimeta.table.discovery import list_table
from hudimeta.timeline import Timeline
from hudimeta.timeline.naming import pending_name
from hudimeta.timeline.restore_record import RestoreRecord, encode_restore_plan
from hudimeta.timeline.savepoint_record import files_of_savepoint
from hudimeta.types import Action, Instant, State

__all__ = ["RestorePlan", "RestoreReport", "UndoneInstant", "execute", "plan", "restore", "schedule", "undone_instants"]

_WHAT = "restore to"


@dataclass(frozen=True, repr=False)
class UndoneInstant(Report):
    """One instant that goes.

    Attributes:
        time: Its requested time.
        action: Its action, as its files are named.
        operation: What it did; "" while it is pending.
        rows: Rows that it inserted, updated or deleted; 0 for services and what is pending.
        files: How many files of it are on storage.
        bytes: Their size.
    """

    time: str
    action: Action
    operation: str
    rows: int
    files: int
    bytes: int

    def __str__(self) -> str:
        did = self.operation or f"pending {self.action.value}"
        return f"{self.time} {did}: {self.rows:,} rows, {self.files:,} files, {self.bytes:,} bytes"


@dataclass(frozen=True, repr=False)
class RestorePlan(Report):
    """What a restore takes away; prints as a list.

    Attributes:
        point: Requested time of the write that stays the newest.
        instants: What goes, the newest first.
        metadata: What becomes of the metadata table: "taken back", "built anew: " and why, or "" where there is nothing to do.
    """

    point: str
    instants: tuple[UndoneInstant, ...]
    metadata: str

    @property
    def rows(self) -> int:
        """How many rows the instants wrote or deleted."""
        return sum(i.rows for i in self.instants)

    @property
    def files(self) -> int:
        """How many files go."""
        return sum(i.files for i in self.instants)

    @property
    def bytes(self) -> int:
        """Their size."""
        return sum(i.bytes for i in self.instants)

    def __str__(self) -> str:
        if not self.instants:
            return f"restore to {self.point}: nothing came after it"
        what = f"{len(self.instants):,} instants, {self.rows:,} rows, {self.files:,} files, {self.bytes:,} bytes"
        lines = [f"restore to {self.point}: {what} go", *(f"  {i}" for i in self.instants)]
        return "\n".join([*lines, *([f"  the metadata table is {self.metadata}"] if self.metadata else [])])

    @property
    def record(self) -> RestoreRecord:
        """As it is put on the timeline."""
        return RestoreRecord(self.point, tuple((i.time, i.action) for i in self.instants))


@dataclass(frozen=True, repr=False)
class RestoreReport(Report):
    """What a restore did.

    Attributes:
        instant: Its requested time; None where nothing was to be done, or was only to be planned.
        plan: Its plan.
        deleted: How many files are gone.
    """

    instant: str | None
    plan: RestorePlan
    deleted: int = 0

    def __str__(self) -> str:
        if self.instant is None:
            return str(self.plan)
        gone = f"{len(self.plan.instants):,} instants and {self.deleted:,} files are gone"
        return f"RESTORE at {self.instant}: the table is as of {self.plan.point}, {gone}"


def plan(session: WriteSession, instant: str) -> RestorePlan:
    """Find out what a restore would take away; changes nothing.

    Args:
        session: The table.
        instant: Of a savepoint, or requested time of a completed write.

    Raises:
        UndoError: The table cannot be restored to there.
    """
    with session.lock.held():
        return _plan(session, instant)


def _plan(session: WriteSession, instant: str) -> RestorePlan:
    timeline = session.properties.load_timeline(session.storage)
    for restore in pending_restores(timeline):
        raise UndoError(_WHAT, instant, f"the restore at {restore.time} is not finished", "Run t.recover(), which finishes it.")
    point = next((i for i in timeline.writes if i.time == instant), None)
    if point is None:
        raise UndoError(_WHAT, instant, "there is no such completed write on the active timeline", "See t.savepoints().")
    gone = undone_instants(timeline, point)
    _refuse_archived(session, timeline, point)
    _refuse_savepoints(timeline, point, gone)
    _refuse_missing(session, timeline, point)
    refuse_living(session, timeline, gone, _WHAT, instant)
    return _priced(session, timeline, point, gone)


def undone_instants(timeline: Timeline, point: Instant) -> list[Instant]:
    """Writes and services that a restore to a completed write takes back, the newest first.

    By completion time, as Apache Hudi takes them: what began earlier and ended later goes too. Of what is pending that which
    began later; a plan that was there before stays to be run.
    """
    later = [i for i in timeline.writes if i.completion_order > point.completion_order]
    pending = [i for i in timeline.pending_writes if i.time > point.time]
    return sorted([*later, *pending], key=newest_last, reverse=True)


def _refuse_archived(session: WriteSession, timeline: Timeline, point: Instant) -> None:
    """Refuse to go back over writes that are archived: nobody knows all their files any more."""
    if session.options.get(keys.ARCHIVE_BEYOND_SAVEPOINT):
        key = keys.ARCHIVE_BEYOND_SAVEPOINT.key
        raise UndoError(_WHAT, point.time, f"{key} is on, so later writes may be archived", f"Leave {key} out.")
    archived = timeline.archived_writes(point.time, point.completed_at)
    if archived:
        why = f"{min(archived)} and other later writes are archived"
        raise UndoError(_WHAT, point.time, why, f"Read the table as of {point.time} and overwrite it with its rows.")


def _refuse_savepoints(timeline: Timeline, point: Instant, gone: Iterable[Instant]) -> None:
    pinned = sorted(i.time for i in gone if i.time in timeline.savepoints)
    if pinned:
        why = f"{', '.join(pinned)} would go, which {'is' if len(pinned) == 1 else 'are'} savepointed"
        raise UndoError(_WHAT, point.time, why, f"Give it up first: t.delete_savepoint({pinned[0]!r}).")


def _refuse_missing(session: WriteSession, timeline: Timeline, point: Instant) -> None:
    """Refuse a moment whose files are gone, or going."""
    cleans = [i.time for i in timeline.pending if i.action is Action.CLEAN]
    if cleans:
        raise UndoError(_WHAT, point.time, f"the clean at {cleans[0]} is under way", "Wait for its end, or run t.clean().")
    saved = next((i for i in timeline.completed if i.action is Action.SAVEPOINT and i.time == point.time), None)
    snapshot = session.snapshot_at(timeline).for_reading()
    if saved is None:
        refuse_cleaned(snapshot, point, _WHAT)
    refuse_logs(snapshot, point, _WHAT)
    if saved is None:
        return
    listing = list_table(session.storage)
    there = set(zip(listing["partition_path"].to_pylist(), listing["name"].to_pylist(), strict=True))
    files = files_of_savepoint(timeline.metadata(saved))
    lost = [join(partition, name) for partition, names in files.items() for name in names if (partition, name) not in there]
    if lost:
        why = f"{len(lost):,} files that its savepoint keeps are gone, such as {lost[0]}"
        raise UndoError(_WHAT, point.time, why, "Bring them back from a copy, or take another savepoint.")


def refuse_living(session: WriteSession, timeline: Timeline, gone: Iterable[Instant], what: str, instant: str) -> None:
    """Refuse to take back what a process is at work on. The caller holds the lock: nothing begins meanwhile.

    Args:
        session: The table.
        timeline: Of the table.
        gone: What is to be taken back.
        what: Is done, for the error.
        instant: To what.
    """
    for one in (i for i in gone if not i.is_completed):
        action = one.pending_action or one.action
        requested = join(timeline.folder, pending_name(one.time, action, State.REQUESTED))
        if is_alive(session.storage, one.time, requested, patience_s=session.concurrency.patience_s):
            why = f"a process is at work on the {action.value} {one.time}"
            raise UndoError(what, instant, why, "Stop it, or wait for its end.")


def _priced(session: WriteSession, timeline: Timeline, point: Instant, gone: list[Instant]) -> RestorePlan:
    files = files_of_instants(session.storage, [i.time for i in gone])
    grouped = files.group_by("instant").aggregate([("size", "sum"), ("size", "count")])
    columns = (grouped[c].to_pylist() for c in ("instant", "size_count", "size_sum"))
    sizes = {time: (count, total) for time, count, total in zip(*columns, strict=True)}
    timeline.prefetch([i for i in gone if i.is_completed])
    instants = tuple(_undone(timeline, i, *sizes.get(i.time, (0, 0))) for i in gone)
    if not instants or not session.properties.has_metadata_table:
        return RestorePlan(point.time, instants, "")
    found = RestorePlan(point.time, instants, "taken back")
    why = metadata_must_be_built(session.storage, session.properties, timeline, found.record, gone)
    return RestorePlan(point.time, instants, f"built anew: {why}") if why else found


def _undone(timeline: Timeline, instant: Instant, files: int, size: int) -> UndoneInstant:
    action = instant.pending_action or instant.action
    if not instant.is_completed:
        return UndoneInstant(instant.time, action, "", 0, files, size)
    if instant in timeline.empty_writes:
        return UndoneInstant(instant.time, instant.action, instant.action.value, 0, files, size)
    metadata = timeline.metadata(instant)
    stats = [stat for part in metadata["partitionToWriteStats"].values() for stat in part]
    rows = sum(stat[name] or 0 for stat in stats for name in ("numInserts", "numUpdateWrites", "numDeletes"))
    operation = metadata["operationType"] or instant.action.value
    return UndoneInstant(instant.time, instant.action, operation, rows, files, size)


def schedule(session: WriteSession, instant: str) -> tuple[str | None, RestorePlan]:
    """Put a restore on the timeline, by which the table reads as restored, for `execute` or the next writer to carry out.

    Args:
        session: The table.
        instant: See `plan`.

    Returns:
        The instant of the restore, None when nothing came after the point; and its plan.

    Raises:
        UndoError: The table cannot be restored to there.
    """
    session.coordinator.recover(undoing=True)
    with session.lock.held():
        the_plan = _plan(session, instant)
        if not the_plan.instants:
            return None, the_plan
        timeline = session.properties.load_timeline(session.storage)
        try:
            return session.coordinator.plan(timeline, Action.RESTORE, encode_restore_plan(the_plan.record)), the_plan
        except StorageError:
            stored = pending_restores(session.properties.load_timeline(session.storage))
            if not stored:
                raise
            return stored[0].time, the_plan  # only the answer was lost


def execute(session: WriteSession, instant: str) -> int:
    """Carry out the restore that is planned at an instant; returns how many files were there and are gone.

    Raises:
        CommitError: There is no such plan: it was carried out.
    """
    with session.lock.held():
        timeline = session.properties.load_timeline(session.storage)
        found = next((i for i in pending_restores(timeline) if i.time == instant), None)
        if found is None:
            raise CommitError(f"there is no pending restore at {instant}", "See t.timeline for what is pending.")
        return session.restorer.run(timeline, found)[1]


def restore(session: WriteSession, instant: str, *, dry_run: bool = False) -> RestoreReport:
    """Take the table back to a savepoint or a completed write; everything that came later is deleted.

    Args:
        session: The table.
        instant: Of the savepoint, or requested time of the write.
        dry_run: Only plan.

    Raises:
        UndoError: The table cannot be restored to there; nothing was changed.
    """
    if dry_run:
        return RestoreReport(None, plan(session, instant))
    time, the_plan = schedule(session, instant)
    if time is None:
        return RestoreReport(None, the_plan)
    try:
        deleted = execute(session, time)
    except HudiError as error:
        deleted = _execute_again(session, time, error)
    return session.reported(RestoreReport(time, the_plan, deleted), Action.RESTORE)


def _execute_again(session: WriteSession, instant: str, error: HudiError) -> int:
    """Go on after an error: the plan is on the timeline, so that the table is restored for everybody who reads it."""
    try:
        session.coordinator.recover(undoing=True)
    except HudiError as again:
        why = f"the restore at {instant} is not finished: {error.message}"
        raise CommitError(why, "The table reads as restored; t.recover(), or the next write, finishes it.") from again
    timeline = session.properties.load_timeline(session.storage)
    found = timeline.get(instant, Action.RESTORE)
    record = timeline.metadata(found) if found is not None else {}
    undone = [one for parts in (record.get("hoodieRestoreMetadata") or {}).values() for one in parts]
    return sum(one["totalFilesDeleted"] for one in undone)
