"""Values that are stored: as `evaluate`, but what Spark's ANSI mode refuses to compute is an error, not null.

A predicate that overflows leaves a row out; an assignment that overflows would put null in the place of a value, for good. So
`+ - * / % DIV` and casts raise where they find no value for operands that have one. As in Spark, only what is asked for is
computed: the branch of a CASE for the rows that take it, the right side of AND and OR where the left does not decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hudimeta.errors import PredicateError
from hudimeta.predicate.evaluate import Evaluation, Rows, batches_of
from hudimeta.predicate.function_kernels import choose, coalesce
from hudimeta.predicate.render import to_sql
from hudimeta.predicate.tree import And, Arithmetic, Call, Cast, Expr, Or
from hudimeta.predicate.value_kernels import choose_by_null

if TYPE_CHECKING:
    from hudimeta.predicate.bind import Bound

__all__ = ["evaluate_strictly"]


def evaluate_strictly(bound: Bound, table: pa.Table) -> pa.ChunkedArray:
    """The expression's value for every row, as `evaluate` gives it.

    Args:
        bound: What :func:`~hudimeta.predicate.bind.bind_value` returned.
        table: Rows with at least the columns that the expression reads.

    Raises:
        PredicateError: Some row overflows, divides by zero, or has a value that cannot be cast.

    Example:
        >>> bound = bind_value(parse_sql("fare / rides"), table.schema)
        >>> evaluate_strictly(bound, table)          # PredicateError where rides is 0
    """
    parts = [_StrictEvaluation(batch, bound.timezone).array(bound.expr) for batch in batches_of(bound, table)]
    return pa.chunked_array(parts, type=bound.expr.type)


class _StrictEvaluation(Evaluation):
    def _arithmetic(self, expr: Arithmetic) -> Any:
        operands = [self.array(expr.left), self.array(expr.right)]
        return _all_there(super()._arithmetic(expr), operands, expr, "overflows or divides by zero")

    def _cast(self, expr: Cast) -> Any:
        found = super()._cast(expr)
        if expr.lenient:
            return found
        return _all_there(found, [self.array(expr.child)], expr, "has no value of that type")

    def _and(self, expr: And) -> Any:
        return self._junction(expr, decides=False)

    def _or(self, expr: Or) -> Any:
        return self._junction(expr, decides=True)

    def _junction(self, expr: And | Or, *, decides: bool) -> pa.Array:
        import pyarrow.compute as pc

        join = pc.or_kleene if decides else pc.and_kleene
        result = self.array(expr.children[0])
        for child in expr.children[1:]:
            undecided = pc.not_equal(result, decides).fill_null(True)
            result = join(result, self._where(undecided, child))
        return result

    def _call(self, expr: Call) -> Any:
        import pyarrow.compute as pc

        from hudimeta.predicate.functions import FUNCTIONS

        run = FUNCTIONS[expr.name].run
        if run in (choose, choose_by_null):
            condition = self.array(expr.args[0])
            chosen = condition.is_valid() if run is choose_by_null else condition.fill_null(False)
            return pc.if_else(chosen, self._where(chosen, expr.args[1]), self._where(pc.invert(chosen), expr.args[2]))
        if run is coalesce:
            found = self.array(expr.args[0])
            for other in expr.args[1:]:
                found = pc.coalesce(found, self._where(found.is_null(), other))
            return found
        return super()._call(expr)

    def _where(self, mask: pa.BooleanArray, expr: Expr) -> pa.Array:
        """The value of rows for which `mask` is true, null for the others, which are not computed."""
        kept = mask.to_numpy(zero_copy_only=False)
        if kept.all():
            return self.array(expr)
        columns = {name: self.rows.column(name).filter(mask) for name in _columns_of(self.rows)}
        values = _StrictEvaluation(Rows(columns, int(kept.sum())), self.zone).array(expr)
        return values.take(pa.array(np.cumsum(kept) - 1, mask=~kept))


def _columns_of(rows: pa.RecordBatch | Rows) -> list[str]:
    return list(rows.columns) if isinstance(rows, Rows) else list(rows.schema.names)


def _all_there(found: pa.Array, operands: list[pa.Array], expr: Expr, what: str) -> pa.Array:
    """`found`, which has a value wherever all operands have one."""
    if not found.null_count or found.null_count == max(one.null_count for one in operands):
        return found  # as many nulls as the operand with the most of them: there where that one's are
    missing = np.asarray(found.is_null())
    for one in operands:
        missing &= np.asarray(one.is_valid())
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        values = ", ".join(repr(one[first].as_py()) for one in operands)
        count = f"{missing.sum():,} row{'s' * int(missing.sum() > 1)}"
        allowed = f"an expression that has a value in every row. It {what} in {count}, such as {values}"
        hint = "Choose the rows by a condition, or say what they get instead: CASE WHEN … END, or TRY_CAST, which gives NULL."
        raise PredicateError(to_sql(expr), allowed, hint, what="expression")
    return found
