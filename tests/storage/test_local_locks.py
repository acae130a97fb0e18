"""Locks of the local disk belong to one process: one that is forked while they are held does not keep them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudimeta.storage import LocalStorage
from tests.forked import forked

Fork = Callable[[], None]


@pytest.fixture
def fork() -> Iterator[Fork]:
    """Forks a process that lives until the test is over, and does nothing."""
    ended, go_on = os.pipe()
    children: list[int] = []

    def begin() -> None:
        children.append(forked(waits))

    def waits() -> None:
        os.close(go_on)
        os.read(ended, 1)  # until the test's process closes its end

    yield begin
    os.close(go_on)
    os.close(ended)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * len(children)


def test_a_guard_is_free_when_its_process_lets_it_go(tmp_path: Path, fork: Fork) -> None:
    storage = LocalStorage(str(tmp_path))
    with storage.guard("a") as held:
        assert held
        fork()
        with LocalStorage(str(tmp_path)).guard("a") as again:
            assert not again, "the process that forked has it still"
    with storage.guard("a") as held:
        assert held


def test_a_replacement_on_condition_keeps_nobody_waiting_afterwards(tmp_path: Path, fork: Fork) -> None:
    class Forking(LocalStorage):
        def put(self, path: str, data: bytes) -> None:
            fork()
            super().put(path, data)

    LocalStorage(str(tmp_path)).put("folder/a", b"1")
    assert Forking(str(tmp_path)).put_if_unchanged("folder/a", b"2", b"1")
    folder = os.open(tmp_path / "folder", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(folder)
    assert LocalStorage(str(tmp_path)).put_if_unchanged("folder/a", b"3", b"2")


def test_a_forked_process_has_nothing_open_that_is_locked(tmp_path: Path) -> None:
    with LocalStorage(str(tmp_path)).guard("a"):
        open_here = Path("/proc/self/fd")
        child = forked(lambda: int(str(tmp_path / "a") in [os.readlink(one) for one in open_here.iterdir() if one.exists()]))
        assert os.waitpid(child, 0)[1] == 0
