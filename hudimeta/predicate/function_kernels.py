"""How each function of a predicate is computed: one kernel per function, Arrow arrays in, one array out.

A kernel is called with a context (zone, length, result type) and its arguments, which are arrays of the types that the
function's signature names, or Python values where the function demands constants.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hudimeta.formats.plain_arrays import fill_null, scalar_of
from hudimeta.predicate.arithmetic import arithmetic
from hudimeta.predicate.casts import cast_array, negated
from hudimeta.predicate.number_text import java_double_text, power_of_ten
from hudimeta.predicate.tree import ArithmeticOp
from hudimeta.predicate.types import (
    LONG,
    common_type,
    is_decimal,
    is_floating,
    is_integer,
    map_unique,
)

if TYPE_CHECKING:
    from hudimeta.predicate.signature import Context

Kernel = Callable[["Context", list[Any]], Any]


def absolute(_context: Context, args: list[Any]) -> Any:
    """Without sign; null for the smallest integer, which has no positive."""
    import pyarrow.compute as pc

    values = args[0]
    if is_integer(values.type):
        return pc.if_else(pc.equal(values, _smallest(values.type)), scalar_of(None), pc.abs(values))
    if is_decimal(values.type):
        return pc.if_else(pc.less(values, scalar_of(decimal.Decimal(0), values.type)), negated(values), values)
    return pc.abs(values)


def negative(_context: Context, args: list[Any]) -> Any:
    """With the other sign; null for the smallest integer."""
    import pyarrow.compute as pc

    values = args[0]
    if is_integer(values.type):
        return pc.if_else(pc.equal(values, _smallest(values.type)), scalar_of(None), pc.negate(values))
    return negated(values) if is_decimal(values.type) else pc.negate(values)


def _smallest(t: pa.DataType) -> pa.Scalar:
    return scalar_of(-(1 << (t.bit_width - 1)), t)


def identity(_context: Context, args: list[Any]) -> Any:
    """The argument."""
    return args[0]


def is_nan(_context: Context, args: list[Any]) -> Any:
    """NaN or not; false for null."""
    import pyarrow.compute as pc

    return fill_null(pc.is_nan(args[0]), False)


def ceil(context: Context, args: list[Any]) -> Any:
    """The next integer not below."""
    return _to_whole(context, args[0], "ceil")


def floor(context: Context, args: list[Any]) -> Any:
    """The next integer not above."""
    return _to_whole(context, args[0], "floor")


def _to_whole(context: Context, values: pa.Array, kernel: str) -> Any:
    import pyarrow.compute as pc

    if is_integer(values.type):
        return values
    if is_decimal(values.type):
        values = values.cast(pa.decimal256(76, values.type.scale))  # rounding can add a digit
        return pc.call_function(kernel, [values]).cast(pa.decimal256(76, 0)).cast(context.type)
    whole = pc.call_function(kernel, [pc.if_else(pc.is_nan(values), scalar_of(0.0), values)])  # NaN is 0, as Java casts it
    inside = pc.and_(pc.greater_equal(whole, -(2.0**63)), pc.less(whole, 2.0**63))
    return pc.if_else(inside, whole, scalar_of(None)).cast(LONG, safe=False)


def rounded(context: Context, args: list[Any]) -> Any:
    """Rounded half away from zero, at so many decimals."""
    digits = args[1] if len(args) > 1 else 0
    values, t = args[0], context.type
    if digits is None:
        return pa.nulls(context.length, context.type)
    if is_decimal(t) and digits >= values.type.scale:
        return cast_array(values, t, context.zone)
    step = power_of_ten(-max(min(digits, 400), -400))

    def exact(number: Any) -> Any:
        if is_floating(t):
            if not np.isfinite(number):
                return number
            number = decimal.Decimal(java_double_text(number, single=t == pa.float32()))
        whole = decimal.Decimal(number).quantize(step, decimal.ROUND_HALF_UP, decimal.Context(prec=800))
        return float(whole) + 0.0 if is_floating(t) else int(whole) if is_integer(t) else whole

    def fitting(number: Any) -> Any:
        result = exact(number)
        fits = not is_integer(t) or -(1 << (t.bit_width - 1)) <= result < 1 << (t.bit_width - 1)
        if is_decimal(t):
            fits = result.copy_abs() < power_of_ten(t.precision - t.scale)
            result = result.quantize(power_of_ten(-t.scale), context=decimal.Context(prec=800))
        return result if fits else None

    return map_unique(values, fitting, context.type)


def square_root(_context: Context, args: list[Any]) -> Any:
    """The root; NaN of negative numbers."""
    import pyarrow.compute as pc

    return pc.sqrt(args[0])


def sign(_context: Context, args: list[Any]) -> Any:
    """-1.0, 0.0, 1.0 or NaN."""
    import pyarrow.compute as pc

    return pc.if_else(pc.or_(pc.is_nan(args[0]), pc.equal(args[0], scalar_of(0.0))), args[0], pc.sign(args[0]))


def remainder(context: Context, args: list[Any]) -> Any:
    """The remainder with the sign of the dividend; null when the divisor is 0."""
    return arithmetic(ArithmeticOp.REMAINDER, args[0], args[1], context.type)


def positive_remainder(context: Context, args: list[Any]) -> Any:
    """The remainder r, or (r + n) % n where r is negative; of short integers as INT, as Java adds them."""
    import pyarrow.compute as pc

    left, right = args
    if is_decimal(context.type):
        first = remainder(context, args)
        below, above = pc.less(first, _zero(first.type)), pc.greater(right, _zero(right.type))
        lifted = pc.and_(below, above)  # by a negative number, r stays what it is
        return pc.if_else(lifted, arithmetic(ArithmeticOp.ADD, first, right, context.type), first)
    kind = pa.int32() if context.type in (pa.int8(), pa.int16()) else context.type
    left, right = left.cast(kind), right.cast(kind)
    first = arithmetic(ArithmeticOp.REMAINDER, left, right, kind)
    again = arithmetic(ArithmeticOp.REMAINDER, pc.add(first, right), right, kind)
    return pc.if_else(pc.less(first, scalar_of(0, kind)), again, first).cast(context.type)


def _zero(kind: pa.DataType) -> pa.Scalar:
    return scalar_of(decimal.Decimal(0), kind)


def coalesce(_context: Context, args: list[Any]) -> Any:
    """The first value that is not null."""
    import pyarrow.compute as pc

    return pc.coalesce(*args)


def null_if(context: Context, args: list[Any]) -> Any:
    """The first value, or null where both are equal."""
    import pyarrow.compute as pc

    from hudimeta.predicate.comparison import compare
    from hudimeta.predicate.tree import CompareOp

    both = common_type(args[0].type, args[1].type)
    left, right = (cast_array(arg, both, context.zone) for arg in args)
    same = fill_null(compare(CompareOp.EQ, left, right), False)
    return pc.if_else(same, scalar_of(None, args[0].type), args[0])


def choose(_context: Context, args: list[Any]) -> Any:
    """The second value where the first is true, else the third."""
    import pyarrow.compute as pc

    return pc.if_else(fill_null(args[0], False), args[1], args[2])


def greatest(_context: Context, args: list[Any]) -> Any:
    """The largest value that is not null."""
    return _extreme(args, ">")


def least(_context: Context, args: list[Any]) -> Any:
    """The smallest value that is not null."""
    return _extreme(args, "<")


def _extreme(args: list[Any], op: str) -> Any:
    import pyarrow.compute as pc

    from hudimeta.predicate.comparison import compare
    from hudimeta.predicate.tree import CompareOp

    best = args[0]
    for other in args[1:]:
        better = pc.or_(pc.is_null(best), fill_null(compare(CompareOp(op), other, best), False))
        best = pc.coalesce(pc.if_else(better, other, best), best)
    return best
