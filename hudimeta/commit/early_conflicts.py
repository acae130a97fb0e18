"""Conflicts that are seen before a file is written: another writer at work has marked the same file group.

Of two writers at one file group the one with the later instant gives way, as in Apache Hudi, so that one of them goes on. Not
counted are markers of instants that are not pending or whose writer is dead, and those of compactions and clusterings: what
they rewrite, writers may add to. A look that misses somebody costs nothing but time: what counts is settled at publication.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hudimeta.commit.concurrency import EarlyDetection
from hudimeta.commit.conflicts import check_conflicts
from hudimeta.commit.liveness import is_alive
from hudimeta.commit.locks.protocol import LockTiming, MachineGuard
from hudimeta.commit.markers import MARKERS, marked_file_ids
from hudimeta.commit.publication import OpenWrite
from hudimeta.engine import machine
from hudimeta.errors import CommitConflict
from hudimeta.storage import Storage, join
from hudimeta.table.properties import TableProperties
from hudimeta.timeline import Timeline
from hudimeta.timeline.naming import pending_name
from hudimeta.types import Action, FileGroupId, Instant, State

__all__ = ["EarlyLook", "give_way_to_writers"]

_SERVICES = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)
_EARLY = "It stopped before it wrote its file; run the write again when that one is done."


class _LastLook:
    """When this process looked last, on behalf of which write."""

    def __init__(self) -> None:
        self._instant, self._at = "", 0.0
        self._held = threading.Lock()

    def is_due(self, early: EarlyDetection, instant: str) -> bool:
        """True when it is time for a write to look; then it is taken to do so."""
        now = machine.monotonic()
        with self._held:
            if self._instant != instant:
                self._instant, self._at = instant, now - early.period_s + early.delay_s
            due = not 0 <= now - self._at < early.period_s
            if due:
                self._at = now
            return due


_last_look = _LastLook()


@dataclass(frozen=True)
class EarlyLook:
    """Looks for others on behalf of one write, wherever its files are written.

    Attributes:
        storage: Rooted at the table.
        properties: Of the table.
        early: When to look, and at what.
        write: The write.
    """

    storage: Storage
    properties: TableProperties
    early: EarlyDetection
    write: OpenWrite

    def check(self, group: FileGroupId) -> None:
        """Look whether somebody else is at a file group; call it before its file is written.

        One request where nobody else writes: the list of writes that have markers.

        Raises:
            CommitConflict: Somebody is, or was and has published.
        """
        if not _last_look.is_due(self.early, self.write.instant):
            return
        operation, instant = self.write.operation.value, self.write.instant
        entries = self.storage.list(MARKERS)
        others = [e.name for e in entries if e.is_folder and e.name < instant and e.name not in self.write.seen]
        marked = [other for other in others if group.file_id in marked_file_ids(self.storage, other, group.partition_path)]
        if not marked and not self.early.checks_commits:
            return
        timeline = self.properties.load_timeline(self.storage)
        for winner in _at_work(self.storage, timeline, marked, alone=False, patience_s=self.early.patience_s):
            own = [(group.partition_path, group.file_id)]
            raise CommitConflict(operation, own, winner.time, _EARLY, did="is changing")
        if self.early.checks_commits:
            check_conflicts(timeline, self.write.seen, operation, [group])


def give_way_to_writers(
    storage: Storage,
    timeline: Timeline,
    operation: str,
    groups: Iterable[FileGroupId],
    *,
    alone: bool,
    patience_s: float = 0.0,
) -> None:
    """Refuse a service over file groups that a write which is not finished has marked.

    Args:
        storage: Rooted at the table.
        timeline: As it is now.
        operation: For the error.
        groups: File groups that the service rewrites.
        alone: The table lock is held.
        patience_s: See `is_alive`.

    Raises:
        CommitConflict: There is such a write.
    """
    mine = sorted((group.partition_path, group.file_id) for group in groups)
    partitions = sorted({partition for partition, _ in mine})
    names = [entry.name for entry in storage.list(MARKERS) if entry.is_folder]
    for writer in _at_work(storage, timeline, names, alone=alone, patience_s=patience_s):
        marked = {(p, file_id) for p in partitions for file_id in marked_file_ids(storage, writer.time, p)}
        both = [pair for pair in mine if pair in marked]
        if both:
            hint = "Services give way to writers here: run the service again when that write is done."
            raise CommitConflict(operation, both, writer.time, hint, did="is changing")


def _at_work(
    storage: Storage, timeline: Timeline, names: Iterable[str], *, alone: bool, patience_s: float
) -> Iterator[Instant]:
    """Writers, not services, of some instants that are pending and alive."""
    wanted = set(names)
    pending = [i for i in timeline.pending if i.time in wanted and (i.pending_action or i.action) not in _SERVICES]
    if not pending:
        return
    timing = LockTiming()
    for instant in pending:
        action = instant.pending_action or instant.action
        requested = join(timeline.folder, pending_name(instant.time, action, State.REQUESTED))
        # Nobody on this machine may begin an instant, or roll one back, while its writer is looked for.
        with contextlib.nullcontext() if alone else MachineGuard(storage, timing).entered(timing.deadline()):
            lives = is_alive(storage, instant.time, requested, patience_s=patience_s)
        if lives:
            yield instant
