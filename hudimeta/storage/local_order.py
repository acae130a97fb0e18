"""New names on a local disk become durable together where the file system keeps them in order.

A file's bytes are on the disk before it has a name, see `local_names`. The name itself is durable once its folder was brought
to the disk, for which whoever holds a lock would wait several times. A file system with one journal of metadata writes names
in the order in which they were given: a power failure may take the last ones, never one before another that stays. There it is
enough to wait at the end, before anybody is told that the write is done. On all others each name is waited for at once.

A name that goes takes the file's space with it, which is most of the work. That is done at the end as well: until then the file
is open.
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from hudimeta.config import HudiWarning
from hudimeta.storage.local_names import sync_folder

__all__ = ["LocalOrder", "device_of", "keeps_order", "kind_of_device"]

_ORDERED = frozenset({"ext3", "ext4", "xfs"})
"""File systems whose journal takes all changes of names, in their order."""
_MOST_OPEN = 256
"""Removed files that are open at a time: a process may have a thousand descriptors."""
_ONLY_THE_NAME = getattr(os, "O_PATH", 0)
_MOUNTS = Path("/proc/self/mountinfo")


def kind_of_device(mounts: str, device: int) -> str:
    """The kind of the file system on a device.

    Args:
        mounts: Content of `/proc/self/mountinfo`, a line a mount: `27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw`.
        device: `st_dev` of a file on it.

    Returns:
        Such as `ext4`; "" where no mount has that device.
    """
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.splitlines():
        mount, _, source = line.partition(" - ")
        if mount.split()[2:3] == [number]:
            return source.partition(" ")[0]
    return ""


@lru_cache(maxsize=64)
def keeps_order(device: int) -> bool:
    """Whether a device keeps new names in the order in which they were given; False where the system does not tell."""
    try:
        return kind_of_device(_MOUNTS.read_text(errors="replace"), device) in _ORDERED
    except OSError:
        return False


def device_of(folder: str) -> int:
    """The number of the device that holds a folder. Raises FileNotFoundError."""
    return os.stat(folder).st_dev


class LocalOrder:
    """New names below one root; see the module."""

    def __init__(self) -> None:
        self._together = 0
        self._waiting: dict[str, int] = {}
        """The device of each folder that has a name which is not durable yet."""
        self._removed: list[int] = []
        """Descriptors of files without a name."""
        self._lock = threading.Lock()

    def named(self, target: str) -> None:
        """A file got its name: make that durable, now or at the end of `together`."""
        folder = os.path.dirname(target)
        if self._together:
            try:
                device = device_of(folder)
            except FileNotFoundError:  # the name is gone with its folder
                return
            if keeps_order(device) and self._waits(folder, device):
                return
            self.settle()  # what another journal is to have before
        sync_folder(folder)

    def _waits(self, folder: str, device: int) -> bool:
        with self._lock:
            if not self._together or any(other != device for other in self._waiting.values()):
                return False
            self._waiting[folder] = device
            return True

    def remove(self, target: str) -> None:
        """Take the name of a file away. Raises FileNotFoundError."""
        held = None
        if self._together and _ONLY_THE_NAME and len(self._removed) < _MOST_OPEN:
            with contextlib.suppress(OSError):  # a removal that fails says why
                held = os.open(target, _ONLY_THE_NAME | os.O_NOFOLLOW)
        try:
            os.unlink(target)
        finally:
            if held is not None:
                with self._lock:
                    self._removed.append(held)

    def settle(self) -> None:
        """Make durable what was named until now, and give back the space of what was removed."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            removed, self._removed = self._removed, []
        for descriptor in removed:
            os.close(descriptor)
        for folder in waiting:  # the first one takes most of what the others have with it
            sync_folder(folder)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Names that are given inside the with block are durable at its end.

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
