"""How each function of a predicate is computed: one kernel per function, Arrow arrays in, one array out.

A kernel is called with a context (zone, length, result type) and its arguments, which are arrays of the types that the
function's signature names, or Python values where the function demands constants.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hudimeta.predicate.casts import cast_array, negated
from hudimeta.predicate.datetime_text import compile_pattern, format_local, parse_with_pattern
from hudimeta.predicate.local_time import DAY_US, SECOND_US, micros, moved_near, to_instant, to_local
from hudimeta.predicate.number_text import java_double_text
from hudimeta.predicate.types import (
    DATE,
    INSTANT,
    LOCAL_TIMESTAMP,
    LONG,
    common_type,
    is_decimal,
    is_floating,
    is_integer,
    map_unique,
)

if TYPE_CHECKING:
    from hudimeta.predicate.signature import Context

Kernel = Callable[["Context", list[Any]], Any]

_LARGEST_DAY = 106_751_991
"""Last day whose microseconds fit 64 bits."""


def _local(context: Context, values: pa.Array) -> pa.Array:
    """Wall clock of a date or of either timestamp."""
    if values.type == INSTANT:
        return to_local(values, context.zone)
    return values.cast(LOCAL_TIMESTAMP) if values.type == DATE else values


def part(name: str) -> Kernel:
    """A field of a date or time, by the name of Arrow's kernel."""

    def run(context: Context, args: list[Any]) -> Any:
        import pyarrow.compute as pc

        local, years = moved_near(args[0] if args[0].type == DATE else _local(context, args[0]))
        found = pc.call_function(name, [local])
        return (pc.add(found, pa.array(years)) if name == "year" else found).cast(context.type)

    return run


def day_of_week(context: Context, args: list[Any]) -> Any:
    """1 on Sundays to 7 on Saturdays."""
    import pyarrow.compute as pc

    return pc.add(pc.day_of_week(args[0], count_from_zero=True, week_start=7), 1).cast(context.type)


def name_of_day(_context: Context, args: list[Any]) -> Any:
    """`Mon` to `Sun`."""
    return format_local(args[0].cast(LOCAL_TIMESTAMP), compile_pattern("E"))


def name_of_month(_context: Context, args: list[Any]) -> Any:
    """`Jan` to `Dec`."""
    return format_local(args[0].cast(LOCAL_TIMESTAMP), compile_pattern("MMM"))


def date_format(context: Context, args: list[Any]) -> Any:
    """A timestamp written by a pattern."""
    if args[1] is None:
        return pa.nulls(context.length, context.type)
    return format_local(_local(context, args[0]), compile_pattern(args[1]))


def from_unixtime(context: Context, args: list[Any]) -> Any:
    """Seconds since the epoch written by a pattern, by default `yyyy-MM-dd HH:mm:ss`."""
    pattern = args[1] if len(args) > 1 else "yyyy-MM-dd HH:mm:ss"
    if pattern is None:
        return pa.nulls(context.length, context.type)
    seconds = np.asarray(args[0].fill_null(0))
    moments = pa.array(seconds * SECOND_US, mask=np.asarray(args[0].is_null()))  # wraps around beyond 64 bits, as in Spark
    return format_local(to_local(moments.cast(INSTANT), context.zone), compile_pattern(pattern))


def unix_timestamp(context: Context, args: list[Any]) -> Any:
    """Whole seconds since the epoch of a timestamp, or of a text read by a pattern."""
    raw = micros(to_timestamp(context, args))
    numbers = np.asarray(raw.fill_null(0))
    # towards zero, as Java divides
    return pa.array((numbers + (numbers < 0) * (SECOND_US - 1)) // SECOND_US, mask=np.asarray(raw.is_null()))


def to_timestamp(context: Context, args: list[Any]) -> Any:
    """A text read by a pattern; anything else has been cast before."""
    if args[0].type == INSTANT:
        return args[0]
    if args[1] is None:
        return pa.nulls(context.length, INSTANT)
    return to_instant(parse_with_pattern(args[0], compile_pattern(args[1])), context.zone)


def to_date(context: Context, args: list[Any]) -> Any:
    """A text read by a pattern; anything else has been cast before."""
    if args[0].type == DATE:
        return args[0]
    if args[1] is None:
        return pa.nulls(context.length, DATE)
    return cast_array(parse_with_pattern(args[0], compile_pattern(args[1])), DATE, context.zone)


def _days(values: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    numbers = values.view(pa.int32()) if values.type == DATE else values
    return np.asarray(numbers.fill_null(0)).astype(np.int64), np.asarray(numbers.is_null())


def _date(days: np.ndarray[Any, Any], mask: np.ndarray[Any, Any]) -> pa.Array:
    mask = mask | (np.abs(days) > _LARGEST_DAY)
    return pa.array(np.where(mask, 0, days).astype(np.int32), mask=mask).view(DATE)


def date_add(_context: Context, args: list[Any]) -> Any:
    """So many days later."""
    (days, gone), (count, missing) = _days(args[0]), _days(args[1])
    return _date(days + count, gone | missing)


def date_sub(_context: Context, args: list[Any]) -> Any:
    """So many days earlier."""
    (days, gone), (count, missing) = _days(args[0]), _days(args[1])
    return _date(days - count, gone | missing)


def date_diff(_context: Context, args: list[Any]) -> Any:
    """Days from the second date to the first."""
    (end, gone), (start, missing) = _days(args[0]), _days(args[1])
    return pa.array((end - start).astype(np.int32), mask=gone | missing)


def _months(values: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    days, mask = _days(values)
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    return days, months.astype(np.int64), mask


def _first_of(months: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    first: np.ndarray[Any, Any] = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return first


def add_months(_context: Context, args: list[Any]) -> Any:
    """The same day so many months later, or the last day of a shorter month."""
    (days, months, gone), (count, missing) = _months(args[0]), _days(args[1])
    to = months + count
    day = np.minimum(days - _first_of(months), _first_of(to + 1) - _first_of(to) - 1)
    return _date(_first_of(to) + day, gone | missing)


def last_day(_context: Context, args: list[Any]) -> Any:
    """The last day of the month."""
    _, months, mask = _months(args[0])
    return _date(_first_of(months + 1) - 1, mask)


_UNITS = {
    "year": ("year", "yyyy", "yy"),
    "quarter": ("quarter",),
    "month": ("month", "mon", "mm"),
    "week": ("week",),
    "day": ("day", "dd"),
    "hour": ("hour",),
    "minute": ("minute",),
    "second": ("second",),
    "millisecond": ("millisecond",),
    "microsecond": ("microsecond",),
}
_MONTHS_IN = {"year": 12, "quarter": 3, "month": 1}
_MICROS_IN = {
    "day": DAY_US,
    "hour": 3600 * SECOND_US,
    "minute": 60 * SECOND_US,
    "second": SECOND_US,
    "millisecond": 1000,
    "microsecond": 1,
}


def _unit(text: str | None) -> str | None:
    return next((unit for unit, names in _UNITS.items() if text is not None and text.lower() in names), None)


def _truncated_days(values: pa.Array, unit: str | None) -> pa.Array:
    days, months, mask = _months(values)
    if unit in _MONTHS_IN:
        size = _MONTHS_IN[unit]
        # counted from 1970-01, where every quarter and year begins at a multiple
        return _date(_first_of(np.floor_divide(months, size) * size), mask)
    if unit == "week":
        return _date(np.floor_divide(days + 3, 7) * 7 - 3, mask)  # 1970-01-01 was a Thursday
    return pa.nulls(len(values), DATE)


def truncate_date(_context: Context, args: list[Any]) -> Any:
    """The first day of the year, quarter, month or week; null for other units."""
    return _truncated_days(args[0], _unit(args[1]))


def truncate_timestamp(context: Context, args: list[Any]) -> Any:
    """The begin of the unit that a timestamp lies in; null for unknown units."""
    unit, values = _unit(args[0]), args[1]
    if unit is None:
        return pa.nulls(context.length, context.type)
    local = _local(context, values)
    if unit in _MICROS_IN:
        numbers = micros(local)
        size = _MICROS_IN[unit]
        whole = np.floor_divide(np.asarray(numbers.fill_null(0)), size) * size
        begun = pa.array(whole, mask=np.asarray(numbers.is_null())).view(LOCAL_TIMESTAMP)
    else:
        begun = _truncated_days(cast_array(local, DATE, context.zone), unit).cast(LOCAL_TIMESTAMP)
    return begun if context.type == LOCAL_TIMESTAMP else to_instant(begun, context.zone)


def absolute(_context: Context, args: list[Any]) -> Any:
    """Without sign; null for the smallest integer, which has no positive."""
    import pyarrow.compute as pc

    values = args[0]
    if is_integer(values.type):
        return pc.if_else(pc.equal(values, _smallest(values.type)), None, pc.abs(values))
    if is_decimal(values.type):
        return pc.if_else(pc.less(values, pa.scalar(decimal.Decimal(0), values.type)), negated(values), values)
    return pc.abs(values)


def negative(_context: Context, args: list[Any]) -> Any:
    """With the other sign; null for the smallest integer."""
    import pyarrow.compute as pc

    values = args[0]
    if is_integer(values.type):
        return pc.if_else(pc.equal(values, _smallest(values.type)), None, pc.negate(values))
    return negated(values) if is_decimal(values.type) else pc.negate(values)


def _smallest(t: pa.DataType) -> pa.Scalar:
    return pa.scalar(-(1 << (t.bit_width - 1)), t)


def identity(_context: Context, args: list[Any]) -> Any:
    """The argument."""
    return args[0]


def is_nan(_context: Context, args: list[Any]) -> Any:
    """NaN or not; false for null."""
    import pyarrow.compute as pc

    return pc.fill_null(pc.is_nan(args[0]), False)


def ceil(context: Context, args: list[Any]) -> Any:
    """The next integer not below."""
    return _to_whole(context, args[0], "ceil")


def floor(context: Context, args: list[Any]) -> Any:
    """The next integer not above."""
    return _to_whole(context, args[0], "floor")


def _to_whole(context: Context, values: pa.Array, kernel: str) -> Any:
    import pyarrow.compute as pc

    if is_integer(values.type):
        return values
    if is_decimal(values.type):
        values = values.cast(pa.decimal256(76, values.type.scale))  # rounding can add a digit
        return pc.call_function(kernel, [values]).cast(pa.decimal256(76, 0)).cast(context.type)
    whole = pc.call_function(kernel, [pc.if_else(pc.is_nan(values), 0.0, values)])  # NaN is 0, as Java casts it
    inside = pc.and_(pc.greater_equal(whole, -(2.0**63)), pc.less(whole, 2.0**63))
    return pc.if_else(inside, whole, None).cast(LONG, safe=False)


def rounded(context: Context, args: list[Any]) -> Any:
    """Rounded half away from zero, at so many decimals."""
    digits = args[1] if len(args) > 1 else 0
    values, t = args[0], context.type
    if digits is None:
        return pa.nulls(context.length, context.type)
    if is_decimal(t) and digits >= values.type.scale:
        return cast_array(values, t, context.zone)
    step = decimal.Decimal(1).scaleb(-max(min(digits, 400), -400))

    def exact(number: Any) -> Any:
        if is_floating(t):
            if not np.isfinite(number):
                return number
            number = decimal.Decimal(java_double_text(number, single=t == pa.float32()))
        whole = decimal.Decimal(number).quantize(step, decimal.ROUND_HALF_UP, decimal.Context(prec=800))
        return float(whole) + 0.0 if is_floating(t) else int(whole) if is_integer(t) else whole

    def fitting(number: Any) -> Any:
        result = exact(number)
        fits = not is_integer(t) or -(1 << (t.bit_width - 1)) <= result < 1 << (t.bit_width - 1)
        if is_decimal(t):
            fits = result.copy_abs() < decimal.Decimal(10) ** (t.precision - t.scale)
            result = result.quantize(decimal.Decimal(1).scaleb(-t.scale), context=decimal.Context(prec=800))
        return result if fits else None

    return map_unique(values, fitting, context.type)


def square_root(_context: Context, args: list[Any]) -> Any:
    """The root; NaN of negative numbers."""
    import pyarrow.compute as pc

    return pc.sqrt(args[0])


def sign(_context: Context, args: list[Any]) -> Any:
    """-1.0, 0.0, 1.0 or NaN."""
    import pyarrow.compute as pc

    return pc.if_else(pc.or_(pc.is_nan(args[0]), pc.equal(args[0], 0.0)), args[0], pc.sign(args[0]))


def remainder(context: Context, args: list[Any]) -> Any:
    """The remainder with the sign of the dividend; null when the divisor is 0."""
    from hudimeta.predicate.arithmetic import remainder as run

    return run(args[0], args[1], context.type)


def positive_remainder(context: Context, args: list[Any]) -> Any:
    """The remainder r, or (r + n) % n where r is negative."""
    import pyarrow.compute as pc

    from hudimeta.predicate.arithmetic import remainder as run

    first = run(args[0], args[1], context.type)
    return pc.if_else(pc.less(first, pa.scalar(0, first.type)), run(pc.add(first, args[1]), args[1], context.type), first)


def coalesce(_context: Context, args: list[Any]) -> Any:
    """The first value that is not null."""
    import pyarrow.compute as pc

    return pc.coalesce(*args)


def null_if(context: Context, args: list[Any]) -> Any:
    """The first value, or null where both are equal."""
    import pyarrow.compute as pc

    from hudimeta.predicate.comparison import compare
    from hudimeta.predicate.tree import CompareOp

    both = common_type(args[0].type, args[1].type)
    left, right = (cast_array(arg, both, context.zone) for arg in args)
    same = pc.fill_null(compare(CompareOp.EQ, left, right), False)
    return pc.if_else(same, pa.scalar(None, args[0].type), args[0])


def choose(_context: Context, args: list[Any]) -> Any:
    """The second value where the first is true, else the third."""
    import pyarrow.compute as pc

    return pc.if_else(pc.fill_null(args[0], False), args[1], args[2])


def greatest(_context: Context, args: list[Any]) -> Any:
    """The largest value that is not null."""
    return _extreme(args, ">")


def least(_context: Context, args: list[Any]) -> Any:
    """The smallest value that is not null."""
    return _extreme(args, "<")


def _extreme(args: list[Any], op: str) -> Any:
    import pyarrow.compute as pc

    from hudimeta.predicate.comparison import compare
    from hudimeta.predicate.tree import CompareOp

    best = args[0]
    for other in args[1:]:
        better = pc.or_(pc.is_null(best), pc.fill_null(compare(CompareOp(op), other, best), False))
        best = pc.coalesce(pc.if_else(better, other, best), best)
    return best
