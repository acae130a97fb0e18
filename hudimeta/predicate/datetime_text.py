"""Dates and times as text: Spark's casts to and from strings, column by column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.engine.machine import now_ms
from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of
from hudimeta.predicate.java_zones import JAVA_BLANKS, java_zone
from hudimeta.predicate.local_time import DAY_US, SECOND_US, micros, to_instant, to_local
from hudimeta.predicate.types import DATE, INSTANT, LOCAL_TIMESTAMP

__all__ = [
    "LAST_DAY_OF_TIMES",
    "micros_of_parts",
    "parse_date",
    "parse_timestamp",
]

_DATE_TEXT = (
    r"^[\x00-\x20\x7f]*(?P<year>[+-]?\d{4,7})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})(?:[ T](?s:.*))?)?)?[\x00-\x20\x7f]*$"
)
_TIMESTAMP_TEXT = (
    r"^[\x00-\x20\x7f]*(?P<year>[+-]?\d{4,6})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})"
    r"(?:[ T](?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?"
    r"(?P<zone>[^0-9.](?s:.*))?)?)?)?)?)?$"
)
_TIME_TEXT = (
    r"^(?P<lead>T|[\x00-\x20\x7f]*)(?P<hour>\d{1,2})(?P<rest>:(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?"
    r"(?P<zone>[^0-9.](?s:.*))?)?)?$"
)
"""Of the day on which it is read, in its zone: an hour alone is one only after a T, before which nothing stands."""
_LAST_YEAR = 10_000_000
_LAST_DAY, LAST_DAY_OF_TIMES = (1 << 31) - 1, 106_751_990
"""The last day, before and after the epoch, whose number fits 32 bits, and the last whose microseconds fit 64 bits."""


def parse_date(texts: pa.Array) -> pa.Array:
    """CAST(string AS DATE): `y-m-d`, `y-m`, `y`, each with one or two digits after the year, and anything after a T or blank.

    Args:
        texts: Strings.

    Returns:
        Dates; null where the text is no date.
    """
    import pyarrow.compute as pc

    parts = pc.extract_regex(texts, _DATE_TEXT)
    days, valid = _days(_numbers(parts, "year"), _numbers(parts, "month", 1), _numbers(parts, "day", 1))
    valid &= numpy_of(parts.is_valid()) & (np.abs(days) <= _LAST_DAY)
    return array_of(np.where(valid, days, 0).astype(np.int32), mask=~valid).view(DATE)


def parse_timestamp(texts: pa.Array, zone: str, *, local: bool = False) -> pa.Array:
    """CAST(string AS TIMESTAMP), or AS TIMESTAMP_NTZ.

    Args:
        texts: Strings such as `2024-01-02 03:04:05.678`, with `T` or a blank, cut off after any part, and with an optional
            `Z`, offset or zone name at the end.
        zone: Zone of the texts that name none.
        local: Give TIMESTAMP_NTZ; a zone in the text must exist and is ignored.

    Returns:
        Timestamps; null where the text is none. A time without a date is a TIMESTAMP of the day on which it is read.
    """
    import pyarrow.compute as pc

    texts = pc.utf8_rtrim(texts, JAVA_BLANKS + "\x7f")
    parts = pc.extract_regex(texts, _TIMESTAMP_TEXT)
    values, valid = micros_of_parts(parts)
    valid &= numpy_of(parts.is_valid())
    wall = array_of(values, mask=~valid).view(LOCAL_TIMESTAMP)
    if local:
        return _in_zones(pc.struct_field(parts, "zone"), lambda _zone: wall, zone)
    dated = _in_zones(pc.struct_field(parts, "zone"), lambda named: _at(wall, named), zone)
    return dated if valid.all() else pc.coalesce(dated, _today_at(texts, zone))


def _today_at(texts: pa.Array, zone: str) -> pa.Array:
    """The moments of today that times without a date name."""
    import pyarrow.compute as pc

    parts = pc.extract_regex(texts, _TIME_TEXT)
    values, valid = _micros_of_day(parts)
    after_t = pc.equal(pc.struct_field(parts, "lead"), scalar_of("T"))
    known = fill_null(pc.or_(after_t, pc.not_equal(pc.struct_field(parts, "rest"), scalar_of(""))), False)
    valid &= np.asarray(known)
    if not valid.any():
        return pa.nulls(len(texts), INSTANT)

    def of_zone(named: str | int) -> pa.Array:
        return _at(array_of(values + _today(named) * DAY_US, mask=~valid).view(LOCAL_TIMESTAMP), named)

    return _in_zones(pc.struct_field(parts, "zone"), of_zone, zone)


def _today(zone: str | int) -> int:
    """Days from the epoch to the present day there."""
    now = array_of([now_ms() * 1000]).view(INSTANT)
    local = to_local(now, zone)[0].value if isinstance(zone, str) else now[0].value + zone * SECOND_US
    return int(local // DAY_US)


def _in_zones(zones: pa.Array, at: Callable[[str | int], pa.Array], zone: str) -> pa.Array:
    """Values by the zone that each text names.

    Args:
        zones: Of the texts; "" or null where they name none.
        at: The values as those of one zone, or of an offset in seconds.
        zone: Of texts that name none.

    Returns:
        Null where the zone is none, which spoils a text also where its zone does not matter.
    """
    import pyarrow.compute as pc

    zones = fill_null(zones, "")
    result = at(zone)
    for name in pc.unique(zones).to_pylist():
        if name:
            named = java_zone(name)
            values = pa.nulls(len(zones), result.type) if named is None else at(named)
            result = pc.if_else(pc.equal(zones, name), values, result)
    return result


def _at(wall: pa.Array, zone: str | int) -> pa.Array:
    if isinstance(zone, str):
        return to_instant(wall, zone)
    import pyarrow.compute as pc

    return pc.subtract(micros(wall), zone * SECOND_US).view(INSTANT)


def _numbers(parts: pa.Array, name: str, missing: int = 0) -> np.ndarray[Any, Any]:
    import pyarrow.compute as pc

    texts = pc.replace_substring(pc.struct_field(parts, name), "+", "")
    texts = pc.if_else(pc.equal(texts, scalar_of("")), scalar_of(None), texts)
    return numpy_of(fill_null(pc.cast(texts, pa.int64()), missing))


def _days(
    year: np.ndarray[Any, Any], month: np.ndarray[Any, Any], day: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Days since the epoch in the proleptic Gregorian calendar, and which of the dates exist."""
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (np.abs(year) <= _LAST_YEAR)
    month = np.where(valid, month, 1)
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    longest = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])[month - 1] + (leap & (month == 2))
    valid &= day <= longest
    shifted = np.where(month <= 2, year - 1, year)
    era = np.floor_divide(shifted, 400)
    of_era = shifted - era * 400
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468, valid


def micros_of_parts(parts: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Microseconds since the epoch of what a pattern found, by the clock on the wall, and which of the moments exist."""
    days, valid = _days(_numbers(parts, "year"), _numbers(parts, "month", 1), _numbers(parts, "day", 1))
    time, exists = _micros_of_day(parts)
    valid &= exists & (np.abs(days) <= LAST_DAY_OF_TIMES)
    return np.where(valid, days, 0) * DAY_US + time, valid


def _micros_of_day(parts: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Microseconds since midnight of what a pattern found, and which of the times exist."""
    import pyarrow.compute as pc

    hour, minute, second = (_numbers(parts, name) for name in ("hour", "minute", "second"))
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(fill_null(pc.struct_field(parts, "fraction"), ""), 6, "0"), 0, 6)
    fraction = numpy_of(fill_null(pc.cast(digits, pa.int64()), 0))
    valid = numpy_of(parts.is_valid()) & (hour < 24) & (minute < 60) & (second < 60)
    return (hour * 3600 + minute * 60 + second) * SECOND_US + fraction, valid
