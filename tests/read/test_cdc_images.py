"""Images of change data capture: every row must be a JSON object that says what the row says."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import UnsupportedFeature
from hudimeta.read.cdc_images import record_images, row_images

ROW = pa.struct(
    [
        ("text", pa.string()),
        ("number", pa.int64()),
        ("real", pa.float64()),
        ("yes", pa.bool_()),
        ("raw", pa.binary()),
        ("nested", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("list", pa.list_(pa.string())),
        ("map", pa.map_(pa.string(), pa.int32())),
    ]
)
values = st.fixed_dictionaries(
    {
        "text": st.none() | st.text(),
        "number": st.none() | st.integers(-(2**63), 2**63 - 1),
        "real": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "yes": st.none() | st.booleans(),
        "raw": st.none() | st.binary(),
        "nested": st.none()
        | st.fixed_dictionaries({"a": st.none() | st.integers(-(2**31), 2**31 - 1), "b": st.none() | st.text()}),
        "list": st.none() | st.lists(st.none() | st.text(), max_size=4),
        "map": st.none() | st.dictionaries(st.text(), st.none() | st.integers(-(2**31), 2**31 - 1), max_size=4),
    }
)


def plain(value: Any, raw: Any, with_nulls: bool) -> Any:
    """What a JSON parser should make of a value's image."""
    if isinstance(value, bytes):
        return raw(value)
    if isinstance(value, dict):
        return {k: plain(v, raw, with_nulls) for k, v in value.items() if with_nulls or v is not None}
    return [plain(v, raw, with_nulls) for v in value] if isinstance(value, list) else value


def stored(rows: list[dict[str, Any]]) -> pa.StructArray:
    """The rows between two others, of which they are a slice: offsets must not matter."""
    entries = [{**row, "map": None if row["map"] is None else list(row["map"].items())} for row in rows]
    other = {"text": "other", "raw": b"other", "list": ["x", None], "map": [("k", 1)], "nested": {"a": 1, "b": "x"}}
    return pa.array([other, *entries, other], ROW).slice(1, len(rows))


@given(st.lists(values, max_size=5))
def test_images_of_rows_are_objects_without_nulls(rows: list[dict[str, Any]]) -> None:
    images = row_images(pa.RecordBatch.from_struct_array(stored(rows)))
    found = [json.loads(image) for image in images.to_pylist()]
    assert found == [plain(row, lambda data: base64.b64encode(data).decode(), False) for row in rows]


@given(st.lists(st.none() | values, max_size=5))
def test_images_of_records_are_objects_with_nulls(rows: list[dict[str, Any] | None]) -> None:
    there = stored([row for row in rows if row is not None])
    places = iter(range(len(there)))
    images = record_images(there.take(pa.array([None if row is None else next(places) for row in rows], pa.int64())))
    found = [None if image is None else json.loads(image) for image in images.to_pylist()]
    assert found == [row and plain(row, lambda data: data.decode("latin-1"), True) for row in rows]


def test_numbers_and_times_are_printed_as_hudi_does() -> None:
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, datetime.timezone.utc)
    row = pa.RecordBatch.from_pydict(
        {
            "whole": pa.array([10.0]),
            "large": pa.array([1e10]),
            "none": pa.array([float("nan")]),
            "single": pa.array([0.1], pa.float32()),
            "price": pa.array([decimal.Decimal("12.50")], pa.decimal128(9, 2)),
            "day": pa.array([datetime.date(1970, 1, 11)]),
            "millis": pa.array([moment], pa.timestamp("ms", "UTC")),
            "by_day": pa.array([[(datetime.date(1970, 1, 2), "x")]], pa.map_(pa.date32(), pa.string())),
        }
    )
    micros = int(moment.timestamp() * 1000) * 1000
    assert row_images(row).to_pylist() == [
        '{"whole":10.0,"large":1.0E10,"none":"NaN","single":0.1,"price":12.50,"day":10,'
        f'"millis":{micros},"by_day":{{"1":"x"}}}}'
    ]
    assert json.loads(record_images(row.to_struct_array())[0].as_py())["millis"] == micros // 1000


def test_rows_of_nothing_but_nulls_keep_their_place() -> None:
    rows = pa.RecordBatch.from_pydict({"a": pa.array([None, 1, None], pa.int32()), "b": pa.nulls(3, pa.string())})
    assert row_images(rows).to_pylist() == ["{}", '{"a":1}', "{}"]


def test_types_that_no_table_has_are_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="month_day_nano"):
        row_images(pa.RecordBatch.from_pydict({"a": pa.nulls(1, pa.month_day_nano_interval())}))
