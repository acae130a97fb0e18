"""Binding of function calls: which function, whether the arguments fit, and what their types become."""

from __future__ import annotations

import difflib

import pyarrow as pa

from hudimeta.errors import PredicateError
from hudimeta.formats.plain_arrays import array_of
from hudimeta.predicate.casts import can_cast, cast_array
from hudimeta.predicate.constants import is_utf8
from hudimeta.predicate.functions import FUNCTION_NAMES, FUNCTIONS
from hudimeta.predicate.render import to_sql
from hudimeta.predicate.signature import Context, Function, Signature, WrongArguments
from hudimeta.predicate.tree import Call, Expr, Literal
from hudimeta.predicate.types import DATE, INSTANT, LOCAL_TIMESTAMP, STRING, is_numeric, type_name

__all__ = ["cast_constant", "function_of", "refused", "signature_of", "try_out"]

_TIMES = frozenset({DATE, INSTANT, LOCAL_TIMESTAMP})
_ELSEWHERE = "Leave it to Spark: filter the rows after reading, or attach the session (pyspark_hudimeta.attach)."


def refused(expr: Expr, why: str, allowed: str = "an expression that Spark accepts") -> PredicateError:
    """The error for a part that cannot be evaluated."""
    return PredicateError(to_sql(expr), allowed, f"The part {to_sql(expr)!r} {why}.")


def cast_constant(constant: Literal, target: pa.DataType, zone: str) -> pa.Scalar:
    """A constant in another type, null where it is no value of it.

    Raises:
        PredicateError: A BINARY is to be a text and is none.
    """
    value = cast_array(pa.repeat(constant.scalar, 1), target, zone)[0]
    if target == STRING and not is_utf8(value):
        raise refused(constant, "is a constant that is no text", "bytes of UTF-8")
    return value


def function_of(call: Call) -> Function:
    """The function of a name.

    Raises:
        PredicateError: There is none; it names the one that is most alike.
    """
    function = FUNCTIONS.get(call.name)
    if function is not None:
        return function
    closest = difflib.get_close_matches(call.name, FUNCTION_NAMES, n=1)
    hint = f"Did you mean {closest[0]!r}?" if closest else _ELSEWHERE
    raise PredicateError(f"{call.name}(…)", "a function that is evaluated here (docs/predicates.md lists them)", hint)


def signature_of(call: Call, args: list[Expr]) -> Signature:
    """The types that bound arguments are cast to, and that of the result.

    Raises:
        PredicateError: For too few or too many arguments, for other types, and for columns where a constant must be.
    """
    function = FUNCTIONS[call.name]
    low, high = function.arity
    if not low <= len(args) <= high:
        many = str(low) if low == high else f"{low} to {high}"
        raise refused(call, f"has {len(args)} arguments", f"{many} arguments")
    for position in function.constants:
        if position < len(args) and not isinstance(args[position], Literal):
            raise refused(call, f"needs a constant as argument {position + 1}")
    types = [arg.type if arg.type is not None else pa.null() for arg in args]
    try:
        signature = function.resolve(types)
    except WrongArguments as error:
        raise refused(call, f"is given {', '.join(map(type_name, types))}", str(error)) from error
    for source, target in zip(types, signature.arguments, strict=True):
        if not (can_cast(source, target) and _is_implicit(source, target)):
            raise refused(call, f"is given {type_name(source)}", type_name(target))
    return signature


def _is_implicit(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether Spark casts an argument so without being asked: within numbers, within times, and from and to texts."""
    if source == target or pa.types.is_null(source) or STRING in (source, target):
        return True
    return (is_numeric(source) and is_numeric(target)) or {source, target} <= _TIMES


def try_out(call: Call, zone: str) -> None:
    """Run a call over no rows, so that a malformed pattern is refused before any file is read."""
    function = FUNCTIONS[call.name]
    assert call.type is not None
    empty = [
        arg.scalar.as_py() if i in function.constants and isinstance(arg, Literal) else array_of([], arg.type)
        for i, arg in enumerate(call.args)
    ]
    function.run(Context(zone, 0, call.type), empty)
