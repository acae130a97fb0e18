"""Records of the metadata table, drawn, and read and written by an Avro library that knows only the schema."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import strategies as st

from hudimeta.formats.hfile import KeyValues
from hudimeta.metadata.record import schema_text

LAYOUTS = [8, 9]
NAMESPACE = "org.apache.hudi.avro.model."
LONG = st.integers(-(1 << 63), (1 << 63) - 1)
INT = st.integers(-(1 << 31), (1 << 31) - 1)
TEXT = st.text(max_size=90)
NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


def read(cells: KeyValues, version: int) -> dict[str, dict[str, Any]]:
    """Records by key, decoded by fastavro without logical types."""
    schema = json.loads(schema_text(version))
    raw = fastavro.parse_schema(without_logical_types(schema))
    found = {}
    for key, value in zip(cells.keys.to_pylist(), cells.values.to_pylist(), strict=True):
        stream = io.BytesIO(value)
        found[key.decode()] = fastavro.schemaless_reader(stream, raw)
        assert stream.read() == b""
    return found


def write(records: dict[str, dict[str, Any]], version: int) -> KeyValues:
    """Records as cells, encoded by fastavro."""
    raw = fastavro.parse_schema(without_logical_types(json.loads(schema_text(version))))
    keys, values = [], []
    for key in sorted(records, key=str.encode):
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, raw, {"key": "", **records[key]})
        keys.append(key.encode())
        values.append(stream.getvalue())
    return KeyValues(pa.array(keys, pa.binary()), pa.array(values, pa.binary()))


def without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {k: without_logical_types(v) for k, v in schema.items() if k not in ("logicalType", "precision", "scale")}
    return [without_logical_types(item) for item in schema] if isinstance(schema, list) else schema
