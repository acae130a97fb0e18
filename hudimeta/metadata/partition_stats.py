"""Partition `partition_stats` (type 6): column statistics of a whole partition, per column.

The record is that of `column_stats`, with the partition path in the place of the file name and `isTightBound` true when the
values were computed from all files of the partition (the record then replaces the older one). The values may be wider than the
rows of today, never narrower. The empty partition path never occurs: tables without partitions have no such partition.
"""

from __future__ import annotations

import pyarrow as pa

from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.plain_arrays import array_of
from hudimeta.metadata import column_stats
from hudimeta.metadata.column_stats import SCHEMA, decode_values, merge_rows, typed
from hudimeta.metadata.record import RecordLayout, RecordType

__all__ = ["PARTITION", "SCHEMA", "decode_values", "encode_values", "merge_rows", "typed"]

PARTITION = "partition_stats"


def encode_values(table: pa.Table, layout: RecordLayout) -> KeyValues:
    """Rows of `SCHEMA` (`file_name` is the partition path) to records sorted by key; keys must be unique."""
    kinds = array_of([int(RecordType.PARTITION_STATS)], pa.int32()).take(array_of([0] * len(table), pa.int64()))
    given = table.drop_columns(["type"]) if "type" in table.column_names else table
    return column_stats.encode_values(given.append_column("type", kinds), layout)
