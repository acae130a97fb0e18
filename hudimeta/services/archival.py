"""Archival: old instants leave the active timeline for its history, so that listing the timeline stays cheap.

An instant may go when nobody will ask its files any more. What keeps it, and everything after it: one of the newest
`hoodie.keep.min.commits`, by request or by completion; anything pending, with what was completed since it began; a savepoint
(`hoodie.archive.beyond.savepoint`: only the savepointed write itself);
the last compaction of the metadata table, since younger log files of it are found through the timeline; delta commits that the
next compaction counts; file groups that it replaced and that no clean has deleted yet, because readers learn only from the
active timeline that they are gone. Nothing happens before there are more than `hoodie.keep.max.commits`. Both bounds are raised
to what cleaning looks at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.commit.session import WriteSession
from hudimeta.config import options as keys
from hudimeta.errors import UndoError
from hudimeta.metering import meter_of
from hudimeta.reports import Report
from hudimeta.services import clean
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.table.slices import place_files
from hudimeta.timeline import Timeline
from hudimeta.timeline.archiving import leaving, move_to_history
from hudimeta.types import Action, Instant, TableType

__all__ = ["ArchivalPlan", "ArchivalReport", "archive", "archive_overtaken", "is_due", "plan"]


@dataclass(frozen=True, repr=False)
class ArchivalPlan(Report):
    """What leaves the active timeline; prints as one line.

    Attributes:
        instants: Completed instants to archive, oldest first.
        stopped_by: Why the next one stays.
    """

    instants: tuple[Instant, ...] = ()
    stopped_by: str = ""

    def __str__(self) -> str:
        if not self.instants:
            return f"nothing to archive: {self.stopped_by}"
        first, last = self.instants[0].time, self.instants[-1].time
        return f"archive {len(self.instants):,} instants from {first} to {last}; what follows stays: {self.stopped_by}"


@dataclass(frozen=True, repr=False)
class ArchivalReport(Report):
    """What an archival did: how many instants left the active timeline, by action."""

    plan: ArchivalPlan
    by_action: Mapping[str, int] = field(default_factory=dict)

    @property
    def archived(self) -> int:
        """How many instants left the active timeline."""
        return len(self.plan.instants)

    def __str__(self) -> str:
        if not self.archived:
            return str(self.plan)
        return f"archived {self.archived:,} instants: " + ", ".join(f"{n:,} {a}" for a, n in sorted(self.by_action.items()))


@dataclass(frozen=True, order=True)
class _Limit:
    """An instant that stays, with all after it, and why."""

    time: str
    reason: str


def is_due(session: WriteSession, timeline: Timeline) -> bool:
    """True when there are more completed writes than `hoodie.keep.max.commits`."""
    return len(timeline.writes) > _bounds(session, timeline)[1]


def plan(session: WriteSession, snapshot: Snapshot) -> ArchivalPlan:
    """Find the instants that nobody will ask any more."""
    timeline = snapshot.timeline
    if not is_due(session, timeline):
        return ArchivalPlan(
            (), f"no more than {_bounds(session, timeline)[1]} writes (hoodie.keep.max.commits) are on the timeline"
        )
    limit = min(_limits(session, snapshot))
    limit = min([limit, *_uncleaned(snapshot, limit)])
    return ArchivalPlan(tuple(leaving(timeline, limit.time)), limit.reason)


def _bounds(session: WriteSession, timeline: Timeline) -> tuple[int, int]:
    """How many writes stay, and above how many an archival begins.

    Both are raised to what automatic cleaning looks at, as Apache Hudi raises them: with fewer, it would never find that
    anything may go, and no file would ever be deleted.
    """
    least = max(1, session.options.get(keys.ARCHIVE_MIN))
    most = max(least, session.options.get(keys.ARCHIVE_MAX))
    raised = max(least, clean.looked_at(session, timeline))
    return raised, most + raised - least


def _limits(session: WriteSession, snapshot: Snapshot) -> Iterator[_Limit]:
    timeline = snapshot.timeline
    least = min(_bounds(session, timeline)[0], len(timeline.writes))
    asked = session.options.get(keys.ARCHIVE_MIN)
    why = "hoodie.keep.min.commits" if least <= max(1, asked) else "cleaning looks at them, more than hoodie.keep.min.commits"
    # A write that took long began before others that it outlasted: incremental reads have yet to come to it.
    oldest = min([*timeline.by_completion[-least:], timeline.writes[-least]], key=lambda i: i.time)
    yield _Limit(oldest.time, f"the newest {least} writes ({why}) stay")
    for instant in timeline.pending[:1]:
        # Who is pending compares itself with what has been completed since it began, whenever that began.
        since = (i.time for i in timeline.writes_between(instant.time))
        yield _Limit(min([instant.time, *since]), f"{instant.action.value} {instant.time} is pending")
    if timeline.savepoints and not session.options.get(keys.ARCHIVE_BEYOND_SAVEPOINT):
        first = min(timeline.savepoints)
        yield _Limit(first, f"{first} is savepointed")
        for write in (i for i in timeline.writes if i.time in timeline.savepoints):
            # A restore takes back what was completed since, whenever that began.
            since = (i.time for i in timeline.writes_between(write.completed_at))
            yield _Limit(min([write.time, *since]), f"{write.time} is savepointed")
    if session.properties.has_metadata_table and snapshot.metadata is not None:
        compactions = [i.time for i in snapshot.metadata.timeline.writes if i.action is Action.COMMIT]
        yield _Limit(max(compactions, default=""), "the metadata table's last compaction stands there")
    if session.properties.type is TableType.MERGE_ON_READ:
        yield from _needed_to_compact(session, timeline)


def _needed_to_compact(session: WriteSession, timeline: Timeline) -> Iterator[_Limit]:
    """The delta commits by which the next compaction tells whether it is due."""
    wanted = max(1, session.options.get(keys.COMPACT_AFTER))
    last = max((i.time for i in timeline.writes if i.action is Action.COMMIT), default="")
    since = [i.time for i in timeline.writes if i.action is Action.DELTA_COMMIT and i.completed_at > last]
    if len(since) > wanted:
        yield _Limit(since[-wanted], "the next compaction counts the delta commits after it")
    elif last:
        yield _Limit(last, "it is the last compaction")


def _uncleaned(snapshot: Snapshot, limit: _Limit) -> Iterator[_Limit]:
    """The first replacing instant before a limit whose replaced files are still there."""
    replaced = snapshot.timeline.replaced_file_groups()
    replaced = replaced.filter(pc.less(replaced["instant"], limit.time)) if len(replaced) else replaced
    left = _still_there(snapshot, replaced)
    if left:
        yield _Limit(min(left), "the file groups that it replaced are not cleaned yet")


def _still_there(snapshot: Snapshot, replaced: pa.Table) -> list[str]:
    """The instants of file groups, as of `Timeline.replaced_file_groups`, that have files."""
    if not len(replaced):
        return []
    files = place_files(snapshot.files(replaced["partition_path"].unique().to_pylist()), snapshot.visibility)
    there = set(zip(files["partition_path"].to_pylist(), files["file_id"].to_pylist(), strict=True))
    columns = (replaced[c].to_pylist() for c in ("instant", "partition_path", "file_id"))
    return [time for time, partition, file_id in zip(*columns, strict=True) if (partition, file_id) in there]


def archive_overtaken(session: WriteSession, timeline: Timeline, time: str) -> ArchivalReport | None:
    """Archive a savepointed write where later writes were archived before it (`hoodie.archive.beyond.savepoint`).

    Without its savepoint it would be the oldest write of the active timeline, and files of the archived ones, which are not
    older than it, would not count as committed: their rows would be gone. An archival that died may have left an older write:
    then it stays, since gone from between active writes its own files would not count. The caller holds the table lock.

    Args:
        session: The table.
        timeline: As listed under the lock.
        time: Of the write.

    Returns:
        What was archived; None where no later write is gone, or an older one is active.

    Raises:
        UndoError: Archived, it would show file groups again that it replaced.
    """
    writes = tuple(i for i in timeline.completed if i.time == time and i.action.writes_data)
    if not writes or time >= (timeline.first_active_write or "") or not timeline.archived_writes(time):
        return None
    replaced = timeline.replaced_file_groups()
    if len(replaced) and _still_there(session.snapshot_now(), replaced.filter(pc.equal(replaced["instant"], time))):
        why = "later writes are archived, and the file groups that it replaced are not cleaned yet"
        raise UndoError("giving up the savepoint", time, why, "Call t.clean() first.")
    return _archived(session, timeline, ArchivalPlan(writes, "only the write of a savepoint that is given up is archived"))


def archive(session: WriteSession) -> ArchivalReport:
    """Plan and run an archival, under the table lock."""
    with session.lock.held():
        snapshot = session.snapshot_now()
        report = _archived(session, snapshot.timeline, plan(session, snapshot))
    meter_of(session.storage).reported(report, "archive")
    return report


def _archived(session: WriteSession, timeline: Timeline, the_plan: ArchivalPlan) -> ArchivalReport:
    """Run a plan. The caller holds the table lock."""
    if the_plan.instants:
        session.coordinator.recovery.tidy(timeline, the_plan.instants)
    move_to_history(session.fenced, timeline, the_plan.instants)
    by_action: dict[str, int] = {}
    for instant in the_plan.instants:
        by_action[instant.action.value] = by_action.get(instant.action.value, 0) + 1
    return ArchivalReport(the_plan, by_action)
