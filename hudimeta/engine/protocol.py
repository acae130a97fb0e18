"""The seam between work and the place where it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

__all__ = ["Engine"]

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Runs independent tasks, one file group or one shard each."""

    def map(self, task: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Run `task` on every item and return the results in the order of the items.

        Tasks and items may cross process borders: both must be picklable where the engine says so. The first exception of a
        task is raised here, after running tasks came to their end.
        """
