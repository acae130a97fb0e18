"""Fields that are `not null`, below structs that are null.

Such a field has a value wherever its struct has one. Below a null struct nothing is stored, but Arrow counts the nulls that lie
there, as its readers leave them: its Parquet writer refuses the column, and so does a cast, even to the column's own type.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["cast_column", "cast_table", "without_hidden_nulls"]

_Mask = npt.NDArray[np.bool_]


def without_hidden_nulls(rows: pa.Table) -> pa.Table:
    """Rows that Arrow's Parquet writer takes: the same values, and `rows` itself where no field is concerned.

    Below null structs lies something then that nobody reads. A null below a struct that is not null stays, and is refused.
    """
    for number, field in enumerate(rows.schema):
        if _has_required(field.type):
            chunks = [_filled(chunk, np.zeros(len(chunk), np.bool_)) for chunk in rows.column(number).chunks]
            rows = rows.set_column(number, field, pa.chunked_array(chunks, field.type))
    return rows


def cast_table(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of the columns of a schema in its types, as `pyarrow.Table.cast` gives them."""
    columns = [cast_column(column, field.type) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def cast_column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column in a type, as `pyarrow.ChunkedArray.cast` gives it."""
    return column if column.type == kind else column.cast(kind)


def _has_required(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(not field.nullable or _has_required(field.type) for field in kind.fields)
    if pa.types.is_map(kind):
        return _has_required(kind.item_type)
    return pa.types.is_list(kind) and _has_required(kind.value_type)


def _filled(values: pa.Array, hidden: _Mask) -> pa.Array:
    """An array without nulls of required fields in the slots that are hidden, or null themselves."""
    kind = values.type
    if not _has_required(kind):
        return values
    if pa.types.is_struct(kind):
        null = _nulls(values)
        fields, children = kind.fields, []
        for number, field in enumerate(fields):
            child = values.field(number)
            if not field.nullable and child.null_count:
                child = _with_values(child, _nulls(child) & (hidden | null))
            children.append(_filled(child, hidden | null))
        return pa.StructArray.from_arrays(children, fields=fields, mask=pa.array(null))
    # Of a slice only the slots that are spanned are touched.
    first, last = (values.offsets[at].as_py() for at in (0, -1))
    offsets = pa.array(values.offsets.to_numpy() - first, pa.int32())
    mask = pa.array(_nulls(values)) if values.null_count else None
    if pa.types.is_map(kind):
        keys, items = (part.slice(first, last - first) for part in (values.keys, values.items))
        return pa.MapArray.from_arrays(offsets, keys, _filled(items, np.zeros(len(items), np.bool_)), type=kind, mask=mask)
    inner = values.values.slice(first, last - first)
    return pa.ListArray.from_arrays(offsets, _filled(inner, np.zeros(len(inner), np.bool_)), type=kind, mask=mask)


def _nulls(values: pa.Array) -> _Mask:
    found: _Mask = values.is_null().to_numpy(zero_copy_only=False)
    return found


def _with_values(values: pa.Array, where: _Mask) -> pa.Array:
    """Something in the slots of a mask: a value of another slot, or zeros where there is none."""
    if not where.any():
        return values
    present = np.flatnonzero(~_nulls(values))
    if present.size:
        taken = np.arange(len(values))
        taken[where] = present[0]
        return values.take(pa.array(taken))
    return _zeros(values.type, len(values)) if where.all() else values


def _zeros(kind: pa.DataType, length: int) -> pa.Array:
    if pa.types.is_struct(kind):
        children = [pa.nulls(length, f.type) if f.nullable else _zeros(f.type, length) for f in kind.fields]
        return pa.StructArray.from_arrays(children, fields=kind.fields)
    empty = pa.nulls(length, kind)
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(empty.offsets, empty.keys, empty.items, type=kind)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(empty.offsets, empty.values, type=kind)
    return pa.Array.from_buffers(kind, length, [None, *empty.buffers()[1:]])
