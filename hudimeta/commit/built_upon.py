"""A dead write on which later ones build was completed: its completed file is lost. A rollback would make that permanent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudimeta.errors import CorruptFileError
from hudimeta.timeline import Timeline
from hudimeta.types import Action, Instant

__all__ = ["refuse_built_upon"]

_HINT = (
    "Restore the completed file of that instant from a copy: a rollback would delete its rows. Where there is no copy, "
    "remove the other files of the instant from the timeline: its rows are lost then."
)


def refuse_built_upon(timeline: Timeline, instant: Instant) -> None:
    """Make sure that no completed write has changed files of a write that seems to be dead, before that is rolled back.

    Reads the commits that were completed since it began.

    Args:
        timeline: As listed under the lock.
        instant: Pending; rollbacks are finished whatever was built, since they have begun to delete. What is completed at the
            same instant has the files that bear it: two writers chose one, and this one lost.

    Raises:
        CorruptFileError: A later write builds on it.
    """
    if instant.action is Action.ROLLBACK or any(write.time == instant.time for write in timeline.writes):
        return
    later = [write for write in timeline.writes if write.completed_at > instant.time]
    timeline.prefetch(later)
    for write in later:
        for stats in (timeline.metadata(write).get("partitionToWriteStats") or {}).values():
            if any(_builds_on(stat, instant.time) for stat in stats):
                found = f"none, though {write.action.value} {write.time} builds on its files"
                raise CorruptFileError(timeline.path_of(instant), 0, "a completed file of the instant beside it", found, _HINT)


def _builds_on(stat: Mapping[str, Any], instant: str) -> bool:
    """A base file that took another's place, or a log file that lies on top of others: its stats name these."""
    if stat.get("prevCommit") == instant:
        return True
    return any(f"_{instant}." in name for name in stat.get("logFiles") or ())
