"""Delta commits of the metadata table that are nobody's: who wrote them died, or was taken for dead.

The write of one may have been rolled back while its writer stood still, which then went on.

A writer that is stopped between looking at its lock and a request, for longer than the lock lasts, may leave one file behind
what took its write back: a requested or inflight file, or a completed one without the inflight file that the rollback removed.
None of them counts. The writer removes it when it notices; if it died there, the next one does.

Apache Hudi lays indexes out within writes, at instants of their own, which it leaves pending when it is killed there.
"""

from __future__ import annotations

from hudimeta.timeline import Timeline
from hudimeta.types import Action, Instant

__all__ = ["half_laid_out", "strays"]

_FIRST_OF_WRITES = "0001"
"""Instants before lay the metadata table out."""


def strays(timeline: Timeline, data: Timeline) -> tuple[Instant, ...]:
    """Such delta commits, by what both timelines say; no request.

    Args:
        timeline: Of the metadata table.
        data: Of its data table, listed before.
    """
    first = data.first_active_write
    if first is None:
        return ()
    since = max(first, _FIRST_OF_WRITES)
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
    return tuple(i for i in timeline.pending if i.time < _FIRST_OF_WRITES and i.action is Action.DELTA_COMMIT)
