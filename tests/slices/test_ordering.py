"""Ordering values compare as they do in Java."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import UnsupportedFeature
from hudimeta.slices.ordering import order_codes, ordering_columns


def codes(values: list[Any], kind: pa.DataType) -> list[int]:
    return order_codes([pa.chunked_array([pa.array(values, kind)])]).tolist()


@pytest.mark.parametrize(
    ("kind", "ascending"),
    [
        (pa.bool_(), [False, True]),
        (pa.int32(), [-5, 0, 7]),
        (pa.int64(), [-(2**63), 0, 2**63 - 1]),
        (pa.float32(), [float("-inf"), -1.5, -0.0, 0.0, 1e30, float("inf"), float("nan")]),
        (pa.float64(), [float("-inf"), -1.5, -0.0, 0.0, 1e300, float("inf"), float("nan")]),
        (pa.string(), ["", "10", "9", "a", "ä", "\U0001f600"]),
        (pa.binary(), [b"", b"\x00", b"\xff"]),
        (pa.date32(), [dt.date(1969, 1, 1), dt.date(2026, 1, 1)]),
        (pa.timestamp("us", "UTC"), [dt.datetime(1960, 1, 1), dt.datetime(2026, 1, 1, 0, 0, 0, 1)]),
        (pa.decimal128(30, 15), [Decimal("-1.5"), Decimal(0), Decimal("0.000000000000001"), Decimal(10)]),
        (pa.decimal128(10, 2), [Decimal("-0.01"), Decimal(0), Decimal("99999999.99")]),
        (pa.decimal128(2, 2), [Decimal("-0.99"), Decimal(0), Decimal("0.01")]),
        (pa.decimal256(76, 38), [Decimal(-1), Decimal(0), Decimal("1e-38")]),
        (pa.timestamp("s"), [dt.datetime(1960, 1, 1), dt.datetime(2026, 1, 1)]),
        (pa.large_string(), ["", "a"]),
        (pa.dictionary(pa.int32(), pa.string()), ["a", "b"]),
    ],
)
def test_values_ascend_as_java_compares_them(kind: pa.DataType, ascending: list[Any]) -> None:
    found = codes(ascending[::-1] + ascending, kind)
    assert found[: len(ascending)] == found[len(ascending) :][::-1]
    assert found[len(ascending) :] == sorted(set(found))


def test_a_null_counts_as_zero_and_as_the_least_text() -> None:
    assert codes([None, 0, -1], pa.int64()) == [0, 0, -1]
    least, empty = codes([None, ""], pa.string())
    assert least < empty
    assert codes([None, Decimal(0), Decimal("-0.5")], pa.decimal128(3, 1)) == [2, 2, 1]


PAIR = st.tuples(st.integers(-3, 3), st.sampled_from(["", "a", "b"]), st.integers(-(2**62), 2**62))


@given(st.lists(PAIR, max_size=20))
def test_several_fields_compare_one_after_the_other(rows: list[tuple[int, str, int]]) -> None:
    table = pa.table(
        {
            "a": pa.array([a for a, _, _ in rows], pa.int32()),
            "b": pa.array([b for _, b, _ in rows], pa.string()),
            "c": pa.array([c for *_, c in rows], pa.int64()),
        }
    )
    found = order_codes(ordering_columns(table, ["a", "b", "c"])).tolist()
    for x, code_x in zip(rows, found, strict=True):
        for y, code_y in zip(rows, found, strict=True):
            assert (x < y) == (code_x < code_y)


def test_a_dotted_field_reaches_into_a_struct() -> None:
    table = pa.table({"s": [{"at": 5}, None, {"at": 7}]})
    assert order_codes(ordering_columns(table, ["s.at"])).tolist() == [5, 0, 7]


def test_a_type_without_order_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="list"):
        codes([[1]], pa.list_(pa.int32()))
