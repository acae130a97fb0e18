"""Arrow types of users (pandas, Polars, DuckDB, Spark) to the types that a Hudi table has.

=============================================  ======================  ====================================================
given                                          becomes                 why
=============================================  ======================  ====================================================
int8, int16, uint8, uint16                     int32                   Avro has no smaller integer
uint32                                         int64
uint64                                         refused                 no Avro type holds it: cast to int64 or decimal(20, 0)
float16                                        float32
large_string, string_view, json                string
large_binary, binary_view, fixed_size_binary   binary
dictionary, run-end encoded                    its values' type
date64                                         date32
timestamp[s, ms, ns] (any zone)                timestamp[us, UTC]      a zone is only how a moment is shown
timestamp[s, ms, ns] without a zone            timestamp[us]           Avro's local timestamp
decimal32, decimal64, decimal256               decimal128              decimal256 only up to 38 digits
large_list, fixed_size_list, list views        list
null, time, duration, interval, union          refused                 Spark and Hudi have no column of that kind
=============================================  ======================  ====================================================
"""

from __future__ import annotations

import pyarrow as pa

from hudimeta.errors import SchemaMismatch
from hudimeta.schema.hudi_types import declared_field
from hudimeta.schema.names import check_names, strip_meta_columns
from hudimeta.schema.promotion import is_bytes, is_list_like, is_text

__all__ = ["normalise_field", "normalise_schema", "normalise_type"]

MAX_PRECISION = 38


def normalise_schema(schema: pa.Schema, *, allow_null_type: bool = False) -> pa.Schema:
    """The schema that rows of `schema` have in a Hudi table.

    Args:
        schema: As given; meta columns are dropped, since a writer makes its own.
        allow_null_type: True keeps columns of type null, which fit a column of any type that the table already has.

    Returns:
        Data columns with types that Avro, Parquet and Spark agree on; nullability and order kept.

    Raises:
        SchemaMismatch: A name or type that a Hudi table cannot have; the text names the column and what to do.
    """
    data = strip_meta_columns(schema)
    check_names(data)
    if not len(data):
        raise SchemaMismatch("*", "without any column of data", "at least one column", "Pass rows with columns.")
    return pa.schema([declared_field(normalise_field(f, allow_null_type=allow_null_type)) for f in data])


def normalise_field(field: pa.Field, path: str = "", *, allow_null_type: bool = False) -> pa.Field:
    """One field, its children included; metadata is kept."""
    kind = normalise_type(field.type, path + field.name, allow_null_type=allow_null_type)
    return pa.field(field.name, kind, field.nullable, field.metadata)


def normalise_type(kind: pa.DataType, path: str, *, allow_null_type: bool = False) -> pa.DataType:
    """One type; `path` is the column's name for errors. Raises SchemaMismatch."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return normalise_type(kind.storage_type, path, allow_null_type=allow_null_type)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return normalise_type(kind.value_type, path, allow_null_type=allow_null_type)
    if types.is_nested(kind):
        return _nested(kind, path, allow_null_type)
    if types.is_null(kind) and allow_null_type:
        return kind
    plain = _leaf(kind)
    if plain is None:
        raise SchemaMismatch(path, kind, "a type that Hudi tables have", _ADVICE.get(kind) or _advice(kind))
    return plain


def _leaf(kind: pa.DataType) -> pa.DataType | None:
    types = pa.types
    if kind in _LEAVES:
        return _LEAVES[kind]
    if is_text(kind):
        return pa.string()
    if is_bytes(kind):
        return pa.binary()
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_decimal(kind) and kind.precision <= MAX_PRECISION and 0 <= kind.scale <= kind.precision:
        return pa.decimal128(kind.precision, kind.scale)
    return None


def _nested(kind: pa.DataType, path: str, allow_null_type: bool) -> pa.DataType:
    def child(field: pa.Field, name: str) -> pa.Field:
        inner = normalise_type(field.type, f"{path}.{name}", allow_null_type=allow_null_type)
        return pa.field(name, inner, field.nullable, field.metadata)

    if pa.types.is_struct(kind) and kind.num_fields:
        return pa.struct([child(kind.field(i), kind.field(i).name) for i in range(kind.num_fields)])
    if pa.types.is_map(kind):
        if not is_text(normalise_type(kind.key_type, f"{path}.key")):
            raise SchemaMismatch(path, kind, "a map with string keys", "Cast the keys to string before writing.")
        return pa.map_(pa.string(), child(kind.item_field, "value"))
    if is_list_like(kind):
        return pa.list_(child(kind.value_field, "element"))
    raise SchemaMismatch(path, kind, "a type that Hudi tables have", _advice(kind))


_LEAVES: dict[pa.DataType, pa.DataType] = {
    pa.bool_(): pa.bool_(),
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.int32(): pa.int32(),
    pa.int64(): pa.int64(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.float32(): pa.float32(),
    pa.float64(): pa.float64(),
    pa.date32(): pa.date32(),
    pa.date64(): pa.date32(),
}

_ADVICE: dict[pa.DataType, str] = {
    pa.uint64(): "Cast it to int64, or to decimal128(20, 0) when values exceed 2^63.",
    pa.null(): "The column has no value and no type: drop it, or give it the type of the values to come.",
}


def _advice(kind: pa.DataType) -> str:
    types = pa.types
    if types.is_time(kind):
        return "Cast it to string, or to an integer number of microseconds."
    if types.is_duration(kind) or types.is_interval(kind):
        return "Cast it to int64 in a unit of your choice."
    if types.is_decimal(kind):
        return f"Cast it to decimal128 with at most {MAX_PRECISION} digits and a scale of 0 or more."
    if types.is_struct(kind):
        return "A struct needs at least one field: drop the column or add a field."
    return "Cast the column before writing."
