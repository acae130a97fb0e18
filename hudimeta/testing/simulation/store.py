"""A store in memory: a local disk or an object store as one actor of a simulation sees it.

`Files` are the bytes that all share. Each actor has a `SimulatedStorage` of its own over them, whose calls go through the
actor: there the scheduler decides who goes on, and faults strike.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import pyarrow as pa

from hudimeta.errors import AlreadyExists, NotFound
from hudimeta.storage import FileInfo, HeldFiles, NewFile, Staged, join

__all__ = ["Around", "Files", "StoreKind", "SimulatedStorage"]

Around = Callable[[str, str, Callable[[], Any]], Any]
"""What happens around a call: its verb, its path, and the call itself."""


_TIMELINE = ".hoodie/timeline"
_numbers = itertools.count()


class StoreKind(enum.Enum):
    """Which kind of store is simulated."""

    DISK = "disk"
    """Locks of the operating system end with their holder, and a file has its name while it is written."""
    OBJECT_STORE = "object store"


@dataclass(frozen=True, slots=True)
class _File:
    data: bytes
    modified_ms: int


class Files:
    """The bytes of one store: names by folder, a folder's as None. A folder without names is gone.

    Args:
        now_ms: The clock of the store.

    Attributes:
        root: Where it seems to be. No other store of this process is there: what a process remembers of the files of one, which
            never change, must not be taken for what is known of another one's.
        journal: The bytes of every file that the table's timeline ever had, by path.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.root = f"/simulated/{next(_numbers):08d}"
        self._folders: dict[str, dict[str, _File | None]] = {}
        self.journal: dict[str, bytes] = {}
        self.guarded: set[str] = set()

    def copy(self, now_ms: Callable[[], int]) -> Files:
        """The same files in a store of its own."""
        files = Files(now_ms)
        files._folders = {folder: names.copy() for folder, names in self._folders.items()}
        files.journal = self.journal.copy()
        return files

    def find(self, path: str) -> _File | None:
        """A file, or None."""
        folder, _, name = path.rpartition("/")
        return self._folders.get(folder, {}).get(name)

    def is_folder(self, path: str) -> bool:
        """Whether there is something below a path."""
        return path in self._folders

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file."""
        folder, _, name = path.rpartition("/")
        names = self._folders.get(folder)
        if names is None:
            names = self._make(folder)
        names[name] = _File(data, self.now_ms())
        if folder == _TIMELINE:
            self.journal[path] = data

    def _make(self, folder: str) -> dict[str, _File | None]:
        names = self._folders[folder] = {}
        if folder:
            above, _, name = folder.rpartition("/")
            (self._folders.get(above) or self._make(above))[name] = None
        return names

    def delete(self, path: str) -> bool:
        """Remove a file; False when it was not there."""
        if self.find(path) is None:
            return False
        self._drop(path)
        return True

    def _drop(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        names = self._folders[folder]
        del names[name]
        if not names:
            del self._folders[folder]
            if folder:
                self._drop(folder)

    def delete_folder(self, path: str) -> None:
        """Remove all below a path."""
        inside = [folder for folder in self._folders if folder == path or folder.startswith(path + "/")]
        for folder in inside:
            del self._folders[folder]
        if inside:
            self._drop(path)

    def entries(self, folder: str) -> list[FileInfo]:
        """What a folder holds, sorted."""
        found = self._folders.get(folder, {})
        return [self.info(join(folder, name), found[name]) for name in sorted(found)]

    def info(self, path: str, file: _File | None) -> FileInfo:
        """What a listing says of a file, or (None) of a folder."""
        return FileInfo(path, 0, 0, True) if file is None else FileInfo(path, len(file.data), file.modified_ms, False)


class SimulatedStorage:
    """See `Storage`.

    Args:
        files: What is stored.
        place: Which kind of store it is.
        around: See `Around`; None for calls that just happen.
        folder: Paths are relative to it.
    """

    def __init__(self, files: Files, place: StoreKind, around: Around | None = None, folder: str = "") -> None:
        self._files, self._place, self._folder = files, place, folder
        self._around: Around = around if around is not None else lambda verb, path, act: act()

    @property
    def root(self) -> str:
        """See `Storage.root`."""
        return join(self._files.root, self._folder)

    def _found(self, path: str) -> _File:
        found = self._files.find(path)
        if found is None:
            raise NotFound(path)
        return found

    def read(self, path: str) -> bytes:
        """See `Storage.read`."""
        path = join(self._folder, path)
        data: bytes = self._around("read", path, lambda: self._found(path).data)
        return data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """See `Storage.read_range`."""
        path = join(self._folder, path)
        data: bytes = self._around("read_range", path, lambda: self._found(path).data)
        begin = offset if offset >= 0 else max(0, len(data) + offset)
        return data[begin : begin + length]

    def put(self, path: str, data: bytes) -> None:
        """See `Storage.put`."""
        path = join(self._folder, path)
        self._around("put", path, lambda: self._files.put(path, bytes(data)))

    def put_if_absent(self, path: str, data: bytes) -> None:
        """See `Storage.put_if_absent`."""
        path = join(self._folder, path)

        def create() -> None:
            if self._files.find(path) is not None:
                raise AlreadyExists(path)
            self._files.put(path, bytes(data))

        self._around("put_if_absent", path, create)

    def stage(self, files: Sequence[NewFile]) -> Staged:
        """See `Storage.stage`; each file is put by itself."""
        return HeldFiles(self, files)

    def put_if_unchanged(self, path: str, data: bytes, expected: bytes) -> bool:
        """See `Storage.put_if_unchanged`."""
        path = join(self._folder, path)

        def replace() -> bool:
            if self._found(path).data != expected:
                return False
            self._files.put(path, bytes(data))
            return True

        return bool(self._around("put_if_unchanged", path, replace))

    def prove_replaceable(self, path: str) -> None:
        """See `Storage.prove_replaceable`: it can."""

    def prove_conditions(self, path: str, other: bytes) -> None:
        """See `Storage.prove_conditions`: it keeps to them."""

    def guard(self, path: str) -> contextlib.AbstractContextManager[bool] | None:
        """See `Storage.guard`."""
        return self._guard(join(self._folder, path)) if self._place is StoreKind.DISK else None

    @contextlib.contextmanager
    def _guard(self, path: str) -> Iterator[bool]:
        got = False

        def take() -> bool:
            nonlocal got
            if self._files.find(path) is None:
                self._files.put(path, b"")
            got = path not in self._files.guarded
            self._files.guarded.add(path)
            return got

        try:
            yield bool(self._around("guard", path, take))
        finally:
            if got:
                self._files.guarded.discard(path)

    def delete(self, path: str) -> bool:
        """See `Storage.delete`."""
        path = join(self._folder, path)
        return bool(self._around("delete", path, lambda: self._files.delete(path)))

    @property
    def deletes_at_once(self) -> int:
        """See `Storage.deletes_at_once`; few, so that a kill comes between."""
        return 1 if self._place is StoreKind.DISK else 3

    def delete_some(self, paths: Sequence[str]) -> list[str]:
        """See `Storage.delete_some`."""
        there = [path for path in paths if self._files.find(join(self._folder, path)) is not None]

        def remove() -> None:
            for path in there:
                self._files.delete(join(self._folder, path))

        self._around("delete_some", join(self._folder, paths[0]), remove)
        return there

    def delete_folder(self, path: str) -> None:
        """See `Storage.delete_folder`."""
        path = join(self._folder, path)
        self._around("delete_folder", path, lambda: self._files.delete_folder(path))

    def list(self, path: str) -> list[FileInfo]:
        """See `Storage.list`."""
        where = join(self._folder, path)
        found: list[FileInfo] = self._around("list", where, lambda: self._files.entries(where))
        return [self._here(one) for one in found] if self._folder else found

    def _here(self, info: FileInfo) -> FileInfo:
        return FileInfo(info.path[len(self._folder) + 1 :], info.size, info.modified_ms, info.is_folder)

    def stat(self, path: str) -> FileInfo | None:
        """See `Storage.stat`."""
        where = join(self._folder, path)

        def look() -> FileInfo | None:
            found = self._files.find(where)
            return self._files.info(where, found) if found is not None or self._files.is_folder(where) else None

        found: FileInfo | None = self._around("stat", where, look)
        return None if found is None else FileInfo(path, found.size, found.modified_ms, found.is_folder)

    def is_file(self, path: str) -> bool:
        """See `Storage.is_file`."""
        found = self.stat(path)
        return found is not None and not found.is_folder

    def open_input(self, path: str, size: int = 0) -> Any:
        """See `Storage.open_input`."""
        path = join(self._folder, path)
        return pa.BufferReader(self._around("open_input", path, lambda: self._found(path).data))

    def open_output(self, path: str) -> _Output:
        """See `Storage.open_output`."""
        path = join(self._folder, path)
        in_place = self._place is StoreKind.DISK
        self._around("open_output", path, (lambda: self._files.put(path, b"")) if in_place else lambda: None)
        return _Output(self._files, path, self._around, in_place)

    def sub(self, path: str) -> SimulatedStorage:
        """See `Storage.sub`."""
        return SimulatedStorage(self._files, self._place, self._around, join(self._folder, path))


class _Output:
    """A file that is being written."""

    def __init__(self, files: Files, path: str, around: Around, in_place: bool) -> None:
        self._files, self._path, self._around, self.in_place = files, path, around, in_place
        self._written = bytearray()
        self.closed = False

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        """Nothing waits."""

    def tell(self) -> int:
        return len(self._written)

    def write(self, data: Any, /) -> int:
        """See `OutputStream.write`."""
        before = len(self._written)
        self._written += data
        return len(self._written) - before

    def close(self) -> None:
        """See `OutputStream.close`."""
        if not self.closed:
            self._around("close_output", self._path, lambda: self._files.put(self._path, bytes(self._written)))
            self.closed = True

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
            return
        self.closed = True
        if self.in_place:
            self._around("discard_output", self._path, lambda: self._files.delete(self._path))
