"""A wrapper that waits and asks again where a store asks for fewer requests.

A refused request was not done, as far as the store says. Where it was done all the same, the second attempt finds what the
first one left: a file that is there with the very bytes that were to be written is ours.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from hudimeta.engine import machine
from hudimeta.errors import AlreadyExists, Throttled
from hudimeta.storage.protocol import FileInfo, OutputStream, Storage
from hudimeta.storage.staged import HeldFiles, NewFile, Staged

__all__ = ["RetryBudget", "RetryingStorage", "SystemTimer", "Timer"]

Answer = TypeVar("Answer")


class Timer(Protocol):
    """What tells how long a request has been tried, and waits."""

    def now(self) -> float:
        """Seconds since any moment."""

    def wait(self, seconds: float) -> None:
        """Return after some seconds."""


class SystemTimer:
    """The machine's."""

    def now(self) -> float:
        """See `Timer`."""
        return machine.monotonic()

    def wait(self, seconds: float) -> None:
        """See `Timer`."""
        machine.pause(seconds)


@dataclass(frozen=True)
class RetryBudget:
    """How long one request is tried.

    Attributes:
        attempts: At most, the first one included.
        seconds: No attempt begins later than that after the first one.
        first_pause: Seconds before the second attempt, about; each further pause is twice as long.
        longest_pause: Seconds.
    """

    attempts: int = 10
    seconds: float = 60.0
    first_pause: float = 0.1
    longest_pause: float = 10.0

    def pause(self, failed: int) -> float:
        """Seconds to wait after so many attempts; half of it by chance, so that many processes do not come back together."""
        pause = min(self.first_pause * 2.0 ** (failed - 1), self.longest_pause)
        return pause * random.uniform(0.5, 1.0)


class RetryingStorage:
    """Passes everything on to `inner`, again and again while that raises `Throttled`, until the budget is spent.

    What is read from a stream that `open_input` gave, or written to one of `open_output`, is not asked for again.

    Args:
        inner: The storage that does the work.
        budget: Of each request.
        timer: Where time comes from.
        refused: Called for each attempt that was refused: what was asked for, such as `read`, and the path.
    """

    def __init__(
        self,
        inner: Storage,
        budget: RetryBudget | None = None,
        timer: Timer | None = None,
        refused: Callable[[str, str], None] | None = None,
    ) -> None:
        self.inner, self._budget, self._timer = inner, budget or RetryBudget(), timer or SystemTimer()
        self._refused = refused

    def __reduce__(self) -> tuple[type[RetryingStorage], tuple[Storage, RetryBudget, Timer]]:
        """In another process nothing is reported until somebody asks to be."""
        return RetryingStorage, (self.inner, self._budget, self._timer)

    def __repr__(self) -> str:
        return repr(self.inner)

    def telling(self, refused: Callable[[str, str], None]) -> RetryingStorage:
        """The same storage, which tells somebody else of refused attempts."""
        return RetryingStorage(self.inner, self._budget, self._timer, refused)

    @property
    def root(self) -> str:
        """Root of the inner storage."""
        return self.inner.root

    def _patiently(self, verb: str, path: str, ask: Callable[[bool], Answer]) -> Answer:
        """The answer to a request.

        Args:
            verb: What is asked for.
            path: Of the file.
            ask: Called with False at first, and with True where an attempt was refused before.

        Raises:
            Throttled: The store went on refusing until the budget was spent.
        """
        begin, failed = self._timer.now(), 0
        while True:
            try:
                return ask(failed > 0)
            except Throttled as error:
                failed += 1
                if self._refused is not None:
                    self._refused(verb, path)
                pause = self._budget.pause(failed)
                spent = self._timer.now() - begin
                if failed >= self._budget.attempts or spent + pause > self._budget.seconds:
                    raise Throttled(path, failed, spent) from error
            self._timer.wait(pause)

    def read(self, path: str) -> bytes:
        """See `Storage.read`."""
        return self._patiently("read", path, lambda again: self.inner.read(path))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """See `Storage.read_range`."""
        return self._patiently("read_range", path, lambda again: self.inner.read_range(path, offset, length))

    def put(self, path: str, data: bytes) -> None:
        """See `Storage.put`."""
        self._patiently("put", path, lambda again: self.inner.put(path, data))

    def put_if_absent(self, path: str, data: bytes) -> None:
        """See `Storage.put_if_absent`. An empty file that is there after a refused attempt counts as somebody else's."""

        def create(again: bool) -> None:
            try:
                self.inner.put_if_absent(path, data)
            except AlreadyExists:
                if not (again and data and self.inner.read(path) == data):
                    raise

        self._patiently("put_if_absent", path, create)

    def stage(self, files: Sequence[NewFile]) -> Staged:
        """See `Storage.stage`; each file is put by itself."""
        return HeldFiles(self, files)

    def put_if_unchanged(self, path: str, data: bytes, expected: bytes) -> bool:
        """See `Storage.put_if_unchanged`."""

        def replace(again: bool) -> bool:
            return self.inner.put_if_unchanged(path, data, expected) or (again and self.inner.read(path) == data)

        return self._patiently("put_if_unchanged", path, replace)

    def prove_replaceable(self, path: str) -> None:
        """See `Storage.prove_replaceable`."""
        self._patiently("prove_replaceable", path, lambda again: self.inner.prove_replaceable(path))

    def prove_conditions(self, path: str, other: bytes) -> None:
        """See `Storage.prove_conditions`."""
        self._patiently("prove_conditions", path, lambda again: self.inner.prove_conditions(path, other))

    def guard(self, path: str) -> AbstractContextManager[bool] | None:
        """See `Storage.guard`."""
        return self.inner.guard(path)

    def delete(self, path: str) -> bool:
        """See `Storage.delete`."""
        return self._patiently("delete", path, lambda again: self.inner.delete(path))

    @property
    def deletes_at_once(self) -> int:
        """See `Storage.deletes_at_once`."""
        return self.inner.deletes_at_once

    def delete_some(self, paths: Sequence[str]) -> list[str]:
        """See `Storage.delete_some`."""
        return self._patiently("delete_some", paths[0], lambda again: self.inner.delete_some(paths))

    def delete_folder(self, path: str) -> None:
        """See `Storage.delete_folder`."""
        self._patiently("delete_folder", path, lambda again: self.inner.delete_folder(path))

    def list(self, path: str) -> list[FileInfo]:
        """See `Storage.list`."""
        return self._patiently("list", path, lambda again: self.inner.list(path))

    def stat(self, path: str) -> FileInfo | None:
        """See `Storage.stat`."""
        return self._patiently("stat", path, lambda again: self.inner.stat(path))

    def is_file(self, path: str) -> bool:
        """See `Storage.is_file`."""
        return self._patiently("is_file", path, lambda again: self.inner.is_file(path))

    def open_input(self, path: str, size: int = 0) -> Any:
        """See `Storage.open_input`."""
        return self._patiently("open_input", path, lambda again: self.inner.open_input(path, size))

    def open_output(self, path: str) -> OutputStream:
        """See `Storage.open_output`."""
        return self._patiently("open_output", path, lambda again: self.inner.open_output(path))

    def sub(self, path: str) -> RetryingStorage:
        """See `Storage.sub`."""
        return RetryingStorage(self.inner.sub(path), self._budget, self._timer, self._refused)
