"""hudimeta and Apache Hudi take turns on one table; after every turn both must see exactly the rows of a plain dictionary."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pytest

import hudimeta
from tests.interop.apache_hudi import ApacheHudi

SCHEMA = pa.schema(
    [("id", pa.string()), ("month", pa.string()), ("amount", pa.float64()), ("note", pa.string()), ("ts", pa.int64())]
)
MONTHS = ("2026-01", "2026-02", "2026-03")
INDEXES = ["column_stats", "record_index"]
JAVA_OPTIONS = {
    "hoodie.table.name": "ping_pong",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "month",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.clean.automatic": "false",
}


@dataclass
class Model:
    """The rows that must be visible, by key; the greatest `ts` wins, and of equal ones the last written."""

    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    def put(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            old = self.rows.get(row["id"])
            if old is None or row["ts"] >= old["ts"]:
                self.rows[row["id"]] = row

    def remove(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            del self.rows[row["id"]]

    def sorted(self) -> list[dict[str, Any]]:
        return [self.rows[key] for key in sorted(self.rows)]


def row(number: int, ts: int) -> dict[str, Any]:
    """A row that its number and time determine; a key keeps its partition."""
    month = MONTHS[number % len(MONTHS)]
    note = None if number % 7 == 0 else f"n{number}-{ts} é"
    return {"id": f"k{number:05d}", "month": month, "amount": number + ts / 100, "note": note, "ts": ts}


class Writer(Protocol):
    """One of the two sides."""

    def insert(self, rows: list[dict[str, Any]]) -> None: ...

    def upsert(self, rows: list[dict[str, Any]]) -> None: ...

    def delete(self, rows: list[dict[str, Any]]) -> None: ...

    def clean(self) -> None: ...


@dataclass
class OurSide:
    """hudimeta without Spark; it opens the table anew at every turn, as a new process would."""

    path: Path
    type: str

    def table(self) -> Any:
        if not (self.path / ".hoodie").exists():
            arguments = {"key": "id", "partition_by": ["month"], "ordering": ["ts"], "type": self.type, "indexes": INDEXES}
            return hudimeta.Table.create(str(self.path), SCHEMA, **arguments, options={"hoodie.table.name": "ping_pong"})
        return hudimeta.Table(str(self.path))

    def insert(self, rows: list[dict[str, Any]]) -> None:
        self.table().insert(pa.Table.from_pylist(rows, SCHEMA))

    def upsert(self, rows: list[dict[str, Any]]) -> None:
        self.table().upsert(pa.Table.from_pylist(rows, SCHEMA))

    def delete(self, rows: list[dict[str, Any]]) -> None:
        self.table().delete("id IN (" + ", ".join(f"'{r['id']}'" for r in rows) + ")")

    def clean(self) -> None:
        hudimeta.Table(str(self.path), options={"hoodie.clean.commits.retained": "2"}).clean()


@dataclass
class TheirSide:
    """Apache Hudi, told of the table's indexes at every operation."""

    path: Path
    type: str
    hudi: ApacheHudi

    def write(self, rows: list[dict[str, Any]], operation: str) -> None:
        options = {**JAVA_OPTIONS, "hoodie.datasource.write.table.type": self.type}
        self.hudi.write(self.path, pa.Table.from_pylist(rows, SCHEMA), options, operation=operation)

    def insert(self, rows: list[dict[str, Any]]) -> None:
        self.write(rows, "insert")

    def upsert(self, rows: list[dict[str, Any]]) -> None:
        self.write(rows, "upsert")

    def delete(self, rows: list[dict[str, Any]]) -> None:
        self.write(rows, "delete")

    def clean(self) -> None:
        self.hudi.clean(self.path, retain_commits=2)


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows without Hudi's own columns, in key order."""
    return sorted(table.select(SCHEMA.names).to_pylist(), key=lambda r: r["id"])


def assert_same_rows(path: Path, hudi: ApacheHudi, model: Model, turn: str) -> None:
    expected = model.sorted()
    assert plain_rows(hudimeta.Table(str(path)).scan().to_table()) == expected, f"hudimeta after {turn}"
    assert plain_rows(hudi.read(path).table) == expected, f"Apache Hudi, planned from the metadata table, after {turn}"
    assert plain_rows(hudi.read(path, metadata=False).table) == expected, f"Apache Hudi, planned from a listing, after {turn}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("table_type", "we_begin"), [("COPY_ON_WRITE", True), ("MERGE_ON_READ", False)], ids=["cow_ours", "mor_theirs"]
)
def test_ten_turns(hudi: ApacheHudi, tmp_path: Path, table_type: str, we_begin: bool) -> None:
    """Five operations, each done by both sides in turn on what the other side left."""
    path, model = tmp_path / "table", Model()
    sides: list[Writer] = [OurSide(path, table_type), TheirSide(path, table_type, hudi)]
    writers = sides if we_begin else sides[::-1]
    for turn in range(10):
        writer, step = writers[turn % 2], turn // 2
        name = f"turn {turn} by {type(writer).__name__}"
        if step == 0:
            rows = [row(n, 100) for n in range(turn * 30, turn * 30 + 30)]
            writer.insert(rows)
            model.put(rows)
        elif step == 1:  # updates of the other side's rows and of own ones, and new keys
            rows = [row(n, 100 + turn) for n in range(turn * 5, 60, 3)] + [row(100 + turn, 100)]
            writer.upsert(rows)
            model.put(rows)
        elif step == 2:
            rows = [dict(r, ts=1000) for r in model.sorted()[turn :: 9]]
            writer.delete(rows)
            model.remove(rows)
        elif step == 3:  # late rows lose, equal ones win, deleted keys come back
            late = [dict(r, ts=r["ts"] - 50, note="late") for r in model.sorted()[:6]]
            equal = [dict(r, note="equal") for r in model.sorted()[6:12]]
            again = [row(n, 2000 + turn) for n in range(60) if f"k{n:05d}" not in model.rows]
            writer.upsert(late + equal + again)
            model.put(late + equal + again)
        else:
            writer.clean()
        assert_same_rows(path, hudi, model, name)
        if turn % 3 == 2 or turn == 9:
            assert hudi.validate(path)["record_index"] >= len(model.rows)
            hudimeta.Table(str(path)).metadata.validate()
    present = hudimeta.Table(str(path)).properties["hoodie.table.metadata.partitions"].split(",")
    assert {"files", "column_stats", "record_index"} <= set(present), "neither side may drop an index"


def test_hudi_skips_files_by_our_column_statistics(hudi: ApacheHudi, tmp_path: Path) -> None:
    """Bounds that we wrote let Hudi's own scan leave out files, and lose no row."""
    path = tmp_path / "table"
    ours = OurSide(path, "COPY_ON_WRITE")
    rows = [dict(row(n, 1), month=f"2026-{n // 10 + 1:02d}", amount=float(n)) for n in range(80)]
    ours.insert(rows)
    everything, some = hudi.read(path), hudi.read(path, where="amount >= 35 AND amount < 45")
    assert everything.files_read == 8
    assert sorted(some.table["amount"].to_pylist()) == [float(n) for n in range(35, 45)]
    assert some.files_read == 2
    assert hudi.read(path, where="amount >= 35 AND amount < 45", metadata=False).files_read == 8


def test_hudi_finds_a_row_through_our_record_index(hudi: ApacheHudi, tmp_path: Path) -> None:
    """One key, one file: the record index alone knows which of the eight."""
    path = tmp_path / "table"
    OurSide(path, "COPY_ON_WRITE").insert([dict(row(n, 1), month=f"2026-{n % 8 + 1:02d}", amount=1.0) for n in range(80)])
    found = hudi.read(path, where="id = 'k00033'")
    assert found.table["id"].to_pylist() == ["k00033"]
    assert found.files_read == 1
