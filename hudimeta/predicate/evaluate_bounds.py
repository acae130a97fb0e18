"""Files: which may hold a row that a predicate keeps, from bounds and counts alone, for all files at once.

The predicate is run over sets of values (:class:`~hudimeta.predicate.ranges.Range`) instead of values, and comes out as
an :class:`~hudimeta.predicate.ranges.PossibleTruth`: whether it may be true, may be false, may be null for some row. Every
rule gives a superset of what is possible, so a file that may not make the predicate true holds no row for which it is true,
however NOT, OR and functions are nested.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, scalar_of
from hudimeta.predicate.bind import Bound
from hudimeta.predicate.comparison import compare
from hudimeta.predicate.evaluate import split_like
from hudimeta.predicate.ranges import AFTER_ANY_UTF8, Mask, PossibleTruth, Range, Ranges, is_known, same_texts
from hudimeta.predicate.stats import FileStats
from hudimeta.predicate.tree import (
    And,
    Call,
    Compare,
    CompareOp,
    Expr,
    InSet,
    IsNotNull,
    IsNull,
    Literal,
    Match,
    MatchKind,
    Not,
    Or,
)
from hudimeta.predicate.types import is_floating

__all__ = ["Verdict", "may_match"]


@dataclass(frozen=True)
class Verdict:
    """Which files are left.

    Attributes:
        keep: One bool per file: False when the file surely holds no row that the predicate keeps.
        decided_by: int32 per file: index in `Bound.conjuncts` of the first part that excludes the file, -1 when kept.
    """

    keep: Mask
    decided_by: np.ndarray[Any, np.dtype[np.int32]]


def may_match(bound: Bound, stats: FileStats) -> Verdict:
    """Find the files that may hold a matching row.

    Args:
        bound: The predicate.
        stats: What is known about each file.

    Returns:
        The verdict; a column without statistics, a type that does not fit and a function without a rule all keep the file.
    """
    keep = np.ones(stats.length, dtype=bool)
    decided = np.full(stats.length, -1, dtype=np.int32)
    skipping = _Skipping(bound, stats, _never_nan(bound.conjuncts))
    for index, conjunct in enumerate(bound.conjuncts):
        excluded = keep & ~skipping.may_be_true(conjunct)
        np.copyto(decided, index, where=excluded)
        keep &= ~excluded
    return Verdict(keep, decided)


def _never_nan(conjuncts: tuple[Expr, ...]) -> frozenset[Expr]:
    """Float expressions that no matching row has NaN in, because a conjunct bounds them from above by a number.

    With them `x BETWEEN 1 AND 2` skips files although their statistics say nothing about NaN.
    """
    found = set()
    for part in conjuncts:
        if isinstance(part, Compare) and part.op in (CompareOp.LT, CompareOp.LE, CompareOp.EQ) and _is_number(part.right):
            found.add(part.left)
        elif isinstance(part, InSet) and is_floating(part.values.type):
            import pyarrow.compute as pc

            if not pc.any(pc.is_nan(part.values)).as_py():
                found.add(part.child)
    return frozenset(expr for expr in found if expr.type is not None and is_floating(expr.type))


def _is_number(expr: Expr) -> bool:
    if not isinstance(expr, Literal) or expr.is_null or not is_floating(expr.scalar.type):
        return False
    value = expr.scalar.as_py()
    return bool(value == value)


class _Skipping:
    """One predicate over one set of files."""

    def __init__(self, bound: Bound, stats: FileStats, never_nan: frozenset[Expr]) -> None:
        self.length = stats.length
        self.ranges = Ranges(bound, stats, never_nan, self.predicate)

    # predicates

    def may_be_true(self, expr: Expr) -> Mask:
        """The first part of `predicate`: for most expressions half the work."""
        if isinstance(expr, (And, Or)):
            parts = [self.may_be_true(child) for child in expr.children]
            return functools.reduce(np.logical_and if isinstance(expr, And) else np.logical_or, parts)
        if isinstance(expr, Compare):
            op, left, right = expr.op, expr.left, expr.right
            if op in (CompareOp.GT, CompareOp.GE):
                op, left, right = op.mirrored, right, left
            if op in (CompareOp.EQ, CompareOp.LT, CompareOp.LE):
                return self.may_hold(op, self.ranges.value(left), self.ranges.value(right))
        return self.predicate(expr).true

    def predicate(self, expr: Expr) -> PossibleTruth:
        """The outcome of a BOOLEAN expression."""
        if isinstance(expr, (And, Or)):
            return self.junction([self.predicate(child) for child in expr.children], is_and=isinstance(expr, And))
        if isinstance(expr, Not):
            inner = self.predicate(expr.child)
            return PossibleTruth(inner.false, inner.true, inner.null)
        if isinstance(expr, (IsNull, IsNotNull)):
            range_ = self.ranges.value(expr.child)
            filled = range_.value | range_.nan
            null, filled = (range_.null, filled) if isinstance(expr, IsNull) else (filled, range_.null)
            return PossibleTruth(null, filled, self.ranges.all(False))
        if isinstance(expr, Compare):
            return self.compare(expr.op, self.ranges.value(expr.left), self.ranges.value(expr.right))
        if isinstance(expr, InSet):
            return self.in_set(expr)
        if isinstance(expr, Match):
            return self.match(expr)
        if isinstance(expr, Call) and expr.name == "isnan":
            child = self.ranges.value(expr.args[0])
            return PossibleTruth(child.nan, child.value | child.null, self.ranges.all(False))
        return self.truth(self.ranges.value(expr))

    def truth(self, range_: Range) -> PossibleTruth:
        """A BOOLEAN value as a predicate."""
        if not pa.types.is_boolean(range_.low.type):
            return PossibleTruth(range_.value, range_.value, range_.null)
        true, false = self.ranges.mask(range_.high, True), ~self.ranges.mask(range_.low, False)
        return PossibleTruth(range_.value & true, range_.value & false, range_.null)

    def junction(self, parts: list[PossibleTruth], *, is_and: bool) -> PossibleTruth:
        """AND; OR is the same with true and false exchanged."""
        first = parts[0]
        all_of, any_of, null = (first.true, first.false, first.null) if is_and else (first.false, first.true, first.null)
        may_pass = all_of | null
        for part in parts[1:]:
            whole, single = (part.true, part.false) if is_and else (part.false, part.true)
            all_of = all_of & whole
            any_of = any_of | single
            # null needs one null, and all others null or passing
            null = (null & (whole | part.null)) | (part.null & may_pass)
            may_pass = may_pass & (whole | part.null)
        return PossibleTruth(all_of, any_of, null) if is_and else PossibleTruth(any_of, all_of, null)

    def compare(self, op: CompareOp, left: Range, right: Range) -> PossibleTruth:
        if op is CompareOp.NULL_SAFE_EQ:
            equal = self.compare(CompareOp.EQ, left, right)
            one_null = (left.null & (right.value | right.nan)) | (right.null & (left.value | left.nan))
            return PossibleTruth(equal.true | (left.null & right.null), equal.false | one_null, self.ranges.all(False))
        null = left.null | right.null
        if op in (CompareOp.GT, CompareOp.GE):
            return self.compare(op.mirrored, right, left)
        if op is CompareOp.NE:
            equal = self.compare(CompareOp.EQ, left, right)
            return PossibleTruth(equal.false, equal.true, null)
        true, values, known = self.may_hold(op, left, right), left.value & right.value, self.ranges
        if op is CompareOp.EQ:
            # one value on both sides is the only way not to differ
            single = known.surely(left.low, left.high) & known.surely(right.low, right.high)
            single &= known.surely(left.low, right.low)
            unlike = (left.nan & right.value) | (left.value & right.nan)
            return PossibleTruth(true, (values & ~single) | unlike, null)
        strict = op is CompareOp.LT
        opposite = CompareOp.LE if strict else CompareOp.LT
        false = (values & known.bounds(opposite, right.low, left.high)) | (left.nan & right.value)
        return PossibleTruth(true, false | (left.nan & right.nan) if strict else false, null)

    def may_hold(self, op: CompareOp, left: Range, right: Range) -> Mask:
        """Whether `=`, `<` or `<=` may be true."""
        possible, both_nan = self.ranges.bounds, left.nan & right.nan
        fits = possible(CompareOp.LE if op is CompareOp.EQ else op, left.low, right.high)
        if op is CompareOp.EQ:
            fits = fits & possible(CompareOp.LE, right.low, left.high)
        true = left.value & right.value & fits
        if op is not CompareOp.EQ:
            true |= left.value & right.nan
        return true if op is CompareOp.LT else true | both_nan

    def in_set(self, expr: InSet) -> PossibleTruth:
        """One constant between the bounds is enough; found by binary search, for all files at once."""
        import pyarrow.compute as pc

        child, values = self.ranges.value(expr.child), expr.values
        some = child.value | child.nan
        null = child.null | some if expr.has_null else child.null
        has_nan = is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())
        if has_nan:
            values = values.filter(pc.invert(pc.is_nan(values)))
        hit, single = self.ranges.all(False), self.ranges.all(False)
        if len(values):
            values = values.take(pc.array_sort_indices(values))
            position = self.first_at_least(values, child.low)
            nearest = values.take(array_of(np.minimum(position, len(values) - 1)))
            hit = (position < len(values)) & self.ranges.bounds(CompareOp.LE, nearest, child.high)
            single = self.ranges.surely(child.low, child.high) & self.ranges.surely(child.low, nearest)
        true = (child.value & hit) | (child.nan & has_nan)
        false = (child.value & ~single) | (child.nan & (not has_nan))
        return PossibleTruth(true, false & (not expr.has_null), null)

    def first_at_least(self, values: pa.Array, low: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Index of the first of the sorted values that is not less than each bound; 0 where there is none."""
        left, right = np.zeros(self.length, dtype=np.int64), np.full(self.length, len(values), dtype=np.int64)
        for _ in range(len(values).bit_length()):
            middle = (left + right) // 2
            inside = left < right
            probe = values.take(array_of(np.minimum(middle, len(values) - 1)))
            probe, low = same_texts(probe, low)
            less = inside & self.ranges.mask(compare(CompareOp.LT, probe, low), False)
            left = np.where(less, middle + 1, left)
            right = np.where(inside & ~less, middle, right)
        return left

    def match(self, expr: Match) -> PossibleTruth:
        """Patterns that fix how a text begins are tests of a range of texts."""
        child = self.ranges.value(expr.child)
        if expr.pattern is None:
            return PossibleTruth(self.ranges.all(False), self.ranges.all(False), self.ranges.all(True))
        prefix, only_prefix = "", False
        if expr.kind is MatchKind.STARTS_WITH:
            prefix, only_prefix = expr.pattern, True
        elif expr.kind is MatchKind.LIKE:
            prefix, rest = split_like(expr.pattern, expr.escape)
            if not rest:
                return self.compare(CompareOp.EQ, child, self.ranges.constant(scalar_of(prefix)))
            only_prefix = rest == "%"
        low, high = prefix.encode(), prefix.encode() + AFTER_ANY_UTF8
        may = self.ranges.bounds(CompareOp.LE, scalar_of(low), child.high)
        may &= self.ranges.bounds(CompareOp.LT, child.low, scalar_of(high))
        surely = self.ranges.all(False)
        if only_prefix:
            known = self.ranges.mask(is_known(child.low), False) & self.ranges.mask(is_known(child.high), False)
            begins = self.ranges.bounds(CompareOp.LE, scalar_of(low), child.low)
            surely = known & begins & self.ranges.bounds(CompareOp.LE, child.high, scalar_of(high))
        return PossibleTruth(child.value & may, child.value & ~surely, child.null)
