"""The archived commits of a range, and whether the history that tells them is still there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudimeta.errors import TableError
from hudimeta.timeline.naming import LAYOUT_V1

if TYPE_CHECKING:
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.types import Instant

__all__ = ["archived_writes", "first_unarchived"]


def first_unarchived(snapshot: Snapshot) -> str | None:
    """The completion time from which a range has no archived commit; None where every active write is savepointed.

    Archiving steps over savepointed writes: between one of them and the next write there may be archived ones.
    """
    unsaved = (i for i in snapshot.timeline.writes if i.time not in snapshot.timeline.savepoints)
    return min((i.completed_at for i in unsaved), default=None)


def archived_writes(snapshot: Snapshot, after: str) -> tuple[Instant, ...]:
    """Archived writes that completed after a time, by requested time; the history is read where there may be any.

    Args:
        snapshot: The table of now.
        after: Excluded.

    Raises:
        TableError: The history is gone, so that a range would be short and nobody could tell.
    """
    oldest, timeline = first_unarchived(snapshot), snapshot.timeline
    if oldest is not None and after >= oldest:
        return ()
    archived = timeline.history.instants()
    if not archived and timeline.layout != LAYOUT_V1:
        _refuse_without_history(snapshot)
    known = {i.time for i in timeline.writes}
    return tuple(i for i in archived if i.action.writes_data and i.time not in known and i.completed_at > after)


def _refuse_without_history(snapshot: Snapshot) -> None:
    """Refuse a table that has no history though it shows rows of writes before the active timeline.

    The oldest active write says what it was written upon, and file slices of before may have been left alone since.
    """
    first = snapshot.timeline.first_active_write or ""
    known = {i.time for i in snapshot.timeline.writes}
    for find in (_written_upon, _shown):
        older = min((time for time in find(snapshot) if time < first and time not in known), default=None)
        if older is not None:
            since = first_unarchived(snapshot) or "the newest commit"
            raise TableError(
                f"the archived timeline is gone: {snapshot.timeline.history.folder} is empty, but the table rests on the write "
                f"{older}, and the oldest of its active timeline is {first}",
                f"Bring that folder back from a copy of the table, or begin at {since} or later.",
            )


def _written_upon(snapshot: Snapshot) -> list[str]:
    timeline = snapshot.timeline
    oldest = [i for i in timeline.writes if i.time == timeline.first_active_write]
    stats = (s for i in oldest for part in timeline.metadata(i)["partitionToWriteStats"].values() for s in part)
    return [s["prevCommit"] for s in stats if (s["prevCommit"] or "").isdigit()]


def _shown(snapshot: Snapshot) -> list[str]:
    import pyarrow.compute as pc

    times: list[str] = pc.unique(snapshot.slices()["base_instant"]).to_pylist()
    return times
