"""Files that have a marker of a write and are no part of it: what failed, repeated and late attempts at its tasks left.

Tasks write into the metadata table too. Those files have markers of their own, in its folder: of kind `APPEND` for a log that
is one attempt's alone, of kind `CREATE` for the empty log that begins a file group, which all attempts write alike.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hudimeta.commit.markers import MARKERS, Marker, MarkerKind, files_of_write, read_markers, remove_markers
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.metadata.writer import WRITE_TOKEN
from hudimeta.storage import Storage
from hudimeta.timeline.active import Timeline
from hudimeta.types import Action

__all__ = [
    "delete_marked_metadata",
    "delete_metadata_strays",
    "delete_strays",
    "delete_unnamed",
    "metadata_marker",
    "remove_metadata_markers",
    "sweep_metadata",
]


def delete_strays(storage: Storage, instant: str, files: Sequence[WrittenFile]) -> None:
    """Delete what is marked for a write and is not among its files; before it is published."""
    delete_unnamed(storage, instant, {path for file in files for path in file.paths})


def delete_unnamed(storage: Storage, instant: str, kept: Collection[str]) -> None:
    """Delete what is marked for a write and is not among some paths."""
    for path in files_of_write(storage, instant) or ():
        if path not in kept:
            storage.delete(path)


# In the metadata table


def metadata_marker(path: str) -> Marker:
    """The marker of a file of the metadata table that a task writes; like it the path is relative to that table."""
    return Marker(path, MarkerKind.CREATE if path.endswith(WRITE_TOKEN) else MarkerKind.APPEND)


def delete_metadata_strays(storage: Storage, instant: str, kept: Collection[str]) -> None:
    """Delete the marked logs of an instant in the metadata table that are not among some paths, relative to it."""
    inner = storage.sub(METADATA_ROOT)
    for marker in read_markers(inner, instant) or ():
        if marker.kind is MarkerKind.APPEND and marker.path not in kept:
            inner.delete(marker.path)


def delete_marked_metadata(storage: Storage, instant: str) -> None:
    """Delete every file of the metadata table that is marked for an instant, which was rolled back, and the markers."""
    inner = storage.sub(METADATA_ROOT)
    for marker in read_markers(inner, instant) or ():
        inner.delete(marker.path)
    remove_metadata_markers(storage, instant)


def remove_metadata_markers(storage: Storage, instant: str) -> None:
    """Remove the markers of an instant in the metadata table."""
    remove_markers(storage.sub(METADATA_ROOT), instant, staged=False)


def sweep_metadata(storage: Storage, pending: Collection[str]) -> None:
    """Remove what tasks wrote into the metadata table after their write was over. The caller holds the table lock.

    Args:
        storage: Rooted at the data table. pending: Instants of the data table whose writers may still be at work.
    """
    inner = storage.sub(METADATA_ROOT)
    names = {entry.name for entry in inner.list(MARKERS) if entry.name.isdigit()} - set(pending)
    if not names:
        return
    timeline = Timeline.load(inner, place=METADATA_ROOT)
    for name in sorted(names):
        found = timeline.get(name, Action.DELTA_COMMIT)
        if found is not None and found.is_completed:
            stats = [stat for part in timeline.metadata(found)["partitionToWriteStats"].values() for stat in part]
            delete_metadata_strays(storage, name, {stat["path"] for stat in stats})
        elif found is None and name not in timeline.archived_completions([name]):
            delete_marked_metadata(storage, name)
            continue
        if found is None or found.is_completed:
            remove_metadata_markers(storage, name)
