"""Spark's types on Arrow: the canonical form of a column's type, natural types of constants, and common types of operands.

The rules are those of Spark 4, whose ANSI mode is on: a string beside a number is read as a number (BIGINT beside integers,
DOUBLE beside fractions), beside a date as a date; integers beside FLOAT become DOUBLE; DATE beside TIMESTAMP becomes
TIMESTAMP at midnight of the session's zone. Decimals are compared in a type of at most 38 digits, which keeps those before the
point and rounds the rest away.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, scalar_of

__all__ = [
    "DATE",
    "DOUBLE",
    "INSTANT",
    "LOCAL_TIMESTAMP",
    "LONG",
    "STRING",
    "bounded_decimal",
    "canonical_type",
    "common_type",
    "decimal_of_integer",
    "integer_range",
    "is_decimal",
    "is_floating",
    "is_integer",
    "is_numeric",
    "map_unique",
    "natural_scalar",
    "type_name",
]

STRING = pa.string()
DATE = pa.date32()
LONG = pa.int64()
DOUBLE = pa.float64()
INSTANT = pa.timestamp("us", "UTC")
"""Spark's TIMESTAMP: microseconds since the epoch, shown in the session's zone."""
LOCAL_TIMESTAMP = pa.timestamp("us")
"""Spark's TIMESTAMP_NTZ."""

MAX_PRECISION = 38
MIN_ADJUSTED_SCALE = 6

_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DIGITS_OF = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_NAMES = {
    pa.null(): "VOID",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    DATE: "DATE",
    INSTANT: "TIMESTAMP",
    LOCAL_TIMESTAMP: "TIMESTAMP_NTZ",
}


def is_integer(t: pa.DataType) -> bool:
    """True for the four signed integer types."""
    return t in _INTEGERS


def is_floating(t: pa.DataType) -> bool:
    """True for FLOAT and DOUBLE."""
    return bool(pa.types.is_floating(t))


def is_decimal(t: pa.DataType) -> bool:
    """True for decimals of any width."""
    return bool(pa.types.is_decimal(t))


def is_numeric(t: pa.DataType) -> bool:
    """True for integers, floats and decimals."""
    return is_integer(t) or is_floating(t) or is_decimal(t)


def integer_range(t: pa.DataType) -> tuple[int, int]:
    """Smallest and largest value of a signed integer type."""
    half = 1 << (int(t.bit_width) - 1)
    return -half, half - 1


def type_name(t: pa.DataType | None) -> str:
    """Spark's name of a type, for texts and for CAST."""
    if t is None:
        return "?"
    if is_decimal(t):
        return f"DECIMAL({t.precision},{t.scale})"
    return _NAMES.get(t) or str(t).upper()


def canonical_type(t: pa.DataType) -> pa.DataType:
    """The one type that stands for all Arrow spellings of what is one type in Spark.

    Dictionaries are their values, large and view strings are strings, timestamps of every unit are microseconds, every zone
    is UTC (the zone of an Arrow timestamp is only a manner of showing), unsigned integers are the next larger signed type.
    Nested types stay.
    """
    if pa.types.is_dictionary(t):
        return canonical_type(t.value_type)
    if t in _UNSIGNED:
        return _UNSIGNED[t]
    if pa.types.is_timestamp(t):
        return LOCAL_TIMESTAMP if t.tz is None else INSTANT
    if pa.types.is_date(t):
        return DATE
    if is_decimal(t):
        return decimal_type(t.precision, t.scale)
    if pa.types.is_string(t) or pa.types.is_large_string(t) or t == pa.string_view():
        return STRING
    if pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t) or t == pa.binary_view():
        return pa.binary()
    return pa.float32() if t == pa.float16() else t


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """The narrowest of the two decimal types used here that holds `precision` digits."""
    return pa.decimal128(precision, scale) if precision <= MAX_PRECISION else pa.decimal256(precision, scale)


def bounded_decimal(precision: int, scale: int) -> pa.DataType:
    """A result type of decimal arithmetic: digits over 38 are taken from the scale, which keeps at least 6."""
    if precision <= MAX_PRECISION:
        return pa.decimal128(precision, scale)
    keep = min(scale, MIN_ADJUSTED_SCALE)
    return pa.decimal128(MAX_PRECISION, max(MAX_PRECISION - (precision - scale), keep))


def decimal_of_integer(t: pa.DataType) -> pa.DataType:
    """The decimal type that holds every value of an integer type."""
    return pa.decimal128(_DIGITS_OF[t], 0)


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The type in which Spark compares two operands; None when it refuses to."""
    if a == b:
        return a
    if pa.types.is_null(a):
        return b
    if pa.types.is_null(b):
        return a
    if STRING in (a, b):
        return _beside_string(b if a == STRING else a)
    if is_numeric(a) and is_numeric(b):
        return _common_number(a, b)
    times = {DATE, INSTANT, LOCAL_TIMESTAMP}
    if a in times and b in times:
        return INSTANT if INSTANT in (a, b) else LOCAL_TIMESTAMP
    return None


def _beside_string(other: pa.DataType) -> pa.DataType | None:
    if is_integer(other):
        return LONG
    if is_numeric(other):
        return DOUBLE
    atomic = (pa.bool_(), pa.binary(), DATE, INSTANT, LOCAL_TIMESTAMP)
    return other if other in atomic else None


def _common_number(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if is_integer(a) and is_integer(b):
        return a if a.bit_width >= b.bit_width else b
    if is_floating(a) or is_floating(b):
        return DOUBLE
    a, b = (decimal_of_integer(t) if is_integer(t) else t for t in (a, b))
    scale = max(a.scale, b.scale)
    precision = max(a.precision - a.scale, b.precision - b.scale) + scale
    # digits over 38 are taken from the scale, and both sides are rounded, as in Spark
    return decimal_type(min(precision, MAX_PRECISION), max(scale - max(precision - MAX_PRECISION, 0), 0))


def natural_scalar(value: object) -> pa.Scalar:
    """The typed constant that Spark would make of a Python value.

    Integers are INT, else BIGINT, else DECIMAL; floats are DOUBLE; a `Decimal` keeps its digits and scale.

    Raises:
        TypeError: For values that are no constant of a SQL type.
    """
    if isinstance(value, pa.Scalar):
        return _canonical_scalar(value)
    if hasattr(value, "dtype") and hasattr(value, "item"):  # a NumPy scalar
        return natural_scalar(_of_numpy(value))
    if value is None:
        return scalar_of(None, pa.null())
    if isinstance(value, bool):
        return scalar_of(value)
    if isinstance(value, int):
        return _integer_scalar(value)
    if isinstance(value, float):
        return scalar_of(value, DOUBLE)
    if isinstance(value, decimal.Decimal):
        return _decimal_scalar(value)
    if isinstance(value, str):
        return scalar_of(value, STRING)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return scalar_of(bytes(value), pa.binary())
    if isinstance(value, dt.datetime):
        if value != value:  # NaT of pandas
            return scalar_of(None, pa.null())
        if getattr(value, "nanosecond", 0):
            raise TypeError(f"{value!r} has nanoseconds, and the columns of a table have microseconds")
        return scalar_of(value, LOCAL_TIMESTAMP if value.tzinfo is None else INSTANT)
    if isinstance(value, dt.date):
        return scalar_of(value, DATE)
    raise TypeError(f"{value!r} is not a constant that a filter can compare with")


def _canonical_scalar(value: pa.Scalar) -> pa.Scalar:
    target = canonical_type(value.type)
    try:
        return value if value.type == target else value.cast(target)
    except pa.ArrowException as error:
        raise TypeError(f"{value!r} is not a constant that a filter can compare with ({error})") from error


def _of_numpy(value: Any) -> object:
    """A NumPy scalar as one of Arrow's; a date or time, of whatever unit, as one of Python's where microseconds hold it."""
    if value.dtype.kind != "M":
        return scalar_of(value)
    if value != value:  # NaT
        return scalar_of(None, pa.null())
    unit = "D" if str(value.dtype).endswith(("[Y]", "[M]", "[W]", "[D]")) else "us"
    moment = value.astype(f"datetime64[{unit}]")
    if moment != value or not isinstance(moment.item(), dt.date):
        raise TypeError(f"{value!r} is no moment in whole microseconds of the years 1 to 9999")
    return moment.item()


def _integer_scalar(value: int) -> pa.Scalar:
    for t in (pa.int32(), pa.int64()):
        low, high = integer_range(t)
        if low <= value <= high:
            return scalar_of(value, t)
    return _decimal_scalar(decimal.Decimal(value))


def _decimal_scalar(value: decimal.Decimal) -> pa.Scalar:
    _sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return scalar_of(math.nan if value.is_nan() else math.inf if value > 0 else -math.inf, DOUBLE)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > MAX_PRECISION:
        raise TypeError(f"{value} has more than {MAX_PRECISION} digits")
    return scalar_of(value, pa.decimal128(precision, scale))


def map_unique(values: pa.Array, function: Callable[[Any], Any], target: pa.DataType) -> pa.Array:
    """Apply a Python function once per distinct value; for conversions too odd for a kernel.

    Args:
        values: Any simple type.
        function: From a value that is not None to a value of `target` or None.
        target: Type of the result.

    Returns:
        An array of `target`; null where the input is.
    """
    if is_floating(values.type):  # dictionary encoding would join -0.0 and 0.0
        return array_of([None if value is None else function(value) for value in values.to_pylist()], target)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), target)
    encoded = values.dictionary_encode()
    mapped = array_of([function(value) for value in encoded.dictionary.to_pylist()], target)
    return mapped.take(encoded.indices)
