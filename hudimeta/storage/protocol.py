"""The seam to bytes outside: few methods, relative paths, nothing about tables.

A `Storage` is rooted in one folder. Every path is relative to that root, with `/` between segments and no leading slash; ""
is the root itself. Object stores have no folders: `list` then answers by prefix and delimiter, and writing creates whatever
parents are needed on every implementation.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from hudimeta.errors import AlreadyExists
from hudimeta.storage.staged import NewFile, Staged

__all__ = ["FileInfo", "OutputStream", "Storage", "join", "put_own"]


class FileInfo(NamedTuple):
    """One entry of a listing; a tuple, because a commit makes a thousand of them.

    Attributes:
        path: Relative to the storage's root.
        size: Bytes, 0 for a folder.
        modified_ms: Time of the last change in epoch milliseconds, 0 when the store does not say.
        is_folder: True for a folder.
    """

    path: str
    size: int
    modified_ms: int
    is_folder: bool

    @property
    def name(self) -> str:
        """The last segment of the path."""
        return self.path.rsplit("/", 1)[-1]


class OutputStream(Protocol):
    """A file being written; gone again after an exception inside `with`.

    A half-written file may be seen under its name (object stores publish at `close`, local disks at once): use it only for
    files that nobody looks for before a commit names them.
    """

    @property
    def in_place(self) -> bool:
        """Whether the file has its name from the beginning on; else from `close` on."""

    def write(self, data: Any, /) -> int:
        """Append bytes or a buffer; returns how many."""

    def close(self) -> None:
        """Publish the file."""

    def __enter__(self) -> OutputStream: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


@runtime_checkable
class Storage(Protocol):
    """What the rest of the engine may ask of a file system or object store. Every method may raise StorageError."""

    @property
    def root(self) -> str:
        """The folder that paths are relative to: an absolute path or a URI, without a trailing slash."""

    def read(self, path: str) -> bytes:
        """The whole file. Raises NotFound."""

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`, fewer at the end of file; a negative offset counts from there. Raises NotFound."""

    def put(self, path: str, data: bytes) -> None:
        """Create or replace the file, atomically: a reader sees the old bytes or the new ones."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create the file, atomically. Raises AlreadyExists when it is there, also when two do so at once."""

    def stage(self, files: Sequence[NewFile]) -> Staged:
        """Bring some files to the store that get their names later; nobody sees anything of them until then."""

    def put_if_unchanged(self, path: str, data: bytes, expected: bytes) -> bool:
        """Replace the file if it still holds `expected`, atomically; False when it does not."""

    def prove_replaceable(self, path: str) -> None:
        """Look whether `put_if_unchanged` can do its work for a file that is there. A store that is known is not asked.

        Raises:
            UnsupportedFeature: The store replaces no file on condition.
        """

    def prove_conditions(self, path: str, other: bytes) -> None:
        """Ask the store for what it must refuse: to create a file that is there, and to replace it as one that it is not.

        Some stores that speak the protocol of another one pass over the conditions of a request, and carry it out. A local
        disk is not asked.

        Args:
            path: A file that is there.
            other: What would be put: not what the file holds.

        Raises:
            UnsupportedFeature: The store did it; the file holds `other` now.
        """

    def guard(self, path: str) -> AbstractContextManager[bool] | None:
        """Mutual exclusion among the processes of this machine, or None where the store has nothing of the kind.

        The context yields True while the guard of the file `path` is held (an empty file is made when it is not there), and
        False when somebody else holds it; it never waits. The operating system frees the guard of a process that died.
        """

    def delete(self, path: str) -> bool:
        """Remove one file; False when it was not there."""

    @property
    def deletes_at_once(self) -> int:
        """How many files `delete_some` may be given; 1 where files are deleted one by one."""

    def delete_some(self, paths: Sequence[str]) -> list[str]:
        """Remove some files by one request; those that were there. `at_once.delete_files` takes any number.

        On most object stores the answer names all of them. After an error some may be gone.
        """

    def delete_folder(self, path: str) -> None:
        """Remove a folder and all below it; nothing happens when it is not there."""

    def list(self, path: str) -> list[FileInfo]:
        """The entries of one folder, one level deep, sorted by path; empty when the folder is not there."""

    def stat(self, path: str) -> FileInfo | None:
        """What is known of one file or folder; None when it is not there."""

    def is_file(self, path: str) -> bool:
        """Whether there is a file of that name; one request, where `stat` asks some stores for a folder, too."""

    def open_input(self, path: str, size: int = 0) -> Any:
        """A seekable file that pyarrow can read (`pyarrow.NativeFile`), for Parquet. The caller closes it. Raises NotFound.

        A store may take the size at its word that the caller knows, if any, and say that the file is not there only when it
        is read.
        """

    def open_output(self, path: str) -> OutputStream:
        """A stream for a file too large to build in memory; replaces what is there."""

    def sub(self, path: str) -> Storage:
        """The same store rooted in a folder below this one."""


def join(*segments: str) -> str:
    """Join path segments, leaving out empty ones: `join("", "a") == "a"`."""
    return "/".join(s for s in segments if s)


def put_own(storage: Storage, path: str, data: bytes) -> None:
    """Create a file whose bytes nobody else would write; raises AlreadyExists when there are others.

    A store's client repeats a request whose answer was lost, and then finds its own file.
    """
    try:
        storage.put_if_absent(path, data)
    except AlreadyExists:
        if storage.read(path) != data:
            raise
