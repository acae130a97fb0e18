"""What a writer asks of a lock, how long it waits, and what all locks have in common on one machine."""

from __future__ import annotations

import abc
import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Protocol

from hudimeta.engine import machine
from hudimeta.errors import LockTimeout
from hudimeta.storage import Storage

__all__ = [
    "LOCK_FOLDER",
    "GuardedLock",
    "LockTiming",
    "MachineGuard",
    "TableLock",
    "as_utc",
    "is_of_this_machine",
    "new_owner",
    "RenewedLock",
]

LOCK_FOLDER = ".hoodie/.locks"
_GUARD_PATH, _NEXT_PATH = LOCK_FOLDER + "/.guard", LOCK_FOLDER + "/.next"
_LONG_POLLS = 20
"""After so many pauses of usual length somebody has waited for long."""
_NEXT_S = 5.0
"""For so long a writer waits to be the next one: who is may be stopped, and keeps nobody from the lock."""


class TableLock(Protocol):
    """What a writer asks of a lock.

    Attributes:
        published: The file that a holder put on the timeline last to complete something, relative to the table; empty where
            nobody says so. Whoever holds the lock sets it, and locks that can tell the next holder.
    """

    published: str

    def look_at_store(self) -> None:
        """Look whether the lock can be taken where the table is, before anything is written that only its holder may remove.

        Raises:
            UnsupportedFeature: The store lacks what the lock needs.
        """

    def held(self) -> contextlib.AbstractContextManager[None]:
        """Hold the lock for the length of a with block. Raises LockTimeout when it does not become free."""

    def alone_here(self) -> contextlib.AbstractContextManager[None]:
        """Keep out the other processes of this machine, without a request; where that cannot be, nothing is kept out."""

    def look_ahead(self) -> None:
        """Ask for what `held` will ask for first, which may wait beside other requests; it is only a guess until then."""

    def next_here(self) -> contextlib.AbstractContextManager[float]:
        """Be the one of this machine's processes that takes the lock next, so that what it makes ready is not out of date then.

        The others sleep meanwhile. It is no promise: whoever waits too long for it goes on, and so does everybody where there
        are no OS locks. The with block gets the seconds that were waited in vain; 0 but for who goes on without its turn.
        """

    def check(self) -> None:
        """Raises LockLost when the lock is not ours any more; called right before something is published."""


@dataclass(frozen=True)
class LockTiming:
    """Durations in seconds, and the clocks: parameters, so that tests do not wait.

    Attributes:
        lease_s: How long a lease lasts.
        renew_s: How often it is renewed.
        drift_s: Clock drift between machines that is granted to a foreign owner.
        wait_s: How long to wait for a busy lock.
        poll_s: Pause between two looks.
        now_ms: Milliseconds since 1970.
        monotonic: Seconds of a clock that is never set.
        pause: Sleeps so many seconds.
    """

    lease_s: float = 300.0
    renew_s: float = 30.0
    drift_s: float = 0.5
    wait_s: float = 60.0
    poll_s: float = 0.05
    now_ms: Callable[[], int] = machine.now_ms
    monotonic: Callable[[], float] = machine.monotonic
    pause: Callable[[float], None] = machine.pause

    def deadline(self) -> float:
        """When waiting that begins now is over, by `monotonic`."""
        return self.monotonic() + self.wait_s

    def wait(self, deadline: float, busy: Callable[[], LockTimeout]) -> None:
        """Pause before the next look.

        Args:
            deadline: See `deadline`.
            busy: Makes the error that is raised when it is over.

        Raises:
            LockTimeout: It is over.
        """
        if self.monotonic() >= deadline:
            raise busy()
        self.pause(self.poll_s)

    def wait_here(self, deadline: float, busy: Callable[[], LockTimeout]) -> None:
        """The same for a lock of this machine, at which a look costs no request.

        A lock is held for some hundredths of a second: who has just come looks soon. Who has waited for long looks more often
        than others, so that nobody is passed over for ever.
        """
        waited = self.monotonic() - (deadline - self.wait_s)
        if self.monotonic() >= deadline:
            raise busy()
        often, seldom, soon = self.poll_s / 4, self.poll_s / 2, self.poll_s / 40
        self.pause(often if waited > _LONG_POLLS * self.poll_s else min(seldom, max(soon, waited / 2)))


def as_utc(milliseconds: int) -> str:
    """A moment as text for an error: `2024-05-17 08:30:00 UTC`; what is no moment stays a number."""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _machine() -> str:
    return f"hudimeta/{socket.gethostname()}/"


def new_owner() -> str:
    """A name for one writer of this process: machine, process and a number that nobody else has."""
    return f"{_machine()}{os.getpid()}/{machine.machine().new_id()}"


def is_of_this_machine(owner: str) -> bool:
    """Whether a name was made by `new_owner` on this machine."""
    return owner.startswith(_machine())


class MachineGuard:
    """An OS lock beside the table's lock: dead processes of this machine do not hold it.

    Who has it and finds the table locked by another hudimeta process of this machine knows that this one is dead.

    Args:
        storage: Rooted at the table; a store without OS locks keeps nobody out.
        timing: How long to wait.
        path: The file that is locked.
    """

    def __init__(self, storage: Storage, timing: LockTiming, path: str = _GUARD_PATH) -> None:
        self._storage, self._timing, self._path = storage, timing, path

    @contextlib.contextmanager
    def entered(self, deadline: float | None = None, busy: Callable[[], LockTimeout] | None = None) -> Iterator[bool]:
        """Hold it for the length of a with block, which gets False where there are no OS locks.

        Args:
            deadline: When to give up, by `LockTiming.monotonic`; None for as long as `timing` says.
            busy: Makes the error of that, where the lock tells who has it.

        Raises:
            LockTimeout: Another process holds it for too long.
        """
        deadline = self._timing.deadline() if deadline is None else deadline
        while True:
            guard = self._storage.guard(self._path)
            if guard is None:
                yield False
                return
            with guard as got:
                if got:
                    yield True
                    return
            self._timing.wait_here(deadline, busy or self.busy)

    def busy(self) -> LockTimeout:
        """The error of waiting too long."""
        hint = "Run the write again when that process has finished; the operating system frees the lock of one that died."
        return LockTimeout(self._path, "another process of this machine", self._timing.wait_s, hint=hint)


class GuardedLock:
    """What the locks have in common: a name for their writer, and an OS lock that they take first.

    Args:
        storage: Rooted at the table.
        timing: How long to wait, and the clocks.
    """

    def __init__(self, storage: Storage, timing: LockTiming | None) -> None:
        self._timing = timing or LockTiming()
        self._guard = MachineGuard(storage, self._timing)
        self._next = MachineGuard(storage, replace(self._timing, wait_s=min(_NEXT_S, self._timing.wait_s)), _NEXT_PATH)
        self._owner = new_owner()
        self.published = ""

    def look_at_store(self) -> None:
        """See `TableLock.look_at_store`; most locks need nothing of the store."""

    @contextlib.contextmanager
    def alone_here(self) -> Iterator[None]:
        """See `TableLock.alone_here`."""
        with self._guard.entered():
            yield

    def look_ahead(self) -> None:
        """See `TableLock.look_ahead`; most locks ask for nothing."""

    @contextlib.contextmanager
    def next_here(self) -> Iterator[float]:
        """See `TableLock.next_here`."""
        begin, in_vain = self._timing.monotonic(), 0.0
        with contextlib.ExitStack() as place:
            try:
                place.enter_context(self._next.entered())
            except LockTimeout:
                in_vain = self._timing.monotonic() - begin
            yield in_vain


class RenewedLock(GuardedLock, abc.ABC):
    """A lock that its holder renews again and again: others may take one that nobody renewed for some time."""

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """See `TableLock.held`."""
        deadline = self._timing.deadline()
        # Threads start and end while the lock is not held: on a busy machine that takes long.
        with (
            _renewed(self._renew, self._renew_every_s),
            self._guard.entered(deadline, self._busy_here) as guarded,
        ):
            self._take(deadline, guarded)
            try:
                yield
            finally:
                self._release()

    @property
    @abc.abstractmethod
    def _renew_every_s(self) -> float:
        """Seconds between two renewals; 0 for a lock that needs none."""

    @abc.abstractmethod
    def _take(self, deadline: float, guarded: bool) -> None:
        """Take the lock, or wait for it.

        Args:
            deadline: When to give up, by `LockTiming.monotonic`.
            guarded: The OS lock is ours: another holder of this machine is dead.

        Raises:
            LockTimeout: It did not become free.
        """

    @abc.abstractmethod
    def _renew(self) -> None:
        """Renew the lock once, if it is ours; raises nothing."""

    @abc.abstractmethod
    def _release(self) -> None:
        """Let the lock go, if it is still ours."""

    def _busy_here(self) -> LockTimeout:
        """The error of waiting too long for another process of this machine."""
        return self._guard.busy()


@contextlib.contextmanager
def _renewed(renew: Callable[[], None], every_s: float) -> Iterator[None]:
    """Renew a lock again and again for the length of a with block.

    Args:
        renew: Renews it once; raises nothing.
        every_s: Seconds between two renewals; 0 for a lock that needs none.
    """
    if not every_s:
        yield
        return
    with machine.machine().every(every_s, renew, "hudimeta-lock"):
        yield
