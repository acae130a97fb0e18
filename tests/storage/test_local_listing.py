"""Lists of one folder in a row, and while it changes: what is there, gone and new, without looking at the same file twice."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from hudimeta.engine.machine import ThisMachine, running_on
from hudimeta.storage import LocalStorage, in_one_go
from hudimeta.storage.local_listing import FRESH_MS
from tests.storage.changing_folder import changes_behind, changes_between


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


def test_nothing_is_passed_by_that_came_before_something_that_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(200):  # names of larger folders come piece by piece
        (tmp_path / f"{number:03d}").write_bytes(b"x")

    def commit_twice() -> None:
        (tmp_path / "099 first").write_bytes(b"x")
        (tmp_path / "101 second").write_bytes(b"x")

    changes_between(monkeypatch, tmp_path, "100", commit_twice)
    assert {"099 first", "101 second"} <= _sizes(LocalStorage(str(tmp_path))).keys()


@pytest.mark.parametrize("begins_fast", [False, True])
def test_nothing_is_passed_by_whatever_clocks_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins_fast: bool) -> None:
    """The reader is stopped amidst the names, or its clock is fast: what changed just now looks old to it."""
    for number in range(200):
        (tmp_path / f"{number:03d}").write_bytes(b"x")
    _age(tmp_path)
    reader = _Fast()
    reader.by_ms = FRESH_MS * 5 * begins_fast

    def commit_twice() -> None:
        (tmp_path / "099 first").write_bytes(b"x")
        (tmp_path / "101 second").write_bytes(b"x")
        reader.by_ms = FRESH_MS * 5

    changes_between(monkeypatch, tmp_path, "100", commit_twice)
    with running_on(reader):
        assert {"099 first", "101 second"} <= _sizes(LocalStorage(str(tmp_path))).keys()


class _Fast(ThisMachine):
    by_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.by_ms


def test_nothing_stays_that_went_before_something_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("1", "2", "3"):
        (tmp_path / name).write_bytes(b"x")

    def archive_two() -> None:
        (tmp_path / "1").unlink()
        (tmp_path / "2").unlink()

    changes_behind(monkeypatch, tmp_path, "1", archive_two)
    assert _sizes(LocalStorage(str(tmp_path))) == {"3": 1}


def test_a_folder_that_never_comes_to_rest_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stays").write_bytes(b"x")
    plain = os.scandir

    def one_that_is_gone(where: str) -> contextlib.AbstractContextManager[list[os.DirEntry[str]]]:
        gone = tmp_path / "gone"
        gone.write_bytes(b"x")
        with plain(where) as entries:
            found = list(entries)
        gone.unlink()
        return contextlib.nullcontext(found)

    monkeypatch.setattr(os, "scandir", one_that_is_gone)
    assert _sizes(LocalStorage(str(tmp_path))) == {"stays": 1}
