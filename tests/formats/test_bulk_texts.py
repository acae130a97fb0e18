"""Columns of texts looked at as bytes: the same answers as Arrow's, which looks at each text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.formats.bulk_texts import coded, distinct, is_surely_sound

MANY = 9_000


def _repeated(texts: list[str], seed: int) -> pa.StringArray:
    """Many texts, each of some, in a random order."""
    return pa.array(texts, pa.string()).take(pa.array(np.random.default_rng(seed).integers(0, len(texts), MANY)))


@given(st.integers(1, 9), st.integers(0, 99), st.integers(0, 3))
def test_texts_of_one_length_are_coded_as_arrow_codes_them(length: int, seed: int, chunks: int) -> None:
    letters = np.random.default_rng(seed).integers(0, 128, (6, length), np.uint8)
    texts = _repeated([bytes(row).decode() for row in letters], seed)
    assert coded(texts).equals(texts.dictionary_encode())
    assert coded(texts[7:]).equals(texts[7:].dictionary_encode())
    column = pa.chunked_array([texts[5:]] * chunks, pa.string())
    assert coded(column).equals(column.dictionary_encode())


@pytest.mark.parametrize("texts", [["a", "bc"], ["ä", "ab"], ["", "a"], ["", ""], ["a", None], ["same", "long"]])
def test_others_are_coded_by_arrow(texts: list[str]) -> None:
    column = _repeated(texts, 1)
    assert coded(column).equals(column.dictionary_encode())


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None, 3]),
        pa.array(["x", None, "long text"]),
        pa.array([18_000, 18_001], pa.date32()),
        pa.array([None, None], pa.string()),
        pa.array([0.0, -0.0]),
    ],
    ids=lambda values: str(values.type),
)
def test_the_distinct_values_and_their_codes_make_the_column_again(values: pa.Array) -> None:
    column = values.take(pa.array(np.arange(MANY) % len(values)))
    found, codes = distinct(column)
    assert (found if codes is None else found.take(codes)).equals(column)
    assert (codes is None) == pa.types.is_floating(values.type), "of floats 0.0 equals -0.0"
    assert codes is None or len(found) == len(set(values.to_pylist()))


def test_of_few_or_mostly_distinct_values_there_are_no_codes() -> None:
    for column in (pa.array(["a", "a"]), pa.array([str(n) for n in range(MANY)])):
        found, codes = distinct(column)
        assert found is column
        assert codes is None


@given(st.lists(st.binary(max_size=4), min_size=1, max_size=6), st.integers(0, 2))
def test_what_is_surely_sound_is_sound(texts: list[bytes], begin: int) -> None:
    shared = pa.array([b"\xff", *texts * (2 * MANY)], pa.binary()).view(pa.string())
    nothing = pa.Array.from_buffers(pa.string(), 0, [None, None, pa.py_buffer(b"")])
    column = pa.chunked_array([shared[1 + begin :], nothing, shared[1:]])
    if is_surely_sound(column):
        column.validate(full=True)
    assert is_surely_sound(column) == (max(b"".join(texts), default=0) < 128)


def test_offsets_that_go_back_are_not_sound() -> None:
    offsets = np.arange(MANY + 1, dtype=np.int32)
    offsets[7] = 9
    column = pa.chunked_array([pa.StringArray.from_buffers(MANY, pa.py_buffer(offsets), pa.py_buffer(b"a" * MANY))])
    assert not is_surely_sound(column)
    with pytest.raises(pa.ArrowInvalid):
        column.validate(full=True)
