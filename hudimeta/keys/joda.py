"""Date patterns of Joda-Time, as timestamp key generators use them: formatting and parsing of whole arrays.

Formatting goes over the distinct values at the pattern's finest unit (a day's rows have one text for `yyyy/MM/dd`). Parsing
turns the pattern into a regular expression whose groups become numbers by array arithmetic.

Letters: G era, y/Y year, x weekyear, w week, e/E day of week, D day of year, M month (text from three letters on), d day, a
AM/PM, H 0-23, k 1-24, K 0-11, h 1-12, m minute, s second, S fraction, z zone name (output only), Z offset (`ZZ` with a colon,
`ZZZ` zone id). Quoted text and everything that is not a letter stand for themselves; `''` is a quote.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.errors import ConfigError
from hudimeta.keys.zones import offsets_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FIRST_SHOWN", "LAST_SHOWN", "Parsed", "format_times", "parse_times", "tokens"]

MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
LETTERS = frozenset("GyYxweEDMdaHkKhmsSzZ")
PARSED_LETTERS = frozenset("yYMdDHkKhamsSZ")

OFFSETS = 4096
"""More than the number of minutes between the westernmost and the easternmost zone."""

DAY = 86_400_000
FIRST_SHOWN, LAST_SHOWN = -62_135_510_400_000, 253_402_214_399_999
"""Epoch milliseconds from the second day of year 1 to the last but one of year 9999: on every clock a year that Python has."""
_FINEST = {"S": 1, "s": 1_000, "m": 60_000} | dict.fromkeys("HkKha", 3_600_000)
"""Milliseconds between two readings that a letter shows differently; a day for the letters that are not here."""


@dataclass(frozen=True)
class Token:
    """A run of one pattern letter (`letter`, `width`), or literal text (`letter` empty)."""

    letter: str
    width: int
    text: str = ""


def tokens(pattern: str, key: str = "") -> list[Token]:
    """Cut a pattern. Raises ConfigError for a letter that Joda does not know and for an open quote."""
    out: list[Token] = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "'":
            end = pattern.find("'", position + 1)
            if end < 0:
                raise ConfigError(key, pattern, "a date pattern with closed quotes")
            out.append(Token("", 0, pattern[position + 1 : end] or "'"))
            position = end + 1
        elif char.isascii() and char.isalpha():
            run = re.match(f"{char}+", pattern[position:])
            if run is None or char not in LETTERS:
                raise ConfigError(key, pattern, f"a Joda date pattern; the letter {char!r} means nothing", "Quote plain text.")
            out.append(Token(char, run.end()))
            position += run.end()
        else:
            out.append(Token("", 0, char))
            position += 1
    return out


def format_times(times: NDArray[np.int64], pattern: str, zone: str, key: str = "") -> pa.StringArray:
    """Render moments.

    Args:
        times: Epoch milliseconds, from `FIRST_SHOWN` to `LAST_SHOWN`.
        pattern: Joda pattern.
        zone: IANA name or offset (`+05:30`) of the clock to show.
        key: The option that holds the pattern, for errors.
    """
    offsets = offsets_at(times, zone)
    return format_local(times + offsets, pattern, key, zone=zone, offsets=offsets)


def format_local(
    local: NDArray[np.int64], pattern: str, key: str = "", *, zone: str | None = None, offsets: NDArray[np.int64] | None = None
) -> pa.StringArray:
    """Render clock readings (milliseconds as if the clock were UTC); `offsets` (milliseconds) are shown by `Z`, None is UTC."""
    import numpy as np

    parts = tokens(pattern, key)
    letters = {t.letter for t in parts if t.letter}
    finest = min((_FINEST.get(letter, DAY) for letter in letters), default=DAY)
    keys = local // finest * finest
    shows_offset = offsets is not None and bool(letters & {"z", "Z"})
    if offsets is not None and shows_offset:
        keys = keys * OFFSETS + offsets // 60_000
    distinct, place = np.unique(keys, return_inverse=True)
    texts = []
    for number in distinct.tolist():
        ms, minutes = _split_offset(number) if shows_offset else (number, 0)
        texts.append("".join(_show(t, ms, minutes, zone) for t in parts))
    return pa.array(texts, pa.string()).take(pa.array(place))


def _split_offset(number: int) -> tuple[int, int]:
    """Milliseconds and the offset in minutes, which rides below them: it lies between -18 and 18 hours."""
    ms = (number + OFFSETS // 2) // OFFSETS
    return ms, number - ms * OFFSETS


def _show(token: Token, ms: int, offset_minutes: int, zone: str | None) -> str:
    if not token.letter:
        return token.text
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=ms)
    letter, width = token.letter, token.width
    if letter in "yY":
        return f"{moment.year % 100:02d}" if width == 2 else f"{moment.year:0{width}d}"
    if letter == "M" and width > 2:
        return MONTHS[moment.month - 1][: 3 if width == 3 else None]
    if letter == "E":
        return DAYS[moment.weekday()][: None if width > 3 else 3]
    if letter == "S":
        return f"{moment.microsecond // 1000:03d}"[:width].ljust(width, "0")
    if letter in "zZ":
        return _show_zone(letter, width, offset_minutes, zone)
    if letter in "Ga":
        return "AD" if letter == "G" else ("AM" if moment.hour < 12 else "PM")
    year, week, weekday = moment.isocalendar()
    numbers = {
        "x": year % 100 if width == 2 else year,
        "w": week,
        "e": weekday,
        "D": moment.timetuple().tm_yday,
        "M": moment.month,
        "d": moment.day,
        "H": moment.hour,
        "k": moment.hour or 24,
        "K": moment.hour % 12,
        "h": moment.hour % 12 or 12,
        "m": moment.minute,
        "s": moment.second,
    }
    return f"{numbers[letter]:0{width}d}"


def _show_zone(letter: str, width: int, minutes: int, zone: str | None) -> str:
    if letter == "z" or width >= 3:
        return zone or "UTC"
    colon = ":" if width == 2 else ""
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}{colon}{abs(minutes) % 60:02d}"


@dataclass(frozen=True)
class Parsed:
    """Texts read by a pattern.

    Attributes:
        local: Clock readings, epoch milliseconds as if the clock were UTC; 0 where unmatched.
        offset: Offset in milliseconds that the text states; 0 where it states none.
        has_offset: Whether it states one.
        matched: Whether the text fits the pattern.
    """

    local: NDArray[np.int64]
    offset: NDArray[np.int64]
    has_offset: NDArray[np.bool_]
    matched: NDArray[np.bool_]


_DIGITS = {"y": r"[+-]?\d{1,9}", "Y": r"\d{1,9}", "D": r"\d{1,3}"}


def parse_times(texts: pa.Array, pattern: str, key: str = "", *, this_year: int | None = None) -> Parsed:
    """Read texts (no nulls) by a Joda pattern; texts that do not fit are marked, not raised.

    Args:
        texts: What to read.
        pattern: In the letters of Joda's `DateTimeFormat`.
        key: The option that holds the pattern, for errors.
        this_year: Two-digit years lie between 80 years before and 19 years after it, as in Joda; None: the present year.

    Raises:
        ConfigError: The pattern cannot be parsed with.
    """
    import numpy as np
    import pyarrow.compute as pc

    expression, groups = _expression(tokens(pattern, key), pattern, key)
    found = pc.extract_regex(texts, expression) if groups else None
    if found is None:
        raise ConfigError(key, pattern, "a date pattern with at least a year")
    matched = found.is_valid().to_numpy(zero_copy_only=False)
    parts = {g: pc.fill_null(pc.struct_field(found, [g]), "") for g in groups}
    pivot = (this_year or dt.date.today().year) - 80
    local, good = _assemble(parts, len(texts), pivot)
    offset = np.zeros(len(texts), np.int64)
    has_offset = np.zeros(len(texts), bool)
    if "zone" in parts:
        offset, has_offset = _offsets(parts["zone"])
    matched &= good
    return Parsed(np.where(matched, local, 0), offset, has_offset, matched)


_GROUP = {
    "y": "year",
    "Y": "year",
    "M": "month",
    "d": "day",
    "D": "yearday",
    "H": "hour",
    "k": "hour24",
    "K": "half0",
    "h": "half",
    "a": "ampm",
    "m": "minute",
    "s": "second",
    "S": "fraction",
    "Z": "zone",
}


def _expression(parts: list[Token], pattern: str, key: str) -> tuple[str, list[str]]:
    out, groups = [], []
    for i, token in enumerate(parts):
        if not token.letter:
            out.append(re.escape(token.text))
            continue
        letter, width = token.letter, token.width
        if letter not in PARSED_LETTERS or (letter == "Z" and width > 2):
            raise ConfigError(key, pattern, f"an input pattern without {letter * width!r}")
        group = "year2" if letter in "yY" and width == 2 else _GROUP[letter]
        if letter == "M" and width > 2:
            group = "monthname"
        if group in groups:
            raise ConfigError(key, pattern, f"an input pattern with {letter!r} once")
        groups.append(group)
        next_is_number = i + 1 < len(parts) and parts[i + 1].letter not in ("", "Z", "a")
        out.append(f"(?P<{group}>{_shape(group, letter, width, next_is_number)})")
    return f"^{''.join(out)}$", groups


def _shape(group: str, letter: str, width: int, next_is_number: bool) -> str:
    if group == "zone":
        return r"Z|z|[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?"
    if group == "monthname":
        return "(?i:[a-z]+)"
    if group == "ampm":
        return "(?i:am|pm)"
    if next_is_number:  # digits that touch the next number have the pattern's width
        return rf"\d{{{width}}}"
    if group == "fraction":
        return rf"\d{{1,{width}}}"
    return _DIGITS.get(letter, r"\d{1,2}")


def _assemble(parts: dict[str, pa.Array], count: int, pivot: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Milliseconds of the clock reading, and whether every field is one that a calendar has."""
    import numpy as np
    import pyarrow.compute as pc

    good: NDArray[np.bool_] = np.ones(count, bool)

    def number(group: str, default: int, low: int, high: int) -> NDArray[np.int64]:
        nonlocal good
        if group not in parts:
            return np.full(count, default, np.int64)
        values = _numbers(parts[group])
        good = good & (values >= low) & (values <= high)
        return values

    # Joda's default year: one with a 29th of February for a date without a year, else the epoch's.
    year = number("year", 2000 if {"month", "monthname", "day"} & set(parts) else 1970, -9999, 9999)
    if "year2" in parts:
        short = number("year2", 0, 0, 9999)
        two_digits = np.asarray(pc.equal(pc.utf8_length(parts["year2"]), 2))
        year = np.where(two_digits, pivot + (short - pivot) % 100, short)
    month = number("month", 1, 1, 12)
    if "monthname" in parts:
        month = _month_numbers(parts["monthname"])
        good = good & (month > 0)
    day = number("day", 1, 1, 31)
    good = good & (month >= 1) & (month <= 12)
    first = ((np.clip(year, -9999, 9999) - 1970) * 12 + np.clip(month, 1, 12) - 1).astype("datetime64[M]")
    days = first.astype("datetime64[D]") + (day - 1)
    good = good & (days.astype("datetime64[M]") == first)
    if "yearday" in parts:
        years = first.astype("datetime64[Y]")
        days = years.astype("datetime64[D]") + (number("yearday", 1, 1, 366) - 1)
        good = good & (days.astype("datetime64[Y]") == years)
    hour = number("hour", 0, 0, 23) + number("hour24", 24, 1, 24) % 24
    half = number("half", 12, 1, 12) % 12 + number("half0", 0, 0, 11)
    seconds = (hour + half + 12 * _is_pm(parts, count)) * 3600
    seconds = seconds + number("minute", 0, 0, 59) * 60 + number("second", 0, 0, 59)
    fraction = _fractions(parts["fraction"]) if "fraction" in parts else np.zeros(count, np.int64)
    return days.astype(np.int64) * 86_400_000 + seconds * 1000 + fraction, good


def _numbers(texts: pa.Array) -> NDArray[np.int64]:
    import pyarrow.compute as pc

    plain = pc.replace_substring_regex(pc.if_else(pc.equal(texts, ""), "-99999", texts), r"^\+", "")
    numbers: NDArray[np.int64] = pc.cast(plain, pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _fractions(texts: pa.Array) -> NDArray[np.int64]:
    """Digits after the point as milliseconds: `5` is 500, digits beyond the third are cut."""
    import pyarrow.compute as pc

    return _numbers(pc.utf8_slice_codeunits(pc.utf8_rpad(texts, 3, "0"), 0, 3))


def _is_pm(parts: dict[str, pa.Array], count: int) -> NDArray[np.int64]:
    import numpy as np
    import pyarrow.compute as pc

    if "ampm" not in parts:
        return np.zeros(count, np.int64)
    later = pc.equal(pc.utf8_lower(parts["ampm"]), "pm").to_numpy(zero_copy_only=False)
    return np.asarray(later, dtype=np.int64)


def _month_numbers(texts: pa.Array) -> NDArray[np.int64]:
    names = {name.lower(): i + 1 for i, name in enumerate(MONTHS)} | {n[:3].lower(): i + 1 for i, n in enumerate(MONTHS)}
    coded: Any = texts.dictionary_encode()
    known = pa.array([names.get(t.lower(), 0) for t in coded.dictionary.to_pylist()], pa.int64())
    numbers: NDArray[np.int64] = known.take(coded.indices).to_numpy(zero_copy_only=False)
    return numbers


def _offsets(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Offsets in milliseconds; there are few distinct ones."""
    import numpy as np

    coded: Any = texts.dictionary_encode()
    known = coded.dictionary.to_pylist()
    values = pa.array([_offset_ms(t) for t in known], pa.int64()).take(coded.indices)
    stated = pa.array([bool(t) for t in known], pa.bool_()).take(coded.indices)
    return np.asarray(values), np.asarray(stated)


def _offset_ms(text: str) -> int:
    digits = text.replace(":", "")[1:]
    if not digits:
        return 0
    hours, minutes, seconds = (int(digits[i : i + 2] or 0) for i in (0, 2, 4))
    return (-1 if text[0] == "-" else 1) * (hours * 3600 + minutes * 60 + seconds) * 1000
