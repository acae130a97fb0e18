"""Rows of a table without key columns, read and written back: their meta columns say which rows they are, as in Apache Hudi."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudimeta import Table
from hudimeta.errors import ConfigError, SchemaMismatch
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all

BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
TRIPS = pa.table({"rider": ["A", "B", "C", "D"], "fare": [19.1, 27.7, 33.9, 1.5], "city": ["sf", "sf", "paris", "paris"]})


def made(path: Path, kind: str = "COPY_ON_WRITE", **more: str) -> Table:
    table = Table.create(path, TRIPS.schema, partition_by=["city"], type=kind, options=more)
    table.insert(TRIPS)
    return table


def read(table: Table, where: str | None = None) -> pa.Table:
    return table.scan(where=where).to_table()


def fares(table: Table) -> list[tuple[str, float]]:
    rows = read(table)
    return sorted(zip(rows["rider"].to_pylist(), rows["fare"].to_pylist(), strict=True))


def doubled(rows: pa.Table) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index("fare"), "fare", pc.multiply(rows["fare"], 2.0))


@BOTH
def test_an_upsert_of_rows_that_were_read_changes_them(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path / "t", kind)
    keys = sorted(read(table)["_hoodie_record_key"].to_pylist())
    report = table.upsert(doubled(read(table, "rider in ('B', 'C')")))
    assert (report.updated, report.inserted) == (2, 0)
    assert any("_hoodie_record_key" in note for note in report.notes)
    assert fares(table) == [("A", 19.1), ("B", 55.4), ("C", 67.8), ("D", 1.5)]
    assert sorted(read(table)["_hoodie_record_key"].to_pylist()) == keys
    check_all(open_storage(tmp_path / "t"))


@BOTH
def test_a_delete_of_rows_that_were_read_takes_them_out(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path / "t", kind)
    report = table.delete(read(table, "rider = 'C'").drop_columns(["fare", "city"]))
    assert report.deleted == 1
    assert [rider for rider, _ in fares(table)] == ["A", "B", "D"]
    check_all(open_storage(tmp_path / "t"))


def test_a_stream_of_rows_that_were_read_changes_them(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table = Table(tmp_path / "t", {"hudimeta.write.portion.bytes": "64"})
    rows = doubled(read(table))
    table.upsert(pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=1)))
    assert fares(table) == [("A", 38.2), ("B", 55.4), ("C", 67.8), ("D", 3.0)]


def test_rows_without_their_key_and_other_operations_insert(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.upsert(read(table, "rider = 'A'").drop_columns(["_hoodie_record_key"]))
    table.insert(read(table, "rider = 'B'"))
    table.bulk_insert(read(table, "rider = 'C'"))
    assert [rider for rider, _ in fares(table)] == ["A", "A", "B", "B", "C", "C", "D"]


def test_in_a_table_with_key_columns_these_say_which_rows(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", TRIPS.schema, key="rider")
    table.insert(TRIPS)
    rows = read(table, "rider = 'A'")
    table.upsert(rows.set_column(rows.schema.get_field_index("rider"), "rider", pa.array(["E"])))
    assert [rider for rider, _ in fares(table)] == ["A", "B", "C", "D", "E"]


def test_a_key_that_the_table_does_not_have_is_inserted_as_it_is(tmp_path: Path) -> None:
    other = made(tmp_path / "other")
    table = Table.create(tmp_path / "t", TRIPS.schema, partition_by=["city"])
    for _ in range(2):
        table.upsert(read(other))
    assert sorted(read(table)["_hoodie_record_key"].to_pylist()) == sorted(read(other)["_hoodie_record_key"].to_pylist())
    assert fares(table) == fares(other)


@pytest.mark.parametrize(("column", "found"), [("_hoodie_record_key", "null in 1 rows"), ("city", "another partition")])
def test_what_names_no_row_is_refused(tmp_path: Path, column: str, found: str) -> None:
    table = made(tmp_path / "t")
    rows = read(table, "rider = 'A'")
    value = pa.array([None if column != "city" else "oslo"], pa.string())
    with pytest.raises(SchemaMismatch, match=found):
        table.upsert(rows.set_column(rows.schema.get_field_index(column), column, value))
    assert fares(table) == [("A", 19.1), ("B", 27.7), ("C", 33.9), ("D", 1.5)]


def test_a_delete_without_keys_says_how_to_delete(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    with pytest.raises(ConfigError, match="delete with a predicate, or rows that were read with _hoodie_record_key"):
        table.delete(TRIPS)
