"""Delta commits of the metadata table that are nobody's: who wrote them died, or was taken for dead.

The write of one may have been rolled back while its writer stood still, which then went on.

A writer that is stopped between looking at its lock and a request, for longer than the lock lasts, may leave one file behind
what took its write back: a requested or inflight file, or a completed one without the inflight file that the rollback removed.
None of them counts. The writer removes it when it notices; if it died there, the next one does.

Apache Hudi rolls a dead write back, and leaves its delta commit to its next write of the metadata table, which may not come.

It lays indexes out within writes, at instants of their own, which it leaves pending when it is killed there.

The other way round a write of the table without a delta commit is refused: the metadata table lacks its files.

Whole indexes are nobody's, too. Apache Hudi names one in the table's properties as soon as its first files are complete in the
metadata table. Only then it waits for the writes that ran meanwhile, adds what they changed, and completes its `indexing`
instant. Until that is done the index may lack rows, and when the process dies it lacks them for good. So it is none: no reader
asks it. What the plan of the action names may have come by another way, such as a write of Apache Hudi whose options ask for
it: that is complete. What the plan's own run began bears its instant in the metadata table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hudimeta.errors import MetadataOutOfSync, NotFound
from hudimeta.metadata import files
from hudimeta.metadata.beginnings import INIT_BELOW
from hudimeta.storage import Storage
from hudimeta.timeline import Timeline
from hudimeta.types import Action, Instant

__all__ = ["MAKER_KEY", "bears", "check_in_step", "half_laid_out", "is_ours", "partitions_of", "strays", "unfinished", "waits"]

MAKER_KEY = "hudimeta.made.by"
"""Entry of the extraMetadata of a plan of ours: only those are ours to take back."""

_BASE_FILE = ".hfile"


def strays(timeline: Timeline, data: Timeline) -> tuple[Instant, ...]:
    """Such delta commits, by what both timelines say; no request.

    Args:
        timeline: Of the metadata table.
        data: Of its data table, listed before.
    """
    first = data.first_active_write
    if first is None:
        return ()
    # Of a completed one the write may be archived; of a pending one it cannot be, since it is completed after it.
    since = {True: max(first, INIT_BELOW), False: INIT_BELOW}
    known = {i.time for i in data.instants}
    deltas = (i for i in timeline.instants if i.action is Action.DELTA_COMMIT)
    alone = [i for i in deltas if i.time > since[i.is_completed] and i.time not in known]
    return tuple(i for i in alone if not (i.is_completed and any(n.endswith("inflight") for n in timeline.files_of(i))))


def half_laid_out(timeline: Timeline, data: Timeline) -> tuple[Instant, ...]:
    """Delta commits that lay out indexes and have no writer, for whoever holds the table lock; no request.

    Args:
        timeline: Of the metadata table.
        data: Of its data table. While an index is built beside writers, a pending action of it says so.
    """
    if any(i.action is Action.INDEXING for i in data.pending):
        return ()
    return tuple(i for i in timeline.pending if i.time < INIT_BELOW and i.action is Action.DELTA_COMMIT)


def check_in_step(data: Timeline, metadata: Timeline) -> None:
    """Refuse a metadata table that lacks a completed write, so that its files are missing.

    What it was laid out with is none, nor is a write whose delta commit is archived. Of the delta commits that are active
    the first to be completed came after the former, the first to be requested after the latter. Neither alone would do:
    what was planned before the layout and run after it bears an instant from before. Where there is no delta commit yet, as in
    a copy from the day when the table was made, each write must be known that was completed after the layout was.
    """
    known = {i.time for i in metadata.completed}
    deltas = [i for i in metadata.writes if i.time > INIT_BELOW]
    requested = min((i.time for i in deltas), default=INIT_BELOW)
    completed = min((i.completed_at for i in deltas), default=None) or _laid_out(metadata)
    if completed is None:
        return
    missing = [i.time for i in data.writes if i.time > requested and i.completed_at > completed and i.time not in known]
    if missing:
        raise MetadataOutOfSync(files.PARTITION, f"the files of instant {missing[0]}")


def _laid_out(metadata: Timeline) -> str | None:
    """When the first partition was laid out; None where no completion times are known (version 6)."""
    return min((i.completion for i in metadata.writes if i.completion), default=None)


def waits(record: Mapping[str, Any]) -> bool:
    """True for a plan that waits for whoever runs it."""
    return bool(record) and not is_ours(record)


def is_ours(record: Mapping[str, Any]) -> bool:
    """True for an action of ours that was announced and run in one go, under the table lock."""
    return any(MAKER_KEY in (info.get("extraMetadata") or {}) for info in record.get("indexPartitionInfos") or ())


def partitions_of(record: Mapping[str, Any]) -> list[str]:
    """The metadata partitions that a plan, or a completed action, names."""
    return [info["metadataPartitionPath"] for info in record.get("indexPartitionInfos") or ()]


def unfinished(storage: Storage, named: Iterable[str], data: Timeline, own: Timeline) -> dict[str, str]:
    """Indexes that were begun and not finished: metadata partition -> instant of the pending action.

    Costs nothing unless an `indexing` action is pending.

    Args:
        storage: Rooted at the metadata table.
        named: Metadata partitions that the table's properties name.
        data: Timeline of the data table.
        own: Timeline of the metadata table.
    """
    there, found = frozenset(named), dict[str, str]()
    for instant, record in data.plans(i for i in data.pending if i.action is Action.INDEXING):
        begun = [name for name in partitions_of(record) if name in there] if waits(record) else []
        if begun and bears(own, instant.time):
            found |= dict.fromkeys(begun, instant.time)
        else:
            # Whose build was taken back while it stood still may have named the index after that.
            found |= {name: instant.time for name in begun if not _has_base_file(storage, name)}
    return found


def bears(own: Timeline, instant: str) -> bool:
    """Whether the metadata table has a delta commit of the action: of its instant, to which version 6 adds a suffix."""
    return any(i.time.startswith(instant) for i in own.instants) or bool(own.archived_completions([instant]))


def _has_base_file(storage: Storage, partition: str) -> bool:
    try:
        return any(entry.name.endswith(_BASE_FILE) for entry in storage.list(partition))
    except NotFound:
        return False
