"""The seam between a routed write and whatever runs its tasks.

A task may run more than once, on any machine, also twice at the same time: of the attempts at one task the result of exactly
one is handed back. So tasks give their files names that no other attempt has, and only what is in the result counts.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import pyarrow as pa

__all__ = ["Executors", "LocalExecutors", "RowTask"]

T = TypeVar("T")
R = TypeVar("R")

RowTask = Callable[[Iterable[pa.RecordBatch], int, int], R]
"""Takes the rows of one part of the input, the part's number, and a number that no other attempt at any task has."""


class Executors(Protocol):
    """Runs the tasks of one write. Attributes: parallelism: How many tasks run at a time, about."""

    parallelism: int

    @property
    def nearby(self) -> int:
        """How many tasks ran in this process because they were small; they are not among `tasks`."""
        ...

    @property
    def collected(self) -> int:
        """Bytes of all results that were handed back so far."""
        ...

    @property
    def tasks(self) -> int:
        """How many tasks gave a result so far."""
        ...

    @property
    def way(self) -> str:
        """How the rows came into the tasks, for the report; empty where there is nothing to say."""
        ...

    def over_rows(self, task: RowTask[R]) -> list[R]:
        """Run a task over each part of the input rows, which are computed once; results in the order of the parts.

        Raises:
            HudiError: What a task raised, unless another attempt helped.
        """
        ...

    def map(self, task: Callable[[T, int], R], items: Sequence[T], size: int | None = None) -> list[R]:
        """Run a task on each item, with a number that no other attempt has; results in the order of the items. Raises alike.

        Args:
            task: Does the work.
            items: What on.
            size: About how many bytes of rows all items are together: a little may be done in this process. None for not known.
        """
        ...


class LocalExecutors:
    """Tasks one after the other in this process, over rows in memory.

    Args:
        parts: The parts of the input.
    """

    def __init__(self, parts: Sequence[pa.Table]) -> None:
        self._parts = parts
        self.parallelism = max(1, len(parts))
        self.collected = self.tasks = self.nearby = self._attempts = 0
        self.way = ""

    def over_rows(self, task: RowTask[R]) -> list[R]:
        """See `Executors`."""
        return [self._counted(task(part.to_batches(), number, self._attempt())) for number, part in enumerate(self._parts)]

    def map(self, task: Callable[[T, int], R], items: Sequence[T], size: int | None = None) -> list[R]:
        """See `Executors`."""
        return [self._counted(task(item, self._attempt())) for item in items]

    def _attempt(self) -> int:
        self._attempts += 1
        return self._attempts

    def _counted(self, result: R) -> R:
        """The result as it comes out of another process."""
        sent = pickle.dumps(result)
        self.collected += len(sent)
        self.tasks += 1
        found: Any = pickle.loads(sent)
        return found  # type: ignore[no-any-return]
