"""Avro schemas to Arrow and back: every schema that Apache Hudi wrote must come back letter by letter."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import SchemaError, SchemaMismatch, UnsupportedFeature
from hudimeta.schema import arrow_to_avro, avro_to_arrow, table_avro_schema
from hudimeta.types import META_COLUMNS
from tests.recorded_tables import CONFORMANCE, RICH

DATA_COMMITS = (".commit", ".deltacommit", ".replacecommit")


def schemas_of(base: Path) -> Iterator[str]:
    """The schema of every completed commit of a table."""
    for folder in (base / ".hoodie", base / ".hoodie" / "timeline"):
        for file in sorted(folder.glob("*")) if folder.is_dir() else ():
            if file.name.endswith(DATA_COMMITS) and file.stat().st_size:
                content = file.read_bytes()
                commit = next(iter(fastavro.reader(io.BytesIO(content)))) if content[:3] == b"Obj" else json.loads(content)
                schema = (commit.get("extraMetadata") or {}).get("schema")
                if schema:
                    yield schema


@pytest.mark.parametrize("name", CONFORMANCE.names())
def test_schemas_of_conformance_tables_come_back(name, conformance_table):
    check_round_trip(conformance_table(name))


@pytest.mark.parametrize("name", RICH.names())
def test_schemas_of_rich_tables_come_back(name, rich_table):
    check_round_trip(rich_table(name))


def check_round_trip(base):
    for text in schemas_of(base):
        top = json.loads(text)
        arrow = avro_to_arrow(text)
        assert arrow_to_avro(arrow, top["name"], top["namespace"]) == text
        has_meta = top["fields"][0]["name"] == META_COLUMNS[0]
        assert table_avro_schema(arrow, top["name"].removesuffix("_record"), meta_columns=has_meta) == text


@pytest.mark.parametrize("name", CONFORMANCE.names())
def test_create_schema_comes_back(name, conformance_table):
    """`hoodie.table.create.schema` has the null second and no defaults."""
    lines = (conformance_table(name) / ".hoodie" / "hoodie.properties").read_text().splitlines()
    found = [line.partition("=")[2] for line in lines if line.startswith("hoodie.table.create.schema=")]
    for escaped in found:
        text = escaped.replace("\\:", ":").replace("\\=", "=")
        name_in_schema = json.loads(text)["name"].removesuffix("_record")
        assert table_avro_schema(avro_to_arrow(text), name_in_schema, create_schema=True) == text


def test_every_avro_type_has_its_arrow_type():
    fields = {
        "bo": "boolean",
        "i": "int",
        "l": ["null", "long"],
        "f": ["float", "null"],
        "d": "double",
        "s": "string",
        "b": "bytes",
        "da": {"type": "int", "logicalType": "date"},
        "tu": {"type": "long", "logicalType": "timestamp-micros"},
        "tm": {"type": "long", "logicalType": "timestamp-millis"},
        "lu": {"type": "long", "logicalType": "local-timestamp-micros"},
        "lm": {"type": "long", "logicalType": "local-timestamp-millis"},
        "dec": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
        "fx": {"type": "fixed", "name": "fx", "size": 4},
        "en": {"type": "enum", "name": "colour", "symbols": ["RED", "BLUE"]},
        "again": ["null", "colour"],
        "wide": ["null", "int", "long"],
    }
    schema = avro_to_arrow(record(fields))
    assert [str(f.type) for f in schema] == [
        *("bool", "int32", "int64", "float", "double", "string", "binary", "date32[day]"),
        *("timestamp[us, tz=UTC]", "timestamp[ms, tz=UTC]", "timestamp[us]", "timestamp[ms]"),
        *("decimal128(12, 3)", "fixed_size_binary[4]", "string", "string", "int64"),
    ]
    assert [f.name for f in schema if f.nullable] == ["l", "f", "again", "wide"]


def test_types_without_an_arrow_word_survive():
    fields = {
        "en": {"type": "enum", "name": "colour", "symbols": ["RED"]},
        "again": ["null", "colour"],
        "id": {"type": "string", "logicalType": "uuid"},
        "dec": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
    }
    back = json.loads(arrow_to_avro(avro_to_arrow(record(fields, "space")), "r", "space"))
    by_name = {f["name"]: f["type"] for f in back["fields"]}
    assert by_name["en"]["symbols"] == ["RED"]
    assert by_name["again"] == ["null", "space.colour"], "a named type is defined once"
    assert by_name["id"] == fields["id"]
    assert by_name["dec"] == fields["dec"]
    fastavro.parse_schema(back)


def record(fields: dict[str, object], namespace: str = "") -> str:
    named = [{"name": n, "type": t} for n, t in fields.items()]
    return json.dumps({"type": "record", "name": "r", "namespace": namespace, "fields": named})


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("{", SchemaError, "not JSON"),
        ('"string"', SchemaError, "not a record"),
        ('{"type":"record","name":"r"}', SchemaError, "malformed"),
        (record({"x": "unknown"}), SchemaError, "'unknown' is not defined"),
        (record({"x": ["int", "string"]}), UnsupportedFeature, "union of several types"),
        (record({"x": ["null", "r"]}), UnsupportedFeature, "recursive"),
        (record({"x": {"type": "fixed", "name": "f", "size": -1}}), SchemaError, "-1"),
        (record({"x": {"type": "bytes", "logicalType": "decimal", "precision": 10**9}}), SchemaError, "1000000000"),
    ],
)
def test_what_is_no_table_schema_is_refused(text, error, says):
    with pytest.raises(error, match=says):
        avro_to_arrow(text)


def test_a_table_name_that_avro_forbids_is_masked_as_hudi_does():
    schema = pa.schema([pa.field("a", pa.int32())])
    top = json.loads(table_avro_schema(schema, "1st-table"))
    assert (top["name"], top["namespace"]) == ("__st__table_record", "hoodie.__st__table")


def test_an_arrow_type_without_avro_type_is_refused_by_name():
    with pytest.raises(SchemaMismatch, match="'spent' is duration"):
        arrow_to_avro(pa.schema([pa.field("spent", pa.duration("s"))]), "r")


leaves = st.sampled_from(
    [
        *(pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()),
        *(pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.time64("us"), pa.binary(3)),
        *(pa.decimal128(p, s) for p, s in ((1, 0), (10, 2), (18, 18), (38, 10))),
    ]
)


def nested(children: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.tuples(children, st.booleans())
    structs = st.lists(fields, min_size=1, max_size=4).map(
        lambda items: pa.struct([pa.field(f"f{i}", kind, null) for i, (kind, null) in enumerate(items)])
    )
    lists = fields.map(lambda item: pa.list_(pa.field("element", *item)))
    maps = fields.map(lambda item: pa.map_(pa.string(), pa.field("value", *item)))
    return structs | lists | maps


types = st.recursive(leaves, nested, max_leaves=8)


@given(st.lists(st.tuples(types, st.booleans()), min_size=1, max_size=6))
def test_any_schema_comes_back_and_is_good_avro(columns):
    schema = pa.schema([pa.field(f"c{i}", kind, null) for i, (kind, null) in enumerate(columns)])
    text = table_avro_schema(schema, "t")
    assert avro_to_arrow(text).equals(schema)
    assert table_avro_schema(avro_to_arrow(text), "t") == text
    fastavro.parse_schema(json.loads(text))
