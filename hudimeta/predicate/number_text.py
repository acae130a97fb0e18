"""Numbers as text: how Java reads them, and how it writes floats."""

from __future__ import annotations

import decimal
import math
import re

import numpy as np
import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, scalar_of
from hudimeta.predicate.types import DOUBLE, LONG, STRING, map_unique

__all__ = [
    "decimal_of_text",
    "digits_of_java",
    "floats_of_text",
    "integers_of_text",
    "java_double_text",
    "power_of_ten",
    "text_of_floats",
]

_FLOAT_TEXT = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?$"
_HEXADECIMAL = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[dDfF]?")


def integers_of_text(texts: pa.Array) -> pa.Array:
    """BIGINT of texts of digits with a sign; null for others."""
    import pyarrow.compute as pc

    plain = pc.replace_substring_regex(pc.replace_substring_regex(texts, r"^\+", ""), r"^(-?)0+(\d)", r"\1\2")
    short = pc.match_substring_regex(plain, r"^-?\d{1,18}$")
    numbers = pc.if_else(short, plain, scalar_of(None)).cast(LONG)
    if pc.any(pc.match_substring_regex(plain, r"^-?\d{19}$")).as_py():

        def whole(text: str) -> int | None:
            return int(text) if text.lstrip("-").isdecimal() and -(1 << 63) <= int(text) < 1 << 63 else None

        long = pc.if_else(pc.match_substring_regex(plain, r"^-?\d{19}$"), plain, scalar_of(None))
        numbers = pc.coalesce(numbers, map_unique(long, whole, LONG))
    return numbers


def floats_of_text(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """FLOAT or DOUBLE of texts without blanks; null for what is no number."""
    import pyarrow.compute as pc

    number = pc.match_substring_regex(texts, _FLOAT_TEXT)
    plain = pc.replace_substring_regex(pc.replace_substring_regex(texts, r"^\+", ""), r"[dDfF]$", "")
    values = pc.if_else(number, plain, scalar_of(None)).cast(target)
    lower = pc.utf8_lower(texts)
    for pattern, special in ((r"^\+?inf(inity)?$", math.inf), (r"^-inf(inity)?$", -math.inf), (r"^nan$", math.nan)):
        found = pc.match_substring_regex(lower, pattern)
        values = pc.if_else(found, scalar_of(special, target), values)
    values = pc.if_else(pc.is_in(texts, array_of(["+NaN", "-NaN"])), scalar_of(math.nan, target), values)
    odd = pc.match_substring(lower, "0x")
    if pc.any(odd).as_py():
        values = pc.if_else(odd, map_unique(texts, _hexadecimal, DOUBLE).cast(target, safe=False), values)
    return values


def _hexadecimal(text: str) -> float | None:
    """`0x1.8p3`, which Java reads as a number, of DOUBLE; None for anything else."""
    if not _HEXADECIMAL.fullmatch(text):
        return None
    try:
        return float.fromhex(text.rstrip("dDfF"))
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


def power_of_ten(exponent: int) -> decimal.Decimal:
    """1 with so many zeros, or decimals; as it is, whatever the decimal context of the process says."""
    return decimal.Decimal((0, (1,), exponent))


def decimal_of_text(text: str) -> decimal.Decimal | None:
    """A number as Java's BigDecimal reads it: digits of any script, but no blanks and no underscores between them."""
    try:
        number = decimal.Decimal(text) if "_" not in text and text == text.strip() else None
    except decimal.InvalidOperation:
        return None
    return number if number is not None and number.is_finite() else None


def java_double_text(number: float, *, single: bool = False) -> str:
    """`Double.toString`, or `Float.toString` of a number that is one: `0.1`, `1.0E10`, `NaN`, `-Infinity`."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    exact = digits_of_java(abs(number), single=single)
    sign = "-" if math.copysign(1, number) < 0 else ""
    if exact == 0:
        return sign + "0.0"
    if 1e-3 <= abs(number) < 1e7:
        text = format(exact, "f")
        return sign + (text if "." in text else text + ".0")
    _sign, figures, _exponent = exact.as_tuple()
    rest = "".join(map(str, figures[1:])) or "0"
    return f"{sign}{figures[0]}.{rest}E{exact.adjusted()}"


def text_of_floats(values: pa.Array) -> pa.Array:
    """FLOAT or DOUBLE as Java spells each: see `java_double_text`; null for null."""
    single = values.type == pa.float32()
    return map_unique(values, lambda number: java_double_text(number, single=single), STRING)


def digits_of_java(number: float, *, single: bool) -> decimal.Decimal:
    """The decimal digits that stand for a positive float: as few as tell it apart, but two at least, and more of whole numbers.

    Java before 19 takes a whole number of less than 2**63 exactly and rounds away only the digits that cannot matter.
    """
    bits = 24 if single else 53
    if float(1 << bits) <= number < 2.0**63:
        beyond = math.frexp(number)[1] - 1 - bits - 1
        figures = _INSIGNIFICANT[beyond] if beyond > 1 else 0
        quotient, residue = divmod(int(number), 10**figures)
        return decimal.Decimal(quotient + (figures > 0 and 2 * residue >= 10**figures)).scaleb(figures, _OWN).normalize(_OWN)
    shortest = decimal.Decimal(np.format_float_scientific(np.float32(number)) if single else repr(number)).normalize(_OWN)
    return decimal.Decimal(f"{number:.1e}").normalize(_OWN) if len(shortest.as_tuple().digits) == 1 else shortest


_OWN = decimal.Context(prec=19, traps=[])
"""Digits of every whole number of 63 bits; that of the process may have fewer, and would cut them off."""
_INSIGNIFICANT = [int(bits * math.log10(2)) for bits in range(64)]
"""How many decimal digits so many bits more than a float has cannot tell apart."""
