"""Binding: names become columns of a schema, operands get a common type as in Spark, constants are computed once.

A bound tree is in a normal form that the evaluators rely on: every node has its type; NOT stands only before what cannot be
negated otherwise; comparisons have the constant on the right; a constant that fits the column's type has that type, so that
the column itself need not be cast; IN lists hold distinct constants.
"""

from __future__ import annotations

import dataclasses
import decimal
from collections.abc import Sequence

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.errors import PredicateError
from hudimeta.predicate.arithmetic import arithmetic_types
from hudimeta.predicate.bind_calls import cast_constant, function_of, refused, signature_of, try_out
from hudimeta.predicate.casts import can_cast
from hudimeta.predicate.constants import distinct, fitting, integer_bound, rounds, special_moment
from hudimeta.predicate.evaluate import fold, match
from hudimeta.predicate.local_time import check_zone
from hudimeta.predicate.names import closest_name, resolve
from hudimeta.predicate.render import to_sql
from hudimeta.predicate.tree import (
    FIELD,
    ITEM,
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
    InSet,
    IsNotNull,
    IsNull,
    Literal,
    Match,
    Not,
    Or,
    all_of,
    any_of,
    check_depth,
    children,
    literal,
    walk,
)
from hudimeta.predicate.types import (
    DATE,
    DOUBLE,
    STRING,
    common_type,
    decimal_of_integer,
    is_decimal,
    is_integer,
    is_numeric,
    type_name,
)

__all__ = ["Bound", "bind", "bind_value"]

_BOOLEAN = pa.bool_()
_SHOWN_NAMES = 20
"""Most columns that an error names."""


@dataclasses.dataclass(frozen=True)
class Bound:
    """A predicate, or a value, over the columns of one schema.

    Attributes:
        expr: The bound tree.
        schema: The schema that it was bound to.
        timezone: Zone in which timestamps are shown and texts without a zone are read.
    """

    expr: Expr
    schema: pa.Schema
    timezone: str = "UTC"

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns and struct fields that are read, each once, in the order of writing."""
        return tuple(dict.fromkeys(node for node in walk(self.expr) if isinstance(node, Column)))

    @cached_property
    def conjuncts(self) -> tuple[Expr, ...]:
        """The parts that must all be true; reports name skipped files by their index here."""
        return self.expr.children if isinstance(self.expr, And) else (self.expr,)

    def with_conjuncts(self, conjuncts: Sequence[Expr]) -> Bound:
        """The same schema and zone with only these parts; none of them is TRUE."""
        return dataclasses.replace(self, expr=all_of(list(conjuncts)))

    def __str__(self) -> str:
        """The predicate as SQL."""
        return to_sql(self.expr)


def bind(expr: Expr, schema: pa.Schema, *, timezone: str = "UTC") -> Bound:
    """Bind a predicate to a schema.

    Args:
        expr: Unbound tree.
        schema: Columns that may be named, meta columns included if they may. Names are found regardless of case, an exact
            match first.
        timezone: The session's time zone.

    Raises:
        ConfigError: For unknown columns (naming the closest), operands that cannot be compared, unknown functions, constants
            that are no value of the type they are compared with, and for what is no predicate.
    """
    bound = bind_value(expr, schema, timezone=timezone)
    if bound.expr.type == _BOOLEAN:
        return bound
    if pa.types.is_null(bound.expr.type):
        return dataclasses.replace(bound, expr=Literal(pa.nulls(1, _BOOLEAN)[0], type=_BOOLEAN))
    raise PredicateError(to_sql(expr), "a predicate", f"This is of type {type_name(bound.expr.type)}.")


def bind_value(expr: Expr, schema: pa.Schema, *, timezone: str = "UTC", strict: bool = False) -> Bound:
    """As :func:`bind`, for an expression of any type; `strict` keeps `1 / 0` for `evaluate_strictly` to refuse."""
    check_depth(expr)
    return Bound(_Binder(schema, zone := check_zone(timezone), strict).bind(expr), schema, zone)


class _Binder:
    """Binds one tree, bottom up; methods are named after the nodes."""

    def __init__(self, schema: pa.Schema, zone: str, strict: bool = False) -> None:
        self.schema, self.zone, self.strict = schema, zone, strict

    def bind(self, expr: Expr) -> Expr:
        if isinstance(expr, Literal):
            return expr
        bound: Expr = getattr(self, f"_{type(expr).__name__.lower()}")(expr)
        if isinstance(bound, (Literal, Column)) or bound.type is None:
            return bound
        parts = children(bound)
        if parts and all(isinstance(part, Literal) for part in parts):
            value = fold(bound, self.zone)
            known = not any(isinstance(part, Literal) and part.is_null for part in parts)
            fails = self.strict and isinstance(bound, (Arithmetic, Cast)) and value.is_null and known
            return bound if fails else value
        return bound

    def predicate(self, expr: Expr) -> Expr:
        """Bind what must be BOOLEAN."""
        bound = self.bind(expr)
        if bound.type == _BOOLEAN:
            return bound
        if isinstance(bound, Literal) and bound.is_null:
            return Literal(pa.nulls(1, _BOOLEAN)[0], type=_BOOLEAN)
        raise refused(expr, f"is of type {type_name(bound.type)}, not a predicate")

    # columns

    def _column(self, expr: Column) -> Expr:
        found = resolve(self.schema, expr.path)
        if expr.qualified:
            readings = [resolve(self.schema, expr.path[skip:]) for skip in range(1, len(expr.path))]
            others = [reading for reading in readings if reading is not None]
            if len(others) + (found is not None) > 1:
                raise refused(expr, "can be read as more than one column")
            found = found or (others[0] if others else None)
        if found is not None:
            return found
        inside = self.inside(expr)
        if inside is not None:
            return inside
        meant = closest_name(self.schema, expr.name)
        names = self.schema.names
        shown = ", ".join(names[:_SHOWN_NAMES]) + (
            f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
        )
        raise PredicateError(expr.name, f"a column of the table: {shown}", f"Did you mean {meant!r}?" if meant else "")

    def inside(self, expr: Column) -> Expr | None:
        """`map.key`, which means the value of a key in Spark, and fields of what it holds; None when no map is there."""
        for length in range(len(expr.path) - 1, 0, -1):
            found = resolve(self.schema, expr.path[:length])
            if found is not None and pa.types.is_map(found.type):
                value: Expr = Call(ITEM, (found, literal(expr.path[length])))
                for name in expr.path[length + 1 :]:
                    value = Call(FIELD, (value, literal(name)))
                return self.bind(value)
        return None

    # logic

    def _and(self, expr: And) -> Expr:
        return self.junction(expr, [self.predicate(child) for child in expr.children])

    def _or(self, expr: Or) -> Expr:
        return self.junction(expr, [self.predicate(child) for child in expr.children])

    def junction(self, expr: Expr, parts: list[Expr]) -> Expr:
        """AND or OR without constants that decide nothing, or the constant that decides it."""
        is_and = isinstance(expr, And)
        kept: list[Expr] = []
        for part in parts:
            value = part.scalar.as_py() if isinstance(part, Literal) else ...
            if value is (not is_and):
                return literal(not is_and)
            if value is not is_and:
                kept.append(part)
        return dataclasses.replace(all_of(kept) if is_and else any_of(kept), type=_BOOLEAN)

    def _not(self, expr: Not) -> Expr:
        return self.negate(self.predicate(expr.child))

    def negate(self, expr: Expr) -> Expr:
        """The negation of a bound predicate, with NOT driven inwards."""
        if isinstance(expr, Not):
            return expr.child
        if isinstance(expr, And):
            return self.junction(Or(()), [self.negate(child) for child in expr.children])
        if isinstance(expr, Or):
            return self.junction(And(()), [self.negate(child) for child in expr.children])
        if isinstance(expr, IsNull):
            return IsNotNull(expr.child, type=_BOOLEAN)
        if isinstance(expr, IsNotNull):
            return IsNull(expr.child, type=_BOOLEAN)
        if isinstance(expr, Compare) and expr.op is not CompareOp.NULL_SAFE_EQ:
            return dataclasses.replace(expr, op=expr.op.negated)
        if isinstance(expr, Literal):
            value = expr.scalar.as_py()
            return expr if value is None else literal(not value)
        return Not(expr, type=_BOOLEAN)

    def _isnull(self, expr: IsNull) -> Expr:
        return IsNull(self.bind(expr.child), type=_BOOLEAN)

    def _isnotnull(self, expr: IsNotNull) -> Expr:
        return IsNotNull(self.bind(expr.child), type=_BOOLEAN)

    # comparisons

    def _compare(self, expr: Compare) -> Expr:
        left, right = self.bind(expr.left), self.bind(expr.right)
        op = expr.op
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, right, op = right, left, op.mirrored
        if isinstance(right, Literal) and not isinstance(left, Literal):
            return self.against_constant(expr, op, left, right)
        target = self.common(expr, [left, right])
        return Compare(op, self.cast(left, target), self.cast(right, target), type=_BOOLEAN)

    def against_constant(self, expr: Expr, op: CompareOp, child: Expr, constant: Literal) -> Expr:
        """`child op constant`, in the child's own type wherever that changes nothing."""
        if is_integer(constant.scalar.type) and not constant.is_null and child.type is not None and is_decimal(child.type):
            constant = literal(decimal.Decimal(constant.scalar.as_py()))  # with no more digits than it has
        target = self.common(expr, [child, constant])
        if target == child.type:
            return Compare(op, child, self.cast(constant, target), type=_BOOLEAN)
        same = None if rounds(child.type, target) else fitting(child, constant)
        if same is not None:
            return Compare(op, child, same, type=_BOOLEAN)
        rounded = integer_bound(op, child, constant)
        if rounded is not None:
            return self.against_constant(expr, rounded[0], child, literal(rounded[1]))
        return Compare(op, self.cast(child, target), self.cast(constant, target), type=_BOOLEAN)

    def _in(self, expr: In) -> Expr:
        child, items = self.bind(expr.child), [self.bind(item) for item in expr.items]
        target = self.common(expr, [child, *items])
        if isinstance(child, Literal) or not all(isinstance(item, Literal) for item in items):
            equal = [Compare(CompareOp.EQ, self.cast(child, target), self.cast(item, target), type=_BOOLEAN) for item in items]
            return self.junction(Or(()), [fold(part, self.zone) if _is_constant(part) else part for part in equal])
        constants = [item for item in items if isinstance(item, Literal)]
        valid = [item for item in constants if not item.is_null]
        if target != child.type and child.type is not None and not rounds(child.type, target):
            own = [fitting(child, item) if item.type != child.type else item for item in valid]
            if all(item is not None for item in own):
                valid, target = [item for item in own if item is not None], child.type
        scalars = [cast.scalar for cast in (self.cast(item, target) for item in valid) if isinstance(cast, Literal)]
        values = distinct(scalars, target)
        has_null = len(valid) < len(constants)
        if len(values) == 1 and not has_null:
            return Compare(CompareOp.EQ, self.cast(child, target), Literal(values[0], type=target), type=_BOOLEAN)
        return InSet(self.cast(child, target), values, has_null, type=_BOOLEAN)

    def _inset(self, expr: InSet) -> Expr:
        items = tuple(Literal(value, type=value.type) for value in expr.values)
        return self._in(In(expr.child, items + ((literal(None),) if expr.has_null else ())))

    def common(self, expr: Expr, operands: Sequence[Expr]) -> pa.DataType:
        """The type that all operands are compared in."""
        found: pa.DataType = pa.null()
        for operand in operands:
            assert operand.type is not None
            both = common_type(found, operand.type)
            if both is None or pa.types.is_nested(both):
                names = " and ".join(dict.fromkeys(type_name(part.type) for part in operands))
                raise refused(expr, f"compares {names}", "operands of types that Spark compares")
            found = both
        return _BOOLEAN if pa.types.is_null(found) else found

    def _match(self, expr: Match) -> Expr:
        child = self.bind(expr.child)
        if not can_cast(child.type or STRING, STRING):
            raise refused(expr, f"matches a {type_name(child.type)}", "a string to match")
        bound = dataclasses.replace(expr, child=self.cast(child, STRING), type=_BOOLEAN)
        match(bound, pa.nulls(0, STRING))  # a malformed pattern is refused before any file is read
        return bound

    # values

    def cast(self, expr: Expr, target: pa.DataType, *, lenient: bool = False) -> Expr:
        """Cast a bound expression; constants at once.

        Raises:
            ConfigError: When a string constant is no value of the target type and `lenient` does not allow NULL for it.
        """
        if expr.type == target:
            return expr
        if isinstance(expr, Cast) and expr.type == pa.float32() and target == DOUBLE and is_integer(expr.child.type or STRING):
            expr = expr.child  # Spark leaves out a cast on the way to a wider one, though FLOAT does not hold every integer
        if not isinstance(expr, Literal):
            return Cast(expr, target, lenient, type=target)
        special = special_moment(expr, target)
        if special is not None:
            return special
        value = cast_constant(expr, target, self.zone)
        if not value.is_valid and not expr.is_null and expr.type == STRING and not lenient:
            raise PredicateError(expr.scalar.as_py(), f"a text that can be read as {type_name(target)}")
        fails = self.strict and not lenient and not value.is_valid and not expr.is_null
        return Cast(expr, target, type=target) if fails else Literal(value, type=target)

    def _cast(self, expr: Cast) -> Expr:
        child = self.bind(expr.child)
        assert child.type is not None
        if not can_cast(child.type, expr.target):
            raise refused(expr, f"casts {type_name(child.type)} to {type_name(expr.target)}")
        return self.cast(child, expr.target, lenient=expr.lenient)

    def _arithmetic(self, expr: Arithmetic) -> Expr:
        left, right = self.bind(expr.left), self.bind(expr.right)
        if left.type == DATE and expr.op in (ArithmeticOp.ADD, ArithmeticOp.SUBTRACT):
            name = "date_add" if expr.op is ArithmeticOp.ADD else "date_sub"
            return self._call(Call(name, (left, right)))
        left, right = self.number_operand(expr, left, right), self.number_operand(expr, right, left)
        assert left.type is not None
        assert right.type is not None
        types = arithmetic_types(expr.op, left.type, right.type)
        if types is None:
            raise refused(expr, f"computes with {type_name(left.type)} and {type_name(right.type)}", "numbers")
        return Arithmetic(expr.op, self.cast(left, types[0]), self.cast(right, types[1]), type=types[2])

    def number_operand(self, expr: Expr, operand: Expr, other: Expr) -> Expr:
        """An operand of arithmetic as a number; an integer beside a decimal becomes a decimal."""
        assert operand.type is not None
        t = other.type if other.type is not None and is_numeric(other.type) else DOUBLE
        if operand.type == STRING or pa.types.is_null(operand.type):
            operand = self.cast(operand, pa.int64() if is_integer(t) else DOUBLE if operand.type == STRING else t)
        assert operand.type is not None
        if not is_numeric(operand.type):
            raise refused(expr, f"computes with {type_name(operand.type)}", "numbers")
        if is_integer(operand.type) and is_decimal(t):
            if isinstance(operand, Literal) and not operand.is_null:
                return literal(decimal.Decimal(operand.scalar.as_py()))
            return self.cast(operand, decimal_of_integer(operand.type))
        return operand

    def field(self, expr: Call) -> Expr | None:
        """A field of a struct, by `.name` or `['name']`; None when the call is of something else."""
        child, name = self.bind(expr.args[0]), expr.args[1]
        if child.type is None or not pa.types.is_struct(child.type) or not isinstance(name, Literal):
            return None
        wanted = str(name.scalar.as_py())
        found = resolve(pa.schema(list(child.type)), (wanted,))
        if found is None:
            raise refused(expr, f"names a field {wanted!r} that is not there", ", ".join(f.name for f in child.type))
        if isinstance(child, Column):
            return Column((*child.path, found.name), type=found.type)
        return Call(FIELD, (child, literal(found.name)), type=found.type)

    def _call(self, expr: Call) -> Expr:
        if expr.name in (FIELD, ITEM) and len(expr.args) == 2:
            field = self.field(expr)
            if field is not None:
                return field
        function = function_of(expr)
        args = [self.bind(arg) for arg in expr.args]
        signature = signature_of(expr, args)
        args = [self.cast(arg, t) for arg, t in zip(args, signature.arguments, strict=True)]
        constants = {i: a.scalar.as_py() for i, a in enumerate(args) if i in function.constants and isinstance(a, Literal)}
        call = Call(expr.name, tuple(args), type=function.result_of(signature, constants))
        if function.constants:
            try_out(call, self.zone)
        return call


def _is_constant(expr: Expr) -> bool:
    return all(isinstance(part, Literal) for part in children(expr))
