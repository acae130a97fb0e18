"""The functions that a predicate may call: types, evaluation, and what they do to bounds.

A :class:`Function` says which types its arguments are cast to, what it returns, how to compute it over Arrow arrays, and in
which direction it carries the order of its first argument, which is what lets bounds of a column become bounds of the call.
Arguments marked constant (patterns, lengths, units) reach the evaluation as Python values, all others as arrays.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from hudimeta.predicate.arithmetic import arithmetic_types
from hudimeta.predicate.casts import cast_is_total
from hudimeta.predicate.more_functions import more_functions
from hudimeta.predicate.signature import Constants, Function, Signature, Types, WrongArguments
from hudimeta.predicate.tree import Arithmetic, ArithmeticOp, Call, Cast, Expr
from hudimeta.predicate.types import (
    DATE,
    DOUBLE,
    INSTANT,
    LOCAL_TIMESTAMP,
    LONG,
    STRING,
    common_type,
    decimal_of_integer,
    is_decimal,
    is_floating,
    is_integer,
    is_numeric,
)

__all__ = ["FUNCTIONS", "FUNCTION_NAMES", "is_total"]


def _takes(*arguments: pa.DataType, to: pa.DataType) -> Callable[[Types], Signature]:
    """A signature with fixed types; fewer arguments may come."""

    def resolve(types: Types) -> Signature:
        return Signature(arguments[: len(types)], to)

    return resolve


def _moment(*more: pa.DataType, to: pa.DataType) -> Callable[[Types], Signature]:
    """The first argument is a timestamp of either kind; dates and strings become one."""

    def resolve(types: Types) -> Signature:
        first = types[0] if types[0] == LOCAL_TIMESTAMP else INSTANT
        return Signature((first, *more[: len(types) - 1]), to)

    return resolve


def _same(types: Types) -> Signature:
    return Signature((types[0],), types[0])


def _number(types: Types) -> Signature:
    first = types[0]
    if is_numeric(first):
        return Signature((first,), first)
    if first == STRING or pa.types.is_null(first):
        return Signature((DOUBLE,), DOUBLE)
    raise WrongArguments("a number")


def _whole(types: Types) -> Signature:
    """CEIL and FLOOR: BIGINT of floats and integers, a decimal without scale of decimals."""
    first = _number(types).arguments[0]
    if is_decimal(first):
        digits = max(first.precision - first.scale + 1, 1) if first.scale else first.precision
        return Signature((first,), pa.decimal128(min(digits, 38), 0))
    return Signature((DOUBLE if is_floating(first) else LONG,), LONG)


def _rounded(types: Types) -> Signature:
    first = _number(types[:1]).arguments[0]
    return Signature((first, pa.int32())[: len(types)], first)


def _rounded_to(signature: Signature, constants: Constants) -> pa.DataType:
    """A decimal has as many decimals as it is rounded to, and one digit more before them: 99.9 becomes 100."""
    first, scale = signature.arguments[0], constants.get(1, 0) or 0
    if not is_decimal(first):
        return signature.result
    whole, kept = first.precision - first.scale + 1, min(first.scale, max(scale, 0))
    digits = max(whole, 1 - scale) if scale < 0 else whole + kept
    return pa.decimal128(min(digits, 38), kept)


def _alike(skip: int = 0, *, mixed: bool = True) -> Callable[[Types], Signature]:
    """All arguments after the first `skip`, which are conditions, have one common type, which is the result's.

    Args:
        skip: How many conditions stand before them.
        mixed: A STRING may stand among values of other types, which it is cast to.
    """

    def resolve(types: Types) -> Signature:
        if any(t != pa.bool_() and not pa.types.is_null(t) for t in types[:skip]):
            raise WrongArguments("a condition first")
        if not mixed and STRING in types and any(t != STRING and not pa.types.is_null(t) for t in types):
            raise WrongArguments("values of one type")
        found: pa.DataType = pa.null()
        for t in types[skip:]:
            both = common_type(found, t)
            if both is None or (pa.types.is_decimal256(both)):
                raise WrongArguments("values of one type")
            found = both
        return Signature((pa.bool_(),) * skip + (found,) * (len(types) - skip), found)

    return resolve


def _first_of_two(types: Types) -> Signature:
    """Two values that can be compared; the first keeps its type."""
    both = common_type(types[0], types[1])
    if both is None or pa.types.is_nested(both):
        raise WrongArguments("two values that can be compared")
    return Signature((types[0], types[1]), types[0])


def _remainder(types: Types) -> Signature:
    both = common_type(types[0], types[1])
    if both is None or not is_numeric(both):
        raise WrongArguments("two numbers")
    if not is_decimal(both):
        return Signature((both, both), both)
    left, right = (decimal_of_integer(t) if is_integer(t) else t if is_decimal(t) else both for t in types)
    found = arithmetic_types(ArithmeticOp.REMAINDER, left, right)
    assert found is not None
    return Signature(found[:2], found[2])


def _texts(types: Types) -> Signature:
    return Signature((STRING,) * len(types), STRING)


def _text_first(*more: pa.DataType) -> Callable[[Types], Signature]:
    """A STRING, of which the result is a part or which is part of it; of a BINARY Spark makes another BINARY."""

    def resolve(types: Types) -> Signature:
        if types[0] == pa.binary():
            raise WrongArguments("a STRING")
        return Signature((STRING, *more)[: len(types)], STRING)

    return resolve


def _joined(types: Types) -> Signature:
    if all(t == pa.binary() for t in types):
        raise WrongArguments("a STRING among them")
    return _texts(types)


def _days_moved(types: Types) -> Signature:
    if is_numeric(types[1]) and not (is_integer(types[1]) and types[1] != LONG):
        raise WrongArguments("a DATE and an INT")
    return Signature((DATE, pa.int32()), DATE)


def _length(types: Types) -> Signature:
    return Signature((pa.binary() if types[0] == pa.binary() else STRING,), pa.int32())


def _date_or_pattern(types: Types) -> Signature:
    if len(types) == 1:
        return Signature((DATE,), DATE)
    return Signature((types[0] if types[0] in (STRING, LOCAL_TIMESTAMP) else DATE, STRING), DATE)


def _timestamp_or_pattern(types: Types) -> Signature:
    if len(types) == 1:
        return Signature((INSTANT,), INSTANT)
    return Signature((types[0] if types[0] in (STRING, LOCAL_TIMESTAMP) else INSTANT, STRING), INSTANT)


def _unix(types: Types) -> Signature:
    if len(types) > 1 and types[1] != STRING and not pa.types.is_null(types[1]):
        raise WrongArguments("a pattern")
    return Signature((types[0] if types[0] in (STRING, LOCAL_TIMESTAMP) else INSTANT, STRING)[: len(types)], LONG)


def _always(_types: Types, _constants: Constants, _zone: str) -> int:
    return 1


def _reversed(_types: Types, _constants: Constants, _zone: str) -> int:
    return -1


def _in_utc(types: Types, _constants: Constants, zone: str) -> int:
    """Wall clocks follow instants only where no clock is ever put back."""
    from hudimeta.predicate.local_time import is_utc

    return 1 if types[0] in (DATE, LOCAL_TIMESTAMP) or is_utc(zone) else 0


def _ordered_pattern(types: Types, constants: Constants, zone: str) -> int:
    from hudimeta.predicate.datetime_pattern import compile_pattern

    pattern = compile_pattern(constants.get(1, "yyyy-MM-dd HH:mm:ss"))
    return _in_utc(types, constants, zone) if pattern.ordered else 0


def _from_start(_types: Types, constants: Constants, _zone: str) -> int:
    """A prefix of a text keeps the order of texts; a piece from its middle does not."""
    return 1 if constants.get(1) in (0, 1) else 0


def _unless_patterned(types: Types, _constants: Constants, zone: str) -> int:
    from hudimeta.predicate.local_time import is_utc

    return 1 if types[0] == DATE or (types[0] != STRING and is_utc(zone)) else 0


def _unless_text(types: Types, _constants: Constants, _zone: str) -> int:
    return 0 if types[0] == STRING else 1


def _truncating(types: Types, constants: Constants, zone: str) -> int:
    return _in_utc(types, constants, zone)


def _date_of_types(types: Types) -> Signature:
    return Signature((DATE,) * len(types), DATE)


def _catalogue() -> dict[str, Function]:
    from hudimeta.predicate import date_kernels as dates
    from hudimeta.predicate import function_kernels as run
    from hudimeta.predicate import regex_kernels as regex_run
    from hudimeta.predicate import text_kernels as text_run

    day = _takes(DATE, to=pa.int32())
    text = _takes(STRING, to=STRING)
    length = Function(_length, text_run.length, (1, 1), total=True)
    piece = _text_first(pa.int32(), pa.int32())
    substring = Function(piece, text_run.substring, (2, 3), frozenset({1, 2}), _from_start, total=True)
    months = _takes(DATE, pa.int32(), to=DATE)
    ceil = Function(_whole, run.ceil, (1, 1), order=_always)
    abs_like = Function(_number, run.absolute, (1, 1))
    unix = Function(_unix, dates.unix_timestamp, (1, 2), frozenset({1}), _unless_text)
    of_one = {
        "year": Function(day, dates.part("year"), (1, 1), order=_always, total=True),
        "quarter": Function(day, dates.part("quarter"), (1, 1), total=True),
        "month": Function(day, dates.part("month"), (1, 1), total=True),
        "day": Function(day, dates.part("day"), (1, 1), total=True),
        "dayofyear": Function(day, dates.part("day_of_year"), (1, 1), total=True),
        "weekofyear": Function(day, dates.part("iso_week"), (1, 1), total=True),
        "dayofweek": Function(day, dates.day_of_week, (1, 1), total=True),
        "dayname": Function(_takes(DATE, to=STRING), dates.name_of_day, (1, 1), total=True),
        "monthname": Function(_takes(DATE, to=STRING), dates.name_of_month, (1, 1), total=True),
        "weekday": Function(day, dates.part("day_of_week"), (1, 1), total=True),
        "hour": Function(_moment(to=pa.int32()), dates.part("hour"), (1, 1), total=True),
        "minute": Function(_moment(to=pa.int32()), dates.part("minute"), (1, 1), total=True),
        "second": Function(_moment(to=pa.int32()), dates.part("second"), (1, 1), total=True),
        "lower": Function(text, text_run.lower, (1, 1), total=True),
        "upper": Function(text, text_run.upper, (1, 1), total=True),
        "length": length,
        "reverse": Function(_text_first(), text_run.reverse, (1, 1), total=True),
        "abs": abs_like,
        "ceil": ceil,
        "floor": Function(_whole, run.floor, (1, 1), order=_always),
        "sqrt": Function(_takes(DOUBLE, to=DOUBLE), run.square_root, (1, 1), total=True),
        "negative": Function(_number, run.negative, (1, 1), order=_negative_order),
        "positive": Function(_number, run.identity, (1, 1), order=_always, total=True),
        "sign": Function(_takes(DOUBLE, to=DOUBLE), run.sign, (1, 1), order=_unless_nan, total=True),
        "isnan": Function(_takes(DOUBLE, to=pa.bool_()), run.is_nan, (1, 1)),
        "identity": Function(_same, run.identity, (1, 1), order=_always, total=True),
        "last_day": Function(_date_of_types, dates.last_day, (1, 1), order=_always),
    }
    nvl = Function(_alike(), run.coalesce, (2, 2))
    padded = _text_first(pa.int32(), STRING)
    more = {
        "trim": Function(_texts, text_run.trim("both"), (1, 2), total=True),
        "ltrim": Function(_texts, text_run.trim("left"), (1, 2), total=True),
        "rtrim": Function(_texts, text_run.trim("right"), (1, 2), total=True),
        "btrim": Function(_texts, text_run.trim("both", text_first=True), (1, 2), total=True),
        "substring": substring,
        "left": Function(piece, text_run.left, (2, 2), frozenset({1}), _always, total=True),
        "right": Function(piece, text_run.right, (2, 2), frozenset({1}), total=True),
        "concat": Function(_joined, text_run.concat, (1, 1000), total=True),
        "replace": Function(_texts, text_run.replace, (2, 3), frozenset({1, 2}), total=True),
        "lpad": Function(padded, text_run.pad("left"), (2, 3), frozenset({1, 2}), total=True),
        "rpad": Function(padded, text_run.pad("right"), (2, 3), frozenset({1, 2}), total=True),
        "regexp_replace": Function(_texts, regex_run.regexp_replace, (3, 3), frozenset({1, 2}), total=True),
        "regexp_extract": Function(
            _takes(STRING, STRING, pa.int32(), to=STRING), regex_run.regexp_extract, (2, 3), frozenset({1, 2}), total=True
        ),
        "date_format": Function(
            _moment(STRING, to=STRING), dates.date_format, (2, 2), frozenset({1}), _ordered_pattern, total=True
        ),
        "from_unixtime": Function(
            _takes(LONG, STRING, to=STRING), dates.from_unixtime, (1, 2), frozenset({1}), _ordered_pattern
        ),
        "unix_timestamp": unix,
        "to_date": Function(_date_or_pattern, dates.to_date, (1, 2), frozenset({1}), _unless_patterned),
        "to_timestamp": Function(_timestamp_or_pattern, dates.to_timestamp, (1, 2), frozenset({1}), _unless_text),
        "date_add": Function(_days_moved, dates.date_add, (2, 2), order=_by_constant),
        "date_sub": Function(_days_moved, dates.date_sub, (2, 2), order=_by_constant),
        "add_months": Function(months, dates.add_months, (2, 2), order=_by_constant),
        "datediff": Function(_takes(DATE, DATE, to=pa.int32()), dates.date_diff, (2, 2), order=_by_constant),
        "trunc": Function(_takes(DATE, STRING, to=DATE), dates.truncate_date, (2, 2), frozenset({1}), _always),
        "date_trunc": Function(_truncated, dates.truncate_timestamp, (2, 2), frozenset({0})),
        "round": Function(_rounded, run.rounded, (1, 2), frozenset({1}), _always, result_of=_rounded_to),
        "mod": Function(_remainder, run.remainder, (2, 2)),
        "pmod": Function(_remainder, run.positive_remainder, (2, 2)),
        "coalesce": Function(_alike(), run.coalesce, (1, 1000)),
        "nvl": nvl,
        "ifnull": nvl,
        "nullif": Function(_first_of_two, run.null_if, (2, 2)),
        "if": Function(_alike(1), run.choose, (3, 3)),
        "greatest": Function(_alike(mixed=False), run.greatest, (2, 1000)),
        "least": Function(_alike(mixed=False), run.least, (2, 1000)),
    }
    table = {**of_one, **more}
    aliases = {
        "dayofmonth": "day",
        "day_of_week": "dayofweek",
        "week": "weekofyear",
        "lcase": "lower",
        "ucase": "upper",
        "char_length": "length",
        "character_length": "length",
        "substr": "substring",
        "ceiling": "ceil",
        "signum": "sign",
        "to_unix_timestamp": "unix_timestamp",
        "dateadd": "date_add",
        "date_diff": "datediff",
    }
    return table | {alias: table[name] for alias, name in aliases.items()}


def _truncated(_types: Types) -> Signature:
    return Signature((STRING, INSTANT), INSTANT)


def _by_constant(_types: Types, constants: Constants, _zone: str) -> int:
    """Moving by the same number of days keeps the order; by a column's number it need not."""
    return 1 if 1 in constants else 0


def _negative_order(types: Types, _constants: Constants, _zone: str) -> int:
    return 0 if is_floating(types[0]) else -1  # NaN stays the largest


def _unless_nan(types: Types, _constants: Constants, _zone: str) -> int:
    return 0 if is_floating(types[0]) else 1


FUNCTIONS: dict[str, Function] = _catalogue() | more_functions()
FUNCTION_NAMES: tuple[str, ...] = tuple(sorted(name for name in FUNCTIONS if name[0].isalpha()))
"""Names that a predicate may call, besides the operators and type names."""


def is_total(node: Expr) -> bool:
    """True where a node is null only where one of its children is: no value of theirs is refused, or has no result."""
    if isinstance(node, Cast):
        return cast_is_total(node.child.type or pa.null(), node.target)
    return FUNCTIONS[node.name].total if isinstance(node, Call) else not isinstance(node, Arithmetic)
