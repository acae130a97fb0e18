"""A table as a dictionary: what every write should come to, in the plainest way there is.

A row is a dict of its data columns. Rows are kept by (partition path, record key) in lists, because inserts may double a key.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hudimeta.errors import ValidationFailed
from hudimeta.types import META_COLUMNS, Operation

__all__ = ["ModelTable", "Row", "compare_rows"]

Row = dict[str, Any]
Place = tuple[str, str]

_SHOWN = 5


@dataclass
class ModelTable:
    """What a table holds.

    Attributes:
        place_of: A row's (partition path, record key).
        ordering: Column that decides which row is newer; None for the later write.
        rows: The present.
        past: The rows at each instant that was recorded with `remember`.
    """

    place_of: Callable[[Mapping[str, Any]], Place]
    ordering: str | None = None
    rows: dict[Place, list[Row]] = field(default_factory=dict)
    past: dict[str, list[Row]] = field(default_factory=dict)

    def write(self, operation: Operation, rows: pa.Table) -> None:
        """Apply a write as it should be applied."""
        given: list[Row] = rows.to_pylist()
        if operation is Operation.UPSERT:
            self._upsert(given)
        elif operation is Operation.DELETE:
            for row in given:
                self.rows.pop(self.place_of(row), None)
        else:
            if operation is Operation.INSERT_OVERWRITE_TABLE:
                self.rows.clear()
            elif operation in (Operation.INSERT_OVERWRITE, Operation.DELETE_PARTITION):
                partitions = {self.place_of(row)[0] for row in given}
                self.rows = {place: kept for place, kept in self.rows.items() if place[0] not in partitions}
            for row in given if operation is not Operation.DELETE_PARTITION else ():
                self.rows.setdefault(self.place_of(row), []).append(row)

    def change(self, change: Callable[[Row], Row | None]) -> None:
        """Put in place of every row what the function makes of it; None deletes it."""
        changed = {place: [new for row in rows if (new := change(row)) is not None] for place, rows in self.rows.items()}
        self.rows = {place: rows for place, rows in changed.items() if rows}

    def _upsert(self, given: Iterable[Row]) -> None:
        newest: dict[Place, Row] = {}
        for row in given:
            place = self.place_of(row)
            if place not in newest or self._wins(row, newest[place]):
                newest[place] = row
        for place, row in newest.items():
            deleted = row.get("_hoodie_is_deleted") is True
            known = self.rows.get(place)
            if known is None:
                if not deleted:
                    self.rows[place] = [row]
                continue
            kept = [old if not self._wins(row, old) else row for old in known]
            kept = [one for one in kept if not (deleted and one is row)]
            if kept:
                self.rows[place] = kept
            else:
                del self.rows[place]

    def _wins(self, newer: Row, older: Row) -> bool:
        return self.ordering is None or newer[self.ordering] >= older[self.ordering]

    def all_rows(self) -> list[Row]:
        """Every row."""
        return [row for rows in self.rows.values() for row in rows]

    def remember(self, instant: str) -> None:
        """Keep the present as what time travel to `instant` must show."""
        self.past[instant] = self.all_rows()

    def restore(self, instant: str, rows: list[Row] | None = None) -> None:
        """Go back to a moment, and forget what came later.

        Args:
            instant: That was remembered.
            rows: What the table held then, where it is not remembered any more.
        """
        kept = self.past[instant] if rows is None else rows
        self.rows = {}
        for row in kept:
            self.rows.setdefault(self.place_of(row), []).append(row)
        self.past = {time: past for time, past in self.past.items() if time <= instant}

    def copy(self) -> ModelTable:
        """A model that changes on its own."""
        rows = {place: list(rows) for place, rows in self.rows.items()}
        return ModelTable(self.place_of, self.ordering, rows, dict(self.past))

    def check(self, found: pa.Table, as_of: str | None = None) -> None:
        """Compare with what was read; meta columns and the order of rows do not count.

        Args:
            found: Rows as read.
            as_of: An instant that was remembered; None for the present.

        Raises:
            ValidationFailed: With rows that are missing or too many.
        """
        compare_rows(self.all_rows() if as_of is None else self.past[as_of], found)


def compare_rows(expected: Iterable[Row], found: pa.Table) -> None:
    """Compare rows as a multiset, in the columns and types of `found`; a column that a row lacks is null.

    Raises:
        ValidationFailed: With rows that are missing or too many.
    """
    data = found.drop_columns([c for c in META_COLUMNS if c in found.column_names])
    rows = list(expected)
    unknown = {name for row in rows for name in row} - set(data.column_names)
    if unknown and rows:
        raise ValidationFailed(f"columns missing: {sorted(unknown)}")
    wanted = pa.Table.from_pylist([_cast(row, data.schema) for row in rows], schema=data.schema)
    ours, theirs = Counter(_hashable(wanted)), Counter(_hashable(data))
    missing, extra = list((ours - theirs).elements()), list((theirs - ours).elements())
    if missing or extra:
        raise ValidationFailed(
            f"{len(missing)} rows missing {missing[:_SHOWN]}, {len(extra)} rows too many {extra[:_SHOWN]}, of {len(rows)}"
        )


def _cast(row: Row, schema: pa.Schema) -> Row:
    """Values as a promoted column shows them."""
    out = {}
    for name, value in row.items():
        kind = schema.field(name).type
        if value is not None and pa.types.is_string(kind) and not isinstance(value, str):
            value = str(value)
        elif value is not None and pa.types.is_floating(kind):
            value = float(value)
        out[name] = value
    return out


def _hashable(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    names = sorted(table.column_names)
    return (tuple(_plain(row[name]) for name in names) for row in table.to_pylist())


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, dict):
        return tuple((k, _plain(v)) for k, v in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(_plain(v) for v in value)
    return value
