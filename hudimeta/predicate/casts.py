"""CAST, vectorised: Spark's conversions between simple types, with null for what cannot be converted.

Spark in ANSI mode raises for such values and gives null from TRY_CAST; a filter that raised or not depending on which files
were skipped would help nobody, so the meaning here is TRY_CAST's.
"""

from __future__ import annotations

import decimal
import math

import numpy as np
import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of
from hudimeta.predicate import datetime_text
from hudimeta.predicate.local_time import DAY_US, SECOND_US, days_of, is_utc, micros, to_instant, to_local
from hudimeta.predicate.number_text import (
    decimal_of_text,
    digits_of_java,
    floats_of_text,
    integers_of_text,
    power_of_ten,
    text_of_floats,
)
from hudimeta.predicate.types import (
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
    map_unique,
)
from hudimeta.schema import moment_text

__all__ = ["can_cast", "cast_array", "cast_is_monotone", "cast_is_total", "negated", "to_canonical"]

_TIMES = (INSTANT, LOCAL_TIMESTAMP)
_BLANKS = "".join(chr(c) for c in range(0x21)) + "\x7f"
_BLANKS_OF_JAVA = _BLANKS[:-1]
"""What Java's `trim` cuts off, which Spark uses for fractions; for other types it cuts off the character DEL as well."""
_WIDE = decimal.Context(prec=120)
_LONG_DIGITS = 18
"""Most digits of the decimals that Spark keeps as BIGINT; from others it makes INT and less by way of DOUBLE."""
_SCALA = decimal.Context(prec=34, rounding=decimal.ROUND_HALF_EVEN)
"""How Scala's BigDecimal multiplies."""
_EXACT_DIGITS, _EXACT_POWER = 15, 22
"""Most decimal digits, and largest power of ten, that a DOUBLE holds exactly."""


def to_canonical(values: pa.Array) -> pa.Array:
    """An array in the one type that stands for its Spark type; see :func:`~hudimeta.predicate.types.canonical_type`."""
    target = canonical_type(values.type)
    if values.type == target:
        return values
    if pa.types.is_dictionary(values.type):
        return to_canonical(values.dictionary_decode())
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        raw = values.view(pa.int64())
        whole = np.floor_divide(numpy_of(fill_null(raw, 0)), 1000)
        return array_of(whole, mask=numpy_of(raw.is_null())).view(target)
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
    return is_numeric(target) if source == INSTANT else target == INSTANT and is_numeric(source)


def cast_is_total(source: pa.DataType, target: pa.DataType) -> bool:
    """True when no value becomes null."""
    if source == target or target == STRING:
        return True
    if is_integer(source) and is_integer(target):
        return bool(source.bit_width <= target.bit_width)
    if is_floating(target) and (is_numeric(source) or source == INSTANT):
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
    return source == INSTANT and is_numeric(target)


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

        return pc.not_equal(values, scalar_of(decimal.Decimal(0) if is_decimal(source) else 0, source))
    if source in (DATE, *_TIMES) or target in (DATE, *_TIMES):
        return _times(values, target, zone)
    return _numbers(values, target)


def _numbers(values: pa.Array, target: pa.DataType) -> pa.Array:
    source = values.type
    if is_decimal(target):
        return _to_decimal(values, target)
    if is_floating(target):
        return _floats_of_decimals(values, target) if is_decimal(source) else values.cast(target, safe=False)
    if is_integer(source):
        return _narrow(values, target)
    if is_decimal(source):
        import pyarrow.compute as pc

        if source.precision > _LONG_DIGITS and target != LONG:
            return _numbers(_floats_of_decimals(values, DOUBLE), target)  # 0.9999999999999999999 is 1 then, as in Spark
        whole = pc.trunc(values.cast(pa.decimal256(76, source.scale)))
        low, high = (scalar_of(decimal.Decimal(bound), whole.type) for bound in integer_range(target))
        fits = pc.and_(pc.greater_equal(whole, low), pc.less_equal(whole, high))
        return pc.if_else(fits, whole, scalar_of(None, whole.type)).cast(LONG).cast(target)
    raw = numpy_of(fill_null(values.cast(DOUBLE), math.nan))
    low_f, high_f = (float(bound) for bound in integer_range(target))
    with np.errstate(invalid="ignore"):
        whole_f = np.trunc(raw)
        inside = (whole_f >= low_f) & (whole_f <= high_f)
    whole_f[~inside] = 0
    # as BIGINT the upper limit rounds to 2**63, which Spark lets pass as the largest BIGINT
    beyond = whole_f >= 2.0**63
    numbers = np.where(beyond, 0, whole_f).astype(np.int64)
    return array_of(np.where(beyond, integer_range(LONG)[1], numbers), mask=~inside).cast(target)


def _floats_of_decimals(values: pa.Array, target: pa.DataType) -> pa.Array:
    """The nearest float of each decimal; Arrow's own cast multiplies by a rounded power of ten and is off for some of them."""
    t = values.type
    if target == DOUBLE and pa.types.is_decimal128(t) and t.precision <= _EXACT_DIGITS and 0 <= t.scale <= _EXACT_POWER:
        # whole numbers and powers of ten that a double holds exactly divide to the nearest double
        words = np.frombuffer(values.buffers()[1], np.int64)[2 * values.offset : 2 * (values.offset + len(values)) : 2]
        mask = numpy_of(values.is_null())
        return array_of(np.where(mask, 0, words) / 10.0**t.scale, mask=mask)
    return values.cast(STRING).cast(target)


def _narrow(values: pa.Array, target: pa.DataType) -> pa.Array:
    import pyarrow.compute as pc

    if values.type.bit_width <= target.bit_width:
        return values.cast(target)
    low, high = (scalar_of(bound, values.type) for bound in integer_range(target))
    inside = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
    return pc.if_else(inside, values, scalar_of(None)).cast(target)


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
    limit = power_of_ten(_digits(target))
    inside = pc.less(pc.abs(wide), scalar_of(limit, wide.type))
    return pc.if_else(inside, wide, scalar_of(None, wide.type)).cast(target)


def _digits(t: pa.DataType) -> int:
    return int(t.precision - t.scale)


def _decimal_of_float(number: float) -> decimal.Decimal | None:
    if not math.isfinite(number):
        return None
    digits = digits_of_java(abs(number), single=False)
    return digits.copy_negate() if number < 0 else digits  # a minus would round as the process's context says


def _fitted(number: decimal.Decimal | None, target: pa.DataType) -> decimal.Decimal | None:
    """Round half up to the scale; None when too large."""
    if number is None or number.adjusted() > target.precision:
        return None
    if number.adjusted() < -target.scale - 1:
        number = decimal.Decimal(0)
    fitted = number.quantize(power_of_ten(-target.scale), rounding=decimal.ROUND_HALF_UP, context=_WIDE)
    return fitted if fitted.copy_abs() < power_of_ten(_digits(target)) else None


def _times(values: pa.Array, target: pa.DataType, zone: str) -> pa.Array:
    source = values.type
    if source == DATE:
        days = numpy_of(fill_null(values.view(pa.int32()), 0)).astype(np.int64)
        mask = numpy_of(values.is_null()) | (np.abs(days) > datetime_text.LAST_DAY_OF_TIMES)
        local = array_of(np.where(mask, 0, days) * DAY_US, mask=mask).view(LOCAL_TIMESTAMP)
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
    numbers, mask = numpy_of(fill_null(raw, 0)), numpy_of(raw.is_null())
    if is_decimal(target):
        return _to_decimal(map_unique(raw, lambda number: decimal.Decimal(number).scaleb(-6), pa.decimal128(20, 6)), target)
    if is_floating(target):
        return array_of(numbers / SECOND_US, mask=mask).cast(target, safe=False)
    return _narrow(array_of(np.floor_divide(numbers, SECOND_US), mask=mask), target)


def _instant_of_number(values: pa.Array) -> pa.Array:
    if is_decimal(values.type):
        return map_unique(values, _wrapped_micros, LONG).view(INSTANT)
    raw = numpy_of(fill_null(values.cast(DOUBLE, safe=False), math.nan))
    if is_integer(values.type):  # what is too large is the last instant there is, on either side
        seconds, (low, high) = numpy_of(fill_null(values.cast(LONG), 0)), integer_range(LONG)
        far, last = np.abs(seconds // SECOND_US) > high // SECOND_US**2, np.where(seconds < 0, low, high)
        whole = np.where(far, last, np.where(far, 0, seconds) * SECOND_US)
        return array_of(whole, mask=numpy_of(values.is_null())).view(INSTANT)
    mask = ~(np.abs(raw) < (1 << 63) / SECOND_US)
    whole = (np.where(mask, 0, raw) * SECOND_US).astype(np.int64)
    return array_of(whole, mask=mask).view(INSTANT)


def negated(values: pa.Array) -> pa.Array:
    """Decimals with the other sign; Scala keeps 34 digits of them, and what gets one digit more by that is null."""
    import pyarrow.compute as pc

    if values.type.precision <= _SCALA.prec:
        return pc.negate(values)
    return map_unique(values, lambda number: _fitted(_SCALA.minus(number), values.type), values.type)


def _wrapped_micros(seconds: decimal.Decimal) -> int:
    """Microseconds of seconds; those that need more than 64 bits wrap around in Spark."""
    whole = int(_SCALA.multiply(seconds, decimal.Decimal(SECOND_US)))
    return (whole + (1 << 63)) % (1 << 64) - (1 << 63)


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
        yes, no = (array_of(words) for words in (["t", "true", "y", "yes", "1"], ["f", "false", "n", "no", "0"]))
        known = pc.or_(pc.is_in(lower, yes), pc.is_in(lower, no))
        return pc.if_else(known, pc.is_in(lower, yes), scalar_of(None))
    if is_integer(target):
        return _narrow(integers_of_text(trimmed), target)
    fraction = pc.utf8_trim(values, _BLANKS_OF_JAVA)
    if is_decimal(target):
        return map_unique(fraction, lambda text: _fitted(decimal_of_text(text), target), target)
    return floats_of_text(fraction, target)


def _to_string(values: pa.Array, zone: str) -> pa.Array:
    source = values.type
    if source == INSTANT:
        return moment_text.text_of_timestamp(to_local(values, zone))
    if source == LOCAL_TIMESTAMP:
        return moment_text.text_of_timestamp(values)
    if source == DATE:
        return moment_text.text_of_date(values)
    if is_decimal(source):
        return map_unique(values, lambda number: format(number, "f"), STRING)
    if is_floating(source):
        return text_of_floats(values)
    return values.cast(STRING, safe=False)
