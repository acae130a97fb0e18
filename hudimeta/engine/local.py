"""Tasks on threads of this process: Arrow and Parquet release Python's lock, so threads use all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TypeVar

from hudimeta.engine.machine import pool
from hudimeta.engine.protocol import Engine

__all__ = ["LocalEngine", "nearby_if_small"]

T = TypeVar("T")
R = TypeVar("R")


class LocalEngine:
    """A pool of threads, made for each call.

    Args:
        workers: Threads; the number of cores when None.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1

    def map(self, task: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """See `Engine.map`."""
        work = list(items)
        if len(work) < 2 or self.workers == 1:
            return [task(item) for item in work]
        with pool(min(self.workers, len(work)), "hudimeta") as threads:
            return list(threads.map(task, work))


def nearby_if_small(engine: Engine, size: int) -> Engine:
    """The engine for some work: this process when it is small, wherever work runs otherwise.

    Args:
        engine: For the rest. With an attribute `worth_bytes` it says which work is too small for it.
        size: Bytes of the files that are read or written, about.
    """
    return LocalEngine() if size < getattr(engine, "worth_bytes", 0) else engine
