"""Schemas: Avro and Arrow, evolution, and which schema a table has at an instant."""

from hudimeta.schema.avro_arrow import DOC_KEY, arrow_to_avro, avro_to_arrow, table_avro_schema
from hudimeta.schema.conform import assemble, conform, conform_array, conform_column, list_runs
from hudimeta.schema.evolution import SchemaChange, change_notes, check_compatible, check_key_texts, refuse_texts
from hudimeta.schema.hudi_types import HUDI_TYPE_KEY, hudi_type_of, shown_metadata, vector_of
from hudimeta.schema.internal_schema import InternalSchema, SchemaHistory
from hudimeta.schema.java_text import java_text
from hudimeta.schema.names import (
    META_FIELDS,
    OPERATION_COLUMN,
    check_names,
    sanitize_name,
    strip_meta_columns,
    with_meta_columns,
)
from hudimeta.schema.normalise import normalise_schema, normalise_type
from hudimeta.schema.resolve import LATEST_SCHEMA_KEY, SCHEMA_KEY, ResolvedSchema, resolve_table_schema, version_in

__all__ = [
    "DOC_KEY",
    "HUDI_TYPE_KEY",
    "LATEST_SCHEMA_KEY",
    "META_FIELDS",
    "OPERATION_COLUMN",
    "SCHEMA_KEY",
    "InternalSchema",
    "ResolvedSchema",
    "SchemaChange",
    "SchemaHistory",
    "alteration",  # changes of columns by ALTER
    "arrow_to_avro",
    "assemble",
    "avro_to_arrow",
    "check_compatible",
    "refuse_texts",
    "change_notes",
    "check_key_texts",
    "check_names",
    "conform",
    "conform_array",
    "conform_column",
    "hudi_type_of",
    "hudi_types",  # types that Arrow and Spark have no word for
    "internal_schema",  # the history of columns
    "java_text",
    "list_runs",
    "moment_text",  # dates and times of whatever year as text
    "normalise_schema",
    "normalise_type",
    "promotion",  # which type may become which
    "resolve_table_schema",
    "sanitize_name",
    "shown_metadata",
    "strip_meta_columns",
    "table_avro_schema",
    "vector_of",
    "version_in",
    "with_meta_columns",
]
