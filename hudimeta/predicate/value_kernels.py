"""How functions over bits, bytes, parts of texts and numbers of time are computed (kernels, as in `function_kernels`)."""

from __future__ import annotations

import base64
import binascii
import decimal
import hashlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hudimeta.errors import PredicateError
from hudimeta.predicate.casts import cast_array
from hudimeta.predicate.date_kernels import date_array, first_of
from hudimeta.predicate.function_kernels import Kernel
from hudimeta.predicate.local_time import SECOND_US, check_zone, micros, to_instant, to_local
from hudimeta.predicate.text_kernels import check_length
from hudimeta.predicate.types import DATE, INSTANT, LOCAL_TIMESTAMP, LONG, integer_range, is_decimal, is_integer, map_unique

if TYPE_CHECKING:
    from hudimeta.predicate.signature import Context


def each(function: Callable[..., Any]) -> Kernel:
    """A function of one value, or of one value and constants; null where any of them is."""

    def run(context: Context, args: list[Any]) -> Any:
        if any(arg is None for arg in args[1:]):
            return pa.nulls(context.length, context.type)
        return map_unique(args[0], lambda value: function(value, *args[1:]), context.type)

    return run


def rowwise(function: Callable[..., Any]) -> Kernel:
    """A function of several values of one row; null where any of them is."""

    def run(context: Context, args: list[Any]) -> Any:
        known: dict[tuple[Any, ...], Any] = {}
        found = []
        for row in zip(*(arg.to_pylist() for arg in args), strict=True):
            if row not in known:
                known[row] = None if None in row else function(*row)
            found.append(known[row])
        return pa.array(found, context.type)

    return run


def hexadecimal(value: Any) -> str:
    """Upper-case digits of bytes, of a text's UTF-8, or of the 64 bits of a whole number without leading zeros."""
    if isinstance(value, int):
        return f"{value % (1 << 64):X}"
    return (value.encode() if isinstance(value, str) else value).hex().upper()


def from_hexadecimal(text: str) -> bytes | None:
    """Bytes of hexadecimal digits, with a zero before an odd number of them; None for other texts."""
    try:
        return binascii.unhexlify("0" * (len(text) % 2) + text)
    except (binascii.Error, ValueError):
        return None


def digest(name: str) -> Callable[[bytes], str]:
    """A hash, in hexadecimal digits."""
    return lambda value: hashlib.new(name, value, usedforsecurity=False).hexdigest()


def sha2(value: bytes, bits: int) -> str | None:
    """A hash of 224, 256 (also 0), 384 or 512 bits; None for other lengths."""
    bits = bits or 256
    return hashlib.new(f"sha{bits}", value).hexdigest() if bits in (224, 256, 384, 512) else None


def checksum(value: bytes) -> int:
    """CRC-32."""
    return binascii.crc32(value)


def base_64(value: bytes) -> str:
    """Base64, in one line."""
    return base64.b64encode(value).decode()


def first_code(text: str) -> int:
    """Code point of the first character; 0 of an empty text."""
    return ord(text[0]) if text else 0


def character(code: int) -> str:
    """The character of the lowest eight bits; empty for negative numbers."""
    return "" if code < 0 else chr(code & 0xFF)


def place(text: str, sought: str) -> int:
    """Where a text is found first, counted from 1; 0 when it is not."""
    return text.find(sought) + 1


def place_from(context: Context, args: list[Any]) -> Any:
    """`locate`: as :func:`place`, from a position on; 0 for positions before the first and for none, 1 of an empty text."""
    sought, text = (arg.to_pylist() for arg in args[:2])
    starts = args[2].to_pylist() if len(args) > 2 else [1] * len(text)

    def found(sought: str | None, text: str | None, start: int | None) -> int | None:
        if start is None:
            return 0
        if sought is None or text is None:
            return None
        at = start - 1 if sought else 0
        return text.find(sought, at) + 1 if start > 0 else 0

    return pa.array(map(found, sought, text, starts), context.type)


def repeated(text: str, times: int) -> str:
    """A text several times."""
    check_length(times * len(text))
    return text * max(times, 0)


def translated(text: str, sought: str, put: str) -> str:
    """Each character of one list as the one at its place in the other; without such a place it goes."""
    table: dict[int, str | None] = {}
    for at, one in enumerate(sought):
        if ord(one) not in table:
            mapped = put[at] if at < len(put) else None
            table[ord(one)] = None if mapped == "\0" else mapped
    return text.translate(table)


def joined(context: Context, args: list[Any]) -> Any:
    """`concat_ws`: what is not null, with a separator in between."""
    import pyarrow.compute as pc

    if args[0] is None:
        return pa.nulls(context.length, context.type)
    if len(args) == 1:
        return pa.repeat(pa.scalar("", context.type), context.length)
    parts = [pc.fill_null(pc.binary_join_element_wise(pa.scalar(args[0]), arg, ""), "") for arg in args[1:]]
    return pc.utf8_slice_codeunits(pc.binary_join_element_wise(*parts, ""), len(args[0]))


def before_or_after(text: str, delimiter: str, count: int) -> str:
    """`substring_index`: what stands before the count-th delimiter, or after it counted from the end."""
    if not delimiter or not count:
        return ""
    at = -1 if count > 0 else len(text)
    for _ in range(count):  # delimiters may overlap
        at = text.find(delimiter, at + 1)
        if at < 0:
            return text
    if count > 0:
        return text[:at]
    for _ in range(-count):
        at = text.rfind(delimiter, 0, at + len(delimiter) - 1) if at > 0 else -1
        if at < 0:
            return text
    return text[at + len(delimiter) :]


def piece(text: str, delimiter: str, number: int) -> str | None:
    """`split_part`: one of the pieces, from 1, or from -1 backwards; empty outside, None for 0."""
    if not number:
        return None
    pieces = text.split(delimiter) if delimiter else [text]
    at = number - 1 if number > 0 else len(pieces) + number
    return pieces[at] if 0 <= at < len(pieces) else ""


def bits(operation: Callable[[Any, Any], Any]) -> Kernel:
    """`&`, `|` or `^` of whole numbers."""

    def run(_context: Context, args: list[Any]) -> Any:
        left, right = (np.asarray(arg.fill_null(0)) for arg in args)
        return pa.array(operation(left, right), mask=np.asarray(args[0].is_null()) | np.asarray(args[1].is_null()))

    return run


def inverted(_context: Context, args: list[Any]) -> Any:
    """`~` of whole numbers."""
    return pa.array(~np.asarray(args[0].fill_null(0)), mask=np.asarray(args[0].is_null()))


def shifted(operation: Callable[[Any, Any], Any]) -> Kernel:
    """A shift of INT or BIGINT, by the lowest five or six bits of a number, as in Java."""

    def run(context: Context, args: list[Any]) -> Any:
        width = context.type.bit_width
        value, count = (np.asarray(arg.fill_null(0)) for arg in args)
        mask = np.asarray(args[0].is_null()) | np.asarray(args[1].is_null())
        return pa.array(operation(value, (count & (width - 1)).astype(value.dtype)), mask=mask)

    return run


def whole_number(_context: Context, args: list[Any]) -> Any:
    """`rint`: the nearest whole number, of two the even one."""
    return pa.array(np.rint(np.asarray(args[0].fill_null(0))), mask=np.asarray(args[0].is_null()), from_pandas=False)


def unless_nan(context: Context, args: list[Any]) -> Any:
    """`nanvl`: the second value where the first is NaN."""
    import pyarrow.compute as pc

    return pc.if_else(pc.fill_null(pc.is_nan(args[0]), False), args[1], args[0]).cast(context.type)


def choose_by_null(_context: Context, args: list[Any]) -> Any:
    """`nvl2`: the second value where the first is not null, else the third."""
    import pyarrow.compute as pc

    return pc.if_else(args[0].is_valid(), args[1], args[2])


def since_epoch(unit: int) -> Kernel:
    """Whole units of so many microseconds since the epoch, rounded down."""

    def run(_context: Context, args: list[Any]) -> Any:
        raw = micros(args[0])
        return pa.array(np.floor_divide(np.asarray(raw.fill_null(0)), unit), mask=np.asarray(raw.is_null()))

    return run


def as_days(_context: Context, args: list[Any]) -> Any:
    """Days since the epoch, or the date of such a number."""
    return args[0].view(pa.int32()) if args[0].type == DATE else args[0].view(DATE)


def _instant_of_float(seconds: float) -> int | None:
    """Microseconds, the first or last where there are none; None of NaN and infinities."""
    if not math.isfinite(seconds):
        return None
    low, high = integer_range(LONG)
    scaled = seconds * SECOND_US
    return low if scaled <= low else high if scaled >= high else int(scaled)


def _instant_of_decimal(seconds: decimal.Decimal) -> int | None:
    """Microseconds; None beyond 64 bits, and of numbers with more than six decimals, which Spark refuses."""
    scaled = seconds.scaleb(MICROS_DIGITS, _EXACT)
    low, high = integer_range(LONG)
    return int(scaled) if low <= scaled <= high and scaled == int(scaled) else None


def instant_of(unit: int) -> Kernel:
    """A number of units of so many microseconds since the epoch as an instant; null beyond 64 bits."""

    def run(context: Context, args: list[Any]) -> Any:
        if not is_integer(args[0].type):
            exact = _instant_of_decimal if is_decimal(args[0].type) else _instant_of_float
            return map_unique(args[0], exact, LONG).view(INSTANT)
        numbers = cast_array(args[0], LONG, context.zone)
        raw, mask = np.asarray(numbers.fill_null(0)), np.asarray(numbers.is_null())
        low, high = -((1 << 63) // unit), ((1 << 63) - 1) // unit
        mask = mask | (raw < low) | (raw > high)
        return pa.array(np.where(mask, 0, raw) * unit, mask=mask).view(INSTANT)

    return run


def moved(to_zone: bool) -> Kernel:
    """`from_utc_timestamp` and `to_utc_timestamp`: the wall clock of a zone taken for that of UTC, and back."""

    def run(context: Context, args: list[Any]) -> Any:
        if args[1] is None:
            return pa.nulls(context.length, INSTANT)
        zone = check_zone(args[1])
        if to_zone:
            return micros(to_local(args[0], zone)).view(INSTANT)
        return to_instant(micros(args[0]).view(LOCAL_TIMESTAMP), zone)

    return run


def make_date(_context: Context, args: list[Any]) -> Any:
    """A date of a year, also one before the first or of more than four digits; null where there is no such day."""
    year, month, day = (np.asarray(arg.fill_null(0)).astype(np.int64) for arg in args)
    mask = (
        np.logical_or.reduce([np.asarray(arg.is_null()) for arg in args]) | (month < 1) | (month > MONTHS_IN_YEAR) | (day < 1)
    )
    months = np.where(mask, 0, (year - EPOCH_YEAR) * MONTHS_IN_YEAR + month - 1)
    mask |= day > first_of(months + 1) - first_of(months)
    return date_array(first_of(months) + day - 1, mask)


_DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")


def next_day(_context: Context, args: list[Any]) -> Any:
    """The first day of a name after a date."""
    name = (args[1] or "").upper()
    wanted = [at for at, day in enumerate(_DAYS) if name in (day, day[:3], day[:2])]
    if args[1] is not None and not wanted:
        raise PredicateError(args[1], "an English name, or its first two or three letters", what="day")
    if not wanted:
        return pa.nulls(len(args[0]), DATE)
    days = args[0].view(pa.int32())
    raw = np.asarray(days.fill_null(0)).astype(np.int64)
    ahead = (wanted[0] - (raw + 3) - 1) % 7 + 1  # 1970-01-01 was a Thursday
    return pa.array((raw + ahead).astype(np.int32), mask=np.asarray(days.is_null())).view(DATE)


MICROSECOND, MILLISECOND, SECOND = 1, 1000, SECOND_US
MICROS_DIGITS = 6
MONTHS_IN_YEAR, EPOCH_YEAR = 12, 1970
_EXACT = decimal.Context(prec=76)
