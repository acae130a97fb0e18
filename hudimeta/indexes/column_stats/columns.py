"""Which columns have statistics from a write on: those that it adds too, as Apache Hudi does it; and which lose them."""

from __future__ import annotations

import pyarrow as pa

from hudimeta.metadata import MetadataTable, column_stats
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.indexed_columns import column_type, with_added_columns
from hudimeta.schema.promotion import Fit, fit

__all__ = ["reordered", "statistics_after"]


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


def reordered(definition: IndexDefinition | None, before: pa.Schema | None, after: pa.Schema) -> frozenset[str]:
    """Columns whose bounds say nothing of the values that they have after a write: numbers or dates that become texts, texts
    that become dates or numbers, and numbers that become decimals, whose bounds are stored otherwise.

    Args:
        definition: Of column statistics; None where the table keeps none.
        before: Data columns of the table before the write; None when unknown.
        after: Those that it has then.
    """
    if definition is None or before is None:
        return frozenset()
    types = {c: (column_type(before, c), column_type(after, c)) for c in definition.source_fields}
    changed = ((c, was, now) for c, (was, now) in types.items() if was and now and was != now)
    return frozenset(c for c, was, now in changed if pa.types.is_string(now) or fit(was, now) is Fit.ALTERED)
