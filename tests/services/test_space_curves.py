"""Curves through rows: neighbours on a Hilbert curve touch, and numbers stand in the order of the values of every type."""

from __future__ import annotations

import datetime
import decimal
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudimeta.services.space_curves import bits_each, by_columns, hilbert_keys, ordinals, places, tiles, z_order_keys

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


def boxes_read(columns: list[Any], files: list[Any]) -> list[float]:
    """What share of the files a filter for two in a hundred rows reads, on average, by each column."""
    shares = []
    for column in columns:
        low, high = (np.array([end(column[rows]) for rows in files]) for end in (np.min, np.max))
        ends = np.sort(column)[np.linspace(0, len(column) - 1, 51).astype(int)]
        shares.append(float(np.mean([((low < b) & (high >= a)).mean() for a, b in itertools.pairwise(ends)])))
    return shares


@pytest.mark.parametrize("count", [4, 9, 10, 23])
def test_files_are_boxes_that_divide_by_each_column_alike(count: int) -> None:
    dice = np.random.default_rng(count)
    columns = [dice.integers(0, 1 << 40, 20_000).astype(np.uint64), dice.integers(0, 5_000, 20_000).astype(np.uint64)]
    counts = [20_000 // count + (at < 20_000 % count) for at in range(count)]
    files = list(tiles(columns, counts))
    assert [len(rows) for rows in files] == counts
    assert sorted(np.concatenate(files).tolist()) == list(range(20_000))
    curve = np.argsort(z_order_keys([places(one, 16, 1000) for one in columns], 16), kind="stable")
    for mine, of_curve in zip(
        boxes_read(columns, files), boxes_read(columns, np.split(curve, np.cumsum(counts)[:-1])), strict=True
    ):
        assert mine <= min(of_curve, 1.25 / count**0.5)


def test_a_column_of_few_values_leaves_the_files_to_the_other() -> None:
    flags = np.repeat(np.array([0, 1], np.uint64), 600)
    other = np.tile(np.arange(600, dtype=np.uint64), 2)
    files = list(tiles([flags, other], [300] * 4))
    assert [sorted(set(flags[rows].tolist())) for rows in files] == [[0], [0], [1], [1]]
    assert [(int(other[rows].min()), int(other[rows].max())) for rows in files] == [(0, 299), (300, 599)] * 2
    same = list(tiles([np.zeros(1200, np.uint64), other], [300] * 4))
    assert [int(np.ptp(other[rows])) <= 300 for rows in same] == [True] * 4


def test_one_file_and_three_columns() -> None:
    dice = np.random.default_rng(1)
    columns = [dice.integers(0, 1000, 800).astype(np.uint64) for _ in range(3)]
    assert [rows.tolist() for rows in tiles(columns, [800])] == [list(range(800))]
    files = list(tiles(columns, [100] * 8))
    assert sorted(np.concatenate(files).tolist()) == list(range(800))
    assert max(boxes_read(columns, files)) < 0.65
    assert [len(rows) for rows in tiles(columns, [400, 400])] == [400, 400]
