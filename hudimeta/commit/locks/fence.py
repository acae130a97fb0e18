"""Stopping a writer that stood still for longer than its lock lasts: another one may have taken over meanwhile.

A process may be stopped between any two requests (a laptop's lid, a virtual machine that moves, a long pause of the collector)
and go on hours later as if nothing had happened. A store refuses nothing to it. So it asks itself before each request that
changes what others read: how long ago was the lock ours for certain? Short pauses cost nothing; after a long one the lock is
checked again. What is left is one request, sent between such a look and its effect: whoever sends it looks once more
afterwards.

The fence also stands before lists that come late. A store may answer a LIST as it was some moments ago, and whoever judges by
it under the lock would overlook the last commit, and overwrite it. The lock knows that commit's file: where a list of the
timeline lacks it although it is there, the folder is listed again, and in the end the work is refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any

from hudimeta.commit.locks.protocol import TableLock
from hudimeta.engine import machine
from hudimeta.errors import LockError, StaleList, StorageError
from hudimeta.metering import NO_METER, Metric, meter_of
from hudimeta.storage import BeforeNamed, FileInfo, NewFile, OutputStream, Staged, Storage, in_one_go
from hudimeta.timeline import Clock
from hudimeta.timeline.naming import parse_instant_name
from hudimeta.types import State

__all__ = ["CERTAIN_MS", "RELIST_PAUSES_S", "FencedLock", "FencedStorage"]

RELIST_PAUSES_S = (0.0, 0.1, 0.4, 1.5)
"""Pauses before the timeline is listed again whose list came late."""
_TIMELINES = (".hoodie/timeline", ".hoodie")
"""Of the two layouts."""

CERTAIN_MS = 500
"""For so long after a look the lock is ours still: every lock grants its holder at least that, beyond the time it has left."""


class FencedLock:
    """A table lock that knows how long ago it was ours for certain; see `TableLock`.

    Args:
        lock: The lock.
        clock: The present.
        storage: The storage whose meter counts how long it took and was held, and whose new names the
            disk makes durable beside what is done under the lock, see `in_one_go`; None for none.
    """

    def __init__(self, lock: TableLock, clock: Clock, storage: Storage | None = None) -> None:
        self._lock, self._clock, self._storage = lock, clock, storage
        self._certain_at: int | None = None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """See `TableLock.held`."""
        with in_one_go(self._storage):
            yield from self._held()

    def _held(self) -> Iterator[None]:
        begin, asked = self._clock.now_ms(), perf_counter()
        had = None
        try:
            with self._lock.held():
                had = perf_counter()
                # Who had to wait for it, or was stopped just after it, looks again at the first occasion.
                self._certain_at = begin
                try:
                    yield
                finally:
                    self._certain_at = None
        finally:
            self._tell(asked, had)

    def _tell(self, asked: float, had: float | None) -> None:
        meter = meter_of(self._storage)
        if meter is NO_METER:
            return
        now = perf_counter()
        meter.add(Metric.LOCK_LATENCY, ((had or now) - asked) * 1000)
        if had is None:
            meter.add(Metric.LOCK_FAILURE)
            return
        meter.add(Metric.LOCK_ATTEMPTS)
        meter.add(Metric.LOCK_SUCCESS)
        meter.add(Metric.LOCK_HELD, (now - had) * 1000)

    @property
    def published(self) -> str:
        """See `TableLock`."""
        return self._lock.published

    @published.setter
    def published(self, path: str) -> None:
        self._lock.published = path

    @property
    def is_held(self) -> bool:
        """Whether the with block of `held` is being run; the lock may be lost all the same."""
        return self._certain_at is not None

    def note(self, path: str) -> None:
        """Remember a file that was put while the lock was ours, if it completes something on the table's timeline."""
        folder, _, name = path.rpartition("/")
        if self.is_held and folder in _TIMELINES:
            file = parse_instant_name(name)
            if file is not None and file.state is State.COMPLETED:
                self.published = path

    def alone_here(self) -> AbstractContextManager[None]:
        """See `TableLock.alone_here`."""
        return self._lock.alone_here()

    def look_at_store(self) -> None:
        """See `TableLock.look_at_store`."""
        self._lock.look_at_store()

    def look_ahead(self) -> None:
        """See `TableLock.look_ahead`."""
        self._lock.look_ahead()

    def next_here(self) -> AbstractContextManager[float]:
        """See `TableLock.next_here`."""
        return self._lock.next_here()

    def check(self) -> None:
        """See `TableLock.check`."""
        begin = self._clock.now_ms()
        self._lock.check()
        if self._certain_at is not None:
            self._certain_at = begin

    def pass_on(self) -> None:
        """Go on only while the lock is ours: `check`, but without asking anybody when it was ours just now.

        Raises:
            LockLost: It is not ours any more.
        """
        if self._certain_at is not None and not 0 <= self._clock.now_ms() - self._certain_at <= CERTAIN_MS:
            self.check()

    def was_lost(self) -> bool:
        """True when what was done last may have been done after the lock was lost, also where that cannot be asked."""
        try:
            self.pass_on()
        except (LockError, StorageError):
            return True
        return False


class FencedStorage:
    """Passes everything on to `inner`; whatever changes something goes on only while the lock is ours, if it is held at all.

    Args:
        inner: The storage that does the work.
        lock: The table's lock.
        at_table: It is rooted at the table, so that the paths are those that the lock knows.
    """

    def __init__(self, inner: Storage, lock: FencedLock, *, at_table: bool = True) -> None:
        self.inner, self._lock, self._at_table = inner, lock, at_table

    def __reduce__(self) -> str | tuple[Any, ...]:
        """In another process there is no lock."""
        return _unfenced, (self.inner,)

    @property
    def root(self) -> str:
        """Root of the inner storage."""
        return self.inner.root

    def read(self, path: str) -> bytes:
        """See `Storage.read`."""
        return self.inner.read(path)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """See `Storage.read_range`."""
        return self.inner.read_range(path, offset, length)

    def put(self, path: str, data: bytes) -> None:
        """See `Storage.put`."""
        self._lock.pass_on()
        self.inner.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """See `Storage.put_if_absent`."""
        self._lock.pass_on()
        self.inner.put_if_absent(path, data)
        if self._at_table:
            self._lock.note(path)

    def stage(self, files: Sequence[NewFile]) -> Staged:
        """See `Storage.stage`; each file gets its name only while the lock is ours."""
        return _FencedStaged(self.inner.stage(files), files, self._lock, self._at_table)

    def put_if_unchanged(self, path: str, data: bytes, expected: bytes) -> bool:
        """See `Storage.put_if_unchanged`."""
        self._lock.pass_on()
        return self.inner.put_if_unchanged(path, data, expected)

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
        self._lock.pass_on()
        return self.inner.delete(path)

    @property
    def deletes_at_once(self) -> int:
        """See `Storage.deletes_at_once`."""
        return self.inner.deletes_at_once

    def delete_some(self, paths: Sequence[str]) -> list[str]:
        """See `Storage.delete_some`."""
        self._lock.pass_on()
        return self.inner.delete_some(paths)

    def delete_folder(self, path: str) -> None:
        """See `Storage.delete_folder`."""
        self._lock.pass_on()
        self.inner.delete_folder(path)

    def list(self, path: str) -> list[FileInfo]:
        """See `Storage.list`. Raises StaleList: It lacks what is there, again and again."""
        found = self.inner.list(path)
        last = self._lock.published if self._at_table and self._lock.is_held else ""
        if not last or last.rpartition("/")[0] != path:
            return found
        for pause in RELIST_PAUSES_S:
            # A file that is not there was taken back by somebody who leaves no word in the lock.
            if any(entry.path == last for entry in found) or not self.inner.is_file(last):
                return found
            machine.pause(pause)
            found = self.inner.list(path)
        if any(entry.path == last for entry in found):
            return found
        raise StaleList(path, last)

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
        self._lock.pass_on()
        return self.inner.open_output(path)

    def sub(self, path: str) -> FencedStorage:
        """See `Storage.sub`; behind the same lock."""
        return FencedStorage(self.inner.sub(path), self._lock, at_table=False)


class _FencedStaged:
    def __init__(self, inner: Staged, files: Sequence[NewFile], lock: FencedLock, at_table: bool) -> None:
        self._inner, self._files, self._lock, self._at_table = inner, files, lock, at_table

    def publish(self, paths: Collection[str] | None = None, before: BeforeNamed | None = None) -> None:
        def fenced(file: NewFile) -> None:
            self._lock.pass_on()
            if before is not None:
                before(file)

        self._inner.publish(paths, fenced)
        for file in self._files if self._at_table else ():
            if paths is None or file.path in paths:
                self._lock.note(file.path)

    def close(self) -> None:
        self._inner.close()


def _unfenced(inner: Storage) -> Storage:
    return inner
