"""Types of Apache Hudi 1.2 that Arrow and Spark have no word for: VECTOR, BLOB and VARIANT.

A field says in its metadata what it is: `hudi_type` has the type as SQL spells it, where users declare columns and where they
are shown, as in Hudi's own DataFrames; a stored field has its Avro form. Only whole columns have these types.

* VECTOR(4), VECTOR(4, DOUBLE), VECTOR(4, INT8): a list of so many numbers; see `formats.vectors` for its bytes.
* BLOB: bytes that lie in the row (INLINE) or in a file that is named (OUT_OF_LINE), a struct of `type`, `data` and `reference`.
* VARIANT: a struct of two byte strings, `metadata` and `value`, which Spark reads. Files may hold it in pieces ("shredded"),
  which is refused.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import pyarrow as pa

from hudimeta.errors import SchemaMismatch, UnsupportedFeature
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.vectors import Vector, vector_in
from hudimeta.schema.avro_arrow import AVRO_TYPE_KEY, avro_to_arrow

__all__ = [
    "BLOB",
    "HUDI_TYPE_KEY",
    "VARIANT",
    "declared_field",
    "has_own_type",
    "hudi_type_of",
    "refuse_shredded",
    "shown_metadata",
    "symbols_of",
    "vector_of",
]

HUDI_TYPE_KEY = b"hudi_type"
"""Key of field metadata: the type as SQL spells it."""
BLOB, VARIANT = "BLOB", "VARIANT"

_SHREDDED = "typed_value"
"""Where a file holds variants in pieces, this field of their struct has what the others lack."""
_KINDS = ("INLINE", "OUT_OF_LINE")
_PLACE = {
    "type": "record",
    "name": "reference",
    "fields": [
        {"name": "external_path", "type": "string"},
        {"name": "offset", "type": ["null", "long"]},
        {"name": "length", "type": ["null", "long"]},
        {"name": "managed", "type": "boolean"},
    ],
}
_BLOB_AVRO: dict[str, Any] = {
    "type": "record",
    "name": "blob",
    "namespace": "",
    "fields": [
        {"name": "type", "type": {"type": "enum", "name": "blob_storage_type", "symbols": list(_KINDS)}},
        {"name": "data", "type": ["null", "bytes"], "default": None},
        {"name": "reference", "type": ["null", _PLACE], "default": None},
    ],
    "logicalType": "blob",
}
_VARIANT_AVRO: dict[str, Any] = {
    "type": "record",
    "name": "variant",
    "namespace": "",
    "fields": [
        {"name": "metadata", "type": "bytes", "doc": "Variant metadata component"},
        {"name": "value", "type": "bytes", "doc": "Variant value component"},
    ],
    "logicalType": "variant",
}
_STRUCTS = {BLOB: _BLOB_AVRO, VARIANT: _VARIANT_AVRO}


def vector_of(field: pa.Field) -> Vector | None:
    """The vector that a column is; None for every other column."""
    if not (pa.types.is_list(field.type) and field.metadata):
        return None
    avro, spelled = field.metadata.get(AVRO_TYPE_KEY), field.metadata.get(HUDI_TYPE_KEY)
    return _vector(avro) if avro is not None else _spelled(spelled) if spelled is not None else None


def has_own_type(field: pa.Field) -> bool:
    """Whether a struct is a BLOB or a variant, whose fields nobody may change."""
    return pa.types.is_struct(field.type) and AVRO_TYPE_KEY in (field.metadata or {})


def hudi_type_of(field: pa.Field) -> str | None:
    """The type as SQL spells it; None where Arrow's type tells it."""
    vector = vector_of(field)
    if vector is not None or not has_own_type(field):
        return None if vector is None else str(vector)
    return str(parse_json(field.metadata[AVRO_TYPE_KEY].decode()).get("logicalType", "")).upper() or None


def refuse_shredded(found: pa.DataType, field: pa.Field, path: str) -> None:
    """Refuse variants that a file holds in pieces: without these they would be read, and written again, as nulls.

    Raises:
        UnsupportedFeature: With the column.
    """
    if field.metadata and pa.types.is_struct(found) and found.get_field_index(_SHREDDED) >= 0:
        stated = field.metadata.get(HUDI_TYPE_KEY, b"").decode()
        if (stated or hudi_type_of(field)) == VARIANT:
            hint = "Leave the column out, or write the table anew with hoodie.parquet.variant.write.shredding.enabled=false."
            raise UnsupportedFeature(f"reading shredded variants (column {path})", hint)


def shown_metadata(field: pa.Field) -> dict[bytes, bytes] | None:
    """The metadata of a stored field's column as readers see it."""
    kind = hudi_type_of(field)
    return None if kind is None else {HUDI_TYPE_KEY: kind.encode()}


def declared_field(field: pa.Field) -> pa.Field:
    """A column that states its `hudi_type`, as a table stores it; others stay as they are.

    Raises:
        SchemaMismatch: A type that is not known, or that the column's Arrow type cannot be.
    """
    spelled = (field.metadata or {}).get(HUDI_TYPE_KEY)
    if spelled is None:
        return field
    others = {key: value for key, value in field.metadata.items() if key != HUDI_TYPE_KEY}
    vector = Vector.spelled(spelled.decode())
    if vector is not None:
        if not (pa.types.is_list(field.type) and vector.takes(field.type.value_type)):
            raise SchemaMismatch(field.name, field.type, str(vector), f"Give lists of {vector.dimension} numbers.")
        return _stored(field, vector.arrow, vector.avro, others)
    name = spelled.decode().strip().upper()
    if name not in _STRUCTS:
        hint = "Leave hudi_type out of the field's metadata for every other type."
        raise SchemaMismatch(field.name, name, "VECTOR(dimension), VECTOR(dimension, element), BLOB or VARIANT", hint)
    kind = _struct_of(name)
    if not pa.types.is_struct(field.type) or {part.name for part in field.type} != {part.name for part in kind}:
        raise SchemaMismatch(field.name, field.type, name, f"Give structs of {', '.join(part.name for part in kind)}.")
    return _stored(field, kind, _STRUCTS[name], others)


@functools.cache
def _struct_of(name: str) -> pa.DataType:
    alone = {"type": "record", "name": "one", "fields": [{"name": "it", "type": _STRUCTS[name]}]}
    return avro_to_arrow(json.dumps(alone)).field(0).type


def _stored(field: pa.Field, kind: pa.DataType, avro: dict[str, Any], metadata: dict[bytes, bytes]) -> pa.Field:
    own = {AVRO_TYPE_KEY: json.dumps(avro, separators=(",", ":")).encode()}
    return pa.field(field.name, kind, field.nullable, metadata | own)


@functools.lru_cache(maxsize=64)
def symbols_of(avro: bytes) -> tuple[str, ...]:
    """The symbols of an enum in its Avro form; none of any other type."""
    return tuple(parse_json(avro.decode()).get("symbols", ()))


@functools.lru_cache(maxsize=64)
def _vector(avro: bytes) -> Vector | None:
    return vector_in(parse_json(avro.decode()))


@functools.lru_cache(maxsize=64)
def _spelled(text: bytes) -> Vector | None:
    return Vector.spelled(text.decode())
