"""The table lock: who holds it, who may take it over, and who finds out that it is lost."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from hudimeta.commit.locks.chosen import table_lock
from hudimeta.commit.locks.protocol import LockTiming, TableLock
from hudimeta.commit.locks.storage_lock import LOCK_PATH, Lease, StorageLock
from hudimeta.config import OPTIONS
from hudimeta.errors import (
    ConfigError,
    CorruptFileError,
    LockLost,
    LockTimeout,
    MissingLibrary,
    StorageError,
    UnsupportedFeature,
)
from hudimeta.storage import LocalStorage, Storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from tests.concurrency.side_by_side import Clock, WithoutGuards, together


def timing(clock: Clock, wait_s: float = 10.0) -> LockTiming:
    return LockTiming(wait_s=wait_s, poll_s=1.0, now_ms=clock.now_ms, monotonic=clock.monotonic, pause=clock.pause)


def lease_in(storage: Storage) -> Lease:
    return Lease.decode(storage.read(LOCK_PATH))


@pytest.fixture
def remote(tmp_path: Path) -> Storage:
    return WithoutGuards(str(tmp_path))


def test_the_lease_has_the_bytes_that_hudi_writes() -> None:
    lease = Lease(False, 1_700_000_000_000, "7b4c")
    assert lease.encode() == b'{"expired":false,"validUntil":1700000000000,"owner":"7b4c"}'
    assert Lease.decode(lease.encode()) == lease
    assert Lease.decode(b'{ "owner" : "x", "validUntil" : 5, "expired" : true }') == Lease(True, 5, "x")


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"expired": true}', b'{"expired": true, "validUntil": "x", "owner": "y"}']
)
def test_a_damaged_lock_file_is_named(remote: Storage, data: bytes) -> None:
    remote.put(LOCK_PATH, data)
    with pytest.raises(CorruptFileError, match=LOCK_PATH), StorageLock(remote).held():
        pass


def test_it_is_free_again_after_use(remote: Storage) -> None:
    clock = Clock()
    lock = StorageLock(remote, timing(clock))
    for _ in range(2):
        with lock.held():
            held = lease_in(remote)
            assert not held.expired
            assert held.valid_until == clock.now + 300_000
            lock.check()
        assert lease_in(remote) == Lease(True, held.valid_until, held.owner)


class CountedReads(WithoutGuards):
    """Counts how often the lock file is read."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.reads = 0

    def read(self, path: str) -> bytes:
        self.reads += path == LOCK_PATH
        return super().read(path)


def test_a_lease_that_was_looked_at_ahead_is_not_asked_for_again(tmp_path: Path) -> None:
    store, clock = CountedReads(str(tmp_path)), Clock()
    lock = StorageLock(store, timing(clock))
    with lock.held():
        pass
    store.reads = 0
    lock.look_ahead()
    with lock.held():
        assert not lease_in(WithoutGuards(str(tmp_path))).expired
    assert store.reads == 3, "once ahead; the other two compare, at each replacement"


def test_what_was_looked_at_ahead_is_no_more_than_a_guess(remote: Storage) -> None:
    clock = Clock()
    lock, other = StorageLock(remote, timing(clock)), StorageLock(remote, timing(clock))
    with other.held():
        pass
    lock.look_ahead()
    with other.held():  # which leaves another lease
        clock.now += 1
    begin = clock.now
    with lock.held():
        assert clock.now == begin, "nothing was waited for"
    lock.look_ahead()
    with other.held(), pytest.raises(LockTimeout), lock.held():
        pass


def test_a_foreign_owner_is_waited_for_until_its_lease_is_over(remote: Storage) -> None:
    clock = Clock()
    remote.put(LOCK_PATH, Lease(False, clock.now + 5_000, "a java writer").encode())
    begin = clock.now
    with StorageLock(remote, timing(clock)).held():
        assert clock.now - begin > 5_500, "drift between clocks is granted to the owner"


def test_waiting_ends(remote: Storage) -> None:
    clock = Clock()
    remote.put(LOCK_PATH, Lease(False, clock.now + 600_000, "a java writer").encode())
    told = rf"a java writer, since 20\d\d-.* UTC, until 20\d\d-.* UTC if it is not renewed(?s:.*)delete {LOCK_PATH}"
    with pytest.raises(LockTimeout, match=told), StorageLock(remote, timing(clock)).held():
        pass
    assert lease_in(remote).owner == "a java writer"


def test_of_a_dead_process_of_this_machine_it_is_taken_at_once(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    clock = Clock()
    with StorageLock(storage, timing(clock)).held():
        dead = storage.read(LOCK_PATH)
    storage.put(LOCK_PATH, dead)
    begin = clock.now
    with StorageLock(storage, timing(clock)).held():
        assert clock.now == begin


def test_a_living_process_of_this_machine_is_waited_for(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    clock = Clock()
    told = rf"hudimeta/.*, since 20\d\d-.* UTC(?s:.*)delete {LOCK_PATH}"
    with StorageLock(storage).held(), pytest.raises(LockTimeout, match=told), StorageLock(storage, timing(clock)).held():
        pass


def test_a_lease_that_ran_out_is_noticed(remote: Storage) -> None:
    clock = Clock()
    lock = StorageLock(remote, timing(clock))
    with lock.held():
        clock.pause(300)
        with pytest.raises(LockLost, match="ran out"):
            lock.check()


def test_renewal_keeps_it(remote: Storage) -> None:
    clock = Clock()
    lock = StorageLock(remote, timing(clock))
    with lock.held():
        for _ in range(20):
            clock.pause(30)
            lock._renew()
        lock.check()
        assert lease_in(remote).valid_until == clock.now + 300_000


@pytest.mark.parametrize("renewals", [0, 9])
def test_a_clock_that_is_set_back_makes_no_lease_longer_or_shorter(remote: Storage, renewals: int) -> None:
    """Else its holder would go on beside the next one, and what it renews would be over for everybody else."""
    others = Clock()
    seconds = LockTiming(now_ms=lambda: others.now - 3_600_000 * moved, monotonic=others.monotonic)
    lock, moved = StorageLock(remote, seconds), 0
    with lock.held():
        moved = 1
        for _ in range(renewals):
            others.pause(30)
            lock._renew()
        assert lease_in(remote).valid_until == others.now + 300_000
        others.pause(299)
        lock.check()
        others.pause(1)
        with pytest.raises(LockLost, match="ran out"):
            lock.check()


def test_a_lock_taken_by_another_is_noticed_and_left_alone(remote: Storage) -> None:
    clock = Clock()
    lock = StorageLock(remote, timing(clock))
    with lock.held():
        thief = Lease(False, clock.now + 999_000, "a java writer")
        remote.put(LOCK_PATH, thief.encode())
        lock._renew()
        with pytest.raises(LockLost, match="a java writer"):
            lock.check()
    assert lease_in(remote) == thief


def test_a_lock_whose_file_was_damaged_is_lost(remote: Storage) -> None:
    lock = StorageLock(remote, timing(Clock()))
    with lock.held():
        remote.put(LOCK_PATH, b"{")
        lock._renew()
        with pytest.raises(LockLost, match="damaged"):
            lock.check()


@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.ERROR_AFTER])
def test_a_failed_renewal_is_made_up_for(remote: Storage, fault: Fault) -> None:
    clock = Clock()
    lock = StorageLock(FaultyStorage(remote, FaultPlan(1, fault)), timing(clock))
    with lock.held():
        for _ in range(3):
            clock.pause(30)
            lock._renew()
        lock.check()
        assert lease_in(remote).valid_until == clock.now + 300_000


def test_a_lost_answer_does_not_lose_the_lock(remote: Storage) -> None:
    clock = Clock()
    lock = StorageLock(FaultyStorage(remote, FaultPlan(0, Fault.ERROR_AFTER)), timing(clock))
    with lock.held():
        lock.check()
    assert lease_in(remote).expired


class RepeatsRequests(WithoutGuards):
    """A store whose client loses the answer to every conditional write, and sends the request again."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        super().put_if_absent(path, data)
        super().put_if_absent(path, data)

    def put_if_unchanged(self, path: str, data: bytes, expected: bytes) -> bool:
        super().put_if_unchanged(path, data, expected)
        return super().put_if_unchanged(path, data, expected)


def test_a_repeated_request_does_not_lock_its_own_sender_out(tmp_path: Path) -> None:
    clock, store = Clock(), RepeatsRequests(str(tmp_path))
    lock = StorageLock(store, timing(clock))
    for _ in range(2):
        with lock.held():
            clock.pause(30)
            lock._renew()
            lock.check()
            assert lease_in(store).valid_until == clock.now + 300_000
        assert lease_in(store).expired


def test_an_error_at_release_does_not_undo_what_was_done(remote: Storage) -> None:
    clock = Clock()
    with StorageLock(FaultyStorage(remote, FaultPlan(1, Fault.ERROR_BEFORE, times=9)), timing(clock)).held():
        done = True
    assert done
    assert not lease_in(remote).expired


@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.ERROR_AFTER])
def test_a_failed_release_is_repeated(remote: Storage, fault: Fault) -> None:
    """Else nobody writes until the lease is over."""
    with StorageLock(FaultyStorage(remote, FaultPlan(1, fault, times=2)), timing(Clock())).held():
        assert not lease_in(remote).expired
    assert lease_in(remote).expired


def test_an_error_at_taking_it_is_raised(remote: Storage) -> None:
    lock = StorageLock(FaultyStorage(remote, FaultPlan(0, Fault.ERROR_BEFORE)), timing(Clock()))
    with pytest.raises(StorageError), lock.held():
        pass


@pytest.mark.parametrize("kind", [LocalStorage, WithoutGuards])
def test_processes_take_turns(tmp_path: Path, kind: type[LocalStorage]) -> None:
    """Counting without a lock would lose steps."""
    storage = kind(str(tmp_path))
    storage.put("count", b"0")

    def count() -> None:
        lock = StorageLock(storage, LockTiming(poll_s=0.001))
        for _ in range(20):
            with lock.held():
                storage.put("count", str(int(storage.read("count")) + 1).encode())

    assert together([count] * 3) == [0, 0, 0]
    assert storage.read("count") == b"60"


JAVA = "org.apache.hudi.client.transaction.lock."


def chosen(storage: Storage, provider: str, **more: str) -> TableLock:
    options = {"hoodie.write.lock.provider": JAVA + provider} | {
        f"hoodie.write.lock.{key}": value for key, value in more.items()
    }
    return table_lock(storage, OPTIONS.read(options), "trips")


def test_providers_go_by_the_names_of_hudi(remote: Storage) -> None:
    with chosen(remote, "StorageBasedLockProvider").held():
        assert set(json.loads(remote.read(LOCK_PATH))) == {"expired", "validUntil", "owner"}
    with chosen(remote, "FileSystemBasedLockProvider").held():
        assert {"lockCreateTime", "lockThreadName", "lockStacksInfo"} < set(json.loads(remote.read(".hoodie/lock")))
    assert remote.stat(".hoodie/lock") is None
    with chosen(remote, "InProcessLockProvider").held():
        pass


@pytest.mark.parametrize("provider", ["HiveMetastoreBasedLockProvider", "OurOwn"])
def test_other_providers_are_refused(remote: Storage, provider: str) -> None:
    with pytest.raises(UnsupportedFeature, match=f"{provider}(?s:.*)FileSystemBasedLockProvider, InProcess"):
        chosen(remote, provider)


@pytest.mark.parametrize("address", ["zookeeper.url", "dynamodb.table", "filesystem.path"])
def test_an_address_without_a_provider_is_refused(remote: Storage, address: str) -> None:
    with pytest.raises(ConfigError, match=f"lock.{address}(?s:.*)Set hoodie.write.lock.provider="):
        table_lock(remote, OPTIONS.read({f"hoodie.write.lock.{address}": "there"}), "trips")


def test_a_lock_in_zookeeper_needs_a_place(remote: Storage) -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.base_path"):
        chosen(remote, "ZookeeperBasedLockProvider", **{"zookeeper.url": "localhost:1"})
    with pytest.raises(ConfigError, match=r"zookeeper\.url"):
        chosen(remote, "ZookeeperBasedImplicitBasePathLockProvider")


def test_lease_and_renewal_are_options(remote: Storage) -> None:
    before = time.time() * 1000
    with chosen(
        remote, "StorageBasedLockProvider", **{"storage.validity.timeout.secs": "7", "storage.renew.interval.secs": "2"}
    ).held():
        assert before + 6_000 < lease_in(remote).valid_until < before + 60_000


def test_a_lease_that_ends_before_its_renewal_is_refused(remote: Storage) -> None:
    with pytest.raises(ConfigError, match=r"validity\.timeout\.secs.*more than the 30 of"):
        chosen(remote, "StorageBasedLockProvider", **{"storage.validity.timeout.secs": "30"})


def test_a_lock_in_zookeeper_needs_kazoo(remote: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    lock = chosen(remote, "ZookeeperBasedLockProvider", **{"zookeeper.url": "localhost:1", "zookeeper.base_path": "/hudi"})
    with pytest.raises(MissingLibrary, match="pip install kazoo"), lock.held():
        pass
