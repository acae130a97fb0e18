"""Rules for column names: what Avro can hold, what Hudi keeps for itself, and what Spark cannot tell apart."""

from __future__ import annotations

import re

import pyarrow as pa

from hudimeta.errors import SchemaMismatch, UnsupportedFeature
from hudimeta.types import META_COLUMNS

__all__ = [
    "MAX_DEPTH",
    "META_FIELDS",
    "OPERATION_COLUMN",
    "check_names",
    "sanitize_name",
    "strip_meta_columns",
    "with_meta_columns",
]

OPERATION_COLUMN = "_hoodie_operation"
"""A sixth meta column that some writers add when they log operations."""

DATA_COLUMNS_WITH_RESERVED_PREFIX = frozenset({"_hoodie_is_deleted"})
"""Columns of the user's that may begin with the reserved prefix: Hudi gives them a meaning, not a value."""

META_FIELDS: tuple[pa.Field, ...] = tuple(pa.field(name, pa.string()) for name in META_COLUMNS)
"""The five meta columns as Arrow fields: nullable strings."""

MAX_DEPTH = 64
"""Levels of nested types: deeper nesting is refused, in what is read and in what is written."""

_RESERVED_PREFIX = "_hoodie_"
_FIRST_LETTER = re.compile(r"[A-Za-z_]")
_OTHER_LETTERS = re.compile(r"[^A-Za-z0-9_]")
_MASK = "__"


def sanitize_name(name: str) -> str:
    """A table's name as Avro record names carry it: every character that Avro forbids becomes two underscores."""
    if not name:
        return name
    first = name[0] if _FIRST_LETTER.match(name[0]) else _MASK
    return first + _OTHER_LETTERS.sub(_MASK, name[1:])


def strip_meta_columns(schema: pa.Schema) -> pa.Schema:
    """The schema without Hudi's meta columns (the five, and `_hoodie_operation`), wherever they stand."""
    drop = {*META_COLUMNS, OPERATION_COLUMN}
    return pa.schema([f for f in schema if f.name not in drop], metadata=schema.metadata)


def with_meta_columns(schema: pa.Schema) -> pa.Schema:
    """The schema with the five meta columns in front, as every base file has them; they are never doubled."""
    return pa.schema([*META_FIELDS, *strip_meta_columns(schema)], metadata=schema.metadata)


def check_names(schema: pa.Schema) -> None:
    """Refuse columns whose names cannot be stored or told apart, at any depth.

    Args:
        schema: Data columns, without meta columns.

    Raises:
        SchemaMismatch: For a doubled name, two names that differ only by case (Spark cannot tell them apart), a name that Avro
            cannot hold, or a top-level name that begins with `_hoodie_` and is not one that Hudi knows.
        UnsupportedFeature: A column nests too deep.
    """
    _check_depth(schema)
    for field in schema:
        if field.name.startswith(_RESERVED_PREFIX) and field.name not in DATA_COLUMNS_WITH_RESERVED_PREFIX:
            raise SchemaMismatch(
                field.name, "a name that is kept for Hudi", "another name", "Rename the column: _hoodie_ is a reserved prefix."
            )
    _check_siblings(list(schema), "")


def _check_depth(schema: pa.Schema) -> None:
    for column in schema:
        level, depth = [column.type], 0
        while level:
            if depth > MAX_DEPTH:
                hint = "Flatten it, or store it as JSON text."
                raise UnsupportedFeature(f"nesting deeper than {MAX_DEPTH} levels (column {column.name!r})", hint)
            level, depth = [inner for kind in level for inner in _children(kind)], depth + 1


def _children(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.field(at).type for at in range(kind.num_fields)]


def _check_siblings(fields: list[pa.Field], parent: str) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        path = parent + field.name
        _check_avro_name(field.name, path)
        twin = seen.get(field.name.lower())
        if twin is not None:
            how = "there twice" if twin == field.name else f"told from {parent + twin!r} only by upper and lower case"
            raise SchemaMismatch(path, how, "a name of its own", "Rename or drop one of the two columns.")
        seen[field.name.lower()] = field.name
        _check_children(field.type, path)


def _check_children(kind: pa.DataType, path: str) -> None:
    if pa.types.is_struct(kind):
        _check_siblings([kind.field(i) for i in range(kind.num_fields)], path + ".")
    elif pa.types.is_map(kind):
        _check_children(kind.item_type, path)
    elif hasattr(kind, "value_field") and not pa.types.is_dictionary(kind):
        _check_children(kind.value_type, path)


def _check_avro_name(name: str, path: str) -> None:
    """Avro names: a letter or underscore, then letters, digits and underscores; letters as Java understands them."""
    good = bool(name) and (name[0].isalpha() or name[0] == "_") and all(c.isalnum() or c == "_" for c in name)
    if not good:
        raise SchemaMismatch(
            path,
            "a name that Avro cannot hold",
            "letters, digits and underscores, not beginning with a digit",
            f"Rename the column, for example to {sanitize_name(name) or 'column'!r}.",
        )
