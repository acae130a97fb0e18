"""Rows sorted out by a number or a text that each of them has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hudimeta.table.positions import positions_by_number, positions_by_text


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_each_number_has_its_rows_in_their_order(kind: type) -> None:
    found = positions_by_number(np.array([3, 0, 3, 7, 0, 3], kind))
    assert [(number, at.tolist()) for number, at in found] == [(0, [1, 4]), (3, [0, 2, 5]), (7, [3])]


def test_no_rows_have_no_numbers() -> None:
    assert positions_by_number(np.zeros(0, np.int64)) == []
    assert positions_by_text(pa.array([], pa.string())) == {}


def test_texts_come_in_the_order_of_their_first_rows() -> None:
    found = positions_by_text(pa.array(["b", "", "b", "a", ""]))
    assert [(text, at.tolist()) for text, at in found.items()] == [("b", [0, 2]), ("", [1, 4]), ("a", [3])]
