"""Which columns have statistics from a write on: those that it adds too, as Apache Hudi does it."""

from __future__ import annotations

import pyarrow as pa

from hudimeta.metadata import MetadataTable, column_stats
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.indexed_columns import with_added_columns

__all__ = ["statistics_after"]


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
