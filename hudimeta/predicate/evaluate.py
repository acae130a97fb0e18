"""Rows: the value of a bound expression for every row of an Arrow table, exactly as Spark's `where` sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.errors import PredicateError
from hudimeta.predicate.arithmetic import arithmetic
from hudimeta.predicate.casts import cast_array, to_canonical
from hudimeta.predicate.comparison import compare, is_in
from hudimeta.predicate.regex_classes import literal_pattern
from hudimeta.predicate.render import to_sql
from hudimeta.predicate.tree import (
    And,
    Arithmetic,
    Call,
    Cast,
    Column,
    Compare,
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

if TYPE_CHECKING:
    from hudimeta.predicate.bind import Bound

__all__ = ["Evaluation", "Rows", "batches_of", "evaluate", "evaluate_batch", "fold", "like_to_regex", "match", "split_like"]

_SMALL_CHUNK = 1 << 14
_LARGEST_BATCH = 1 << 20
_NO_UTF8 = "Invalid UTF8"
"""Arrow's words for a BINARY that was cast to a STRING, where a kernel looks into it."""


def evaluate(bound: Bound, table: pa.Table) -> pa.ChunkedArray:
    """The predicate's (or expression's) value for every row.

    Args:
        bound: What :func:`~hudimeta.predicate.bind.bind` returned.
        table: Rows with at least the columns that the expression reads, of types that have the same Spark type as in the
            schema it was bound to; dictionary-coded, large and view arrays are welcome.

    Returns:
        For a predicate: a BOOLEAN array, null where SQL says unknown, so that `table.filter(...)` keeps what `where` keeps.
    """
    parts = [evaluate_batch(bound, batch) for batch in batches_of(bound, table)]
    return pa.chunked_array(parts, type=bound.expr.type)


def batches_of(bound: Bound, table: pa.Table) -> list[pa.RecordBatch | Rows]:
    """The columns that an expression reads, in batches that are worth a call of a kernel each."""
    wanted = sorted({column.path[0] for column in bound.columns})
    if not wanted:
        return [Rows({}, table.num_rows)]
    needed = table.select(wanted)
    if needed.num_rows and any(needed.num_rows / max(c.num_chunks, 1) < _SMALL_CHUNK for c in needed.columns):
        needed = needed.combine_chunks()
    return list(needed.to_batches(max_chunksize=_LARGEST_BATCH))


class Rows:
    """The columns of one batch, and how many rows there are even when no column is read."""

    def __init__(self, columns: dict[str, pa.Array], length: int) -> None:
        self.columns, self.num_rows = columns, length

    def column(self, name: str) -> pa.Array:
        return self.columns[name]


def evaluate_batch(bound: Bound, batch: pa.RecordBatch | Rows) -> pa.Array:
    """As :func:`evaluate`, over one record batch, giving one array."""
    return Evaluation(batch, bound.timezone).array(bound.expr)


def fold(expr: Expr, zone: str) -> Literal:
    """The constant that a bound expression without columns comes to."""
    value = Evaluation(Rows({}, 1), zone).array(expr)
    return Literal(value[0], type=expr.type)


class Evaluation:
    """The values of bound expressions over some rows; each column is converted once."""

    def __init__(self, rows: pa.RecordBatch | Rows, zone: str) -> None:
        self.rows, self.zone, self.length = rows, zone, rows.num_rows
        self.seen: dict[Column, pa.Array] = {}

    def array(self, expr: Expr) -> pa.Array:
        """The value as an array of as many elements as there are rows."""
        value = self.value(expr)
        return pa.repeat(value, self.length) if isinstance(value, pa.Scalar) else value

    def value(self, expr: Expr) -> Any:
        """The value as an array, or as a scalar when it is a constant."""
        if isinstance(expr, Literal):
            return expr.scalar
        if isinstance(expr, Column):
            return self.column(expr)
        method = getattr(self, f"_{type(expr).__name__.lower()}")
        try:
            return method(expr)
        except (UnicodeDecodeError, pa.ArrowInvalid) as error:
            if isinstance(error, pa.ArrowInvalid) and not str(error).startswith(_NO_UTF8):
                raise
            raise PredicateError(to_sql(expr), "an expression over texts of UTF-8", "Filter the rows after reading.") from error

    def column(self, expr: Column) -> pa.Array:
        if expr not in self.seen:
            import pyarrow.compute as pc

            values = self.rows.column(expr.path[0])
            for name in expr.path[1:]:
                values = pc.struct_field(values, name)
            values = to_canonical(values)
            # nested values stay as they are: their Arrow types may differ in names that mean nothing
            self.seen[expr] = (
                values
                if pa.types.is_nested(values.type) or values.type == expr.type
                else cast_array(values, expr.type, self.zone)
            )
        return self.seen[expr]

    def _and(self, expr: And) -> Any:
        import pyarrow.compute as pc

        result = self.array(expr.children[0])
        for child in expr.children[1:]:
            result = pc.and_kleene(result, self.value(child))
        return result

    def _or(self, expr: Or) -> Any:
        import pyarrow.compute as pc

        result = self.array(expr.children[0])
        for child in expr.children[1:]:
            result = pc.or_kleene(result, self.value(child))
        return result

    def _not(self, expr: Not) -> Any:
        import pyarrow.compute as pc

        return pc.invert(self.array(expr.child))

    def _isnull(self, expr: IsNull) -> Any:
        return self.array(expr.child).is_null()

    def _isnotnull(self, expr: IsNotNull) -> Any:
        return self.array(expr.child).is_valid()

    def _compare(self, expr: Compare) -> Any:
        left, right = self.value(expr.left), self.value(expr.right)
        if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
            left = pa.repeat(left, self.length)
        return compare(expr.op, left, right)

    def _inset(self, expr: InSet) -> Any:
        return is_in(self.array(expr.child), expr.values, has_null=expr.has_null)

    def _match(self, expr: Match) -> Any:
        return match(expr, self.array(expr.child))

    def _cast(self, expr: Cast) -> Any:
        return cast_array(self.array(expr.child), expr.target, self.zone)

    def _arithmetic(self, expr: Arithmetic) -> Any:
        assert expr.type is not None
        return arithmetic(expr.op, self.array(expr.left), self.array(expr.right), expr.type)

    def _call(self, expr: Call) -> Any:
        from hudimeta.predicate.functions import FUNCTIONS
        from hudimeta.predicate.signature import Context

        function = FUNCTIONS[expr.name]
        assert expr.type is not None
        args = [
            arg.scalar.as_py() if position in function.constants and isinstance(arg, Literal) else self.array(arg)
            for position, arg in enumerate(expr.args)
        ]
        return function.run(Context(self.zone, self.length, expr.type), args)


def match(expr: Match, texts: pa.Array) -> Any:
    """Match strings against a constant pattern."""
    import pyarrow.compute as pc

    from hudimeta.predicate.regex_kernels import search
    from hudimeta.predicate.text_kernels import lower_case

    if expr.pattern is None:
        return pa.nulls(len(texts), pa.bool_())
    if expr.kind is MatchKind.STARTS_WITH:
        return pc.starts_with(texts, expr.pattern)
    if expr.kind is MatchKind.ENDS_WITH:
        return pc.ends_with(texts, expr.pattern)
    if expr.kind is MatchKind.CONTAINS:
        return pc.match_substring(texts, expr.pattern)
    if expr.kind is MatchKind.RLIKE:
        return search(texts, expr.pattern)
    pattern = expr.pattern
    if expr.kind is MatchKind.ILIKE:  # both sides in lower case, as in Spark, which knows more pairs of letters than RE2
        texts, pattern = lower_case(texts), lower_case(pa.array([pattern]))[0].as_py()
    prefix, rest = split_like(pattern, expr.escape)
    if rest in ("", "%"):
        return pc.equal(texts, prefix) if rest == "" else pc.starts_with(texts, prefix)
    return pc.match_substring_regex(texts, like_to_regex(pattern, expr.escape))


def split_like(pattern: str, escape: str) -> tuple[str, str]:
    """The literal text that every match of a LIKE pattern begins with, and the rest of the pattern.

    The rest is empty when the pattern has no wildcard, and `%` when it asks for a prefix only.

    Raises:
        ConfigError: When something else than a wildcard or the escape character itself is escaped.
    """
    prefix, at = "", 0
    while at < len(pattern):
        character = pattern[at]
        if character == escape:
            prefix, at = prefix + _escaped(pattern, escape, at + 1), at + 2
        elif character in "%_":
            break
        else:
            prefix, at = prefix + character, at + 1
    rest = pattern[at:]
    return prefix, "%" if rest and not rest.strip("%") else rest


def like_to_regex(pattern: str, escape: str) -> str:
    """A LIKE pattern as an anchored RE2 expression: `%` any text, `_` any character, newlines included."""
    result, at = "", 0
    while at < len(pattern):
        character = pattern[at]
        if character == escape:
            result, at = result + literal_pattern(_escaped(pattern, escape, at + 1)), at + 2
        else:
            result, at = result + {"%": ".*", "_": "."}.get(character, literal_pattern(character)), at + 1
    return rf"(?s)\A{result}\z"


def _escaped(pattern: str, escape: str, at: int) -> str:
    character = pattern[at : at + 1]
    if character and character in ("%", "_", escape):
        return character
    allowed = f"{escape} only before %, _ and {escape}, as in Spark"
    raise PredicateError(pattern, allowed, f"Write {escape * 2} for {escape}.", what="LIKE pattern")
