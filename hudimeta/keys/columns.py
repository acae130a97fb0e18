"""Columns of a batch by dotted name, as text, with errors that name the row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudimeta.errors import SchemaMismatch
from hudimeta.formats.plain_arrays import array_of, scalar_of, single_array
from hudimeta.schema.java_text import java_text
from hudimeta.schema.promotion import is_bytes

__all__ = ["Rows", "column", "first_row", "text_column", "text_of"]

Rows = Any  # pa.Table | pa.RecordBatch


def column(rows: Rows, name: str, purpose: str) -> pa.Array:
    """One column as one array; `a.b` reaches into structs.

    Raises:
        SchemaMismatch: There is no such column; the text says what it was wanted for.
    """
    import pyarrow.compute as pc

    if name in rows.schema.names:
        found = rows.column(name)
    else:
        top, _, rest = name.partition(".")
        if top not in rows.schema.names or not rest:
            hint = f"Add the column to the rows: the table's {purpose} is made of it."
            raise SchemaMismatch(name, "missing", f"a {purpose}", hint)
        try:
            found = pc.struct_field(rows.column(top), rest.split("."))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, KeyError, TypeError) as error:
            raise SchemaMismatch(name, "missing", f"a {purpose}", f"The rows have no field {rest!r} in {top!r}.") from error
    return single_array(found)


def text_column(rows: Rows, name: str, purpose: str, consistent_timestamp: bool) -> pa.Array:
    """The column's values as Java's text, see `text_of`."""
    return text_of(column(rows, name, purpose), name, consistent_timestamp)


def text_of(values: pa.Array, name: str, consistent_timestamp: bool) -> pa.Array:
    """Values as Java's text; null stays null. Bytes are their hexadecimal digits (`StringUtils.objToString`)."""
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if is_bytes(kind):
        return array_of([None if value is None else value.hex() for value in values.to_pylist()], pa.string())
    return java_text(values, name, consistent_timestamp=consistent_timestamp)


def first_row(mask: pa.Array) -> int | None:
    """The number of the first row where `mask` is true, None when there is none."""
    import pyarrow.compute as pc

    at = pc.index(mask, value=scalar_of(True)).as_py()
    return None if at < 0 else int(at)
