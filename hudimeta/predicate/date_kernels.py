"""How functions over dates and timestamps are computed; see `function_kernels` for what a kernel is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of
from hudimeta.predicate.casts import cast_array
from hudimeta.predicate.datetime_pattern import compile_pattern, format_local, parse_with_pattern
from hudimeta.predicate.function_kernels import Kernel
from hudimeta.predicate.local_time import DAY_US, SECOND_US, micros, to_instant, to_local
from hudimeta.predicate.types import DATE, INSTANT, LOCAL_TIMESTAMP, integer_range
from hudimeta.schema.moment_text import moved_near

if TYPE_CHECKING:
    from hudimeta.predicate.signature import Context


_PATTERN = "yyyy-MM-dd HH:mm:ss"
"""When none is given."""


def _local(context: Context, values: pa.Array) -> pa.Array:
    """Wall clock of a date or of either timestamp."""
    if values.type == INSTANT:
        return to_local(values, context.zone)
    return cast_array(values, LOCAL_TIMESTAMP, context.zone) if values.type == DATE else values


def part(name: str) -> Kernel:
    """A field of a date or time, by the name of Arrow's kernel."""

    def run(context: Context, args: list[Any]) -> Any:
        import pyarrow.compute as pc

        local, years = moved_near(args[0] if args[0].type == DATE else _local(context, args[0]))
        found = pc.call_function(name, [local])
        return (pc.add(found, array_of(years)) if name == "year" else found).cast(context.type)

    return run


def day_of_week(context: Context, args: list[Any]) -> Any:
    """1 on Sundays to 7 on Saturdays."""
    import pyarrow.compute as pc

    return pc.add(pc.day_of_week(args[0], count_from_zero=True, week_start=7), scalar_of(1)).cast(context.type)


def name_of_day(_context: Context, args: list[Any]) -> Any:
    """`Mon` to `Sun`."""
    return format_local(moved_near(args[0])[0].cast(LOCAL_TIMESTAMP), compile_pattern("E"))


def name_of_month(_context: Context, args: list[Any]) -> Any:
    """`Jan` to `Dec`."""
    return format_local(moved_near(args[0])[0].cast(LOCAL_TIMESTAMP), compile_pattern("MMM"))


def date_format(context: Context, args: list[Any]) -> Any:
    """A timestamp written by a pattern."""
    if args[1] is None:
        return pa.nulls(context.length, context.type)
    return format_local(_local(context, args[0]), compile_pattern(args[1]))


def from_unixtime(context: Context, args: list[Any]) -> Any:
    """Seconds since the epoch written by a pattern."""
    pattern = args[1] if len(args) > 1 else _PATTERN
    if pattern is None:
        return pa.nulls(context.length, context.type)
    seconds = numpy_of(fill_null(args[0], 0))
    moments = array_of(seconds * SECOND_US, mask=numpy_of(args[0].is_null()))  # wraps around beyond 64 bits, as in Spark
    return format_local(to_local(moments.cast(INSTANT), context.zone), compile_pattern(pattern))


def unix_timestamp(context: Context, args: list[Any]) -> Any:
    """Whole seconds since the epoch of a timestamp, or of a text read by a pattern."""
    raw = micros(to_timestamp(context, args if len(args) > 1 else [*args, _PATTERN]))
    numbers = numpy_of(fill_null(raw, 0))
    # towards zero, as Java divides
    return array_of((numbers + (numbers < 0) * (SECOND_US - 1)) // SECOND_US, mask=numpy_of(raw.is_null()))


def to_timestamp(context: Context, args: list[Any]) -> Any:
    """A text read by a pattern; anything else has been cast before."""
    if args[0].type in (INSTANT, LOCAL_TIMESTAMP):
        return micros(args[0]).view(INSTANT)  # Spark takes a wall clock for one of UTC here
    if args[1] is None:
        return pa.nulls(context.length, INSTANT)
    return to_instant(parse_with_pattern(args[0], compile_pattern(args[1])), context.zone)


def to_date(context: Context, args: list[Any]) -> Any:
    """A text read by a pattern; anything else has been cast before."""
    if args[0].type == DATE:
        return args[0]
    if args[0].type == LOCAL_TIMESTAMP:
        return cast_array(to_timestamp(context, args), DATE, context.zone)
    if args[1] is None:
        return pa.nulls(context.length, DATE)
    return cast_array(parse_with_pattern(args[0], compile_pattern(args[1])), DATE, context.zone)


def _days(values: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    numbers = values.view(pa.int32()) if values.type == DATE else values
    return numpy_of(fill_null(numbers, 0)).astype(np.int64), numpy_of(numbers.is_null())


def date_array(days: np.ndarray[Any, Any], mask: np.ndarray[Any, Any]) -> pa.Array:
    """Dates of days since the epoch; null where they are masked, or more than 32 bits hold."""
    low, high = integer_range(pa.int32())
    mask = mask | (days < low) | (days > high)
    return array_of(np.where(mask, 0, days).astype(np.int32), mask=mask).view(DATE)


def _moved(days: np.ndarray[Any, Any], mask: np.ndarray[Any, Any]) -> pa.Array:
    """As :func:`date_array`, but numbers of more than 32 bits wrap around, as Spark adds days."""
    return array_of(days.astype(np.int32), mask=mask).view(DATE)


def date_add(_context: Context, args: list[Any]) -> Any:
    """So many days later."""
    (days, gone), (count, missing) = _days(args[0]), _days(args[1])
    return _moved(days + count, gone | missing)


def date_sub(_context: Context, args: list[Any]) -> Any:
    """So many days earlier."""
    (days, gone), (count, missing) = _days(args[0]), _days(args[1])
    return _moved(days - count, gone | missing)


def date_diff(_context: Context, args: list[Any]) -> Any:
    """Days from the second date to the first."""
    (end, gone), (start, missing) = _days(args[0]), _days(args[1])
    return array_of((end - start).astype(np.int32), mask=gone | missing)


def _months(values: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    days, mask = _days(values)
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    return days, months.astype(np.int64), mask


def first_of(months: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The first day of months since the epoch."""
    first: np.ndarray[Any, Any] = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return first


def add_months(_context: Context, args: list[Any]) -> Any:
    """The same day so many months later, or the last day of a shorter month."""
    (days, months, gone), (count, missing) = _months(args[0]), _days(args[1])
    to = months + count
    day = np.minimum(days - first_of(months), first_of(to + 1) - first_of(to) - 1)
    return date_array(first_of(to) + day, gone | missing)


def last_day(_context: Context, args: list[Any]) -> Any:
    """The last day of the month."""
    _, months, mask = _months(args[0])
    return date_array(first_of(months + 1) - 1, mask)


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
        return date_array(first_of(np.floor_divide(months, size) * size), mask)
    if unit == "week":
        return date_array(np.floor_divide(days + 3, 7) * 7 - 3, mask)  # 1970-01-01 was a Thursday
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
        whole = np.floor_divide(numpy_of(fill_null(numbers, 0)), size) * size
        begun = array_of(whole, mask=numpy_of(numbers.is_null())).view(LOCAL_TIMESTAMP)
    else:
        begun = _truncated_days(cast_array(local, DATE, context.zone), unit).cast(LOCAL_TIMESTAMP)
    return begun if context.type == LOCAL_TIMESTAMP else to_instant(begun, context.zone)
