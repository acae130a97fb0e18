"""Bounds as typed columns: both regimes, every type, and what must stay unknown."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.metadata.bounds import Bounds, order_value, typed_bounds, wrap_bounds
from hudimeta.metadata.record import BoundKind
from hudimeta.metadata.value_types import ValueType, value_type_of

UTC = dt.timezone.utc
SAMPLES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int8(): [-128, 127],
    pa.int32(): [-(1 << 31), 0, (1 << 31) - 1],
    pa.int64(): [-(1 << 63), -1, (1 << 63) - 1],
    pa.float32(): [-1.5, 0.0, 2.0**100],
    pa.float64(): [-math.inf, 1e300, 0.1],
    pa.string(): ["", "é", "\U0001f600"],
    pa.large_string(): ["a", "b"],
    pa.binary(): [b"", b"\xff\x00"],
    pa.binary(3): [b"abc", b"\xff\xff\xff"],
    pa.date32(): [dt.date(1, 1, 1), dt.date(2024, 1, 15), dt.date(9999, 12, 31)],
    pa.timestamp("us", "UTC"): [dt.datetime(1969, 1, 1, tzinfo=UTC), dt.datetime(2024, 1, 15, 1, 2, 3, 4, UTC)],
    pa.timestamp("us"): [dt.datetime(2024, 1, 15, 1, 2, 3, 4)],
    pa.timestamp("ms", "UTC"): [dt.datetime(2024, 1, 15, 1, 2, 3, tzinfo=UTC)],
    pa.time64("us"): [dt.time(1, 2, 3, 4)],
    pa.time32("ms"): [dt.time(23, 59, 59)],
    pa.decimal128(15, 2): [decimal.Decimal("4500.00"), decimal.Decimal("-0.01"), decimal.Decimal("0.00")],
    pa.decimal128(5, 0): [decimal.Decimal(-128), decimal.Decimal(127), decimal.Decimal(128)],
}
IDS = [str(kind) for kind in SAMPLES]


def through(values: pa.Array, version: str, wanted: pa.DataType | None = None) -> list[Any]:
    """Wrap values and read them back, as a file of that regime would hold them."""
    ordinal, info = value_type_of(values.type) if version == "V2" else (ValueType.V1, None)
    infos = pa.array([info] * len(values), pa.string())
    read = typed_bounds(wrap_bounds(values, version), wanted or values.type, np.full(len(values), int(ordinal)), infos)
    read.validate(full=True)
    return read.to_pylist()


@pytest.mark.parametrize("version", ["V1", "V2"])
@pytest.mark.parametrize("kind", list(SAMPLES), ids=IDS)
def test_every_type_comes_back(kind: pa.DataType, version: str) -> None:
    values = [*SAMPLES[kind], None]
    assert through(pa.array(values, kind), version) == values
    assert through(pa.array(values, kind)[1:], version) == values[1:]
    assert through(pa.array([], kind), version) == []


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_dictionaries_are_their_values(version: str) -> None:
    values = pa.array(["b", None, "a", "b"]).dictionary_encode()
    assert through(values, version) == ["b", None, "a", "b"]


@given(st.integers(1, 38).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, p))), st.data())
def test_decimals_keep_every_digit(shape: tuple[int, int], data: st.DataObject) -> None:
    precision, scale = shape
    unscaled = data.draw(st.lists(st.integers(-(10**precision) + 1, 10**precision - 1), min_size=1, max_size=6))
    with decimal.localcontext(decimal.Context(prec=60)):
        values = pa.array([decimal.Decimal(n).scaleb(-scale) for n in unscaled], pa.decimal128(precision, scale))
        assert through(values, "V2") == values.to_pylist()
        bodies = wrap_bounds(values, "V2").bodies.to_pylist()
        shortest = [n.to_bytes((n if n >= 0 else ~n).bit_length() // 8 + 1, "big", signed=True) for n in unscaled]
        assert bodies == shortest
        if scale <= 15 and precision + 15 - scale <= 30:
            assert through(values, "V1") == values.to_pylist()


def test_bounds_as_hudi_wrote_them() -> None:
    """Version 9: decimal(15,2) 4500.00 is the bytes 06ddd0, a date an int. Version 8: decimals have scale 15."""
    amount = pa.array([decimal.Decimal("4500.00")], pa.decimal128(15, 2))
    new = wrap_bounds(amount, "V2")
    assert (BoundKind(int(new.kinds[0])), new.bodies[0].as_py().hex()) == (BoundKind.BYTES, "06ddd0")
    assert value_type_of(amount.type) == (ValueType.DECIMAL, "15,2")
    old = wrap_bounds(amount, "V1")
    assert BoundKind(int(old.kinds[0])) is BoundKind.DECIMAL
    assert int.from_bytes(old.bodies[0].as_py(), "big") == 4500 * 10**15
    day = pa.array([dt.date(2024, 1, 15)])
    assert [BoundKind(int(wrap_bounds(day, v).kinds[0])) for v in ("V1", "V2")] == [BoundKind.DATE, BoundKind.INT]
    assert wrap_bounds(day, "V2").bodies.to_pylist() == [bytes.fromhex("b2b402")]


def test_mixed_regimes_in_one_column() -> None:
    """An upgraded table holds bounds of both regimes, and all-null files without any."""
    kind = pa.decimal128(10, 2)
    value = decimal.Decimal("12.34")
    parts = [wrap_bounds(pa.array([value], kind), "V1"), wrap_bounds(pa.array([value], kind), "V2")]
    kinds = np.concatenate([parts[0].kinds, parts[1].kinds, np.zeros(1, np.int8)])
    bodies = pa.concat_arrays([parts[0].bodies, parts[1].bodies, pa.array([b""], pa.binary())])
    infos = pa.array([None, "10,2", "10,2"], pa.string())
    found = typed_bounds(Bounds(kinds, bodies), kind, np.array([0, 10, 10]), infos)
    assert found.to_pylist() == [value, value, None]


def test_decimals_of_several_scales_in_one_column() -> None:
    bodies = pa.array([b"\x01\x00", b"\x01\x00", b"\x01\x00"], pa.binary())
    bounds = Bounds(np.full(3, int(BoundKind.BYTES), np.int8), bodies)
    infos = pa.array(["10,2", "12,3", None], pa.string())
    found = typed_bounds(bounds, pa.decimal128(20, 4), np.full(3, 10), infos)
    assert found.to_pylist() == [decimal.Decimal("2.5600"), decimal.Decimal("0.2560"), None]


@pytest.mark.parametrize("info", ["x", "10", "10,", "10,abc", "10,-1", "10,39", "10,999", "10,99999999999999999999", "", None])
def test_a_decimal_of_which_nobody_knows_the_scale_is_unknown(info: str | None) -> None:
    bounds = Bounds(np.array([BoundKind.BYTES] * 2, np.int8), pa.array([b"\x01", b"\x02"], pa.binary()))
    decimals = np.array([ValueType.DECIMAL] * 2, np.int64)
    found = typed_bounds(bounds, pa.decimal128(10, 2), decimals, pa.array([info, "10,2"], pa.string()))
    assert found.to_pylist() == [None, decimal.Decimal("0.02")]
    assert typed_bounds(bounds, pa.decimal128(10, 2), decimals, pa.array([info] * 2, pa.string())).to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("stored", "wanted", "expected"),
    [
        (pa.array([7], pa.int32()), pa.int64(), [7]),
        (pa.array([7], pa.int64()), pa.float64(), [7.0]),
        (pa.array([7], pa.int32()), pa.decimal128(10, 2), [decimal.Decimal("7.00")]),
        (pa.array([1.5], pa.float32()), pa.float64(), [1.5]),
        (pa.array([decimal.Decimal("1.50")], pa.decimal128(5, 2)), pa.decimal128(12, 4), [decimal.Decimal("1.5000")]),
        (pa.array(["x"]), pa.binary(), [b"x"]),
        (pa.array(["x"]), pa.large_string(), ["x"]),
        (pa.array(["x"]), pa.dictionary(pa.int32(), pa.string()), ["x"]),
        (pa.array([5], pa.timestamp("ms", "UTC")), pa.timestamp("us", "UTC"), [dt.datetime(1970, 1, 1, 0, 0, 0, 5000, UTC)]),
    ],
)
def test_promoted_columns_keep_their_bounds(stored: pa.Array, wanted: pa.DataType, expected: list[Any]) -> None:
    assert through(stored, "V2", wanted) == expected


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.array([7], pa.int64()), pa.string()),
        (pa.array(["7"]), pa.int64()),
        (pa.array([1 << 40], pa.int64()), pa.int32()),
        (pa.array([7], pa.int32()), pa.timestamp("us", "UTC")),
        (pa.array([7], pa.int32()), pa.bool_()),
        (pa.array([True]), pa.int32()),
        (pa.array([dt.date(2024, 1, 1)]), pa.int32()),
        (pa.array([1.5]), pa.int64()),
        (pa.array([b"\xff"]), pa.string()),
        (pa.array([decimal.Decimal("1.55")], pa.decimal128(5, 2)), pa.decimal128(5, 1)),
    ],
)
def test_bounds_of_another_type_are_unknown(stored: pa.Array, wanted: pa.DataType) -> None:
    assert through(stored, "V1", wanted) == [None]


def test_nan_bounds_nothing() -> None:
    assert through(pa.array([math.nan, 1.0]), "V2") == [None, 1.0]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_is_stored_as_infinity_which_bounds_nothing_either(kind: pa.DataType) -> None:
    """A bound that is NaN makes Hudi's reader skip the file whatever the predicate."""
    values = pa.array([math.nan, math.inf, None, -math.inf], kind)
    bounds = wrap_bounds(values)
    stored = [order_value(int(k), b.as_py()) if k else None for k, b in zip(bounds.kinds, bounds.bodies, strict=True)]
    assert stored == [math.inf, math.inf, None, -math.inf]
    assert typed_bounds(bounds, kind).to_pylist() == [None, None, None, -math.inf]


def test_types_without_order_are_refused() -> None:
    for kind in (pa.list_(pa.int32()), pa.struct([("a", pa.int32())])):
        with pytest.raises(ValueError, match="do not hold"):
            wrap_bounds(pa.array([None], kind))
    with pytest.raises(ValueError, match="do not hold"):
        wrap_bounds(pa.array([None], pa.decimal128(38, 10)), "V1")


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=2, max_size=8))
def test_bounds_sort_as_their_values(values: list[int]) -> None:
    bounds = wrap_bounds(pa.array(values, pa.int64()))
    ordered = sorted(range(len(values)), key=lambda i: order_value(int(bounds.kinds[i]), bounds.bodies[i].as_py()))
    assert [values[i] for i in ordered] == sorted(values)
