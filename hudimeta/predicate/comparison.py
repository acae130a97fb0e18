"""Comparisons with Spark's order: NaN equals NaN and is greater than every number, -0.0 equals 0.0, strings go by bytes."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from hudimeta.formats.plain_arrays import fill_null, scalar_of
from hudimeta.predicate.equality import with_one_zero
from hudimeta.predicate.tree import CompareOp
from hudimeta.predicate.types import is_floating

__all__ = ["compare", "is_in"]

_KERNELS = {
    CompareOp.EQ: "equal",
    CompareOp.NE: "not_equal",
    CompareOp.LT: "less",
    CompareOp.LE: "less_equal",
    CompareOp.GT: "greater",
    CompareOp.GE: "greater_equal",
}


def compare(op: CompareOp, left: Any, right: Any) -> Any:
    """Compare two arrays, or an array and a scalar, of one type.

    Returns:
        BOOLEAN array; null where a side is null, except for `<=>`.
    """
    import pyarrow.compute as pc

    if op is CompareOp.NULL_SAFE_EQ:
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(both_null, fill_null(compare(CompareOp.EQ, left, right), False))
    if pa.types.is_null(left.type):  # for which Arrow has no kernels
        left, right = left.cast(pa.bool_()), right.cast(pa.bool_())
    plain = pc.call_function(_KERNELS[op], [left, right])
    return _with_nan(op, plain, left, right) if is_floating(left.type) else plain


def _with_nan(op: CompareOp, plain: Any, left: Any, right: Any) -> Any:
    """Mend IEEE's answer, which is false for every comparison with NaN but `<>`, where it is true."""
    import pyarrow.compute as pc

    if op in (CompareOp.LT, CompareOp.LE):
        return _with_nan(op.mirrored, plain, right, left)
    left_nan, right_nan = _nan(left), _nan(right)
    if left_nan is None and right_nan is None:
        return plain
    if op is CompareOp.EQ:
        return plain if None in (left_nan, right_nan) else pc.or_(plain, pc.and_(left_nan, right_nan))
    if op is CompareOp.NE:
        return plain if None in (left_nan, right_nan) else pc.and_(plain, pc.invert(pc.and_(left_nan, right_nan)))
    if left_nan is None:
        return plain
    # NaN is at least anything, and more than anything but NaN
    if op is CompareOp.GE or right_nan is None:
        return pc.or_(plain, pc.and_(left_nan, pc.is_valid(right)) if isinstance(right, pa.Array) else _kept(left_nan, right))
    return pc.or_(plain, pc.and_(left_nan, pc.invert(right_nan)))


def _kept(mask: Any, right: pa.Scalar) -> Any:
    """The mask, or nulls when the scalar beside it is null."""
    import pyarrow.compute as pc

    return mask if right.is_valid else pc.and_(mask, scalar_of(None, pa.bool_()))


def _nan(values: Any) -> Any:
    """Where a value is NaN (null where it is null); None when no value is."""
    import pyarrow.compute as pc

    if isinstance(values, pa.Scalar):
        return scalar_of(True) if values.is_valid and math.isnan(values.as_py()) else None
    found = pc.is_nan(values)
    return found if pc.any(found).as_py() else None


def is_in(values: pa.Array, constants: pa.Array, *, has_null: bool) -> Any:
    """`values IN (constants)`: null where the value is null, or where it is not found beside a NULL in the list.

    Args:
        values: An array.
        constants: Non-null values of the same type.
        has_null: The list also held a NULL.
    """
    import pyarrow.compute as pc

    if is_floating(values.type):
        values, constants = with_one_zero(values), with_one_zero(constants)
    found = pc.is_in(values, value_set=constants)
    known = pc.and_(pc.is_valid(values), found) if has_null else pc.is_valid(values)
    return pc.if_else(known, found, scalar_of(None))
