"""What work takes from the machine that it runs on: time, threads and chance.

All of it is asked for here, so that a simulation can put a machine of its own in the place of this one, for the thread that
calls `running_on`: its clock moves when the simulation says so, nothing runs beside the thread, and ids follow from a seed.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextvars import ContextVar
from typing import Any, ParamSpec, Protocol, TypeVar

__all__ = ["Machine", "ThisMachine", "machine", "monotonic", "now_ms", "pause", "pool", "running_on"]

P = ParamSpec("P")
T = TypeVar("T")


class Machine(Protocol):
    """A machine, as one writer or reader knows it."""

    @property
    def threads(self) -> bool:
        """Whether work may be shared out among threads; else everything runs in the caller's."""

    def now_ms(self) -> int:
        """The wall clock: milliseconds since 1970-01-01T00:00:00Z."""

    def monotonic(self) -> float:
        """Seconds of a clock that is never set."""

    def pause(self, seconds: float) -> None:
        """Return after so many seconds."""

    def every(self, seconds: float, act: Callable[[], None], name: str) -> contextlib.AbstractContextManager[None]:
        """Do something again and again for the length of a with block, beside it, first after so many seconds.

        Args:
            seconds: Between two times.
            act: Raises nothing.
            name: For whoever looks at threads.
        """

    def new_id(self) -> uuid.UUID:
        """An id that nobody else has."""


class ThisMachine:
    """The machine that this process runs on."""

    threads = True

    def now_ms(self) -> int:
        """See `Machine.now_ms`."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """See `Machine.monotonic`."""
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        """See `Machine.pause`."""
        time.sleep(seconds)

    @contextlib.contextmanager
    def every(self, seconds: float, act: Callable[[], None], name: str) -> Iterator[None]:
        """See `Machine.every`; on a thread of its own."""
        over = threading.Event()

        def run() -> None:
            while not over.wait(seconds):
                act()

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def new_id(self) -> uuid.UUID:
        """See `Machine.new_id`."""
        return uuid.uuid4()


_THIS: Machine = ThisMachine()
_current: ContextVar[Machine] = ContextVar("machine", default=_THIS)


def machine() -> Machine:
    """The machine that the calling thread runs on."""
    return _current.get()


@contextlib.contextmanager
def running_on(other: Machine) -> Iterator[None]:
    """Let the calling thread run on another machine for the length of a with block."""
    token = _current.set(other)
    try:
        yield
    finally:
        _current.reset(token)


def now_ms() -> int:
    """See `Machine.now_ms`."""
    return _current.get().now_ms()


def monotonic() -> float:
    """See `Machine.monotonic`."""
    return _current.get().monotonic()


def pause(seconds: float) -> None:
    """See `Machine.pause`."""
    _current.get().pause(seconds)


def pool(most: int, name: str) -> Executor:
    """Threads for some tasks, to be closed by a with block; the caller's own where the machine has no others.

    Args:
        most: Threads.
        name: Begins the names of the threads.
    """
    if not machine().threads:
        return _OneAfterTheOther()
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(most, name)


class _OneAfterTheOther(Executor):
    """Runs each task as it is handed in."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done

    def map(self, fn: Callable[..., T], *iterables: Any, timeout: float | None = None, chunksize: int = 1) -> Iterator[T]:
        return map(fn, *iterables)
