"""What a commit says of the table's columns, and the history that goes beside it where the table was altered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hudimeta.schema import LATEST_SCHEMA_KEY, SchemaHistory, table_avro_schema, with_meta_columns
from hudimeta.schema.alteration import reconciled, refuse_former_names
from hudimeta.schema.internal_schema import encode_history, encode_schema

__all__ = ["PublishedSchema", "published_schema"]


@dataclass(frozen=True)
class PublishedSchema:
    """Columns of the table as a commit states them.

    Attributes:
        avro: Avro schema as JSON; with the meta columns where the table was altered, as Hudi has it.
        extra: Further entries of extraMetadata.
        history: Content of the schema commit; None for a table that never was altered.
        renamed: Columns that older files hold under other names, or in types that did not grow to these; dotted.
    """

    avro: str
    extra: Mapping[str, str] = field(default_factory=dict)
    history: str | None = None
    renamed: frozenset[str] = frozenset()

    @classmethod
    def of_history(cls, schema: pa.Schema, name: str, history: SchemaHistory) -> PublishedSchema:
        """Of a table whose history is given, newest version included."""
        avro = table_avro_schema(schema, name, meta_columns=True)
        renamed = frozenset(path for path, _ in history.latest.places() if not history.keeps(path))
        return cls(avro, {LATEST_SCHEMA_KEY: encode_schema(history.latest)}, encode_history(history), renamed)


def published_schema(schema: pa.Schema, name: str, history: SchemaHistory | None, instant: str) -> PublishedSchema:
    """What a write publishes.

    Where files do not hold the partition columns, a history has them all the same, as Apache Hudi's ALTER begins it: its
    readers by history look for them there.

    Args:
        schema: Data columns after the write, as files hold them.
        name: Of the table.
        history: So far; None for a table that never was altered.
        instant: Of the write.

    Raises:
        UnsupportedEvolution: The write adds a column under the name of an earlier one.
    """
    if history is None:
        return PublishedSchema(table_avro_schema(schema, name))
    whole = pa.schema([*schema, *(f for f in history.latest.arrow if f.name not in schema.names)])
    new = reconciled(history.latest, with_meta_columns(whole), int(instant))
    if new is history.latest:
        return PublishedSchema.of_history(whole, name, history)
    refuse_former_names(history, new)
    return PublishedSchema.of_history(whole, name, SchemaHistory((*history.versions, new)))
