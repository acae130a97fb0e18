"""What planners take out of a predicate: parts over some columns only, keys it asks for, a filter for row groups."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa

from hudimeta.predicate.bind import Bound
from hudimeta.predicate.tree import (
    And,
    Column,
    Compare,
    CompareOp,
    Expr,
    InSet,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
    walk,
)
from hudimeta.predicate.types import is_floating

__all__ = ["columns", "equalities", "keys_of", "split_by_columns", "split_conjuncts", "to_parquet_filter"]

MAX_KEYS = 100_000
"""Most combinations of key values that are looked up one by one; a predicate that asks for more is no look-up."""


def split_conjuncts(bound: Bound) -> tuple[Expr, ...]:
    """The parts that must all be true."""
    return bound.conjuncts


def columns(bound: Bound) -> tuple[str, ...]:
    """Dotted names of the columns and struct fields that are read, in the order of writing."""
    return tuple(dict.fromkeys(column.name for column in bound.columns))


def split_by_columns(bound: Bound, names: Collection[str]) -> tuple[Bound | None, Bound | None]:
    """Split a predicate into what can be decided from some columns alone, and the rest.

    Args:
        bound: The predicate.
        names: Dotted column names, such as the partition columns.

    Returns:
        The conjuncts that read only these columns (constants among them), and the others; None where there are none. The
        first can be evaluated over a table with one row per partition.
    """
    inside = [part for part in bound.conjuncts if _reads_only(part, names)]
    outside = [part for part in bound.conjuncts if not _reads_only(part, names)]
    return tuple(bound.with_conjuncts(parts) if parts else None for parts in (inside, outside))  # type: ignore[return-value]


def _reads_only(expr: Expr, names: Collection[str]) -> bool:
    return all(node.name in names for node in walk(expr) if isinstance(node, Column))


def equalities(bound: Bound) -> dict[str, pa.Array]:
    """Finite sets of values that the predicate allows a column.

    Returns:
        Dotted column name to its distinct values, typed as the column; a matching row has one of them. An empty array means
        that no row matches. Floats are left out: equal floats can have different texts.
    """
    found: dict[str, pa.Array] = {}
    for part in bound.conjuncts:
        allowed = _allowed(part)
        if allowed is not None:
            name, values = allowed
            found[name] = _common(found[name], values) if name in found else values
    return found


def _allowed(expr: Expr) -> tuple[str, pa.Array] | None:
    """The column and values of `c = v`, `c IN (…)`, or of an OR of such over one column."""
    if isinstance(expr, Or):
        parts = [_allowed(child) for child in expr.children]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or len({name for name, _values in known}) > 1:
            return None
        return known[0][0], pa.concat_arrays([values for _name, values in known]).unique()
    if isinstance(expr, And):
        return next((found for found in map(_allowed, expr.children) if found is not None), None)
    values: pa.Array | None = None
    if isinstance(expr, Compare) and expr.op in (CompareOp.EQ, CompareOp.NULL_SAFE_EQ) and isinstance(expr.right, Literal):
        child: Expr = expr.left
        if expr.op is CompareOp.EQ or not expr.right.is_null:
            values = pa.repeat(expr.right.scalar, 0 if expr.right.is_null else 1)
    elif isinstance(expr, InSet):
        child, values = expr.child, expr.values
    if values is None or not isinstance(child, Column) or is_floating(values.type):
        return None
    return child.name, values


def _common(left: pa.Array, right: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return left.filter(pc.is_in(left, value_set=right))


def keys_of(bound: Bound, fields: Sequence[str]) -> pa.Table | None:
    """The record keys that the predicate asks for, when it asks for finitely many.

    Args:
        bound: The predicate.
        fields: Dotted names of the fields that make the key; or the one column that holds it.

    Returns:
        One column per field, named as given, one row per combination of values: every matching row has one of them. None
        when a field is not bound to finitely many values, or there are more than a hundred thousand combinations.
    """
    sets = equalities(bound)
    if not fields or any(name not in sets for name in fields):
        return None
    values = [sets[name] for name in fields]
    total = 1
    for column in values:
        total *= len(column)
    if total > MAX_KEYS:
        return None
    if len(fields) == 1:
        return pa.table({fields[0]: values[0]})
    combined = list(itertools.product(*[range(len(column)) for column in values]))
    picks = [pa.array([row[i] for row in combined], pa.int64()) for i in range(len(fields))]
    return pa.table({name: column.take(pick) for name, column, pick in zip(fields, values, picks, strict=True)})


def to_parquet_filter(bound: Bound) -> Any | None:
    """A filter for pyarrow's Parquet scanner that keeps every row group, and every row, that the predicate may keep.

    It is weaker than the predicate where Arrow's comparisons differ from Spark's (NaN) or the part has no counterpart, so the
    predicate itself must still be evaluated on what is read.

    Returns:
        A `pyarrow.compute.Expression`, or None when nothing could be excluded.
    """
    return _weak(bound.expr)


def _weak(expr: Expr) -> Any | None:
    import pyarrow.compute as pc

    if isinstance(expr, And):
        known = [part for part in map(_weak, expr.children) if part is not None]
        return None if not known else _fold(known, lambda a, b: a & b)
    if isinstance(expr, Or):
        parts = [_weak(child) for child in expr.children]
        return None if any(part is None for part in parts) else _fold(parts, lambda a, b: a | b)
    if isinstance(expr, (IsNull, IsNotNull)) and isinstance(expr.child, Column) and len(expr.child.path) == 1:
        return pc.field(*expr.child.path).is_null() if isinstance(expr, IsNull) else pc.field(*expr.child.path).is_valid()
    if isinstance(expr, Compare) and isinstance(expr.left, Column) and isinstance(expr.right, Literal):
        return _weak_compare(expr.op, expr.left, expr.right)
    if isinstance(expr, InSet) and isinstance(expr.child, Column) and not is_floating(expr.values.type):
        return pc.field(*expr.child.path).isin(expr.values)
    if isinstance(expr, Column) and expr.type == pa.bool_():
        return pc.field(*expr.path)
    if isinstance(expr, Not) and isinstance(expr.child, Column):
        return ~pc.field(*expr.child.path)
    return None


def _weak_compare(op: CompareOp, column: Column, constant: Literal) -> Any | None:
    import pyarrow.compute as pc

    if constant.is_null or op is CompareOp.NULL_SAFE_EQ:
        return None
    one = pc.field(*column.path)
    value = pc.scalar(constant.scalar)
    if is_floating(constant.scalar.type):
        if constant.scalar.as_py() != constant.scalar.as_py() or op is CompareOp.NE:
            return None
        test = _operator(op, one, value)
        return test | pc.is_nan(one) if op in (CompareOp.GT, CompareOp.GE) else test
    return _operator(op, one, value)


def _operator(op: CompareOp, left: Any, right: Any) -> Any:
    if op is CompareOp.EQ:
        return left == right
    if op is CompareOp.NE:
        return left != right
    if op in (CompareOp.LT, CompareOp.LE):
        return left < right if op is CompareOp.LT else left <= right
    return left > right if op is CompareOp.GT else left >= right


def _fold(parts: list[Any], join: Any) -> Any:
    result = parts[0]
    for part in parts[1:]:
        result = join(result, part)
    return result
