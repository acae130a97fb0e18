"""What can go wrong around one call of storage, and how often it does."""

from __future__ import annotations

import enum
import random
from dataclasses import dataclass

__all__ = ["CALM", "Faults", "Strike", "Troubles"]

_STOPS_S = (1.0, 8.0, 20.0, 70.0, 150.0, 700.0)
"""Past a renewal, past a lease, past a lock file's life, past a heartbeat's."""

_WHERE_IT_PUBLISHES = 5
"""So many times more often an actor is stopped there: few calls are made under the lock, and they are those that matter."""


class Strike(enum.Enum):
    """What happens at a call."""

    ERROR_BEFORE = "error before"
    ERROR_AFTER = "error after"
    DEATH_BEFORE = "death before"
    DEATH_AFTER = "death after"


@dataclass(frozen=True)
class Troubles:
    """How an actor fares.

    Attributes:
        errors: Chance of a call to fail.
        deaths: Chance of the actor to die at a call.
        stops: Chance of the actor to be stopped before a call, for long and with all that it does beside it.
        slow: Chance of a call to take as long, while renewals and heartbeats go on.
        latency_s: Of a call, on average.
        offset_ms: By how much its clock is ahead.
        settings: Chance of its clock to be set, at a call.
        set_within_ms: By how much its clock is ahead or behind then, at most.
    """

    errors: float = 0.0
    deaths: float = 0.0
    stops: float = 0.0
    slow: float = 0.0
    latency_s: float = 0.005
    offset_ms: int = 0
    settings: float = 0.0
    set_within_ms: int = 0


CALM = Troubles()


class Faults:
    """Draws what happens, call by call.

    Args:
        troubles: How often.
        rng: Chance.
    """

    def __init__(self, troubles: Troubles, rng: random.Random) -> None:
        self._troubles, self._random = troubles, rng.random
        self._rate = 1.0 / troubles.latency_s
        self._rng = rng

    def latency(self) -> float:
        """Seconds until the next call; each of several actors is equally likely to be the next, whoever was the last."""
        return self._rng.expovariate(self._rate)

    def stop(self, publishes: bool) -> float:
        """Seconds for which the actor is stopped before the call; 0 mostly, less often where it publishes."""
        chance = self._troubles.stops * (_WHERE_IT_PUBLISHES if publishes else 1)
        return self._rng.choice(_STOPS_S) if self._random() < chance else 0.0

    def slowness(self) -> float:
        """Seconds that the call takes longer; 0 mostly."""
        return self._rng.choice(_STOPS_S) if self._random() < self._troubles.slow else 0.0

    def strike(self) -> Strike | None:
        """What becomes of the call."""
        drawn = self._random()
        if drawn < self._troubles.errors:
            return Strike.ERROR_BEFORE if self._random() < 0.5 else Strike.ERROR_AFTER
        if drawn < self._troubles.errors + self._troubles.deaths:
            return Strike.DEATH_BEFORE if self._random() < 0.5 else Strike.DEATH_AFTER
        return None

    def coin(self) -> bool:
        """One way or the other."""
        return self._random() < 0.5
