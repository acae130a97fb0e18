"""Bounds of columns in kept plans: the same slices are left out for the same reasons, with fewer requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.indexes.scan_report import ScanReport
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation
from tests.plan_cache.test_same_plans import keeping, rows_of

WHERE = "x > 3 AND ts < 9"
OPTIONS = {
    **SIMPLE_OPTIONS,
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "40",
    "hoodie.table.services.enabled": "false",
}


def a_table(path: Path, type: str) -> ModelledTable:
    table = ModelledTable(str(path), {**OPTIONS, "hoodie.datasource.write.table.type": type})
    for ts in range(1, 7):
        table.write(Operation.INSERT, simple_rows(range(ts * 10, ts * 10 + 6), ts, partitions=3))
    table.write(Operation.UPSERT, simple_rows(range(30, 33), 7, partitions=3))
    return table


def same_plan(path: str, options: dict[str, str], where: str = WHERE) -> ScanReport:
    """The report of a plan of now, once it was found to be that without kept plans."""
    found, plain = Table(path, options).scan(where=where), Table(path).scan(where=where)
    assert rows_of(found.plan().slices) == rows_of(plain.plan().slices)
    assert found.report.skipped == plain.report.skipped
    assert sorted(map(str, found.report.decisions().to_pylist())) == sorted(map(str, plain.report.decisions().to_pylist()))
    others = [note for note in found.report.notes if "plan" not in note]
    assert others == [note for note in plain.report.notes if "plan" not in note]
    return found.report


def opens_base_files(report: ScanReport) -> bool:
    return ("GET", "metadata table") in report.requests


def warmed(path: str, options: dict[str, str]) -> None:
    same_plan(path, options)
    kept = same_plan(path, options)
    assert "the plan with bounds of x is kept" in kept.notes
    assert opens_base_files(kept)
    assert not opens_base_files(same_plan(path, options))


@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_bounds_are_kept_and_go_on_with_the_table(tmp_path: Path, type: str) -> None:
    table, options = a_table(tmp_path / "t", type), keeping(tmp_path / "plans")
    warmed(table.path, options)
    assert not opens_base_files(same_plan(table.path, options, "x <= 2")), "another predicate on the same column"
    table.write(Operation.INSERT, simple_rows(range(100, 106), 8, partitions=3))
    assert "planned from a kept plan and 1 commits that came since" in same_plan(table.path, options).notes
    table.write(Operation.DELETE, simple_rows(range(30, 34), 9, partitions=3))
    table.write(Operation.INSERT_OVERWRITE, simple_rows(range(2), 10, partitions=3))
    same_plan(table.path, options)
    same_plan(table.path, options, "x > 7 OR part = 'p1'")


def test_a_column_stats_that_was_built_anew_is_read_anew(tmp_path: Path) -> None:
    table, options = a_table(tmp_path / "t", "COPY_ON_WRITE"), keeping(tmp_path / "plans")
    warmed(table.path, options)
    face = Table(table.path, table.options.given)
    face.indexes.drop("partition_stats")
    face.indexes.drop("column_stats")
    same_plan(table.path, options)
    face.indexes.create(type="column_stats", columns=["x"])
    again = same_plan(table.path, options)
    assert "column_stats: column ts is not indexed" in again.notes
    assert opens_base_files(again)


def test_damaged_bounds_are_made_anew(tmp_path: Path) -> None:
    table, options = a_table(tmp_path / "t", "MERGE_ON_READ"), keeping(tmp_path / "plans")
    warmed(table.path, options)
    for path in list((tmp_path / "plans").rglob("*.bounds.arrow")):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.unlink()
        path.write_bytes(data)
        assert opens_base_files(same_plan(table.path, options))
        assert not opens_base_files(same_plan(table.path, options))
