"""Vectors: the bytes of files and the lists in memory are each other's inverse, in Avro and in Parquet."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import SchemaError, SchemaMismatch
from hudimeta.formats.avro.rows import decode_rows, encode_rows
from hudimeta.formats.vectors import Vector, as_stored, bytes_of, numbers_of, vector_columns, vector_in
from hudimeta.schema import avro_to_arrow

ELEMENTS = {
    "FLOAT": st.floats(width=32, allow_nan=False),
    "DOUBLE": st.floats(allow_nan=False),
    "INT8": st.integers(-128, 127),
}


@st.composite
def columns(draw: st.DrawFn) -> tuple[Vector, pa.Array]:
    vector = Vector(draw(st.integers(1, 5)), draw(st.sampled_from(sorted(ELEMENTS))))
    value = st.lists(ELEMENTS[vector.element], min_size=vector.dimension, max_size=vector.dimension)
    rows = draw(st.lists(st.none() | value, max_size=6))
    skipped = draw(st.integers(0, len(rows)))
    return vector, pa.array(rows, vector.arrow).slice(skipped)


def schema_of(*vectors: Vector) -> str:
    """A record of such columns, whose types are named where they come again."""
    seen: set[str] = set()
    fields = []
    for number, vector in enumerate(vectors):
        named = vector.avro["name"]
        fields.append({"name": f"v{number}", "type": ["null", named if named in seen else vector.avro], "default": None})
        seen.add(named)
    return json.dumps({"type": "record", "name": "r", "namespace": "hoodie.t", "fields": fields})


@given(columns())
def test_bytes_become_the_lists_that_they_were(given: tuple[Vector, pa.Array]) -> None:
    vector, values = given
    stored = bytes_of(values, vector.size)
    assert stored.type == vector.stored
    assert numbers_of(stored, vector.arrow).equals(values)
    assert numbers_of(stored.slice(1), vector.arrow).equals(values.slice(1))


@given(columns())
def test_rows_of_avro_become_the_lists_that_they_were(given: tuple[Vector, pa.Array]) -> None:
    vector, values = given
    schema = schema_of(vector, vector)
    rows = pa.table([values, values], schema=avro_to_arrow(schema))
    content, borders = encode_rows(rows, schema)
    again = decode_rows(schema, content, borders[:-1], np.diff(borders))
    assert again.to_pylist() == rows.to_pylist()
    assert decode_rows(schema, content, borders[:-1], np.diff(borders), columns=["v1"])["v1"].to_pylist() == values.to_pylist()


def test_numbers_lie_one_after_the_other_and_little_endian() -> None:
    stored = bytes_of(pa.array([[1.0, -2.0]], Vector(2).arrow), 8)
    assert stored[0].as_py() == np.array([1, -2], "<f4").tobytes()


def test_only_vectors_of_a_record_are_stored_otherwise() -> None:
    schema = schema_of(Vector(2), Vector(3, "DOUBLE"), Vector(2))
    assert {name: str(vector) for name, vector in vector_columns(schema).items()} == {
        "v0": "VECTOR(2)",
        "v1": "VECTOR(3, DOUBLE)",
        "v2": "VECTOR(2)",
    }
    rows = pa.table({"v2": pa.array([[1, 2]], Vector(2).arrow), "other": [[1, 2]]})
    assert as_stored(rows, schema).schema.types == [pa.binary(8), pa.list_(pa.int64())]
    assert as_stored(rows, None) is rows


@pytest.mark.parametrize(("text", "says"), [("VECTOR(4)", "VECTOR(4)"), (" vector( 4 , double ) ", "VECTOR(4, DOUBLE)"),
                                            ("Vector(2,byte)", "VECTOR(2, INT8)")])  # fmt: skip
def test_vectors_are_spelled(text: str, says: str) -> None:
    assert str(Vector.spelled(text)) == says
    assert Vector.spelled(says + "x") is None


def test_the_history_of_a_schema_names_vectors() -> None:
    assert str(Vector.in_history("vector[4, FLOAT, FIXED_BYTES]")) == "VECTOR(4)"
    assert Vector.in_history("fixed[4]") is Vector.in_history({"type": "array"}) is None


@pytest.mark.parametrize("text", ["VECTOR(0)", "VECTOR(4, TEXT)", "VECTOR(999999999, DOUBLE)"])
def test_vectors_that_cannot_be(text: str) -> None:
    with pytest.raises(SchemaError, match="vector"):
        Vector.spelled(text)


def test_an_avro_type_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(SchemaError, match="VECTOR\\(4\\) in 15 bytes"):
        vector_in(Vector(4).avro | {"size": 15})


def test_bytes_that_are_no_whole_number_of_elements_are_refused() -> None:
    with pytest.raises(SchemaError, match="a vector of float in 7 bytes"):
        numbers_of(pa.array([b"1234567"], pa.binary(7)), Vector(2).arrow)


def test_lists_of_another_length_have_no_bytes() -> None:
    with pytest.raises(SchemaMismatch, match="a list of 1"):
        bytes_of(pa.array([[1.0]], Vector(2).arrow), 8)
