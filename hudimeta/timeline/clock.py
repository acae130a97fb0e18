"""Time as the timeline writes it: instants, the clock behind them, and the spellings that users may give.

An instant is `yyyyMMddHHmmssSSS`, 17 digits of wall-clock time in the table's zone; tables written before Hudi 0.10 have 14
digits (whole seconds). Instants are compared as text everywhere. A zone is a `datetime.tzinfo`, or None for the machine's own
(`hoodie.table.timeline.timezone=LOCAL`, which is also what an absent property means).
"""

from __future__ import annotations

import re
import threading
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Protocol

from hudimeta.engine import machine
from hudimeta.errors import ConfigError

__all__ = [
    "ALLOWED_SPELLINGS",
    "OF_BOOTSTRAPS",
    "TIMEZONE_KEY",
    "Clock",
    "InstantGenerator",
    "SystemClock",
    "format_instant",
    "normalise_instant",
    "one_earlier",
    "parse_instant",
    "range_bound",
    "timeline_zone",
]

TIMEZONE_KEY = "hoodie.table.timeline.timezone"
ALLOWED_SPELLINGS = (
    "yyyyMMddHHmmssSSS, yyyyMMddHHmmss, yyyy-MM-dd, yyyy-MM-dd HH:mm:ss[.SSS], ISO 8601 such as "
    "yyyy-MM-ddTHH:mm:ss[.SSS][Z|+HH:mm], or seconds or milliseconds since 1970 (10 or 13 digits)"
)

OF_BOOTSTRAPS = ("00000000000001", "00000000000002")
"""Instants of bootstraps by METADATA_ONLY and FULL_RECORD, which are no dates."""

ALLOWED_BOUNDS = f"the first four or more digits of an instant, 000, {ALLOWED_SPELLINGS}"

_YEAR_DIGITS = 4
_EARLIEST_OF_YEAR = "00010101000000000"
"""Fills up the first digits of an instant to one that begins with them."""
_BEFORE_DATES, _AFTER_DATES = "000", "9" * 5
"""What stands before every date and after it."""
_MILLIS_DIGITS = 17
_LAST_MILLIS = 999
_SECONDS_DIGITS = 14
_SINCE_1970 = {10: 1000, 13: 1}
"""Milliseconds of a unit, by how many digits a number of such units since 1970 has."""
_OF_OUR_TIME = "1"
"""What such numbers begin with until 2033; other digits in their number are the first ones of an instant."""
_DATE_TIME = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})(?:[ T](?P<time>\d{2}:\d{2}(?::\d{2})?)(?:[.,](?P<fraction>\d{1,9}))?"
    r" ?(?P<zone>Z|[+-]\d{2}:?(?:\d{2})?)?)?",
    re.ASCII,
)


class Clock(Protocol):
    """Where the present comes from; tests give their own."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01T00:00:00Z."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01T00:00:00Z."""
        return machine.now_ms()


def timeline_zone(name: str | None) -> tzinfo | None:
    """The zone that a table's `hoodie.table.timeline.timezone` names.

    Args:
        name: "UTC", "LOCAL" in any case, or None or "" where the property is absent.

    Returns:
        UTC, or None for the machine's zone.

    Raises:
        ConfigError: any other name; Hudi knows these two only.
    """
    text = (name or "LOCAL").strip().upper()
    if text == "UTC":
        return timezone.utc
    if text == "LOCAL":
        return None
    raise ConfigError(TIMEZONE_KEY, name, "UTC or LOCAL")


def format_instant(epoch_ms: int, zone: tzinfo | None) -> str:
    """The 17 digits of a moment.

    Args:
        epoch_ms: Milliseconds since 1970-01-01T00:00:00Z.
        zone: The table's zone, None for the machine's.
    """
    wall = datetime.fromtimestamp(epoch_ms // 1000, zone)
    return _digits(wall, epoch_ms % 1000)


def parse_instant(text: str, zone: tzinfo | None) -> int:
    """The moment that an instant names, in milliseconds since 1970-01-01T00:00:00Z.

    14 digits mean the last millisecond of their second, as in Hudi; a bootstrap's are its number of milliseconds. Digits after
    the 17th (a suffix that the metadata table of version 6 appends) are ignored. A wall-clock time that occurs twice at the end
    of summer time is the earlier one; one that is skipped in spring is taken as if the clock had not been changed yet.

    Raises:
        ConfigError: not 14 or at least 17 digits, or no such date.
    """
    if text in OF_BOOTSTRAPS:
        return int(text)
    try:
        wall, millis = _wall(text)
        return round(wall.replace(tzinfo=zone).timestamp()) * 1000 + millis
    except (ValueError, OverflowError, OSError):
        raise ConfigError("instant", text, "yyyyMMddHHmmssSSS or yyyyMMddHHmmss") from None


def normalise_instant(text: str, zone: tzinfo | None = timezone.utc, key: str = "as.of.instant") -> str:
    """Any spelling of a moment as the text that instants are compared with.

    As in Hudi 1.2.0: a date is its first millisecond; a time with seconds and no fraction is the last millisecond of that
    second, so that every instant within it is included; 10 and 13 digits are seconds and milliseconds since 1970; 14 digits
    stay, and being compared as text stand before every instant of 17 digits within their second. A spelling with a zone is
    converted to the table's, one without is wall-clock time in the table's zone.

    Args:
        text: One of `ALLOWED_SPELLINGS`.
        zone: The table's zone, None for the machine's.
        key: The option that it came from, for the error.

    Returns:
        17 digits, or 14 that were given.

    Raises:
        ConfigError: any other spelling, or no such date; it lists what is allowed.
    """
    given = text.strip()
    try:
        if given.isascii() and given.isdigit():
            if len(given) in _SINCE_1970:
                return format_instant(int(given) * _SINCE_1970[len(given)], zone)
            if len(given) not in (_SECONDS_DIGITS, _MILLIS_DIGITS):
                raise ValueError(given)
            wall, millis = _wall(given)
            return given if len(given) == _SECONDS_DIGITS else _digits(wall, millis)
        return _from_date_time(given, zone)
    except (ValueError, OverflowError, OSError):
        raise ConfigError(key, text, ALLOWED_SPELLINGS) from None


def range_bound(text: str, zone: tzinfo | None, key: str) -> str:
    """One end of a range of instants as the text that instants are compared with.

    Beside what `normalise_instant` takes, these are the first digits of an instant, and digits that stand before or after every
    date. Other digits are refused: a version number would silently give a range of everything or of nothing.

    Args:
        text: The bound.
        zone: The table's zone, None for the machine's.
        key: The option that it came from, for the error.

    Raises:
        ConfigError: Neither digits of an instant nor a spelling of a moment.
    """
    given = text.strip()
    if not (given.isascii() and given.isdigit()):
        return normalise_instant(given, zone, key)
    if len(given) in _SINCE_1970 and given.startswith(_OF_OUR_TIME):
        return normalise_instant(given, zone, key)
    if given.strip("0") and not given.startswith((_BEFORE_DATES, _AFTER_DATES)):
        try:
            _wall(given + _EARLIEST_OF_YEAR[len(given) :] if len(given) >= _YEAR_DIGITS else given)
        except (ValueError, OverflowError):
            raise ConfigError(key, text, ALLOWED_BOUNDS) from None
    return given


class InstantGenerator:
    """Gives out instants that only ever grow, whatever the clock does; safe for many threads.

    Clocks go back (an hour at the end of summer time, milliseconds when they are corrected, more between machines). Then the
    next instant is one millisecond after the last one, in wall-clock digits.

    Args:
        clock: The present.
        zone: The table's zone, None for the machine's.
    """

    def __init__(self, clock: Clock, zone: tzinfo | None = timezone.utc) -> None:
        self._clock, self._zone = clock, zone
        self._last = ""
        self._lock = threading.Lock()

    def next(self, *after: str | None) -> str:
        """An instant later than every one given, and later than every one given out before.

        Args:
            after: Instants of any length that the table holds already; None and "" count as none.

        Raises:
            ConfigError: an instant of the far future that is not a date, so that nothing can come after it.
        """
        with self._lock:
            latest = max([self._last, *(text for text in after if text)], key=_as_millis)
            now = format_instant(self._clock.now_ms(), self._zone)
            self._last = now if now > _as_millis(latest) else _one_later(latest)
            return self._last

    def now_ms(self) -> int:
        """The present, milliseconds since 1970: by it ages are judged.

        The last instant may be later by hours, where another writer's clock was. By that one everything would be old.
        """
        return self._clock.now_ms()

    @property
    def zone(self) -> tzinfo | None:
        """The zone of the instants given out; None for the machine's."""
        return self._zone


def _as_millis(instant: str) -> str:
    """The last 17-digit instant that is not later than the one given, as text."""
    return instant + "999" if len(instant) == _SECONDS_DIGITS else instant


def one_earlier(instant: str) -> str | None:
    """The instant one millisecond before one of 17 digits; None for any other text."""
    try:
        wall, millis = _wall(instant)
        earlier = wall + timedelta(milliseconds=millis - 1)
    except (ValueError, OverflowError):
        return None
    return _digits(earlier, earlier.microsecond // 1000) if len(instant) == _MILLIS_DIGITS else None


def _one_later(instant: str) -> str:
    try:
        wall, millis = _wall(instant)
        later = wall + timedelta(milliseconds=millis + 1)
    except (ValueError, OverflowError):
        raise ConfigError("instant", instant, "a date that another instant can follow") from None
    return _digits(later, later.microsecond // 1000)


def _wall(instant: str) -> tuple[datetime, int]:
    """Wall-clock seconds (no zone) and milliseconds; ValueError when the text is no instant."""
    if not (instant.isascii() and instant.isdigit()) or len(instant) not in range(_SECONDS_DIGITS, 24):
        raise ValueError(instant)
    if _SECONDS_DIGITS < len(instant) < _MILLIS_DIGITS:
        raise ValueError(instant)
    parts = (instant[0:4], instant[4:6], instant[6:8], instant[8:10], instant[10:12], instant[12:14])
    wall = datetime(*(int(part) for part in parts))  # type: ignore[arg-type]
    return wall, _LAST_MILLIS if len(instant) == _SECONDS_DIGITS else int(instant[14:17])


def _digits(wall: datetime, millis: int) -> str:
    # strftime would not pad years before 1000.
    return f"{wall.year:04d}{wall.month:02d}{wall.day:02d}{wall.hour:02d}{wall.minute:02d}{wall.second:02d}{millis:03d}"


def _from_date_time(text: str, zone: tzinfo | None) -> str:
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        raise ValueError(text)
    clock_time = found["time"] or "00:00:00"
    seconds = clock_time if clock_time.count(":") == 2 else clock_time + ":00"
    wall = datetime.strptime(f"{found['date']} {seconds}", "%Y-%m-%d %H:%M:%S")
    whole = _LAST_MILLIS if clock_time.count(":") == 2 and found["time"] else 0
    millis = int(found["fraction"].ljust(3, "0")[:3]) if found["fraction"] else whole
    if found["zone"] is None:
        return _digits(wall, millis)
    moment = wall.replace(tzinfo=timezone(_offset(found["zone"])))
    return _digits(moment.astimezone(zone), millis)


def _offset(text: str) -> timedelta:
    if text == "Z":
        return timedelta(0)
    digits = text[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -offset if text[0] == "-" else offset
