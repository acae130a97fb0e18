"""Lists of one folder in a row: what is there, gone and new, without looking at the same file twice."""

from __future__ import annotations

import os
from pathlib import Path

from hudimeta.storage import LocalStorage, in_one_go
from hudimeta.storage.local_listing import FRESH_MS


def _sizes(storage: LocalStorage, folder: str = "") -> dict[str, int]:
    return {entry.path: entry.size for entry in storage.list(folder)}


def _age(path: Path, ms: int = FRESH_MS + 60_000) -> None:
    moment = path.stat().st_mtime - ms / 1000
    os.utime(path, (moment, moment))


def test_files_that_come_go_and_are_replaced_are_seen(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.put("a/1", b"one")
    storage.put("a/2", b"two")
    with in_one_go(storage):
        assert _sizes(storage, "a") == {"a/1": 3, "a/2": 3}
        storage.delete("a/1")
        storage.put("a/2", b"other bytes")
        storage.put("a/3", b"x")
        assert _sizes(storage, "a") == {"a/2": 11, "a/3": 1}
        assert _sizes(storage.sub("a")) == {"2": 11, "3": 1}, "by the paths of each root"


def test_a_file_is_looked_at_again_while_it_is_young(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    begun = {"empty": b"", "half": b"half", "old": b"old"}
    for name, data in begun.items():
        storage.put(name, data)
    _age(tmp_path / "old")
    with in_one_go(storage):
        assert _sizes(storage) == {"empty": 0, "half": 4, "old": 3}
        for name in begun:  # written in place, as by writers that create a file first
            (tmp_path / name).write_bytes(b"finished")
        assert _sizes(storage) == {"empty": 8, "half": 8, "old": 3}
    assert _sizes(storage) == {"empty": 8, "half": 8, "old": 8}


def test_nothing_is_remembered_afterwards(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.put("a", b"one")
    with in_one_go(storage):
        assert _sizes(storage) == {"a": 3}
    (tmp_path / "a").write_bytes(b"longer")
    assert _sizes(storage) == {"a": 6}
    with in_one_go(storage):
        assert _sizes(storage) == {"a": 6}
