"""The machine that work runs on: this one, or another one for as long as somebody says so."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta.commit.locks.protocol import LockTiming, new_owner
from hudimeta.engine.machine import ThisMachine, machine, now_ms, pool, running_on
from hudimeta.storage import LocalStorage
from hudimeta.storage.at_once import at_once
from hudimeta.table.discovery import list_table
from hudimeta.timeline import SystemClock


class Elsewhere:
    """A machine without threads, whose clock stands still and whose ids are counted."""

    threads = False

    def __init__(self) -> None:
        self.ids = 0
        self.paused = 0.0

    def now_ms(self) -> int:
        return 1_234

    def monotonic(self) -> float:
        return self.paused

    def pause(self, seconds: float) -> None:
        self.paused += seconds

    def every(self, seconds: float, act: Callable[[], None], name: str) -> contextlib.AbstractContextManager[None]:
        act()
        return contextlib.nullcontext()

    def new_id(self) -> uuid.UUID:
        self.ids += 1
        return uuid.UUID(int=self.ids)


def test_clocks_locks_and_names_go_by_the_machine() -> None:
    there = Elsewhere()
    with running_on(there):
        timing = LockTiming(wait_s=1.0)
        timing.wait(timing.deadline(), lambda: pytest.fail("it is not over yet"))
        assert (SystemClock().now_ms(), timing.now_ms(), there.paused) == (1_234, 1_234, timing.poll_s)
        assert new_owner().endswith("/00000000-0000-0000-0000-000000000001")
    assert now_ms() > 1_234
    assert isinstance(machine(), ThisMachine)


def test_without_threads_everything_runs_in_the_callers(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    for name in ("p0", "p1"):
        storage.put(f"{name}/.hoodie_partition_metadata", b"")
    me = threading.get_ident()
    with running_on(Elsewhere()):
        assert at_once(lambda _: threading.get_ident(), [1, 2, 3]) == [me] * 3
        with pool(4, "test") as threads:
            assert list(threads.map(lambda _: threading.get_ident(), [1, 2])) == [me] * 2
            assert threads.submit(threading.get_ident).result() == me
            with pytest.raises(ZeroDivisionError):
                threads.submit(lambda: 1 // 0).result()
        assert len(list_table(storage)) == 0
    with pool(2, "test") as threads:
        assert threads.submit(threading.get_ident).result() != me


def test_this_machine_repeats_until_the_block_ends() -> None:
    done = threading.Semaphore(0)
    with ThisMachine().every(0.001, done.release, "test"):
        assert done.acquire(timeout=60)
        assert done.acquire(timeout=60)
    while done.acquire(blocking=False):
        pass
    assert not any(thread.name == "test" for thread in threading.enumerate())
