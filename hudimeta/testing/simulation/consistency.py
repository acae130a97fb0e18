"""Whether a history could have happened one act after the other: writes in the order of their completion are the witness.

Each write that was published is applied to a model in that order. What was acknowledged has to be among them and what was
refused must not be. Each read has to see the model after some of the writes: at least those that were acknowledged before the
read began, at most those that began before it ended.

Where only snapshot isolation is promised, two outcomes count: a delete looks for its keys when it begins, so that it may leave
a row whose key another write brought meanwhile. All reads have to agree on one of the two.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import ValidationFailed
from hudimeta.testing.model import ModelTable
from hudimeta.types import Operation

__all__ = ["WriterOutcome", "ReadSeen", "State", "WriteDone", "check_serial", "state_of"]

State = tuple[tuple[str, str, float], ...]
"""Rows as partition, key and value, sorted."""


_MOST_MISSED = 6


class WriterOutcome(enum.Enum):
    """How a write ended for its writer."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class WriteDone:
    """A write, as its writer knows it.

    Attributes:
        name: Of the write; its commit carries it.
        operation: What was asked for.
        rows: Of which rows.
        begun, ended: True times.
        outcome: How it ended for the writer.
        completion: Of what was acknowledged; None where nothing was to be written.
        error: Of a refused one, as text.
    """

    name: str
    operation: Operation
    rows: pa.Table
    begun: float
    ended: float
    outcome: WriterOutcome
    completion: str | None = None
    error: str = ""

    def __str__(self) -> str:
        keys = ",".join(self.rows["id"].to_pylist())
        error = f" {self.error}" if self.error else ""
        return f"{self.name} {self.operation.value} {keys} {self.outcome.value} {self.completion or ''}{error}"


@dataclass(frozen=True)
class ReadSeen:
    """A read of the whole table: what it saw, and when (true times)."""

    name: str
    begun: float
    ended: float
    state: State


def state_of(table: pa.Table) -> State:
    """The state that some rows are."""
    return tuple(sorted(zip(*(table[name].to_pylist() for name in ("part", "id", "x")), strict=True)))


def _model_state(model: ModelTable) -> State:
    return tuple(sorted((row["part"], row["id"], row["x"]) for row in model.all_rows()))


def check_serial(
    begin: ModelTable, writes: Sequence[WriteDone], published: Mapping[str, str], reads: Sequence[ReadSeen]
) -> list[str]:
    """Check a history; returns its witness, a line each.

    Args:
        begin: What the table held.
        writes: All that were tried.
        published: The completion time of each write that is on the timeline, by its name.
        reads: All that were acknowledged, the last one after everything else.

    Raises:
        ValidationFailed: With the witness and what contradicts it.
    """
    _check_outcomes(writes, published)
    order = sorted((one for one in writes if one.name in published), key=lambda one: published[one.name])
    _check_real_time(order, published)
    witness = [f"{published[one.name]} {one}" for one in order]
    contradictions = []
    for missed in _choices(begin, order):
        states = _states(begin, order, missed)
        found = next((text for read in reads if (text := _contradiction(read, order, states, witness))), None)
        if found is None:
            return witness
        contradictions.append(found)
    raise ValidationFailed(contradictions[0])


_Missed = frozenset[tuple[str, str]]
"""Deletes by name and key that met no row."""


def _choices(begin: ModelTable, order: Sequence[WriteDone]) -> Iterable[_Missed]:
    """Every set of keys that deletes may have missed; first none."""
    may = []
    for at, one in enumerate(order):
        if one.operation is Operation.DELETE:
            beside = [other for other in order[:at] if other.ended > one.begun and other.operation is not Operation.DELETE]
            brought = {key for other in beside for key in other.rows["id"].to_pylist()}
            may += [(one.name, key) for key in one.rows["id"].to_pylist() if key in brought]
    may = may[:_MOST_MISSED]
    return (frozenset(some) for count in range(len(may) + 1) for some in combinations(may, count))


def _states(begin: ModelTable, order: Sequence[WriteDone], missed: _Missed) -> list[State]:
    """What the model holds before the first write and after each."""
    model, states = begin.copy(), [_model_state(begin)]
    for one in order:
        keys = [key for key in one.rows["id"].to_pylist() if (one.name, key) not in missed]
        given = (
            one.rows if len(keys) == len(one.rows) else one.rows.filter(pc.is_in(one.rows["id"], pa.array(keys, pa.string())))
        )
        model.write(one.operation, given)
        states.append(_model_state(model))
    return states


def _was_told(one: WriteDone) -> bool:
    return one.outcome is WriterOutcome.ACKNOWLEDGED


def _check_outcomes(writes: Sequence[WriteDone], published: Mapping[str, str]) -> None:
    for one in writes:
        there = one.name in published
        if (
            one.outcome is WriterOutcome.ACKNOWLEDGED
            and one.completion is not None
            and published.get(one.name) != one.completion
        ):
            raise ValidationFailed(f"lost: {one}, on the timeline {published.get(one.name)}")
        if there and (one.outcome is WriterOutcome.REFUSED or (_was_told(one) and one.completion is None)):
            raise ValidationFailed(f"published though it was refused: {one}, completed at {published[one.name]}")


def _check_real_time(order: Sequence[WriteDone], published: Mapping[str, str]) -> None:
    """What was acknowledged before another write began completed before it."""
    for at, later in enumerate(order):
        for earlier in order[at + 1 :]:
            if _was_told(earlier) and earlier.ended <= later.begun:
                times = f"{published[earlier.name]} and {published[later.name]}"
                raise ValidationFailed(f"{earlier.name} ended before {later.name} began, but they completed at {times}")


def _contradiction(read: ReadSeen, order: Sequence[WriteDone], states: Sequence[State], witness: Sequence[str]) -> str | None:
    """Why a read cannot have seen what it saw; None when it can."""
    least = max((at for at, one in enumerate(order, 1) if _was_told(one) and one.ended <= read.begun), default=0)
    most = max((at for at, one in enumerate(order, 1) if one.begun <= read.ended), default=0)
    if read.state in states[least : most + 1]:
        return None
    nearest = min(range(least, most + 1), key=lambda at: len(set(states[at]) ^ set(read.state)))
    expected, seen = list(states[nearest]), list(read.state)
    missing = [row for row in expected if expected.count(row) > seen.count(row)]
    extra = [row for row in seen if seen.count(row) > expected.count(row)]
    lines = "\n  ".join(witness)
    return (
        f"{read.name} saw what no {least} to {most} of these writes come to; nearest to {nearest} of them: "
        f"missing {missing}, too many {extra}\n  {lines}\n"
    )
