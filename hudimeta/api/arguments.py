"""What users give as arguments, in any of the shapes that they have it in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import pyarrow as pa

from hudimeta.errors import ConfigError, SchemaMismatch
from hudimeta.table.properties import TableProperties
from hudimeta.types import TableType

__all__ = ["key_rows", "names_of", "schema_of", "table_type_of"]

_SHORT_TYPES = {"COW": TableType.COPY_ON_WRITE.value, "MOR": TableType.MERGE_ON_READ.value}


def names_of(argument: str, value: str | Sequence[str] | None) -> str:
    """Columns as an option's text: one name, or several with commas between; empty for None.

    Raises:
        ConfigError: Names without an order.
    """
    if isinstance(value, Set):
        raise ConfigError(argument, value, "a name, or a list of names", "Give a list: a set has no order.")
    return value if isinstance(value, str) else ",".join(value or ())


def table_type_of(value: str | None) -> str | None:
    """A table's type as its option has it, in upper or lower case; `cow` and `mor` as in SQL."""
    if not isinstance(value, str):
        return value
    return _SHORT_TYPES.get(value.upper(), value.upper())


def schema_of(value: Any) -> pa.Schema:
    """The schema of a table to create.

    Args:
        value: An Arrow schema, or what has one (a table, batch, reader or data set); fields or pairs of name and type.

    Raises:
        SchemaMismatch: Something else.
    """
    stated = value if isinstance(value, pa.Schema) else getattr(value, "schema", None)
    if isinstance(stated, pa.Schema):
        return stated
    try:
        if isinstance(value, (Mapping, list, tuple)) and value:
            return pa.schema(value)
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        raise _no_schema(value, str(error).splitlines()[0]) from error
    raise _no_schema(value, "")


def _no_schema(value: Any, why: str) -> SchemaMismatch:
    hint = "Give pyarrow.schema([('id', pyarrow.string()), …]), or the schema of rows: rows.schema."
    return SchemaMismatch("*", type(value).__name__ + (f" ({why})" if why else ""), "an Arrow schema", hint)


def key_rows(keys: Any, properties: TableProperties) -> Any:
    """Keys to delete as rows: values alone name a row where one column is its key and no partition belongs to it.

    Args:
        keys: Rows, which are returned as they are; or a list or Arrow array of values.
        properties: Of the table.

    Raises:
        ConfigError: Values alone, of a table whose rows they do not name.
    """
    is_list = isinstance(keys, (list, tuple)) and bool(keys) and not any(isinstance(one, Mapping) for one in keys)
    is_array = isinstance(keys, (pa.Array, pa.ChunkedArray)) and not pa.types.is_struct(keys.type)
    if not (is_list or is_array):
        return keys
    needed = (*properties.record_keys, *properties.partition_fields)
    if len(properties.record_keys) != 1 or properties.partition_fields:
        columns = ", ".join(needed) or "the key"
        hint = f'Give such rows, or choose them by a predicate: where="{needed[0] if needed else "id"} IN (…)".'
        raise ConfigError("keys", f"{len(keys)} values", f"rows with the columns {columns}", hint)
    return {needed[0]: list(keys) if isinstance(keys, tuple) else keys}
