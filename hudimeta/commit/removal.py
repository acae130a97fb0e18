"""Many files that nobody needs any more, deleted where the engine has its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hudimeta.engine import Engine, nearby_if_small
from hudimeta.storage import Storage
from hudimeta.storage.at_once import delete_files

__all__ = ["delete_in_tasks"]

_LIKE_A_DELETE = 1 << 15
"""So many bytes are rewritten in about the time that a delete takes."""
_SHARE = 1000
"""So many files one task deletes; as many as Amazon's store deletes by one request."""


def delete_in_tasks(storage: Storage, paths: Sequence[str], engine: Engine) -> int:
    """Delete some files, in no order; how many of them were there.

    Args:
        storage: Rooted where the paths begin.
        paths: Of the files.
        engine: Where the tasks run; few files are deleted by this process.
    """
    shares = [paths[first : first + _SHARE] for first in range(0, len(paths), _SHARE)]
    return sum(nearby_if_small(engine, len(paths) * _LIKE_A_DELETE).map(partial(_delete, storage), shares))


def _delete(storage: Storage, paths: Sequence[str]) -> int:
    """A function, because a method would travel to other processes with its class."""
    return len(delete_files(storage, paths))
