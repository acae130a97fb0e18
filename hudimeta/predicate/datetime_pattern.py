"""Patterns of dates and times, as `date_format` and its kin take them: reading texts by one, and writing them.

Everything is columnar: a pattern becomes one regular expression and a handful of integer columns, or the other way round.
Patterns are those of `java.time.format.DateTimeFormatter`, as far as Spark's documentation lists them and they do not
depend on a locale's texts, plus English month and day names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.errors import PredicateError
from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of
from hudimeta.predicate.datetime_text import micros_of_parts
from hudimeta.predicate.local_time import SECOND_US, micros
from hudimeta.predicate.types import LOCAL_TIMESTAMP
from hudimeta.schema.moment_text import moved_near, year_text, years_of

__all__ = ["Pattern", "compile_pattern", "format_local", "parse_with_pattern"]


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern.

    Attributes:
        text: As written.
        parts: (letter, count) for fields, ("'", text) for literal text.
        ordered: True when texts of equal-length years sort as the times do (`yyyy-MM-dd HH` does, `MM/dd/yyyy` does not).
    """

    text: str
    parts: tuple[tuple[str, int | str], ...]
    ordered: bool


_MONTHS = ["January", "February", "March", "April", "May", "June", "July"]
_MONTHS += ["August", "September", "October", "November", "December"]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_QUARTERS = ["1st quarter", "2nd quarter", "3rd quarter", "4th quarter"]
_NUMERIC = {"y": "year", "M": "month", "L": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}
_PARSED_ALSO = {"S": "fraction"}
_MOST = {"y": 6, "M": 4, "L": 4, "d": 2, "D": 3, "H": 2, "h": 2, "k": 2, "K": 2, "m": 2, "s": 2, "S": 9, "E": 4, "a": 1}
_MOST |= {"Q": 4, "q": 4}
"""How often a letter may stand in a row: Spark refuses more."""
_RESERVED = frozenset("[]{}#")
"""Java's own marks: brackets are for parts that may be absent, the others stand for nothing yet."""
_ALLOWED = "y M d E D H h K k m s S a Q, other marks than [ ] { } #, and text between quotes"
_DESCENDING = "yMLdHmsS"


def compile_pattern(text: str) -> Pattern:
    """Compile a datetime pattern.

    Raises:
        ConfigError: Naming the letter that is not understood.
    """
    parts: list[tuple[str, int | str]] = []
    for token in _tokens(text):
        if token[0].isascii() and token[0].isalpha():
            letter, count = token[0], len(token)
            if count > _MOST.get(letter, 0):
                most = f"; {letter} at most {_MOST[letter]} times" if letter in _MOST else ""
                raise _not_read(text, _ALLOWED + most, token)
            parts.append((letter, count))
        elif token == "'" or (set(token) & _RESERVED and not token.startswith("'")):
            raise _not_read(text, _ALLOWED, token)
        elif token.startswith("'"):
            parts.append(("'", "'" if token == "''" else token[1:-1].replace("''", "'")))
        else:
            parts.append(("'", token))
    return Pattern(text, tuple(parts), _is_ordered(parts))


def _not_read(pattern: str, allowed: str, part: str) -> PredicateError:
    return PredicateError(pattern, allowed, f"{part!r} is not.", what="datetime pattern")


def _tokens(text: str) -> list[str]:
    return [match[0] for match in re.finditer(r"''|'(?:[^']|'')*'|'|([A-Za-z])\1*|[^A-Za-z']+", text)]


def _is_ordered(parts: list[tuple[str, int | str]]) -> bool:
    letters = [(letter.replace("L", "M"), count) for letter, count in parts if letter != "'"]
    wanted = [letter for letter in _DESCENDING if letter != "L"][: len(letters)]
    widths = {"y": {4}, "M": {2}, "d": {2}, "H": {2}, "m": {2}, "s": {2}, "S": set(range(1, 10))}
    return [letter for letter, _count in letters] == wanted and all(count in widths[letter] for letter, count in letters)


def format_local(local: pa.Array, pattern: Pattern) -> pa.Array:
    """Write wall clock times by a pattern.

    Args:
        local: TIMESTAMP_NTZ.
        pattern: Compiled pattern.

    Returns:
        Strings.
    """
    import pyarrow.compute as pc

    if not pattern.parts:
        return pc.if_else(pc.is_valid(local), scalar_of(""), scalar_of(None, pa.string()))
    local, after = moved_near(local)
    years = years_of(local, after)
    fields = [_formatted(local, years, letter, count) for letter, count in pattern.parts]
    # the first element being a column keeps the nulls when every part is literal text
    return pc.binary_join_element_wise(
        pc.if_else(pc.is_valid(local), scalar_of(""), scalar_of(None, pa.string())), *fields, scalar_of("")
    )


def _formatted(local: pa.Array, years: npt.NDArray[np.int64], letter: str, count: int | str) -> Any:
    import pyarrow.compute as pc

    if isinstance(count, str):
        return scalar_of(count)
    if letter in "ML" and count >= 3:
        names = _MONTHS if count == 4 else [name[:3] for name in _MONTHS]
        return array_of(names).take(pc.subtract(pc.month(local), scalar_of(1)))
    if letter == "E":
        names = _DAYS if count == 4 else [name[:3] for name in _DAYS]
        return array_of(names).take(pc.day_of_week(local))
    if letter in "Qq" and count >= 3:
        names = _QUARTERS if count == 4 else [f"Q{n}" for n in range(1, 5)]
        return array_of(names).take(pc.subtract(pc.quarter(local), scalar_of(1)))
    if letter == "a":
        return pc.if_else(pc.less(pc.hour(local), scalar_of(12)), scalar_of("AM"), scalar_of("PM"))
    if letter == "S":
        fraction = pc.subtract(micros(local), pc.multiply(_floor_seconds(local), scalar_of(SECOND_US)))
        digits = pc.utf8_lpad(pc.cast(fraction, pa.string()), 6, "0")
        return pc.utf8_slice_codeunits(pc.utf8_rpad(digits, 9, "0"), 0, count)
    if letter == "y":
        return year_text(years, count)
    return pc.utf8_lpad(pc.cast(_field_number(local, letter), pa.string()), count, "0")


def _floor_seconds(local: pa.Array) -> pa.Array:
    numbers = micros(local)
    seconds = np.floor_divide(numpy_of(fill_null(numbers, 0)), SECOND_US)
    return array_of(seconds, mask=numpy_of(numbers.is_null()))


def _field_number(local: pa.Array, letter: str) -> Any:
    import pyarrow.compute as pc

    direct = {
        "M": pc.month,
        "L": pc.month,
        "d": pc.day,
        "D": pc.day_of_year,
        "Q": pc.quarter,
        "q": pc.quarter,
        "H": pc.hour,
        "m": pc.minute,
        "s": pc.second,
    }
    if letter in direct:
        return direct[letter](local)
    hour = pc.hour(local)
    if letter == "k":
        return pc.if_else(pc.equal(hour, scalar_of(0)), scalar_of(24), hour)
    twelve = pc.if_else(pc.greater_equal(hour, scalar_of(12)), pc.subtract(hour, scalar_of(12)), hour)
    return pc.if_else(pc.equal(twelve, scalar_of(0)), scalar_of(12), twelve) if letter == "h" else twelve


def parse_with_pattern(texts: pa.Array, pattern: Pattern) -> pa.Array:
    """Read wall clock times by a pattern; missing fields are 1970-01-01 00:00:00.

    Returns:
        TIMESTAMP_NTZ; null where a text does not match the pattern wholly.

    Raises:
        ConfigError: When the pattern holds letters that can only be written, such as E.
    """
    import pyarrow.compute as pc

    expression, names = "^", []
    for letter, count in pattern.parts:
        name = {**_NUMERIC, **_PARSED_ALSO}.get(letter, "")
        if isinstance(count, str):
            expression += re.escape(count)
        elif not name or name in names or (letter in "ML" and count > 2) or (letter == "y" and count not in (1, 4)):
            raise _not_read(pattern.text, "y M d H m s S once each, to read texts", letter)
        else:
            names.append(name)
            digits = (
                f"{{1,{count}}}" if letter == "S" else f"{{{count}}}" if count > 1 else "{1,2}" if letter != "y" else "{1,6}"
            )
            expression += rf"(?P<{name}>\d{digits})"
    missing = [name for name in ("year", "month", "day", "hour", "minute", "second", "fraction") if name not in names]
    expression += "".join(f"(?P<{name}>)" for name in missing) + "$"
    parts = pc.extract_regex(texts, expression)
    if "year" in missing:
        fields = {name: pc.struct_field(parts, name) for name in [*names, *missing] if name != "year"}
        years = pc.if_else(parts.is_valid(), scalar_of("1970"), scalar_of(None, pa.string()))
        mask = pc.invert(parts.is_valid())
        parts = pa.StructArray.from_arrays([*fields.values(), years], [*fields, "year"], mask=mask)
    values, valid = micros_of_parts(parts)
    valid &= numpy_of(parts.is_valid())
    return array_of(values, mask=~valid).view(LOCAL_TIMESTAMP)
