"""The local disk, where Hadoop reads and writes too: its local file system keeps a hidden checksum beside each of its files."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta.errors import AlreadyExists, StorageError
from hudimeta.storage import LocalStorage, NewFile, open_storage


def test_a_checksum_of_hadoop_does_not_outlive_the_content_that_it_is_of(tmp_path: Path) -> None:
    (tmp_path / "replaced").write_bytes(b"old")
    (tmp_path / "deleted").write_bytes(b"old")
    for name in ("replaced", "deleted", "kept"):
        (tmp_path / f".{name}.crc").write_bytes(b"crc\x00")
    storage = open_storage(tmp_path)
    storage.put("replaced", b"new")
    assert storage.delete("deleted")
    assert sorted(f.name for f in tmp_path.iterdir()) == [".kept.crc", "replaced"]


def test_a_folder_that_others_write_into_and_remove_as_well_is_removed(tmp_path: Path) -> None:
    storage, ended = open_storage(tmp_path), threading.Event()

    def busy(number: int) -> None:
        while not ended.is_set():
            storage.put(f"folder/p{number}/marker", b"")
            storage.delete_folder("folder/p0")

    others = [threading.Thread(target=busy, args=(number,)) for number in range(2)]
    for other in others:
        other.start()
    try:
        for _ in range(100):
            storage.delete_folder("folder")
    finally:
        ended.set()
        for other in others:
            other.join()
    storage.delete_folder("folder")
    assert not (tmp_path / "folder").exists()


def test_what_a_killed_replacement_left_goes_with_the_next(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    storage.put("lock.json", b"old")

    def killed() -> None:
        with patch("os.replace", side_effect=lambda *_: os.kill(os.getpid(), signal.SIGKILL)):
            storage.put("lock.json", b"a rather long content")

    child = multiprocessing.get_context("fork").Process(target=killed)
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert storage.read("lock.json") == b"old"
    assert len(list(tmp_path.iterdir())) == 2, "a temporary file is left"
    storage.put("lock.json", b"new")
    assert storage.read("lock.json") == b"new"
    assert [f.name for f in tmp_path.iterdir()] == ["lock.json"]


def test_of_many_replacements_at_once_each_succeeds_and_nothing_is_left(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    storage.put("file", b"0" * 100)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: storage.put("file", b"%d" % (number % 10) * 100), range(40)))
    found = storage.read("file")
    assert len(found) == 100
    assert len(set(found)) == 1, "bytes of two replacements"
    assert [f.name for f in tmp_path.iterdir()] == ["file"]


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("broken", ["os.write", "os.fsync", "os.replace", "os.ftruncate"])
def test_a_full_disk_is_a_typed_error_that_leaves_the_old_bytes(tmp_path: Path, broken: str) -> None:
    storage = open_storage(tmp_path)
    storage.put("file", b"old")
    with patch(broken, side_effect=FULL), pytest.raises(StorageError, match=r"file: No space left on device\. Free some space"):
        storage.put("file", b"new")
    assert storage.read("file") == b"old"
    assert [f.name for f in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("broken", ["os.write", "os.fsync", "os.link"])
def test_a_full_disk_creates_nothing(tmp_path: Path, broken: str) -> None:
    storage = open_storage(tmp_path)
    with patch(broken, side_effect=FULL), pytest.raises(StorageError, match="No space left on device"):
        storage.put_if_absent("file", b"new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1, 1 << 22])
@pytest.mark.parametrize("through_arrow", [False, True])
def test_a_stream_to_a_full_disk_ends_with_a_typed_error(tmp_path: Path, through_arrow: bool, size: int) -> None:
    storage, rows = open_storage(tmp_path), pa.table({"x": [1, 2, 3]})
    (tmp_path / "file").touch()

    def write() -> None:
        with storage.open_output("file") as stream:
            if through_arrow:
                pq.write_table(rows, stream)
            stream.write(b"x" * size)

    full = open("/dev/full", "wb", buffering=1 << 20)  # noqa: SIM115 - the stream closes it
    opened = patch("hudimeta.storage.local.open_new", return_value=full)
    with opened, pytest.raises(StorageError, match="file: No space left on device"):
        write()
    assert list(tmp_path.iterdir()) == [], "what is half written stays"


def test_a_temporary_name_that_is_a_name_of_something_else_is_not_written_through(tmp_path: Path) -> None:
    victim, table = tmp_path / "victim", tmp_path / "table"
    victim.write_bytes(b"precious")
    table.mkdir()
    (table / "file").write_bytes(b"old")
    os.link(victim, table / "file.tmp")
    open_storage(table).put("file", b"new")
    assert ((table / "file").read_bytes(), victim.read_bytes()) == (b"new", b"precious")
    (table / "file.tmp").symlink_to(victim)
    with contextlib.suppress(StorageError):
        open_storage(table).put("file", b"newer")
    assert victim.read_bytes() == b"precious"


def test_staged_bytes_are_nameless_and_their_folders_are_synced_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.put("a/0", b"")
    staged = storage.stage([NewFile(f"a/{number}", b"data", number % 2 == 0) for number in range(1, 11)])
    assert os.listdir(tmp_path / "a") == ["0"]
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    staged.publish()
    assert synced == [str(tmp_path / "a")]
    assert {(tmp_path / "a" / str(number)).read_bytes() for number in range(1, 11)} == {b"data"}


def test_staged_files_keep_no_descriptor(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.put("a/0", b"")
    before = len(os.listdir("/proc/self/fd"))
    storage.stage([NewFile("a/1", b"x"), NewFile("b/1", b"x")]).close()
    storage.stage([NewFile("a/1", b"x"), NewFile("b/1", b"x")]).publish()
    taken = storage.stage([NewFile("a/2", b"x", False), NewFile("a/1", b"x", False), NewFile("a/3", b"x", False)])
    with pytest.raises(AlreadyExists):
        taken.publish()
    with pytest.raises(StorageError):
        storage.stage([NewFile("a/4", b"x"), NewFile("../outside", b"x")])
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_disk_that_fails_under_staged_files_is_a_typed_error(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.put("a/0", b"")
    full = patch.object(os, "fsync", side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    with full, pytest.raises(StorageError, match="No space left on device"):
        storage.stage([NewFile("a/1", b"x")])
    staged = storage.stage([NewFile("a/1", b"x")])
    with full, pytest.raises(StorageError, match="No space left on device"):
        staged.publish()
    storage.stage([NewFile("a/1", b"y")]).publish()
    assert storage.read("a/1") == b"y"


def test_an_error_of_the_folder_itself_names_it(tmp_path: Path) -> None:
    folder = tmp_path / ("n" * 300)
    with pytest.raises(StorageError, match=f"{folder}: File name too long"):
        open_storage(folder).stat("")
