"""What a table holds after each event of a history, by a model: for one choice of what snapshot isolation leaves open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import ValidationFailed
from hudimeta.testing.model import ModelTable, Place, Row
from hudimeta.testing.simulation.events import Changes, PollSeen, SavedSeen, State, WriteDone
from hudimeta.testing.simulation.ledger import Named, Published, Undone
from hudimeta.types import Operation

__all__ = ["Missed", "World", "world_of"]

Missed = frozenset[tuple[str, str]]
"""Writes by name and key to no effect: deletes that met no row, and rows that met the delete of a newer one."""

_REPLACES = (Operation.INSERT_OVERWRITE, Operation.DELETE_PARTITION)


class _Event(Protocol):
    """An event as it is needed here."""

    @property
    def time(self) -> str: ...

    @property
    def write(self) -> tuple[WriteDone, Published] | None: ...

    @property
    def undone(self) -> Undone | None: ...


def world_of(
    begin: Mapping[Named, ModelTable], order: Sequence[_Event], missed: Missed, moments: Mapping[str, int]
) -> World | None:
    """The world in which deletes missed some keys and changes read some moments.

    Args:
        begin: What the table held after each write of before, the newest last.
        order: What happened.
        missed: Deletes that met no row.
        moments: After how many events each change read the table.

    Returns:
        None where a change would have lost another one's update.

    Raises:
        ValidationFailed: What was undone is not what came last, or a partition expired that was just written.
    """
    world = World(begin)
    for event in order:
        if event.undone is not None:
            world.undo(event.time, event.undone)
        elif event.write is not None and not world.write(event.time, *event.write, missed, moments):
            return None
    return world


class World:
    """See the module.

    Args:
        begin: What the table held after each write of before, the newest last.
    """

    def __init__(self, begin: Mapping[Named, ModelTable]) -> None:
        self._left = list(begin.items())
        self._times: list[str] = []
        self._models = [self._left[-1][1]]
        self._told: list[tuple[Named, Changes] | Undone] = []
        self._born: dict[int, str] = {}
        self._late: list[tuple[str, tuple[str, str, float]]] = []

    def states(self, asked: Callable[[Row], bool] | None = None) -> list[State]:
        """What the table holds before the first event and after each, of the rows that are asked for."""
        return [_sorted(row for row in model.all_rows() if asked is None or asked(row)) for model in self._models]

    def undo(self, time: str, undone: Undone) -> None:
        """Take back what came last."""
        kept = [(named, model) for named, model in self._left if named not in undone.instants]
        if kept != self._left[: len(kept)] or not kept:
            raise ValidationFailed(f"undone at {time}: {sorted(undone.instants)}, which did not come last")
        self._left = kept
        self._step(time, kept[-1][1], undone)

    def write(self, time: str, one: WriteDone, done: Published, missed: Missed, moments: Mapping[str, int]) -> bool:
        """Apply a write; False where it would lose another one's update."""
        before, model = self._models[-1], self._models[-1].copy()
        if one.change is not None:
            if not _changed(model, self._models[moments[one.name]], one.change(self._models[moments[one.name]])):
                return False
        elif one.expires:
            self._expire(model, done)
        else:
            keys = [key for key in one.rows["id"].to_pylist() if (one.name, key) not in missed]
            model.write(one.operation, one.rows.filter(pc.is_in(one.rows["id"], pa.array(keys, pa.string()))))
        named = done.instant, done.action
        known = {id(row) for row in before.all_rows()}
        if one.change is None and not one.expires:
            there = _sorted(model.all_rows())
            self._late += [(time, row) for row in _sorted(one.rows.to_pylist()) if row not in there]
        self._born |= {id(row): time for row in model.all_rows() if id(row) not in known}
        self._left.append((named, model))
        self._step(time, model, (named, tuple(sorted(_changes(before, model, one, done)))))
        return True

    def _expire(self, model: ModelTable, done: Published) -> None:
        expired = [(place, row) for place, rows in model.rows.items() if place[0] in done.partitions for row in rows]
        fresh = [place for place, row in expired if id(row) in self._born]
        if fresh:
            raise ValidationFailed(f"{done} let rows expire that had just been written: {fresh}")
        for place, _ in expired:
            model.rows.pop(place, None)

    def _step(self, time: str, model: ModelTable, told: tuple[Named, Changes] | Undone) -> None:
        self._times.append(time)
        self._models.append(model)
        self._told.append(told)

    def odd_poll(self, poll: PollSeen) -> str | None:
        """Why a poll cannot have seen what it saw; None when it can."""
        until = sum(time <= poll.end for time in self._times)
        expected: State | Changes = self._changes_of(poll, until) if poll.changes is not None else self._rows_of(poll, until)
        found = poll.changes if poll.changes is not None else self._without_late(poll)
        return None if expected == found else f"{poll} saw {found}, which is to be {expected}"

    def _without_late(self, poll: PollSeen) -> State:
        """What a poll saw, without rows of its range that lost against older ones: those come back, as in Apache Hudi."""
        late = {row for time, row in self._late if poll.begin < time <= poll.end}
        return tuple(row for row in poll.state if row not in late)

    def odd_moment(self, saved: SavedSeen) -> str | None:
        """Why a saved moment is not what the table was then, whatever was cleaned and archived since; None when it is."""
        order = [named for named, _ in self._left]
        until = next((at for at, (time, _) in enumerate(order) if time == saved.instant), None)
        if until is None or {one for one in order if one[0] <= saved.instant} != {*order[: until + 1]}:
            return None  # of a service, or overtaken by another write: by requested time the table was never so
        expected = _sorted(self._left[until][1].all_rows())
        return None if saved.state == expected else f"saved at {saved.instant} is {saved.state}, which is to be {expected}"

    def _rows_of(self, poll: PollSeen, until: int) -> State:
        rows = self._models[until].all_rows()
        return _sorted(row for row in rows if poll.begin < self._born.get(id(row), "") <= poll.end)

    def _changes_of(self, poll: PollSeen, until: int) -> Changes:
        gone = {named for told in self._told[:until] if isinstance(told, Undone) for named in told.instants}
        of_range = [told for time, told in zip(self._times, self._told, strict=True) if poll.begin < time <= poll.end]
        left = [told[1] for told in of_range if not isinstance(told, Undone) and told[0] not in gone]
        return tuple(sorted(change for changes in left for change in changes))


def _changed(model: ModelTable, seen: ModelTable, new: Mapping[Place, list[Row]]) -> bool:
    """Change those rows of the model that a change saw at an earlier moment; False where one is not as it was."""
    for place, rows in new.items():
        if model.rows.get(place, []) != seen.rows.get(place, []):
            return False
        model.rows[place] = rows
        if not rows:
            del model.rows[place]
    return True


def _changes(before: ModelTable, after: ModelTable, one: WriteDone, done: Published) -> Iterable[tuple[str, str, str, str]]:
    """What a CDC query tells of a write; of partitions that it replaced every row goes and comes."""
    replaced = set(done.partitions) if one.operation in _REPLACES else set()
    for place in before.rows.keys() | after.rows.keys():
        old, new = before.rows.get(place, []), after.rows.get(place, [])
        if place[0] in replaced:
            yield from (("d", place[1], str(row["x"]), "") for row in old)
            yield from (("i", place[1], "", str(row["x"])) for row in new)
        elif [id(row) for row in old] != [id(row) for row in new]:
            kind = "u" if old and new else "i" if new else "d"
            yield kind, place[1], str(old[0]["x"]) if old else "", str(new[0]["x"]) if new else ""


def _sorted(rows: Iterable[Row]) -> State:
    return tuple(sorted((row["part"], row["id"], row["x"]) for row in rows))
