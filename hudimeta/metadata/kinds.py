"""Which codec reads which metadata partition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import ModuleType

from hudimeta.errors import UnsupportedFeature
from hudimeta.metadata import (
    bloom_filters,
    column_stats,
    expression_index,
    partition_stats,
    record_index,
    secondary_index,
)
from hudimeta.metadata.expression_index import ExpressionKind
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.merging import Unite
from hudimeta.metadata.slice_files import Decode

__all__ = ["Codec", "codec_of"]


@dataclass(frozen=True)
class Codec:
    """How records of a partition are read.

    Attributes:
        module: The codec, with its `SCHEMA`. decode: Cells, schema text and path to a table.
        key: Column that names a record. unite: See `merging.merge`.
    """

    module: ModuleType
    decode: Decode
    key: str = "key"
    unite: Unite | None = None


def codec_of(partition: str, definition: IndexDefinition | None = None) -> Codec:
    """The codec of a metadata partition other than `files`.

    Args:
        definition: Of an expression index, whose records are of two kinds.

    Raises:
        UnsupportedFeature: No such kind is known.
    """
    if partition == column_stats.PARTITION:
        return Codec(column_stats, column_stats.decode_values, unite=column_stats.merge_rows)
    if partition == partition_stats.PARTITION:
        return Codec(partition_stats, partition_stats.decode_values, unite=partition_stats.merge_rows)
    if partition == record_index.PARTITION:
        return Codec(record_index, record_index.decode_values, "record_key")
    if partition == bloom_filters.PARTITION:
        return Codec(bloom_filters, bloom_filters.decode_values)
    if partition.startswith(secondary_index.PREFIX):
        return Codec(secondary_index, secondary_index.decode_values)
    if partition.startswith(expression_index.PREFIX):
        kind = ExpressionKind(definition.kind) if definition else ExpressionKind.COLUMN_STATS
        if kind is ExpressionKind.BLOOM_FILTERS:
            return Codec(bloom_filters, partial(expression_index.decode_values, kind=kind))
        return Codec(column_stats, expression_index.decode_values, unite=column_stats.merge_rows)
    raise UnsupportedFeature(f"the metadata partition {partition}")
