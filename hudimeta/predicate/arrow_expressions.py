"""PyArrow's expressions (`pyarrow.compute.field("fare") > 60`) as predicates.

Arrow shows nothing of an expression but its text. Its pickle, however, is an Arrow IPC file whose schema has the tree in its
metadata, one entry a node in order of writing, while the first row has the constants::

    literal           number of the column with the constant
    field_ref         name
    nested_field_ref  how many field_refs follow, outermost first
    call … end        function; its arguments in between, last of all `options` with the number of their column

Keys occur more than once, which `Schema.metadata` cannot show, so the entries are read through Arrow's C data interface.

Comparisons, null tests, lists, patterns and their connectives become a tree of ours. They then mean what they mean in every
other notation, that is in Spark: NaN equals itself and is greater than every number. An expression with any other function is
evaluated by PyArrow as a whole; what can be known of it without risk still leaves files out.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hudimeta.errors import PredicateError
from hudimeta.predicate.tree import (
    MAX_DEPTH,
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
    literal,
)

__all__ = ["ArrowPredicate", "is_arrow_expression", "parse_arrow"]

_COMPARE = {
    "equal": CompareOp.EQ,
    "not_equal": CompareOp.NE,
    "less": CompareOp.LT,
    "less_equal": CompareOp.LE,
    "greater": CompareOp.GT,
    "greater_equal": CompareOp.GE,
}
_MATCH = {
    "match_like": (MatchKind.LIKE, MatchKind.ILIKE),
    "starts_with": (MatchKind.STARTS_WITH, None),
    "ends_with": (MatchKind.ENDS_WITH, None),
    "match_substring": (MatchKind.CONTAINS, None),
}
_JOINING = ("and_kleene", "or_kleene")
_MOST_LEVELS = 1_000
"""Of an expression that PyArrow evaluates, which goes down level by level on the stack of its thread."""
_NULL_MATCHES = 0
"""`null_matching_behavior` of a list in which a null finds a null."""


@dataclass(frozen=True)
class ArrowPredicate:
    """What an expression amounts to.

    Attributes:
        tree: What is understood; None for nothing. All of it, where `whole` is None, else a part that every match satisfies.
        whole: The expression, where PyArrow must evaluate it.
        columns: Top-level columns that it looks at then.
        unknown: The functions for which it must.
    """

    tree: Expr | None
    whole: Any = None
    columns: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def filter(self, rows: pa.Table) -> pa.Table:
        """The rows that PyArrow chooses. Raises ConfigError for values with which it cannot do what the expression asks."""
        try:
            return rows.filter(self.whole)
        except pa.ArrowException as error:
            raise PredicateError(str(self.whole), "an expression for the table's values", f"{error}.") from error


@dataclass(frozen=True)
class _Node:
    """A function with its arguments and options; a column, whose path `value` is, or a constant, whose scalar it is.

    `depth` is how many levels it has.
    """

    function: str
    args: tuple[_Node, ...] = ()
    value: Any = None
    depth: int = 1


class _Unknown(Exception):
    """A function without a counterpart."""


def is_arrow_expression(where: object) -> bool:
    """True for `pyarrow.compute.Expression`; imports nothing."""
    return type(where).__name__ == "Expression" and type(where).__module__.startswith("pyarrow")


def parse_arrow(expression: Any) -> ArrowPredicate:
    """Read an expression.

    Raises:
        ConfigError: One that Arrow cannot write, such as a column by its number, or that is nested too deep.
    """
    root, levels = _read(expression)
    unknown: dict[str, None] = {}
    parts = [_translated(conjunct, unknown) for conjunct in _conjuncts(root)]
    known = [tree for tree in parts if tree is not None]
    if len(known) == len(parts):
        return ArrowPredicate(all_of(known))
    if levels > _MOST_LEVELS:
        hint = f"PyArrow evaluates {next(iter(unknown))}, and crashes at some thousand. Name the values of a column by isin."
        raise PredicateError("…", f"at most {_MOST_LEVELS:,} conditions that are joined one by one", hint)
    # NaN is told apart where Arrow evaluates; without negations a match of Arrow's is one of ours as well.
    safe = [t for t, c in zip(parts, _conjuncts(root), strict=True) if t is not None and "invert" not in _functions(c)]
    columns = dict.fromkeys(node.value[0] for node in _nodes(root) if node.function == "field_ref")
    return ArrowPredicate(all_of(safe) if safe else None, expression, tuple(columns), tuple(unknown))


def _conjuncts(node: _Node) -> Iterator[_Node]:
    if node.function == "and_kleene":
        for arg in node.args:
            yield from _conjuncts(arg)
    else:
        yield node


def _nodes(node: _Node) -> Iterator[_Node]:
    yield node
    for arg in node.args:
        yield from _nodes(arg)


def _functions(node: _Node) -> set[str]:
    return {found.function for found in _nodes(node)}


# Our tree


def _translated(node: _Node, unknown: dict[str, None]) -> Expr | None:
    try:
        return _tree(node)
    except _Unknown as stop:
        unknown[str(stop)] = None
        return None


def _tree(node: _Node) -> Expr:
    function, args = node.function, node.args
    if function == "field_ref":
        return Column(node.value)
    if function == "literal":
        return _constant(node.value)
    if function in _COMPARE:
        return Compare(_COMPARE[function], _tree(args[0]), _tree(args[1]))
    if function in _JOINING:
        return (all_of if function == "and_kleene" else any_of)([_tree(arg) for arg in args])
    if function == "invert":
        return Not(_tree(args[0]))
    if function == "is_valid":
        return IsNotNull(_tree(args[0]))
    if function == "is_null" and not (node.value or {}).get("nan_is_null"):
        return IsNull(_tree(args[0]))
    if function == "is_in":
        return _in(_tree(args[0]), node.value)
    if function in _MATCH:
        kind = _MATCH[function][bool(node.value.get("ignore_case"))]
        if kind is not None:
            return Match(kind, _tree(args[0]), node.value["pattern"])
    raise _Unknown(function)


def _constant(scalar: pa.Scalar) -> Literal:
    if pa.types.is_floating(scalar.type) and scalar.is_valid and math.isnan(scalar.as_py()):
        raise _Unknown("a comparison with NaN")
    try:
        return literal(scalar)
    except TypeError:
        raise _Unknown(f"a constant of type {scalar.type}") from None


def _in(child: Expr, options: dict[str, Any]) -> Expr:
    """Arrow's lists are never null: what is not found is false, and a null is found where the list has one."""
    values, behaviour = options["value_set"], options.get("null_matching_behavior", _NULL_MATCHES)
    if isinstance(behaviour, int) and behaviour > 1:
        raise _Unknown("is_in")
    found = [value for value in values if value.is_valid]
    known = all_of([IsNotNull(child), In(child, tuple(_constant(value) for value in found))])
    return any_of([IsNull(child), known]) if len(found) < len(values) and behaviour == _NULL_MATCHES else known


# Arrow's tree


def _read(expression: Any) -> tuple[_Node, int]:
    """The tree, and how many levels it has as Arrow has it."""
    try:
        _, (buffer,) = expression.__reduce__()
    except pa.ArrowException as error:
        hint = f"Name columns and use functions of pyarrow.compute only: {error}."
        raise PredicateError(str(expression), "an expression that can be pickled", hint) from error
    reader = pa.ipc.open_file(buffer)
    constants = reader.get_batch(0)
    return _root(_entries(reader.schema), constants)


@dataclass
class _Call:
    """A function whose arguments are being read."""

    function: str
    args: list[_Node] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def take(self, node: _Node) -> None:
        """One more argument; conditions that are joined one by one, as by `functools.reduce`, stand side by side."""
        joined = node.function == self.function and self.function in _JOINING
        self.args += node.args if joined else [node]


def _root(entries: Iterator[tuple[str, str]], constants: pa.RecordBatch) -> tuple[_Node, int]:
    calls: list[_Call] = []
    levels = 0
    for key, value in entries:
        if key == "options":
            scalar = constants.column(int(value))[0]
            calls[-1].options = {name: item.as_py() if name != "value_set" else list(item) for name, item in scalar.items()}
            continue
        if key == "literal":
            node = _Node(key, value=constants.column(int(value))[0])
        elif key == "field_ref":
            node = _Node(key, value=(value,))
        elif key == "nested_field_ref":
            node = _Node("field_ref", value=tuple(next(entries)[1] for _ in range(int(value))))
        elif key == "end":
            done = calls.pop()
            node = _Node(done.function, tuple(done.args), done.options, 1 + max((arg.depth for arg in done.args), default=0))
        else:
            calls.append(_Call(value))
            levels = max(levels, len(calls))
            continue
        if not calls:
            break
        calls[-1].take(node)
    if node.depth > MAX_DEPTH:
        raise PredicateError("…", f"expressions nested at most {MAX_DEPTH} deep")
    return node, levels


class _ArrowSchema(ctypes.Structure):
    """The beginning of `struct ArrowSchema` of Arrow's C data interface."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


def _entries(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Metadata of a schema in order, repeated keys included: a count, then length and bytes of each key and value."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    at = _ArrowSchema.from_address(pointer(capsule, b"arrow_schema")).metadata
    texts = []
    (count,) = struct.unpack("=i", ctypes.string_at(at, 4))
    at += 4
    for _ in range(2 * count):
        (length,) = struct.unpack("=i", ctypes.string_at(at, 4))
        texts.append(ctypes.string_at(at + 4, length).decode())
        at += 4 + length
    return zip(texts[::2], texts[1::2], strict=True)
