"""The lock of a file, as Apache Hudi's `FileSystemBasedLockProvider` has it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.locks.fence import CERTAIN_MS, FencedLock
from hudimeta.commit.locks.file_lock import FileLock
from hudimeta.commit.locks.process_lock import ProcessLock
from hudimeta.commit.locks.protocol import LockTiming
from hudimeta.config import HudiWarning
from hudimeta.errors import LockLost, LockTimeout, StorageError
from hudimeta.storage import LocalStorage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from tests.concurrency.side_by_side import Clock, WithoutGuards, together

LOCK = ".hoodie/lock"
OF_JAVA = b'{"lockCreateTime":"2026-01-02 03:04:05.678","lockThreadName":"main","lockStacksInfo":"..."}'
FILE = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"}


class _ReleasedAt(Clock):
    """A clock by which somebody deletes the file after so many pauses."""

    def __init__(self, pauses: int, storage: LocalStorage) -> None:
        super().__init__()
        self._left, self._storage = pauses, storage

    def pause(self, seconds: float) -> None:
        super().pause(seconds)
        self._left -= 1
        if not self._left:
            self._storage.delete(LOCK)


class _AskedInVain(WithoutGuards):
    """A store that cannot be read for a while."""

    silent = False

    def read(self, path: str) -> bytes:
        if self.silent:
            raise StorageError(path, "the store does not answer")
        return super().read(path)


def rows(keys: range) -> pa.Table:
    return pa.table({"id": list(keys)})


def timing(clock: Clock, wait_s: float = 10.0) -> LockTiming:
    return LockTiming(wait_s=wait_s, poll_s=1.0, now_ms=clock.now_ms, monotonic=clock.monotonic, pause=clock.pause)


def lock_in(storage: LocalStorage, clock: Clock, expire_s: float = 0) -> FileLock:
    return FileLock(storage, storage.sub(".hoodie"), LOCK, expire_s, timing(clock))


@pytest.fixture
def remote(tmp_path: Path) -> LocalStorage:
    return WithoutGuards(str(tmp_path))


def test_a_lock_that_cannot_be_asked_may_be_lost(remote: LocalStorage, tmp_path: Path) -> None:
    """What was published then is looked at once more; an error would say that it was not."""
    clock, folder = Clock(), _AskedInVain(str(tmp_path / ".hoodie"))
    lock = FencedLock(FileLock(remote, folder, LOCK, 0, timing(clock)), clock)
    with lock.held():
        clock.pause(CERTAIN_MS / 1000 + 1)
        folder.silent = True
        assert lock.was_lost()
        folder.silent = False
        assert not lock.was_lost()


def test_the_file_is_there_while_it_is_held(remote: LocalStorage) -> None:
    lock = lock_in(remote, Clock())
    for _ in range(2):
        with lock.held():
            assert json.loads(remote.read(LOCK))["owner"].startswith("hudimeta/")
            lock.check()
        assert remote.stat(LOCK) is None


def test_a_writer_of_hudi_is_waited_for_and_named(remote: LocalStorage) -> None:
    remote.put(LOCK, OF_JAVA)
    with (
        pytest.raises(LockTimeout, match=r"thread main.*since 2026-01-02 03:04:05.678") as raised,
        lock_in(remote, Clock()).held(),
    ):
        pass
    assert "delete .hoodie/lock" in str(raised.value)
    assert remote.read(LOCK) == OF_JAVA


def test_it_is_taken_when_hudi_gives_it_back(remote: LocalStorage) -> None:
    clock = _ReleasedAt(3, remote)
    remote.put(LOCK, OF_JAVA)
    with lock_in(remote, clock).held():
        assert remote.read(LOCK) != OF_JAVA


def test_a_file_that_nobody_changed_for_long_is_left_behind(remote: LocalStorage, tmp_path: Path) -> None:
    clock = Clock()
    remote.put(LOCK, OF_JAVA)
    os.utime(tmp_path / LOCK, ns=(0, (clock.now - 61_000) * 10**6))
    with (
        pytest.warns(HudiWarning, match="thread main.* is taken over: nobody changed it for 60 s"),
        lock_in(remote, clock, 60).held(),
    ):
        assert remote.read(LOCK) != OF_JAVA
    remote.put(LOCK, OF_JAVA)
    os.utime(tmp_path / LOCK, ns=(0, (clock.now - 59_000) * 10**6))
    with pytest.raises(LockTimeout), FileLock(remote, remote.sub(".hoodie"), LOCK, 60, timing(clock, 0.5)).held():
        pass


def test_a_dead_process_of_this_machine_holds_nothing(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    with lock_in(storage, Clock()).held():
        dead = storage.read(LOCK)
    storage.put(LOCK, dead)
    with lock_in(storage, Clock()).held():
        assert storage.read(LOCK) != dead
    assert storage.stat(LOCK) is None


@pytest.mark.parametrize("meanwhile", [None, OF_JAVA, b"not json"])
def test_whoever_lost_it_is_told_before_publishing(remote: LocalStorage, meanwhile: bytes | None) -> None:
    """Apache Hudi deletes the file when any of its clients closes."""
    lock = lock_in(remote, Clock())
    with lock.held():
        remote.delete(LOCK)
        if meanwhile is not None:
            remote.put(LOCK, meanwhile)
        with pytest.raises(LockLost):
            lock.check()
    assert (remote.stat(LOCK) is not None) == (meanwhile is not None)


def test_a_request_that_took_effect_though_its_answer_was_lost(remote: LocalStorage) -> None:
    plan = FaultPlan(0, Fault.ERROR_AFTER)
    folder = FaultyStorage(remote.sub(".hoodie"), plan)
    with FileLock(remote, folder, LOCK, 0, timing(Clock())).held():
        assert remote.stat(LOCK) is not None
    assert remote.stat(LOCK) is None


def test_a_store_that_fails_is_no_lock(remote: LocalStorage) -> None:
    folder = FaultyStorage(remote.sub(".hoodie"), FaultPlan(0, Fault.ERROR_BEFORE))
    with pytest.raises(StorageError), FileLock(remote, folder, LOCK, 0, timing(Clock())).held():
        pass
    assert remote.stat(LOCK) is None


class _SilentOnConditions(WithoutGuards):
    """A store that stops answering once the lock file is there."""

    def prove_conditions(self, path: str, other: bytes) -> None:
        raise StorageError(path, "no answer")


def test_a_store_that_fails_as_it_is_asked_for_conditions_is_no_lock(remote: LocalStorage) -> None:
    folder = _SilentOnConditions(f"{remote.root}/.hoodie")
    with pytest.raises(StorageError, match="no answer"), FileLock(remote, folder, LOCK, 0, timing(Clock())).held():
        pass
    assert remote.stat(LOCK) is None, "a lock file that nobody gives back would stay for good"


@pytest.mark.parametrize("kind", [LocalStorage, WithoutGuards])
def test_processes_take_turns(tmp_path: Path, kind: type[LocalStorage]) -> None:
    """Counting without a lock would lose steps."""
    storage = kind(str(tmp_path))
    storage.put("count", b"0")

    def count() -> None:
        lock = FileLock(storage, storage.sub(".hoodie"), LOCK, 0, LockTiming(poll_s=0.001))
        for _ in range(20):
            with lock.held():
                storage.put("count", str(int(storage.read("count")) + 1).encode())

    assert together([count] * 3) == [0, 0, 0]
    assert storage.read("count") == b"60"


def test_threads_of_one_process_take_turns(remote: LocalStorage) -> None:
    with (
        ProcessLock(remote).held(),
        pytest.raises(LockTimeout, match="another thread"),
        ProcessLock(remote, timing(Clock())).held(),
    ):
        pass
    with ProcessLock(remote, timing(Clock())).held():
        pass


def test_writes_stop_at_a_lock_of_hudi_and_change_nothing(tmp_path: Path) -> None:
    table = Table.create(
        str(tmp_path / "t"), rows(range(1)).schema, "id", options=FILE | {"hoodie.write.lock.wait_time_ms": "1"}
    )
    table.insert(rows(range(3)))
    (tmp_path / "t" / LOCK).write_bytes(OF_JAVA)
    left = pytest.warns(HudiWarning, match="left to the next writer")
    with left, pytest.raises(LockTimeout, match="thread main"):
        table.insert(rows(range(3, 6)))
    assert table.scan().to_table().num_rows == 3
    (tmp_path / "t" / LOCK).unlink()
    table.insert(rows(range(3, 6)))
    assert table.scan().to_table().num_rows == 6
    assert not (tmp_path / "t" / LOCK).exists()
