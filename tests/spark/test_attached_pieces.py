"""Pieces of the attached door that need no session: replaced rows, files of merged rows, filters that Spark judges alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark_hudimeta.arrow_types import spark_schema
from pyspark_hudimeta.native.native_filter import native_filter
from pyspark_hudimeta.native.replaced_rows import replaced_bits
from pyspark_hudimeta.native.staging import SliceJob

from hudimeta.errors import ConfigError
from hudimeta.snapshot.file_slice import slices_of
from tests.spark.tables import create

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us", "UTC")), ("x", pa.float32())])


def is_replaced(bits: bytes, row: int) -> bool:
    """As the condition that Spark applies says it: rows after the last byte count."""
    return row < 8 * len(bits) and bool(bits[row // 8] & 1 << row % 8)


@given(st.sets(st.integers(0, 300), min_size=1))
def test_bits_say_which_rows_are_replaced(rows: set[int]) -> None:
    bits = replaced_bits(np.array(sorted(rows), np.int64))
    assert bits is not None
    assert {row for row in range(310) if is_replaced(bits, row)} == rows


def test_files_made_for_spark_tell_nothing_of_columns_that_may_hold_nan(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "part": ["a", "a"], "ts": [1, 1], "x": [1.0, 2.0]})
    table = create(tmp_path / "t", rows, type="MERGE_ON_READ")
    table.upsert(pa.table({"id": [2], "part": ["a"], "ts": [2], "x": [float("nan")]}))
    scan = table.scan()
    folder = tmp_path / "staged"
    folder.mkdir()
    (file_slice,) = slices_of(table.file_slices())
    for whole in (False, True):
        made = SliceJob(scan.task, spark_schema(scan.schema), file_slice, whole, str(folder)).run()
        chunks = pq.read_metadata(folder / made.name).row_group(0)
        known = {chunks.column(i).path_in_schema: chunks.column(i).statistics for i in range(chunks.num_columns)}
        assert known["x"] is None, "Spark would pass over the row of NaN with x > 5"
        assert known["id"].max == 2


def test_no_replaced_row_is_no_bits() -> None:
    assert replaced_bits(np.zeros(0, np.int64)) is None


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("id > 3 AND name IN ('a', 'b')", "(`id` > 3L) AND (`name` IN ('a', 'b'))"),
        ("NOT (name LIKE 'x%') OR id IS NULL", "(NOT (`name` LIKE 'x%')) OR (`id` IS NULL)"),
        ("at >= '2024-01-02 03:04:05'", "`at` >= TIMESTAMP '2024-01-02 03:04:05Z'"),
    ],
)
def test_comparisons_with_constants_are_sparks_to_judge(text: str, sql: str) -> None:
    why, where, bound = native_filter(text, SCHEMA)
    assert (why, where) == ("", sql)
    assert bound is not None


@pytest.mark.parametrize("text", ["year(at) = 2024", "cast(name as int) > 1", "id / 2 = 1", "name RLIKE 'a+'"])
def test_what_may_differ_is_left_to_the_engine(text: str) -> None:
    why, where, _ = native_filter(text, SCHEMA)
    assert where is None
    assert why.startswith("Spark may judge")


def test_a_filter_that_does_not_fit_is_refused() -> None:
    assert native_filter(None, SCHEMA) == ("", None, None)
    with pytest.raises(ConfigError, match="nope"):
        native_filter("nope = 1", SCHEMA)
