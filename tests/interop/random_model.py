"""What a random table must hold: rows by what tells them apart, and what each kind of write makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.interop.random_rows import Row
from tests.interop.random_tables import FILLING, Kind


@dataclass
class RandomModel:
    """Rows of one table.

    Args:
        kind: Of the table.
    """

    kind: Kind
    rows: dict[tuple[object, ...], Row] = field(default_factory=dict)

    def all_rows(self) -> list[Row]:
        """Every row."""
        return list(self.rows.values())

    def upsert(self, given: Iterable[Row]) -> None:
        """The greater ordering value wins, of equal ones the later; payloads that fill take what the winner has not."""
        for row in self._combined(given):
            place = self.kind.identity(row)
            old = self.rows.get(place)
            if old is None:
                if not self.kind.deletes(row):
                    self.rows[place] = dict(row)
                continue
            late = self.kind.by_event and _order(self.kind, row) < _order(self.kind, old)
            winner, loser = (old, row) if late else (row, old)
            if self.kind.deletes(winner):
                del self.rows[place]
                continue
            if self.kind.stays:
                winner = {**winner, **{name: old[name] for name in self.kind.place_columns}}
            if self.kind.payload in FILLING:
                winner = {name: loser.get(name) if value is None else value for name, value in winner.items()}
            self.rows[place] = dict(winner)

    def _combined(self, given: Iterable[Row]) -> Iterable[Row]:
        """One row a key: the newest."""
        newest: dict[tuple[object, ...], Row] = {}
        for row in given:
            place = self.kind.identity(row)
            old = newest.get(place)
            if old is None or not self.kind.by_event or _order(self.kind, row) >= _order(self.kind, old):
                newest[place] = row
        return newest.values()

    def insert(self, given: Iterable[Row]) -> None:
        """Rows whose keys are not there."""
        for row in given:
            place = self.kind.identity(row)
            assert place not in self.rows
            self.rows[place] = dict(row)

    def delete(self, given: Iterable[Row]) -> None:
        """By key, whatever the ordering value."""
        for row in given:
            self.rows.pop(self.kind.identity(row), None)

    def drop(self, leaves: Callable[[Row], bool | None]) -> None:
        """Rows of which something is true."""
        self.rows = {place: row for place, row in self.rows.items() if not leaves(row)}

    def change(self, where: Callable[[Row], bool | None], values: Row) -> None:
        """An UPDATE; it leaves ordering values as they are. A payload may fill its nulls from the row of before."""
        values = {name: value for name, value in values.items() if value is not None or self.kind.payload not in FILLING}
        self.rows = {place: {**row, **values} if where(row) else row for place, row in self.rows.items()}

    def add_column(self, name: str) -> None:
        """Rows that are there have null in it."""
        for row in self.rows.values():
            row.setdefault(name, None)

    def copy(self) -> dict[tuple[object, ...], Row]:
        """The present, to come back to."""
        return {place: dict(row) for place, row in self.rows.items()}


def _order(kind: Kind, row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in kind.ordering)
