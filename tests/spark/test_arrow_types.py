"""Batches reach Spark with exactly the schema that it was told, whatever the files hold. Needs no session."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    VariantType,
    _parse_datatype_json_string,
)
from pyspark_hudimeta.arrow_types import arrow_schema, declared_schema, fitted, spark_schema, written_schema

from hudimeta.errors import SchemaMismatch, UnsupportedFeature

UTC = datetime.timezone.utc
NOON = datetime.datetime(2026, 1, 2, 12, tzinfo=UTC)

COLUMNS = {
    "flag": ("boolean", pa.array([True, None])),
    "small": ("int", pa.array([1, None], pa.int32())),
    "large": ("bigint", pa.array([1, None], pa.int64())),
    "single": ("float", pa.array([1.5, None], pa.float32())),
    "double": ("double", pa.array([1.5, None], pa.float64())),
    "text": ("string", pa.array(["a", None])),
    "long_text": ("string", pa.array(["a", None], pa.large_string())),
    "coded": ("string", pa.array(["a", None]).dictionary_encode()),
    "bytes": ("binary", pa.array([b"a", None])),
    "fixed": ("binary", pa.array([b"ab", None], pa.binary(2))),
    "day": ("date", pa.array([NOON.date(), None])),
    "seconds": ("timestamp", pa.array([NOON, None], pa.timestamp("ms", "UTC"))),
    "micros": ("timestamp", pa.array([NOON, None], pa.timestamp("us", "UTC"))),
    "local": ("timestamp_ntz", pa.array([NOON.replace(tzinfo=None), None], pa.timestamp("us"))),
    "clock": ("int", pa.array([5, None], pa.time32("ms"))),
    "fine_clock": ("bigint", pa.array([5, None], pa.time64("us"))),
    "money": ("decimal(10,2)", pa.array([Decimal("1.25"), None], pa.decimal128(10, 2))),
    "many": ("array<bigint>", pa.array([[1, None], None], pa.list_(pa.field("item", pa.int64())))),
    "counts": ("map<string,bigint>", pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))),
    "clocks": ("array<int>", pa.array([[5, None], None], pa.list_(pa.time32("ms")))),
    "nested": ("struct<a:bigint,b:array<struct<c:string>>>", pa.array([{"a": 1, "b": [{"c": "x"}]}, None])),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_keeps_its_values_and_gets_the_declared_type(name: str) -> None:
    spark_type, values = COLUMNS[name]
    declared = spark_schema(pa.schema([pa.field(name, values.type)]))
    assert declared[0].dataType.simpleString() == spark_type
    batch = fitted(pa.RecordBatch.from_arrays([values], [name]), arrow_schema(declared))
    assert batch.schema.equals(arrow_schema(declared))
    batch.validate(full=True)
    expected = values.cast(pa.int32() if name == "clock" else pa.int64()) if name.endswith("clock") else values
    if name != "clocks":
        assert batch.column(0).to_pylist() == expected.to_pylist()
    else:
        assert batch.column(0).to_pylist() == [[5, None], None]


def test_columns_are_not_null_nowhere() -> None:
    inner = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    numbers = pa.list_(pa.field("x", pa.int8(), nullable=False))
    schema = pa.schema([pa.field("s", inner, nullable=False), pa.field("l", numbers)])
    batch = pa.RecordBatch.from_arrays([pa.array([{"a": 1}], inner), pa.array([[1]], numbers)], schema=schema)
    expected = arrow_schema(spark_schema(schema))
    assert expected.field("s").nullable
    assert expected.field("s").type.field(0).nullable
    assert fitted(batch, expected).to_pylist() == [{"s": {"a": 1}, "l": [1]}]


def test_a_sliced_batch_is_fitted_as_what_it_shows() -> None:
    kind = pa.list_(pa.time32("ms"))
    batch = pa.RecordBatch.from_arrays([pa.array([[1], [2, 3], None, [4]], kind)], ["l"]).slice(1, 3)
    assert fitted(batch, arrow_schema(spark_schema(batch.schema))).to_pylist() == [{"l": [2, 3]}, {"l": None}, {"l": [4]}]


def test_a_wider_type_of_the_users_own_is_promoted_and_a_narrower_one_refused() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1], pa.int32())], ["a"])
    assert fitted(batch, pa.schema([("a", pa.int64())])).schema.field("a").type == pa.int64()
    wide = pa.RecordBatch.from_arrays([pa.array([1], pa.int64())], ["a"])
    with pytest.raises(SchemaMismatch):
        fitted(wide, pa.schema([("a", pa.int32())]))


def test_docs_become_comments() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), metadata={"avro.doc": "how many"}), pa.field("b", pa.int64())])
    assert [column.metadata for column in spark_schema(schema)] == [{"comment": "how many"}, {}]


def test_a_type_that_spark_has_not_is_refused_by_its_column() -> None:
    with pytest.raises(UnsupportedFeature, match=r"HUDIMETA_UNSUPPORTED: column s\.d of type"):
        spark_schema(pa.schema([pa.field("s", pa.struct([pa.field("d", pa.decimal256(50, 2))]))]))


def test_a_written_schema_forgets_what_spark_knows_of_one_query_only() -> None:
    schema = StructType([StructField("a", ArrayType(LongType(), False), False)])
    column = written_schema(schema).field("a")
    assert column.nullable
    assert column.type.value_field.nullable


@pytest.mark.parametrize("text", ['"variant"', '"interval day to second"', '"interval year to month"'])
def test_types_that_a_hudi_table_has_not_are_refused_before_anything_is_written(text: str) -> None:
    kind = VariantType() if text == '"variant"' else _parse_datatype_json_string(text)
    for schema in (StructType([StructField("v", kind)]), StructType([StructField("v", ArrayType(kind))]))[
        text == '"variant"' :
    ]:
        with pytest.raises(UnsupportedFeature, match="writing column v"):
            written_schema(schema)
    assert written_schema(StructType([StructField("v", StringType())])).names == ["v"]


@pytest.mark.parametrize("kind", [NullType(), ArrayType(NullType(), False), MapType(NullType(), NullType(), False)])
def test_a_new_column_has_a_type(kind: DataType) -> None:
    """`array()` and `map()` of a query have none: `CREATE TABLE … AS SELECT array() AS v` ended in a bare ValueError."""
    schema = StructType([StructField("v", kind)])
    with pytest.raises(UnsupportedFeature, match=r"column v\b.* of type void.*Cast it"):
        declared_schema(schema)
    if isinstance(kind, MapType):
        with pytest.raises(UnsupportedFeature, match=r"column v.key of type void"):
            written_schema(schema)
    else:
        assert written_schema(schema).names == ["v"], "rows for a column that has one"


def test_a_variant_is_a_whole_column() -> None:
    stated = {b"hudi_type": b"VARIANT"}
    assert written_schema(StructType([StructField("v", VariantType())])).field("v").metadata == stated
    shown = pa.field("v", pa.struct([("metadata", pa.binary()), ("value", pa.binary())]), metadata=stated)
    assert spark_schema(pa.schema([shown]))["v"].dataType == VariantType()
