"""Text as `String.valueOf` of Java gives it. The samples were printed by Java 17."""

from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import SchemaMismatch
from hudimeta.schema import java_text

SAMPLES = [
    (pa.float64(), [0.0, -0.0, 1.0, 100.5], ["0.0", "-0.0", "1.0", "100.5"]),
    (pa.float64(), [1e-3, 9.99e-4, 9999999.0, 1e7], ["0.001", "9.99E-4", "9999999.0", "1.0E7"]),
    (pa.float64(), [-1.2345678901234566e17, 1e23, 2e-5], ["-1.2345678901234566E17", "1.0E23", "2.0E-5"]),
    (pa.float64(), [float("nan"), float("inf"), float("-inf")], ["NaN", "Infinity", "-Infinity"]),
    (pa.float32(), [0.1, 16777216.0, 3.4028235e38], ["0.1", "1.6777216E7", "3.4028235E38"]),
    (pa.int64(), [-(2**63), 0], ["-9223372036854775808", "0"]),
    (pa.bool_(), [True, False], ["true", "false"]),
    (pa.decimal128(10, 2), ["0.00", "-4500.10"], ["0.00", "-4500.10"]),
    (pa.decimal128(20, 10), ["0.0000001000", "0E-10"], ["1.000E-7", "0E-10"]),
    (pa.date32(), [dt.date(2024, 2, 29), dt.date(1, 1, 1)], ["2024-02-29", "0001-01-01"]),
    (pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)], ["1704067200000000"]),
    (pa.timestamp("ms", "UTC"), [dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)], ["1704067200000"]),
    (pa.binary(), ["é".encode()], ["é"]),
    (pa.dictionary(pa.int8(), pa.string()), ["x", "y"], ["x", "y"]),
]


@pytest.mark.parametrize(("kind", "values", "expected"), SAMPLES)
def test_samples_of_java(kind, values, expected):
    if pa.types.is_decimal(kind):
        values = [decimal.Decimal(v) for v in values]
    array = pa.array([*values, None], kind)
    assert java_text(array).to_pylist() == [*expected, None]
    assert java_text(pa.chunked_array([array, array])).to_pylist() == [*expected, None] * 2


def test_years_beyond_9999_have_a_sign():
    days = pa.array([2_932_897, 2_932_896, 100_000_000, -100_000_000, None], pa.int32()).cast(pa.date32())
    expected = ["+10000-01-01", "9999-12-31", "+275760-09-13", "-271821-04-20", None]
    assert java_text(days).to_pylist() == expected
    times = pa.array([8 * 10**18, 253_402_300_800_000_000], pa.int64()).cast(pa.timestamp("us", "UTC"))
    assert java_text(times, consistent_timestamp=True).to_pylist() == ["255479-11-28 14:13:20.0", "10000-01-01 00:00:00.0"]


def test_consistent_timestamps_are_cut_to_milliseconds_as_java_sql_timestamp():
    times = pa.array([1_704_067_200_000_000, 1_704_067_200_120_999, -1], pa.timestamp("us", "UTC"))
    expected = ["2024-01-01 00:00:00.0", "2024-01-01 00:00:00.12", "1969-12-31 23:59:59.999"]
    assert java_text(times, consistent_timestamp=True).to_pylist() == expected


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(2)])
def test_bytes_are_text_or_refused(kind):
    assert java_text(pa.array([b"ok", None], kind)).to_pylist() == ["ok", None]
    with pytest.raises(SchemaMismatch, match="column 'b' is bytes that are no UTF-8"):
        java_text(pa.array([b"\xff\x00"], kind), "b")


def test_nested_values_have_no_text():
    with pytest.raises(SchemaMismatch, match="column 'l' is list"):
        java_text(pa.array([[1]]), "l")


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_the_text_of_a_double_reads_back_and_has_javas_form(values):
    for text, value in zip(java_text(pa.array(values, pa.float64())).to_pylist(), values, strict=True):
        assert float(text) == value
        mantissa, _, power = text.partition("E")
        assert "." in mantissa
        assert bool(power) == (value != 0 and not 1e-3 <= abs(value) < 1e7)


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-(10**9), max_value=10**9), min_size=1))
def test_decimals_are_written_as_big_decimal_writes_them(values):
    """`BigDecimal.toString` and Python's `str(Decimal)` follow the same rule."""
    assert java_text(pa.array(values, pa.decimal128(38, 9))).to_pylist() == [str(v) for v in values]
