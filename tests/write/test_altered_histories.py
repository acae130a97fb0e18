"""Random histories of columns: added, renamed, dropped, widened and moved at every depth, beside writes and services.

`HUDIMETA_ALTERED_HISTORIES=200 python -m pytest tests/write/test_altered_histories.py` plays as many; each number is a history.
"""

from __future__ import annotations

import operator
import os
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from hudimeta.types import META_COLUMNS
from tests.write.altered_columns import WIDER, Column, Struct, arrow_type, below, changed, new_column, shown, some_value

COUNT, STEPS = int(os.environ.get("HUDIMETA_ALTERED_HISTORIES", "2")), 12
Rows = dict[str, dict[int, Any]]
LITERALS = {
    "int": "{}",
    "long": "{}",
    "string": "'{}'",
    "double": "{}D",
    "boolean": "{}",
    "date": "date'{}'",
    "decimal": "{}BD",
}
COMPARED = {"=": operator.eq, "<": operator.lt, ">=": operator.ge, "!=": operator.ne}


class History:
    """A table, and what a right reader shows of it."""

    def __init__(self, path: Path, seed: int) -> None:
        dice = self.dice = Random(seed)
        self.is_mor, self.renames, self.clock, self.names = dice.random() < 0.6, dice.random() < 0.6, 0, 0
        self.id, self.ts, self.part = Column("id", "string"), Column("ts", "long"), Column("part", "string")
        self.columns = [self.id, self.ts, self.part, *(self._new(2) for _ in range(dice.randrange(2, 6)))]
        self.rows: Rows = {}
        self.past: dict[str, dict[str, Any]] = {}
        options = {
            "hoodie.write.table.version": dice.choice(["8", "9"]),
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.clean.automatic": "false",
        }
        options |= {"hoodie.logfile.data.block.format": dice.choice(["avro", "parquet"])} if self.is_mor else {}
        kind, by = ("MERGE_ON_READ" if self.is_mor else "COPY_ON_WRITE"), dice.choice([(), "part"])
        indexes = ["column_stats", *(["partition_stats"] if by else []), *dice.choice([[], ["record_index"]])]
        self.table = Table.create(path, self.schema, "id", by, "ts", kind, indexes, options)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(column.name, arrow_type(column.kind)) for column in self.columns])

    def _new(self, depth: int) -> Column:
        self.names += 1
        return new_column(f"{self.dice.choice(['c', 'C', 'ü'])}{self.names}", self.dice, depth)

    def _others(self) -> list[tuple[str, Column, list[Column]]]:
        return [found for found in below(self.columns) if found[1] not in (self.id, self.ts, self.part)]

    # Acts

    def write(self) -> None:
        """Some rows, of a column more or less now and then, or of a wider one."""
        dice, how, columns = self.dice, self.dice.random(), list(self.columns)
        self.clock += 1
        if how < 0.2:
            self.columns.append(self._new(1))
            columns.append(self.columns[-1])
        elif how < 0.3:
            del columns[3:4]
        elif how < 0.4:
            self._widen([c for c in columns[3:] if isinstance(c.kind, str)], texts=False)
        elif how < 0.5:
            dice.shuffle(columns)
        given = {}
        for key in dice.sample([f"k{n}" for n in range(20)], dice.randrange(1, 9)):
            part = self.rows[key][self.part.number] if key in self.rows else dice.choice(["p", "q"])
            fixed = {self.id.number: key, self.ts.number: self.clock, self.part.number: part}
            given[key] = {c.number: some_value(c.kind, dice) for c in columns} | fixed
        content = [{c.name: shown(row.get(c.number), c.kind) for c in columns} for row in given.values()]
        self.table.upsert(pa.Table.from_pylist(content, pa.schema([(c.name, arrow_type(c.kind)) for c in columns])))
        self.rows = {**self.rows, **given}

    def delete(self) -> None:
        where, hit = self.predicate()
        self.table.delete(where=where)
        self.rows = {key: row for key, row in self.rows.items() if key not in hit}

    def alter(self) -> None:
        path, column, beside = self.dice.choice(self._others())
        how = self.dice.choice(["add", "rename", "drop", "widen", "move"])
        above = path.rpartition(".")[0]
        if how == "add":
            new = self._new(1)
            self.table.alter(add={f"{above}.{new.name}" if above else new.name: arrow_type(new.kind)})
            beside.append(new)
        elif how == "rename" and self.renames:
            self.names += 1
            self.table.alter(rename={path: f"r{self.names}"})
            column.name = f"r{self.names}"
        elif how == "drop" and len(beside) > (1 if above else 4):
            self.table.alter(drop=path)
            beside.remove(column)
        elif how == "widen" and isinstance(column.kind, str) and self._widen([column], texts=True):
            self.table.alter(retype={path: arrow_type(column.kind)})
        elif how == "move":
            self.table.alter(move={path: None})
            beside.remove(column)
            beside.insert(0, column)

    def _widen(self, columns: list[Column], *, texts: bool) -> bool:
        for column in columns:
            kinds = [k for k in WIDER.get(str(column.kind), {}) if k != "string" or (texts and not column.is_widened)]
            if kinds:
                kind = self.dice.choice(kinds)
                become = WIDER[str(column.kind)][kind]
                self.rows = {key: changed(row, Struct(self.columns), column.number, become) for key, row in self.rows.items()}
                column.kind, column.is_widened = kind, True
                return True
        return False

    def serve(self) -> None:
        if self.is_mor and self.dice.random() < 0.5:
            self.table.compact()
        else:
            self.table.cluster(["ts"])

    # Questions

    def predicate(self) -> tuple[str, set[str]]:
        """A comparison of a column, and the keys of the rows for which it is true."""
        choices = [c for c in self.columns if isinstance(c.kind, str) and c.kind in LITERALS]
        column = self.dice.choice(choices)
        there = [row[column.number] for row in self.rows.values() if row.get(column.number) is not None]
        name = f"`{column.name}`"
        if not there or self.dice.random() < 0.3:
            return f"{name} is null", {key for key, row in self.rows.items() if row.get(column.number) is None}
        value, sign = self.dice.choice(there), self.dice.choice(list(COMPARED))
        text = LITERALS[str(column.kind)].format(str(value).lower() if isinstance(value, bool) else value)
        held = ((key, row.get(column.number)) for key, row in self.rows.items())
        return f"{name} {sign} {text}", {k for k, one in held if one is not None and COMPARED[sign](one, value)}

    def check(self) -> None:
        assert self.answer() == self.expected(self.rows)
        for _ in range(3):
            where, keys = self.predicate()
            assert self.answer(where=where) == self.expected({key: self.rows[key] for key in keys}), where

    def answer(self, **question: Any) -> dict[str, Any]:
        found = self.table.scan(**question).to_table()
        names = [name for name in found.column_names if name not in META_COLUMNS]
        assert "as_of" in question or names == self.schema.names
        return {row["id"]: row for row in found.select(names).to_pylist()}

    def expected(self, rows: Rows) -> dict[str, Any]:
        return {key: {c.name: shown(row.get(c.number), c.kind) for c in self.columns} for key, row in rows.items()}

    def play(self, steps: int) -> None:
        self.write()
        for _ in range(steps):
            self.dice.choice(
                [self.write, self.write, self.write, self.alter, self.alter, self.alter, self.delete, self.serve]
            )()
            self.check()
            self.past[self.table.timeline.writes[-1].time] = self.expected(self.rows)
        for instant, rows in self.past.items():
            assert self.answer(as_of=instant) == rows, instant
        check_all(open_storage(self.table.path))
        self.table.metadata.validate().raise_if_differs()


@pytest.mark.parametrize("seed", range(COUNT))
def test_every_column_shows_what_was_written_into_it(tmp_path: Path, seed: int) -> None:
    History(tmp_path / "t", seed).play(STEPS)
