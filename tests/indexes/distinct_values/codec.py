"""Partition `distinct_values`: which values of one column a base file holds. Everything is in the key.

    key      <file name> 0x09 <value>
    value    isDeleted boolean of `SecondaryIndexMetadata`, the payload that Hudi has for records that are nothing but a key

As a table: key string, file_name string, value string. A value with a tab in it
has no place here, so a file that holds one is unknown.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.hfile import KeyValues
from hudimeta.metadata import secondary_index
from hudimeta.metadata.payload import Cells
from hudimeta.metadata.record import RecordLayout

PARTITION = "distinct_values"
SCHEMA = pa.schema([("key", pa.string()), ("file_name", pa.string()), ("value", pa.string())])
TAB = "\t"


def decode_values(cells: Cells, schema_text: str, path: str = "") -> pa.Table:
    """Records to a table of `SCHEMA`."""
    keys = cells.keys.cast(pa.string())
    halves = pc.split_pattern(keys, TAB, max_splits=1)
    return pa.table([keys, pc.list_element(halves, 0), pc.list_element(halves, 1)], schema=SCHEMA)


def encode_values(table: pa.Table, layout: RecordLayout) -> KeyValues:
    """The inverse: rows with `file_name` and `value` to records sorted by key; pairs must be unique."""
    keys = pc.binary_join_element_wise(table["file_name"], table["value"], TAB)
    return secondary_index.encode_keys(pa.array(keys.to_pylist(), pa.string()), layout)
