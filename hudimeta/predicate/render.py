"""Expression trees as Spark SQL, for reports and messages, or exactly, so that reading the text again gives the same tree."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from typing import Any

import pyarrow as pa

from hudimeta.predicate.tree import (
    FIELD,
    ITEM,
    And,
    Arithmetic,
    Call,
    Cast,
    Column,
    Compare,
    Expr,
    In,
    InSet,
    IsNotNull,
    IsNull,
    Literal,
    Match,
    MatchKind,
    Not,
    Or,
)
from hudimeta.predicate.types import DATE, INSTANT, LOCAL_TIMESTAMP, is_decimal, is_floating, is_integer, type_name

__all__ = ["to_sql"]

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SUFFIXES = {pa.int8(): "Y", pa.int16(): "S", pa.int64(): "L"}
_SHOWN_IN_LIST = 20


def to_sql(expr: Expr, *, exact: bool = False) -> str:
    """Render a tree, bound or not.

    Args:
        expr: The tree.
        exact: Give constants the suffixes of their types and quote every name, so that the text means the same tree again;
            else write as a person would, and cut long IN lists short.

    Returns:
        SQL in Spark's dialect.
    """
    return _Writer(exact).text(expr)


class _Writer:
    def __init__(self, exact: bool) -> None:
        self.exact = exact

    def text(self, expr: Expr) -> str:
        writing: str = getattr(self, f"_{type(expr).__name__.lower()}")(expr)
        return writing

    def inner(self, expr: Expr) -> str:
        """As an operand: in parentheses unless it is a unit by itself."""
        text = self.text(expr)
        return text if isinstance(expr, (Column, Literal, Call, Cast)) else f"({text})"

    def _column(self, expr: Column) -> str:
        return ".".join(self.name(part) for part in expr.path)

    def name(self, name: str) -> str:
        if not self.exact and _PLAIN_NAME.fullmatch(name):
            return name
        return "`" + name.replace("`", "``") + "`"

    def _literal(self, expr: Literal) -> str:
        t, scalar = expr.scalar.type, expr.scalar
        if not scalar.is_valid:
            return f"CAST(NULL AS {type_name(t)})" if self.exact and not pa.types.is_null(t) else "NULL"
        if t in (INSTANT, LOCAL_TIMESTAMP):
            return _timestamp(scalar)
        if t == DATE:
            return _date(scalar)
        value: Any = scalar.as_py()
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if is_integer(t):
            return f"{value}{_SUFFIXES.get(t, '') if self.exact else ''}"
        if is_floating(t):
            return self.float_text(value, t)
        if is_decimal(t):
            return self.decimal_text(value, t)
        if isinstance(value, bytes):
            return f"X'{value.hex().upper()}'"
        return _quoted(str(value))

    def float_text(self, value: float, t: pa.DataType) -> str:
        if not math.isfinite(value):
            word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return f"CAST('{word}' AS {type_name(t)})"
        if not self.exact:
            return repr(value)
        return f"CAST('{value!r}' AS {type_name(t)})"

    def decimal_text(self, value: decimal.Decimal, t: pa.DataType) -> str:
        text = format(value, "f")
        return f"CAST('{text}' AS {type_name(t)})" if self.exact and t.precision <= 38 else text

    def _compare(self, expr: Compare) -> str:
        return f"{self.inner(expr.left)} {expr.op.value} {self.inner(expr.right)}"

    def _in(self, expr: In) -> str:
        return f"{self.inner(expr.child)} IN ({', '.join(self.inner(item) for item in expr.items)})"

    def _inset(self, expr: InSet) -> str:
        shown = expr.values if self.exact else expr.values[:_SHOWN_IN_LIST]
        items = [self._literal(Literal(value, type=value.type)) for value in shown]
        if len(shown) < len(expr.values):
            items.append(f"… {len(expr.values) - len(shown)} more")
        if expr.has_null:
            items.append("NULL")
        return f"{self.inner(expr.child)} IN ({', '.join(items)})" if items else "FALSE"

    def _and(self, expr: And) -> str:
        return " AND ".join(self.part(child) for child in expr.children)

    def _or(self, expr: Or) -> str:
        return " OR ".join(self.part(child) for child in expr.children)

    def part(self, expr: Expr) -> str:
        text = self.text(expr)
        return f"({text})" if isinstance(expr, (And, Or)) or self.exact else text

    def _not(self, expr: Not) -> str:
        return f"NOT ({self.text(expr.child)})"

    def _isnull(self, expr: IsNull) -> str:
        return f"{self.inner(expr.child)} IS NULL"

    def _isnotnull(self, expr: IsNotNull) -> str:
        return f"{self.inner(expr.child)} IS NOT NULL"

    def _match(self, expr: Match) -> str:
        child = self.inner(expr.child)
        pattern = "CAST(NULL AS STRING)" if expr.pattern is None else _quoted(expr.pattern)
        if expr.kind in (MatchKind.STARTS_WITH, MatchKind.ENDS_WITH, MatchKind.CONTAINS):
            return f"{expr.kind.value}({child}, {pattern})"
        escape = f" ESCAPE {_quoted(expr.escape)}" if expr.escape != "\\" else ""
        return f"{child} {expr.kind.value} {pattern}{escape}"

    def _cast(self, expr: Cast) -> str:
        return f"{'TRY_CAST' if expr.lenient else 'CAST'}({self.text(expr.child)} AS {type_name(expr.target)})"

    def _arithmetic(self, expr: Arithmetic) -> str:
        return f"{self.inner(expr.left)} {expr.op.value} {self.inner(expr.right)}"

    def _call(self, expr: Call) -> str:
        if expr.name == ITEM:
            return f"{self.inner(expr.args[0])}[{self.text(expr.args[1])}]"
        if expr.name == FIELD and isinstance(expr.args[1], Literal):
            return f"{self.inner(expr.args[0])}.{self.name(str(expr.args[1].scalar.as_py()))}"
        if expr.name in ("&", "|", "^"):
            return f"({self.inner(expr.args[0])} {expr.name} {self.inner(expr.args[1])})"
        if expr.name == "~":
            return f"~{self.inner(expr.args[0])}"
        return f"{expr.name}({', '.join(self.text(arg) for arg in expr.args)})"


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\\": "\\\\", "'": "\\'"}


def _quoted(text: str) -> str:
    return "'" + "".join(_ESCAPES.get(character, character) for character in text) + "'"


def _timestamp(scalar: pa.Scalar) -> str:
    """With a Z for instants, so that the text means the same in every session zone."""
    word, end = ("TIMESTAMP", "Z") if scalar.type == INSTANT else ("TIMESTAMP_NTZ", "")
    moment = dt.datetime(1970, 1, 1)
    try:
        text = str(moment + dt.timedelta(microseconds=scalar.value))
    except OverflowError:
        local = scalar.cast(LOCAL_TIMESTAMP) if scalar.type != LOCAL_TIMESTAMP else scalar
        text = str(local.cast(pa.string()).as_py())
    return f"{word} '{text}{end}'"


def _date(scalar: pa.Scalar) -> str:
    return f"DATE '{scalar.cast(pa.string()).as_py()}'"
