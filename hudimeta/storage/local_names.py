"""New names on a local disk, each of which appears with all of its bytes at once.

The bytes go into a nameless file first (`O_TMPFILE`), so that a killed process leaves nothing behind, and get their name by
a hard link, which fails when the name is taken. Where the system has no nameless files a temporary name in the same folder
serves; timeline readers ignore its ending `.tmp`. To replace a file its new bytes need a name: `<file>.tmp`, the same for all
who replace it, so that what a killed process leaves there goes with the next replacement. Folders come and go meanwhile: who
cleans up removes empty ones.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from hudimeta.errors import AlreadyExists, NotFound, StorageError
from hudimeta.storage.inside import linked
from hudimeta.storage.local_locks import to_lock

__all__ = [
    "AGAIN",
    "TEMPORARY_SUFFIX",
    "create",
    "drop_checksum",
    "give_name",
    "is_created",
    "make_folder",
    "open_nameless",
    "open_new",
    "replace",
    "sync_folder",
    "translated",
]

TEMPORARY_SUFFIX = ".tmp"
AGAIN = 100
"""How often a folder is removed anew that others make meanwhile, and made anew that others remove."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NAMELESS = getattr(os, "O_TMPFILE", 0)


def open_new(target: str) -> Any:
    """A new file; one of that name gives way, whatever it is."""
    with contextlib.suppress(FileExistsError):
        return _with_folder(target, lambda: open(target, "xb", buffering=1 << 20))
    os.unlink(target)
    return open(target, "xb", buffering=1 << 20)


BeforeName = Callable[[], None]
"""Called when a file's bytes are on the disk, right before it gets its name."""


def create(target: str, data: bytes, before: BeforeName) -> None:
    """Create `target` with all its bytes at once; FileExistsError when it is there."""
    _with_folder(target, lambda: _link_new(os.path.dirname(target), target, data, before))


def is_created(target: str, data: bytes, before: BeforeName) -> bool:
    """Create `target`, without a checksum that Hadoop kept of an older one; False when it is there."""
    drop_checksum(target)
    try:
        create(target, data, before)
    except FileExistsError:
        return False
    return True


def _with_folder(target: str, make: Callable[[], Any]) -> Any:
    """Make a file, and its folder where it lacks one, as often as others remove it."""
    folder = os.path.dirname(target)
    for _ in range(AGAIN):
        with contextlib.suppress(FileNotFoundError), _file_in_the_way(folder):
            return make()
        with contextlib.suppress(FileNotFoundError):
            make_folder(folder)
    return make()


def make_folder(folder: str) -> None:
    """Make a folder where there is none.

    Raises:
        StorageError: A file stands there. It is not another writer's file, which was first, nor is anything gone.
    """
    with contextlib.suppress(FileExistsError), _file_in_the_way(folder):  # asked in vain whether it is there, it may be
        os.makedirs(folder, exist_ok=True)


@contextlib.contextmanager
def _file_in_the_way(folder: str) -> Iterator[None]:
    """Name the file that stands where `folder`, or one above it, should be."""
    try:
        yield
    except (FileExistsError, NotADirectoryError) as error:
        while len(folder) > 1 and not os.path.isfile(folder):
            folder = os.path.dirname(folder)
        if len(folder) > 1:
            raise StorageError(folder, "a file is in the place of this folder", "Move it away.") from error
        raise


def replace(target: str, data: bytes, before: BeforeName) -> bool:
    """Give `target` other bytes at once; False when another process took the temporary name away: then it is to be tried again.

    Who writes under that name holds the operating system's lock on the file that has it.
    """
    temporary = target + TEMPORARY_SUFFIX
    with contextlib.ExitStack() as closing:
        try:
            fd = closing.enter_context(to_lock(temporary, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK))
        except FileNotFoundError:  # its folder is gone, and the target with it
            return False
        fcntl.flock(fd, fcntl.LOCK_EX)
        if not _has_name(fd, temporary):
            return False
        if os.fstat(fd).st_nlink != 1:  # another name of the same bytes keeps them
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            return False
        try:
            os.ftruncate(fd, 0)
            _write_all(fd, data)
            before()
            drop_checksum(target)
            os.replace(temporary, target)
        except FileNotFoundError:
            return False
        except OSError:
            os.unlink(temporary)
            raise
        return True


def _has_name(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def drop_checksum(target: str) -> None:
    """Remove the checksum file that Hadoop's local file system keeps of a file it wrote, and checks when it reads the file."""
    folder, name = os.path.split(target)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(os.path.join(folder, f".{name}.crc"))


def _link_new(folder: str, target: str, data: bytes, before: BeforeName) -> None:
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    nameless = _nameless(folder, data)
    if nameless is not None:
        try:
            before()
            give_name(nameless, target)
        finally:
            os.close(nameless)
        return
    temporary = f"{target}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        _write_all(fd, data)
        before()
        os.link(temporary, target)
    finally:
        os.close(fd)
        os.unlink(temporary)


def open_nameless(target: str, data: bytes) -> int | None:
    """A file without a name in the folder of `target`, which holds these bytes; None where the folder cannot have one."""
    try:
        return _nameless(os.path.dirname(target), data)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _nameless(folder: str, data: bytes) -> int | None:
    if not _NAMELESS:
        return None
    try:
        fd = os.open(folder, os.O_WRONLY | _NAMELESS, 0o644)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            raise
        return None
    try:
        _write_all(fd, data)
    except BaseException:
        os.close(fd)
        raise
    return fd


def give_name(fd: int, target: str) -> None:
    """Name a nameless file; FileExistsError when the name is taken."""
    # Naming a folder descriptor makes Python call linkat(), which follows the link in /proc; link() does not.
    os.link(f"/proc/self/fd/{fd}", target, src_dir_fd=fd, follow_symlinks=True)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    if data:
        os.fsync(fd)


def sync_folder(folder: str) -> None:
    """Make new names in a folder survive a power failure; with a folder that is gone again they are."""
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


@contextlib.contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn the operating system's errors into ours, which name the path as the table knows it."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(path) from error
    except FileExistsError as error:
        raise AlreadyExists(path) from error
    except PermissionError as error:
        named = path or str(error.filename or "")  # the table's own folder is "" below itself
        raise StorageError(named, "permission denied", "Check the owner and the mode of the file and its folder.") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise linked(path) from error
        hint = "Free some space, then write again: what this write left is taken back then." if error.errno in _FULL else ""
        raise StorageError(path or str(error.filename or ""), error.strerror or str(error), hint) from error
