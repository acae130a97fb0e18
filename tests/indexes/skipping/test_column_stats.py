"""Bounds are compared as what they were recorded as."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from tests.edited_properties import edit_properties

SCHEMA = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("part", pa.string())])


def moment(*fields: int) -> dt.datetime:
    return dt.datetime(*fields, tzinfo=dt.timezone.utc)  # type: ignore[misc]


@pytest.fixture
def in_milliseconds(tmp_path: Path) -> Path:
    """A table whose Avro schema says timestamp-millis, which readers show as microseconds."""
    path = tmp_path / "t"
    hudimeta.Table.create(path, SCHEMA, key="id", partition_by=["part"], indexes=["column_stats", "partition_stats"])
    edit_properties(path, lambda text: text.replace("timestamp-micros", "timestamp-millis"))
    table = hudimeta.Table(path)
    for name, part, *at in (("a", "x", 2024, 5, 1), ("b", "x", 2024, 6, 1), ("c", "y", 1971, 5, 1)):
        table.bulk_insert(pa.table([[name], [moment(*at)], [part]], schema=SCHEMA))
    return path


@pytest.mark.parametrize("index", ["column_stats", "partition_stats"])
def test_moments_stored_in_milliseconds_are_found(in_milliseconds: Path, index: str) -> None:
    table = hudimeta.Table(in_milliseconds, {"hudimeta.index.use": index})
    for where, found in (
        ("at >= timestamp '2024-05-15 00:00:00'", ["b"]),
        ("at = timestamp '2024-05-01 00:00:00'", ["a"]),
        ("at < timestamp '1980-01-01 00:00:00'", ["c"]),
        ("year(at) = 2024", ["a", "b"]),
    ):
        scan = table.scan(where=where)
        assert sorted(scan.to_table()["id"].to_pylist()) == found
        assert any(skip.by == index for skip in scan.report.skipped)


@pytest.mark.parametrize("index", ["column_stats", "footers", "none"])
def test_floats_of_a_column_that_was_widened_are_found_as_the_doubles_that_they_show(tmp_path: Path, index: str) -> None:
    narrow, wide = (pa.schema([("id", pa.string()), ("x", kind)]) for kind in (pa.float32(), pa.float64()))
    table = hudimeta.Table.create(tmp_path / "t", narrow, key="id", indexes=["column_stats"])
    table.bulk_insert(pa.table([["a"], [0.1]], schema=narrow))
    table.bulk_insert(pa.table([["b"], [7.0]], schema=wide))
    opened = hudimeta.Table(tmp_path / "t", {"hudimeta.index.use": index})
    for where in ("x = 0.1D", "x <= 0.1", "NOT x > 0.1", "x IN (0.1D, 3)"):
        assert opened.scan(where=where).to_table()["id"].to_pylist() == ["a"], where


def test_an_empty_partition_value_is_null_to_every_index(tmp_path: Path) -> None:
    """Null and empty text have one partition, whose rows show null whatever their files hold."""
    schema = pa.schema([("id", pa.string()), ("part", pa.string())])
    table = hudimeta.Table.create(
        str(tmp_path / "t"),
        schema,
        key="id",
        partition_by=["part"],
        indexes=["column_stats", "partition_stats"],
        options={"hoodie.table.name": "t"},
    )
    table.upsert(pa.table({"id": ["a", "b"], "part": ["", "q"]}, schema))
    table.metadata.create_index("low", "column_stats", "part", expression="lower")
    for where in ("part is null", "lower(part) is null", "part <=> null"):
        found = table.scan(where=where, columns=["id", "part"]).to_table().to_pylist()
        assert found == [{"id": "a", "part": None}], where
    assert table.scan(where="part = 'q'").to_table()["id"].to_pylist() == ["b"]


def test_of_two_columns_one_may_have_no_bounds_where_logs_lie_over_a_base_file(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("n", pa.int32()), ("m", pa.int32())])
    options = {"hoodie.metadata.index.column.stats.column.list": "n"}
    table = hudimeta.Table.create(
        tmp_path / "t", schema, key="id", type="MERGE_ON_READ", indexes=["column_stats"], options=options
    )
    table.bulk_insert(pa.table([["a", "b"], [1, 2], [10, 20]], schema=schema))
    table.upsert(pa.table([["b"], [3], [30]], schema=schema))
    for where, found in (("n > 5 OR m > 20", ["b"]), ("n < m", ["a", "b"]), ("n > 5 AND n < m", []), ("n < 3 OR m = n", ["a"])):
        scan = table.scan(where=where)
        assert scan.to_table()["id"].to_pylist() == found, where
        assert any(skip.by == "column_stats" for skip in scan.report.skipped) == (not found)
