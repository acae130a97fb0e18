"""+ - * / % DIV with Spark's result types; overflow and division by zero give null, as Spark's `try_` functions do."""

from __future__ import annotations

import decimal
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of
from hudimeta.predicate.casts import cast_array
from hudimeta.predicate.number_text import power_of_ten
from hudimeta.predicate.tree import ArithmeticOp
from hudimeta.predicate.types import (
    DOUBLE,
    LONG,
    MAX_PRECISION,
    bounded_decimal,
    common_type,
    integer_range,
    is_decimal,
    is_floating,
    is_integer,
)

__all__ = ["arithmetic", "arithmetic_types"]

_CONTEXT = decimal.Context(prec=90, rounding=decimal.ROUND_HALF_UP)
_WIDEST = 76


def arithmetic_types(
    op: ArithmeticOp, left: pa.DataType, right: pa.DataType
) -> tuple[pa.DataType, pa.DataType, pa.DataType] | None:
    """Types to cast both operands to, and the result's type; None when Spark has no such operation.

    Args:
        op: The operator.
        left: Type of a number, integers beside decimals being decimals already.
        right: Likewise.
    """
    if is_decimal(left) and is_decimal(right):
        if op is ArithmeticOp.INTEGER_DIVIDE:
            return left, right, LONG
        return left, right, _decimal_result(op, left, right)
    both = common_type(left, right)
    if both is None or not (is_integer(both) or is_floating(both)):
        return None
    if op is ArithmeticOp.DIVIDE:
        return DOUBLE, DOUBLE, DOUBLE
    if op is ArithmeticOp.INTEGER_DIVIDE:
        return (LONG, LONG, LONG) if is_integer(both) else None
    return both, both, both


def _decimal_result(op: ArithmeticOp, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    if op is ArithmeticOp.MULTIPLY:
        return bounded_decimal(p1 + p2 + 1, s1 + s2)
    if op is ArithmeticOp.DIVIDE:
        scale = max(6, s1 + p2 + 1)
        return bounded_decimal(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    if op is ArithmeticOp.REMAINDER:
        return bounded_decimal(min(p1 - s1, p2 - s2) + scale, scale)
    return bounded_decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)


def arithmetic(op: ArithmeticOp, left: pa.Array, right: pa.Array, result: pa.DataType) -> pa.Array:
    """Compute over two arrays of the types that :func:`arithmetic_types` gave.

    Returns:
        An array of `result`.
    """
    if is_decimal(left.type):
        return _decimals(op, left, right, result)
    if op is ArithmeticOp.REMAINDER:
        return _number_remainder(left, right, result)
    a, b, mask = _raw(left, right)
    if is_floating(result):
        with np.errstate(all="ignore"):
            if op is ArithmeticOp.DIVIDE:
                mask = mask | (b == 0)
                b = np.where(b == 0, 1, b)
            values = _FLOAT[op](a, b)
        return array_of(values, type=result, mask=mask)
    if op is ArithmeticOp.INTEGER_DIVIDE:
        bad = (b == 0) | ((a == integer_range(LONG)[0]) & (b == -1))
        b = np.where(bad, 1, b)
        return array_of(_truncated_quotient(a, b), mask=mask | bad)
    values, overflow = _integers(op, a.astype(np.int64), b.astype(np.int64))
    low, high = integer_range(result)
    mask = mask | overflow | (values < low) | (values > high)
    return array_of(np.where(mask, 0, values), mask=mask).cast(result)


_FLOAT: dict[ArithmeticOp, Callable[[Any, Any], Any]] = {
    ArithmeticOp.ADD: np.add,
    ArithmeticOp.SUBTRACT: np.subtract,
    ArithmeticOp.MULTIPLY: np.multiply,
    ArithmeticOp.DIVIDE: np.divide,
}


def _raw(left: pa.Array, right: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    mask = numpy_of(left.is_null()) | numpy_of(right.is_null())
    a, b = (numpy_of(fill_null(side, 0)) for side in (left, right))
    return a, b, mask


def _integers(
    op: ArithmeticOp, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The wrapped 64-bit result, and where it wrapped."""
    with np.errstate(over="ignore"):
        if op is ArithmeticOp.ADD:
            total = a + b
            return total, ((a ^ total) & (b ^ total)) < 0
        if op is ArithmeticOp.SUBTRACT:
            total = a - b
            return total, ((a ^ b) & (a ^ total)) < 0
        product = a * b
    rough = np.abs(a.astype(np.float64) * b.astype(np.float64))
    overflow = rough >= 2.0**63
    for at in np.flatnonzero(np.abs(rough - 2.0**63) < 2.0**12):
        overflow[at] = not -(1 << 63) <= int(a[at]) * int(b[at]) < 1 << 63
    return product, overflow


def _truncated_quotient(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    quotient = np.floor_divide(a, b)
    exact = quotient * b == a
    result: np.ndarray[Any, Any] = quotient + (~exact & ((a < 0) != (b < 0)))
    return result


def _number_remainder(left: pa.Array, right: pa.Array, result: pa.DataType) -> pa.Array:
    """The remainder of integers or floats, with the sign of the dividend; null when the divisor is 0."""
    a, b, mask = _raw(left, right)
    zero = b == 0
    b = np.where(zero, 1, b)
    with np.errstate(all="ignore"):
        if is_floating(result):
            values = np.fmod(a, b)
        else:
            values = np.fmod(a, np.where(b == -1, 1, b))  # the smallest integer by -1 would trap
    return array_of(values, type=result, mask=mask | zero)


def _decimals(op: ArithmeticOp, left: pa.Array, right: pa.Array, result: pa.DataType) -> pa.Array:
    fast = _by_kernel(op, left, right, result)
    if fast is not None:
        return fast
    run = _DECIMAL[op]
    whole = not is_decimal(result)
    step = power_of_ten(0 if whole else -result.scale)
    limit = power_of_ten(MAX_PRECISION if whole else result.precision - result.scale)

    def one(a: decimal.Decimal | None, b: decimal.Decimal | None) -> decimal.Decimal | int | None:
        if a is None or b is None or (b == 0 and op in _DIVISIONS):
            return None
        value = run(a, b)
        if value is None:
            return None
        if not whole:
            value = value.quantize(step, decimal.ROUND_HALF_UP, _CONTEXT)
        if abs(value) >= limit:
            return None
        return _last_bits(int(value)) if whole else value

    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    with decimal.localcontext(_CONTEXT):
        return array_of([one(a, b) for a, b in pairs], result)


def _last_bits(number: int) -> int:
    """The last 64 bits, signed: so Spark makes a BIGINT of a quotient of decimals, however large that is."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _remainder(a: decimal.Decimal, b: decimal.Decimal) -> decimal.Decimal | None:
    """None where Java gives up: the whole quotient has more digits than Spark computes with, zeros at its end apart."""
    quotient = abs(a // b)
    if quotient >= _LARGEST and len(str(int(quotient)).rstrip("0")) > _JAVA_DIGITS:
        return None
    return a % b


_JAVA_DIGITS = MAX_PRECISION + 1
"""Of the numbers that Spark divides."""
_LARGEST = power_of_ten(_JAVA_DIGITS)
_DIVISIONS = (ArithmeticOp.DIVIDE, ArithmeticOp.REMAINDER, ArithmeticOp.INTEGER_DIVIDE)
_DECIMAL: dict[ArithmeticOp, Callable[[decimal.Decimal, decimal.Decimal], decimal.Decimal | None]] = {
    ArithmeticOp.ADD: operator.add,
    ArithmeticOp.SUBTRACT: operator.sub,
    ArithmeticOp.MULTIPLY: operator.mul,
    ArithmeticOp.DIVIDE: operator.truediv,
    ArithmeticOp.REMAINDER: _remainder,
    ArithmeticOp.INTEGER_DIVIDE: operator.floordiv,
}


def _by_kernel(op: ArithmeticOp, left: pa.Array, right: pa.Array, result: pa.DataType) -> pa.Array | None:
    """Arrow's own kernels, where 76 digits are enough for what they compute on the way."""
    import pyarrow.compute as pc

    p1, s1, p2, s2 = left.type.precision, left.type.scale, right.type.precision, right.type.scale
    if op is ArithmeticOp.MULTIPLY and p1 + p2 + 1 <= _WIDEST:
        wide = pc.multiply(left.cast(pa.decimal256(p1, s1)), right.cast(pa.decimal256(p2, s2)))
    elif op in (ArithmeticOp.ADD, ArithmeticOp.SUBTRACT) and max(p1 - s1, p2 - s2) + max(s1, s2) + 1 <= _WIDEST:
        kernel = pc.add if op is ArithmeticOp.ADD else pc.subtract
        wide = kernel(left.cast(pa.decimal256(p1, s1)), right.cast(pa.decimal256(p2, s2)))
    else:
        return None
    return cast_array(wide, result, "UTC")
