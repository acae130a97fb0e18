"""A pending write on whose files a completed one builds: its completed file is lost, and its rows are missing or doubled.

Writes ask all commits before they roll such a write back (`commit/built_upon.py`). A read asks those that it has read anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudimeta.errors import CorruptFileError
from hudimeta.types import Action

if TYPE_CHECKING:
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.timeline import Timeline
    from hudimeta.types import Instant

__all__ = ["refuse_lost_completions"]

_WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.CLUSTERING)
"""Log files of version 6 bear the instant of a compaction that is only planned."""


def refuse_lost_completions(snapshot: Snapshot) -> None:
    """Look for them where something is pending that began before the newest write. No request, but one where one is found.

    Raises:
        CorruptFileError: There is one.
    """
    found = _built_upon(snapshot.timeline, snapshot.latest_write)
    if found is None or _built_upon(snapshot.refreshed().timeline, snapshot.latest_write) is None:
        return  # a listing that others write beside may have the later file and not the earlier one
    lost, later = found
    raise CorruptFileError(
        snapshot.timeline.path_of(lost),
        0,
        "a completed file of the instant beside it",
        f"none, though {later.action.value} {later.time} builds on its files",
        "Restore the completed file of that instant from a copy. Where there is no copy, remove the other files of the instant "
        "from the timeline: its rows are lost then.",
    )


def _built_upon(timeline: Timeline, latest: str | None) -> tuple[Instant, Instant] | None:
    """A pending write, and one of the completed writes up to `latest` that have been read, which builds on it."""
    done = {write.time for write in timeline.writes}
    pending = {i.time: i for i in timeline.pending_writes if i.action in _WRITES and i.time not in done}
    undoing = any(i.action in (Action.ROLLBACK, Action.RESTORE) for i in timeline.pending)
    if latest is None or undoing or not pending or min(pending) > latest:
        return None
    for write in timeline.writes:
        if min(pending) < write.time <= latest and timeline.is_read(write):
            for stats in (timeline.metadata(write).get("partitionToWriteStats") or {}).values():
                for stat in stats:
                    if stat.get("prevCommit") in pending:
                        return pending[stat["prevCommit"]], write
    return None
