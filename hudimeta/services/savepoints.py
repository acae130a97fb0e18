"""Savepoints: moments of the table whose files stay until the savepoint is given up, and to which it can be restored.

A savepoint bears the requested time of the write that it pins, and lists the files that show the table as of it. Cleaning
leaves those files alone, archival the write. Everything happens under the table lock, so that a savepoint which is seen there
half-made, or half-removed, belongs to a process that died: `Recovery` removes it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from hudimeta.commit.session import WriteSession
from hudimeta.engine.machine import now_ms
from hudimeta.errors import InstantExists, TableError, UndoError
from hudimeta.metering import meter_of
from hudimeta.reports import Report, Reports
from hudimeta.services.archival import archive_overtaken
from hudimeta.snapshot.cleaned import refuse_lost
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.timeline import Timeline, TimelineWriter, format_instant
from hudimeta.timeline.clean_record import decode_plan
from hudimeta.timeline.savepoint_record import encode_savepoint, files_of_savepoint
from hudimeta.types import Action, Instant, State, TableType

__all__ = ["Savepoint", "delete", "listed", "moment_of", "refuse_cleaned", "refuse_logs", "save"]


@dataclass(frozen=True, repr=False)
class Savepoint(Report):
    """A savepoint.

    Attributes:
        instant: Requested time of the write that it pins.
        completion: When it was completed, as an instant; None for one that is only planned.
        user: Who asked for it.
        comment: Why.
        at: When, in the table's zone.
        files: Names of the files that stay, by partition path.
    """

    instant: str
    completion: str | None
    user: str
    comment: str
    at: str
    files: Mapping[str, tuple[str, ...]]

    @property
    def n_files(self) -> int:
        """How many files it keeps."""
        return sum(len(names) for names in self.files.values())

    def __str__(self) -> str:
        said = [text for text in (self.user and f"by {self.user}", self.comment and repr(self.comment)) if text]
        head = "would savepoint" if self.completion is None else "savepoint"
        where = f"{self.n_files:,} files in {len(self.files):,} partitions"
        return f"{head} {self.instant}: {where}" + (f", {', '.join(said)}" if said else "")


def save(
    session: WriteSession, instant: str | None = None, comment: str = "", user: str = "", *, dry_run: bool = False
) -> Savepoint:
    """Pin a write.

    Args:
        session: The table.
        instant: Requested time of a completed write; None for the newest.
        comment: Why.
        user: Who asks for it.
        dry_run: Only say what it would keep.

    Raises:
        UndoError: There is no such write, it is savepointed already, or cleaning removed files that it needs.
    """
    with session.lock.held():
        snapshot = _now(session)
        timeline = snapshot.timeline
        write = _write_at(timeline, instant)
        if any(i.time == write.time and i.action is Action.SAVEPOINT for i in timeline.completed):
            raise UndoError("savepoint of", write.time, "it is savepointed already", "See t.savepoints().")
        refuse_cleaned(snapshot, write, "savepoint of")
        files = _files_shown(snapshot, write)
        at_ms = now_ms()
        at = format_instant(at_ms, session.properties.zone)
        if dry_run:
            return Savepoint(write.time, None, user, comment, at, files)
        writer = TimelineWriter(session.fenced, timeline.folder)
        with contextlib.suppress(InstantExists):  # who holds the lock takes over what a dead process began
            writer.create_inflight(write.time, Action.SAVEPOINT)
        completion = session.times.next(timeline.last_time)
        writer.complete(write.time, Action.SAVEPOINT, completion, encode_savepoint(user, at_ms, comment, files))
    return Savepoint(write.time, completion, user, comment, at, files)


def listed(timeline: Timeline) -> Reports[Savepoint]:
    """The savepoints of a table, the oldest first; one request for each."""
    found = [i for i in timeline.completed if i.action is Action.SAVEPOINT]
    timeline.prefetch(found)
    return Reports(_savepoint(timeline, i) for i in found)


def delete(session: WriteSession, instant: str, *, dry_run: bool = False) -> Savepoint:
    """Give a savepoint up: cleaning and archival may take what it kept. Its write stays.

    Where archival has taken writes after it (`hoodie.archive.beyond.savepoint`), the write is archived first.

    Args:
        session: The table.
        instant: Of the savepoint.
        dry_run: Only say what it keeps.

    Returns:
        What it was.

    Raises:
        UndoError: There is no such savepoint, or archiving its write would show again what it replaced.
    """
    archived = None
    with session.lock.held():
        timeline = session.properties.load_timeline(session.storage)
        found = next((i for i in timeline.completed if i.action is Action.SAVEPOINT and i.time == instant), None)
        if found is None:
            raise UndoError("giving up the savepoint", instant, "there is none", "t.savepoints() lists those that there are.")
        gone = _savepoint(timeline, found)
        if not dry_run:
            archived = archive_overtaken(session, timeline, instant)
            writer = TimelineWriter(session.fenced, timeline.folder)
            writer.delete_completed(found)
            writer.delete_pending(instant, Action.SAVEPOINT, State.INFLIGHT)
    if archived is not None:
        meter_of(session.storage).reported(archived, "archive")
    return gone


def _savepoint(timeline: Timeline, instant: Instant) -> Savepoint:
    record = timeline.metadata(instant)
    at = format_instant(record["savepointedAt"], timeline.zone)
    files = files_of_savepoint(record)
    return Savepoint(instant.time, instant.completion, record["savepointedBy"], record["comments"], at, files)


def _now(session: WriteSession) -> Snapshot:
    return session.snapshot_now().for_reading()


def _write_at(timeline: Timeline, instant: str | None) -> Instant:
    """The completed write of a requested time; the newest for None."""
    if instant is None and timeline.writes:
        newest: Instant = timeline.by_completion[-1]
        return newest
    for write in timeline.writes:
        if write.time == instant:
            return write
    why = "there is no such completed write on the active timeline"
    raise UndoError("savepoint of", instant or "the newest write", why, "t.history() lists what there is.")


def refuse_cleaned(snapshot: Snapshot, write: Instant, what: str) -> None:
    """Refuse a write whose files cleaning has removed, or is about to remove: nothing can bring them back.

    Needed are those of the write's request, as readers ask for, and those of its completion, to which a restore goes back.

    Args:
        snapshot: The table as it is.
        write: On its timeline.
        what: Is done to it, for the error.

    Raises:
        UndoError: With the earliest write that is left.
    """
    pending = [i for i in snapshot.timeline.pending if i.action is Action.CLEAN]
    planned = [decode_plan(snapshot.timeline.plan(i)).earliest for i in pending]
    kept = max([snapshot.earliest_kept, *(i.time for i in planned if i is not None)])
    if write.time < kept:
        why = f"it lies beyond the lookup window of cleaning, which begins at {kept}"
        raise UndoError(what, write.time, why, f"Take {kept} or a later write.")
    completed = moment_of(snapshot, write)
    if pending and completed.unseen:
        raise UndoError(what, write.time, f"the clean at {pending[0].time} is under way", "Wait for its end, or run t.clean().")
    try:
        snapshot.at(write.time)
        if completed.unseen:  # cleaning, which goes by request, left none of these out
            refuse_lost(completed, completed.of_now)
    except TableError as error:
        raise UndoError(what, write.time, error.message, "Take a later write; t.history() lists them.") from error


def refuse_logs(snapshot: Snapshot, write: Instant, what: str) -> None:
    """Refuse a moment with log files for a table that is copy-on-write since: its writers would leave their rows out.

    Args:
        snapshot: The table as it is.
        write: On its timeline, with all its files.
        what: Is done to it, for the error.

    Raises:
        UndoError: With what to do first.
    """
    if snapshot.properties.type is TableType.MERGE_ON_READ:
        return
    slices = snapshot.at(write.time).slices()
    if pc.any(pc.greater(pc.list_value_length(slices["log_files"]), 0)).as_py():
        why = "the table had log files then, and is copy-on-write now"
        raise UndoError(what, write.time, why, "Make it merge-on-read first: t.change_type('MERGE_ON_READ').")


def moment_of(snapshot: Snapshot, write: Instant) -> Snapshot:
    """The table as it was when a write had just been completed, with what had begun later and was completed before."""
    done = [i for i in snapshot.timeline.writes if i.completion_order <= write.completion_order]
    last = max(i.time for i in done)
    known = {i.time for i in done}
    late = [i.time for i in snapshot.timeline.writes if i.time <= last and i.time not in known]
    return snapshot.at(last, check=False, unseen=late)


def _files_shown(snapshot: Snapshot, write: Instant) -> dict[str, tuple[str, ...]]:
    """Files that the table needs as of a write, by its requested time as readers ask, and by its completion time."""
    found: dict[str, set[str]] = {}
    for moment in (snapshot.at(write.time, check=False), moment_of(snapshot, write)):
        slices = moment.slices()
        columns: Sequence[str] = ("partition_path", "base_file", "log_files")
        for partition, base, logs in zip(*(slices[c].to_pylist() for c in columns), strict=True):
            found.setdefault(partition, set()).update(logs, [base] if base else ())
    return {partition: tuple(sorted(names)) for partition, names in sorted(found.items())}
