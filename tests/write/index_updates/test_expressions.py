"""Expression indexes over columns of every type: kept by every write, true of every value, and no answer depends on them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta

UTC = datetime.timezone.utc
INDEXES: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "to_timestamp": ("column_stats", "text", "to_timestamp", {}),
    "to_date": ("column_stats", "text", "to_date", {"format": "yyyy-MM-dd HH:mm:ss"}),
    "length": ("column_stats", "text", "length", {}),
    "unix": ("column_stats", "text", "unix_timestamp", {}),
    "year": ("column_stats", "day", "year", {}),
    "add": ("column_stats", "day", "date_add", {"days": 3}),
    "month": ("column_stats", "at", "date_format", {"format": "yyyy-MM"}),
    "hour": ("column_stats", "at", "hour", {}),
    "double": ("column_stats", "x", "identity", {}),
    "price": ("column_stats", "price", "identity", {}),
    "flag": ("column_stats", "flag", "identity", {}),
    "nested": ("column_stats", "nested.a", "lower", {}),
    "head": ("bloom_filters", "text", "substring", {"pos": 1, "len": 7}),
    "days": ("bloom_filters", "day", "identity", {"numEntries": 100, "fpp": "0.01"}),
    "replaced": ("bloom_filters", "nested.a", "regexp_replace", {"pattern": "A", "replacement": "B"}),
}
WHERE = (
    "to_timestamp(text) > timestamp'2026-01-20 00:00:00'",
    "to_date(text, 'yyyy-MM-dd HH:mm:ss') = date'2026-01-05'",
    "length(text) = 19",
    "year(day) = 2003",
    "date_add(day, 3) = date'2001-01-04'",
    "date_format(at, 'yyyy-MM') = '2026-01'",
    "hour(at) = 0",
    "lower(nested.a) = 'a7'",
    "substring(text, 1, 7) = '2026-01'",
    "regexp_replace(nested.a, 'A', 'B') = 'B8'",
)


def rows(ids: range, ts: int) -> pa.Table:
    """Rows with nulls, NaN and values of every kind that expressions take."""
    start = datetime.datetime(2026, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "id": pa.array([str(i) for i in ids], pa.string()),
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "text": pa.array([None if i % 5 == 0 else f"2026-01-{i % 28 + 1:02d} 10:00:00" for i in ids], pa.string()),
            "at": pa.array([start + datetime.timedelta(days=i % 28) for i in ids], pa.timestamp("us", "UTC")),
            "day": pa.array([datetime.date(2000 + i % 7, 1, 1) for i in ids], pa.date32()),
            "x": pa.array([float("nan") if i % 9 == 0 else None if i % 4 == 0 else i * 1.5 for i in ids], pa.float64()),
            "price": pa.array([Decimal(i) / 100 for i in ids], pa.decimal128(10, 2)),
            "flag": pa.array([i % 2 == 0 for i in ids], pa.bool_()),
            "nested": pa.array([{"a": f"A{i}"} for i in ids], pa.struct([("a", pa.string())])),
        }
    )


@pytest.mark.rotation(3)
@pytest.mark.parametrize(("kind", "version"), [("COPY_ON_WRITE", "8"), ("MERGE_ON_READ", "9")])
def test_expressions_of_every_type_are_kept(tmp_path: Path, kind: str, version: str) -> None:
    path, options = tmp_path / "t", {"hoodie.write.table.version": version}
    table = hudimeta.Table.create(path, rows(range(0), 0).schema, key="id", ordering="ts", type=kind, options=options)
    table.insert(rows(range(30), 1))
    for name, (index, column, expression, arguments) in INDEXES.items():
        table.metadata.create_index(name, index, column, expression=expression, options=arguments)
    table.upsert(rows(range(20, 50), 2))
    table.delete("id in ('3', '4', '45')")
    if kind == "MERGE_ON_READ":
        table.compact()
        table.upsert(rows(range(5), 3))
    trusting = {"hudimeta.index.trust": True}
    report = hudimeta.Table(path, trusting).metadata.validate()
    assert report.holds, report
    assert not any(check.notes for check in report.checks), report
    for where in WHERE:
        without = hudimeta.Table(path, {"hudimeta.index.use": "none"}).scan(where=where).to_table()
        for more in ({}, trusting):
            found = hudimeta.Table(path, {"hudimeta.index.use": "expression_index", **more}).scan(where=where).to_table()
            assert sorted(found["id"].to_pylist()) == sorted(without["id"].to_pylist()), where
