"""Clock readings of a time zone, over arrays of epoch milliseconds.

Arrow knows a zone's rules only as far as the compiled time zone files list transitions (2037); beyond that it would show winter
time all year. Python's `zoneinfo` follows the rule for later years, so it answers those, over distinct quarters of an hour.
"""

from __future__ import annotations

import datetime as dt
import os
import time
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["machine_zone", "offsets_at", "offsets_of_local"]

LISTED_UNTIL = 2_114_380_800_000
"""2037-01-01 in epoch milliseconds."""

QUARTER = 900_000
"""Offsets change only at full quarters of an hour, since 1972 everywhere."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_FIRST, _LAST = -62_135_000_000_000, 253_402_000_000_000


def offsets_at(times: NDArray[np.int64], zone: str) -> NDArray[np.int64]:
    """Offset from UTC, in milliseconds, of each moment.

    Raises:
        ConfigError: There is no zone of that name.
    """
    import numpy as np
    import pyarrow.compute as pc

    if zone == "UTC" or not len(times):
        return np.zeros(len(times), np.int64)
    if times.max() < LISTED_UNTIL:
        moments = pa.array(times, pa.timestamp("ms", zone))
        try:
            local = pc.cast(pc.local_timestamp(moments), pa.int64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid as error:
            raise _unknown(zone) from error
        return np.asarray(local - times, dtype=np.int64)
    clock = _clock(zone)
    quarters, place = np.unique(np.clip(times, _FIRST, _LAST) // QUARTER, return_inverse=True)
    known = [(_EPOCH + dt.timedelta(milliseconds=int(q) * QUARTER)).astimezone(clock).utcoffset() for q in quarters]
    return np.array([round((o or dt.timedelta()).total_seconds() * 1000) for o in known], np.int64)[place]


def offsets_of_local(local: NDArray[np.int64], zone: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Offset of each clock reading (milliseconds as if the clock were UTC), and whether the clock ever shows it.

    A reading that comes twice, when clocks go back, is taken as the earlier moment, as Joda does.
    """
    import numpy as np

    # An offset lies within a day, so the ones a day before and a day after enclose every change.
    day = 86_400_000
    before, after = offsets_at(local - day, zone), offsets_at(local + day, zone)
    fits_before = offsets_at(local - before, zone) == before
    fits_after = offsets_at(local - after, zone) == after
    return np.where(fits_before, before, after), fits_before | fits_after


def machine_zone() -> str:
    """The zone of this machine's clock: Java takes that of its own machine where nobody names one.

    Raises:
        ConfigError: The machine does not say what its zone is called.
    """
    _, _, linked = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    name = os.environ.get("TZ", "").removeprefix(":") or linked
    if name.rpartition("/")[2].upper() in ("UTC", "GMT", "UCT", "ZULU", "UNIVERSAL"):
        return "UTC"
    if name:
        _clock(name)
        return name
    if time.timezone or time.daylight:
        raise _unknown(f"that of this machine, {time.tzname[0]}")
    return "UTC"


def _clock(zone: str) -> dt.tzinfo:
    import re
    import zoneinfo

    offset = re.fullmatch(r"([+-])(\d{2}):(\d{2})", zone)
    if offset:
        minutes = int(offset[2]) * 60 + int(offset[3])
        return dt.timezone(dt.timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    try:
        return zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _unknown(zone) from error


def _unknown(zone: str) -> ConfigError:
    return ConfigError(
        "hoodie.keygen.timebased.timezone", zone, "an IANA zone such as Europe/Berlin, or an offset such as GMT+8:00"
    )
