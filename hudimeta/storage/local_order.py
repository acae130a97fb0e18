"""New names on a local disk, which become durable in the order in which they were given.

A file's bytes are on the disk before it has a name, see `local_names`; the name is durable once its folder was brought to the
disk. Whoever gives several names under a lock would wait for the disk after each of them, and then for a core. So within
`together` the disk works beside what comes next, such as the bytes of the next file. Only the next name waits for it: a power
failure may take the last name that was given, never one before another that stays. The end of `together` waits for all,
before anybody is told that the write is done.

A name that goes takes the file's space with it, which is most of the work. Within `together` that is left to its end: until
then the file is open.
"""

from __future__ import annotations

import contextlib
import os
import resource
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hudimeta.config import HudiWarning
from hudimeta.forking import FreeWhenForked
from hudimeta.storage.at_once import StayingThreads
from hudimeta.storage.local_names import sync_folder

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["LocalOrder"]

_DISK = StayingThreads(6, "hudimeta-disk")
"""A small commit gives names in so many folders."""
_MOST_OPEN = 4096
_ONLY_THE_NAME = getattr(os, "O_PATH", 0)


def _most_open() -> int:
    """How many removed files may be open at a time: half of what the process may open."""
    may = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST_OPEN if may == resource.RLIM_INFINITY else min(_MOST_OPEN, may // 2)


class LocalOrder:
    """New names below one root; see the module."""

    def __init__(self) -> None:
        self._together = 0
        self._syncing: dict[str, Future[None]] = {}
        """What brings a folder to the disk that has a name which may not be durable yet."""
        self._removed: list[int] = []
        """Descriptors of files without a name."""
        self._most_open = _most_open() if _ONLY_THE_NAME else 0
        self._process = os.getpid()
        self._lock = FreeWhenForked()

    def wait(self) -> None:
        """Wait until what was named is durable: only then another name may be given.

        Raises:
            OSError: The disk does not take it.
        """
        if not self._syncing:
            return
        with self._lock:
            self._leave_to_parent()
            syncing = list(self._syncing.items())
        for folder, running in syncing:
            try:
                running.result()
            finally:
                with self._lock:
                    if self._syncing.get(folder) is running:
                        del self._syncing[folder]

    def _leave_to_parent(self) -> None:
        """In a forked child: what its parent waits for runs on threads that only that has."""
        if os.getpid() != self._process:
            self._process, self._syncing = os.getpid(), {}

    def named(self, target: str) -> None:
        """A file got its name: make that durable, now or, within `together`, beside what comes next."""
        folder = os.path.dirname(target)
        if not self._together:
            sync_folder(folder)
            return
        with self._lock:
            self._leave_to_parent()
            running = _DISK.begin(sync_folder, folder)
            if running is not None:
                self._syncing[folder] = running

    def remove(self, target: str) -> None:
        """Take the name of a file away. Raises FileNotFoundError."""
        held = None
        if self._together and len(self._removed) < self._most_open:
            with contextlib.suppress(OSError):  # a removal that fails says why
                held = os.open(target, _ONLY_THE_NAME | os.O_NOFOLLOW)
        try:
            os.unlink(target)
        finally:
            if held is not None:
                with self._lock:
                    self._removed.append(held)

    def settle(self) -> None:
        """Give back the space of what was removed, and wait until what was named is durable."""
        with self._lock:
            removed, self._removed = self._removed, []
        for descriptor in removed:
            os.close(descriptor)
        self.wait()

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """What is named inside the with block is durable at its end.

        A disk that fails there is warned of: what got its name can be seen, and is no error any more.
        """
        with self._lock:
            self._together += 1
        try:
            yield
        finally:
            with self._lock:
                self._together -= 1
            try:
                self.settle()
            except OSError as error:
                text = f"what was written may not survive a power failure, since the disk did not confirm it: {error}"
                warnings.warn(text, HudiWarning, stacklevel=4)
