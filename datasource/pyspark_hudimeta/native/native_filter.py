"""The option `hudimeta.filter` as a `where` of Spark's, where both are certain to mean the same.

The engine's filters and Spark's differ in corners: texts of times without a zone are UTC there and of the session's zone here,
and where Spark raises an error for a value the engine says null. Comparisons of columns with constants have no such corners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudimeta.predicate import Expr, bind, parse, to_sql
from hudimeta.predicate.tree import And, Column, Compare, InSet, IsNotNull, IsNull, Literal, Match, MatchKind, Not, Or, walk

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["native_filter"]

_SAME_IN_SPARK = (And, Column, Compare, InSet, IsNotNull, IsNull, Literal, Match, Not, Or)


def native_filter(text: str | None, schema: pa.Schema) -> tuple[str, str | None, Expr | None]:
    """A filter for Spark.

    Args:
        text: The option's value; None for no filter.
        schema: Of the table.

    Returns:
        Why Spark cannot apply it, "" when it can; the SQL that Spark applies; the bound predicate, for skipping files.

    Raises:
        ConfigError: The filter does not fit the table.
    """
    if text is None:
        return "", None, None
    expr = bind(parse(text), schema).expr
    odd = [node for node in walk(expr) if not isinstance(node, _SAME_IN_SPARK) or _is_regex(node)]
    if odd:
        return f"Spark may judge a part of hudimeta.filter in another way: {to_sql(odd[0])}", None, None
    return "", to_sql(expr, exact=True), expr


def _is_regex(node: Expr) -> bool:
    return isinstance(node, Match) and node.kind is MatchKind.RLIKE
