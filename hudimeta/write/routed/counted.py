"""Requests that tasks make of the table's storage, counted with what they hand back, so that a commit's report has them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa

from hudimeta.write.routed.context import RoutedWrite
from hudimeta.write.routed.executors import Executors, RowTask

__all__ = ["CountingExecutors"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class _Counted(Generic[R]):
    """What a task hands back. Attributes: result: Its own. requests: By (kind, purpose)."""

    result: R
    requests: Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class _CountedTask:
    """A task of either kind, with its requests. Attributes: write: Of the task. task: Does the work."""

    write: RoutedWrite
    task: Callable[..., Any]

    def __call__(self, *arguments: Any) -> _Counted[Any]:
        mark = self.write.request_mark()
        result = self.task(*arguments)
        return _Counted(result, dict(self.write.opened().session.requests_since(mark)))


class CountingExecutors:
    """Executors whose tasks count their requests; see `Executors`. Attempts that do not count are not counted.

    Args:
        inner: Run the tasks.
        write: Which they are for.
        requests: Where the requests are added up.
    """

    def __init__(self, inner: Executors, write: RoutedWrite, requests: Counter[tuple[str, str]]) -> None:
        self._inner, self._write, self._requests = inner, write, requests
        self.parallelism = inner.parallelism

    @property
    def collected(self) -> int:
        """See `Executors`."""
        return self._inner.collected

    @property
    def tasks(self) -> int:
        """See `Executors`."""
        return self._inner.tasks

    @property
    def nearby(self) -> int:
        """See `Executors`."""
        return self._inner.nearby

    @property
    def way(self) -> str:
        """See `Executors`."""
        return self._inner.way

    def over_rows(self, task: RowTask[R]) -> list[R]:
        """See `Executors`."""
        counted: Callable[[Iterable[pa.RecordBatch], int, int], _Counted[R]] = _CountedTask(self._write, task)
        return self._taken(self._inner.over_rows(counted))

    def map(self, task: Callable[[T, int], R], items: Sequence[T], size: int | None = None) -> list[R]:
        """See `Executors`."""
        counted: Callable[[T, int], _Counted[R]] = _CountedTask(self._write, task)
        return self._taken(self._inner.map(counted, items, size))

    def _taken(self, found: Sequence[_Counted[R]]) -> list[R]:
        for one in found:
            self._requests.update(one.requests)
        return [one.result for one in found]
