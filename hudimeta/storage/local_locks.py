"""Locks of the operating system on files and folders of a local disk.

Such a lock ends with the process that took it, however that dies. But it belongs to what was opened, and a process that is
forked meanwhile, as by `multiprocessing`, has that open as well: it would hold the lock for as long as it lives, though the
writer is long through, or dead. So a forked process closes what it got.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator

__all__ = ["to_lock"]

_open: set[int] = set()
_changing = threading.RLock()
"""Held while one is opened or closed, and while a process is forked: then `_open` names all that the new one gets."""


@contextlib.contextmanager
def to_lock(path: str, flags: int, mode: int = 0o644) -> Iterator[int]:
    """A descriptor to be locked, in this process alone, and closed at the end of the with block.

    Args:
        path: Absolute.
        flags: As `os.open` has them.
        mode: The same.
    """
    with _changing:
        fd = os.open(path, flags, mode)
        _open.add(fd)
    try:
        yield fd
    finally:
        with _changing:
            if fd in _open:  # else this is a forked process, which has closed it
                _open.remove(fd)
                fcntl.flock(fd, fcntl.LOCK_UN)  # a process that was just forked may not have closed it yet
                os.close(fd)


def _let_go() -> None:
    """In a forked process."""
    while _open:
        os.close(_open.pop())
    _changing.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_changing.acquire, after_in_parent=_changing.release, after_in_child=_let_go)
