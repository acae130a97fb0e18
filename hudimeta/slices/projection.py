"""Which parts of columns a read needs: `place.x` is the field `x` of the struct column `place`, and comes out under that name.

Of a struct only the fields that are asked for are read and carried along; lists and maps are read whole. A column whose own
name has a dot goes before a field of that spelling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

__all__ = ["leaf_paths", "path_of", "picked", "pruned", "shown_field"]

Path = tuple[str, ...]


def path_of(name: str, schema: pa.Schema) -> Path:
    """The column, or the column and its fields, that a name means."""
    return (name,) if "." not in name or name in schema.names else tuple(name.split("."))


def shown_field(name: str, schema: pa.Schema) -> pa.Field:
    """What a name comes out as; it is nullable where anything above it is. Raises KeyError when there is no such field."""
    head, *rest = path_of(name, schema)
    found = schema.field(head)
    nullable = found.nullable
    for part in rest:
        if not pa.types.is_struct(found.type) or found.type.get_field_index(part) < 0:
            raise KeyError(name)
        found = found.type.field(part)
        nullable = nullable or found.nullable
    return found.with_name(name).with_nullable(nullable)


def pruned(schema: pa.Schema, paths: Iterable[Path]) -> pa.Schema:
    """The columns that some paths lead into, in the order of the schema, structs with only the fields that are wanted."""
    wanted = set(paths)
    return pa.schema([found for field in schema if (found := _pruned(field, (field.name,), wanted)) is not None])


def _pruned(field: pa.Field, path: Path, wanted: set[Path]) -> pa.Field | None:
    if path in wanted:
        return field
    if not pa.types.is_struct(field.type) or not any(other[: len(path)] == path for other in wanted):
        return None
    fields = [found for child in field.type if (found := _pruned(child, (*path, child.name), wanted)) is not None]
    return field.with_type(pa.struct(fields))


def leaf_paths(schema: pa.Schema) -> list[str]:
    """What to ask a file for: columns by name, of structs the fields that are left of them."""
    return [path for field in schema for path in _leaves(field, field.name)]


def _leaves(field: pa.Field, path: str) -> Iterator[str]:
    if pa.types.is_struct(field.type) and field.type.num_fields:
        for child in field.type:
            yield from _leaves(child, f"{path}.{child.name}")
    else:
        yield path


def picked(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """The values of a column or field of rows."""
    import pyarrow.compute as pc

    head, *rest = path_of(name, rows.schema)
    column = rows.column(head)
    return pc.struct_field(column, rest) if rest else column
