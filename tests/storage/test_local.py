"""The local disk, where Hadoop reads and writes too: its local file system keeps a hidden checksum beside each of its files."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from hudimeta.errors import NotFound
from hudimeta.storage import open_storage


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
            with contextlib.suppress(NotFound):
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
