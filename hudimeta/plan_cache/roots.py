"""The moment that a kept plan rests on, and whether it is still part of a later one.

A plan is right for a later moment where everything that it was made of is there still: the commits that made the base file of
the listing, the delta commits on top of it, the writes whose files it shows, and the completion times by which log files found
their slices. Instants are compared with the size and the time of change of their files, so that another table in the same
folder is another table even if it was written at the same instants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from hudimeta.metadata.listing_history import ListingRoots
from hudimeta.table.text_arrays import instant_number
from hudimeta.types import Action, Instant

if TYPE_CHECKING:
    from hudimeta.metadata import MetadataTable
    from hudimeta.timeline import Timeline

__all__ = ["ColumnRoots", "PlanRoots", "Since", "roots_of"]

InstantKey: TypeAlias = tuple[str, str, str, str, int, int]
"""Requested time, action, completion time; name, size and time of change of the completed file."""


@dataclass(frozen=True)
class Since:
    """What came after a kept plan.

    Attributes:
        deltas: Delta commits of the metadata table that it does not know.
        replacing: Completed replacecommits that it does not know.
        reason: Why the plan cannot be used; "" when it can.
    """

    deltas: tuple[Instant, ...] = ()
    replacing: frozenset[str] = frozenset()
    reason: str = ""


@dataclass(frozen=True)
class PlanRoots:
    """What a kept plan rests on.

    Attributes:
        version: Of the table.
        makers, since, deltas: See `ListingRoots`.
        done: Completed instants of the table.
        instants: Instants of all files that the plan shows.
        logs: Completion times of the instants of log files, by which these found their slices.
    """

    version: int
    makers: tuple[InstantKey, ...]
    since: str
    deltas: tuple[InstantKey, ...]
    done: tuple[InstantKey, ...]
    instants: frozenset[str]
    logs: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        keys = {name: [list(key) for key in getattr(self, name)] for name in ("makers", "deltas", "done")}
        return {
            "version": self.version,
            "since": self.since,
            **keys,
            "instants": sorted(self.instants),
            "logs": dict(sorted(self.logs.items())),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> PlanRoots:
        """The inverse of `to_json`. Raises KeyError, TypeError or ValueError for anything else."""
        makers, deltas, done = (tuple(_key(*key) for key in values[name]) for name in ("makers", "deltas", "done"))
        logs = {str(time): str(completion) for time, completion in values["logs"].items()}
        instants = frozenset(map(str, values["instants"]))
        return cls(int(values["version"]), makers, str(values["since"]), deltas, done, instants, logs)

    def later(self, metadata: MetadataTable, instants: Iterable[str], logs: Iterable[str]) -> PlanRoots | str:
        """The roots of this plan once it was brought to a later moment, or why it cannot be kept; no request.

        Args:
            metadata: Of the later moment.
            instants: Of the files that came, see `roots_of`.
            logs: Instants of the log files among them.
        """
        history = metadata.listing_history
        makers = history.makers if not self.since else history.makers[: len(self.makers)]
        listing = ListingRoots(makers, self.since, history.deltas(self.since))
        return _rooted(metadata, listing, {*self.instants, *instants}, {*self.logs, *logs})

    def until(self, metadata: MetadataTable) -> Since:
        """What came between this moment and that of a metadata table; no request."""
        data, history = metadata.data_timeline, metadata.listing_history
        if metadata.version != self.version:
            return _unusable("the table has another version")
        makers = _keys(history.makers)
        if (makers if not self.since else makers[: len(self.makers)]) != self.makers:
            return _unusable("the metadata table was compacted, or laid out anew")
        now = {_key_of(instant): instant for instant in history.deltas(self.since)}
        if not set(self.deltas) <= now.keys():
            return _unusable("the metadata table lacks a delta commit that was there")
        done = {_key_of(instant): instant for instant in data.completed}
        reason = self._why_not_continued(data, done) or self._why_not_visible(data)
        if reason:
            return _unusable(reason)
        known = set(self.deltas)
        before = set(self.done)
        later = [instant for key, instant in done.items() if key not in before]
        return Since(
            tuple(instant for key, instant in now.items() if key not in known),
            frozenset(instant.time for instant in later if instant.action is Action.REPLACE_COMMIT),
        )

    def _why_not_continued(self, data: Timeline, done: Mapping[InstantKey, Instant]) -> str:
        """Why the timeline does not go on from this moment; "" when it does. Only archived instants may be missing."""
        first = data.first_active_write or ""
        for key in self.done:
            if key in done:
                continue
            time, action = key[0], key[1]
            if data.get(time, Action(action)) is not None:
                return f"the {action} at {time} is another one"
            if action == Action.REPLACE_COMMIT.value or (Action(action).writes_data and time >= first):
                return f"the {action} at {time} is not on the timeline any more"
        return ""

    def _why_not_visible(self, data: Timeline) -> str:
        """Why files that the plan shows may not be shown now; "" when they are, in the same slices."""
        first = data.first_active_write
        limit = instant_number(first) if first is not None else 0
        known = {instant_number(time) for time in data.completion_times}
        for instant in self.instants:
            number = instant_number(instant)
            if number >= limit and number not in known:
                return f"the write at {instant} does not count any more"
        for time, completion in self.logs.items():
            if data.completion_times.get(time) != completion:
                return f"log files of the archived write at {time}"
        return ""


@dataclass(frozen=True)
class ColumnRoots:
    """What the statistics of a moment rest on: they are of a later moment where nothing was compacted or built anew since.

    Files do not change, so what later writes record of a column is about files that came, or went, since.

    Attributes:
        makers: Commits that may have made base files of the metadata table, newest first.
        deltas: Delta commits of the metadata table.
    """

    makers: tuple[InstantKey, ...]
    deltas: tuple[InstantKey, ...]

    @classmethod
    def of(cls, metadata: MetadataTable) -> ColumnRoots:
        """Those of now; no request."""
        history = metadata.listing_history
        return cls(_keys(history.makers_of_any), _keys(history.deltas("")))

    def hold_in(self, now: ColumnRoots) -> bool:
        """True when everything is there still."""
        return self.makers == now.makers and set(self.deltas) <= set(now.deltas)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {"makers": [list(key) for key in self.makers], "deltas": [list(key) for key in self.deltas]}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ColumnRoots:
        """The inverse of `to_json`. Raises KeyError, TypeError or ValueError for anything else."""
        makers, deltas = (tuple(_key(*key) for key in values[name]) for name in ("makers", "deltas"))
        return cls(makers, deltas)


def roots_of(metadata: MetadataTable, instants: Iterable[str], log_instants: Iterable[str]) -> PlanRoots | str:
    """The moment of a metadata table as the roots of a plan, or why there can be no plan of it to keep.

    Args:
        metadata: The metadata table, its listing read.
        instants: Of the files that the plan shows, as their names have them.
        log_instants: Of the log files among them.
    """
    listing = metadata.listing_history.roots()
    if listing is None:
        return "what its listing rests on does not follow from commits"
    return _rooted(metadata, listing, instants, log_instants)


def _rooted(
    metadata: MetadataTable, listing: ListingRoots, instants: Iterable[str], log_instants: Iterable[str]
) -> PlanRoots | str:
    data = metadata.data_timeline
    roots = PlanRoots(
        metadata.version,
        _keys(listing.makers),
        listing.since,
        _keys(listing.deltas),
        _keys(data.completed),
        frozenset(instants),
        {time: data.completion_times.get(time, "") for time in log_instants},
    )
    if not all(roots.logs.values()):
        return "it has log files of archived writes"
    if not all(modified > 0 for *_, modified in (*roots.makers, *roots.deltas, *roots.done)):
        return "the store does not tell when files were changed"
    return roots


def _keys(instants: Iterable[Instant]) -> tuple[InstantKey, ...]:
    return tuple(_key_of(instant) for instant in instants)


def _key_of(instant: Instant) -> InstantKey:
    action = instant.action.completed_as.value
    return instant.time, action, instant.completed_at, instant.file_name, instant.size, instant.modified_ms


def _key(time: str, action: str, completion: str, name: str, size: int, modified_ms: int) -> InstantKey:
    return str(time), Action(action).value, str(completion), str(name), int(size), int(modified_ms)


def _unusable(reason: str) -> Since:
    return Since(reason=reason)
