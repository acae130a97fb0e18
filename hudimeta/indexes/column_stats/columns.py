"""Which columns have statistics from a write on: those that it adds too, as Apache Hudi does it."""

from __future__ import annotations

import pyarrow as pa

from hudimeta.metadata import MetadataTable, column_stats
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.indexed_columns import with_added_columns
from hudimeta.schema import avro_to_arrow, strip_meta_columns
from hudimeta.table.properties import TableProperties
from hudimeta.timeline import Timeline

__all__ = ["files_hold", "schema_of", "statistics_after"]


def files_hold(schema: pa.Schema, properties: TableProperties) -> pa.Schema:
    """Those of some columns that files hold: partition columns may be in partition paths alone."""
    gone = properties.partition_fields if properties.drop_partition_columns else ()
    return pa.schema([f for f in schema if f.name not in gone], schema.metadata) if gone else schema


def schema_of(properties: TableProperties, timeline: Timeline) -> pa.Schema | None:
    """The data columns of a table's files; None for a table without a commit and without a schema in its properties."""
    found = timeline.latest_schema()
    text = found[1] if found else properties.create_schema
    return None if text is None else files_hold(strip_meta_columns(avro_to_arrow(text)), properties)


def statistics_after(
    metadata: MetadataTable | None, before: pa.Schema | None, after: pa.Schema, most: int
) -> IndexDefinition | None:
    """The definition of column statistics when a write is done; None where the table keeps none.

    Args:
        metadata: The metadata table.
        before: Data columns of the table before the write; None when unknown.
        after: Those that it has then.
        most: How many columns get statistics when nobody listed any.
    """
    if metadata is None or column_stats.PARTITION not in metadata.ready:
        return None
    definition = metadata.index_definitions.get(column_stats.PARTITION)
    if definition is None or before is None:
        return definition
    return with_added_columns(definition, before, after, most)
