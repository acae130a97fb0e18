"""From a history that does not hold to a shorter one that does not hold either."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from hudimeta.testing.simulation.faults import CALM
from hudimeta.testing.simulation.history import Broken, run
from hudimeta.testing.simulation.planning import PlannedHistory

__all__ = ["shrunk"]


def _holds(history: PlannedHistory) -> bool:
    try:
        run(history)
    except Broken:
        return False
    return True


def shrunk(history: PlannedHistory, most_runs: int = 200, holds: Callable[[PlannedHistory], bool] = _holds) -> PlannedHistory:
    """The history with as few actors, acts and troubles as still break it.

    Args:
        history: One that does not hold.
        most_runs: How many shorter ones are tried.
        holds: Tries one.
    """
    again = True
    while again:
        again = False
        for shorter in _shorter(history):
            most_runs -= 1
            if most_runs < 0:
                return history
            if not holds(shorter):
                history, again = shorter, True
                break
    return history


def _shorter(history: PlannedHistory) -> Iterator[PlannedHistory]:
    parts = history.parts
    for at in range(len(parts)):
        if len(parts) > 1:
            yield replace(history, parts=(*parts[:at], *parts[at + 1 :]))
    for at, part in enumerate(parts):
        around = parts[:at], parts[at + 1 :]
        for one in range(len(part.acts)):
            if len(part.acts) > 1:
                acts = (*part.acts[:one], *part.acts[one + 1 :])
                yield replace(history, parts=(*around[0], replace(part, acts=acts), *around[1]))
        calm = replace(CALM, latency_s=part.troubles.latency_s)
        if part.troubles != calm:
            yield replace(history, parts=(*around[0], replace(part, troubles=calm), *around[1]))
