"""Delta commits of the metadata table that are nobody's: who wrote them died, or was taken for dead.

The write of one may have been rolled back while its writer stood still, which then went on.

A writer that is stopped between looking at its lock and a request, for longer than the lock lasts, may leave one file behind
what took its write back: a requested or inflight file, or a completed one without the inflight file that the rollback removed.
None of them counts. The writer removes it when it notices; if it died there, the next one does.

Apache Hudi lays indexes out within writes, at instants of their own, which it leaves pending when it is killed there.

The other way round a write of the table without a delta commit is refused: the metadata table lacks its files.
"""

from __future__ import annotations

from hudimeta.errors import MetadataOutOfSync
from hudimeta.metadata import files
from hudimeta.metadata.beginnings import INIT_BELOW
from hudimeta.timeline import Timeline
from hudimeta.types import Action, Instant

__all__ = ["check_in_step", "half_laid_out", "strays"]


def strays(timeline: Timeline, data: Timeline) -> tuple[Instant, ...]:
    """Such delta commits, by what both timelines say; no request.

    Args:
        timeline: Of the metadata table.
        data: Of its data table, listed before.
    """
    first = data.first_active_write
    if first is None:
        return ()
    since = max(first, INIT_BELOW)
    known = {i.time for i in data.instants}
    alone = [i for i in timeline.instants if i.time > since and i.action is Action.DELTA_COMMIT and i.time not in known]
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
