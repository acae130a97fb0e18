"""What keeps every request inside its storage's root: the one place that judges paths.

Paths come out of files that anybody may have written: plans, commits, markers, metadata records, properties. So a path that is
not relative and normal is refused, whatever it is wanted for, and on a local disk nothing below the root is reached through a
symbolic link, nor read from anything else than a regular file: a pipe would never end. The root itself may be reached through
links: it is what the user named.

Two kinds of place lie outside of a table and are opened by name, read only: the files that a table was bootstrapped from, and
Parquet files that a user hands to a write.
"""

from __future__ import annotations

import os
import re
import stat as stat_module
from collections.abc import Iterable

from hudimeta.errors import OutsideTable

__all__ = ["LocalFolders", "check_native_files", "inside", "is_inside", "named_in"]

_ODD = re.compile(r"(?:\A|/)(?:\.|%2[eE]){0,2}(?:/|\Z)|[\0\ud800-\udfff]")
"""An empty segment, `.` or `..` (clients of web stores take `%2e` for a dot), or what no store can have in a name."""
MOST_CHARACTERS = 4096
"""Longer paths exist on no store."""
_MOST_SHOWN = 200
_HINT = "Nothing was touched. What names it is damaged or not to be trusted: restore it from a copy, or remove it by hand."
_LINK_HINT = (
    "Nothing was touched. Put the file or folder itself in its place, or mount it there: links below a table are not followed."
)


def is_inside(path: str) -> bool:
    """Whether a path is relative and normal, so that it cannot lead out of the folder that it is relative to."""
    return not path or (_ODD.search(path) is None and len(path) <= MOST_CHARACTERS)


def inside(path: str) -> str:
    """The path, when it is relative and normal; "" is the root.

    Raises:
        OutsideTable: It is absolute or of endless length, has a segment that is empty, `.` or `..`, or a character that no
            name can have.
    """
    if not is_inside(path):
        shown = path if len(path) <= _MOST_SHOWN else f"{path[:_MOST_SHOWN]}…"
        raise OutsideTable(shown, "is no normal path below the table's folder", _HINT)
    return path


def named_in(folder: str, name: str) -> str:
    """The path of an entry that the operating system lists in a folder, which has passed `inside`.

    Raises:
        OutsideTable: No other store could have such a name.
    """
    path = f"{folder}/{name}" if folder else name
    # A listing names neither `.` nor `..` and nothing with a slash: what is left can only be odd beyond plain characters.
    if name.isascii() and "%" not in name and len(path) <= MOST_CHARACTERS:
        return path
    return inside(path)


class LocalFolders:
    """Looks out for links among the folders below a local root.

    Args:
        root: Absolute path.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._seen: set[str] = set()

    def check(self, folder: str, *, anew: bool = False) -> None:
        """Refuse a folder that is reached through a link; one that is not there is fine.

        Args:
            folder: Relative to the root, normal.
            anew: Look also at what was looked at before, for what is written or deleted.

        Raises:
            OutsideTable: The folder, or one above it and below the root, is a link.
        """
        if not folder or (folder in self._seen and not anew):
            return
        end = -1
        while end < len(folder):
            end = folder.find("/", end + 1) if "/" in folder[end + 1 :] else len(folder)
            above = folder[:end]
            try:
                mode = os.lstat(f"{self._root}/{above}").st_mode
            except OSError:
                self._seen.discard(folder)
                return  # Nothing is reached through what is not there; whoever goes on hears of other failures.
            if stat_module.S_ISLNK(mode):
                self._seen.discard(folder)
                raise linked(above)
        self._seen.add(folder)


def check_kind(path: str, mode: int) -> None:
    """Refuse what is neither a regular file nor a folder, by the `st_mode` of an `lstat`."""
    if stat_module.S_ISREG(mode) or stat_module.S_ISDIR(mode):
        return
    if stat_module.S_ISLNK(mode):
        raise linked(path)
    raise OutsideTable(path, "is no file but a pipe, a socket or a device", "Nothing was touched. Remove it by hand.")


def linked(path: str) -> OutsideTable:
    """The error for a symbolic link."""
    return OutsideTable(path, "is a symbolic link", _LINK_HINT)


def check_native_files(root: str, paths: Iterable[str]) -> None:
    """Hold files that something else opens by itself, as Spark does, to the same rules.

    Args:
        root: Of the storage.
        paths: Relative to it.

    Raises:
        OutsideTable: One leads out of the root.
    """
    folders = LocalFolders(root) if root.startswith("/") else None
    for path in paths:
        inside(path)
        if folders is not None:
            folders.check(path.rpartition("/")[0])
            try:
                mode = os.lstat(f"{root}/{path}").st_mode
            except OSError:
                continue  # Whoever opens it reports that it is not there.
            check_kind(path, mode)
