"""Which codec reads which metadata partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from hudimeta.errors import UnsupportedFeature
from hudimeta.formats.hfile import KeyValues
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
from hudimeta.metadata.record import RecordLayout
from hudimeta.metadata.slice_files import Decode

__all__ = ["CODECS", "Codec", "codec_of"]


@dataclass(frozen=True)
class Codec:
    """How records of a partition are read.

    Attributes:
        schema: Columns of the decoded table.
        decode: Cells, schema text and path to such a table.
        encode: The inverse: rows of such a table to records sorted by key.
        key: Column that names a record.
        unite: See `merging.merge`.
    """

    schema: pa.Schema
    decode: Decode
    encode: Callable[[pa.Table, RecordLayout], KeyValues]
    key: str = "key"
    unite: Unite | None = None


_STATISTICS = Codec(column_stats.SCHEMA, column_stats.decode_values, column_stats.encode_values, unite=column_stats.merge_rows)
_BLOOMS = Codec(bloom_filters.SCHEMA, bloom_filters.decode_values, bloom_filters.encode_values)
CODECS: dict[str, Codec] = {
    column_stats.PARTITION: _STATISTICS,
    partition_stats.PARTITION: _STATISTICS,
    record_index.PARTITION: Codec(record_index.SCHEMA, record_index.decode_values, record_index.encode_values, "record_key"),
    bloom_filters.PARTITION: _BLOOMS,
}
"""By the name of the metadata partition. A new kind is one line here; those with a partition for each index follow below."""


def codec_of(partition: str, definition: Callable[[str], IndexDefinition | None]) -> Codec:
    """The codec of a metadata partition other than `files`.

    Args:
        partition: Name of the metadata partition.
        definition: Tells the definition of an expression index, whose records are of two kinds.

    Raises:
        UnsupportedFeature: No such kind is known.
    """
    if partition in CODECS:
        return CODECS[partition]
    if partition.startswith(secondary_index.PREFIX):
        return Codec(secondary_index.SCHEMA, secondary_index.decode_values, secondary_index.encode_values)
    if partition.startswith(expression_index.PREFIX):
        defined = definition(partition)
        kind = ExpressionKind(defined.kind) if defined else ExpressionKind.COLUMN_STATS
        like = _STATISTICS if kind is ExpressionKind.COLUMN_STATS else _BLOOMS
        return Codec(like.schema, partial(expression_index.decode_values, kind=kind), like.encode, unite=like.unite)
    raise UnsupportedFeature(f"the metadata partition {partition}")
