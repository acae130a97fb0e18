"""Whether a history could have happened one act after the other: writes in the order of their completion are the witness.

Each write that was published is applied to a model in that order, and each restore or rollback takes the last ones back. What
was acknowledged has to be among them and what was refused must not be. Each read has to see the model after some of them: at
least after those that were acknowledged before the read began, at most after those that began before it ended.

Each incremental read sees the rows that the writes of its range left, and no others; each CDC read sees their changes.

Where only snapshot isolation is promised, several outcomes count. A delete looks for its keys when it begins, so that it may
leave a row whose key another write brought meanwhile. In a log it has the version of the row that it met, and a row of an older
version that comes after it is late, unless a compaction came between. A change by a condition or a merge reads one moment
between its begin and its completion: it changes the rows that met the condition then, which nobody may have changed since, and
passes over what came later. All reads have to agree on one outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product

from hudimeta.errors import ValidationFailed
from hudimeta.testing.model import ModelTable, Row
from hudimeta.testing.simulation.events import PollSeen, ReadSeen, SavedSeen, State, UndoDone, WriteDone, WriterOutcome
from hudimeta.testing.simulation.ledger import Ledger, Named, Published, Undone
from hudimeta.testing.simulation.worlds import Missed, World, world_of
from hudimeta.types import Operation

__all__ = ["Event", "Seen", "check_serial"]

_MOST_MISSED = 6


@dataclass(frozen=True)
class Seen:
    """What the actors of a history saw.

    Attributes:
        writes: All that were tried.
        undos: Restores and rollbacks that were tried.
        reads: All that were acknowledged, the last one after everything else.
        polls: Reads of what changed.
        saved: Moments that were saved, read after everything else.
    """

    writes: Sequence[WriteDone]
    undos: Sequence[UndoDone] = ()
    reads: Sequence[ReadSeen] = ()
    polls: Sequence[PollSeen] = ()
    saved: Sequence[SavedSeen] = ()


@dataclass(frozen=True)
class Event:
    """A write that was published, or what was undone, at its place in the order.

    Attributes:
        time: The completion time of a write; the requested time of a restore or rollback, from which on it counts.
        write: What was written, with what the timeline says of it.
        undone: What was undone.
        begun, ended: True times; of what nobody tells, the widest.
        told: Whether it was acknowledged.
    """

    time: str
    begun: float
    ended: float
    told: bool
    write: tuple[WriteDone, Published] | None = None
    undone: Undone | None = None

    def __str__(self) -> str:
        what = (
            f"undoes {sorted(time for time, _ in self.undone.instants)}" if self.undone else str(self.write and self.write[0])
        )
        return f"{self.time} {what}"


def check_serial(begin: Mapping[Named, ModelTable], ledger: Ledger, seen: Seen) -> tuple[str, ...]:
    """Check a history; returns its witness, a line each.

    Args:
        begin: What the table held after each write of before, the newest last.
        ledger: What the timeline ever held.
        seen: What the actors saw.

    Raises:
        ValidationFailed: With the witness and what contradicts it.
    """
    _check_outcomes(seen.writes, ledger.writes)
    order = _order(ledger, seen)
    _check_real_time(order)
    lines = tuple(str(one) for one in order)
    shown = "\n  ".join(lines)
    contradictions = []
    for missed, moments in product(_choices(order), _moments(order)):
        world = world_of(begin, order, missed, moments)
        if world is None:
            continue
        found = _contradicted(world, order, seen)
        if found is None:
            return lines
        contradictions.append(found)
    why = contradictions[0] if contradictions else "whatever was read, an update was lost:"
    raise ValidationFailed(f"{why}\n  {shown}\n")


def _contradicted(world: World, order: Sequence[Event], seen: Seen) -> str | None:
    """Why a world is not the one that was seen; None when it is."""
    found = (_contradiction(read, order, world.states(read.asked)) for read in seen.reads)
    polled, saved = map(world.odd_poll, seen.polls), map(world.odd_moment, seen.saved)
    return next((text for text in chain(found, polled, saved) if text is not None), None)


# The order


def _order(ledger: Ledger, seen: Seen) -> list[Event]:
    told = WriterOutcome.ACKNOWLEDGED
    events = [
        Event(ledger.writes[one.name].completion, one.begun, one.ended, one.outcome is told, (one, ledger.writes[one.name]))
        for one in seen.writes
        if one.name in ledger.writes
    ]
    known = {one.instant: one for one in seen.undos if one.outcome is told and one.instant is not None}
    lost = known.keys() - {undone.time for undone in ledger.undone}
    if lost:
        raise ValidationFailed(f"undone, as was told, and yet nothing is: {[str(known[time]) for time in sorted(lost)]}")
    untold = [one.begun for one in seen.undos if one.outcome is WriterOutcome.UNKNOWN]
    for undone in (undone for undone in ledger.undone if undone.instants):
        one = known.get(undone.time)
        if one is None and not untold:
            raise ValidationFailed(f"undone though it was refused: {undone}; {[str(undo) for undo in seen.undos]}")
        begun, ended = (min(untold), float("inf")) if one is None else (one.begun, one.ended)
        events.append(Event(undone.time, begun, ended, one is not None, undone=undone))
    return sorted(events, key=lambda event: event.time)


def _check_outcomes(writes: Sequence[WriteDone], published: Mapping[str, Published]) -> None:
    for one in writes:
        there = published.get(one.name)
        told = one.outcome is WriterOutcome.ACKNOWLEDGED
        if told and one.completion is not None and (there is None or there.completion != one.completion):
            raise ValidationFailed(f"lost: {one}, on the timeline {there}")
        if there is not None and (one.outcome is WriterOutcome.REFUSED or (told and one.completion is None)):
            raise ValidationFailed(f"published though it was refused: {one}, completed at {there.completion}")


def _check_real_time(order: Sequence[Event]) -> None:
    """What was acknowledged before another act began completed before it."""
    for at, later in enumerate(order):
        for earlier in order[at + 1 :]:
            if earlier.told and earlier.ended <= later.begun:
                raise ValidationFailed(f"one ended before the other began, and yet completed later:\n {earlier}\n {later}")


# What snapshot isolation leaves open


def _choices(order: Sequence[Event]) -> Iterable[Missed]:
    """Every set of keys that deletes may have missed, or late rows to no effect; first none."""
    may = []
    for at, event in enumerate(order):
        one = event.write and event.write[0]
        if one and one.operation is Operation.DELETE and one.change is None:
            brought = {key for other in order[:at] if other.ended > one.begun for key in _brought(other)}
            may += [(one.name, key) for key in one.rows["id"].to_pylist() if key in brought]
        elif one and one.operation is Operation.UPSERT and one.change is None:
            may += [(one.name, row["id"]) for row in one.rows.to_pylist() if _meets_delete(order[:at], row)]
    may = may[:_MOST_MISSED]
    return (frozenset(some) for count in range(len(may) + 1) for some in combinations(may, count))


def _meets_delete(earlier: Sequence[Event], row: Row) -> bool:
    """Whether the log may hold a delete of a newer version of a row, which lasts until a compaction."""
    writes = [event.write[0] for event in earlier if event.write is not None]
    versions = [old["ts"] for one in writes for old in one.rows.to_pylist() if old["id"] == row["id"]]
    return max(versions, default=row["ts"]) > row["ts"] and any(one.operation is Operation.DELETE for one in writes)


def _brought(event: Event) -> Iterable[str]:
    """Keys of rows that an event may have brought."""
    if event.write is None or event.write[0].operation is Operation.DELETE:
        return ()
    keys: list[str] = event.write[0].rows["id"].to_pylist()
    return keys


def _moments(order: Sequence[Event]) -> Iterable[Mapping[str, int]]:
    """After how many of the writes each change by a condition may have read the table; first the latest moments."""
    asked = [(at, event.write[0]) for at, event in enumerate(order) if event.write is not None and event.write[0].change]
    spans = [range(at, _least(order[:at], one.begun) - 1, -1) for at, one in asked]
    return ({one.name: at for (_, one), at in zip(asked, chosen, strict=True)} for chosen in product(*spans))


def _least(order: Sequence[Event], begun: float) -> int:
    """How many of the first events were there for certain for whoever began then."""
    return max((at for at, one in enumerate(order, 1) if one.told and one.ended <= begun), default=0)


def _contradiction(read: ReadSeen, order: Sequence[Event], states: Sequence[State]) -> str | None:
    """Why a read cannot have seen what it saw; None when it can."""
    least = _least(order, read.begun)
    most = max((at for at, one in enumerate(order, 1) if one.begun <= read.ended), default=0)
    if read.state in states[least : most + 1]:
        return None
    nearest = min(range(least, most + 1), key=lambda at: len(set(states[at]) ^ set(read.state)))
    expected, saw = list(states[nearest]), list(read.state)
    missing = [row for row in expected if expected.count(row) > saw.count(row)]
    extra = [row for row in saw if saw.count(row) > expected.count(row)]
    return (
        f"{read.name} saw what no {least} to {most} of these writes come to; nearest to {nearest} of them: "
        f"missing {missing}, too many {extra}"
    )
