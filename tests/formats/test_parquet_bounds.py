"""Bounds enclose every value, and so do the statistics of our footers."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.formats.parquet import BoundsOfColumns, ParquetSettings, column_bounds, leaf_names, write_base_file
from tests.formats.parquet_files import EVERYTHING, footer_encloses, total_order, with_meta, written


def test_bounds_of_every_type():
    bounds = {r["column"]: r for r in column_bounds(EVERYTHING).to_pylist()}
    assert (
        list(bounds)
        == ["b", "i", "l", "d", "s", "y", "dec", "day", "t", "n", "st.a", "st.in.c"]
        == leaf_names(EVERYTHING.schema)
    )
    assert (bounds["s"]["min"], bounds["s"]["max"]) == ("z", "é" * 100), "texts are not cut"
    assert (bounds["d"]["min"], math.isnan(bounds["d"]["max"])) == (1.5, True)
    assert (bounds["dec"]["max"], bounds["dec"]["null_count"]) == (decimal.Decimal("1.50"), 1)
    assert (bounds["st.in.c"]["min"], bounds["st.in.c"]["null_count"]) == ("x", 1)
    assert bounds["day"]["min"] == dt.date(1900, 1, 1)


def test_bounds_are_typed():
    table = column_bounds(EVERYTHING)
    types = {str(n): table["min"][i].value.type for i, n in enumerate(table["column"])}
    assert types["dec"] == pa.decimal128(10, 2)
    assert types["t"] == pa.timestamp("us", "UTC")
    assert types["i"] == pa.int32()


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([0.0, 1.0], "-0.0", "1.0"),
        ([-0.0, -1.0], "-1.0", "0.0"),
        ([math.nan], "nan", "nan"),
        ([math.nan, None, -math.inf], "-inf", "nan"),
        ([None, None], "None", "None"),
    ],
)
def test_floats_zero_and_nan(values, low, high):
    found = column_bounds(pa.table({"x": pa.array(values, pa.float64())})).to_pylist()[0]
    assert (repr(found["min"]), repr(found["max"])) == (low, high)


def test_bounds_of_chosen_columns():
    assert column_bounds(EVERYTHING, ["st.a", "nope", "i"])["column"].to_pylist() == ["st.a", "i"]


values_of = {
    "floats": (pa.float64(), st.floats()),
    "longs": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "texts": (pa.string(), st.text()),
    "bytes": (pa.binary(), st.binary()),
    "decimals": (pa.decimal128(20, 4), st.decimals(-(10**12), 10**12, places=4)),
    "flags": (pa.bool_(), st.booleans()),
    "days": (pa.date32(), st.dates()),
}


@given(st.data())
def test_bounds_enclose_every_value_however_the_rows_are_cut(data):
    kind, strategy = values_of[data.draw(st.sampled_from(sorted(values_of)))]
    values = data.draw(st.lists(st.none() | strategy, max_size=12))
    cut = data.draw(st.integers(0, len(values)))
    bounds = BoundsOfColumns()
    bounds.add(pa.table({"x": pa.array(values[:cut], kind)}))
    bounds.add(pa.table({"x": pa.array(values[cut:], kind)}))
    found = bounds.table().to_pylist()[0]
    real = [v for v in values if v is not None]
    assert (found["null_count"], found["value_count"]) == (len(values) - len(real), len(values))
    if not real:
        assert (found["min"], found["max"]) == (None, None)
        return
    assert total_order(found["min"]) == min(map(total_order, real))
    assert total_order(found["max"]) == max(map(total_order, real))


@given(
    st.lists(st.none() | st.floats(), min_size=1, max_size=8),
    st.lists(st.none() | st.text(max_size=80), min_size=1, max_size=8),
)
def test_statistics_of_our_footers_enclose_every_value(floats, texts):
    count = min(len(floats), len(texts))
    rows = pa.table({"x": pa.array(floats[:count], pa.float64()), "s": pa.array(texts[:count], pa.string())})
    footer_encloses(written(with_meta(rows))[0].getvalue(), "ours")


any_texts = st.none() | st.text(max_size=5) | st.sampled_from(["", "\uffff", "\U00010000", "z" * 1024, "é" * 513, "y" * 5000])


@given(st.lists(st.tuples(any_texts, any_texts), min_size=1, max_size=12), st.integers(1, 5))
def test_bounds_of_texts_are_those_of_the_rows_wherever_they_come_from(pairs, group_rows):
    texts, inner = ([pair[at] for pair in pairs] for at in (0, 1))
    struct = pa.array([{"a": text} for text in inner], pa.struct([("a", pa.string())]))
    rows = with_meta(pa.table({"t": pa.array(texts, pa.string()), "s.a": pa.array(texts, pa.string()), "s": struct}))
    summary = write_base_file(io.BytesIO(), rows, bounds_of=["t", "_hoodie_record_key"], settings=_groups_of(group_rows))
    assert _by_column(summary.bounds) == _by_column(column_bounds(rows, ["t", "_hoodie_record_key"]))
    summary = write_base_file(io.BytesIO(), rows, bounds_of=None, settings=_groups_of(group_rows))
    assert _by_column(summary.bounds) == _by_column(column_bounds(rows))


def _groups_of(rows: int) -> ParquetSettings:
    return ParquetSettings(row_group_rows=rows)


def _by_column(bounds: pa.Table) -> dict:
    return {row["column"]: row for row in bounds.to_pylist()}
