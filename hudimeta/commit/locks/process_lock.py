"""A lock among the threads of one process (`InProcessLockProvider`): right when no other process writes the table.

Where the machine has OS locks, other hudimeta processes of this machine are kept out as well.
"""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Iterator

from hudimeta.commit.locks.protocol import GuardedLock, LockTiming, as_utc
from hudimeta.errors import LockTimeout
from hudimeta.storage import Storage

__all__ = ["ProcessLock"]

_LOCKS: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""The lock of each table, by the table's place."""
_HOLDERS: dict[str, tuple[str, int]] = {}
"""By place who holds it: name of the thread, and since when."""


class ProcessLock(GuardedLock):
    """See the module.

    Args:
        storage: Rooted at the table.
        timing: How long to wait.
    """

    def __init__(self, storage: Storage, timing: LockTiming | None = None) -> None:
        super().__init__(storage, timing)
        self._place = storage.root

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """See `TableLock.held`."""
        lock = _LOCKS[self._place]
        deadline = self._timing.deadline()
        while not lock.acquire(blocking=False):
            self._timing.wait_here(deadline, self._busy)
        _HOLDERS[self._place] = (threading.current_thread().name, self._timing.now_ms())
        try:
            with self._guard.entered(deadline):
                yield
        finally:
            del _HOLDERS[self._place]
            lock.release()

    def _busy(self) -> LockTimeout:
        hint = "Run the write again when that thread has finished; the lock ends with its process, nothing else breaks it."
        name, since = _HOLDERS.get(self._place, ("", 0))
        owner = f"another thread of this process, {name}" if name else "another thread of this process"
        return LockTimeout(self._place, owner, self._timing.wait_s, f"since {as_utc(since)}" if name else None, hint)

    def check(self) -> None:
        """See `TableLock.check`: a lock of a process is not lost."""
