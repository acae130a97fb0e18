"""Types of the ordering column `ts` of random tables: what stands for a number in each, and the number of what is there."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_DAY = datetime.date(2020, 1, 1)
_MOMENT = datetime.timedelta(seconds=1, microseconds=1)


@dataclass(frozen=True)
class Order:
    """A type of an ordering column.

    Attributes:
        type: Of the column.
        value: What stands for a number; greater for a greater number.
        number: The number that a value stands for.
        literal: A value as Spark's SQL says it.
    """

    type: pa.DataType
    value: Callable[[int], Any]
    number: Callable[[Any], int]
    literal: Callable[[Any], str]


ORDERS: Mapping[str, Order] = {
    "long": Order(pa.int64(), int, int, repr),
    "int": Order(pa.int32(), int, int, repr),
    "text": Order(pa.string(), lambda n: f"{n + 1000:06d}" + "\u00fc" * (n % 3), lambda v: int(v[:6]) - 1000, repr),
    "time": Order(
        pa.timestamp("us", "UTC"),
        lambda n: _EPOCH + n * _MOMENT,
        lambda v: (v - _EPOCH) // _MOMENT,
        lambda v: f"timestamp'{v:%Y-%m-%d %H:%M:%S.%f}Z'",
    ),
    "date": Order(
        pa.date32(), lambda n: _DAY + datetime.timedelta(days=n), lambda v: int((v - _DAY).days), lambda v: f"date'{v}'"
    ),
    "double": Order(pa.float64(), lambda n: n / 8, lambda v: int(v * 8), lambda v: f"double('{v}')"),
    "float": Order(pa.float32(), lambda n: n / 8, lambda v: int(v * 8), lambda v: f"double('{v}')"),
    "decimal": Order(
        pa.decimal128(12, 3),
        lambda n: Decimal(n * 125).scaleb(-3),
        lambda v: int(v * 8),
        lambda v: f"cast('{v}' as decimal(12,3))",
    ),
    "long decimal": Order(
        pa.decimal128(30, 10),
        lambda n: Decimal(n * 125).scaleb(-3),
        lambda v: int(v * 8),
        lambda v: f"cast('{v:f}' as decimal(30,10))",
    ),
}
