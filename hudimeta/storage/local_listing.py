"""Listing the folders of a local disk.

The system gives the names of a folder at once; size and age are asked for file by file. A write lists the same timelines some
ten times. In between files come and go, but one that was finished stays what it is: files are replaced, not written into. So
within `remembering` a file that had its age is not asked for again.

The names of a larger folder the system gives some hundred at a time. What comes meanwhile may be passed by though something
later is seen; of a timeline that would be a commit without the one before it, which whoever follows the table would never see.
So a folder that may just have changed is read until it is the same twice in a row.
"""

from __future__ import annotations

import contextlib
import os
import stat as stat_module
from collections.abc import Iterator
from operator import itemgetter

from hudimeta.engine import machine
from hudimeta.forking import FreeWhenForked
from hudimeta.storage.inside import check_kind, named_in
from hudimeta.storage.protocol import FileInfo

__all__ = ["FRESH_MS", "LocalListing", "info_of"]

FRESH_MS = 2000
"""A file that is younger may be one that is being written just now: not all writers give names to whole files alone."""
_MOST_REMEMBERED = 10_000
"""Files of a folder; timelines are smaller."""
_AT_ONCE = 100
"""So many names come in one piece."""
_MOST_TIMES = 8
"""A folder is read that never comes to rest; timelines do between two commits."""
_Seen = dict[str, tuple[int, FileInfo]]
"""What files of a folder were, by name, each with its number on the disk."""


class LocalListing:
    """Lists folders below one root; see the module."""

    def __init__(self) -> None:
        self._remembers = 0
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._lock = FreeWhenForked()

    def entries(self, where: str, folder: str) -> list[FileInfo]:
        """The entries of a folder, sorted by path.

        Args:
            where: The folder's absolute path.
            folder: The same relative to the storage's root.

        Raises:
            FileNotFoundError: It is not there.
            OutsideTable: An entry is neither a file nor a folder, or has a name that no other store could have.
        """
        before, settled_ms = self._seen.get((where, folder), {}), machine.now_ms() - FRESH_MS
        for _ in range(_MOST_TIMES):
            found, whole = self._looked_at(where, folder, before)
            if whole:
                break
        self._remember((where, folder), found, settled_ms)
        return sorted((known[1] for known in found.values()), key=_PATH)

    def _looked_at(self, where: str, folder: str, before: _Seen) -> tuple[_Seen, bool]:
        """What a folder has, by name, and whether it had all of it at one moment: else files went while they were looked at.

        Then one that was looked at early may be there without one that went after it: of a timeline that is archived, the
        first commit without the second, which would count as one that was never completed.
        """
        found, whole = _Seen(), True
        for entry in _at_one_moment(where):
            known = before.get(entry.name)
            if known is None or known[0] != entry.inode():
                try:
                    seen = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    whole = False
                    continue
                known = seen.st_ino, info_of(named_in(folder, entry.name), seen)
            found[entry.name] = known
        return found, whole

    def _remember(self, key: tuple[str, str], found: _Seen, settled_ms: int) -> None:
        with self._lock:
            if self._remembers and len(found) <= _MOST_REMEMBERED:
                self._seen[key] = {name: known for name, known in found.items() if known[1].modified_ms < settled_ms}

    @contextlib.contextmanager
    def remembering(self) -> Iterator[None]:
        """Inside the with block files that were listed are not looked at again."""
        with self._lock:
            self._remembers += 1
        try:
            yield
        finally:
            with self._lock:
                self._remembers -= 1
                if not self._remembers:
                    self._seen = {}


def _at_one_moment(where: str) -> list[os.DirEntry[str]]:
    """The entries of a folder, none of them without those that were there before it; see the module."""
    settled_ns, before = (machine.now_ms() - FRESH_MS) * 1_000_000, os.stat(where).st_mtime_ns
    found = _read(where)
    # It may be read for long, and the clock of the disk another one: that it was old says nothing of what came meanwhile.
    if len(found) <= _AT_ONCE or (before < settled_ns and before == os.stat(where).st_mtime_ns):
        return found
    names = {entry.name for entry in found}
    for _ in range(_MOST_TIMES):
        found, seen = _read(where), names
        names = {entry.name for entry in found}
        if names == seen:
            break
    return found


def _read(where: str) -> list[os.DirEntry[str]]:
    with os.scandir(where) as entries:
        return list(entries)


_new = tuple.__new__
_PATH = itemgetter(0)


def info_of(path: str, found: os.stat_result) -> FileInfo:
    """What is known of a file or folder. Raises OutsideTable where it is something else."""
    changed_ms = found.st_mtime_ns // 1_000_000
    if stat_module.S_ISREG(found.st_mode):
        # What a named tuple does by itself, but for a call in between: commits list a thousand files.
        return _new(FileInfo, (path, found.st_size, changed_ms, False))
    check_kind(path, found.st_mode)
    return FileInfo(path, 0, changed_ms, True)
