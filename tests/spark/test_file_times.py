"""Twelve bytes of INT96 as the instants that Spark's arithmetic makes of them, at every depth."""

from __future__ import annotations

import random
import struct

import pyarrow as pa
import pytest
from pyspark_hudimeta.routed.file_times import int96_as_times, with_int96_as_times

TIMES = pa.timestamp("us", tz="UTC")
DAYS = [-(2**31), -1, 0, 1, 2_440_587, 2_440_588, 2_460_000, 2**31 - 1]
NANOSECONDS = [-(2**63), -86_400 * 10**9, -1_001, -1_000, -999, 0, 999, 1_000, 86_400 * 10**9 - 1, 2**63 - 1]


def _wrapped(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def instant(day: int, nanoseconds: int) -> int:
    """What Java makes of them."""
    towards_0 = abs(nanoseconds) // 1000 * (1 if nanoseconds >= 0 else -1)
    return _wrapped(_wrapped(day - 2_440_588, 32) * 86_400_000_000 + towards_0, 64)


def values() -> list[tuple[int, int] | None]:
    """Days and nanoseconds, ordinary ones and any at all."""
    some = random.Random(96)
    found: list[tuple[int, int] | None] = [(day, part) for day in DAYS for part in NANOSECONDS]
    found += [(some.randrange(-(2**31), 2**31), some.randrange(-(2**63), 2**63)) for _ in range(500)]
    return [None, *found, None]


def stored() -> pa.Array:
    return pa.array([one and struct.pack("<qi", one[1], one[0]) for one in values()], pa.binary(12))


@pytest.mark.parametrize(("start", "length"), [(0, None), (3, None), (7, 20), (5, 0)])
def test_every_instant_is_that_of_java(start: int, length: int | None) -> None:
    times = with_int96_as_times(stored().slice(start, length))
    times.validate(full=True)
    assert times.type == TIMES
    expected = pa.array([one and instant(*one) for one in values()]).slice(start, length)
    assert times.cast(pa.int64()).to_pylist() == expected.to_pylist()


def test_within_lists_structs_and_maps() -> None:
    bytes_ = stored().slice(0, 60)
    times = with_int96_as_times(bytes_)
    offsets = pa.array([0, 5, None, 5, 40, 60], pa.int32())
    keys = pa.array([str(number) for number in range(60)])
    for made in (
        lambda leaf: pa.StructArray.from_arrays([leaf, keys], ["at", "key"], mask=pa.array([n % 7 == 0 for n in range(60)])),
        lambda leaf: pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([leaf], ["at"])),
        lambda leaf: pa.MapArray.from_arrays(offsets, keys, leaf),
    ):
        for start in (0, 2):
            found, expected = with_int96_as_times(made(bytes_).slice(start)), made(times).slice(start)
            found.validate(full=True)
            assert found.type == expected.type == int96_as_times(made(bytes_).type)
            assert found.equals(expected)


def test_other_values_are_what_they_were() -> None:
    rows = pa.array([{"a": 1, "b": ["x"]}])
    assert with_int96_as_times(rows) is rows
