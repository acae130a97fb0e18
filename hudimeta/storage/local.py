"""Storage on a local disk.

Small files are published atomically, as `local_names` has it.

No link below the root is followed (see `inside`). Files are replaced, never written into: other names keep their old bytes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat as stat_module
from collections.abc import Iterator, Sequence
from typing import Any

from hudimeta.errors import NotFound
from hudimeta.storage.inside import LocalFolders, check_kind, inside
from hudimeta.storage.local_listing import LocalListing, info_of
from hudimeta.storage.local_locks import to_lock
from hudimeta.storage.local_names import AGAIN, create, drop_checksum, is_created, make_folder, open_new, replace, translated
from hudimeta.storage.local_order import LocalOrder
from hudimeta.storage.local_staged import LocalStaged
from hudimeta.storage.output import FileOutput
from hudimeta.storage.protocol import FileInfo, OutputStream
from hudimeta.storage.staged import HeldFiles, NewFile, Staged

__all__ = ["LocalStorage", "in_one_go", "is_on_disk"]

_MOST_STAGED = 64
"""Each staged file is a descriptor."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
"""A pipe opens at once this way, and is refused by its kind."""


class LocalStorage:
    """A folder of the local file system.

    Args:
        root: Absolute path of the folder; it need not exist yet.
        durable: Streams that are closed survive a power failure. False for files that can be made anew, and are checked.
        whole: The storage of which this is a part; None for none.
    """

    def __init__(self, root: str, durable: bool = True, whole: LocalStorage | None = None) -> None:
        self._root, self._durable = root.rstrip("/") or "/", durable
        self.order: LocalOrder = whole.order if whole else LocalOrder()
        self._listing: LocalListing = whole._listing if whole else LocalListing()
        self._folders = LocalFolders(self._root)

    def __reduce__(self) -> tuple[type[LocalStorage], tuple[str, bool]]:
        """Another process looks for itself."""
        return LocalStorage, (self._root, self._durable)

    @property
    def root(self) -> str:
        """The folder's absolute path."""
        return self._root

    def __repr__(self) -> str:
        return f"LocalStorage({self._root!r})"

    def place_of(self, path: str) -> str:
        """The absolute path of a file that is about to be."""
        return self._at(path, change=True)

    def _at(self, path: str, *, change: bool = False) -> str:
        """The absolute path; `change` where something is written or deleted."""
        if not path:
            return self._root
        self._folders.check(inside(path).rpartition("/")[0], anew=change)
        return f"{self._root}/{path}"

    def _open(self, path: str) -> int:
        """A descriptor of a regular file, for reading."""
        fd = os.open(self._at(path), _READ)
        try:
            mode = os.fstat(fd).st_mode
            if not stat_module.S_ISREG(mode):
                check_kind(path, mode)
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def read(self, path: str) -> bytes:
        """See `Storage.read`."""
        with translated(path), open(self._open(path), "rb", buffering=0) as file:
            return file.read()

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """See `Storage.read_range`."""
        with translated(path):
            fd = self._open(path)
            try:
                if offset < 0:
                    offset = max(0, os.fstat(fd).st_size + offset)
                chunks = []
                while length > 0 and (chunk := os.pread(fd, length, offset)):
                    chunks.append(chunk)
                    offset, length = offset + len(chunk), length - len(chunk)
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)
            finally:
                os.close(fd)

    def put(self, path: str, data: bytes) -> None:
        """See `Storage.put`."""
        target = self.place_of(path)
        with translated(path):
            # A process may die at any moment, also while another of its threads is here: what is new gets its name at once.
            while os.path.lexists(target) or not is_created(target, data, self.order.wait):
                if replace(target, data, self.order.wait):
                    break
            self.order.named(target)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """See `Storage.put_if_absent`."""
        target = self.place_of(path)
        with translated(path):
            create(target, data, self.order.wait)
            self.order.named(target)

    def stage(self, files: Sequence[NewFile]) -> Staged:
        """See `Storage.stage`."""
        if len(files) > _MOST_STAGED:
            return HeldFiles(self, files)
        return LocalStaged(self, files)

    def put_if_unchanged(self, path: str, data: bytes, expected: bytes) -> bool:
        """See `Storage.put_if_unchanged`: the comparison and the replacement happen under a lock on the file's folder."""
        folder = os.path.dirname(self.place_of(path))
        with translated(path), to_lock(folder, os.O_RDONLY) as fd:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if self.read(path) != expected:
                return False
            self.put(path, data)
            return True

    def prove_replaceable(self, path: str) -> None:
        """See `Storage.prove_replaceable`: it can."""

    def prove_conditions(self, path: str, other: bytes) -> None:
        """See `Storage.prove_conditions`: it is not asked."""

    @contextlib.contextmanager
    def in_one_go(self) -> Iterator[None]:
        """What is written inside the with block is durable at its end, and what was listed in it is not looked at again.

        See `local_order` and `local_listing`.
        """
        with self._listing.remembering(), self.order.together():
            yield

    @contextlib.contextmanager
    def guard(self, path: str) -> Iterator[bool]:
        """See `Storage.guard`: an advisory lock on the file, which ends with the process."""
        target = self.place_of(path)
        with contextlib.ExitStack() as closing:
            with translated(path):
                make_folder(os.path.dirname(target))
                fd = closing.enter_context(to_lock(target, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW))
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def delete(self, path: str) -> bool:
        """See `Storage.delete`."""
        target = self.place_of(path)
        try:
            with translated(path):
                self.order.remove(target)
                drop_checksum(target)
        except NotFound:
            return False
        return True

    @property
    def deletes_at_once(self) -> int:
        """See `Storage.deletes_at_once`."""
        return 1

    def delete_some(self, paths: Sequence[str]) -> list[str]:
        """See `Storage.delete_some`."""
        return [path for path in paths if self.delete(path)]

    def delete_folder(self, path: str) -> None:
        """See `Storage.delete_folder`."""
        # Others may add files meanwhile, or remove the same ones: either ends a removal before its time.
        target = self.place_of(path)
        self._folders.check(path, anew=True)
        with translated(path):
            left = AGAIN
            while os.path.lexists(target):
                left -= 1
                try:
                    check_kind(path, os.lstat(target).st_mode)  # to open a pipe would be to wait for it
                    shutil.rmtree(target)
                except OSError as error:
                    # without a number: a folder inside was made anew between a look at it and its opening
                    if error.errno not in (None, errno.ENOENT, errno.ENOTEMPTY) or not left:
                        raise

    def list(self, path: str) -> list[FileInfo]:
        """See `Storage.list`."""
        where = self._at(path)
        self._folders.check(path)
        try:
            with translated(path):
                return self._listing.entries(where, path)
        except NotFound:
            return []

    def stat(self, path: str) -> FileInfo | None:
        """See `Storage.stat`."""
        try:
            with translated(path):
                return info_of(path, os.lstat(self._at(path)) if path else os.stat(self._root))
        except NotFound:
            return None

    def is_file(self, path: str) -> bool:
        """See `Storage.is_file`."""
        found = self.stat(path)
        return found is not None and not found.is_folder

    def open_input(self, path: str, size: int = 0) -> Any:
        """See `Storage.open_input`. The file is memory mapped."""
        import pyarrow as pa

        target = self._at(path)
        with translated(path):
            found = os.lstat(target)
            check_kind(path, found.st_mode)
            return pa.memory_map(target) if found.st_size else pa.OSFile(target)

    def open_output(self, path: str) -> OutputStream:
        """See `Storage.open_output`."""
        target = self.place_of(path)
        with translated(path):
            return _LocalOutput(path, target, open_new(target), self._durable)

    def sub(self, path: str) -> LocalStorage:
        """See `Storage.sub`."""
        where = self._at(path)
        self._folders.check(path)
        return LocalStorage(where, self._durable, self)


class _LocalOutput(FileOutput):
    """A file written in place; pyarrow sees it as a Python file object."""

    def __init__(self, path: str, target: str, file: Any, durable: bool) -> None:
        super().__init__(file)
        self._path, self._target, self._durable = path, target, durable

    @property
    def in_place(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        with translated(self._path):
            return super().write(data)

    def flush(self) -> None:
        with translated(self._path):
            super().flush()

    def close(self) -> None:
        if self._file.closed:
            return
        with translated(self._path):
            try:
                self._file.flush()
                if self._durable:
                    os.fsync(self._file.fileno())
                self._file.close()
            except OSError:
                self.discard()
                raise

    def discard(self) -> None:
        # What is still to be written may be just what cannot be; the file is closed all the same.
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(NotFound), translated(self._path):
            os.unlink(self._target)


def in_one_go(storage: object) -> contextlib.AbstractContextManager[None]:
    """`LocalStorage.in_one_go` of the local disk below some storage; on other stores each request stands for itself."""
    disk = _disk_below(storage)
    return contextlib.nullcontext() if disk is None else disk.in_one_go()


def is_on_disk(storage: object) -> bool:
    """Whether below some storage is the local disk, so that no request waits for a network."""
    return _disk_below(storage) is not None


def _disk_below(storage: object) -> LocalStorage | None:
    while storage is not None and not isinstance(storage, LocalStorage):
        storage = getattr(storage, "inner", None)
    return storage
