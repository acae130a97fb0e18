"""A folder of the local disk that changes while it is listed, at a place that a test says."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_scandir = os.scandir


class _Entry:
    """An entry as the system gives it, and what happens once its size was asked for."""

    def __init__(self, entry: os.DirEntry[str], then: Callable[[str], None]) -> None:
        self.name, self._entry, self._then = entry.name, entry, then

    def inode(self) -> int:
        return self._entry.inode()

    def stat(self, *, follow_symlinks: bool) -> os.stat_result:
        found = self._entry.stat(follow_symlinks=follow_symlinks)
        self._then(self.name)
        return found


def changes_between(monkeypatch: pytest.MonkeyPatch, folder: Path, rest: str, meanwhile: Callable[[], None]) -> None:
    """Let a folder change once while its names are read, when some of them have been handed over.

    Args:
        monkeypatch: Of the test.
        folder: Whose names come in order.
        rest: Names before this one are as they were, from it on as they are then.
        meanwhile: Changes the folder.
    """
    left = [meanwhile]

    @contextlib.contextmanager
    def read(where: str) -> Iterator[list[os.DirEntry[str]]]:
        names = _sorted(where)
        if os.path.samefile(where, folder) and left:
            left.pop()()
            names = [one for one in names if one.name < rest] + [one for one in _sorted(where) if one.name >= rest]
        yield names

    monkeypatch.setattr(os, "scandir", read)


def changes_behind(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, meanwhile: Callable[[], None]) -> None:
    """Let a folder change once a file's size was asked for, and before that of the next one is, by their names: once.

    Args:
        monkeypatch: Of the test.
        folder: Whose files are looked at in the order of their names.
        name: Of the file.
        meanwhile: Changes the folder.
    """
    left = [meanwhile]

    def then(seen: str) -> None:
        if seen == name and left:
            left.pop()()

    @contextlib.contextmanager
    def read(where: str) -> Iterator[list[os.DirEntry[str]] | list[_Entry]]:
        ours = os.path.samefile(where, folder) and left
        yield [_Entry(one, then) for one in _sorted(where)] if ours else _sorted(where)

    monkeypatch.setattr(os, "scandir", read)


def _sorted(where: str) -> list[os.DirEntry[str]]:
    with _scandir(where) as entries:
        return sorted(entries, key=lambda entry: entry.name)
