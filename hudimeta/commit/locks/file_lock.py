"""Apache Hudi's lock of a file (`FileSystemBasedLockProvider`): who creates it holds the lock, who deletes it gives it back.

The file is `<hoodie.write.lock.filesystem.path>/lock`, or `.hoodie/lock` of the table. Its content is for people: JSON with
`lockCreateTime`, `lockThreadName` and `lockStacksInfo`, as Hudi's, and `owner` of ours. It counts as left behind when nobody
changed it for `hoodie.write.lock.filesystem.expire` minutes; a holder of ours writes it anew meanwhile. Without that option it
stays until somebody deletes it, but for those of dead hudimeta processes of this machine (see `MachineGuard`).

What the file cannot do: Hudi deletes it whenever one of its clients closes, its own or not, and takes over an expired one in
two steps. A writer of ours finds out before it publishes anything, since the file has to hold its own content still.
"""

from __future__ import annotations

import contextlib
import json
import threading
import warnings
from datetime import datetime, timezone
from functools import partial

from hudimeta.commit.locks.protocol import LockTiming, RenewedLock, is_of_this_machine
from hudimeta.config import HudiWarning
from hudimeta.errors import AlreadyExists, LockLost, LockTimeout, NotFound, StorageError, UnsupportedFeature
from hudimeta.formats.json_text import parse_json
from hudimeta.storage import Storage

__all__ = ["DEFAULT_FOLDER", "FILE_NAME", "FileLock"]

DEFAULT_FOLDER = ".hoodie"
FILE_NAME = "lock"
_RENEWALS_BEFORE_IT_EXPIRES = 4
_LOOKED_AT: set[str] = set()
"""Places whose store was seen to keep to the conditions of requests, by this process."""


class FileLock(RenewedLock):
    """See the module. One object serves one writer; `held` may be entered again after it was left.

    Args:
        table: Storage rooted at the table, whose OS locks tell of dead processes.
        folder: Storage rooted where the file is.
        shown: The file, for errors.
        expire_s: After how many seconds without a change it counts as left behind; 0 for never.
        timing: Clocks, and how long to wait.
    """

    def __init__(
        self, table: Storage, folder: Storage, shown: str, expire_s: float = 0, timing: LockTiming | None = None
    ) -> None:
        super().__init__(table, timing)
        self._folder, self._shown, self._expire_s = folder, shown, expire_s
        self._mine: bytes | None = None
        self._changing = threading.Lock()

    @property
    def _renew_every_s(self) -> float:
        return self._expire_s / _RENEWALS_BEFORE_IT_EXPIRES

    def check(self) -> None:
        """See `TableLock.check`: the file is there and holds what we wrote."""
        with self._changing:
            found = self._read()
            if self._mine is None or found != self._mine:
                raise LockLost(self._shown, "nobody: the file is gone" if found is None else _owner_of(found))

    def _take(self, deadline: float, guarded: bool) -> None:
        while True:
            wanted = self._content()
            found = self._read()
            if found is None:
                taken = self._create(wanted)
            else:
                taken = self._is_left_behind(found, guarded) and self._folder.put_if_unchanged(FILE_NAME, wanted, found)
            if taken:
                self._mine = wanted
                return
            self._timing.wait(deadline, partial(self._busy, found))

    def _create(self, wanted: bytes) -> bool:
        try:
            self._folder.put_if_absent(FILE_NAME, wanted)
        except AlreadyExists:
            # A store's client repeats a request whose answer was lost, and then hears that somebody was first: itself.
            return self._read() == wanted
        except StorageError:
            if self._read() != wanted:
                raise
        self._look_at_first()
        return True

    def _look_at_first(self) -> None:
        """See by the first lock of this process what its store does.

        Raises:
            UnsupportedFeature: It creates files that are there, so that the lock is none; the file is gone again.
            StorageError: It does not answer; the file is gone again, since nobody would give it back.
        """
        if self._folder.root in _LOOKED_AT:
            return
        try:
            self._folder.prove_conditions(FILE_NAME, self._content())
        except (UnsupportedFeature, StorageError):
            self._folder.delete(FILE_NAME)
            raise
        _LOOKED_AT.add(self._folder.root)

    def _is_left_behind(self, found: bytes, guarded: bool) -> bool:
        if guarded and is_of_this_machine(_owner_of(found)):
            return True
        if not self._expire_s:
            return False
        about = self._folder.stat(FILE_NAME)
        if about is None or self._timing.now_ms() - about.modified_ms <= self._expire_s * 1000:
            return False
        message = (
            f"the table lock {self._shown} of {_owner_of(found)} is taken over: nobody changed it for {self._expire_s:.0f} s"
        )
        warnings.warn(message, HudiWarning, stacklevel=2)
        return True

    def _busy_here(self) -> LockTimeout:
        return self._busy(self._read())

    def _busy(self, found: bytes | None) -> LockTimeout:
        if found is None:
            return LockTimeout(self._shown, "somebody who was quicker", self._timing.wait_s)
        since = _text(found, "lockCreateTime")
        hint = (
            f"Run the write again when the other writer has finished. If no writer runs, its owner died: delete {self._shown}."
        )
        return LockTimeout(self._shown, _owner_of(found), self._timing.wait_s, f"since {since}" if since else None, hint)

    def _content(self) -> bytes:
        now = datetime.fromtimestamp(self._timing.now_ms() / 1000, timezone.utc)
        fields = {
            "lockCreateTime": f"{now:%Y-%m-%d %H:%M:%S.%f}"[:-3],
            "lockThreadName": threading.current_thread().name,
            "lockStacksInfo": "",
            "owner": self._owner,
        }
        return json.dumps(fields).encode()

    def _read(self) -> bytes | None:
        try:
            return self._folder.read(FILE_NAME)
        except NotFound:
            return None

    def _renew(self) -> None:
        """Write the file anew. Where that fails, `check` tells whether it is ours still."""
        with self._changing, contextlib.suppress(StorageError, NotFound, UnsupportedFeature):
            wanted = self._content()
            if self._mine is not None and self._folder.put_if_unchanged(FILE_NAME, wanted, self._mine):
                self._mine = wanted

    def _release(self) -> None:
        """Delete the file if it is ours. What was done under the lock is done: an error here only leaves the file behind."""
        with self._changing, contextlib.suppress(StorageError):
            mine, self._mine = self._mine, None
            if mine is not None and self._read() == mine:
                self._folder.delete(FILE_NAME)


def _owner_of(content: bytes) -> str:
    return _text(content, "owner") or f"a writer in thread {_text(content, 'lockThreadName') or 'unknown'} of another program"


def _text(content: bytes, name: str) -> str | None:
    """A text of the lock file's JSON; None when the file holds something else, which whoever writes it may decide."""
    try:
        found = parse_json(content)
    except ValueError:
        return None
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, str) else None
