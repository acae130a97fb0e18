"""Tasks on threads of this process: Arrow and Parquet release Python's lock, so threads use all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["LocalEngine"]

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
        with ThreadPoolExecutor(min(self.workers, len(work)), "hudimeta") as pool:
            return list(pool.map(task, work))
