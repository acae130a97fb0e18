"""`String.valueOf` of Java, over Arrow arrays: the text that record keys, partition paths and casts to string are made of.

============  =====================================================================================================
Arrow type    text
============  =====================================================================================================
integers      decimal digits
boolean       `true`, `false`
float32/64    `Double.toString`: plain from 1e-3 to 1e7, else `d.dddE±n`; a digit after the point; `NaN`, `Infinity`
decimal       `BigDecimal.toString`: full scale; scientific only when the exponent would be below -6
string        itself
binary        UTF-8 read as text
date32        `LocalDate.toString`: `yyyy-MM-dd`, a sign before years beyond 9999
timestamp     the number that is stored (epoch in the column's unit), or `Timestamp.toString` when `consistent_timestamp`
============  =====================================================================================================

Digits are the shortest that give the number back. Java before 19 sometimes prints one or two digits more: measured on Java 17,
one double in a thousand (`-1.00046523266680448E18`) and, beyond 1e10, one float in ten. Hudi's own writers disagree there from
one Java release to the next, so a table should not have floating point keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from hudimeta.errors import SchemaMismatch
from hudimeta.schema.moment_text import moved_near, text_of_date, year_text, years_of

__all__ = ["java_text"]

PLAIN_FROM, PLAIN_BELOW = 1e-3, 1e7
"""`Double.toString` writes numbers of this range without an exponent."""

Text = Any  # pa.StringArray | pa.ChunkedArray: whatever came in, as strings


def java_text(values: Any, column: str = "", *, consistent_timestamp: bool = False) -> Text:
    """Render values as Java does.

    Args:
        values: Array or chunked array of a scalar type (see the module's table); dictionaries are decoded.
        column: Name for error texts.
        consistent_timestamp: `hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled`: timestamps become
            `yyyy-MM-dd HH:mm:ss.S` (UTC, at least one digit of fraction) instead of the stored number.

    Returns:
        Strings, null where the value is null; an Array for an Array, a ChunkedArray for a ChunkedArray.

    Raises:
        SchemaMismatch: Nested types, times and durations, and bytes that are no UTF-8: no text for a key can be made of them.
    """
    import pyarrow.compute as pc

    kind = values.type
    types = pa.types
    if types.is_string(kind):
        return values
    if types.is_dictionary(kind):
        plain = pc.cast(values, kind.value_type)
        return java_text(plain, column, consistent_timestamp=consistent_timestamp)
    if types.is_floating(kind):
        return _floats(values)
    if types.is_date(kind):
        return _dates(pc.cast(values, pa.date32()))
    if types.is_timestamp(kind):
        return _timestamps(values) if consistent_timestamp else pc.cast(pc.cast(values, pa.int64()), pa.string())
    direct = types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind) or types.is_null(kind)
    if direct or types.is_large_string(kind) or types.is_string_view(kind):
        return pc.cast(values, pa.string())
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return _utf8(pc.cast(values, pa.binary()), column)
    raise SchemaMismatch(column, kind, "a number, text, date, timestamp or boolean", "Use another column, or cast this one.")


def _utf8(values: Any, column: str) -> Text:
    """Java puts U+FFFD for bytes that are no UTF-8, so that rows with different bytes would share a key."""
    import pyarrow.compute as pc

    try:
        return pc.cast(values, pa.string())
    except pa.ArrowInvalid as error:
        raise SchemaMismatch(column, "bytes that are no UTF-8", "text", "Write their hexadecimal digits instead.") from error


def _dates(days: Any) -> Text:
    return _each(days, text_of_date)


def _timestamps(values: Any) -> Text:
    """`java.sql.Timestamp.toString` in UTC: Hudi cuts to milliseconds, trailing zeros go, one digit of fraction stays."""
    import pyarrow.compute as pc

    naive = pc.cast(pc.floor_temporal(values, unit="millisecond"), pa.timestamp("ms", values.type.tz), safe=False)
    return pc.replace_substring_regex(_each(naive, _milliseconds), r"(\.\d)(\d*?)0*$", r"\1\2")


def _milliseconds(moments: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    near, after = moved_near(moments.view(pa.timestamp("ms")))
    rest = pc.utf8_slice_codeunits(pc.strftime(near, format="%Y-%m-%d %H:%M:%S"), 4)
    return pc.binary_join_element_wise(pc.utf8_ltrim(year_text(years_of(near, after), 4), "+"), rest, "")


def _each(values: Any, render: Callable[[pa.Array], pa.Array]) -> Text:
    """What a function of arrays gives of an array, or of each of several chunks."""
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([render(chunk) for chunk in values.chunks], pa.string())
    return render(values)


def _floats(values: Any) -> Text:
    import pyarrow.compute as pc

    if values.type == pa.float16():
        values = pc.cast(values, pa.float32())
    text = pc.cast(values, pa.string())
    magnitude = pc.abs(values)
    inside = pc.and_(pc.greater_equal(magnitude, PLAIN_FROM), pc.less(magnitude, PLAIN_BELOW))
    plain = pc.or_(inside, pc.equal(magnitude, 0))
    with_point = pc.if_else(pc.match_substring(text, "."), text, pc.binary_join_element_wise(text, ".0", ""))
    out = pc.if_else(plain, with_point, _scientific(text))
    out = pc.if_else(pc.is_nan(values), "NaN", out)
    return pc.if_else(pc.is_inf(values), pc.if_else(pc.greater(values, 0), "Infinity", "-Infinity"), out)


def _scientific(text: Any) -> Text:
    """`d.dddE±n` from the digits of Arrow's shortest text, all rows at once; rows that are not numbers give rubbish or null."""
    import pyarrow.compute as pc

    pattern = r"^(?P<sign>-?)(?P<whole>\d+)(?:\.(?P<part>\d+))?(?:e(?P<power>[+-]?\d+))?$"
    found = pc.extract_regex(text, pattern)
    whole, part, sign = (pc.struct_field(found, [n]) for n in ("whole", "part", "sign"))
    power_text = pc.replace_substring(pc.struct_field(found, ["power"]), "+", "")
    power = pc.cast(pc.if_else(pc.equal(power_text, ""), "0", power_text), pa.int32())
    digits = pc.binary_join_element_wise(whole, part, "")
    significant = pc.utf8_ltrim(digits, "0")
    leading = pc.subtract(pc.binary_length(digits), pc.binary_length(significant))
    exponent = pc.subtract(pc.add(pc.binary_length(whole), power), pc.add(leading, 1))
    significant = pc.utf8_rtrim(significant, "0")
    first = pc.utf8_slice_codeunits(significant, 0, 1)
    rest = pc.utf8_slice_codeunits(significant, 1)
    rest = pc.if_else(pc.equal(rest, ""), "0", rest)
    mantissa = pc.binary_join_element_wise(sign, first, "")
    return pc.binary_join_element_wise(pc.binary_join_element_wise(mantissa, rest, "."), pc.cast(exponent, pa.string()), "E")
