"""Partitions `secondary_index_<name>` (type 7): which record keys have a value. Everything is in the key, see `keys`.

    value: isDeleted boolean, always false in what writers store today; removals are delete blocks

As a table: key string, secondary string (None for the null value), record_key string, is_deleted bool. The value's text is
Java's: a date is its day number, a timestamp its epoch number.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.plain_arrays import array_of
from hudimeta.metadata.datum import DatumCursor
from hudimeta.metadata.keys import secondary_keys, split_secondary_keys
from hudimeta.metadata.payload import Cells, column_of, decode_payloads, encode_payloads, sorted_cells
from hudimeta.metadata.record import RecordLayout, RecordType, layout_of

__all__ = ["PREFIX", "SCHEMA", "decode_values", "encode_keys", "encode_values"]

PREFIX = "secondary_index_"
SCHEMA = pa.schema([("key", pa.string()), ("secondary", pa.string()), ("record_key", pa.string()), ("is_deleted", pa.bool_())])
"""Columns of `decode_values`."""


def decode_values(cells: Cells, schema_text: str, path: str = "") -> pa.Table:
    """Records to a table of `SCHEMA`, in the order of the cells.

    Raises:
        CorruptFileError: Bytes that are not such records.
    """
    layout = layout_of(schema_text, path)
    flags = [array_of(f) for _, f in decode_payloads(cells.values, layout, "SecondaryIndexMetadata", DatumCursor.boolean, path)]
    keys = cells.keys.cast(pa.string())
    secondary, record_key = split_secondary_keys(cells.keys, path)
    return pa.table([keys, secondary, record_key, pa.chunked_array(flags, pa.bool_())], schema=SCHEMA)


def encode_values(table: pa.Table, layout: RecordLayout) -> KeyValues:
    """Rows with `secondary` and `record_key` to live records sorted by key; pairs must be unique."""
    keys = secondary_keys(column_of(table, "secondary"), column_of(table, "record_key"))
    return encode_keys(keys, layout)


def encode_keys(keys: pa.Array, layout: RecordLayout) -> KeyValues:
    """Live records with these keys (string or binary, unique), sorted."""
    types = np.full(len(keys), int(RecordType.SECONDARY_INDEX), np.int64)
    bodies = array_of([b"\x00"], pa.binary()).take(array_of(np.zeros(len(keys), np.int64)))
    return KeyValues(*sorted_cells(keys, encode_payloads(types, layout, "SecondaryIndexMetadata", bodies)))
