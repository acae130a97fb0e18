"""Constants beside columns: the same constant in the column's own type, so that the column need not be cast."""

from __future__ import annotations

import decimal
import math
import re

import pyarrow as pa

from hudimeta.errors import PredicateError
from hudimeta.formats.plain_arrays import array_of, scalar_of
from hudimeta.predicate.tree import CompareOp, Expr, Literal
from hudimeta.predicate.types import (
    DATE,
    INSTANT,
    LOCAL_TIMESTAMP,
    STRING,
    integer_range,
    is_decimal,
    is_floating,
    is_integer,
    is_numeric,
)

__all__ = ["distinct", "fitting", "integer_bound", "is_utf8", "rounds", "special_moment"]

_SPECIAL = re.compile(r"(epoch|now|today|tomorrow|yesterday)\b.*", re.IGNORECASE)


def fitting(child: Expr, constant: Literal) -> Literal | None:
    """The same number as a constant of the child's type; None when there is none."""
    assert child.type is not None
    t, source = child.type, constant.scalar.type
    if constant.is_null or not is_numeric(t) or not is_numeric(source):
        return None
    value = constant.scalar.as_py()
    if is_floating(source) and t != pa.float32():
        return None  # Spark compares in DOUBLE, where many integers are one number
    if is_floating(t) and (t != pa.float32() or not math.isfinite(value)):
        return None
    try:
        exact = decimal.Decimal(value)
        wanted: object = int(exact) if is_integer(t) else float(value) if is_floating(t) else exact
        scalar = scalar_of(wanted, t)
    except (pa.ArrowInvalid, OverflowError, ValueError):
        return None
    same = decimal.Decimal(scalar.as_py()) == exact
    return Literal(scalar, type=t) if same else None


def integer_bound(op: CompareOp, child: Expr, constant: Literal) -> tuple[CompareOp, int] | None:
    """`i > 2.5` as `i > 2`, and so on: a whole bound that means the same; None where there is none in the child's range."""
    assert child.type is not None
    if not is_integer(child.type) or not is_decimal(constant.scalar.type) or constant.is_null:
        return None
    below = math.floor(constant.scalar.as_py())
    low, high = integer_range(child.type)
    if not low <= below <= high:
        return None
    if op in (CompareOp.LT, CompareOp.LE):
        return CompareOp.LE, below
    return (CompareOp.GT, below) if op in (CompareOp.GT, CompareOp.GE) else None


def distinct(scalars: list[pa.Scalar], target: pa.DataType) -> pa.Array:
    """The non-null constants, each once."""
    values = [scalar for scalar in scalars if scalar.is_valid]
    if not values:
        return array_of([], target)
    try:
        return array_of([scalar.as_py() for scalar in values], target).unique()
    except OverflowError:  # of a year that Python has not
        return pa.concat_arrays([pa.repeat(scalar, 1) for scalar in values]).cast(target).unique()


def rounds(source: pa.DataType | None, target: pa.DataType) -> bool:
    """Whether decimals are compared in a type with fewer decimals than they have."""
    return source is not None and is_decimal(source) and is_decimal(target) and bool(target.scale < source.scale)


def special_moment(text: Literal, target: pa.DataType) -> Literal | None:
    """What Spark makes of the constant text `epoch` as a date or time; None for every other text.

    Raises:
        PredicateError: For `now`, `today` and their like, which mean another moment whenever they are asked for.
    """
    if text.type != STRING or text.is_null or target not in (DATE, INSTANT, LOCAL_TIMESTAMP):
        return None
    found = _SPECIAL.fullmatch(text.scalar.as_py().strip())
    if found is None:
        return None
    if found[0].lower() != "epoch":
        raise PredicateError(text.scalar.as_py(), "a text that means one moment, such as '2024-05-17 08:30:00'")
    return Literal(scalar_of(0, pa.int32() if target == DATE else pa.int64()).cast(target), type=target)


def is_utf8(text: pa.Scalar) -> bool:
    """Whether a STRING, which may have been a BINARY, is one: patterns, names and what an error shows must be."""
    if not text.is_valid:
        return True
    try:
        text.cast(pa.binary()).as_py().decode()
    except UnicodeDecodeError:
        return False
    return True
