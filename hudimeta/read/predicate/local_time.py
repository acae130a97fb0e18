"""Instants and local times: the session's time zone, vectorised, with Java's rules at the edges.

Arrow needs a zone database only for zones other than UTC, so UTC takes a path of its own.
"""

from __future__ import annotations

import zoneinfo
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.errors import ConfigError
from hudimeta.read.predicate.types import DATE, INSTANT, LOCAL_TIMESTAMP

__all__ = ["DAY_US", "SECOND_US", "check_zone", "days_of", "is_utc", "micros", "to_instant", "to_local"]

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
_GAP_PROBE_US = 3 * 3600 * SECOND_US
"""How far before a local time that a clock change left out its zone offset is looked up; clocks move by less."""


def is_utc(zone: str) -> bool:
    """True for the spellings of UTC, for which local time and instant are the same number."""
    return zone.upper() in ("UTC", "Z", "GMT", "ETC/UTC", "+00:00")


def check_zone(zone: str) -> str:
    """Return the zone if it exists.

    Raises:
        ConfigError: When neither an IANA name nor an offset such as `+02:00`.
    """
    if is_utc(zone) or (len(zone) == 6 and zone[0] in "+-" and zone[3] == ":" and zone[1:].replace(":", "").isdigit()):
        return zone
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
        raise ConfigError("timezone", zone, "an IANA zone such as Europe/Berlin, or an offset such as +02:00") from error
    return zone


def micros(values: pa.Array) -> pa.Array:
    """A timestamp's microseconds as int64, nulls kept; no copy."""
    return values.view(pa.int64())


def to_local(instants: pa.Array, zone: str) -> pa.Array:
    """TIMESTAMP to the wall clock of `zone`, as TIMESTAMP_NTZ."""
    if is_utc(zone):
        return micros(instants).view(LOCAL_TIMESTAMP)
    import pyarrow.compute as pc

    return pc.local_timestamp(micros(instants).view(pa.timestamp("us", zone)))


def to_instant(local: pa.Array, zone: str) -> pa.Array:
    """Wall clock of `zone` to TIMESTAMP.

    A time that occurs twice is the earlier one; a time that a clock change left out is moved on by the length of the gap,
    both as `java.time.ZonedDateTime.ofLocal` does.
    """
    if is_utc(zone):
        return micros(local).view(INSTANT)
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
