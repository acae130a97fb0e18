"""What is made without `pyarrow.array` is what that makes."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.formats.plain_arrays import (
    array_of,
    binaries,
    booleans,
    fill_null,
    flags,
    integers,
    numbers,
    numpy_of,
    places,
    scalar_of,
    table_of,
    texts,
)

LONG = st.integers(-(1 << 63), (1 << 63) - 1)
INT = st.integers(-(1 << 31), (1 << 31) - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.text("abc")
DECIMAL = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**8), max_value=10**8)
NUMBERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
FLOATS = (pa.float32(), pa.float64())
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">i8", "O", "M8[us]", "m8[us]"]

VALUES: dict[str, tuple[st.SearchStrategy[Any], tuple[pa.DataType | None, ...]]] = {
    "booleans": (st.booleans(), (None, pa.bool_())),
    "integers": (LONG | st.integers(-200, 300), (None, *NUMBERS, *FLOATS, pa.date32(), pa.timestamp("us"), pa.duration("us"))),
    "long integers": (st.integers(-(1 << 66), 1 << 66), (None, pa.int64(), pa.uint64(), pa.decimal128(38, 2))),
    "floats": (st.floats(), (None, *FLOATS)),
    "texts": (TEXT, (None, pa.string(), pa.large_string(), pa.binary(), pa.string_view())),
    "bytes": (st.binary(), (None, pa.binary(), pa.large_binary(), pa.string())),
    "decimals": (DECIMAL | st.decimals(), (None, pa.decimal128(10, 2), pa.decimal128(38, 18), pa.decimal256(50, 2))),
    "dates": (st.dates(), (None, pa.date32(), pa.date64())),
    "moments": (st.datetimes(), (None, *(pa.timestamp(unit) for unit in ("ms", "us", "ns")), pa.timestamp("us", "Asia/Tokyo"))),
    "moments of zones": (
        st.datetimes(timezones=st.just(dt.timezone.utc)),
        (None, pa.timestamp("us"), pa.timestamp("us", "UTC")),
    ),
    "of several classes": (LONG | TEXT | st.booleans() | st.floats(), (None, pa.int64(), pa.string())),
    "lists": (st.lists(INT), (None, pa.list_(pa.int32()))),
    "NumPy's": (INT.map(np.int64) | st.floats(width=64).map(np.float64), (None, pa.float64())),
    "Arrow's": ((LONG | TEXT | st.none()).map(pa.scalar), (None, pa.int64(), pa.string())),
    "Arrow's, of one type": ((INT | st.none()).map(partial(pa.scalar, type=pa.int32())), (None, pa.int32(), pa.int64())),
    "nothing": (
        st.none(),
        (None, pa.string(), pa.decimal128(9, 2), pa.list_(pa.int64()), pa.dictionary(pa.int32(), pa.string())),
    ),
}


def _same(made: Callable[[], Any], wanted: Callable[[], Any]) -> None:
    """Equal in type, values (NaN and the sign of zero too) and nulls; or refused with the same error."""
    try:
        right = wanted()
    except (pa.ArrowException, TypeError, ValueError, OverflowError, decimal.InvalidOperation) as refused:
        with pytest.raises(type(refused)):
            made()
        return
    found = made()
    assert found.type == right.type
    if isinstance(found, pa.Scalar):
        found, right = pa.repeat(found, 1), pa.repeat(right, 1)
    found.validate(full=True)
    assert found.null_count == right.null_count
    bits = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}.get(right.type, right.type)
    assert found.view(bits).equals(right.view(bits))


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_lists_and_values(kind: str, data: st.DataObject) -> None:
    value, types = VALUES[kind]
    of = data.draw(st.sampled_from(types))
    values = data.draw(st.lists(value) | st.lists(value | st.none()))
    _same(lambda: array_of(values, of), lambda: pa.array(values, of))
    for one in values[:3]:
        _same(partial(scalar_of, one, of), partial(pa.scalar, one, of))


@given(
    values=st.lists(st.integers(0, 100)),
    dtype=st.sampled_from(DTYPES),
    of=st.sampled_from([None, *NUMBERS, *FLOATS, pa.bool_(), pa.date32(), pa.timestamp("us"), pa.string()]),
    step=st.integers(1, 2),
    masked=st.booleans(),
    data=st.data(),
)
def test_arrays_of_numpy(
    values: list[int], dtype: str, of: pa.DataType | None, step: int, masked: bool, data: st.DataObject
) -> None:
    stored = (np.array(values, np.int64) + data.draw(st.sampled_from([0, -50, 1 << 60]))).astype(dtype)[::step]
    if np.dtype(dtype).kind == "f":
        stored = stored + np.array(data.draw(st.sampled_from([0.0, 0.5, float("nan")])), dtype)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(stored), max_size=len(stored))), bool) if masked else None
    _same(lambda: array_of(stored, of, mask), lambda: pa.array(stored, of, mask=mask))


def test_numpy_arrays_that_arrow_refuses_are_refused() -> None:
    _same(lambda: array_of(np.zeros((2, 2))), lambda: pa.array(np.zeros((2, 2))))
    mask = np.zeros(3, np.bool_)
    _same(lambda: array_of(np.zeros(2), mask=mask), lambda: pa.array(np.zeros(2), mask=mask))
    hidden = np.ma.masked_array([1, 2], [True, False])
    assert array_of(hidden).equals(pa.array(hidden))


@given(
    values=st.lists(st.integers(0, 100)),
    of=st.sampled_from([*NUMBERS, *FLOATS, pa.bool_(), pa.date32(), pa.time32("s"), pa.string()]),
    begin=st.integers(0, 9),
    pieces=st.integers(0, 3),
    null=st.booleans(),
)
def test_back_to_numpy(values: list[int], of: pa.DataType, begin: int, pieces: int, null: bool) -> None:
    held = pa.array([*values, None] if null else values, pa.int32()).cast(of).slice(begin)
    chunked = pa.chunked_array([held] * pieces, of)
    for column in (held, chunked):
        found, wanted = numpy_of(column), np.asarray(column)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@given(st.lists(st.fixed_dictionaries({}, optional={"a": LONG | st.none(), "b": TEXT | st.none(), "c": st.lists(INT)})))
def test_rows(rows: list[dict[str, Any]]) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.list_(pa.int32()))])
    assert table_of(rows, schema).equals(pa.Table.from_pylist(rows, schema))


@given(st.lists(LONG | st.none()), LONG)
def test_nulls_are_filled(values: list[int | None], value: int) -> None:
    column = pa.array(values, pa.int64())
    for held in (column, column.slice(1), pa.chunked_array([column, column])):
        assert fill_null(held, value).equals(held.fill_null(value))
        assert fill_null(held, pa.scalar(value)).equals(held.fill_null(value))
    assert fill_null(pa.nulls(2, pa.string()), "a").to_pylist() == ["a", "a"]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_texts(values: list[str]) -> None:
    made = texts(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.string()))


@given(st.lists(st.binary()))
def test_binaries(values: list[bytes]) -> None:
    made = binaries(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.binary()))


@given(st.lists(st.booleans()), st.integers(0, 9))
def test_booleans_and_where_they_are_true(values: list[bool], begin: int) -> None:
    made = booleans(np.array(values, np.bool_))
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.bool_()))
    assert places(made.slice(begin)).tolist() == [at for at, value in enumerate(values[begin:]) if value]


@given(st.lists(st.booleans()), st.integers(0, 9))
def test_booleans_there_and_back(values: list[bool], begin: int) -> None:
    found = flags(pa.array(values, pa.bool_()).slice(begin))
    assert found.dtype == np.bool_
    assert found.tolist() == values[begin:]


@given(st.tuples(st.just(np.int64), st.lists(LONG)) | st.tuples(st.just(np.int32), st.lists(INT)), st.integers(0, 9))
def test_integers_there_and_back(numbers_of: tuple[type[np.int64] | type[np.int32], list[int]], begin: int) -> None:
    kind, values = numbers_of
    made = integers(np.array(values, kind))
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.int64() if kind is np.int64 else pa.int32()))
    assert numbers(made.slice(begin)).tolist() == values[begin:]
