"""New names of a local disk: durable at once, or together where the file system keeps their order."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta.config import HudiWarning
from hudimeta.errors import StorageError
from hudimeta.storage import CountingStorage, LocalStorage, NewFile, Storage, in_one_go, local_order
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.storage.local_order import kind_of_device

MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
30 25 0:27 / /dev/shm rw - tmpfs tmpfs rw,size=24684084k
41 27 8:17 /some\\040where /data rw - xfs /dev/sdb1 rw

not a mount
"""


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Folders that were brought to the disk."""
    found: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        at = os.readlink(f"/proc/self/fd/{fd}")
        if os.path.isdir(at):
            found.append(os.path.basename(at))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def _keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_order, "keeps_order", lambda device: True)


@pytest.mark.parametrize(
    ("device", "kind"), [((254, 0), "ext4"), ((0, 27), "tmpfs"), ((8, 17), "xfs"), ((8, 1), ""), ((0, 99), "")]
)
def test_the_kind_of_a_device_is_that_of_its_mount(device: tuple[int, int], kind: str) -> None:
    assert kind_of_device(MOUNTS, os.makedev(*device)) == kind


def _puts(storage: Storage) -> None:
    storage.put("a/1", b"x")
    storage.put_if_absent("b/1", b"x")
    storage.put_if_unchanged("a/1", b"y", b"x")
    storage.sub("c").put("1", b"x")
    storage.stage([NewFile("d/1", b"x"), NewFile("b/2", b"x", False)]).publish()


def test_names_that_keep_their_order_wait_for_the_disk_once(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _keeping(monkeypatch)
    storage = LocalStorage(str(tmp_path))
    with in_one_go(CountingStorage(FaultyStorage(storage, FaultPlan(None, Fault.KILL)))):
        _puts(storage)
        assert synced == []
    assert sorted(synced) == ["a", "b", "c", "d"]
    synced.clear()
    storage.put("a/2", b"x")
    assert synced == ["a"], "afterwards each is durable at once"


def test_other_names_are_waited_for_one_by_one(tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_order, "keeps_order", lambda device: False)
    storage = LocalStorage(str(tmp_path))
    with in_one_go(storage):
        _puts(storage)
        assert sorted(synced) == ["a", "a", "b", "b", "c", "d"]
    assert len(synced) == 6


def test_what_is_named_on_another_disk_comes_after_what_was_named_before(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(str(tmp_path))
    for path in ("here/0", "there/0", "other/0"):
        storage.put(path, b"")
    synced.clear()
    monkeypatch.setattr(local_order, "device_of", lambda folder: 1 + folder.endswith("/other"))
    _keeping(monkeypatch)
    with in_one_go(storage):
        storage.put("here/1", b"x")
        storage.put("there/1", b"x")
        assert synced == []
        storage.put("other/1", b"x")
        assert synced == ["here", "there", "other"]
        storage.put("here/2", b"x")
        assert synced == ["here", "there", "other"]
    assert synced == ["here", "there", "other", "here"]


def test_a_folder_that_is_gone_at_the_end_keeps_no_name_from_the_disk(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _keeping(monkeypatch)
    storage = LocalStorage(str(tmp_path))
    with in_one_go(storage):
        storage.put("a/1", b"x")
        storage.put("b/1", b"x")
        shutil.rmtree(tmp_path / "b")
    assert synced == ["a"]


def test_names_within_one_another_are_durable_with_the_inner_end(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _keeping(monkeypatch)
    storage = LocalStorage(str(tmp_path))
    with in_one_go(storage):
        with in_one_go(storage):
            storage.put("a/1", b"x")
        assert synced == ["a"]
        storage.put("b/1", b"x")
        assert synced == ["a"]
    assert synced == ["a", "b"]


def test_a_disk_that_fails_at_the_end_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _keeping(monkeypatch)
    storage = LocalStorage(str(tmp_path))

    def fails(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def writes(put: Callable[[], None]) -> None:
        with in_one_go(storage):
            put()
            monkeypatch.setattr(os, "fsync", fails)

    with pytest.warns(HudiWarning, match="may not survive a power failure"):
        writes(lambda: storage.put("a/1", b"x"))
    assert storage.read("a/1") == b"x"


def test_removed_files_are_gone_at_once_and_keep_no_descriptor(tmp_path: Path) -> None:
    storage, most = LocalStorage(str(tmp_path)), 256
    paths = [f"a/{number}" for number in range(most + 10)]
    for path in paths:
        storage.put(path, b"x")
    before = len(os.listdir("/proc/self/fd"))
    with in_one_go(storage):
        assert all(storage.delete(path) for path in paths)
        assert not storage.delete(paths[0])
        assert storage.list("a") == []
        assert before <= len(os.listdir("/proc/self/fd")) <= before + most, "not one for each of very many"
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_is_not_removed_as_a_file(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.put("a/1", b"x")
    before = len(os.listdir("/proc/self/fd"))
    with in_one_go(storage), pytest.raises(StorageError):
        storage.delete("a")
    assert storage.read("a/1") == b"x"
    assert len(os.listdir("/proc/self/fd")) == before
