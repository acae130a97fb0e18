"""Statistics that Apache Hudi wrote and that are not true of the rows: they leave nothing out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudimeta

# Hudi 1.2.0 wrote p0 with texts of 5,000 characters (of which footers say nothing), and into a log of p1 the bytes 61 and 80.
WHERE = {
    "raw = X'80'": ["c"],
    "raw = X'61'": ["a", "d"],
    "raw > X'70'": ["c", "e"],
    "note > 'w'": ["a", "b"],
    "note IS NOT NULL": ["a", "b", "c", "d", "e"],
}
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
WIDER = SCHEMA.append(pa.field("x", pa.int32()))


def ids(table: hudimeta.Table, where: str) -> list[str]:
    return sorted(table.scan(where=where).to_table()["id"].to_pylist())


@pytest.mark.parametrize("index", ["none", "column_stats", "partition_stats", "column_stats,partition_stats"])
def test_bounds_of_bytes_in_logs_and_of_partitions_lose_no_row(rich_table: Callable[[str], Path], index: str) -> None:
    table = hudimeta.Table(rich_table("unlike_stats_mor8"), {"hudimeta.index.use": index})
    assert {where: ids(table, where) for where in WHERE} == WHERE


def test_partition_statistics_of_others_are_not_believed_before_they_are_validated(
    rich_table: Callable[..., Path],
) -> None:
    table = hudimeta.Table(rich_table("unlike_stats_mor8", fresh=True), {"hudimeta.index.use": "partition_stats"})
    scan = table.scan(where="ts > 1")
    scan.to_table()
    assert any("nothing proves that partition_stats" in note for note in scan.report.notes)
    assert "partition_stats" not in table.metadata.validate(prove=True).recorded, "it differs"


def test_partition_statistics_of_ours_leave_partitions_out(tmp_path: Path) -> None:
    table = hudimeta.Table.create(
        tmp_path / "t", SCHEMA, "id", ["part"], ordering="ts", indexes=["column_stats", "partition_stats"]
    )
    table.insert(rows([("a", "p0", 1), ("b", "p1", 2)], SCHEMA))
    table = hudimeta.Table(tmp_path / "t", {"hudimeta.index.use": "partition_stats"})
    scan = table.scan(where="ts > 1")
    assert scan.to_table()["id"].to_pylist() == ["b"]
    assert scan.report.partitions_kept == 1


def rows(values: list[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in values], schema)


def records(table: hudimeta.Table, index: str, column: str) -> dict[str, tuple[int, int]]:
    found = table.metadata.records(index)
    found = found.filter(pc.equal(found["column_name"], column))
    names = ("file_name", "value_count", "null_count")
    return {name: (values, nulls) for name, values, nulls in zip(*(found[c].to_pylist() for c in names), strict=True)}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("by", ["write", "alter"])
def test_a_column_that_is_added_has_statistics_from_then_on(tmp_path: Path, kind: str, by: str) -> None:
    indexes = ["column_stats", "partition_stats"]
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, "id", ["part"], ordering="ts", type=kind, indexes=indexes)
    table.insert(rows([(f"k{n}", f"p{n % 3}", 1) for n in range(9)], SCHEMA))
    if by == "alter":
        table.alter(add={"x": pa.int32()})
    hudimeta.Table(tmp_path / "t").upsert(rows([("k0", "p0", 2, 5)], WIDER))
    table = hudimeta.Table(tmp_path / "t")
    known = records(table, "partition_stats", "x")
    assert set(known) == {"p0", "p1", "p2"}, "Hudi's readers pass over partitions without a record"
    assert known["p0"][0] > known["p0"][1] > 0, "older rows have nulls"
    assert all(values == nulls > 0 for path, (values, nulls) in known.items() if path != "p0")
    hudimeta.Table(tmp_path / "t").upsert(rows([("k1", "p1", 2, 7), ("new", "p1", 2, None)], WIDER))
    table = hudimeta.Table(tmp_path / "t", {"hudimeta.index.use": "column_stats,partition_stats"})
    assert len(records(table, "column_stats", "x")) >= 2
    definitions = json.loads((tmp_path / "t/.hoodie/.index_defs/index.json").read_text())["indexDefinitions"]
    assert "x" in definitions["column_stats"]["sourceFields"]
    assert ids(table, "x = 5") == ["k0"]
    assert ids(table, "x > 5") == ["k1"]
    assert ids(table, "x IS NULL") == ["k2", "k3", "k4", "k5", "k6", "k7", "k8", "new"]
    table.metadata.validate().raise_if_differs()


def test_columns_that_were_listed_stay_the_only_ones_with_statistics(tmp_path: Path) -> None:
    options = {"hoodie.metadata.index.column.stats.column.list": "ts"}
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, "id", ordering="ts", indexes=["column_stats"], options=options)
    table.insert(rows([("a", "p", 1)], SCHEMA))
    table.upsert(rows([("b", "p", 1, 4)], WIDER))
    assert records(hudimeta.Table(tmp_path / "t"), "column_stats", "x") == {}
