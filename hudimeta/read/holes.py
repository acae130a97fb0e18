"""Holes in the timeline: writes that are still going on, though later ones are completed.

Ranges and positions of a table of version 6 are requested times. Whoever goes on from the newest commit would never get the
rows of such a write. Moments are requested times in every version: one after a hole gets the rows of that write later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hudimeta.config.options import HOLES, INCREMENTAL_END
from hudimeta.errors import TableError
from hudimeta.timeline.naming import LAYOUT_V1
from hudimeta.types import Action, Instant

if TYPE_CHECKING:
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.timeline import Timeline

__all__ = ["end_before_holes", "first_hole", "holes_before_moment"]

_SERVICES = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)


def first_hole(timeline: Timeline) -> str | None:
    """Requested time of the first write of rows that is still going on, or died; None where ranges are of completion times."""
    return None if timeline.layout != LAYOUT_V1 else min(_holes(timeline), default=None)


def holes_before_moment(snapshot: Snapshot) -> Iterator[str]:
    """Remarks on a moment that is not over, as writes that were requested by then may still be completed; often none.

    Apache Hudi refuses such a moment. Here it is read: what is completed is what there is, as in a read of now.
    """
    moment = snapshot.as_of
    if moment is None:
        return
    for hole in sorted(time for time in _holes(snapshot.timeline) if time <= moment):
        yield f"as of {moment}: the write {hole} is not completed; once it is, this moment has its rows too"


def end_before_holes(snapshot: Snapshot, begin: str, end: str | None) -> str | None:
    """The end of a range, or the hole in it where `hoodie.read.timeline.holes.resolution.policy` is BLOCK.

    Args:
        snapshot: The table of now.
        begin: Excluded.
        end: Included; None means now.

    Raises:
        TableError: There is a hole, and the policy is FAIL, as in Apache Hudi by default.
    """
    hole = first_hole(snapshot.timeline)
    if hole is None or hole <= begin or not snapshot.timeline.writes_between(hole, end):
        return end
    if snapshot.options.get(HOLES) == "BLOCK":
        return hole
    raise TableError(
        f"the write {hole} is not completed, and later ones are: rows of it would be missing from the range {begin} to "
        f"{end or 'now'}, and from every range that begins where this one ends",
        f"Wait until it is completed or rolled back, let the range end before it with {INCREMENTAL_END.key}, or set "
        f"{HOLES.key}=BLOCK, which does so.",
    )


def _holes(timeline: Timeline) -> Iterator[str]:
    return (i.time for i in timeline.pending_writes if not _only_moves_rows(timeline, i))


def _only_moves_rows(timeline: Timeline, pending: Instant) -> bool:
    """Whether a pending write is a service, which brings no rows of its own."""
    if (pending.pending_action or pending.action) in _SERVICES:
        return True
    if pending.action is not Action.REPLACE_COMMIT:
        return False
    # What was taken back meanwhile brings no rows either.
    return all(record.get("clusteringPlan") for _, record in timeline.plans([pending]))
