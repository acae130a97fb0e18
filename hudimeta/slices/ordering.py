"""Ordering values: which of two versions of a row is the later one in event time.

Values compare as they do in Java: numbers by value, NaN above every number and -0.0 below 0.0, text by its UTF-8 bytes. A null
counts as 0, which is the value that Hudi puts in its place; as text it stands before everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.errors import SchemaMismatch, UnsupportedFeature
from hudimeta.formats.plain_arrays import fill_null, numbers, numpy_of, scalar_of, single_array

__all__ = ["Codes", "field_type", "order_codes", "ordering_columns", "places_beside_barriers"]

Codes: TypeAlias = npt.NDArray[np.int64]


def field_type(schema: pa.Schema, name: str) -> pa.DataType | None:
    """Type of a column, or of a struct's field when `name` has dots; None when there is no such column."""
    head, _, rest = name.partition(".")
    if schema.get_field_index(name) >= 0:
        return schema.field(name).type
    if not rest or schema.get_field_index(head) < 0:
        return None
    kind = schema.field(head).type
    return field_type(pa.schema(list(kind)), rest) if pa.types.is_struct(kind) else None


def ordering_columns(table: pa.Table, fields: Sequence[str]) -> list[pa.ChunkedArray]:
    """The ordering fields of rows, one array a field; a field that the rows lack gives int32 nulls."""
    return [_column(table, name) for name in fields]


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    if table.schema.get_field_index(name) >= 0:
        return table.column(name)
    kind = field_type(table.schema, name)
    if kind is None:
        return pa.chunked_array([pa.nulls(table.num_rows, pa.int32())])
    import pyarrow.compute as pc

    head, *path = name.split(".")
    return pc.struct_field(table.column(head), path)


def order_codes(columns: Sequence[pa.ChunkedArray]) -> Codes:
    """Integers in the order of the rows' ordering values, equal where all values are equal.

    Args:
        columns: One array per ordering field, the most significant first, all of one length. Codes compare only with codes
            of the same call: concatenate what is to be compared.

    Raises:
        UnsupportedFeature: A field of a type that has no order.
    """
    codes = _codes_of(columns[0])
    for column in columns[1:]:
        _, high = np.unique(codes, return_inverse=True)
        lows, low = np.unique(_codes_of(column), return_inverse=True)
        codes = high.astype(np.int64) * max(len(lows), 1) + low
    return codes


def _codes_of(column: pa.ChunkedArray) -> Codes:
    """Codes of one field."""
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.int64)
    if pa.types.is_floating(kind):
        return _float_codes(numpy_of(fill_null(column.cast(pa.float64()), 0.0)))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return _integers(column.cast(pa.int64()))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return _integers(column.cast(pa.int32()).cast(pa.int64()))
    if pa.types.is_temporal(kind):
        return _integers(column.cast(pa.int64()))
    if pa.types.is_decimal(kind):
        column = fill_null(column, scalar_of(0, kind))
    elif not (_is_text(kind) or pa.types.is_fixed_size_binary(kind)):
        raise UnsupportedFeature(f"ordering by a column of type {kind}")
    ranks = _integers(pc.rank(column, tiebreaker="dense").cast(pa.int64()))
    return np.where(numpy_of(column.is_null()), np.int64(0), ranks)


def places_beside_barriers(key: Codes, natural: npt.NDArray[np.bool_]) -> Codes:
    """What sorts before ordering values: 0 for records before the last delete without one of their key, 1 for it, 2 for others.

    Such a delete stands for its key only when nothing follows it, so it sorts before what does, whatever that holds.

    Args:
        key: Number of the key of each record, in the order of their age.
        natural: Whether the record is a delete without an ordering value.
    """
    number = np.arange(len(key))
    barrier = np.full(int(key.max(initial=-1)) + 1, -1)
    at = np.flatnonzero(natural)
    barrier[key[at]] = at
    return np.where(number > barrier[key], 2, np.where(number == barrier[key], 1, 0))


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    )


def _float_codes(values: npt.NDArray[np.float64]) -> Codes:
    """Bits of doubles, bent so that integers compare as Double.compareTo does."""
    bits = np.where(np.isnan(values), np.float64("nan"), values).view(np.int64)
    codes: Codes = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    return codes


def _integers(values: pa.ChunkedArray | pa.Array) -> Codes:

    filled = fill_null(values, 0) if values.null_count else values
    return numbers(single_array(filled))


def refuse_null_keys(keys: pa.ChunkedArray, column: str) -> None:
    """Raise SchemaMismatch when a record of a log has no key: it could not be merged with anything."""
    if keys.null_count:
        raise SchemaMismatch(column, f"null in {keys.null_count} log records", "a record key in every row")
