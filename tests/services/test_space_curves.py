"""Curves through rows: neighbours on a Hilbert curve touch, and numbers stand in the order of the values of every type."""

from __future__ import annotations

import datetime
import decimal
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudimeta.services.space_curves import bits_each, by_columns, hilbert_keys, ordinals, places, z_order_keys

D = decimal.Decimal
_UTC = datetime.timezone.utc
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-128, -1, 0, 3, 127]),
    "int64": (pa.int64(), [-(2**62), -5, 0, 1, 2**62]),
    "double": (pa.float64(), [-1e300, -0.5, 0.0, 1e-9, 2.5, 1e300]),
    "float": (pa.float32(), [-2.5, 0.0, 7.25]),
    "decimal": (pa.decimal128(20, 4), [D("-10.5"), D("0"), D("0.0001"), D("99999999")]),
    "string": (pa.string(), ["key-0001", "key-0002", "key-01", "key-zzzzzzzzzzzzzz", "key-é"]),
    "binary": (pa.binary(), [b"\x00", b"\x00\x01", b"\x7f", b"\xff"]),
    "date": (pa.date32(), [datetime.date(1969, 1, 1), datetime.date(2024, 2, 29), datetime.date(9999, 1, 1)]),
    "moment": (pa.timestamp("us", "UTC"), [datetime.datetime(y, 1, 1, tzinfo=_UTC) for y in (1900, 1970, 2100)]),
    "time": (pa.time64("us"), [datetime.time(0), datetime.time(12), datetime.time(23, 59)]),
    "boolean": (pa.bool_(), [False, True]),
}


@pytest.mark.parametrize("name", VALUES)
def test_numbers_stand_in_the_order_of_values(name: str) -> None:
    kind, values = VALUES[name]
    found = ordinals(pa.chunked_array([pa.array([None, *values], kind)])).tolist()
    assert found == sorted(found)
    assert len(set(found)) >= len(values)
    for sample in (None, 100):
        spots = places(np.array(found, np.uint64), 16, sample).tolist()
        assert spots == sorted(spots)
        assert spots[-1] < 1 << 16


def test_texts_in_slices_and_without_values() -> None:
    texts = pa.array(["b", None, "a", "ab", ""])
    assert np.argsort(ordinals(texts.slice(2)), kind="stable").tolist() == [2, 0, 1]
    assert ordinals(pa.array([None, None], pa.string())).tolist() == [0, 0]
    assert len(ordinals(pa.array([], pa.string()))) == 0


@pytest.mark.parametrize(("axes", "bits"), [(2, 5), (3, 3), (4, 2)])
def test_neighbours_on_a_hilbert_curve_touch(axes: int, bits: int) -> None:
    points = np.array(list(itertools.product(range(1 << bits), repeat=axes)), np.uint64)
    keys = hilbert_keys([points[:, at].copy() for at in range(axes)], bits)
    assert sorted(keys.tolist()) == list(range(len(points)))
    steps = np.abs(np.diff(points[np.argsort(keys)].astype(np.int64), axis=0)).sum(axis=1)
    assert steps.max() == 1


def test_bits_of_a_z_order_take_turns() -> None:
    axes = [np.array([0b101], np.uint64), np.array([0b010], np.uint64)]
    assert z_order_keys(axes, 3).tolist() == [0b100110]


@pytest.mark.parametrize("curve", [z_order_keys, hilbert_keys])
@pytest.mark.parametrize("sample", [None, 1000])
def test_a_sixteenth_of_the_rows_spans_about_a_quarter_of_each_axis(curve: Any, sample: int | None) -> None:
    random = np.random.default_rng(5)
    columns = [random.integers(0, 10**9, 4096), random.normal(size=4096) if sample else random.integers(-500, 500, 4096)]
    axes = [places(ordinals(pa.array(column)), bits_each(2), sample) for column in columns]
    order = np.argsort(curve(axes, bits_each(2)))
    for column in columns:
        ranks = np.argsort(np.argsort(column))[order].reshape(16, -1)
        assert (ranks.max(axis=1) - ranks.min(axis=1)).mean() < 0.55 * 4096


def test_one_column_after_the_other_and_nulls_first() -> None:
    columns = [pa.chunked_array([[2, None], [1, 2]]), pa.chunked_array([["b", "z"], ["c", None]])]
    assert by_columns(columns).tolist() == [1, 2, 3, 0]
