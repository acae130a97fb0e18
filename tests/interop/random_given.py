"""The rows that random turns bring: new ones, and changes of those that are there."""

from __future__ import annotations

import random

import pyarrow as pa

from tests.interop.random_columns import column_of, fitted, is_data
from tests.interop.random_model import RandomModel
from tests.interop.random_rows import Row
from tests.interop.random_tables import FILLING, Kind


class GivenRows:
    """Chooses rows by what the table is and holds.

    Attributes:
        random: Chooses.
        release: Of Apache Hudi.
        kind: Of the table.
        model: What it holds.
        schema: Its columns.
        latest: Whether structs have other fields than at first.
        now: The greatest ordering value so far.
        number: Of the newest row.
    """

    random: random.Random
    release: str
    kind: Kind
    model: RandomModel
    schema: pa.Schema
    latest: bool
    now: int
    number: int

    def _narrow(self) -> list[str]:
        columns = [name for name in self.kind.data if column_of(name).wider is not None]
        return [name for name in columns if self.schema.field(name).type == column_of(name).type]

    def _rows(self, step: str) -> list[Row]:
        chance = self.random
        stored = sorted(self.model.all_rows(), key=lambda row: row["num"])
        some = chance.sample(stored, min(len(stored), 1 + len(stored) // 4)) if stored else []
        if step == "delete":
            times = (chance.choice((0, self.kind.number(row), self.now)) for row in some)
            return [dict(row, ts=self.kind.moment(time)) for row, time in zip(some, times, strict=True)]
        if step == "marked":
            return [self.kind.mark(dict(row, ts=self.kind.moment(self.now))) for row in some]
        new = [self._new() for _ in range(chance.choice((3, 12)))]
        if step in ("insert", "bulk_insert"):
            return new
        if "overwrite" in step:
            return new[:4]
        # A merge of ours leaves rows in their partitions, and where winners are filled from losers it moves none. Rows that
        # come with another partition and stay where they are 1.2.0 doubles in merge-on-read tables of its own.
        stay = self.kind.shared.get("hoodie.simple.index.update.partition.path") == "false"
        doubled = self.release != "1.0.2" and self.kind.type == "MERGE_ON_READ" and stay
        moves = self.kind.is_global and step != "merge" and self.kind.payload not in FILLING and not doubled
        changed = [self._changed(row, late=step == "late", moves=moves) for row in some]
        repeated = self._repeated(changed + new[:3], moves) if self.kind.repeats and step != "merge" else []
        return changed + new[:3] + repeated

    def _repeated(self, rows: list[Row], moves: bool) -> list[Row]:
        """Other rows with keys of some; one of them is the newest."""
        again = []
        for row in self.random.sample(rows, len(rows) // 2):
            new = self._changed(row, late=False, moves=moves)
            new["ts"] = self.kind.moment(self.kind.number(row) + self.random.choice((-3, 3)))
            again.append(self.kind.mark(new) if self.kind.marker and self.random.random() < 0.3 else new)
        return again

    def _new(self) -> Row:
        self.number += 1
        return self._normal(self.kind.row(self.random, self.number, self.now, self._data()))

    def _changed(self, row: Row, late: bool, moves: bool) -> Row:
        """New values, in the same partition unless a global index finds the key elsewhere."""
        new = self._normal(self.kind.row(self.random, row["num"], self.now, self._data()))
        if not (moves and self.random.random() < 0.4):
            new |= {name: row[name] for name in self.kind.place_columns}
        if late:
            then = self.kind.number(row)
            new["ts"] = self.kind.moment(self.random.choice((then, then - 5, then - 1, self.now)))
        return new

    def _data(self) -> dict[str, pa.DataType]:
        names = (*self.kind.data, *(name for name in self.schema.names if name not in self.kind.data and is_data(name)))
        return {name: self.schema.field(name).type for name in names}

    def _normal(self, row: Row) -> Row:
        if self.latest:
            known = {name: value for name, value in row.items() if name in self.schema.names}
            row = {name: fitted(value, self.schema.field(name).type) for name, value in known.items()}
        normal: Row = pa.Table.from_pylist([row], self.schema).to_pylist()[0]
        return normal
