"""Sets of values: what an expression may come to in each of many files, from bounds and counts.

A :class:`Range` says between which bounds the values of an expression lie, and whether one may be null, may be NaN, or may be
anything else. Every rule gives a superset of what is possible; what has no rule is unknown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, fill_null, flags, numpy_of, scalar_of
from hudimeta.predicate.bind import Bound
from hudimeta.predicate.casts import can_cast, cast_array, cast_is_monotone, cast_is_total, to_canonical
from hudimeta.predicate.comparison import compare
from hudimeta.predicate.functions import FUNCTIONS
from hudimeta.predicate.local_time import SECOND_US
from hudimeta.predicate.signature import Context
from hudimeta.predicate.stats import ColumnBounds, FileStats
from hudimeta.predicate.tree import (
    Arithmetic,
    ArithmeticOp,
    Call,
    Cast,
    Column,
    CompareOp,
    Expr,
    Literal,
)
from hudimeta.predicate.types import LONG, STRING, is_decimal, is_floating, is_integer, is_numeric

__all__ = ["AFTER_ANY_UTF8", "Mask", "PossibleTruth", "Range", "Ranges", "is_known", "same_texts"]

Mask = np.ndarray[Any, np.dtype[np.bool_]]
_TEXTS = (STRING, pa.binary())
AFTER_ANY_UTF8 = b"\xff"
"""A byte that no UTF-8 text holds: text + this is greater than every text that begins with text."""


@dataclass
class Range:
    """The values that an expression may take in each file.

    Attributes:
        low, high: Array or scalar of the expression's type (or binary for cut-off strings); null where unbounded. NaN is not
            among the values that they enclose, unless as a bound itself.
        null, value, nan: Whether a row may be null, may be neither null nor NaN, may be NaN.
    """

    low: Any
    high: Any
    null: Mask
    value: Mask
    nan: Mask


@dataclass
class PossibleTruth:
    """Whether a predicate may be true, false or null for a row of each file."""

    true: Mask
    false: Mask
    null: Mask


class Ranges:
    """The expressions of one predicate over one set of files.

    Args:
        bound: The predicate.
        stats: What is known about each file.
        never_nan: Float expressions that are NaN in no row that counts.
        outcome: How a BOOLEAN expression that is no column, cast or call comes out.
    """

    def __init__(
        self, bound: Bound, stats: FileStats, never_nan: frozenset[Expr], outcome: Callable[[Expr], PossibleTruth]
    ) -> None:
        self.zone, self.stats, self.never_nan, self.outcome = bound.timezone, stats, never_nan, outcome
        self.length = stats.length
        self.ranges: dict[Expr, Range] = {}

    def all(self, value: bool) -> Mask:
        return np.full(self.length, value, dtype=bool)

    def mask(self, values: Any, unknown: bool) -> Mask:
        """An Arrow BOOLEAN array or scalar as a mask, null being `unknown`."""
        if isinstance(values, pa.Scalar):
            return self.all(values.as_py() if values.is_valid else unknown)
        if values.null_count:
            values = fill_null(values, unknown)
        return flags(values)

    def bounds(self, op: CompareOp, low: Any, high: Any) -> Mask:
        """Whether `low op high` is possible; unknown bounds allow all."""
        low, high = same_texts(low, high)
        return self.mask(compare(op, low, high), True)

    def surely(self, left: Any, right: Any) -> Mask:
        """Whether two bounds are known and equal."""
        left, right = same_texts(left, right)
        return self.mask(compare(CompareOp.EQ, left, right), False)

    def value(self, expr: Expr) -> Range:
        """The range of an expression; computed once per expression."""
        if expr not in self.ranges:
            range_ = self.fresh(expr)
            if expr in self.never_nan:
                range_ = Range(range_.low, range_.high, range_.null, range_.value, self.all(False))
            self.ranges[expr] = range_
        return self.ranges[expr]

    def fresh(self, expr: Expr) -> Range:
        if isinstance(expr, Literal):
            return self.constant(expr.scalar)
        indexed = self.stats.expressions.get(expr)
        if indexed is not None:
            return self.of_bounds(indexed, expr.type)
        if isinstance(expr, Column):
            known = self.stats.columns.get(expr.name)
            return self.unknown(expr.type) if known is None else self.of_bounds(known, expr.type)
        if isinstance(expr, Cast):
            return self.cast(expr)
        if isinstance(expr, Call):
            return self.call(expr)
        if isinstance(expr, Arithmetic):
            return self.arithmetic(expr)
        if expr.type == pa.bool_():
            return self.of_outcome(self.outcome(expr))
        return self.unknown(expr.type)

    def unknown(self, t: pa.DataType | None, null: Mask | None = None, value: Mask | None = None) -> Range:
        t = t if t is not None else pa.null()
        nothing = scalar_of(None, t if not pa.types.is_nested(t) else pa.null())
        anything = self.all(True)
        nan = (value if value is not None else anything) if is_floating(t) else self.all(False)
        return Range(nothing, nothing, anything if null is None else null, anything if value is None else value, nan)

    def constant(self, scalar: pa.Scalar) -> Range:
        valid = self.all(scalar.is_valid)
        nan = scalar.is_valid and is_floating(scalar.type) and scalar.as_py() != scalar.as_py()
        nothing = scalar_of(None, scalar.type)
        return Range(nothing if nan else scalar, nothing if nan else scalar, ~valid, valid & (not nan), self.all(nan))

    def of_outcome(self, outcome: PossibleTruth) -> Range:
        value = outcome.true | outcome.false
        return Range(array_of(~outcome.false), array_of(outcome.true), outcome.null, value, self.all(False))

    def of_bounds(self, known: ColumnBounds, t: pa.DataType | None) -> Range:
        """Bounds and counts of a column as a range."""
        if t is None or len(known.min) != self.length or len(known.max) != self.length:
            return self.unknown(t)
        low, high = (_typed(bound, t, self.zone) for bound in (known.min, known.max))
        rows, nulls = (None if counts is None else counts.cast(pa.int64()) for counts in (known.value_count, known.null_count))
        null, value = self.all(True), self.all(True)
        # bounds that contradict the counts are believed: a value there is, then
        bounded = _are_known(known.min) | _are_known(known.max)
        zero = scalar_of(0, pa.int64())
        if nulls is not None:
            null = self.mask(compare(CompareOp.GT, nulls, zero), True)
        if rows is not None:
            some = self.mask(compare(CompareOp.GT, rows, zero), True)
            value = some | bounded
            if nulls is None:
                null = some
            else:
                # Hudi before 1.0 leaves nulls out of the count of log files: nulls that are counted are there all the same.
                null &= some | self.mask(compare(CompareOp.GT, nulls, zero), False)
            if nulls is not None:
                value &= self.mask(compare(CompareOp.LT, nulls, rows), True) | bounded
        if low is None or high is None:
            return self.unknown(t, null, value)
        if is_floating(t):
            return self.float_range(low, high, null, value, known.nan_aware)
        if t in _TEXTS and np.any(known.truncated):
            high = _after_prefix(high, np.broadcast_to(np.asarray(known.truncated), (self.length,)))
        return Range(low, high, null, value, self.all(False))

    def float_range(self, low: pa.Array, high: pa.Array, null: Mask, value: Mask, aware: Any) -> Range:
        """NaN taken out of the bounds: as a maximum it says that there may be one, as an aware minimum that all are."""
        import pyarrow.compute as pc

        nan_low, nan_high = (self.mask(pc.is_nan(bound), False) for bound in (low, high))
        known_high = numpy_of(high.is_valid())
        may_be_nan = value & (nan_high | nan_low | ~known_high | ~np.broadcast_to(np.asarray(aware), (self.length,)))
        all_nan = nan_low & np.asarray(aware)
        nothing = scalar_of(None, low.type)
        low = pc.if_else(array_of(nan_low), nothing, low) if nan_low.any() else low
        high = pc.if_else(array_of(nan_high), nothing, high) if nan_high.any() else high
        return Range(low, high, null, value & ~all_nan, may_be_nan)

    def cast(self, expr: Cast) -> Range:
        child, source = self.value(expr.child), expr.child.type
        assert source is not None
        total = cast_is_total(source, expr.target)
        null = child.null if total else child.null | child.value | child.nan
        if not cast_is_monotone(source, expr.target, self.zone) or child.low.type != source or child.high.type != source:
            return self.unknown(expr.target, null, child.value | child.nan)
        low, high = (_on_bound(lambda array: cast_array(array, expr.target, self.zone), end) for end in (child.low, child.high))
        if is_integer(expr.target) and not total:
            if child.nan.any():
                return self.unknown(expr.target, null, child.value | child.nan)
            low, high = _unless_wrapped(low, high)
        nan = child.nan if is_floating(expr.target) else self.all(False)
        return Range(low, high, null, child.value, nan)

    def call(self, expr: Call) -> Range:
        """A function of one argument that keeps or reverses its order; others are known only by their nulls."""
        function = FUNCTIONS[expr.name]
        args = [self.value(arg) for arg in expr.args]
        null = functools.reduce(np.logical_or, [arg.null for arg in args])
        some = functools.reduce(np.logical_and, [arg.value | arg.nan for arg in args])
        if not function.total:
            return self.monotone_call(expr, args, self.all(True), self.all(True))
        return self.monotone_call(expr, args, null, some)

    def monotone_call(self, expr: Call, args: list[Range], null: Mask, value: Mask) -> Range:
        function, first = FUNCTIONS[expr.name], args[0]
        types = [arg.type if arg.type is not None else pa.null() for arg in expr.args]
        constants = {i: _plain_value(arg.scalar) for i, arg in enumerate(expr.args) if i and isinstance(arg, Literal)}
        order = 0
        if len(constants) == len(args) - 1 and None not in constants.values() and first.low.type == first.high.type == types[0]:
            order = function.order(types, constants, self.zone)
        lost_nan = is_floating(types[0]) and expr.type is not None and not is_floating(expr.type) and bool(first.nan.any())
        if not order or expr.type is None or lost_nan:  # what NaN becomes elsewhere is no largest value
            return self.unknown(expr.type, null, value)
        result = expr.type

        def run(array: pa.Array) -> pa.Array:
            rest = [
                constants[i] if i in function.constants else pa.repeat(arg.scalar, len(array))
                for i, arg in enumerate(expr.args)
                if i and isinstance(arg, Literal)
            ]
            return function.run(Context(self.zone, len(array), result), [array, *rest])

        ends = _countable(first.low, first.high) if expr.name == "from_unixtime" else (first.low, first.high)
        low, high = (_on_bound(run, end) for end in (ends if order > 0 else reversed(ends)))
        if expr.name in ("date_format", "from_unixtime"):
            low, high = _four_digit_years(low, high)
        nan = first.nan if is_floating(result) else self.all(False)
        return Range(low, high, null, value, nan)

    def arithmetic(self, expr: Arithmetic) -> Range:
        """Adding or subtracting a constant moves integer and decimal bounds along."""
        child, other = self.value(expr.left), self.value(expr.right)
        value = (child.value | child.nan) & (other.value | other.nan)
        t = expr.type
        constant_moves = isinstance(expr.right, Literal) and not expr.right.is_null
        moves = constant_moves and expr.op in (ArithmeticOp.ADD, ArithmeticOp.SUBTRACT)
        if not moves or t is None or not (is_integer(t) or is_decimal(t)) or child.low.type != expr.left.type:
            return self.unknown(t, self.all(True), value)
        from hudimeta.predicate.arithmetic import arithmetic

        constant = other.low

        def run(array: pa.Array) -> pa.Array:
            return arithmetic(expr.op, array, pa.repeat(constant, len(array)), t)

        low, high = _on_bound(run, child.low), _on_bound(run, child.high)
        if is_integer(t):
            low, high = _unless_wrapped(low, high)
        return Range(low, high, self.all(True), value, self.all(False))


def _plain_value(scalar: pa.Scalar) -> Any:
    """A constant in Python; None for nothing, and for a time of a year that Python has not."""
    try:
        return scalar.as_py()
    except OverflowError:
        return None


def _on_bound(run: Callable[[pa.Array], pa.Array], bound: Any) -> Any:
    """Apply an array function to a bound that may be a scalar."""
    return run(pa.repeat(bound, 1))[0] if isinstance(bound, pa.Scalar) else run(bound)


def _unless_wrapped(low: Any, high: Any) -> tuple[Any, Any]:
    """Both bounds, or none where one has no place in its type: without ANSI mode, Spark lets values wrap around there."""
    import pyarrow.compute as pc

    both = pc.and_(is_known(low), is_known(high))
    nothing = scalar_of(None, low.type)
    return pc.if_else(both, low, nothing), pc.if_else(both, high, nothing)


def is_known(bound: Any) -> Any:
    return scalar_of(bound.is_valid) if isinstance(bound, pa.Scalar) else bound.is_valid()


def _are_known(bounds: pa.Array) -> Mask:
    return flags(bounds.is_valid())


def same_texts(left: Any, right: Any) -> tuple[Any, Any]:
    """Both sides binary when one is (their order is that of strings), both sides of one type in any case."""
    if left.type == right.type:
        return left, right
    binary = pa.binary()
    if left.type in _TEXTS and right.type in _TEXTS:
        return left.cast(binary), right.cast(binary)
    null = pa.types.is_null(left.type)
    nothing = scalar_of(None, right.type if null else left.type)
    return (nothing, right) if null else (left, nothing)


def _typed(bound: pa.Array, t: pa.DataType, zone: str) -> pa.Array | None:
    """A bound in the column's type; None when its order is not that of the column."""
    bound = to_canonical(bound)
    if bound.type == t:
        return bound
    if pa.types.is_null(bound.type):
        return pa.nulls(len(bound), t)
    numbers = is_numeric(bound.type) and is_numeric(t) and not (is_floating(bound.type) and not is_floating(t))
    if not numbers and not (can_cast(bound.type, t) and cast_is_monotone(bound.type, t, zone)):
        return None
    return cast_array(bound, t, zone)


def _after_prefix(high: pa.Array, cut: Mask) -> pa.Array:
    """Upper bounds that hold for every continuation of a bound that may have been cut off."""
    import pyarrow.compute as pc

    whole = high.cast(pa.binary())
    # 4096 such bytes are above every binary value that anybody cuts; texts never hold one
    more = scalar_of(AFTER_ANY_UTF8 * (1 if high.type == STRING else 4096))
    longer = pc.binary_join_element_wise(whole, more, scalar_of(b""))
    return pc.if_else(array_of(cut), longer, whole)


def _countable(low: Any, high: Any) -> tuple[Any, Any]:
    """Both bounds in seconds, or none where the microseconds of one need more than 64 bits: Spark lets them wrap around."""
    import pyarrow.compute as pc

    most = scalar_of(np.iinfo(np.int64).max // SECOND_US, LONG)
    both = pc.and_(pc.less_equal(pc.negate(most), low), pc.less_equal(high, most))
    nothing = scalar_of(None, LONG)
    return pc.if_else(both, low, nothing), pc.if_else(both, high, nothing)


def _four_digit_years(low: Any, high: Any) -> tuple[Any, Any]:
    """Both bounds, or none where one is unknown or of a year whose text sorts elsewhere."""
    import pyarrow.compute as pc

    def fine(bound: Any) -> Any:
        return fill_null(pc.match_substring_regex(bound, r"^\d{4}"), False)

    if isinstance(low, pa.Scalar) or isinstance(high, pa.Scalar):
        nothing = scalar_of(None, STRING)
        return nothing, nothing
    same_width = fill_null(pc.equal(pc.utf8_length(low), pc.utf8_length(high)), False)
    good = pc.and_(pc.and_(fine(low), fine(high)), same_width)
    nothing = scalar_of(None, STRING)
    return pc.if_else(good, low, nothing), pc.if_else(good, high, nothing)
