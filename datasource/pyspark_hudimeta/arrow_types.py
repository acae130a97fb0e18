"""Arrow types and Spark types, and batches with exactly the schema that Spark has.

Spark 4.2 refuses a batch whose schema differs from the declared one in anything but metadata; 4.1 does not look, and swaps
columns. So every batch is brought to `arrow_schema` of the declared schema, whichever Spark asks. All fields are nullable:
a batch whose nullability differs is refused as well, and nulls in a column declared without fail the task.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark_types
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StructField, StructType, VariantType

from hudimeta.errors import UnsupportedFeature
from hudimeta.formats.plain_arrays import single_array
from hudimeta.schema import DOC_KEY, HUDI_TYPE_KEY, conform, hudi_type_of
from hudimeta.schema.hudi_types import VARIANT

__all__ = ["HUDI_TYPE", "arrow_schema", "declared_schema", "fitted", "spark_schema", "written_schema"]

HUDI_TYPE = HUDI_TYPE_KEY.decode()
"""Key of a column's metadata: its type as Apache Hudi spells it, where it is none of Spark's."""

_WIDEST_DECIMAL = 38
_BY_BYTES = "UTF8_BINARY"
"""The collation of texts that a Hudi table has."""

_SIMPLE: dict[pa.DataType, type[DataType]] = {
    pa.null(): spark_types.NullType,
    pa.bool_(): spark_types.BooleanType,
    pa.int8(): spark_types.ByteType,
    pa.int16(): spark_types.ShortType,
    pa.int32(): spark_types.IntegerType,
    pa.int64(): spark_types.LongType,
    pa.float32(): spark_types.FloatType,
    pa.float64(): spark_types.DoubleType,
    pa.string(): spark_types.StringType,
    pa.large_string(): spark_types.StringType,
    pa.binary(): spark_types.BinaryType,
    pa.large_binary(): spark_types.BinaryType,
    pa.date32(): spark_types.DateType,
    # Hudi's Spark reader shows times of day as the numbers that they are stored as.
    pa.time32("s"): spark_types.IntegerType,
    pa.time32("ms"): spark_types.IntegerType,
    pa.time64("us"): spark_types.LongType,
    pa.time64("ns"): spark_types.LongType,
}

_WRITABLE = (
    spark_types.NullType,
    spark_types.BooleanType,
    spark_types.ByteType,
    spark_types.ShortType,
    spark_types.IntegerType,
    spark_types.LongType,
    spark_types.FloatType,
    spark_types.DoubleType,
    spark_types.DecimalType,
    spark_types.StringType,
    spark_types.CharType,
    spark_types.VarcharType,
    spark_types.BinaryType,
    spark_types.DateType,
    spark_types.TimestampType,
    spark_types.TimestampNTZType,
)
_DECLARED = tuple(kind for kind in _WRITABLE if kind is not spark_types.NullType)
"""Types that a new column can have. Rows may hold the type of NULL, which fits whatever their column has."""


def spark_schema(schema: pa.Schema) -> StructType:
    """A table's schema as Spark's, every field nullable, the columns' docs as comments.

    Raises:
        UnsupportedFeature: A column of a type that Spark has not.
    """
    return StructType([_spark_field(column, column.name) for column in schema])


def _spark_field(column: pa.Field, path: str) -> StructField:
    stated = column.metadata or {}
    kind = stated[HUDI_TYPE_KEY].decode() if HUDI_TYPE_KEY in stated else hudi_type_of(column)
    found = {"comment": stated.get(DOC_KEY, b"").decode(), HUDI_TYPE: kind}
    metadata = {key: value for key, value in found.items() if value}
    shown = VariantType() if kind == VARIANT else _spark_type(column.type, path)
    return StructField(column.name, shown, True, metadata or None)


def _spark_type(kind: pa.DataType, path: str) -> DataType:
    types = pa.types
    if kind in _SIMPLE:
        return _SIMPLE[kind]()
    if types.is_fixed_size_binary(kind):
        return spark_types.BinaryType()
    if types.is_timestamp(kind):
        return spark_types.TimestampNTZType() if kind.tz is None else spark_types.TimestampType()
    if types.is_decimal(kind) and kind.precision <= _WIDEST_DECIMAL:
        return DecimalType(kind.precision, kind.scale)
    if types.is_dictionary(kind):
        return _spark_type(kind.value_type, path)
    if types.is_list(kind) or types.is_large_list(kind):
        return ArrayType(_spark_type(kind.value_type, f"{path}.element"), True)
    if types.is_map(kind):
        return MapType(_spark_type(kind.key_type, f"{path}.key"), _spark_type(kind.item_type, f"{path}.value"), True)
    if types.is_struct(kind):
        inner = (kind.field(number) for number in range(kind.num_fields))
        return StructType([_spark_field(column, f"{path}.{column.name}") for column in inner])
    raise UnsupportedFeature(f"column {path} of type {kind} in Spark", "Leave it out with the option hudimeta.columns.")


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark expects of the batches of a declared schema: times in UTC, no large types."""
    zone: Mapping[str, Any] = {}
    if "timezone" in inspect.signature(to_arrow_schema).parameters:  # since Spark 4.2; before, UTC is what it gives
        zone = {"timezone": "UTC"}
    return to_arrow_schema(schema, **zone)


def fitted(batch: pa.RecordBatch, expected: pa.Schema) -> pa.RecordBatch:
    """A batch as Spark wants it: the columns by their position, everything else as `expected` has it.

    Raises:
        SchemaMismatch: A declared type that the column does not promote to.
    """
    if batch.schema.equals(expected):
        return batch
    columns = [_storable(column) for column in batch.columns]
    if all(column.type == field.type for column, field in zip(columns, expected, strict=True)):
        return pa.RecordBatch.from_arrays(columns, schema=expected)
    table = conform(pa.table(columns, names=expected.names), expected)
    return pa.RecordBatch.from_arrays([single_array(column) for column in table.columns], schema=expected)


def _storable(column: pa.Array) -> pa.Array:
    """Times of day as numbers, at every depth: the same bytes under another type."""
    stored = _without_times(column.type)
    return column if stored == column.type else column.view(stored)


def _without_times(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_time(kind):
        return pa.int32() if types.is_time32(kind) else pa.int64()
    if types.is_list(kind):
        return pa.list_(_field_without_times(kind.value_field))
    if types.is_map(kind):
        return pa.map_(_field_without_times(kind.key_field), _field_without_times(kind.item_field))
    if types.is_struct(kind):
        return pa.struct([_field_without_times(kind.field(number)) for number in range(kind.num_fields)])
    return kind


def _field_without_times(column: pa.Field) -> pa.Field:
    return column.with_type(_without_times(column.type))


def written_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a DataFrame that is written; nullable everywhere, as Spark knows nullability of the query only.

    Raises:
        UnsupportedFeature: A column of a type that a Hudi table has not.
    """
    for column in schema:
        if not isinstance(column.dataType, VariantType):  # as whole columns alone
            _refuse_unwritable(column.dataType, column.name)
    return _with_hudi_types(arrow_schema(nullable(schema)), schema)


def declared_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of columns as a statement declares them, `NOT NULL` included.

    Raises:
        UnsupportedFeature: A column of a type that a Hudi table has not.
    """
    for column in schema:
        if not isinstance(column.dataType, VariantType):  # as whole columns alone
            _refuse_unwritable(column.dataType, column.name, _DECLARED)
    return _with_hudi_types(arrow_schema(schema), schema)


def _with_hudi_types(arrow: pa.Schema, schema: StructType) -> pa.Schema:
    for at, column in enumerate(schema):
        own = VARIANT if isinstance(column.dataType, VariantType) else None
        kind = (column.metadata or {}).get(HUDI_TYPE, own)
        if kind is not None:
            arrow = arrow.set(at, arrow.field(at).with_metadata({HUDI_TYPE_KEY: str(kind).encode()}))
    return arrow


def _refuse_unwritable(kind: DataType, path: str, taken: tuple[type[DataType], ...] = _WRITABLE) -> None:
    if isinstance(kind, ArrayType):
        _refuse_unwritable(kind.elementType, f"{path}.element", taken)
    elif isinstance(kind, MapType):
        _refuse_unwritable(kind.keyType, f"{path}.key", _DECLARED)
        _refuse_unwritable(kind.valueType, f"{path}.value", taken)
    elif isinstance(kind, StructType):
        for column in kind:
            _refuse_unwritable(column.dataType, f"{path}.{column.name}", taken)
    elif getattr(kind, "collation", _BY_BYTES) != _BY_BYTES:
        hint = "Hudi tables keep none: take it off with CAST(… AS STRING), and say COLLATE in queries."
        raise UnsupportedFeature(f"writing column {path} with collation {kind.collation}", hint)
    elif not isinstance(kind, taken):
        raise UnsupportedFeature(f"writing column {path} of type {kind.simpleString()}", "Cast it, to string for instance.")


def nullable(kind: DataType) -> Any:
    """A type, or a schema, that takes null everywhere."""
    if isinstance(kind, ArrayType):
        return ArrayType(nullable(kind.elementType), True)
    if isinstance(kind, MapType):
        return MapType(nullable(kind.keyType), nullable(kind.valueType), True)
    if isinstance(kind, StructType):
        return StructType([StructField(column.name, nullable(column.dataType), True) for column in kind])
    return kind
