"""Whether a history could have happened one act after the other: writes in the order of their completion are the witness.

Each write that was published is applied to a model in that order. What was acknowledged has to be among them and what was
refused must not be. Each read has to see the model after some of the writes: at least those that were acknowledged before the
read began, at most those that began before it ended.

Each incremental read sees the rows that the writes of its range left, and no others.

Where only snapshot isolation is promised, several outcomes count. A delete looks for its keys when it begins, so that it may
leave a row whose key another write brought meanwhile. An update or a delete by a condition reads one moment between its begin
and its completion: it changes the rows that met the condition then, which nobody may have changed since, and passes over what
came later. All reads have to agree on one outcome.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import ValidationFailed
from hudimeta.testing.model import ModelTable, Row
from hudimeta.types import Operation

__all__ = ["PollSeen", "ReadSeen", "State", "WriteDone", "WriterOutcome", "check_serial", "state_of"]

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
        change: What it makes of each row, where it names no rows but says what becomes of those that are there.
    """

    name: str
    operation: Operation
    rows: pa.Table
    begun: float
    ended: float
    outcome: WriterOutcome
    completion: str | None = None
    error: str = ""
    change: Callable[[Row], Row | None] | None = None

    def __str__(self) -> str:
        keys = ",".join(self.rows["id"].to_pylist()) if self.change is None else "where …"
        error = f" {self.error}" if self.error else ""
        return f"{self.name} {self.operation.value} {keys} {self.outcome.value} {self.completion or ''}{error}"


@dataclass(frozen=True)
class ReadSeen:
    """A read of the whole table: what it saw, and when (true times)."""

    name: str
    begun: float
    ended: float
    state: State


@dataclass(frozen=True)
class PollSeen:
    """An incremental read, and what it saw.

    Attributes:
        name: Who asked.
        begin, end: Completion times, the first excluded.
        state: The rows.
    """

    name: str
    begin: str
    end: str
    state: State


def state_of(table: pa.Table) -> State:
    """The state that some rows are."""
    return tuple(sorted(zip(*(table[name].to_pylist() for name in ("part", "id", "x")), strict=True)))


def _model_state(model: ModelTable) -> State:
    return tuple(sorted((row["part"], row["id"], row["x"]) for row in model.all_rows()))


def check_serial(
    begin: ModelTable,
    writes: Sequence[WriteDone],
    published: Mapping[str, str],
    reads: Sequence[ReadSeen],
    polls: Sequence[PollSeen] = (),
) -> list[str]:
    """Check a history; returns its witness, a line each.

    Args:
        begin: What the table held.
        writes: All that were tried.
        published: The completion time of each write that is on the timeline, by its name.
        reads: All that were acknowledged, the last one after everything else.
        polls: Incremental reads; each sees what the writes of its range left, and nothing else.

    Raises:
        ValidationFailed: With the witness and what contradicts it.
    """
    _check_outcomes(writes, published)
    order = sorted((one for one in writes if one.name in published), key=lambda one: published[one.name])
    _check_real_time(order, published)
    witness = [f"{published[one.name]} {one}" for one in order]
    contradictions = []
    for missed, moments in product(_choices(begin, order), _moments(order)):
        models = _models(begin, order, missed, moments)
        if models is None:
            continue
        states = [_model_state(model) for model in models]
        found = next((text for read in reads if (text := _contradiction(read, order, states, witness))), None)
        if found is None:
            times = [published[one.name] for one in order]
            found = next((text for poll in polls if (text := _odd_poll(poll, times, models, witness))), None)
        if found is None:
            return witness
        contradictions.append(found)
    lines = "\n  ".join(witness)
    raise ValidationFailed(contradictions[0] if contradictions else f"whatever was read, an update was lost:\n  {lines}\n")


_Missed = frozenset[tuple[str, str]]
"""Deletes by name and key that met no row."""


def _choices(begin: ModelTable, order: Sequence[WriteDone]) -> Iterable[_Missed]:
    """Every set of keys that deletes may have missed; first none."""
    may = []
    for at, one in enumerate(order):
        if one.operation is Operation.DELETE and one.change is None:
            beside = [other for other in order[:at] if other.ended > one.begun and other.operation is not Operation.DELETE]
            brought = {key for other in beside for key in other.rows["id"].to_pylist()}
            may += [(one.name, key) for key in one.rows["id"].to_pylist() if key in brought]
    may = may[:_MOST_MISSED]
    return (frozenset(some) for count in range(len(may) + 1) for some in combinations(may, count))


def _moments(order: Sequence[WriteDone]) -> Iterable[Mapping[str, int]]:
    """After how many of the writes each change by a condition may have read the table; first the latest moments."""
    asked = [(at, one) for at, one in enumerate(order) if one.change is not None]
    spans = [range(at, _least(order[:at], one.begun) - 1, -1) for at, one in asked]
    return ({one.name: at for (_, one), at in zip(asked, chosen, strict=True)} for chosen in product(*spans))


def _least(order: Sequence[WriteDone], begun: float) -> int:
    """How many of the first writes were there for certain for whoever began then."""
    return max((at for at, one in enumerate(order, 1) if _was_told(one) and one.ended <= begun), default=0)


def _models(
    begin: ModelTable, order: Sequence[WriteDone], missed: _Missed, moments: Mapping[str, int]
) -> list[ModelTable] | None:
    """What the model holds before the first write and after each; None where a write would have lost another one's change."""
    models = [begin.copy()]
    for one in order:
        model = models[-1].copy()
        if one.change is None:
            keys = [key for key in one.rows["id"].to_pylist() if (one.name, key) not in missed]
            model.write(one.operation, one.rows.filter(pc.is_in(one.rows["id"], pa.array(keys, pa.string()))))
        elif not _changed(model, models[moments[one.name]], one.change):
            return None
        models.append(model)
    return models


def _odd_poll(poll: PollSeen, times: Sequence[str], models: Sequence[ModelTable], witness: Sequence[str]) -> str | None:
    """Why a poll cannot have seen what it saw; None when it can."""
    before = models[sum(time <= poll.begin for time in times)]
    after = models[sum(time <= poll.end for time in times)]
    expected = []
    for place, rows in after.rows.items():
        known = before.rows.get(place, [])
        expected += [(row["part"], row["id"], row["x"]) for row in rows if not any(row is old for old in known)]
    if tuple(sorted(expected)) == poll.state:
        return None
    lines = "\n  ".join(witness)
    return f"{poll.name} of {poll.begin} to {poll.end} saw {poll.state}, which is to be {sorted(expected)}\n  {lines}\n"


def _changed(model: ModelTable, seen: ModelTable, change: Callable[[Row], Row | None]) -> bool:
    """Change those rows of the model that a change saw at an earlier moment; False where one is not as it was."""
    for place, rows in seen.rows.items():
        new = [change(row) for row in rows]
        if new == rows:
            continue
        if model.rows.get(place) != rows:
            return False
        model.rows[place] = [row for row in new if row is not None]
        if not model.rows[place]:
            del model.rows[place]
    return True


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
    least = _least(order, read.begun)
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
