"""What is made without `pyarrow.array` is what that makes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.formats.plain_arrays import binaries, booleans, flags, integers, numbers, places, texts

LONG = st.integers(-(1 << 63), (1 << 63) - 1)
INT = st.integers(-(1 << 31), (1 << 31) - 1)


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
