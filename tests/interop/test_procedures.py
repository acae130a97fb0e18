"""The same CALL on the same table: Apache Hudi's columns and rows, and ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudimeta
from hudimeta.procedures import find
from tests.interop.apache_hudi import ApacheHudi, HudiFailed
from tests.interop.sides import SCHEMA, Theirs, row

ORDERED = ("show_commits", "show_clustering", "show_compaction", "show_savepoints", "stats_wa", "show_cleans", "show_timeline")
"""Of the others neither side promises an order."""
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("show_commits", {}),
    ("show_commits", {"limit": 2}),
    ("show_commits_metadata", {"limit": 100}),
    ("show_commit_files", {"instant_time": "first"}),
    ("show_commit_files", {"instant_time": "last"}),
    ("show_commit_partitions", {"instant_time": "last"}),
    ("show_commit_write_stats", {"instant_time": "last"}),
    ("show_commit_extra_metadata", {"instant_time": "first"}),
    ("show_rollbacks", {}),
    ("show_savepoints", {}),
    ("show_clustering", {}),
    ("show_clustering", {"show_involved_partition": True}),
    ("show_table_properties", {"limit": 100}),
    ("show_fsview_latest", {"limit": 100}),
    ("show_metadata_table_partitions", {}),
    ("show_metadata_table_files", {"partition": "2026-01"}),
    ("show_metadata_table_column_stats", {"targetColumns": "amount,id"}),
    ("validate_metadata_table_files", {}),
    ("validate_metadata_table_files", {"verbose": True}),
    ("show_file_status", {"partition": "2026-01", "file": "nosuch.parquet"}),
    ("show_invalid_parquet", {}),
    ("stats_file_sizes", {"partition_path": "*", "limit": 100}),
    ("stats_wa", {"limit": 100}),
)
LATER = (("show_cleans", {}), ("show_cleans_metadata", {}), ("show_clean_plans", {}), ("show_timeline", {}))
"""Of version 1.2.0 on."""


def rows_of(found: pa.Table, name: str) -> list[tuple[Any, ...]]:
    """Rows to compare; of deviations the last digits follow from the order in which they are summed up."""
    if name == "show_timeline":  # which of two actions of one instant has its times is chance in Apache Hudi
        found = found.filter(pc.not_equal(found["action"], "savepoint"))
    rows = [tuple(float(f"{v:.12g}") if isinstance(v, float) else v for v in r.values()) for r in found.to_pylist()]
    return rows if name in ORDERED else sorted(rows, key=str)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_calls_agree(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "table"
    stats = {"hoodie.metadata.index.column.stats.enable": "true"}
    theirs = Theirs(path, hudi, type=kind, options=stats)
    theirs.write("upsert", [row(n, 1) for n in range(40)])
    theirs.write("upsert", [row(n, 2) for n in range(0, 40, 3)])
    ours = hudimeta.Table(path)
    ours.insert(pa.Table.from_pylist([row(n, 3) for n in range(40, 60)], SCHEMA))
    ours.savepoint(ours.timeline.writes[0].time)
    ours.cluster("amount") if kind == "COPY_ON_WRITE" else ours.schedule_compaction()
    ours.upsert(pa.Table.from_pylist([row(3, 4)], SCHEMA))
    ours.rollback(ours.timeline.writes[-1].time)
    writes = ours.timeline.writes
    hudi.sql(f"CREATE TABLE called USING hudi LOCATION '{path}'")
    try:
        for name, arguments in (*CALLS, *([("show_compaction", {})] if kind == "MERGE_ON_READ" else ())):
            given = dict(arguments)
            if "instant_time" in given:
                given["instant_time"] = (writes[0] if given["instant_time"] == "first" else writes[-1]).time
            agree(hudi, ours, str(path), name, given)
        if hudi_has(hudi, "show_cleans"):
            for name, arguments in LATER:
                agree(hudi, ours, str(path), name, dict(arguments))
    finally:
        hudi.sql("DROP TABLE called")


def hudi_has(hudi: ApacheHudi, name: str) -> bool:
    """Whether that version of Apache Hudi knows a procedure."""
    try:
        hudi.sql(f"CALL help(cmd => '{name}')")
    except HudiFailed:
        return False
    return True


def agree(hudi: ApacheHudi, ours: hudimeta.Table, path: str, name: str, arguments: dict[str, Any]) -> None:
    """Columns, types and rows of one call."""
    target = {"table": "called"} if any(p.name == "table" for p in find(name).parameters) else {"path": path}
    written = ", ".join(f"{key} => {literal(value)}" for key, value in {**target, **arguments}.items())
    expected, found = hudi.sql(f"CALL {name}({written})"), ours.call(name, **arguments)
    assert [(f.name, f.type) for f in found.schema] == [(f.name, f.type) for f in expected.schema], name
    # How a log file prints differs between versions of Apache Hudi.
    plain = [column for column in found.column_names if not column.startswith("delta_files")]
    assert rows_of(found.select(plain), name) == rows_of(expected.select(plain), name), name


def literal(value: Any) -> str:
    """A value in SQL."""
    return f"'{value}'" if isinstance(value, str) else str(value).lower()
