"""Which columns get statistics, and the table's index definitions that say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudimeta.errors import ConfigError
from hudimeta.metadata import column_stats
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.types import META_COLUMNS

__all__ = [
    "STATISTICS_META_COLUMNS",
    "column_type",
    "has_statistics",
    "indexed_columns",
    "statistics_definition",
    "with_added_columns",
]

STATISTICS_META_COLUMNS = (META_COLUMNS[0], META_COLUMNS[3], META_COLUMNS[2])
"""Commit time, partition path and record key always have statistics, in this order."""

_MAX_V1_PRECISION, _V1_SCALE = 30, 15


def indexed_columns(schema: pa.Schema, wanted: Sequence[str], most: int, version: str) -> list[str]:
    """The columns of a table that get statistics.

    Args:
        schema: Data columns.
        wanted: Names that the user listed, dotted paths into structs allowed; empty for the first ones.
        most: How many columns at the most when none are listed; meta columns do not count.
        version: "V1" or "V2", the regime of the bounds.

    Raises:
        ConfigError: A listed column is not in the schema or has no order.
    """
    if not wanted:
        fitting = [f.name for f in schema if has_statistics(f.type, version)]
        return [*STATISTICS_META_COLUMNS, *fitting[:most]]
    for name in wanted:
        kind = pa.string() if name in META_COLUMNS else column_type(schema, name)
        if kind is None or not has_statistics(kind, version):
            raise ConfigError(
                "hoodie.metadata.index.column.stats.column.list",
                name,
                "columns of the table that have an order",
                "Leave out structs, arrays and maps; name a field inside a struct as struct.field.",
            )
    return [*STATISTICS_META_COLUMNS, *(name for name in wanted if name not in STATISTICS_META_COLUMNS)]


def column_type(schema: pa.Schema, path: str) -> pa.DataType | None:
    """Type of a column or of a field inside structs by dotted path; None when there is none."""
    fields: Any = schema
    kind: pa.DataType | None = None
    for name in path.split("."):
        if kind is not None:
            if not pa.types.is_struct(kind):
                return None
            fields = kind
        at = fields.get_field_index(name)
        if at < 0:
            return None
        kind = fields.field(at).type
    return kind


def has_statistics(kind: pa.DataType, version: str) -> bool:
    """True for types whose values have an order that bounds can hold: those that Hudi takes by default.

    A writer of Hudi puts columns that we left out into the definition, and its readers then miss the partitions that have
    no statistics of them.
    """
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        return False
    if pa.types.is_decimal(kind) and version == "V1":
        return bool(kind.scale <= _V1_SCALE and kind.precision + _V1_SCALE - kind.scale <= _MAX_V1_PRECISION)
    return True


def with_added_columns(definition: IndexDefinition, before: pa.Schema, after: pa.Schema, most: int) -> IndexDefinition:
    """The definition of column statistics once a write has added columns.

    Where the first columns of the table have statistics, those that come to it get them too, as far as there is room. Columns
    that somebody listed stay the same.

    Args:
        definition: So far.
        before: Data columns of the table before the write.
        after: Those that it has then.
        most: See `indexed_columns`.
    """
    version = "V2" if definition.is_v2 else "V1"
    present = {f for f in definition.source_fields if f in META_COLUMNS or column_type(before, f) is not None}
    if present != set(indexed_columns(before, (), most, version)):
        return definition
    added = [f for f in indexed_columns(after, (), most, version) if f not in definition.source_fields]
    return replace(definition, source_fields=(*definition.source_fields, *added)) if added else definition


def statistics_definition(columns: Sequence[str], table_version: int) -> IndexDefinition:
    """The entry of column statistics in the table's index definitions."""
    version = "V2" if table_version >= 9 else None
    return IndexDefinition(column_stats.PARTITION, column_stats.PARTITION, column_stats.PARTITION, tuple(columns), {}, version)
