"""Rows sorted out by a number or a text that each of them has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.table.positions import positions_by_number, positions_by_text, rows_at


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_each_number_has_its_rows_in_their_order(kind: type) -> None:
    found = positions_by_number(np.array([3, 0, 3, 7, 0, 3], kind))
    assert [(number, at.tolist()) for number, at in found] == [(0, [1, 4]), (3, [0, 2, 5]), (7, [3])]


@given(st.lists(st.integers(-70_000, 70_000) | st.integers(-(1 << 40), 1 << 40), max_size=60))
def test_near_and_far_numbers_are_sorted_out_alike(numbers: list[int]) -> None:
    wanted = {number: [at for at, one in enumerate(numbers) if one == number] for number in sorted(set(numbers))}
    assert {number: at.tolist() for number, at in positions_by_number(np.array(numbers, np.int64))} == wanted


@given(st.data())
def test_rows_come_from_many_chunks_as_from_one(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 9000), min_size=1, max_size=5))
    chunks = [pa.table({"n": np.arange(size), "t": pa.array(np.arange(size)).cast(pa.string())}) for size in sizes]
    table = pa.concat_tables(chunks)
    at = np.array(data.draw(st.lists(st.integers(0, max(len(table) - 1, 0)), max_size=20 if len(table) else 0)), np.int64)
    for positions in (at, np.sort(at)):
        assert rows_at(table, positions).equals(table.combine_chunks().take(pa.array(positions)))


def test_no_rows_have_no_numbers() -> None:
    assert positions_by_number(np.zeros(0, np.int64)) == []
    assert positions_by_text(pa.array([], pa.string())) == {}


def test_texts_come_in_the_order_of_their_first_rows() -> None:
    found = positions_by_text(pa.array(["b", "", "b", "a", ""]))
    assert [(text, at.tolist()) for text, at in found.items()] == [("b", [0, 2]), ("", [1, 4]), ("a", [3])]
