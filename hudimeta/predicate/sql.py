"""SQL text in Spark's dialect to expression trees.

sqlglot's Spark dialect does the tokens and the grammar; its rewriting of functions is switched off, so that a call arrives
here under the name and with the arguments that the user wrote. Whatever is not a row-wise predicate over columns
(sub-queries, aggregates, windows, parameters, intervals) is refused with the part that is in the way.
"""

from __future__ import annotations

import decimal
import functools
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.errors import PredicateError
from hudimeta.predicate.quotes import with_escaped_quotes
from hudimeta.predicate.sql_words import ARITHMETIC, BITS, COMPARISONS, MATCH_FUNCTIONS, MATCHES, TYPE_FUNCTIONS, TYPES
from hudimeta.predicate.tree import (
    FIELD,
    ITEM,
    Arithmetic,
    Call,
    Cast,
    Column,
    Compare,
    CompareOp,
    Expr,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Match,
    MatchKind,
    Not,
    all_of,
    any_of,
    between,
    literal,
)
from hudimeta.predicate.types import bounded_decimal
from hudimeta.types import is_text

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["ALLOWED", "parse_sql"]

ALLOWED = (
    "a row-wise predicate in Spark SQL: columns (dotted for struct fields, `backticks` for odd names), constants, "
    "= <> < <= > >= <=>, IN, BETWEEN, LIKE, ILIKE, RLIKE, IS [NOT] NULL, AND, OR, NOT, + - * / % DIV || & | ^ ~, CAST, CASE, "
    "list[i], map[key], and the functions that docs/predicates.md lists"
)
MAX_TEXT = 1_000_000
"""Longest text that is parsed, in characters; longer predicates belong into a join."""
_SHOWN = 200
"""Characters of a part that an error names."""
_MOST_DIGITS = 38
"""Of a number; Python refuses to make one of some thousand digits."""


def parse_sql(text: str, *, qualified: bool = False) -> Expr:
    """Parse one predicate.

    Args:
        text: SQL such as `dep_delay > 60 AND origin IN ('JFK', 'LGA')`.
        qualified: Mark columns as possibly qualified by an alias (`v.id`), as in text rendered by Catalyst.

    Returns:
        The unbound tree.

    Raises:
        ConfigError: Naming the part that cannot be parsed or is no predicate.
    """
    if not text.strip():
        raise PredicateError(text, ALLOWED, "The text is empty.")
    if not is_text(text):
        raise PredicateError(text[:60], "text without halves of surrogate pairs")
    if len(text) > MAX_TEXT:
        raise PredicateError(text[:60] + "…", f"at most {MAX_TEXT} characters")
    from sqlglot.errors import ParseError, TokenError

    try:
        parsed = _dialect()().parse(with_escaped_quotes(text))
    except ParseError as error:
        raise PredicateError(text, ALLOWED, _where(error.errors)) from error
    except (TokenError, ValueError, RecursionError) as error:
        hint = "Is a quote or a parenthesis open?"
        raise PredicateError(text, ALLOWED, f"The text breaks off. {hint}") from error
    if len(parsed) != 1 or parsed[0] is None:
        raise PredicateError(text, ALLOWED, "The text holds more than one statement.")
    try:
        return _Translation(text, qualified).expr(parsed[0])
    except RecursionError as error:
        raise PredicateError(text, "expressions that are nested less deeply") from error


def _where(errors: list[dict[str, Any]]) -> str:
    if not errors:
        return ""
    first = errors[0]
    return f"At column {first['col']}, near {first['highlight']!r}: {first['description'].rstrip('.')}."


@functools.cache
def _dialect() -> Any:
    """Spark's dialect with functions left as written (`year(d)` stays a call of `year`)."""
    from sqlglot.dialects.spark import Spark

    class Parser(Spark.Parser):  # type: ignore[misc]
        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012
        NO_PAREN_FUNCTIONS: dict[Any, Any] = {}  # noqa: RUF012
        NO_PAREN_FUNCTION_PARSERS = {"CASE": Spark.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}  # noqa: RUF012
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: Spark.Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "TRIM", "EXTRACT")
        }

    class Predicate(Spark):  # type: ignore[misc]
        pass

    Predicate.parser_class = Parser
    Predicate.Parser = Parser
    return Predicate


class _Translation:
    """One text on its way from sqlglot's tree to ours."""

    def __init__(self, text: str, qualified: bool) -> None:
        self.text, self.qualified = text, qualified

    def refuse(self, node: exp.Expression, why: str) -> PredicateError:
        part = node.sql(dialect="spark")
        shown = part if len(part) <= _SHOWN else f"{part[:_SHOWN]}…"
        return PredicateError(self.text, ALLOWED, f"The part {shown!r} {why}.")

    def expr(self, node: exp.Expression) -> Expr:
        """Translate any node; methods are named after sqlglot's classes."""
        kind = type(node).__name__
        if kind in COMPARISONS:
            return Compare(COMPARISONS[kind], self.expr(node.this), self.expr(node.expression))
        if kind in ARITHMETIC:
            return Arithmetic(ARITHMETIC[kind], self.expr(node.this), self.expr(node.expression))
        if kind in MATCHES:
            return self.match(MATCHES[kind], node)
        if kind in BITS:
            return Call(BITS[kind], (self.expr(node.this), self.expr(node.expression)))
        method = getattr(self, f"_{kind.lower()}", None)
        if method is None:
            raise self.refuse(node, "is not a part of a row-wise predicate")
        result: Expr = method(node)
        return result

    def _paren(self, node: exp.Expression) -> Expr:
        return self.expr(node.this)

    def _and(self, node: exp.Expression) -> Expr:
        return all_of([self.expr(part) for part in node.flatten()])

    def _or(self, node: exp.Expression) -> Expr:
        return any_of([self.expr(part) for part in node.flatten()])

    def _not(self, node: exp.Expression) -> Expr:
        return Not(self.expr(node.this))

    def _neg(self, node: exp.Expression) -> Expr:
        inner = node.this
        if type(inner).__name__ == "Literal" and not inner.is_string:
            return self.number("-" + inner.this)
        if type(inner).__name__ in ("Cast", "TryCast"):
            number = self._typed_number(inner, "-")  # -128Y is a constant, though 128Y is none
            if number is not None:
                return number
        return Call("negative", (self.expr(inner),))

    def _null(self, _node: exp.Expression) -> Expr:
        return literal(None)

    def _boolean(self, node: exp.Expression) -> Expr:
        return literal(bool(node.this))

    def _literal(self, node: exp.Expression) -> Expr:
        return literal(node.this) if node.is_string else self.number(node.this)

    def _rawstring(self, node: exp.Expression) -> Expr:
        return literal(node.this)

    def _hexstring(self, node: exp.Expression) -> Expr:
        digits = str(node.this)
        return literal(bytes.fromhex("0" * (len(digits) % 2) + digits))

    def number(self, text: str) -> Expr:
        """An unsuffixed number: an integer, a DECIMAL when it has a point, a DOUBLE when it has an exponent."""
        if "e" in text.lower():
            return literal(float(text))
        value = decimal.Decimal(text)
        try:
            return literal(int(value) if "." not in text and value.adjusted() < _MOST_DIGITS else value)
        except TypeError as error:
            raise PredicateError(self.text, "numbers of at most 38 digits") from error

    def _column(self, node: exp.Expression) -> Expr:
        return Column(tuple(part.name for part in node.parts), self.qualified)

    def _dot(self, node: exp.Expression) -> Expr:
        parts = [part.name for part in node.flatten(unnest=False) if type(part).__name__ == "Identifier"]
        head = node
        while type(head).__name__ == "Dot":
            head = head.this
        if type(node.expression).__name__ != "Identifier":
            raise self.refuse(node, "is not a path of struct fields")
        if type(head).__name__ != "Column":
            return Call(FIELD, (self.expr(node.this), literal(node.expression.name)))
        return Column(tuple(part.name for part in head.parts) + tuple(parts), self.qualified)

    def _bracket(self, node: exp.Expression) -> Expr:
        if len(node.expressions) != 1:
            raise self.refuse(node, "is no element of a list or a map")
        return Call(ITEM, (self.expr(node.this), self.expr(node.expressions[0])))

    def _bitwisenot(self, node: exp.Expression) -> Expr:
        return Call("~", (self.expr(node.this),))

    def _between(self, node: exp.Expression) -> Expr:
        low, high = self.expr(node.args["low"]), self.expr(node.args["high"])
        child = self.expr(node.this)
        if node.args.get("symmetric"):
            return any_of([between(child, low, high), between(child, high, low)])
        return between(child, low, high)

    def _in(self, node: exp.Expression) -> Expr:
        if node.args.get("query") or node.args.get("field") or node.args.get("unnest"):
            raise self.refuse(node, "asks for other rows")
        if not node.expressions:
            raise self.refuse(node, "has an empty list")
        return In(self.expr(node.this), tuple(self.expr(item) for item in node.expressions))

    def _is(self, node: exp.Expression) -> Expr:
        child, right = self.expr(node.this), node.expression
        if type(right).__name__ == "Null":
            return IsNull(child)
        if type(right).__name__ == "Boolean":
            return Compare(CompareOp.NULL_SAFE_EQ, child, literal(bool(right.this)))
        raise self.refuse(node, "is no test for NULL, TRUE, FALSE or UNKNOWN")

    def _nullsafeneq(self, node: exp.Expression) -> Expr:
        return Not(Compare(CompareOp.NULL_SAFE_EQ, self.expr(node.this), self.expr(node.expression)))

    def _escape(self, node: exp.Expression) -> Expr:
        escape = node.expression
        if type(escape).__name__ != "Literal" or len(escape.this) != 1:
            raise self.refuse(node, "needs one character to escape with")
        return self.match(MATCHES[type(node.this).__name__], node.this, escape.this)

    def match(self, kind: MatchKind, node: exp.Expression, escape: str = "\\") -> Expr:
        """LIKE and its kin, also against ANY or ALL of several patterns."""
        child, right = self.expr(node.this), node.expression
        negated = bool(node.args.get("negate"))
        quantifier = type(right).__name__
        if quantifier in ("Any", "All"):
            held = right.this
            patterns = held.expressions if type(held).__name__ == "Tuple" else [held]
            parts = [self._one_match(kind, child, pattern, escape, negated) for pattern in patterns]
            return any_of(parts) if quantifier == "Any" else all_of(parts)
        return self._one_match(kind, child, right, escape, negated)

    def _one_match(self, kind: MatchKind, child: Expr, right: exp.Expression, escape: str, negated: bool) -> Expr:
        pattern = self.expr(right)
        if not isinstance(pattern, Literal):
            raise self.refuse(right, "is not a constant pattern")
        value = pattern.scalar.as_py()
        found = Match(kind, child, None if value is None else str(value), escape)
        return Not(found) if negated else found

    def _dpipe(self, node: exp.Expression) -> Expr:
        return Call("concat", tuple(self.expr(part) for part in node.flatten()))

    def _concat(self, node: exp.Expression) -> Expr:
        parts = [self.expr(part) for part in node.expressions]
        values = [part.scalar.as_py() for part in parts if isinstance(part, Literal)]
        if len(values) == len(parts) and all(isinstance(value, str) for value in values):
            return literal("".join(values))  # adjacent string constants are one
        return Call("concat", tuple(parts))

    def _trim(self, node: exp.Expression) -> Expr:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
        chars = node.args.get("expression")
        args = (self.expr(node.this),) if chars is None else (self.expr(chars), self.expr(node.this))
        # TRIM(chars FROM text) and ltrim(chars, text) name the characters first
        return Call(name, args)

    def _extract(self, node: exp.Expression) -> Expr:
        return Call(str(node.this.name).lower(), (self.expr(node.expression),))

    def _case(self, node: exp.Expression) -> Expr:
        subject = self.expr(node.this) if node.this is not None else None
        default = node.args.get("default")
        result = self.expr(default) if default is not None else literal(None)
        for branch in reversed(node.args["ifs"]):
            test = self.expr(branch.this)
            test = test if subject is None else Compare(CompareOp.EQ, subject, test)
            result = Call("if", (test, self.expr(branch.args["true"]), result))
        return result

    def _anonymous(self, node: exp.Expression) -> Expr:
        name = str(node.this).lower()
        args = tuple(self.expr(arg) for arg in node.expressions)
        if name in ("isnull", "isnotnull") and len(args) == 1:
            return IsNull(args[0]) if name == "isnull" else IsNotNull(args[0])
        if name == "equal_null" and len(args) == 2:
            return Compare(CompareOp.NULL_SAFE_EQ, args[0], args[1])
        if name in TYPE_FUNCTIONS and len(args) == 1:
            return Cast(args[0], TYPE_FUNCTIONS[name])
        if name in MATCH_FUNCTIONS and len(args) >= 2:
            pattern = args[1]
            if not isinstance(pattern, Literal):
                raise self.refuse(node, "does not have a constant pattern")
            value = pattern.scalar.as_py()
            return Match(MATCH_FUNCTIONS[name], args[0], None if value is None else str(value))
        return Call(name, args)

    def _cast(self, node: exp.Expression) -> Expr:
        return self.cast(node)

    def _trycast(self, node: exp.Expression) -> Expr:
        return self.cast(node)

    def cast(self, node: exp.Expression) -> Expr:
        """CAST, typed constants such as DATE '…', and numbers with a suffix, all of which arrive as casts."""
        number = self._typed_number(node, "")
        if number is not None:
            return number
        return Cast(self.expr(node.this), self.data_type(node), lenient=bool(node.args.get("safe")))

    def _typed_number(self, node: exp.Expression, sign: str) -> Literal | None:
        """The constant that `10L`, `3D`, `2.5BD` or `CAST(1 AS INT)` mean; None when the cast is of something else."""
        if type(node.this).__name__ != "Literal" or node.args.get("safe"):
            return None
        if node.this.is_string:
            # sqlglot writes 2.5BD as a cast of '2.5', to a type that, unlike those of casts, says nothing of nesting
            made = self.data_type(node) if "nested" not in node.args["to"].args else None
            return literal(decimal.Decimal(sign + node.this.this)) if made is not None and pa.types.is_decimal(made) else None
        target, text = self.data_type(node), sign + str(node.this.this)
        try:
            if pa.types.is_integer(target) and text.lstrip("-").isdigit():
                return Literal(pa.scalar(int(text), target), type=target)
        except (ValueError, OverflowError) as error:
            raise self.refuse(node, "is out of the range of its type") from error
        return Literal(pa.scalar(float(text), target), type=target) if pa.types.is_floating(target) else None

    def data_type(self, node: exp.Expression) -> pa.DataType:
        """The Arrow type that a cast names."""
        to = node.args["to"]
        name = getattr(to.this, "name", str(to.this))
        collation = to.args.get("collate")
        if collation is not None and collation.name.upper() != "UTF8_BINARY":
            raise self.refuse(node, "names a collation, by which texts are equal that are not the same")
        if name in ("DECIMAL", "BIGDECIMAL"):
            sizes = [int(param.name[:_MOST_DIGITS]) for param in to.expressions] + [10, 0][len(to.expressions) :]
            if not 1 <= sizes[0] <= 38 or not 0 <= sizes[1] <= sizes[0]:
                raise self.refuse(node, "names a decimal that does not exist")
            return bounded_decimal(sizes[0], sizes[1])
        if name not in TYPES:
            raise self.refuse(node, "names a type that a filter cannot cast to")
        return TYPES[name]
