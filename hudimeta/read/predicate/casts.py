"""CAST, vectorised: Spark's conversions between simple types, with null for what cannot be converted.

Spark in ANSI mode raises for such values and gives null from TRY_CAST; a filter that raised or not depending on which files
were skipped would help nobody, so the meaning here is TRY_CAST's.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.read.predicate import datetime_text
from hudimeta.read.predicate.local_time import SECOND_US, days_of, is_utc, micros, to_instant, to_local
from hudimeta.read.predicate.types import (
    DATE,
    DOUBLE,
    INSTANT,
    LOCAL_TIMESTAMP,
    LONG,
    STRING,
    canonical_type,
    integer_range,
    is_decimal,
    is_floating,
    is_integer,
    is_numeric,
)

__all__ = ["can_cast", "cast_array", "cast_is_monotone", "cast_is_total", "java_double_text", "map_unique", "to_canonical"]

_TIMES = (INSTANT, LOCAL_TIMESTAMP)
_BLANKS = "".join(chr(c) for c in range(0x21)) + "\x7f"
_FLOAT_TEXT = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?$"
_WIDE = decimal.Context(prec=120)


def to_canonical(values: pa.Array) -> pa.Array:
    """An array in the one type that stands for its Spark type; see :func:`~hudimeta.read.predicate.types.canonical_type`."""
    target = canonical_type(values.type)
    if values.type == target:
        return values
    if pa.types.is_dictionary(values.type):
        return to_canonical(values.dictionary_decode())
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        raw = values.view(pa.int64())
        whole = np.floor_divide(np.asarray(raw.fill_null(0)), 1000)
        return pa.array(whole, mask=np.asarray(raw.is_null())).view(target)
    return values.cast(target, safe=False)


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether Spark (ANSI) knows the conversion, and so do we."""
    if source == target or pa.types.is_null(source):
        return True
    simple = (pa.bool_(), STRING, pa.binary(), DATE, *_TIMES)
    if not all(t in simple or is_numeric(t) for t in (source, target)):
        return False
    if target == STRING or source == STRING:
        return True
    if pa.bool_() in (source, target):
        return is_numeric(source) or is_numeric(target)
    if is_numeric(source) and is_numeric(target):
        return True
    if source in (DATE, *_TIMES) and target in (DATE, *_TIMES):
        return True
    if source == INSTANT:
        return is_integer(target) or is_floating(target)
    return target == INSTANT and (is_integer(source) or is_floating(source))


def cast_is_total(source: pa.DataType, target: pa.DataType) -> bool:
    """True when no value becomes null."""
    if source == target or target == STRING:
        return True
    if is_integer(source) and is_integer(target):
        return bool(source.bit_width <= target.bit_width)
    if is_floating(target) and is_numeric(source):
        return True
    if is_decimal(target) and (is_decimal(source) or is_integer(source)):
        digits = source.precision - source.scale if is_decimal(source) else len(str(integer_range(source)[1]))
        # rounding to fewer decimals can carry into one digit more
        carry = is_decimal(source) and target.scale < source.scale
        return bool(target.precision - target.scale >= digits + carry)
    return False


def cast_is_monotone(source: pa.DataType, target: pa.DataType, zone: str) -> bool:
    """True when a <= b implies CAST(a) <= CAST(b) wherever both are not null, NaN included."""
    if source == target:
        return True
    if is_numeric(source) and is_numeric(target):
        return True
    if source == DATE and target in _TIMES:
        return True
    if source in _TIMES and (target == DATE or target in _TIMES):
        return is_utc(zone)  # clocks that go back put later instants before earlier ones
    if source == INSTANT:
        return is_integer(target) or is_floating(target)
    return False


def cast_array(values: pa.Array, target: pa.DataType, zone: str) -> pa.Array:
    """Convert an array of a canonical type.

    Args:
        values: Any simple type.
        target: Canonical simple type.
        zone: The session's time zone.

    Returns:
        An array of `target`; null where the input is null or cannot be converted.

    Raises:
        NotImplementedError: For pairs that :func:`can_cast` denies.
    """
    source = values.type
    if source == target:
        return values
    if pa.types.is_null(source):
        return pa.nulls(len(values), target)
    if source == STRING:
        return _from_string(values, target, zone)
    if target == STRING:
        return _to_string(values, zone)
    if source == pa.bool_():
        return cast_array(values.cast(pa.int8()), target, zone)
    if target == pa.bool_():
        import pyarrow.compute as pc

        return pc.not_equal(values, pa.scalar(decimal.Decimal(0) if is_decimal(source) else 0, source))
    if source in (DATE, *_TIMES) or target in (DATE, *_TIMES):
        return _times(values, target, zone)
    return _numbers(values, target)


def _numbers(values: pa.Array, target: pa.DataType) -> pa.Array:
    source = values.type
    if is_decimal(target):
        return _to_decimal(values, target)
    if is_floating(target):
        return values.cast(target, safe=False)
    if is_integer(source):
        return _narrow(values, target)
    if is_decimal(source):
        import pyarrow.compute as pc

        whole = pc.trunc(values).cast(pa.decimal256(76, source.scale))
        low, high = (pa.scalar(decimal.Decimal(bound), whole.type) for bound in integer_range(target))
        fits = pc.and_(pc.greater_equal(whole, low), pc.less_equal(whole, high))
        return pc.if_else(fits, whole, pa.scalar(None, whole.type)).cast(LONG).cast(target)
    raw = np.asarray(values.cast(DOUBLE).fill_null(math.nan))
    low_f, high_f = (float(bound) for bound in integer_range(target))
    with np.errstate(invalid="ignore"):
        whole_f = np.trunc(raw)
        inside = (whole_f >= low_f) & ((whole_f < high_f) if target == LONG else (whole_f <= high_f))
    return pa.array(np.where(inside, whole_f, 0).astype(np.int64), mask=~inside).cast(target)


def _narrow(values: pa.Array, target: pa.DataType) -> pa.Array:
    import pyarrow.compute as pc

    if values.type.bit_width <= target.bit_width:
        return values.cast(target)
    low, high = (pa.scalar(bound, values.type) for bound in integer_range(target))
    inside = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
    return pc.if_else(inside, values, None).cast(target)


def _to_decimal(values: pa.Array, target: pa.DataType) -> pa.Array:
    if is_floating(values.type):
        return map_unique(values, lambda number: _fitted(_decimal_of_float(number), target), target)
    import pyarrow.compute as pc

    if is_integer(values.type):
        values = values.cast(LONG).cast(pa.decimal128(20, 0))
    if target.scale >= values.type.scale and _digits(target) >= _digits(values.type):
        return values.cast(target)
    wide = values.cast(pa.decimal256(76, values.type.scale))
    if target.scale < values.type.scale:
        wide = pc.round(wide, ndigits=target.scale, round_mode="half_towards_infinity")
    wide = wide.cast(pa.decimal256(76, target.scale))
    limit = decimal.Decimal(10) ** _digits(target)
    inside = pc.less(pc.abs(wide), pa.scalar(limit, wide.type))
    return pc.if_else(inside, wide, pa.scalar(None, wide.type)).cast(target)


def _digits(t: pa.DataType) -> int:
    return int(t.precision - t.scale)


def _decimal_of_float(number: float) -> decimal.Decimal | None:
    return decimal.Decimal(repr(number)) if math.isfinite(number) else None


def _fitted(number: decimal.Decimal | None, target: pa.DataType) -> decimal.Decimal | None:
    """Round half up to the scale; None when too large."""
    if number is None or number.adjusted() > target.precision:
        return None
    if number.adjusted() < -target.scale - 1:
        number = decimal.Decimal(0)
    fitted = number.quantize(decimal.Decimal(1).scaleb(-target.scale), rounding=decimal.ROUND_HALF_UP, context=_WIDE)
    return fitted if abs(fitted) < decimal.Decimal(10) ** _digits(target) else None


def _times(values: pa.Array, target: pa.DataType, zone: str) -> pa.Array:
    source = values.type
    if source == DATE:
        local = values.cast(LOCAL_TIMESTAMP)
        return local if target == LOCAL_TIMESTAMP else to_instant(local, zone)
    if source == LOCAL_TIMESTAMP:
        return days_of(values) if target == DATE else to_instant(values, zone)
    if source != INSTANT:
        return _instant_of_number(values)
    if target == LOCAL_TIMESTAMP:
        return to_local(values, zone)
    if target == DATE:
        return days_of(to_local(values, zone))
    raw = micros(values)
    numbers, mask = np.asarray(raw.fill_null(0)), np.asarray(raw.is_null())
    if is_floating(target):
        return pa.array(numbers / SECOND_US, mask=mask).cast(target, safe=False)
    return _narrow(pa.array(np.floor_divide(numbers, SECOND_US), mask=mask), target)


def _instant_of_number(values: pa.Array) -> pa.Array:
    raw = np.asarray(values.cast(DOUBLE, safe=False).fill_null(math.nan))
    mask = ~(np.abs(raw) < (1 << 63) / SECOND_US)
    if is_integer(values.type):
        whole = np.where(mask, 0, np.asarray(values.cast(LONG).fill_null(0))) * SECOND_US
    else:
        whole = np.where(mask, 0, raw * SECOND_US).astype(np.int64)
    return pa.array(whole, mask=mask).view(INSTANT)


def _from_string(values: pa.Array, target: pa.DataType, zone: str) -> pa.Array:
    import pyarrow.compute as pc

    if target == pa.binary():
        return values.cast(target)
    if target == DATE:
        return datetime_text.parse_date(values)
    if target in _TIMES:
        return datetime_text.parse_timestamp(values, zone, local=target == LOCAL_TIMESTAMP)
    trimmed = pc.utf8_trim(values, _BLANKS)
    if target == pa.bool_():
        lower = pc.utf8_lower(trimmed)
        yes, no = (pa.array(words) for words in (["t", "true", "y", "yes", "1"], ["f", "false", "n", "no", "0"]))
        known = pc.or_(pc.is_in(lower, yes), pc.is_in(lower, no))
        return pc.if_else(known, pc.is_in(lower, yes), None)
    if is_integer(target):
        return _integers_of_text(trimmed, target)
    if is_decimal(target):
        return map_unique(trimmed, lambda text: _fitted(_decimal_of_text(text), target), target)
    return _floats_of_text(trimmed, target)


def _integers_of_text(texts: pa.Array, target: pa.DataType) -> pa.Array:
    import pyarrow.compute as pc

    plain = pc.replace_substring_regex(pc.replace_substring_regex(texts, r"^\+", ""), r"^(-?)0+(\d)", r"\1\2")
    short = pc.match_substring_regex(plain, r"^-?\d{1,18}$")
    numbers = pc.if_else(short, plain, None).cast(LONG)
    if pc.any(pc.match_substring_regex(plain, r"^-?\d{19}$")).as_py():

        def whole(text: str) -> int | None:
            return int(text) if text.lstrip("-").isdecimal() and -(1 << 63) <= int(text) < 1 << 63 else None

        long = pc.if_else(pc.match_substring_regex(plain, r"^-?\d{19}$"), plain, None)
        numbers = pc.coalesce(numbers, map_unique(long, whole, LONG))
    return _narrow(numbers, target)


def _floats_of_text(texts: pa.Array, target: pa.DataType) -> pa.Array:
    import pyarrow.compute as pc

    number = pc.match_substring_regex(texts, _FLOAT_TEXT)
    plain = pc.replace_substring_regex(pc.replace_substring_regex(texts, r"^\+", ""), r"[dDfF]$", "")
    values = pc.if_else(number, plain, None).cast(target)
    lower = pc.utf8_lower(texts)
    for pattern, special in ((r"^\+?inf(inity)?$", math.inf), (r"^-inf(inity)?$", -math.inf), (r"^nan$", math.nan)):
        found = pc.match_substring_regex(lower, pattern)
        values = pc.if_else(found, pa.scalar(special, target), values)
    return values


def _decimal_of_text(text: str) -> decimal.Decimal | None:
    try:
        number = decimal.Decimal(text) if text.isascii() and "_" not in text else None
    except decimal.InvalidOperation:
        return None
    return number if number is not None and number.is_finite() else None


def _to_string(values: pa.Array, zone: str) -> pa.Array:
    source = values.type
    if source == INSTANT:
        return datetime_text.text_of_timestamp(to_local(values, zone))
    if source == LOCAL_TIMESTAMP:
        return datetime_text.text_of_timestamp(values)
    if is_decimal(source):
        return map_unique(values, lambda number: format(number, "f"), STRING)
    if is_floating(source):
        single = source == pa.float32()
        return map_unique(values, lambda number: java_double_text(number, single=single), STRING)
    return values.cast(STRING, safe=False)


def java_double_text(number: float, *, single: bool = False) -> str:
    """`Double.toString`, or `Float.toString` of a number that is one: `0.1`, `1.0E10`, `NaN`, `-Infinity`."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    digits = repr(float(np.format_float_positional(np.float32(number)))) if single else repr(number)
    exact = decimal.Decimal(digits)
    if exact == 0:
        return "-0.0" if math.copysign(1, number) < 0 else "0.0"
    if 1e-3 <= abs(number) < 1e7:
        text = format(exact, "f")
        return text if "." in text else text + ".0"
    sign, figures, _exponent = exact.normalize().as_tuple()
    rest = "".join(map(str, figures[1:])) or "0"
    return f"{'-' if sign else ''}{figures[0]}.{rest}E{exact.adjusted()}"


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
        return pa.array([None if value is None else function(value) for value in values.to_pylist()], target)
    encoded = values.dictionary_encode()
    mapped = pa.array([function(value) for value in encoded.dictionary.to_pylist()], target)
    return mapped.take(encoded.indices)
