"""Instants and local times: the session's time zone, vectorised, with Java's rules at the edges.

Arrow needs a zone database only for zones other than UTC, so UTC takes a path of its own.
"""

from __future__ import annotations

import re
import zoneinfo
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.errors import ConfigError
from hudimeta.predicate.java_zones import java_zone
from hudimeta.predicate.types import DATE, INSTANT, LOCAL_TIMESTAMP

__all__ = ["DAY_US", "SECOND_US", "check_zone", "days_of", "is_utc", "micros", "to_instant", "to_local"]

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
_GAP_PROBE_US = 3 * 3600 * SECOND_US
"""How far before a local time that a clock change left out its zone offset is looked up; clocks move by less."""


_OFFSET = re.compile(r"[+-](?:(?:0\d|1[0-7]):[0-5]\d|18:00)", re.ASCII)
"""Up to eighteen hours, as Java has them."""


def is_utc(zone: str) -> bool:
    """True for the spellings of UTC, for which local time and instant are the same number."""
    return zone.upper() in ("UTC", "Z", "GMT", "ETC/UTC", "+00:00")


def check_zone(zone: str, key: str = "timezone") -> str:
    """A zone under a name that Arrow knows: `GMT+3` is `+03:00`, and `PST` is America/Los_Angeles.

    Args:
        zone: Its name.
        key: The option or argument that names it.

    Raises:
        ConfigError: When it is none to Java, or an offset of seconds.
    """
    if is_utc(zone) or _OFFSET.fullmatch(zone):
        return zone
    try:
        zoneinfo.ZoneInfo(zone if zone.isprintable() else "")  # which overlooks a NUL at the end
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:  # of the system for a very long name
        found = java_zone(zone)
        if found is None or (isinstance(found, int) and found % 60):
            raise ConfigError(key, zone, "an IANA zone such as Europe/Berlin, or an offset such as +02:00") from error
        return (
            found
            if isinstance(found, str)
            else f"{'-' if found < 0 else '+'}{abs(found) // 3600:02}:{abs(found) // 60 % 60:02}"
        )
    return zone


def micros(values: pa.Array) -> pa.Array:
    """A timestamp's microseconds as int64, nulls kept; no copy."""
    return values.view(pa.int64())


def to_local(instants: pa.Array, zone: str) -> pa.Array:
    """TIMESTAMP to the wall clock of `zone`, as TIMESTAMP_NTZ."""
    if is_utc(zone):
        return micros(instants).view(LOCAL_TIMESTAMP)
    import pyarrow.compute as pc

    near, moved = _nearer(micros(instants))
    local = pc.local_timestamp(near.view(pa.timestamp("us", zone)))
    return local if moved is None else pc.add(micros(local), moved).view(LOCAL_TIMESTAMP)


def _nearer(times: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """Times after 2037 in a like year before it, and by how much they were moved; Arrow knows no summer time after 2037.

    A year is like another when both begin on the same day of the week and both have a leap day or none: the rules that hold
    from 2037 on speak of nothing else.
    """
    raw = np.asarray(times.fill_null(0))
    far = raw >= _FAR_US
    if not far.any():
        return times, None
    years = raw[far].astype("datetime64[us]").astype("datetime64[Y]")
    number = years.astype(np.int64) + 1970
    first = years.astype("datetime64[D]").astype(np.int64)
    leap = (number % 4 == 0) & ((number % 100 != 0) | (number % 400 == 0))
    moved = np.zeros(len(raw), np.int64)
    moved[far] = (first - _LIKE_YEARS[leap.astype(int), first % 7]) * DAY_US
    mask = np.asarray(times.is_null())
    return pa.array(raw - moved, mask=mask), pa.array(moved)


def _like_years() -> np.ndarray[Any, Any]:
    """First days of years from 2009 to 2036, by whether they have a leap day and by the day of the week they begin on."""
    found = np.zeros((2, 7), np.int64)
    for year in range(2009, 2037):
        first = int(np.datetime64(f"{year}-01-01", "D").astype(np.int64))
        found[int(year % 4 == 0), first % 7] = first
    return found


_LIKE_YEARS = _like_years()
_FAR_US = int(np.datetime64("2037-01-01", "us").astype(np.int64))


def to_instant(local: pa.Array, zone: str) -> pa.Array:
    """Wall clock of `zone` to TIMESTAMP.

    A time that occurs twice is the earlier one; a time that a clock change left out is moved on by the length of the gap,
    both as `java.time.ZonedDateTime.ofLocal` does.
    """
    if is_utc(zone):
        return micros(local).view(INSTANT)
    near, moved = _nearer(micros(local))
    if moved is not None:
        import pyarrow.compute as pc

        return pc.add(micros(to_instant(near.view(LOCAL_TIMESTAMP), zone)), moved).view(INSTANT)
    import pyarrow.compute as pc

    def assume(values: pa.Array) -> Any:
        return pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent="earliest")

    instants = micros(assume(local)).view(INSTANT)
    gone = pc.fill_null(pc.not_equal(to_local(instants, zone), local), False)
    if not pc.any(gone).as_py():
        return instants
    before = pc.subtract(micros(local), _GAP_PROBE_US)
    offset = pc.subtract(before, micros(assume(before.view(LOCAL_TIMESTAMP))))
    moved = pc.subtract(micros(local), offset).view(INSTANT)
    return pc.if_else(gone, moved, instants)


def days_of(local: pa.Array) -> pa.Array:
    """The day of a TIMESTAMP_NTZ, rounding down also before 1970."""
    numbers = micros(local)
    raw = np.asarray(numbers.fill_null(0))
    days = np.floor_divide(raw, DAY_US).astype(np.int32)
    return pa.array(days, mask=np.asarray(numbers.is_null())).view(DATE)
