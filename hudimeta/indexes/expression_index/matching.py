"""Which expression an expression index is about, and what its bounds mean in another time zone.

A definition names a Spark function (`indexFunction`), its column (`sourceFields`) and its other arguments (`indexOptions`).
Functions that turn a moment into a date or a text do so in the time zone of the session that built the index, and nothing in
the table says which zone that was. Bounds of dates and of texts like `2024-05-06 07:08` are therefore widened by as much as two
zones can differ; other functions of moments are of no use, unless `hudimeta.index.trust` says that the zones are the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hudimeta.errors import ConfigError
from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of, single_array

if TYPE_CHECKING:
    from hudimeta.metadata.index_definitions import IndexDefinition
    from hudimeta.predicate import Expr

__all__ = ["ARGUMENTS", "FUNCTIONS", "OF_FILTERS", "IndexedExpression", "indexed_expression", "stated_options", "widened"]

_FORMATS = {
    "yyyy-MM-dd": ("%Y-%m-%d", 10, 86_400),
    "yyyy-MM-dd HH": ("%Y-%m-%d %H", 13, 3_600),
    "yyyy-MM-dd HH:mm": ("%Y-%m-%d %H:%M", 16, 60),
    "yyyy-MM-dd HH:mm:ss": ("%Y-%m-%d %H:%M:%S", 19, 1),
}
"""Patterns whose texts sort as their moments do: for strptime, their length, and the seconds that one text stands for."""
_DEFAULT_FORMAT = "yyyy-MM-dd HH:mm:ss"
_ZONES_APART = 32 * 3_600
"""No two zones, local mean times included, are further apart than this many seconds."""

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "from_unixtime": ("format",),
    "unix_timestamp": ("format",),
    "date_format": ("format",),
    "to_timestamp": ("format",),
    "to_date": ("format",),
    "date_add": ("days",),
    "date_sub": ("days",),
    "substring": ("pos", "len"),
    "regexp_extract": ("pattern", "idx"),
    "regexp_replace": ("pattern", "replacement"),
}
"""Options that are arguments after the column, in their order; functions that are not here take the column alone."""
_ALONE = ("identity", "year", "month", "day", "hour", "lower", "upper", "trim", "ltrim", "rtrim", "length")
FUNCTIONS = (*_ALONE, *ARGUMENTS)
"""Functions that an index can be over."""
_NUMBERS = ("days", "pos", "len", "idx")
_DEFAULTS = {"substring": ("len", str(2**31 - 1)), "regexp_extract": ("idx", "1")}
"""The last argument where a predicate leaves it out; Apache Hudi fails on definitions without it."""
OF_FILTERS = ("filtertype", "numentries", "fpp", "maxentries")
"""Options of bloom filters, which say nothing of the expression."""
_ALWAYS_ZONED = ("from_unixtime", "unix_timestamp", "to_timestamp")
_TEXT_FUNCTIONS = (
    "identity",
    "lower",
    "upper",
    "trim",
    "ltrim",
    "rtrim",
    "length",
    "substring",
    "regexp_extract",
    "regexp_replace",
)


@dataclass(frozen=True)
class IndexedExpression:
    """What an index is about.

    Attributes:
        expr: Bound to the table's columns.
        type: Of its values.
        zoned: Whether they depend on the session's time zone.
        format: Pattern of texts of moments, "" for other values.
        shorter: The same without an argument that is the default; None where there is no such.
    """

    expr: Expr
    type: pa.DataType
    zoned: bool
    format: str = ""
    shorter: Expr | None = None

    @property
    def spellings(self) -> tuple[Expr, ...]:
        """As predicates may spell it."""
        return (self.expr,) if self.shorter is None else (self.expr, self.shorter)

    @property
    def can_be_widened(self) -> bool:
        """True when bounds of an unknown time zone still bound the values of another."""
        return pa.types.is_date32(self.type) or self.format in _FORMATS


def stated_options(function: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Options of a definition as Apache Hudi reads them: names in small letters, plain numbers, and none that it would miss.

    Args:
        function: Of the index, in small letters.
        given: As somebody spelled them.
    """
    found = {key.lower(): str(value) for key, value in given.items()}
    name, value = _DEFAULTS.get(function, ("", ""))
    if name:
        found.setdefault(name, value)
    for number in found.keys() & set(_NUMBERS):
        with contextlib.suppress(ValueError):  # who binds the expression refuses it
            found[number] = str(int(found[number]))
    return {"expr": function, **found}


def indexed_expression(definition: IndexDefinition, schema: pa.Schema, timezone: str) -> IndexedExpression | None:
    """The expression of a definition, bound as predicates are; None for one that is not known here.

    Raises:
        ConfigError: The time zone is none.
    """
    from hudimeta.predicate import bind_value
    from hudimeta.predicate.tree import Call, Column, literal

    function = definition.function.lower()
    options = {k: v for k, v in definition.options.items() if k != "expr" and k.lower() not in OF_FILTERS}
    names = ARGUMENTS.get(function, ())
    known = function in ARGUMENTS or function in _ALONE
    if not known or set(options) - set(names) or len(definition.source_fields) != 1:
        return None
    if any(name not in options for name in names[: len(options)]):
        return None
    column = Column(tuple(definition.source_fields[0].split(".")))
    bind_value(literal(0), schema, timezone=timezone)  # whose own error a time zone deserves that is none
    try:
        rest = [literal(int(options[n]) if n in _NUMBERS else options[n]) for n in names if n in options]
        call: Expr = column if function == "identity" else Call(function, (column, *rest))
        source, bound = bind_value(column, schema, timezone=timezone).expr, bind_value(call, schema, timezone=timezone).expr
    except (ConfigError, ValueError):
        return None
    if bound.type is None or source.type is None or not isinstance(source, Column):
        return None
    dated = pa.types.is_date(source.type) or (pa.types.is_timestamp(source.type) and source.type.tz is None)
    zoned = function in _ALWAYS_ZONED or (function not in _TEXT_FUNCTIONS and not dated)
    patterned = function in ("from_unixtime", "date_format")
    shorter = None
    if options.items() & {_DEFAULTS.get(function)}:
        shorter = bind_value(Call(function, (column, *rest[:-1])), schema, timezone=timezone).expr
    text = options.get("format", _DEFAULT_FORMAT) if patterned else ""
    return IndexedExpression(bound, bound.type, zoned, text, shorter)


def widened(stats: pa.Table, expression: IndexedExpression) -> pa.Table:
    """Statistics whose bounds hold whatever the time zone of the session that built them.

    Args:
        stats: As `MetadataTable.expression_stats` gives them.
        expression: One that `can_be_widened`.
    """
    import pyarrow.compute as pc

    shift = _by_days if pa.types.is_date32(expression.type) else _by_seconds
    low, high = (shift(single_array(stats.column(name)), sign, expression.format) for name, sign in (("min", -1), ("max", 1)))
    if pa.types.is_string(expression.type):
        # Years of more than four digits begin with a sign, which lies below all digits.
        low = pc.if_else(high.is_valid(), low, scalar_of(None, low.type))
    for name, bounds in (("min", low), ("max", high)):
        stats = stats.set_column(stats.schema.get_field_index(name), name, bounds)
    return stats


def _by_days(dates: pa.Array, sign: int, _format: str) -> pa.Array:
    days = dates.cast(pa.int32())
    moved = numpy_of(fill_null(days, 0)).astype(np.int64) + sign * -(-_ZONES_APART // 86_400)
    return array_of(moved.astype(np.int32), mask=numpy_of(days.is_null())).cast(pa.date32())


def _by_seconds(texts: pa.Array, sign: int, pattern: str) -> pa.Array:
    """Texts of moments moved; None for years that have not four digits."""
    import pyarrow.compute as pc

    spelling, length, stands_for = _FORMATS[pattern]
    moments = pc.strptime(texts, format=spelling, unit="s", error_is_null=True).cast(pa.int64())
    apart = _ZONES_APART + (stands_for if sign > 0 else 0)
    moved: Any = pc.add(moments, scalar_of(sign * apart)).cast(pa.timestamp("s"))
    spelled = pc.strftime(moved, format=spelling)
    fine = pc.and_(pc.equal(pc.utf8_length(spelled), scalar_of(length)), pc.match_substring_regex(spelled, r"^[1-9]\d{3}-"))
    return pc.if_else(fill_null(fine, False), spelled, scalar_of(None, pa.string()))
