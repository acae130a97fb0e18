"""Partitions `expr_index_<name>`: statistics (types 3 and 6) or bloom filters (type 4) of an expression over a column.

The kind stands in the index definition (`indexType` column_stats or bloom_filters); records are those of `column_stats` and
`bloom_filters`. Column and key name the *source column*, the bounds have the type of the expression's result. Beside the file
records of a column_stats index there are partition records (type 6) whose `file_name` is the partition path.
"""

from __future__ import annotations

import enum

import pyarrow as pa

from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.plain_arrays import array_of
from hudimeta.metadata import bloom_filters, column_stats
from hudimeta.metadata.datum import join_binary
from hudimeta.metadata.keys import PARTITION_STAT, column_stats_keys, hash_ids
from hudimeta.metadata.payload import Cells
from hudimeta.metadata.record import RecordLayout

__all__ = ["PREFIX", "ExpressionKind", "decode_values", "encode_values", "file_keys", "partition_keys"]

PREFIX = "expr_index_"


class ExpressionKind(enum.Enum):
    """What an expression index holds; the value is the definition's `indexType`."""

    COLUMN_STATS = "column_stats"
    BLOOM_FILTERS = "bloom_filters"


def decode_values(
    cells: Cells, schema_text: str, path: str = "", kind: ExpressionKind = ExpressionKind.COLUMN_STATS
) -> pa.Table:
    """Records to a table of `column_stats.SCHEMA` or `bloom_filters.SCHEMA`.

    Raises:
        CorruptFileError: Bytes that are not such records.
    """
    if kind is ExpressionKind.COLUMN_STATS:
        return column_stats.decode_values(cells, schema_text, path)
    return bloom_filters.decode_values(cells, schema_text, path)


def encode_values(table: pa.Table, layout: RecordLayout, kind: ExpressionKind = ExpressionKind.COLUMN_STATS) -> KeyValues:
    """The inverse of `decode_values`; the column `type` (3 or 6) must be given for statistics."""
    if kind is ExpressionKind.COLUMN_STATS:
        return column_stats.encode_values(table, layout)
    return bloom_filters.encode_values(table, layout)


def file_keys(columns: pa.Array, partitions: pa.Array, names: pa.Array) -> pa.Array:
    """Keys of the file records: as those of column_stats; binary."""
    return column_stats_keys(columns, partitions, names)


def partition_keys(columns: pa.Array, partitions: pa.Array) -> pa.Array:
    """Keys of the partition records: column id, id of "__partition_stat__", partition id; binary."""
    marks = array_of([PARTITION_STAT], pa.string()).take(array_of([0] * len(columns), pa.int64()))
    return join_binary(hash_ids(columns), hash_ids(marks), hash_ids(partitions))
