"""Many small requests at once, on threads that stay: starting a thread takes longer than a small read of a local disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from hudimeta.engine.machine import machine

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from hudimeta.storage.protocol import Storage

__all__ = ["FEW_NEARBY", "PARALLEL_REQUESTS", "at_once", "is_nearby"]

PARALLEL_REQUESTS = 16
FEW_NEARBY = 16
"""Each hand-over to a thread waits for a core, for long where many processes are at work."""

T = TypeVar("T")
R = TypeVar("R")

_pool: ThreadPoolExecutor | None = None
_making = threading.Lock()


def is_nearby(storage: Storage) -> bool:
    """Whether files lie in the file system of this machine, which answers sooner than another thread wakes up."""
    return storage.root.startswith("/")


def at_once(request: Callable[[T], R], items: Sequence[T], storage: Storage | None = None) -> list[R]:
    """The answers to some requests, in order; all callers of a process share `PARALLEL_REQUESTS` threads.

    Args:
        request: Asks storage for one item. It must not wait for other requests of this kind: all threads might do so.
        items: What to ask for. A single one is asked for by the caller's own thread.
        storage: What is asked for something small; of one nearby a few are asked for by the caller's own thread, too.
    """
    few = 1 if storage is None or not is_nearby(storage) else FEW_NEARBY
    if len(items) <= few or not machine().threads:
        return [request(item) for item in items]
    return list(_shared_pool().map(request, items))


def _shared_pool() -> ThreadPoolExecutor:
    global _pool
    with _making:
        if _pool is None:
            from concurrent.futures import ThreadPoolExecutor

            _pool = ThreadPoolExecutor(PARALLEL_REQUESTS, "hudimeta-requests")
        return _pool


def _forget() -> None:
    """In a forked child no thread of the pool is alive, and the lock may be held by one that is not there."""
    global _pool, _making
    _pool, _making = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
