"""Small requests on threads that stay: starting a thread takes longer than a small read of a local disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

from hudimeta.engine import LocalEngine, nearby_if_small
from hudimeta.engine.machine import machine

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from hudimeta.engine import Engine
    from hudimeta.storage.protocol import Storage

__all__ = [
    "FEW_NEARBY",
    "PARALLEL_FILES",
    "PARALLEL_REQUESTS",
    "StayingThreads",
    "ahead",
    "at_once",
    "beside",
    "delete_files",
    "engine_of_files",
    "files_at_once",
    "is_nearby",
    "opened_ahead",
    "pieces_at_once",
    "reads_ahead",
    "waiting_engine",
]

PARALLEL_REQUESTS = 16
PARALLEL_FILES = 8
"""Of a far-away store so many are worked on at once. Each takes several requests, one after the other, that mostly wait."""
_AT_ONCE_BYTES = 256 << 20
"""Of stored files, beyond one for each core."""
FEW_NEARBY = 16
"""Each hand-over to a thread waits for a core, for long where many processes are at work."""

T = TypeVar("T")
R = TypeVar("R")


class StayingThreads:
    """Threads of a process that are started when they are first wanted, and again in a forked child, which has none.

    What runs on them must not wait for something else that is to run on them: all of them might do so.

    Args:
        most: How many.
        name: What they are called.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._making = threading.Lock()

    @property
    def pool(self) -> ThreadPoolExecutor:
        """Runs what is handed to it."""
        with self._making:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(self._most, self._name)
            return self._pool

    def begin(self, act: Callable[[T], None], item: T) -> Future[None] | None:
        """Begin something; None where this machine has no threads, and it is done by now."""
        if machine().threads:
            return self.pool.submit(act, item)
        act(item)
        return None


_REQUESTS = StayingThreads(PARALLEL_REQUESTS, "hudimeta-requests")


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
    return list(_REQUESTS.pool.map(request, items))


def pieces_at_once(request: Callable[[T], R], items: Sequence[T], storage: Storage) -> list[R]:
    """As `at_once`, for pieces of one file: of a file nearby all are asked for by the caller's own thread."""
    return [request(item) for item in items] if is_nearby(storage) else at_once(request, items)


def delete_files(storage: Storage, paths: Sequence[str]) -> list[str]:
    """Delete some files, in no order, many at once; where the store has it, by one request for many.

    Args:
        storage: Where they lie. It is asked as by `at_once`.
        paths: Of the files.

    Returns:
        Those that were there, in order; on most object stores all of them.
    """
    most = storage.deletes_at_once
    if most < 2 or len(paths) < 2:
        there = at_once(storage.delete, paths, storage)
        return [path for path, was in zip(paths, there, strict=True) if was]
    shares = [paths[first : first + most] for first in range(0, len(paths), most)]
    return [path for share in at_once(storage.delete_some, shares, storage) for path in share]


_FILES_NAME, _BESIDE_NAME = "hudimeta-files", "hudimeta-beside"
_FILES = StayingThreads(PARALLEL_FILES, _FILES_NAME)
_BESIDE = StayingThreads(PARALLEL_FILES, _BESIDE_NAME)
"""Threads of one pool never wait for it: what runs on these hands on to those above, and these to the requests'."""


def reads_ahead(storage: Storage) -> bool:
    """Whether several files are worked on at once: those of a far-away store, but by no thread that is one of these."""
    return not is_nearby(storage) and machine().threads and not threading.current_thread().name.startswith(_FILES_NAME)


def _threads_ahead(storage: Storage) -> StayingThreads | None:
    """Where something is begun ahead; None where it is done in turn."""
    if not reads_ahead(storage):
        return None
    return _FILES if threading.current_thread().name.startswith(_BESIDE_NAME) else _BESIDE


def files_at_once(work: Callable[[T], R], items: Sequence[T], storage: Storage) -> list[R]:
    """What is made of some files, in order; of a far-away store `PARALLEL_FILES` at once, see `reads_ahead`.

    Args:
        work: Reads one file, or some that belong together, by as many requests as that takes.
        items: The files.
        storage: Where they lie.
    """
    if len(items) < 2 or not reads_ahead(storage):
        return [work(item) for item in items]
    return list(_FILES.pool.map(work, items))


def beside(act: Callable[[], R], more: Callable[[], object], storage: Storage) -> R:
    """The answer to some requests; others, which do not need it, wait beside it where the store is far away.

    Args:
        act: Asks by one or more requests.
        more: The same for something that is needed next. What it finds it keeps.
        storage: What both ask.
    """
    threads = _threads_ahead(storage)
    if threads is None:
        found = act()
        more()
        return found
    waiting = threads.pool.submit(more)
    try:
        found = act()
    finally:
        waiting.exception()
    waiting.result()
    return found


def ahead(more: Callable[[], R], storage: Storage) -> Callable[[], R | None]:
    """Begin to ask a far-away store for something that is needed later; of a nearby one it is asked when it is needed.

    Args:
        more: See `beside`. Its errors are lost: whoever needs what it could not find meets them.
        storage: What is asked.

    Returns:
        What waits until it is there, and gives it; None where it failed, or was not asked for yet.
    """
    threads = _threads_ahead(storage)
    if threads is None:
        return lambda: None
    begun = threads.pool.submit(more)
    return lambda: begun.result() if begun.exception() is None else None


@contextmanager
def opened_ahead(opens: Callable[[], AbstractContextManager[R]], storage: Storage) -> Iterator[Callable[[], R]]:
    """Begin to open something of a far-away store; of a nearby one it is opened when it is asked for.

    Args:
        opens: Opens it, and closes it after its block.
        storage: Where it lies.

    Yields:
        What gives it, to be asked once, and waits until it is open. It is closed after the block, asked for or not.
    """
    with ExitStack() as held:
        threads = _threads_ahead(storage)
        if threads is None:
            yield lambda: held.enter_context(opens())
            return
        opening = threads.pool.submit(lambda: held.enter_context(opens()))
        try:
            yield opening.result
        finally:
            opening.exception()


def waiting_engine(engine: Engine, storage: Storage, largest: int = 0) -> Engine:
    """The engine for work that mostly waits for a store: where that is far away, of more threads than there are cores.

    Args:
        engine: For the rest. Work on executors, and that of an engine with one thread, stays there.
        storage: What is waited for.
        largest: Bytes of the files, as they are stored, that one task may hold; few large ones are worked on at a time.
    """
    most = min(PARALLEL_FILES, _AT_ONCE_BYTES // max(1, largest))
    few = isinstance(engine, LocalEngine) and 1 < engine.workers < most
    return LocalEngine(most) if few and reads_ahead(storage) else engine


def engine_of_files(engine: Engine, storage: Storage, sizes: Sequence[int]) -> Engine:
    """The engine for tasks that each read or write some files: see `nearby_if_small` and `waiting_engine`.

    Args:
        engine: Of the session.
        storage: Where the files lie.
        sizes: Bytes of the files of each task, as they are stored.
    """
    return waiting_engine(nearby_if_small(engine, sum(sizes)), storage, max(sizes, default=0))
