"""Locks that are free in a forked process, as of `multiprocessing`: whichever thread held one is not there to let it go."""

from __future__ import annotations

import os
import threading
import weakref

__all__ = ["FreeWhenForked"]


class FreeWhenForked:
    """A lock for the with statement; see the module. Nobody forks while holding one."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_all: weakref.WeakSet[FreeWhenForked] = weakref.WeakSet()


def _free() -> None:
    for one in _all:
        one._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)
