"""Who goes on: threads of which one runs at a time, in an order that follows from a seed.

Each actor waits for a moment of a clock that the scheduler alone moves. Whoever makes a call of storage says when it is going
to happen and hands on to the actor whose moment comes first, so that the system's own scheduling has no say.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from operator import attrgetter
from typing import Protocol

__all__ = ["Died", "Scheduled", "Scheduler", "Stuck"]

BEGIN_S = 1_900_000_000.0
"""When every history begins, seconds since 1970: in the future, so that nothing of today's clock is later."""


_wake = attrgetter("wake")


class Died(BaseException):
    """The actor is dead: no handler of errors keeps it alive."""


class Stuck(Exception):
    """Nobody came to an end within the turns that a history may take."""


class Scheduled(Protocol):
    """An actor as the scheduler knows it."""

    name: str
    wake: float
    gate: threading.Lock

    def act(self) -> None:
        """Everything that it does."""


class Scheduler:
    """See the module.

    Args:
        most_turns: Of all actors together; then the history is `Stuck`.
    """

    def __init__(self, most_turns: int) -> None:
        self.now = BEGIN_S
        self.turns = 0
        self._most = most_turns
        self._running: list[Scheduled] = []
        self._all_done = threading.Lock()
        self.failure: BaseException | None = None

    def now_ms(self) -> int:
        """The true time."""
        return int(self.now * 1000)

    def run(self, actors: Sequence[Scheduled]) -> None:
        """Let some actors act until all came to their end.

        Raises:
            Stuck: They do not.
            BaseException: Whatever an actor raised besides `Died`.
        """
        self._running = list(actors)
        self._all_done.acquire()
        threads = []
        for actor in actors:
            actor.gate.acquire()
            threads.append(threading.Thread(target=self._live, args=(actor,), name=actor.name, daemon=True))
        for thread in threads:
            thread.start()
        self._next().gate.release()
        self._all_done.acquire()
        for thread in threads:
            thread.join()
        self._all_done.release()
        if self.failure is not None:
            raise self.failure

    def _live(self, actor: Scheduled) -> None:
        actor.gate.acquire()
        try:
            actor.act()
        except Died:
            pass
        except BaseException as error:
            self._fail(error)
        self._running.remove(actor)
        if self._running:
            self._next().gate.release()
        else:
            self._all_done.release()

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error

    def _next(self) -> Scheduled:
        chosen = min(self._running, key=_wake)
        if chosen.wake > self.now:
            self.now = chosen.wake
        return chosen

    def wait(self, actor: Scheduled, seconds: float) -> None:
        """Let an actor go on after so many seconds, whoever acts meanwhile.

        Raises:
            Died: The history is over.
        """
        self.turns += 1
        if self.turns > self._most:
            self._fail(Stuck(f"nobody comes to an end within {self._most} turns"))
        if self.failure is None:
            actor.wake = self.now + seconds
            chosen = self._next()
            if chosen is not actor:
                chosen.gate.release()
                actor.gate.acquire()
        if self.failure is not None:
            raise Died
