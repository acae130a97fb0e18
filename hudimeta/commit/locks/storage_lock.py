"""Hudi's storage-based lock (`StorageBasedLockProvider`): one small file and conditional writes.

`.hoodie/.locks/table_lock.json` holds `{"expired": bool, "validUntil": epoch milliseconds, "owner": text}`. It is free when it
is absent, expired, or its time is over by more than the clock drift that Hudi allows. The owner renews it while it works and
releases it by marking it expired, because deleting on condition is not portable. A lease takes minutes to run out after a
crash, so on a local disk an OS lock stands beside it: who holds the OS lock and finds a lease of another hudimeta process of
this machine knows that its owner is dead.

A holder leaves a word for the next one: `"published"`, the file on the timeline that was completed last. Stores answer a GET
with the newest bytes even where their lists come late, so the next holder sees when a list lacks it (`fence.FencedStorage`).
Apache Hudi reads past the word, and what it writes is without it: then nothing is compared.
"""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import dataclass, replace
from functools import partial

from hudimeta.commit.locks.protocol import LOCK_FOLDER, LockTiming, RenewedLock, as_utc, is_of_this_machine
from hudimeta.errors import (
    AlreadyExists,
    CorruptFileError,
    LockLost,
    LockTimeout,
    NotFound,
    StorageError,
    UnsupportedFeature,
)
from hudimeta.formats.json_text import parse_json
from hudimeta.storage import Storage
from hudimeta.table.properties_file import PROPERTIES_PATH

__all__ = ["LOCK_PATH", "Lease", "StorageLock"]

LOCK_PATH = LOCK_FOLDER + "/table_lock.json"
_RELEASES = 3
"""How often a release is tried."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The content of the lock file. Attributes: published: What a holder completed last, a path; empty where nobody says so."""

    expired: bool
    valid_until: int
    owner: str
    published: str = ""

    def encode(self) -> bytes:
        """As bytes of JSON."""
        fields: dict[str, bool | int | str] = {"expired": self.expired, "validUntil": self.valid_until, "owner": self.owner}
        if self.published:
            fields["published"] = self.published
        return json.dumps(fields, separators=(",", ":")).encode()

    @staticmethod
    def decode(data: bytes) -> Lease:
        """From bytes of JSON. Raises CorruptFileError."""
        try:
            fields = parse_json(data)
            lease = Lease(bool(fields["expired"]), int(fields["validUntil"]), str(fields["owner"]))
            return replace(lease, published=str(fields.get("published", "")))
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFileError(
                LOCK_PATH, 0, "a lock file", data[:40], "If no writer is running, delete the file and write again."
            ) from error


class StorageLock(RenewedLock):
    """See the module. One object serves one writer; `held` may be entered again after it was left."""

    def __init__(self, storage: Storage, timing: LockTiming | None = None) -> None:
        super().__init__(storage, timing)
        self._storage = storage
        self._mine: bytes | None = None
        self._guessed: bytes | None = None
        self._began = 0, 0.0
        self._guarded = False
        self._lost_to: str | None = None
        self._guard_lease = threading.Lock()

    @property
    def _renew_every_s(self) -> float:
        return self._timing.renew_s

    def check(self) -> None:
        """See `TableLock.check`: the lease in storage is still the one that we wrote, and has time left."""
        with self._guard_lease:
            if self._lost_to is not None:
                raise LockLost(LOCK_PATH, self._lost_to)
            if self._mine is None or Lease.decode(self._mine).valid_until <= self._now_ms():
                raise LockLost(LOCK_PATH, "nobody: the lease ran out")

    def look_at_store(self) -> None:
        """See `TableLock.look_at_store`: leases are replaced on condition."""
        self._storage.prove_replaceable(PROPERTIES_PATH)

    def look_ahead(self) -> None:
        """See `TableLock.look_ahead`: the lease, which is replaced only if it is still the same."""
        self._guessed = self._read()

    def _take(self, deadline: float, guarded: bool) -> None:
        self._guarded = guarded
        while True:
            self._began = self._timing.now_ms(), self._timing.monotonic()
            guessed, self._guessed = self._guessed, None
            found = guessed or self._read()
            lease = None if found is None else Lease.decode(found)
            self.published = lease.published if lease is not None else ""
            wanted = self._lease().encode()
            if (lease is None or self._is_free(lease)) and self._write(wanted, found):
                self._mine, self._lost_to = wanted, None
                return
            if guessed is not None:
                continue
            self._timing.wait(deadline, partial(self._busy, lease))

    def _busy(self, lease: Lease | None) -> LockTimeout:
        if lease is None or lease.expired:
            return LockTimeout(LOCK_PATH, "somebody who was quicker", self._timing.wait_s)
        hint = (
            "Run the write again when the other writer has finished; a dead owner's lease runs out by itself. To break the "
            f"lock when no writer runs, delete {LOCK_PATH} below the table."
        )
        return LockTimeout(LOCK_PATH, lease.owner, self._timing.wait_s, self._since(lease), hint)

    def _busy_here(self) -> LockTimeout:
        """Another process of this machine has the lock; its lease says which."""
        found = self._read()
        return self._busy(None if found is None else Lease.decode(found))

    def _since(self, lease: Lease) -> str:
        """When the holder last wrote the file, at the beginning or at a renewal, and how long that is good for."""
        until = f"until {as_utc(lease.valid_until)} if it is not renewed"
        try:
            about = self._storage.stat(LOCK_PATH)
        except StorageError:
            about = None
        return until if about is None or not about.modified_ms else f"since {as_utc(about.modified_ms)}, {until}"

    def _read(self) -> bytes | None:
        try:
            return self._storage.read(LOCK_PATH)
        except NotFound:
            return None

    def _write(self, wanted: bytes, found: bytes | None) -> bool:
        """Put a lease in the place of what was found; False when somebody else was first."""
        try:
            if found is None:
                self._storage.put_if_absent(LOCK_PATH, wanted)
                self._look_at_first(wanted)
                return True
            if self._storage.put_if_unchanged(LOCK_PATH, wanted, found):
                return True
        except (AlreadyExists, NotFound):
            pass
        except StorageError:
            # The request may have been carried out although its answer was lost.
            if self._read() != wanted:
                raise
            return True
        # A store's client repeats a request whose answer was lost, and then hears that somebody was first: itself.
        return self._read() == wanted

    def _look_at_first(self, lease: bytes) -> None:
        """See by the lease that is the first of its table what its store does.

        Nobody could give it back where it cannot be replaced, and that showed at the end. Where conditions are passed over, the
        lock is none, and that never showed.

        Raises:
            UnsupportedFeature: The store does not replace a file on condition, or without it; the lease is gone again.
        """
        if self._guarded:
            return  # a local disk
        try:
            self._storage.put_if_unchanged(LOCK_PATH, lease, lease)
            self._storage.prove_conditions(LOCK_PATH, Lease(True, 0, self._owner).encode())
        except UnsupportedFeature:
            self._storage.delete(LOCK_PATH)
            raise

    def _is_free(self, lease: Lease) -> bool:
        if lease.expired or lease.valid_until + self._timing.drift_s * 1000 < self._timing.now_ms():
            return True
        return self._guarded and is_of_this_machine(lease.owner)

    def _lease(self) -> Lease:
        return Lease(False, self._now_ms() + int(self._timing.lease_s * 1000), self._owner, self.published)

    def _now_ms(self) -> int:
        """The present of a holder, whose clock may be set back: its lease still ends, and its renewals are good for others."""
        began_ms, began = self._began
        return max(self._timing.now_ms(), began_ms + int((self._timing.monotonic() - began) * 1000))

    def _renew(self) -> None:
        with self._guard_lease:
            if self._mine is None or self._lost_to is not None:
                return
            wanted = self._lease().encode()
            # A renewal that fails is tried again at the next turn; `check` sees when the lease ran out meanwhile.
            with contextlib.suppress(StorageError):
                if self._write(wanted, self._mine):
                    self._mine = wanted
                else:
                    self._lost_to = self._new_owner()

    def _new_owner(self) -> str:
        """Who replaced our lease, for the error; a file that says nothing is no reason to go on."""
        found = self._read()
        if found is None:
            return "nobody: the file is gone"
        try:
            return Lease.decode(found).owner
        except CorruptFileError:
            return "somebody unknown: the file is damaged"

    def _release(self) -> None:
        """Mark the lease expired. What was done under the lock is done: errors here only leave the lease to run out.

        That may take minutes, in which nobody writes: so a request that failed is repeated.
        """
        with self._guard_lease:
            mine, self._mine = self._mine, None
            if mine is None or self._lost_to is not None:
                return
            lease = Lease.decode(mine)
            released = Lease(True, lease.valid_until, lease.owner, self.published).encode()
            for _ in range(_RELEASES):
                with contextlib.suppress(StorageError):
                    self._storage.put_if_unchanged(LOCK_PATH, released, mine)
                    return
