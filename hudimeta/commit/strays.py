"""Files that have a marker of a write and are no part of it: what failed, repeated and late attempts at its tasks left.

Tasks write into the metadata table too. Those files have markers of their own, in its folder: of kind `APPEND` for a log that
is one attempt's alone, of kind `CREATE` for the empty log that begins a file group, which all attempts write alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from hudimeta.commit.markers import (
    MARKERS,
    Marker,
    MarkerKind,
    files_of_write,
    has_direct_markers,
    read_markers,
    refuse_files_of_others,
    remove_markers,
    take_markers,
)
from hudimeta.errors import CommitError
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.metadata.strays import half_laid_out
from hudimeta.metadata.writer import WRITE_TOKEN
from hudimeta.storage import Storage
from hudimeta.storage.at_once import delete_files
from hudimeta.timeline import Timeline
from hudimeta.timeline.naming import pending_name
from hudimeta.types import Action, State

if TYPE_CHECKING:
    from hudimeta.commit.publication import OpenWrite

__all__ = [
    "delete_late_files",
    "delete_marked_metadata",
    "delete_metadata_strays",
    "delete_strays",
    "delete_unnamed",
    "metadata_marker",
    "refuse_when_over",
    "remove_metadata_markers",
    "sweep_metadata",
]


_LOOKS = 10
"""A task marks a file again once, so that this many looks for new markers are never needed."""


def delete_strays(storage: Storage, instant: str, files: Sequence[WrittenFile]) -> None:
    """Delete what is marked for a write and is not among its files; before it is published."""
    delete_unnamed(storage, instant, {path for file in files for path in file.paths})


def delete_unnamed(storage: Storage, instant: str, kept: Collection[str]) -> None:
    """Delete what is marked for a write and is not among some paths."""
    delete_files(storage, [path for path in files_of_write(storage, instant) or () if path not in kept])


def delete_late_files(storage: Storage, instant: str, kept: Collection[str] = ()) -> list[str]:
    """Delete what is marked for a write that is over, and take the markers; for writes whose tasks may still be at work.

    Args:
        storage: Rooted at the table.
        instant: Of the write.
        kept: Paths that belong to the table.

    Returns:
        The paths of files that were there.

    Raises:
        CorruptFileError: A marker that names anything but a data file of that write; nothing was deleted.
    """
    return _delete_marked(storage, instant, lambda paths: [p for p in refuse_files_of_others(paths, instant) if p not in kept])


def refuse_when_over(
    storage: Storage, timeline_folder: str, write: OpenWrite, paths: Sequence[str], shared: Sequence[str] = ()
) -> None:
    """Delete files of a task whose write is over: no rollback and no commit can know of them any more.

    Spark takes a write back while tasks still run, and publishes while a second attempt at a task still runs. Whatever was
    finished before that moment is found by its marker.

    Args:
        storage: Rooted at the table.
        timeline_folder: Where its instants are.
        write: Whose task it is.
        paths: What this attempt at a task wrote.
        shared: What every attempt writes alike: once the write is published, it belongs to the table.

    Raises:
        CommitError: The write is over; the files are gone.
    """
    if not paths and not shared:
        return
    names = {entry.name for entry in storage.list(timeline_folder)}
    done = any(name.startswith(f"{write.instant}_") and name.endswith(f".{write.action.completed_as.value}") for name in names)
    if pending_name(write.instant, write.action, State.INFLIGHT) in names and not done:
        return
    delete_files(storage, paths if done else [*paths, *shared])
    why = "was published without it" if done else "was taken back"
    raise CommitError(f"instant {write.instant} {why} while a task wrote for it", "Run the write again if it was taken back.")


def _delete_marked(storage: Storage, instant: str, chosen: Callable[[list[str]], list[str]]) -> list[str]:
    """Delete those of the marked files that are chosen, and take the markers, until there is no new one."""
    deleted: dict[str, None] = {}
    for _ in range(_LOOKS):
        markers = read_markers(storage, instant) or []
        paths = chosen([marker.path for marker in markers])
        deleted |= dict.fromkeys(delete_files(storage, paths))
        if not markers or not has_direct_markers(storage, instant):
            break
        take_markers(storage, instant, markers)
        deleted |= dict.fromkeys(delete_files(storage, paths))  # what came before its marker went
    return list(deleted)


# In the metadata table


def metadata_marker(path: str) -> Marker:
    """The marker of a file of the metadata table that a task writes; like it the path is relative to that table."""
    return Marker(path, MarkerKind.CREATE if path.endswith(WRITE_TOKEN) else MarkerKind.APPEND)


def delete_metadata_strays(storage: Storage, instant: str, kept: Collection[str]) -> None:
    """Delete the marked logs of an instant in the metadata table that are not among some paths, relative to it."""
    inner = storage.sub(METADATA_ROOT)
    marked = read_markers(inner, instant) or ()
    delete_files(inner, [one.path for one in marked if one.kind is MarkerKind.APPEND and one.path not in kept])


def delete_marked_metadata(storage: Storage, instant: str) -> None:
    """Delete every file of the metadata table that is marked for an instant, which was rolled back, and the markers."""
    _delete_marked(storage.sub(METADATA_ROOT), instant, lambda paths: paths)
    remove_metadata_markers(storage, instant)


def remove_metadata_markers(storage: Storage, instant: str) -> None:
    """Remove the markers of an instant in the metadata table."""
    remove_markers(storage.sub(METADATA_ROOT), instant, staged=False)


def sweep_metadata(storage: Storage, load: Callable[[], Timeline]) -> None:
    """Remove what tasks wrote into the metadata table after their write was over. The caller holds the table lock.

    Args:
        storage: Rooted at the data table.
        load: Lists the timeline of the data table, on which writers that are at work are pending. It is asked after the
            markers are, since a write may begin at any time.
    """
    inner = storage.sub(METADATA_ROOT)
    names = {entry.name for entry in inner.list(MARKERS) if entry.name.isdigit()}
    if not names:
        return
    outer = load()
    names -= {instant.time for instant in outer.pending}
    timeline = Timeline.load(inner, place=METADATA_ROOT)
    dead = half_laid_out(timeline, outer)
    for name in sorted(names):
        held = [instant for instant in timeline if instant.time == name]
        # Apache Hudi marks the base files of a compaction as well, which are the table's as soon as it is completed.
        done = [instant for instant in held if instant.is_completed and instant.action.writes_data]
        if done:
            if any(instant in timeline.empty_writes for instant in done):
                remove_metadata_markers(storage, name)  # what it made is not known: all of it stays
                continue
            commits = [timeline.metadata(instant) for instant in done]
            stats = [stat for commit in commits for part in commit["partitionToWriteStats"].values() for stat in part]
            delete_metadata_strays(storage, name, {stat["path"] for stat in stats})
        elif any(i.action.completed_as is Action.DELTA_COMMIT and i not in dead for i in held):
            continue
        elif name not in timeline.archived_completions([name]):
            delete_marked_metadata(storage, name)
            continue
        remove_metadata_markers(storage, name)
