"""Parquet files of ours in memory, and what the footers of all of them owe their readers."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import math

import pyarrow as pa
import pyarrow.parquet as pq

from hudimeta.formats.parquet import ParquetFileWriter, column_bounds, read_footer
from hudimeta.types import META_COLUMNS

UTC = dt.timezone.utc


def with_meta(rows: pa.Table, keys: list[str] | None = None) -> pa.Table:
    """Five meta columns before the rows; keys are k0, k1, … unless given."""
    texts = keys or [f"k{i}" for i in range(rows.num_rows)]
    meta = [pa.array(["x"] * rows.num_rows, pa.string()) for _ in META_COLUMNS]
    meta[2] = pa.array(texts, pa.string())
    return pa.Table.from_arrays([*meta, *rows.columns], names=[*META_COLUMNS, *rows.column_names])


def written(rows: pa.Table, **options):
    """A base file of ours, and the summary of its writer."""
    sink = io.BytesIO()
    file = ParquetFileWriter(sink, rows.schema, **options)
    file.write(rows)
    return sink, file.close()


EVERYTHING = pa.table(
    {
        "b": [True, None],
        "i": pa.array([1, 2], pa.int32()),
        "l": [3, None],
        "d": [1.5, math.nan],
        "s": ["é" * 100, "z"],
        "y": [b"\x00", b"\xff"],
        "dec": pa.array([decimal.Decimal("1.50"), None], pa.decimal128(10, 2)),
        "day": [dt.date(2024, 1, 1), dt.date(1900, 1, 1)],
        "t": pa.array([dt.datetime(2024, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")),
        "n": pa.array([dt.datetime(2024, 1, 1)] * 2, pa.timestamp("us")),
        "st": pa.array(
            [{"a": 1, "in": {"c": "x"}}, None], pa.struct([("a", pa.int32()), ("in", pa.struct([("c", pa.string())]))])
        ),
        "li": pa.array([["a", None], None], pa.list_(pa.string())),
        "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
    }
)


def total_order(value: object) -> object:
    """NaN above all, both zeros alike."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def footer_encloses(content: bytes, name: str) -> None:
    """Statistics of a footer hold all values of each column, and count them."""
    footer = read_footer(content, name)
    rows = pq.ParquetFile(io.BytesIO(content)).read()
    said = {r["column"]: r for r in footer.statistics.to_pylist()}
    assert bool(said) == bool(footer.num_rows)
    for found in column_bounds(rows).to_pylist() if said else ():
        entry = said[found["column"]]
        assert not entry["repeated"]
        assert (entry["null_count"], entry["value_count"]) == (found["null_count"], found["value_count"])
        if found["min"] is not None and entry["min"] is not None:
            assert total_order(entry["min"]) <= total_order(found["min"])
            assert total_order(found["max"]) <= total_order(entry["max"])
