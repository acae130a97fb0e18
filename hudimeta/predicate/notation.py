"""The other notations of a predicate: JSON trees, Python tuples, and the SQL that Catalyst renders.

JSON trees are `[op, left, right]` with the leaves `{"col": "a.b"}`, `{"lit": value}` and `{"call": name, "args": [...]}`; a
literal that JSON has no type for is `{"date": …}`, `{"timestamp": …}`, `{"timestamp_ntz": …}`, `{"decimal": …}`,
`{"binary": hex}` or `{"double": "NaN"}`. Tuples are `("column", op, value)`; a list of them is their conjunction, a list of
such lists is true where one of them is.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.errors import ConfigError, PredicateError
from hudimeta.predicate.arrow_expressions import is_arrow_expression, parse_arrow
from hudimeta.predicate.sql import parse_sql
from hudimeta.predicate.tree import (
    MAX_DEPTH,
    And,
    Arithmetic,
    ArithmeticOp,
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
    Or,
    all_of,
    any_of,
    between,
    literal,
)
from hudimeta.predicate.types import DATE, INSTANT, LOCAL_TIMESTAMP
from hudimeta.types import is_text

if TYPE_CHECKING:
    from hudimeta.predicate.bind import Bound

__all__ = ["Where", "bind_catalyst", "parse", "parse_json", "parse_tuples"]

Where = str | Expr | Sequence[Any] | Mapping[str, Any] | Any
"""What `where=` may be: SQL text, a tree, tuples, a JSON tree, or a `pyarrow.compute.Expression`, which has no type here."""

_SHOWN = 200
"""Most characters of a reason: it may name a number of some thousand digits."""
_ALLOWED_TREE = 'a tree such as [">", {"col": "ts"}, {"lit": 110}]'
_ALLOWED_TUPLES = 'tuples such as [("ts", ">", 110), ("region", "in", ["eu", "us"])]'
_COMPARE = {op.value: op for op in CompareOp} | {"==": CompareOp.EQ, "!=": CompareOp.NE}
_ARITHMETIC = {op.value.lower(): op for op in ArithmeticOp}
_ARGUMENTS = {"not": 1, "is null": 1, "is not null": 1, "between": 3}
_MATCH = {kind.value.lower(): kind for kind in MatchKind}


def parse(where: Where) -> Expr:
    """Read a predicate in any notation.

    Args:
        where: SQL text; an expression tree, returned as it is; a list of tuples or one tuple; a JSON tree; an expression of
            PyArrow's all of whose functions have a counterpart.

    Returns:
        The unbound tree.

    Raises:
        ConfigError: When it is none of these, or malformed.
    """
    if isinstance(where, Expr):
        return where
    if isinstance(where, str):
        return parse_sql(where)
    if isinstance(where, Mapping):
        return parse_json(where)
    if isinstance(where, Sequence) and not isinstance(where, (bytes, bytearray)):
        if where and isinstance(where[0], str) and not (len(where) == 3 and isinstance(where[1], str)):
            return parse_json(where)
        return parse_tuples([where] if where and isinstance(where[0], str) else where)
    if is_arrow_expression(where):
        found = parse_arrow(where)
        if found.tree is not None and found.whole is None:
            return found.tree
        raise PredicateError(str(where), "comparisons, null tests, lists and patterns", f"Not {found.unknown[0]}.")
    raise PredicateError(where, f"SQL text, {_ALLOWED_TUPLES}, an Arrow expression, or {_ALLOWED_TREE}")


def parse_tuples(conditions: Sequence[Any]) -> Expr:
    """The conjunction of `(column, op, value)` conditions.

    The operators are those of SQL (`=`, `==`, `!=`, `<=>`, `in`, `not in`, `like`, `startswith`, `between` …) and `is null`
    and `is not null`, which take no value. A column is a dotted path; values are Python constants. A list of such lists
    is true where one of them is, as PyArrow, pandas and delta-rs have it.
    """
    if conditions and all(_is_list_of_conditions(one) for one in conditions):
        return any_of([parse_tuples(one) for one in conditions])
    parts: list[Expr] = []
    for condition in conditions:
        if not isinstance(condition, Sequence) or isinstance(condition, str) or not 2 <= len(condition) <= 3:
            raise PredicateError(condition, _ALLOWED_TUPLES)
        name, op, *rest = condition
        if not isinstance(name, str) or not isinstance(op, str):
            raise PredicateError(condition, _ALLOWED_TUPLES)
        parts.append(_condition(Column(tuple(name.split("."))), op, rest, condition))
    return all_of(parts)


def _is_list_of_conditions(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, (tuple, list)) for one in value)


def _condition(column: Column, op: str, rest: list[Any], whole: Any) -> Expr:
    word = " ".join(op.lower().split())
    if word in ("is null", "is not null", "isnull", "isnotnull"):
        if rest and rest[0] is not None:
            raise PredicateError(whole, _ALLOWED_TUPLES, f"The operator {op!r} takes no value.")
        return IsNull(column) if word in ("is null", "isnull") else IsNotNull(column)
    if not rest:
        raise PredicateError(whole, _ALLOWED_TUPLES, f"The operator {op!r} needs a value.")
    value = rest[0]
    if isinstance(value, str) and not is_text(value):
        raise PredicateError(whole, "text without halves of surrogate pairs")
    if word in ("in", "not in", "between", "not between"):
        if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            raise PredicateError(whole, _ALLOWED_TUPLES, f"The operator {op!r} needs a list.")
        items = [_constant(item, whole) for item in value]
        if word in ("between", "not between"):
            if len(items) != 2:
                raise PredicateError(whole, _ALLOWED_TUPLES, f"The operator {op!r} needs the lowest and the highest value.")
            inside = between(column, items[0], items[1])
            return Not(inside) if word == "not between" else inside
        found = In(column, tuple(items))
        return Not(found) if word == "not in" else found
    if word in _COMPARE:
        return Compare(_COMPARE[word], column, _constant(value, whole))
    negated, bare = word.startswith("not "), word.removeprefix("not ")
    if bare in _MATCH and isinstance(value, str):
        found_match = Match(_MATCH[bare], column, value)
        return Not(found_match) if negated else found_match
    raise PredicateError(whole, _ALLOWED_TUPLES, f"The operator {op!r} is not known.")


def _constant(value: object, whole: Any) -> Literal:
    try:
        return literal(value)
    except TypeError as error:
        raise PredicateError(whole, _ALLOWED_TUPLES, f"{str(error)[:_SHOWN]}.") from error


def parse_json(tree: Any) -> Expr:
    """A JSON tree, as the head of this module describes it."""
    try:
        return _json(tree)
    except RecursionError:
        raise PredicateError("…", f"expressions nested at most {MAX_DEPTH} deep") from None
    except (KeyError, IndexError, ValueError, TypeError, AttributeError, decimal.InvalidOperation, pa.ArrowInvalid) as error:
        why = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise PredicateError(tree, _ALLOWED_TREE, f"{why[:1].upper()}{why[1:]}.") from error


def _json(tree: Any) -> Expr:
    if isinstance(tree, Mapping):
        if "col" in tree:
            return Column(tuple(str(tree["col"]).split(".")))
        if "lit" in tree:
            return _json_literal(tree["lit"])
        if "call" not in tree or "args" not in tree:
            raise ValueError("a mapping has a column as 'col', a constant as 'lit', or a function as 'call' with its 'args'")
        return Call(str(tree["call"]).lower(), tuple(_json(arg) for arg in tree["args"]))
    op, *args = tree
    word = " ".join(str(op).lower().split())
    if word not in ("and", "or") and len(args) != _ARGUMENTS.get(word, 2):
        raise ValueError(f"{op!r} has {len(args)} arguments")
    if word in ("and", "or"):
        parts = [_json(arg) for arg in args]
        return all_of(parts) if word == "and" else any_of(parts)
    if word in ("not", "is null", "is not null"):
        kinds = {"not": Not, "is null": IsNull, "is not null": IsNotNull}
        return kinds[word](_json(args[0]))
    if word in ("in", "not in"):
        found = In(_json(args[0]), tuple(_json(item) for item in args[1]))
        return Not(found) if word == "not in" else found
    if word == "between":
        return between(_json(args[0]), _json(args[1]), _json(args[2]))
    if word in _MATCH:
        pattern = _json(args[1])
        return Match(_MATCH[word], _json(args[0]), pattern.scalar.as_py() if isinstance(pattern, Literal) else str(args[1]))
    left, right = _json(args[0]), _json(args[1])
    return Arithmetic(_ARITHMETIC[word], left, right) if word in _ARITHMETIC else Compare(_COMPARE[word], left, right)


def _json_literal(value: Any) -> Expr:
    if not isinstance(value, Mapping):
        return literal(value)
    ((kind, text),) = value.items()
    types = {"date": DATE, "timestamp": INSTANT, "timestamp_ntz": LOCAL_TIMESTAMP}
    types |= {"double": pa.float64(), "float": pa.float32()}
    if kind in types:
        return Cast(literal(str(text)), types[kind])
    return literal(bytes.fromhex(text) if kind in ("binary", "bytes") else {"decimal": decimal.Decimal}[kind](str(text)))


def bind_catalyst(filters: Sequence[str], schema: pa.Schema, *, timezone: str = "UTC") -> tuple[Bound, tuple[str, ...]]:
    """Bind the filters of one scan, as `Expression.sql()` renders them, for skipping.

    Args:
        filters: Texts such as `((v.id < 10L) OR (v.name = 'zz'))`; columns may carry the relation's alias.
        schema: The table's schema.
        timezone: The session's time zone, in which Catalyst renders timestamps.

    Returns:
        The conjunction of what is understood, and the texts that are not, or not wholly: what is missing skips nothing.
    """
    from hudimeta.predicate.bind import bind

    parts: list[Expr] = []
    unknown: list[str] = []
    for text in filters:
        try:
            tree = parse_sql(text, qualified=True)
            understood = _implied(tree, lambda part: bind(part, schema, timezone=timezone).expr)
        except ConfigError:
            understood = None, False
        parts += [understood[0]] if understood[0] is not None else []
        unknown += [] if understood[1] else [text]
    whole = bind(literal(True), schema, timezone=timezone if parts else "UTC")  # in an unknown zone nothing is understood
    return (whole.with_conjuncts(parts) if parts else whole), tuple(unknown)


def _implied(tree: Expr, bound: Callable[[Expr], Expr]) -> tuple[Expr | None, bool]:
    """What surely holds where a predicate does, bound, None when nothing is known; and whether that is all of it."""
    try:
        return bound(tree), True
    except ConfigError:
        if not isinstance(tree, (And, Or)):
            return None, False
    known = [part for part, _ in (_implied(child, bound) for child in tree.children) if part is not None]
    if isinstance(tree, And):
        return (all_of(known) if known else None), False
    return (any_of(known) if len(known) == len(tree.children) else None), False
