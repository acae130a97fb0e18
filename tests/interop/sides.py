"""The two writers that take turns on a table, and the plain dictionary that says which rows must be there."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudimeta
from tests.interop.apache_hudi import ApacheHudi, Installation

Row = dict[str, Any]

SCHEMA = pa.schema(
    [("id", pa.string()), ("month", pa.string()), ("amount", pa.float64()), ("note", pa.string()), ("ts", pa.int64())]
)
FULL = os.environ.get("HUDIMETA_INTEROP_FULL") == "1"
"""`make interop-full` sets it: more rounds, more cases."""
TABLE_VERSION = os.environ.get("HUDIMETA_INTEROP_TABLE_VERSION", "8")
"""9 needs HUDI_BUNDLE to name a jar of Apache Hudi 1.1 or later."""
_FOUND = Installation.find()
OLD = _FOUND is None or _FOUND.release == "1.0.2"
"""Whether the release at hand is 1.0.2."""
MONTHS = ("2026-01", "2026-02", "2026-03")


def row(number: int, ts: int) -> Row:
    """A row that its number and time determine; a key keeps its partition."""
    month = MONTHS[number % len(MONTHS)]
    note = None if number % 7 == 0 else f"n{number}-{ts} é"
    return {"id": f"k{number:05d}", "month": month, "amount": number + ts / 100, "note": note, "ts": ts}


@dataclass
class Model:
    """The rows that must be visible, by key; the greatest `ts` wins, and of equal ones the last written."""

    rows: dict[str, Row] = field(default_factory=dict)

    def put(self, rows: list[Row]) -> None:
        for new in rows:
            old = self.rows.get(new["id"])
            if old is None or new["ts"] >= old["ts"]:
                self.rows[new["id"]] = new

    def remove(self, rows: list[Row]) -> None:
        for gone in rows:
            del self.rows[gone["id"]]

    def overwrite(self, rows: list[Row], partitioned: bool) -> None:
        months = {new["month"] for new in rows}
        self.rows = {k: old for k, old in self.rows.items() if partitioned and old["month"] not in months}
        self.put(rows)

    def sorted(self) -> list[Row]:
        return [self.rows[key] for key in sorted(self.rows)]


@dataclass
class Ours:
    """hudimeta without Spark; it opens the table anew at every turn, as a new process would."""

    path: Path
    partitioned: bool = True
    type: str = "COPY_ON_WRITE"
    options: dict[str, str] = field(default_factory=dict)
    schema: pa.Schema = SCHEMA

    def table(self) -> hudimeta.Table:
        if (self.path / ".hoodie").exists():
            return hudimeta.Table(self.path, self.options)
        partition_by = ["month"] if self.partitioned else []
        options = {"hoodie.write.table.version": TABLE_VERSION, **self.options}
        return hudimeta.Table.create(
            self.path, self.schema, "id", partition_by, ordering="ts", type=self.type, options=options, name="turns"
        )

    def write(self, operation: str, rows: list[Row]) -> None:
        """`delete_where` deletes the rows by a predicate, all other operations are verbs of a table."""
        if operation == "clean":
            hudimeta.Table(self.path, {"hoodie.clean.commits.retained": "3"}).clean()
        elif operation == "compact":
            assert self.table().compact()
        elif operation == "delete_where":
            self.table().delete("id IN (" + ", ".join(f"'{r['id']}'" for r in rows) + ")")
        else:
            getattr(self.table(), operation)(pa.Table.from_pylist(rows, self.schema))


@dataclass
class Theirs:
    """Apache Hudi; `hudi_jvm` tells it of the table's indexes at every operation."""

    path: Path
    hudi: ApacheHudi
    partitioned: bool = True
    type: str = "COPY_ON_WRITE"
    options: dict[str, str] = field(default_factory=dict)
    schema: pa.Schema = SCHEMA

    def write(self, operation: str, rows: list[Row]) -> None:
        """`clean` removes what only commits before the last three need; `compact` and it take no rows."""
        if operation == "clean":
            self.hudi.clean(self.path, retain_commits=3)
            return
        if operation == "compact":
            assert self.hudi.service(self.path, "compact", {"hoodie.compact.inline.max.delta.commits": "1", **self.options})
            return
        options = {
            "hoodie.table.name": "turns",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": self.type,
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.clean.automatic": "false",
            "hoodie.compact.inline": "false",
            "hoodie.write.table.version": TABLE_VERSION,
            "hoodie.write.auto.upgrade": "false",
            **({"hoodie.datasource.write.partitionpath.field": "month"} if self.partitioned else {}),
            **self.options,
        }
        self.hudi.write(self.path, pa.Table.from_pylist(rows, self.schema), options, operation=operation)


def plain_rows(table: pa.Table) -> list[Row]:
    """Rows without Hudi's own columns, in key order."""
    own = [name for name in table.column_names if not name.startswith("_hoodie_")]
    return sorted(table.select(own).to_pylist(), key=lambda r: str(r["id"]))


def readers(path: Path, hudi: ApacheHudi) -> dict[str, Callable[[], list[Row]]]:
    """Every way to read the table's rows, by name; each opens it anew."""
    unplanned = {"hoodie.metadata.enable": "false"}
    found = {
        "hudimeta": lambda: plain_rows(hudimeta.Table(path).scan().to_table()),
        "hudimeta, planned from a listing": lambda: plain_rows(hudimeta.Table(path, unplanned).scan().to_table()),
        "Apache Hudi": lambda: plain_rows(hudi.read(path).table),
        "Apache Hudi, planned from a listing": lambda: plain_rows(hudi.read(path, metadata=False).table),
        "hudi-rs": lambda: plain_rows(read_by_hudi_rs(path)),
    }
    if not OLD:  # it does not read a metadata table whose log blocks and base files have two schemas, as 1.2.0 leaves it
        del found["hudi-rs"]
    return found


def read_by_hudi_rs(path: Path, as_of: str | None = None) -> pa.Table:
    """All rows as the Rust reader sees them, of now or as of an instant."""
    from hudi import HudiReadOptions, HudiTableBuilder

    options = HudiReadOptions() if as_of is None else HudiReadOptions().with_as_of_timestamp(as_of)
    return pa.Table.from_batches(HudiTableBuilder.from_base_uri(str(path)).build().read(options))


def assert_everybody_reads(path: Path, hudi: ApacheHudi, expected: list[Row], after: str) -> None:
    """All readers return exactly these rows."""
    for name, read in readers(path, hudi).items():
        found = read()
        assert len(found) == len(expected), f"{name} after {after}: {len(found)} rows instead of {len(expected)}"
        assert found == expected, f"{name} after {after}"
