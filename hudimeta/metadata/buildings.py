"""When indexes were built later than the table: the instants of their delta commits in the metadata table.

Each is a millisecond before that of the indexing action on the data table's timeline. Apache Hudi lays the next partition of
the metadata table out at the very instant of the newest action, where that is an indexing. A delta commit that is there already
it takes for a failed attempt of its own, and rolls it back with all that the index holds. Buildings from before this was known
are at the instant of their action, as are those by Apache Hudi that followed an indexing.
"""

from __future__ import annotations

from collections.abc import Iterable

from hudimeta.timeline import Timeline, one_earlier
from hudimeta.types import Action, Instant

__all__ = ["building_instant", "buildings", "buildings_of"]


def building_instant(action: str, data: Timeline, metadata: Timeline) -> str:
    """Where an index is built in the metadata table; the action's own instant where the one before it is taken.

    Args:
        action: Instant of the indexing action.
        data: Timeline of the data table.
        metadata: Timeline of the metadata table.
    """
    before = one_earlier(action)
    return action if before is None or data.get(before) is not None or metadata.get(before) is not None else before


def buildings_of(action: str, data: Timeline) -> tuple[str, ...]:
    """The instants at which an indexing action may have written into the metadata table; see `building_instant`."""
    before = one_earlier(action)
    return (action,) if before is None or data.get(before) is not None else (action, before)


def buildings(data: Timeline, among: Iterable[Instant] | None = None) -> frozenset[str]:
    """The same of all indexing actions on the data table's timeline, done or not, or of those among some instants."""
    actions = {i.time for i in (data.instants if among is None else among) if i.action is Action.INDEXING}
    return frozenset(time for action in actions for time in buildings_of(action, data))
