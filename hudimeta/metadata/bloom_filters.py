"""Partition `bloom_filters` (type 4): the bloom filter of the record keys of one base file, per record.

    type string ("SIMPLE" or "DYNAMIC_V0"), timestamp string (instant of the file), bloomFilter bytes, isDeleted boolean

`bloomFilter` is the base64 text of the serialized filter, the same text that stands in the file's footer. The newest record of
a key wins.

As a table: key string, type_code string, instant string, bloom large_binary, is_deleted bool
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.plain_arrays import array_of
from hudimeta.metadata.datum import DatumCursor, encode_texts, join_binary
from hudimeta.metadata.payload import Cells, column_of, decode_payloads, encode_payloads, sorted_cells
from hudimeta.metadata.record import RecordLayout, RecordType, layout_of
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.storage import join

__all__ = ["PARTITION", "SCHEMA", "decode_values", "encode_values"]

PARTITION = "bloom_filters"
SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("type_code", pa.string()),
        ("instant", pa.string()),
        ("bloom", pa.large_binary()),
        ("is_deleted", pa.bool_()),
    ]
)
"""Columns of `decode_values`."""


def decode_values(cells: Cells, schema_text: str, path: str = "") -> pa.Table:
    """Records to a table of `SCHEMA`, in the order of the cells.

    Raises:
        CorruptFileError: Bytes that are not such records.
    """
    layout = layout_of(schema_text, path)
    batches = [
        pa.RecordBatch.from_arrays(columns, schema=SCHEMA.remove(0))
        for _, columns in decode_payloads(cells.values, layout, "BloomFilterMetadata", _read, path)
    ]
    table = pa.Table.from_batches(batches, SCHEMA.remove(0))
    return table.add_column(0, SCHEMA.field("key"), cells.keys.cast(pa.string()))


def _read(cursor: DatumCursor) -> list[pa.Array]:
    code, instant = cursor.bytes().column(pa.string()), cursor.bytes().column(pa.string())
    return [code, instant, cursor.bytes().column(pa.large_binary()), array_of(cursor.boolean())]


def encode_values(table: pa.Table, layout: RecordLayout) -> KeyValues:
    """The inverse of `decode_values`: rows of `SCHEMA` to records sorted by key; keys must be unique."""
    flags = column_of(table, "is_deleted").cast(pa.uint8())
    bodies = join_binary(
        encode_texts(column_of(table, "type_code")),
        encode_texts(column_of(table, "instant")),
        encode_texts(column_of(table, "bloom")),
        array_of([bytes([f]) for f in flags.to_pylist()], pa.binary()),
    )
    types = np.full(len(table), int(RecordType.BLOOM_FILTER), np.int64)
    values = encode_payloads(types, layout, "BloomFilterMetadata", bodies)
    return KeyValues(*sorted_cells(column_of(table, "key"), values))


def place_of(index: str, partition_path: str, name: str) -> str:
    """Where the filter of a base file stands, for errors.

    Args:
        index: Metadata partition that holds it.
        partition_path: Of the base file, which is not what is damaged.
        name: Of the same base file.
    """
    return f"{METADATA_ROOT}/{index} (filter of {join(partition_path, name)})"
