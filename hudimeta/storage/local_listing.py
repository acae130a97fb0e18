"""Listing the folders of a local disk.

The system gives the names of a folder at once; size and age are asked for file by file. A write lists the same timelines some
ten times. In between files come and go, but one that was finished stays what it is: files are replaced, not written into. So
within `remembering` a file that had its age is not asked for again.
"""

from __future__ import annotations

import contextlib
import os
import stat as stat_module
import threading
from collections.abc import Iterator
from operator import itemgetter

from hudimeta.engine import machine
from hudimeta.storage.inside import check_kind, named_in
from hudimeta.storage.protocol import FileInfo

__all__ = ["FRESH_MS", "LocalListing", "info_of"]

FRESH_MS = 2000
"""A file that is younger may be one that is being written just now: not all writers give names to whole files alone."""
_MOST_REMEMBERED = 10_000
"""Files of a folder; timelines are smaller."""


class LocalListing:
    """Lists folders below one root; see the module."""

    def __init__(self) -> None:
        self._remembers = 0
        self._seen: dict[tuple[str, str], dict[str, tuple[int, FileInfo]]] = {}
        """What files of a folder were, by name, each with its number on the disk."""
        self._lock = threading.Lock()

    def entries(self, where: str, folder: str) -> list[FileInfo]:
        """The entries of a folder, sorted by path.

        Args:
            where: The folder's absolute path.
            folder: The same relative to the storage's root.

        Raises:
            FileNotFoundError: It is not there.
            OutsideTable: An entry is neither a file nor a folder, or has a name that no other store could have.
        """
        before = self._seen.get((where, folder), {})
        found, settled_ms = list[FileInfo](), machine.now_ms() - FRESH_MS
        now = dict[str, tuple[int, FileInfo]]()
        with os.scandir(where) as entries:
            for entry in entries:
                known = before.get(entry.name)
                if known is None or known[0] != entry.inode():
                    try:
                        seen = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # it vanished since it was listed: then it is not there
                    known = seen.st_ino, info_of(named_in(folder, entry.name), seen)
                info = known[1]
                found.append(info)
                if info.modified_ms < settled_ms:
                    now[entry.name] = known
        self._remember((where, folder), now)
        found.sort(key=_PATH)
        return found

    def _remember(self, key: tuple[str, str], now: dict[str, tuple[int, FileInfo]]) -> None:
        with self._lock:
            if self._remembers and len(now) <= _MOST_REMEMBERED:
                self._seen[key] = now

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
