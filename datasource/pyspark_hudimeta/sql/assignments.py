"""What SET names: columns, and fields of structs, whose structs are made anew with all their other fields as they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias, TypeVar

from pyspark.sql.types import DataType, StructType

from hudimeta.errors import ConfigError
from pyspark_hudimeta.routed.assignment import column_of

__all__ = ["Path", "set_path", "whole_columns"]

Path: TypeAlias = "tuple[str, ...]"
"""A column, and a field of it, of that, and so on; each in its own spelling."""
Value = TypeVar("Value")


def set_path(columns: StructType, alias: str, parts: Path, taken: Collection[Path]) -> Path:
    """The column or the field that an assignment names.

    Args:
        columns: Of the table.
        alias: What the statement calls the table; it may stand in front.
        parts: The name, as it is written.
        taken: What the statement sets besides.

    Raises:
        ConfigError: It is not there, or set twice, by itself or as a part of another one.
    """
    qualified = len(parts) > 1 and parts[0].lower() == alias.lower() and not _is_field(columns, parts)
    named = parts[1:] if qualified else parts
    path: Path = (column_of(columns, named[0]),)
    kind: DataType = columns[path[0]].dataType
    for name in named[1:]:
        inside = kind.names if isinstance(kind, StructType) else []
        if not isinstance(kind, StructType) or name.lower() not in (field.lower() for field in inside):
            allowed = f"fields of {'.'.join(path)}: {', '.join(inside)}" if inside else "columns, and fields of structs"
            raise ConfigError("SET", ".".join(parts), allowed, "Set elements of arrays and maps with their whole column.")
        path = (*path, column_of(kind, name))
        kind = kind[path[-1]].dataType
    if any(path[: len(other)] == other or other[: len(path)] == path for other in taken):
        raise ConfigError("SET", ".".join(path), "every column once")
    return path


def _is_field(columns: StructType, parts: Path) -> bool:
    """True where the table's own name is that of a struct too, and only this has what follows."""
    own = {name.lower(): columns[name].dataType for name in columns.names}
    kind = own.get(parts[0].lower())
    inside = [name.lower() for name in kind.names] if isinstance(kind, StructType) else []
    return parts[1].lower() not in own and parts[1].lower() in inside


def whole_columns(
    columns: StructType,
    stated: Mapping[Path, Value],
    own: Callable[[str], Value],
    field: Callable[[Value, str], Value],
    struct: Callable[[Sequence[tuple[str, Value]]], Value],
) -> dict[str, Value]:
    """New values by column.

    Args:
        columns: Of the table.
        stated: New values of columns and of fields.
        own: What a column of the table is.
        field: What a field of a struct is.
        struct: A struct of names and values.
    """

    def made(kind: DataType, value: Value, changes: Mapping[Path, Value]) -> Value:
        if () in changes or not isinstance(kind, StructType):
            return changes[()]
        fields = []
        for one in kind:
            below = {path[1:]: new for path, new in changes.items() if path[0] == one.name}
            kept = field(value, one.name)
            fields.append((one.name, made(one.dataType, kept, below) if below else kept))
        return struct(fields)

    found: dict[str, Value] = {}
    for column in dict.fromkeys(path[0] for path in stated):
        changes = {path[1:]: value for path, value in stated.items() if path[0] == column}
        found[column] = made(columns[column].dataType, own(column), changes)
    return found
