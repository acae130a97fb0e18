"""The expression tree: frozen nodes that say what a predicate means, whatever notation it was written in.

A tree comes in two states. *Unbound*, as a notation yields it: columns are names, literals have their natural type, and no
node knows its type. *Bound*, as :func:`~hudimeta.predicate.bind.bind` yields it: every node carries its Arrow type in
`type`, operands are cast to a common type, `In` has become `InSet`, and `BETWEEN`, `CASE` and the like have been spelled out
with simpler nodes. Trees are hashable and compare by value, so an index can be asked for by the expression that it covers.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields

import pyarrow as pa

from hudimeta.errors import PredicateError
from hudimeta.types import is_text

__all__ = [
    "FIELD",
    "ITEM",
    "And",
    "Arithmetic",
    "ArithmeticOp",
    "Call",
    "Cast",
    "Column",
    "Compare",
    "CompareOp",
    "Expr",
    "In",
    "InSet",
    "IsNotNull",
    "IsNull",
    "Literal",
    "Match",
    "MatchKind",
    "Not",
    "Or",
    "all_of",
    "any_of",
    "between",
    "children",
    "literal",
    "walk",
    "check_depth",
]

MAX_DEPTH = 400
"""Deepest nesting of a predicate; more would exhaust Python's stack."""


ITEM, FIELD = "[]", "."
"""Names of the calls that `list[i]` or `map[key]`, and a field of a struct that is itself computed, are."""


class CompareOp(enum.Enum):
    """A comparison; the value is its SQL spelling."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    NULL_SAFE_EQ = "<=>"

    @property
    def negated(self) -> CompareOp:
        """The operator that is true where this one is false, and null where this one is null; not for `<=>`."""
        return _NEGATED[self]

    @property
    def mirrored(self) -> CompareOp:
        """The operator that means the same with the operands exchanged."""
        return _MIRRORED.get(self, self)


_NEGATED = {
    CompareOp.EQ: CompareOp.NE,
    CompareOp.NE: CompareOp.EQ,
    CompareOp.LT: CompareOp.GE,
    CompareOp.GE: CompareOp.LT,
    CompareOp.GT: CompareOp.LE,
    CompareOp.LE: CompareOp.GT,
}
_MIRRORED = {
    CompareOp.LT: CompareOp.GT,
    CompareOp.GT: CompareOp.LT,
    CompareOp.LE: CompareOp.GE,
    CompareOp.GE: CompareOp.LE,
}


class ArithmeticOp(enum.Enum):
    """A binary arithmetic operator; the value is its SQL spelling."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"
    INTEGER_DIVIDE = "DIV"


class MatchKind(enum.Enum):
    """How a string is matched against a constant pattern."""

    LIKE = "LIKE"
    ILIKE = "ILIKE"
    RLIKE = "RLIKE"
    STARTS_WITH = "startswith"
    ENDS_WITH = "endswith"
    CONTAINS = "contains"


@dataclass(frozen=True, kw_only=True)
class Expr:
    """Any node.

    Attributes:
        type: Arrow type of the node's value; None while unbound (literals and casts know it always).
    """

    type: pa.DataType | None = field(default=None)


@dataclass(frozen=True)
class Column(Expr):
    """A column, or a field inside a struct column.

    Attributes:
        path: Column name, then field names.
        qualified: True when the first part may be the alias of a relation, as in the text that Catalyst renders.
    """

    path: tuple[str, ...]
    qualified: bool = False

    @property
    def name(self) -> str:
        """The dotted path, which is also the name under which statistics are kept."""
        return ".".join(self.path)


@dataclass(frozen=True)
class Literal(Expr):
    """A constant; `scalar` is typed and may be null."""

    scalar: pa.Scalar

    @property
    def is_null(self) -> bool:
        """True for NULL of any type."""
        return not self.scalar.is_valid

    def __reduce__(self) -> tuple[Callable[[pa.Array, pa.DataType | None], Literal], tuple[pa.Array, pa.DataType | None]]:
        # Arrow's scalars travel as Python's values, which no day after the year 9999 is.
        return _constant, (pa.repeat(self.scalar, 1), self.type)


def _constant(value: pa.Array, value_type: pa.DataType | None) -> Literal:
    return Literal(value[0], type=value_type)


@dataclass(frozen=True)
class Compare(Expr):
    """`left op right`; null when either side is null, except for `<=>`."""

    op: CompareOp
    left: Expr
    right: Expr


@dataclass(frozen=True)
class In(Expr):
    """`child IN (items)`, unbound."""

    child: Expr
    items: tuple[Expr, ...]


@dataclass(frozen=True)
class InSet(Expr):
    """`child IN (values)`, bound: constants of the child's type.

    Attributes:
        values: Distinct non-null constants, of the child's type.
        has_null: The list held a NULL, so what is not found is null rather than false.
    """

    child: Expr
    values: pa.Array
    has_null: bool = False

    def __hash__(self) -> int:
        """Arrow arrays have no hash of their own; the length will do beside the child's."""
        return hash((self.child, len(self.values), self.has_null))

    def __eq__(self, other: object) -> bool:
        """Equal when the child, the constants and their order are."""
        if not isinstance(other, InSet):
            return NotImplemented
        return self.child == other.child and self.has_null == other.has_null and bool(self.values.equals(other.values))


@dataclass(frozen=True)
class And(Expr):
    """Conjunction of at least two children, in SQL's three-valued logic."""

    children: tuple[Expr, ...]


@dataclass(frozen=True)
class Or(Expr):
    """Disjunction of at least two children, in SQL's three-valued logic."""

    children: tuple[Expr, ...]


@dataclass(frozen=True)
class Not(Expr):
    """Negation; null stays null."""

    child: Expr


@dataclass(frozen=True)
class IsNull(Expr):
    """`child IS NULL`; never null itself."""

    child: Expr


@dataclass(frozen=True)
class IsNotNull(Expr):
    """`child IS NOT NULL`; never null itself."""

    child: Expr


@dataclass(frozen=True)
class Match(Expr):
    """A string matched against a constant pattern.

    Attributes:
        pattern: The pattern, None when it is NULL (then the result is null).
        escape: Escape character of LIKE and ILIKE.
    """

    kind: MatchKind
    child: Expr
    pattern: str | None
    escape: str = "\\"


@dataclass(frozen=True)
class Cast(Expr):
    """`CAST(child AS target)`; what cannot be converted becomes null.

    Attributes:
        target: The Arrow type to convert to.
        lenient: True for TRY_CAST, where a constant that cannot be converted is NULL and not an error.
    """

    child: Expr
    target: pa.DataType
    lenient: bool = False


@dataclass(frozen=True)
class Arithmetic(Expr):
    """`left op right`; overflow and division by zero give null."""

    op: ArithmeticOp
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Call(Expr):
    """A function call; `name` is lower case."""

    name: str
    args: tuple[Expr, ...]


def literal(value: object) -> Literal:
    """Make a literal with the type that Spark would give the same constant.

    Args:
        value: None, bool, int, float, decimal.Decimal, str, bytes, datetime.date, datetime.datetime (aware: an instant;
            naive: a timestamp without zone), a NumPy scalar or a pyarrow Scalar.

    Raises:
        TypeError: For values of other types.
        PredicateError: For half a text.
    """
    from hudimeta.predicate.types import natural_scalar

    if isinstance(value, str) and not is_text(value):
        raise PredicateError(value[:60], "text without halves of surrogate pairs")
    scalar = natural_scalar(value)
    return Literal(scalar, type=scalar.type)


def between(child: Expr, low: Expr, high: Expr) -> Expr:
    """Spell out `child BETWEEN low AND high`, which has exactly the meaning of two comparisons."""
    return And((Compare(CompareOp.GE, child, low), Compare(CompareOp.LE, child, high)))


def all_of(parts: list[Expr] | tuple[Expr, ...]) -> Expr:
    """Join parts by AND, flattening ANDs; no parts are TRUE."""
    flat: list[Expr] = []
    for part in parts:
        flat.extend(part.children if isinstance(part, And) else (part,))
    return flat[0] if len(flat) == 1 else And(tuple(flat), type=pa.bool_()) if flat else literal(True)


def any_of(parts: list[Expr] | tuple[Expr, ...]) -> Expr:
    """Join parts by OR, flattening ORs; no parts are FALSE."""
    flat: list[Expr] = []
    for part in parts:
        flat.extend(part.children if isinstance(part, Or) else (part,))
    return flat[0] if len(flat) == 1 else Or(tuple(flat), type=pa.bool_()) if flat else literal(False)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions, in the order of writing."""
    found: list[Expr] = []
    for spec in fields(expr):
        value = getattr(expr, spec.name)
        if isinstance(value, Expr):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(item for item in value if isinstance(item, Expr))
    return tuple(found)


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node of a tree, parents before children."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def check_depth(expr: Expr) -> None:
    """Raises PredicateError: An expression nested so deep that walking it would not end well."""
    level: list[Expr] = [expr]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in children(node)]
        if not level:
            return
    raise PredicateError("…", f"expressions nested at most {MAX_DEPTH} deep")
