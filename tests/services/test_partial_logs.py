"""Partial updates and ALTER: their file slices are compacted before columns get a history, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.errors import HudiError, TableError
from hudimeta.storage import open_storage
from hudimeta.testing.builders import simple_rows
from hudimeta.testing.invariants import check_all

PARTIAL = {"hoodie.spark.sql.merge.into.partial.updates": "true"}


def table_of(path: Path, kind: str = "MERGE_ON_READ") -> Table:
    """Rows 0 to 7 in two partitions, of which p1 has a partial update in its log, and p0 a whole row."""
    rows = simple_rows(range(8), 1)
    table = Table.create(path, rows.schema, key="id", partition_by="part", ordering="ts", type=kind, options=PARTIAL)
    table.insert(rows)
    table.upsert(simple_rows([2], 2))
    Table(path, PARTIAL).update({"x": "7.5"}, where="part = 'p1' AND ts = 1")
    return Table(path, PARTIAL)


def logs_of(table: Table) -> dict[str, int]:
    slices = Table(table.path).file_slices()
    counts = slices["log_files"].to_pylist()
    return {path: len(logs) for path, logs in zip(slices["partition_path"].to_pylist(), counts, strict=True)}


def values_of(table: Table, column: str = "x") -> list[object]:
    rows = Table(table.path).scan(columns=["id", column]).to_table()
    return list(rows.sort_by("id")[column].to_pylist())


def test_slices_with_partial_updates_are_compacted_first(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    before = values_of(table)
    report = table.alter(add={"note": pa.string()})
    assert logs_of(table) == {"p0": 1, "p1": 0}
    assert values_of(table) == before
    assert any("logs of partial updates were compacted first" in note for note in report.notes)
    check_all(open_storage(table.path))


def test_a_change_that_does_not_fit_compacts_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    with pytest.raises(HudiError):
        table.alter(drop="nowhere")
    assert logs_of(table) == {"p0": 1, "p1": 1}


def test_compactions_that_were_planned_run_first(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    before = values_of(table)
    planned = table.schedule_compaction()
    report = table.alter(rename={"x": "amount"})
    assert logs_of(table) == {"p0": 0, "p1": 0}
    assert any(planned is not None and planned in note for note in report.notes)
    assert [
        row["amount"] for row in Table(table.path).scan(columns=["id", "amount"]).to_table().sort_by("id").to_pylist()
    ] == before


def test_a_planned_log_compaction_stands_in_the_way(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    Table(table.path, PARTIAL).update({"x": "8.5"}, where="part = 'p1' AND ts = 1")
    due = Table(table.path, {"hoodie.log.compaction.blocks.threshold": "2"})
    assert due.services.log_compaction.schedule() is not None
    with pytest.raises(TableError, match="Run what is planned"):
        table.alter(add={"note": pa.string()})
    assert [field.name for field in Table(table.path).schema if field.name == "note"] == []


def test_whole_rows_and_later_alters_compact_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.alter(add={"note": pa.string()})
    table.upsert(simple_rows([1], 3))
    assert not [note for note in table.alter(add={"more": pa.string()}).notes if "compacted" in note]
    assert logs_of(table) == {"p0": 1, "p1": 1}
