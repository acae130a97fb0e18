"""An actor: one process of a simulated history, with a machine and a storage of its own."""

from __future__ import annotations

import contextlib
import random
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hudimeta.engine.machine import running_on
from hudimeta.errors import StorageError
from hudimeta.testing.simulation.faults import Faults, Strike, Troubles
from hudimeta.testing.simulation.scheduler import Died, Scheduler
from hudimeta.testing.simulation.store import Files, SimulatedStorage, StoreKind

__all__ = ["Actor", "StorageCall"]

_PUBLISHED = (".hoodie/metadata/", ".hoodie/timeline/")
_LOCKS = (".hoodie/.locks/", ".hoodie/lock")
_OF_THE_MACHINE = ("guard", "discard_output")
"""Calls whose answer is not lost on the way."""
_LONGEST_PAUSE_S = 2.0


@dataclass(frozen=True, slots=True)
class StorageCall:
    """One call of storage as it is written down: who, what, where, and what struck."""

    actor: str
    verb: str
    path: str
    strike: str


@dataclass
class _Repeated:
    """Something that is done again and again."""

    every_s: float
    due: float
    act: Callable[[], None]


class Actor:
    """See the module; it is its own `Machine`, and `Scheduled`.

    Args:
        name: In the trace.
        seed: Of all chance that it meets.
        scheduler: Of the history.
        files: That all actors share.
        place: The kind of store.
        troubles: How it fares.
        trace: Where its calls are written down.
        body: What it does.
    """

    threads = False

    def __init__(
        self,
        name: str,
        seed: str,
        scheduler: Scheduler,
        files: Files,
        place: StoreKind,
        troubles: Troubles,
        trace: list[StorageCall],
        body: Callable[[Actor], None],
    ) -> None:
        self.name, self._scheduler, self._troubles, self._trace, self._body = name, scheduler, troubles, trace, body
        rng = random.Random(f"{seed} {name}")
        self._faults, self._ids, self._pauses = Faults(troubles, rng), random.Random(f"{seed} {name} ids"), rng
        self._clock, self._offset_ms = random.Random(f"{seed} {name} clock"), troubles.offset_ms
        self.storage = SimulatedStorage(files, place, self._around)
        self.wake = scheduler.now + self._faults.latency()
        self.gate = threading.Lock()
        self.dead = False
        self.stopped_s = 0.0
        self._repeated: list[_Repeated] = []
        self._repeating = False

    def act(self) -> None:
        """See `Scheduled.act`."""
        with running_on(self):
            self._body(self)

    @property
    def now(self) -> float:
        """The true time, seconds."""
        return self._scheduler.now

    # A machine

    def now_ms(self) -> int:
        """See `Machine.now_ms`."""
        return self._scheduler.now_ms() + self._offset_ms

    def monotonic(self) -> float:
        """See `Machine.monotonic`."""
        return self._scheduler.now

    def pause(self, seconds: float) -> None:
        """See `Machine.pause`; now and then much longer, so that waiting for a lock takes few turns."""
        if self.dead:
            raise Died
        self._sleep(max(seconds, self._pauses.random() * _LONGEST_PAUSE_S))

    @contextlib.contextmanager
    def every(self, seconds: float, act: Callable[[], None], name: str) -> Iterator[None]:
        """See `Machine.every`: done before calls whose time has come; not between those of a lock, which exclude it."""
        one = _Repeated(seconds, self._scheduler.now + seconds, act)
        self._repeated.append(one)
        try:
            yield
        finally:
            self._repeated.remove(one)

    def new_id(self) -> uuid.UUID:
        """See `Machine.new_id`."""
        return uuid.UUID(int=self._ids.getrandbits(128), version=4)

    # Calls of storage

    def _around(self, verb: str, path: str, act: Callable[[], Any]) -> Any:
        if self.dead:
            raise Died
        faults = self._faults
        repeats = bool(self._repeated) and not self._repeating and not path.startswith(_LOCKS)
        self._scheduler.wait(self, faults.latency())
        if stop := faults.stop(path.startswith(_PUBLISHED)):
            self.stopped_s = max(self.stopped_s, stop)
            self._scheduler.wait(self, stop)
        if slow := faults.slowness():
            if not repeats:
                self.stopped_s = max(self.stopped_s, slow)
            self._sleep(slow, repeats)
        if repeats and faults.coin():
            self._repeat()
        self._set_clock()
        strike = faults.strike()
        if strike is Strike.ERROR_AFTER and verb in _OF_THE_MACHINE:
            strike = None
        self._trace.append(StorageCall(self.name, verb, path, "" if strike is None else strike.value))
        if strike is None:
            return act()
        if strike is Strike.ERROR_BEFORE:
            raise StorageError(path, f"simulated fault before {verb}")
        if strike is Strike.DEATH_BEFORE:
            self.dead = True
            raise Died
        act()
        if strike is Strike.DEATH_AFTER:
            self.dead = True
            raise Died
        raise StorageError(path, f"simulated fault after {verb}")

    def _set_clock(self) -> None:
        if self._clock.random() < self._troubles.settings:
            within = self._troubles.set_within_ms
            self._offset_ms = self._clock.randint(-within, within)

    def _sleep(self, seconds: float, repeats: bool = True) -> None:
        """Let time pass, and do what is to be done again and again meanwhile."""
        until = self._scheduler.now + seconds
        while repeats and not self._repeating and self._repeated:
            due = min(one.due for one in self._repeated)
            if due > until:
                break
            self._scheduler.wait(self, max(due - self._scheduler.now, 0.0))
            self._repeat()
        self._scheduler.wait(self, max(until - self._scheduler.now, 0.0))

    def _repeat(self) -> None:
        self._repeating = True
        try:
            for one in list(self._repeated):
                if one.due <= self._scheduler.now:
                    one.due = self._scheduler.now + one.every_s
                    one.act()
        finally:
            self._repeating = False
