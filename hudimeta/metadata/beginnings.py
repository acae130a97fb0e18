"""Delta commits of the metadata table before all time, which lay its partitions out.

Each partition takes the first that is free: `00000000000000000` for the listing of files, the next one for the index after it.
Once these are archived, Apache Hudi lays a later index out at `00000000000000000` again. By requested times that one comes
before the archived ones, which then look as if they were never completed. A file group without a record since has no other
file.
"""

from __future__ import annotations

from hudimeta.timeline import Timeline

__all__ = ["INIT_BELOW", "is_archived_beginning"]

INIT_BELOW = "0001"
"""Instants before this lay partitions out."""


def is_archived_beginning(timeline: Timeline, instant: str) -> bool:
    """Whether an instant that is in no active timeline laid a partition out and was archived; asks the history only about such.

    Args:
        timeline: Of the metadata table.
        instant: A requested time.
    """
    if instant >= INIT_BELOW or any(pending.time == instant for pending in timeline.pending):
        return False
    return instant in timeline.archived_completions([instant])
