"""The fence before files that were staged: each gets its name only while the lock is ours, on whatever store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta.commit.locks.fence import CERTAIN_MS, FencedLock, FencedStorage
from hudimeta.commit.locks.protocol import LockTiming
from hudimeta.commit.locks.storage_lock import StorageLock
from hudimeta.errors import LockLost
from hudimeta.storage import CountingStorage, LocalStorage, NewFile, RequestKind, Storage
from hudimeta.storage.faults import SlowStorage
from tests.concurrency.side_by_side import Clock, WithoutGuards

LEASE_S = 300.0


def _local(path: str, _: Callable[[], None]) -> Storage:
    return LocalStorage(path)


def _far_away(path: str, between: Callable[[], None]) -> Storage:
    return SlowStorage(LocalStorage(path), between)


@pytest.mark.parametrize("open_store", [_local, _far_away])
def test_staged_files_end_with_the_lock(tmp_path: Path, open_store: Callable[[str, Callable[[], None]], Storage]) -> None:
    path, clock, named = str(tmp_path / "t"), Clock(), 0

    def passes() -> None:
        clock.now += int(CERTAIN_MS)

    lock = _lock(path, clock)
    counted = CountingStorage(open_store(path, passes))
    storage = FencedStorage(counted, lock)
    staged = storage.stage([NewFile(f"a/{number}", b"x", False) for number in range(4)])

    def stops(file: NewFile) -> None:
        nonlocal named
        named += 1
        if named == 2:  # for longer than the lease: somebody else takes the lock, and gives it back
            clock.now += int(LEASE_S * 2000)
            with _lock(path, clock).held():
                pass

    mark = len(counted.log)
    with lock.held(), pytest.raises(LockLost):
        staged.publish(before=stops)
    staged.close()
    assert [entry.name for entry in LocalStorage(path).list("a")] == ["0", "1"], "the one that was under way, and none after it"
    assert counted.log.paths(RequestKind.PUT, mark) == ["a/0", "a/1"]


def _lock(path: str, clock: Clock) -> FencedLock:
    timing = LockTiming(lease_s=LEASE_S, now_ms=clock.now_ms, monotonic=lambda: clock.now_ms() / 1000, pause=lambda _: None)
    return FencedLock(StorageLock(WithoutGuards(path), timing), clock)
