"""Apache Hudi leaves out files by the column and partition statistics that we wrote, and loses no row."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from tests.interop.apache_hudi import ApacheHudi

UTC = datetime.timezone.utc
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("number", pa.int32()),
        ("large", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float32()),
        ("price", pa.decimal128(10, 2)),
        ("amount", pa.decimal128(24, 10)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("raw", pa.binary()),
        ("flag", pa.bool_()),
        ("maybe", pa.string()),
        ("nested", pa.struct([("depth", pa.int64())])),
    ]
)
FILES, ROWS = 6, 10
NAN = float("nan")

QUERIES = {
    "text = 'text-00203'": 1,
    "text < 'text-00105'": 2,
    "text IN ('text-00003', 'text-00503')": 2,
    "number >= -405 AND number <= -304": 2,
    "number > 0": 0,
    "large = 2000000000203": 1,
    "large > 9000000000000": 0,
    "x < 109.5": 2,
    "x = 205.5": 1,
    "y >= 401 AND y < 403": 1,
    "price = 304.25": 1,
    "amount > 12345678901000.0": 1,
    "day = DATE'2026-03-05'": 1,
    "at >= TIMESTAMP'2026-01-05 00:00:00' AND at < TIMESTAMP'2026-01-06 00:00:00'": 1,
    "raw > X'04FF'": 1,
    "raw < X'0105'": 2,
    "flag > false": 3,
    "flag = true": 6,  # Spark makes it `flag`, which Hudi does not take for a predicate on statistics
    "maybe IS NULL": 2,
    "maybe IS NOT NULL": 5,
    "maybe = 'present 100'": 2,
    "_hoodie_record_key = '203'": 2,
    "id = 203": 1,
}
"""Predicate to the number of the six files that can hold a match."""

WITH_NAN = {
    "x > 450": {402, 500, 501, 502, 503, 504, 505, 506, 507, 508, 509},
    "x > 1e300": {402, 500, 501, 502, 503, 504, 505, 506, 507, 508, 509},
    "isnan(x)": {402, 500, 501, 502, 503, 504, 505, 506, 507, 508, 509},
    "y = 0": {0, 300, 301},
    "y > -0.5 AND y < 0.5": {0, 300, 301},
}
"""Predicate to the ids that match: NaN is above every number for Spark, and -0.0 equals 0.0."""


def _row(file: int, i: int) -> dict[str, Any]:
    n = file * 100 + i
    return {
        "id": n,
        "text": f"text-{n:05d}",
        "number": -n,
        "large": file * 1_000_000_000_000 + n,
        "x": NAN if file == 5 or n == 402 else n + 0.5,
        "y": (0.0, -0.0)[i] if file == 3 and i < 2 else float(n),
        "price": Decimal(n) + Decimal("0.25"),
        "amount": Decimal("12345678901234.0000000001") if file == 4 else Decimal(n) / 7,
        "day": datetime.date(2026, file + 1, i + 1),
        "at": datetime.datetime(2026, 1, file + 1, i, 30, tzinfo=UTC),
        "raw": bytes([file, i]) + b"\xff" * 100,
        "flag": file % 2 == 1,
        "maybe": None if file == 2 or (file == 4 and i == 3) else f"present {n}",
        "nested": {"depth": n},
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six files with disjoint values."""
    path = tmp_path_factory.mktemp("skipping") / "table"
    written = hudimeta.Table.create(path, SCHEMA, key="id", name="skipping")
    for file in range(FILES):
        written.bulk_insert(_as_arrow(file))
    return path


def _as_arrow(file: int) -> pa.Table:
    rows = [_row(file, i) for i in range(ROWS)]
    scale = {"price": Decimal("0.01"), "amount": Decimal("0.0000000001")}
    rows = [{k: v.quantize(scale[k]) if k in scale else v for k, v in r.items()} for r in rows]
    return pa.Table.from_pylist(rows, SCHEMA)


def _ids(found: pa.Table) -> list[int]:
    return sorted(found["id"].to_pylist())


def test_hudi_reads_only_files_that_can_match(hudi: ApacheHudi, table: Path) -> None:
    assert hudi.read(table).files_read == FILES
    for where, files in QUERIES.items():
        found, everything = hudi.read(table, where=where), hudi.read(table, where=where, metadata=False)
        assert _ids(found.table) == _ids(everything.table) == _ids(hudimeta.Table(table).scan(where).to_table()), where
        assert found.files_read == files, where
        assert everything.files_read == FILES, where


def test_hudi_does_not_lose_rows_with_nan_or_negative_zero(hudi: ApacheHudi, table: Path) -> None:
    for where, ids in WITH_NAN.items():
        found = hudi.read(table, where=where)
        assert _ids(found.table) == sorted(ids), where
        assert found.files_read == (FILES if "isnan" in where else 2), where
        assert _ids(hudimeta.Table(table).scan(where).to_table()) == sorted(ids), where


def test_what_hudi_leaves_set_in_its_session_hides_no_row_from_the_next_read(hudi: ApacheHudi, table: Path) -> None:
    for name, value in (("recordLevelFilter.enabled", "true"), ("enableVectorizedReader", "false")):
        hudi.sql(f"SET spark.sql.parquet.{name}={value}")
    assert _ids(hudi.read(table, where="y = 0").table) == [0, 300, 301]


def test_hudi_skips_by_bounds_of_a_field_inside_a_struct(hudi: ApacheHudi, tmp_path: Path) -> None:
    options = {"hoodie.metadata.index.column.stats.column.list": "nested.depth,text"}
    written = hudimeta.Table.create(tmp_path / "t", SCHEMA, key="id", name="nested", options=options)
    for file in range(3):
        written.bulk_insert(_as_arrow(file))
    found = hudi.read(tmp_path / "t", where="text = 'text-00105'")
    assert (_ids(found.table), found.files_read) == ([105], 1)
    assert _ids(hudi.read(tmp_path / "t", where="nested.depth = 105").table) == [105]
    assert all(hudi.validate(tmp_path / "t").values())


def test_hudi_skips_whole_partitions_by_our_partition_statistics(hudi: ApacheHudi, tmp_path: Path) -> None:
    """Bounds that we widened over several commits; an update moves a value out of its partition's old bounds."""
    path = tmp_path / "t"
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64()), ("x", pa.float64())])
    table = hudimeta.Table.create(path, schema, key="id", partition_by="part", name="parts")
    rows = [{"id": f"{p}{n}", "part": p, "v": 100 * i + n, "x": float(n)} for i, p in enumerate("abcdef") for n in range(5)]
    table.insert(pa.Table.from_pylist(rows, schema))
    assert hudi.read(path, where="v >= 200 AND v < 300").files_read == 1
    changed = [{"id": "a0", "part": "a", "v": 250, "x": NAN}, {"id": "f9", "part": "f", "v": None, "x": None}]
    table.upsert(pa.Table.from_pylist(changed, schema))
    for where, ids, files in (
        ("v >= 200 AND v < 300", ["a0", "c0", "c1", "c2", "c3", "c4"], 2),
        ("v IS NULL", ["f9"], 1),
        ("x > 100", ["a0"], 1),
    ):
        found = hudi.read(path, where=where)
        assert (_ids(found.table), found.files_read) == (ids, files), where
    assert all(hudi.validate(path).values())


def test_no_row_is_lost_when_hudi_goes_on_with_our_statistics(hudi: ApacheHudi, tmp_path: Path) -> None:
    """It writes to one partition; what it adds to the definition of the statistics must not hide the others."""
    path = tmp_path / "t"
    rows = [_as_arrow(file).append_column("part", pa.array([f"p{file}"] * ROWS)) for file in range(3)]
    options = {
        "hoodie.table.name": "going_on",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.table.timeline.timezone": "UTC",
    }
    table = hudimeta.Table.create(path, rows[0].schema, key="id", partition_by="part", name="going_on")
    for part in rows:
        table.insert(part)
    hudi.write(path, rows[2], options, operation="upsert")
    assert all(hudi.validate(path).values())
    for where in (*QUERIES, *WITH_NAN):
        found, everything = hudi.read(path, where=where), hudi.read(path, where=where, metadata=False)
        assert _ids(found.table) == _ids(everything.table) == _ids(hudimeta.Table(path).scan(where).to_table()), where
