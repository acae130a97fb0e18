"""New values of columns: SQL expressions or constants of Python, brought to the columns' types as an assignment does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from hudimeta.errors import ConfigError, SchemaMismatch
from hudimeta.predicate import Expr, bind_value, evaluate_strictly, parse_sql
from hudimeta.predicate.tree import Literal
from hudimeta.schema import conform_array
from hudimeta.schema.promotion import is_bytes, is_list_like, is_number, is_text

__all__ = ["Assigned", "assigned_column", "assigned_fields", "value_expression"]

_DIGITS_OF_64_BITS = 19

Assigned = Any
"""A new value: text is SQL in Spark's dialect (`"fare * 2"`, `"'text'"`); anything else is itself."""


def value_expression(value: Assigned, field: pa.Field) -> Expr:
    """The unbound expression that a new value stands for.

    Raises:
        ConfigError: Text that is no expression.
        SchemaMismatch: A constant that the column cannot hold.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, str):
        return parse_sql(value)
    return Literal(_constant(value, field)[0], type=field.type)


def assigned_column(value: Assigned, field: pa.Field, rows: pa.Table) -> pa.ChunkedArray:
    """A column's new values.

    Args:
        value: See `Assigned`.
        field: Of the column.
        rows: What the expression may read.

    Raises:
        ConfigError: See `value_expression`; columns that are not there.
        SchemaMismatch: Values that the column cannot hold.
        PredicateError: An expression that overflows, divides by zero or cannot be cast in some row.
    """
    if isinstance(value, (dict, list, tuple)):
        one = _constant(value, field)
        return pa.chunked_array([one.take(pa.array([0] * rows.num_rows, pa.int64()))], field.type)
    bound = bind_value(value_expression(value, field), rows.schema, strict=True)
    found = evaluate_strictly(bound, rows)
    return pa.chunked_array([_stored(chunk, field) for chunk in found.chunks], field.type)


def _constant(value: Any, field: pa.Field) -> pa.Array:
    try:
        if isinstance(value, pa.Scalar) and pa.types.is_temporal(value.type):
            return _stored(pa.repeat(value, 1), field)  # Python has no days and moments outside of the years 1 to 9999
        plain = value.as_py() if isinstance(value, pa.Scalar) else value
        if pa.types.is_nested(field.type):
            _refuse_other_keys(plain, field.type, field.name)
            return pa.array([plain], field.type)
        # In its own type first: arrays of a given type cut 1.5 off to 1.
        return _stored(pa.array([plain]), field)
    except (pa.ArrowException, TypeError, ArithmeticError, LookupError, ValueError) as error:
        raise SchemaMismatch(field.name, _shown(value), field.type, f"The value does not fit: {error}.") from error


def _shown(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # of an integer of some thousand digits
        return "an endless number"


def _stored(values: pa.Array, field: pa.Field) -> pa.Array:
    """As SQL assigns: wider types by themselves, narrower ones where every value fits; a number is no moment, nor a truth."""
    _refuse_other_fields(values.type, field.type, field.name)
    try:
        return conform_array(values, field, field.name)
    except SchemaMismatch:
        if not _may_become(values.type, field.type):
            hint = "Cast the expression where that is meant."
            raise SchemaMismatch(field.name, values.type, field.type, hint) from None
        try:
            return conform_array(_cast(values, field.type), field, field.name)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            hint = f"Cast the expression, or choose values that fit: {str(error).splitlines()[0]}."
            raise SchemaMismatch(field.name, values.type, field.type, hint) from error


def _refuse_other_fields(kind: pa.DataType, wanted: pa.DataType, path: str) -> None:
    """Refuse structs with fields that the column does not have: Arrow would drop them, and leave null what they stand for."""
    if pa.types.is_struct(kind) and pa.types.is_struct(wanted):
        inner = {field.name: field.type for field in wanted}
        for field in kind:
            if field.name not in inner:
                raise _no_such_field(path, field.name, wanted)
            _refuse_other_fields(field.type, inner[field.name], f"{path}.{field.name}")
    elif is_list_like(kind) and is_list_like(wanted):
        _refuse_other_fields(kind.value_type, wanted.value_type, f"{path}.element")
    elif pa.types.is_map(kind) and pa.types.is_map(wanted):
        _refuse_other_fields(kind.item_type, wanted.item_type, f"{path}.value")


def _refuse_other_keys(value: Any, wanted: pa.DataType, path: str) -> None:
    """The same of a constant of Python."""
    if pa.types.is_struct(wanted) and isinstance(value, Mapping):
        inner = {field.name: field.type for field in wanted}
        for name, one in value.items():
            if name not in inner:
                raise _no_such_field(path, name, wanted)
            _refuse_other_keys(one, inner[name], f"{path}.{name}")
    elif is_list_like(wanted) and isinstance(value, (list, tuple)):
        for one in value:
            _refuse_other_keys(one, wanted.value_type, f"{path}.element")
    elif pa.types.is_map(wanted) and isinstance(value, (list, tuple, Mapping)):
        for pair in value.items() if isinstance(value, Mapping) else value:
            _refuse_other_keys(pair[1], wanted.item_type, f"{path}.value")


def _no_such_field(path: str, name: object, wanted: pa.DataType) -> SchemaMismatch:
    names = ", ".join(field.name for field in wanted)
    hint = f"Leave it out, or add it to the table first: alter(add={{'{path}.{name}': …}})."
    return SchemaMismatch(path, f"a struct with the field {name!r}", f"no fields but {names}", hint)


def _may_become(kind: pa.DataType, other: pa.DataType) -> bool:
    """Whether Spark would assign values of a type, or they are texts, which may be read as anything."""
    kinds = (is_number, pa.types.is_boolean, pa.types.is_temporal)
    return not any(holds(kind) != holds(other) for holds in kinds) or any(
        is_text(one) or is_bytes(one) for one in (kind, other)
    )


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_integer(values.type) and pa.types.is_decimal(kind):
        # Arrow wants room for all integers of the type.
        values = values.cast(pa.decimal256(_DIGITS_OF_64_BITS + kind.scale, kind.scale))
    return values.cast(kind)


def assigned_fields(
    schema: pa.Schema, values: Mapping[str, Assigned], fixed: tuple[str, ...]
) -> list[tuple[pa.Field, Assigned]]:
    """The columns that assignments name, found without case where there is no exact match, with their new values.

    Args:
        schema: Columns of the table.
        values: New values by column, as the assignments spell it.
        fixed: Columns that may not change.

    Raises:
        ConfigError: No such column, one that is named twice, or one that says what the row is or where it lies.
    """
    found: dict[str, tuple[pa.Field, Assigned]] = {}
    for name, value in values.items():
        field = _field_of(schema, name, fixed)
        if field.name in found:
            raise ConfigError("set", name, "every column once", f"Set {field.name} to one value.")
        found[field.name] = (field, value)
    return list(found.values())


def _field_of(schema: pa.Schema, name: str, fixed: tuple[str, ...]) -> pa.Field:
    found = [f for f in schema if f.name == name] or [f for f in schema if f.name.lower() == name.lower()]
    if not found:
        raise ConfigError("set", name, f"columns of the table: {', '.join(schema.names)}", "Name whole columns.")
    if found[0].name in fixed:
        hint = "Delete the row and insert it anew: its key and its partition say which row it is."
        raise ConfigError("set", name, "a column that is neither part of the key nor of the partition", hint)
    return found[0]
