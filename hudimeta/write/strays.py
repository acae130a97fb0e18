"""Files that have a marker of a write and are no part of it: what failed, repeated and late attempts at its tasks left."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hudimeta.storage import Storage
from hudimeta.write.markers import read_markers
from hudimeta.write.written_file import WrittenFile

__all__ = ["delete_strays", "delete_unnamed"]


def delete_strays(storage: Storage, instant: str, files: Sequence[WrittenFile]) -> None:
    """Delete what is marked for a write and is not among its files; before it is published."""
    delete_unnamed(storage, instant, {path for file in files for path in file.paths})


def delete_unnamed(storage: Storage, instant: str, kept: Collection[str]) -> None:
    """Delete what is marked for a write and is not among some paths."""
    for marker in read_markers(storage, instant) or ():
        if marker.path not in kept:
            storage.delete(marker.path)
