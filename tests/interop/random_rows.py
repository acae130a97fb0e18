"""Columns of random tables: their types, values that are easily lost, and how Spark's SQL says a value."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
Choose = Callable[[random.Random], Any]

UTC = datetime.timezone.utc
HOUR_MS = 3_600_000
FIRST_HOUR_MS = 1_790_000_000_000 // HOUR_MS * HOUR_MS
POINT = pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.list_(pa.float64()))])


@dataclass(frozen=True)
class Column:
    """A column that holds data.

    Attributes:
        type: Of the column.
        value: Chooses a value that is not null.
        literal: A value as Spark's SQL says it; None where it is not compared.
        wider: What a later write may bring.
    """

    type: pa.DataType
    value: Choose
    literal: Callable[[Any], str] | None = None
    wider: pa.DataType | None = None


def _number(value: float) -> str:
    return f"double('{value}')" if isinstance(value, float) and not math.isfinite(value) else f"{value!r}"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _decimal(digits: int, scale: int) -> Choose:
    def value(chance: random.Random) -> Decimal:
        limit = 10**digits - 1
        whole = chance.choice((limit, -limit, 0, chance.randrange(-limit, limit), chance.randrange(-999, 999)))
        return Decimal(f"{whole}E-{scale}")

    return value


def _moment(chance: random.Random) -> datetime.datetime:
    second = chance.choice((0, -1, 1_800_000_000, chance.randrange(-2_000_000_000, 4_000_000_000)))
    return datetime.datetime(1970, 1, 1, tzinfo=UTC) + datetime.timedelta(
        seconds=second, microseconds=chance.choice((0, 1, 999_999))
    )


def _day(chance: random.Random) -> datetime.date:
    return datetime.date(1970, 1, 1) + datetime.timedelta(days=chance.choice((0, -1, 20_000, chance.randrange(-9000, 40_000))))


def _float(chance: random.Random) -> float:
    return chance.choice((0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -2.25, chance.randrange(-999, 999) / 8))


def _plain_float(chance: random.Random) -> float:
    return chance.randrange(-9999, 9999) / 16


def _word(chance: random.Random) -> str:
    return chance.choice(("", "a", "Note 1", "it's", "é\U0001f600", "long " * 20, f"w{chance.randrange(20)}"))


def _point(chance: random.Random) -> Row:
    return {
        "a": chance.choice((None, chance.randrange(9))),
        "b": chance.choice((None, _word(chance))),
        "c": chance.choice((None, [], [1.0, -0.5], [chance.random()])),
    }


def _list(item: Choose) -> Choose:
    """Lists without nulls: beside a decimal of few digits Apache Hudi cannot write those, of its own tables neither."""
    return lambda chance: [item(chance) for _ in range(chance.randrange(4))]


COLUMNS: Mapping[str, Column] = {
    "dec9": Column(pa.decimal128(9, 3), _decimal(9, 3), lambda v: f"cast('{v}' as decimal(9,3))"),
    "dec38": Column(pa.decimal128(38, 18), _decimal(38, 18), lambda v: f"cast('{v:f}' as decimal(38,18))"),
    "at": Column(pa.timestamp("us", "UTC"), _moment, lambda v: f"timestamp'{v:%Y-%m-%d %H:%M:%S.%f}Z'"),
    "ntz": Column(
        pa.timestamp("us"), lambda c: _moment(c).replace(tzinfo=None), lambda v: f"timestamp_ntz'{v:%Y-%m-%d %H:%M:%S.%f}'"
    ),
    "d": Column(pa.date32(), _day, lambda v: f"date'{v}'"),
    "raw": Column(pa.binary(), lambda c: bytes(c.randrange(256) for _ in range(c.randrange(5)))),
    "b": Column(pa.bool_(), lambda c: c.random() < 0.5, lambda v: str(v).lower()),
    "f": Column(pa.float32(), _float, _number),
    "x": Column(pa.float64(), _float, _number),
    "f2": Column(pa.float32(), _plain_float, _number, pa.float64()),
    "i": Column(pa.int32(), lambda c: c.choice((0, 2**31 - 1, -(2**31), c.randrange(100))), _number, pa.int64()),
    "n": Column(pa.int64(), lambda c: c.choice((0, 2**62, -(2**62), c.randrange(1000))), _number),
    "s": Column(pa.string(), _word, _text),
    "st": Column(POINT, _point),
    "ar": Column(pa.list_(pa.string()), _list(_word)),
    "ar2": Column(pa.list_(POINT), lambda c: [_point(c) for _ in range(c.randrange(3))]),
    "mp": Column(pa.map_(pa.string(), pa.int64()), lambda c: [(f"k{n}", c.choice((None, n))) for n in range(c.randrange(3))]),
}
"""What a random table chooses from, beside the columns of its keys, partitions and order."""


_INNER = pa.struct([("q", pa.int32()), ("r", pa.string()), ("dec", pa.decimal128(5, 2)), ("at", pa.timestamp("us", "UTC"))])


def _inner(chance: random.Random) -> Row:
    moment = chance.choice((None, _moment(chance)))
    return {"q": chance.randrange(9), "r": chance.choice((None, _word(chance))), "dec": _decimal(5, 2)(chance), "at": moment}


MORE_COLUMNS: Mapping[str, Column] = {
    "ld": Column(pa.list_(pa.decimal128(20, 4)), _list(_decimal(20, 4))),
    "ll": Column(pa.list_(pa.list_(pa.int32())), _list(_list(lambda c: c.randrange(9)))),
    "dl": Column(pa.list_(pa.date32()), _list(_day)),
    "ss": Column(pa.struct([("in", _INNER), ("x", pa.float64())]), lambda c: {"in": _inner(c), "x": c.choice((None, 0.5))}),
    "ms2": Column(pa.map_(pa.string(), _INNER), lambda c: [(f"k{n}", _inner(c)) for n in range(c.randrange(3))]),
    "ml": Column(pa.map_(pa.string(), pa.list_(pa.string())), lambda c: [(f"k{n}", [_word(c)]) for n in range(c.randrange(3))]),
}
"""More of them, in histories from seed 3000 on."""


def normal(value: Any) -> Any:
    """A value that equals another only where both are the same value: NaN is one, and zero has its sign.

    The entries of a map, pairs, are in no order, of which Avro in Java keeps none.
    """
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return tuple((name, normal(part)) for name, part in value.items())
    if isinstance(value, list):
        parts = [normal(part) for part in value]
        return tuple(sorted(parts) if any(isinstance(part, tuple) for part in value) else parts)
    if isinstance(value, tuple):
        return tuple(normal(part) for part in value)
    return value


def same(one: Any, other: Any) -> bool | None:
    """Whether `=` of Spark's SQL holds between a value of a column and one that is not null; None for unknown."""
    if one is None:
        return None
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def not_less(one: Any, other: Any) -> bool | None:
    """Whether `>=` of Spark's SQL holds; NaN is above every number. None for unknown."""
    if one is None:
        return None
    if isinstance(one, float) and isinstance(other, float):
        return math.isnan(one) or (not math.isnan(other) and one >= other)
    return bool(one >= other)
