"""Wrappers that make a store slow, fail, or end the process: how promises about crashes are kept honest."""

from __future__ import annotations

import enum
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from hudimeta.errors import StorageError, Throttled
from hudimeta.storage.protocol import FileInfo, OutputStream, Storage, join
from hudimeta.storage.staged import HeldFiles, NewFile, Staged

__all__ = ["Fault", "FaultPlan", "FaultyStorage", "SlowStorage"]


class Fault(enum.Enum):
    """What happens at the chosen call."""

    KILL = "kill"
    ERROR_BEFORE = "error before"
    ERROR_AFTER = "error after"
    THROTTLED = "throttled"
    THROTTLED_AFTER = "throttled after"


class FaultPlan:
    """Counts mutating calls and strikes at one of them.

    Args:
        at: Number of the call, from 0; None only counts.
        fault: What to do there: end the process with SIGKILL before the call, or raise StorageError before or after it, or
            Throttled, as a store that asks for fewer requests.
        times: How many calls in a row it strikes.
    """

    def __init__(self, at: int | None, fault: Fault, times: int = 1) -> None:
        self.at, self.fault, self.times = at, fault, times
        self.calls: list[str] = []
        self._lock = threading.Lock()

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        """Run one mutating call under the plan."""
        with self._lock:
            number = len(self.calls)
            self.calls.append(name)
        struck = self.at is not None and self.at <= number < self.at + self.times
        if struck and self.fault is Fault.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        if struck and self.fault is Fault.ERROR_BEFORE:
            raise StorageError(name, "injected fault before the call")
        if struck and self.fault is Fault.THROTTLED:
            raise Throttled(name, 1)
        result = act()
        if struck and self.fault is Fault.THROTTLED_AFTER:
            raise Throttled(name, 1)
        if struck and self.fault is Fault.ERROR_AFTER:
            raise StorageError(name, "injected fault after the call")
        return result


class FaultyStorage:
    """Passes everything on to `inner`; each mutating call goes through the plan first.

    A stream counts twice, when it is opened and when it is closed.
    """

    def __init__(self, inner: Storage, plan: FaultPlan, prefix: str = "") -> None:
        self.inner, self.plan, self._prefix = inner, plan, prefix

    @property
    def root(self) -> str:
        """Root of the inner storage."""
        return self.inner.root

    def _around(self, verb: str, path: str, act: Callable[[], Any]) -> Any:
        return self.plan.around(f"{verb} {join(self._prefix, path)}", act)

    def read(self, path: str) -> bytes:
        """See `Storage.read`."""
        return self.inner.read(path)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """See `Storage.read_range`."""
        return self.inner.read_range(path, offset, length)

    def put(self, path: str, data: bytes) -> None:
        """See `Storage.put`."""
        self._around("put", path, lambda: self.inner.put(path, data))

    def put_if_absent(self, path: str, data: bytes) -> None:
        """See `Storage.put_if_absent`."""
        self._around("put_if_absent", path, lambda: self.inner.put_if_absent(path, data))

    def stage(self, files: Sequence[NewFile]) -> Staged:
        """See `Storage.stage`; each file is put by itself."""
        return HeldFiles(self, files)

    def put_if_unchanged(self, path: str, data: bytes, expected: bytes) -> bool:
        """See `Storage.put_if_unchanged`."""
        return bool(self._around("put_if_unchanged", path, lambda: self.inner.put_if_unchanged(path, data, expected)))

    def prove_replaceable(self, path: str) -> None:
        """See `Storage.prove_replaceable`."""
        self.inner.prove_replaceable(path)

    def prove_conditions(self, path: str, other: bytes) -> None:
        """See `Storage.prove_conditions`."""
        self.inner.prove_conditions(path, other)

    def guard(self, path: str) -> AbstractContextManager[bool] | None:
        """See `Storage.guard`."""
        return self.inner.guard(path)

    def delete(self, path: str) -> bool:
        """See `Storage.delete`."""
        return bool(self._around("delete", path, lambda: self.inner.delete(path)))

    @property
    def deletes_at_once(self) -> int:
        """See `Storage.deletes_at_once`."""
        return self.inner.deletes_at_once

    def delete_some(self, paths: Sequence[str]) -> list[str]:
        """See `Storage.delete_some`."""
        found: list[str] = self._around("delete_some", paths[0], lambda: self.inner.delete_some(paths))
        return found

    def delete_folder(self, path: str) -> None:
        """See `Storage.delete_folder`."""
        self._around("delete_folder", path, lambda: self.inner.delete_folder(path))

    def list(self, path: str) -> list[FileInfo]:
        """See `Storage.list`."""
        return self.inner.list(path)

    def stat(self, path: str) -> FileInfo | None:
        """See `Storage.stat`."""
        return self.inner.stat(path)

    def is_file(self, path: str) -> bool:
        """See `Storage.is_file`."""
        return self.inner.is_file(path)

    def open_input(self, path: str, size: int = 0) -> Any:
        """See `Storage.open_input`."""
        return self.inner.open_input(path, size)

    def open_output(self, path: str) -> OutputStream:
        """See `Storage.open_output`."""
        opened: list[OutputStream] = []
        try:
            self._around("open_output", path, lambda: opened.append(self.inner.open_output(path)))
        except StorageError:
            for stream in opened:  # which nobody gets: an empty file stays
                stream.close()
            raise
        return _FaultyOutput(opened[0], lambda act: self._around("close_output", path, act))

    def sub(self, path: str) -> FaultyStorage:
        """See `Storage.sub`; shares the plan."""
        return FaultyStorage(self.inner.sub(path), self.plan, join(self._prefix, path))


class _FaultyOutput:
    def __init__(self, inner: Any, around_close: Callable[[Callable[[], None]], Any]) -> None:
        self._inner, self._around_close = inner, around_close

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, data: Any, /) -> int:
        return int(self._inner.write(data))

    def close(self) -> None:
        if self._inner.closed:
            return
        try:
            self._around_close(self._inner.close)
        except StorageError:
            if not self._inner.closed:  # as stores do whose close fails
                self._inner.discard()
            raise

    def __enter__(self) -> _FaultyOutput:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self._inner.__exit__(kind, error, trace)


class SlowStorage:
    """Waits before every request, as a far-away store makes one wait.

    Args:
        inner: The storage that does the work.
        wait: Called once a request, for example `lambda: time.sleep(0.05)`.
    """

    def __init__(self, inner: Storage, wait: Callable[[], None]) -> None:
        self.inner, self._wait = inner, wait

    def __getattr__(self, name: str) -> Any:
        member = getattr(self.inner, name)
        if not callable(member):
            return member

        def delayed(*args: Any) -> Any:
            self._wait()
            return member(*args)

        return delayed

    @property
    def root(self) -> str:
        """Root of the inner storage."""
        return self.inner.root

    def stage(self, files: Sequence[NewFile]) -> Staged:
        """See `Storage.stage`; each file waits by itself."""
        return HeldFiles(self, files)

    def sub(self, path: str) -> SlowStorage:
        """See `Storage.sub`."""
        return SlowStorage(self.inner.sub(path), self._wait)
