"""Schemas: Avro and Arrow, evolution, and which schema a table has at an instant."""

from hudimeta.schema.avro_arrow import arrow_to_avro, avro_to_arrow, table_avro_schema
from hudimeta.schema.conform import conform, conform_array
from hudimeta.schema.evolution import SchemaChange, check_compatible, check_key_texts
from hudimeta.schema.internal_schema import InternalSchema, SchemaHistory
from hudimeta.schema.java_text import java_text
from hudimeta.schema.names import check_names, sanitize_name, strip_meta_columns, with_meta_columns
from hudimeta.schema.normalise import normalise_schema
from hudimeta.schema.resolve import ResolvedSchema, resolve_table_schema

__all__ = [
    "InternalSchema",
    "ResolvedSchema",
    "SchemaChange",
    "SchemaHistory",
    "arrow_to_avro",
    "avro_to_arrow",
    "check_compatible",
    "check_key_texts",
    "check_names",
    "conform",
    "conform_array",
    "java_text",
    "normalise_schema",
    "resolve_table_schema",
    "sanitize_name",
    "strip_meta_columns",
    "table_avro_schema",
    "with_meta_columns",
]
