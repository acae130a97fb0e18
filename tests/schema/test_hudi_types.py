"""Types that fields state by `hudi_type`: which are taken, what they become, and what of them readers see."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hudimeta.errors import SchemaError, SchemaMismatch, UnsupportedEvolution, UnsupportedFeature
from hudimeta.schema import avro_to_arrow, check_compatible, conform, hudi_type_of, normalise_schema, table_avro_schema
from hudimeta.snapshot.table_schema import plain_schema
from hudimeta.testing.blobs import BLOB_STRUCT, typed

VARIANT = {
    "type": "record",
    "name": "variant",
    "namespace": "",
    "fields": [{"name": "metadata", "type": "bytes"}, {"name": "value", "type": "bytes"}],
    "logicalType": "variant",
}


def test_stated_types_are_stored_in_avro_and_come_back() -> None:
    given = pa.schema(
        [
            typed("v", pa.list_(pa.float64()), "vector(3)"),
            typed("again", pa.list_(pa.float32(), 3), "VECTOR(3)"),
            typed("small", pa.list_(pa.int8()), "VECTOR(2, BYTE)"),
            typed("doc", BLOB_STRUCT, "blob"),
            typed("more", BLOB_STRUCT, "BLOB"),
        ]
    )
    stored = normalise_schema(given)
    text = table_avro_schema(stored, "t")
    v, again, small, doc, more = (field["type"][1] for field in json.loads(text)["fields"])
    assert (v["name"], v["size"], v["logicalType"], v["dimension"]) == ("vector_float_3", 12, "vector", 3)
    assert (again, more) == ("vector_float_3", "blob"), "a type is defined once"
    assert (small["size"], small["elementType"]) == (2, "INT8")
    assert doc["logicalType"] == "blob"
    told = ["VECTOR(3)", "VECTOR(3)", "VECTOR(2, INT8)", "BLOB", "BLOB"]
    assert [hudi_type_of(field) for field in stored] == told
    assert [hudi_type_of(field) for field in avro_to_arrow(text)] == told


def test_variants_in_pieces_are_refused() -> None:
    """Their other pieces are null: they would be read so, and written again."""
    whole = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    stored = normalise_schema(pa.schema([typed("v", whole, "VARIANT")]))
    piece = pa.struct([*whole, ("typed_value", pa.int64())])
    rows = pa.table({"v": pa.array([{"metadata": b"m", "value": b"v", "typed_value": 5}], piece)})
    for schema in (stored, plain_schema(stored)):
        with pytest.raises(UnsupportedFeature, match=r"shredded variants \(column v\).*shredding\.enabled=false"):
            conform(rows, schema)
    unlike = pa.schema([("v", whole)])
    assert conform(rows, unlike)["v"].to_pylist() == [{"metadata": b"m", "value": b"v"}], "any other struct lacks a field"


def test_a_variant_is_kept_as_what_it_is() -> None:
    text = json.dumps(
        {"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": [{"name": "x", "type": VARIANT}]}
    )
    schema = avro_to_arrow(text)
    assert (hudi_type_of(schema.field("x")), schema.field("x").type.num_fields) == ("VARIANT", 2)
    assert json.loads(table_avro_schema(schema, "t"))["fields"][0]["type"] == VARIANT


@pytest.mark.parametrize(
    ("kind", "stated", "says"),
    [
        (pa.list_(pa.float32()), "VECTOR(0)", "a vector of 0 numbers"),
        (pa.list_(pa.float32()), "VECTOR(2, HALF)", "vectors of HALF"),
        (pa.list_(pa.string()), "VECTOR(2)", "needs VECTOR.2..*Give lists of 2 numbers"),
        (pa.list_(pa.float32()), "VECTOR(2, INT8)", "needs VECTOR.2, INT8."),
        (pa.float32(), "VECTOR(2)", "needs VECTOR.2."),
        (pa.binary(), "BLOB", "Give structs of type, data, reference"),
        (pa.string(), "JSON", "VECTOR.dimension., VECTOR.dimension, element., BLOB or VARIANT"),
    ],
)
def test_types_that_cannot_be_are_refused(kind: pa.DataType, stated: str, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        normalise_schema(pa.schema([typed("x", kind, stated)]))


def test_such_a_column_stays_what_it_is() -> None:
    table = normalise_schema(pa.schema([typed("v", pa.list_(pa.float32()), "VECTOR(3)"), typed("doc", BLOB_STRUCT, "BLOB")]))
    plain = pa.schema([("v", pa.list_(pa.int64())), ("doc", BLOB_STRUCT)])
    assert check_compatible(table, plain).schema == table, "rows need not state the types"
    with pytest.raises(UnsupportedEvolution, match=r"from VECTOR\(3\) to VECTOR\(4\)"):
        check_compatible(table, pa.schema([typed("v", pa.list_(pa.float32()), "VECTOR(4)"), plain.field("doc")]))
    with pytest.raises(SchemaMismatch, match=r"needs VECTOR\(3\)"):
        check_compatible(table, pa.schema([("v", pa.list_(pa.string())), plain.field("doc")]))
    wider = pa.struct([*BLOB_STRUCT, ("note", pa.string())])
    with pytest.raises(UnsupportedEvolution, match="a type of its own"):
        check_compatible(table, pa.schema([plain.field("v"), ("doc", wider)]))
