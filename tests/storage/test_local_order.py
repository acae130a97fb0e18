"""New names of a local disk become durable in their order, beside what comes next; removed files are gone at once."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudimeta.config import HudiWarning
from hudimeta.errors import StorageError
from hudimeta.storage import CountingStorage, LocalStorage, NewFile, Storage, in_one_go
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage


class Disk:
    """What a disk was asked for.

    Attributes:
        events: `named` with a path, `durable` with a folder, in the order in which they were done.
        threads: Which threads brought folders to the disk.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[tuple[str, str]] = []
        self.threads: set[int] = set()
        self._root, fsync, link, rename = root, os.fsync, os.link, os.replace

        def synced(fd: int) -> None:
            at = os.readlink(f"/proc/self/fd/{fd}")
            fsync(fd)
            if os.path.isdir(at):
                self.threads.add(threading.get_ident())
                self._note("durable", at)

        def linked(source: str, target: str, *, src_dir_fd: int | None = None, follow_symlinks: bool = True) -> None:
            link(source, target, src_dir_fd=src_dir_fd, follow_symlinks=follow_symlinks)
            self._note("named", target)

        def renamed(source: str, target: str) -> None:
            rename(source, target)
            self._note("named", target)

        for name, act in (("fsync", synced), ("link", linked), ("replace", renamed)):
            monkeypatch.setattr(os, name, act)

    def _note(self, what: str, path: str) -> None:
        self.events.append((what, os.path.relpath(path, self._root)))

    def take(self, what: str) -> list[str]:
        """The paths of one kind of event."""
        return [path for kind, path in self.events if kind == what]

    def not_durable(self) -> Iterator[tuple[str, set[str]]]:
        """Each name, with the folders of names before it that were not durable by then."""
        open_folders: set[str] = set()
        for what, path in self.events:
            if what == "named":
                yield path, set(open_folders)
                open_folders.add(os.path.dirname(path))
            else:
                open_folders.discard(path)
        yield "the end", open_folders


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    for folder in "abcd":
        (tmp_path / folder).mkdir()
    return Disk(tmp_path, monkeypatch)


def _puts(storage: Storage) -> None:
    storage.put("a/1", b"x")
    storage.put_if_absent("b/1", b"x")
    storage.put_if_unchanged("a/1", b"y", b"x")
    storage.sub("c").put("1", b"x")
    storage.put("d/1", b"")


def test_no_name_is_given_before_those_before_it_are_durable(tmp_path: Path, disk: Disk) -> None:
    storage = LocalStorage(str(tmp_path))
    with in_one_go(CountingStorage(FaultyStorage(storage, FaultPlan(None, Fault.KILL)))):
        _puts(storage)
    assert disk.take("named") == ["a/1", "b/1", "a/1", "c/1", "d/1"]
    assert all(not waiting for _, waiting in disk.not_durable()), disk.events
    assert threading.get_ident() not in disk.threads, "who writes does not wait for each folder"


def test_staged_files_are_named_together_after_those_before_them(tmp_path: Path, disk: Disk) -> None:
    storage = LocalStorage(str(tmp_path))
    with in_one_go(storage):
        storage.put("a/1", b"x")
        storage.stage([NewFile("b/1", b"x"), NewFile("c/1", b"x", False), NewFile("b/2", b"x", False)]).publish()
        storage.put("d/1", b"x")
    waiting = dict(disk.not_durable())
    assert waiting["c/1"] == waiting["d/1"] == waiting["the end"] == set(), disk.events
    assert disk.take("durable").count("b") == 1


def test_outside_each_name_is_durable_when_it_was_given(tmp_path: Path, disk: Disk) -> None:
    storage = LocalStorage(str(tmp_path))
    with in_one_go(storage):
        pass
    _puts(storage)
    assert disk.take("durable") == ["a", "b", "a", "c", "d"]
    assert disk.threads == {threading.get_ident()}


def test_a_folder_that_is_gone_keeps_nobody_waiting(tmp_path: Path, disk: Disk) -> None:
    storage = LocalStorage(str(tmp_path))
    with in_one_go(storage):
        storage.put("a/1", b"x")
        storage.put("b/1", b"x")
        shutil.rmtree(tmp_path / "b")
        storage.put("a/2", b"x")
    assert storage.read("a/2") == b"x"
    assert disk.take("durable").count("a") == 2


def test_names_within_one_another_are_durable_with_the_inner_end(tmp_path: Path, disk: Disk) -> None:
    storage = LocalStorage(str(tmp_path))
    with in_one_go(storage):
        with in_one_go(storage):
            storage.put("a/1", b"x")
        assert disk.take("durable") == ["a"]
        storage.put("b/1", b"x")
    assert disk.take("durable") == ["a", "b"]


def _fails(fd: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_disk_that_fails_before_the_next_name_is_an_error_of_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.put("a/0", b"")
    with in_one_go(storage):
        with monkeypatch.context() as broken:
            broken.setattr(os, "fsync", _fails)
            storage.put("a/1", b"")
            with pytest.raises(StorageError, match="Input/output error"):
                storage.put("a/2", b"")
        assert storage.stat("a/2") is None
        storage.put("a/3", b"x")
    assert storage.read("a/3") == b"x"


def test_a_disk_that_fails_at_the_end_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.put("a/0", b"")

    def writes() -> None:
        with in_one_go(storage):
            monkeypatch.setattr(os, "fsync", _fails)
            storage.put("a/1", b"")

    with pytest.warns(HudiWarning, match="may not survive a power failure"):
        writes()
    assert storage.read("a/1") == b""


def test_many_threads_may_put_in_one_go(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    with in_one_go(storage):
        storage.stage([NewFile(f"{number % 7}/{number}", b"x") for number in range(200)]).publish()
    assert sum(len(storage.list(str(folder))) for folder in range(7)) == 200


def test_a_fork_does_not_wait_for_threads_that_it_does_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage, may, fsync = LocalStorage(str(tmp_path)), threading.Event(), os.fsync
    (tmp_path / "a").mkdir()

    def waits(fd: int) -> None:
        assert may.wait(60)
        fsync(fd)

    with in_one_go(storage):
        monkeypatch.setattr(os, "fsync", waits)
        storage.put("a/1", b"")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                may.set()
                signal.alarm(60)  # ends a child that waits
                storage.put("a/2", b"x")
                storage.put("a/3", b"x")
                code = 0
            finally:
                os._exit(code)
        ended = os.waitpid(child, 0)[1]
        may.set()
    assert os.waitstatus_to_exitcode(ended) == 0
    assert storage.read("a/2") == b"x"


def test_removed_files_are_gone_at_once_and_keep_no_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 20
    monkeypatch.setattr("hudimeta.storage.local_order._MOST_OPEN", most)
    storage = LocalStorage(str(tmp_path))
    paths = [f"a/{number}" for number in range(most + 10)]
    for path in paths:
        storage.put(path, b"x")
    before = len(os.listdir("/proc/self/fd"))
    with in_one_go(storage):
        assert all(storage.delete(path) for path in paths)
        assert not storage.delete(paths[0])
        assert storage.list("a") == []
        assert before < len(os.listdir("/proc/self/fd")) <= before + most, "not one for each of very many"
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_is_not_removed_as_a_file(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.put("a/1", b"x")
    before = len(os.listdir("/proc/self/fd"))
    with in_one_go(storage), pytest.raises(StorageError):
        storage.delete("a")
    assert storage.read("a/1") == b"x"
    assert len(os.listdir("/proc/self/fd")) == before
