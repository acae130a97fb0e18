"""Footers of Parquet files as Spark understands them: pyarrow that reads by them gives the values that Spark reads.

Two things are different. What Arrow noted of its own types is left out, because Spark does not know it: strings are no large
strings then, and no dictionaries. And INT96 are the twelve bytes that they are: pyarrow's own reading of them takes days and
nanoseconds for unsigned, which are negative where pyarrow wrote times before 1970, or Spark those before the year -4712.

Fields of Parquet's Thrift structures that are changed here (Apache Parquet format, `parquet.thrift`)::

    FileMetaData      2 schema  4 row_groups [{1 columns [{3 meta_data}]}]  5 key_value_metadata [{1 key}]
    SchemaElement     1 type  2 type_length
    ColumnMetaData    1 type  12 statistics
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudimeta.formats.parquet.thrift import Elements, Fields
from hudimeta.formats.parquet.whole_footer import MAGIC, decode_whole_footer, encode_whole_footer

__all__ = ["PlainFooter", "plain_footer"]

_ARROW = b"ARROW:schema"
_I32 = 5
_INT96, _BYTES = 3, 7
_WIDTH = 12


@dataclass(frozen=True)
class PlainFooter:
    """A footer. Attributes: metadata: pyarrow's. int96: Values of twelve bytes in it are INT96 in the file."""

    metadata: Any
    int96: bool


def plain_footer(metadata: Any) -> PlainFooter:
    """A footer as Spark understands it; the one that is given where it is that already.

    Where a file has INT96 and also other values of twelve bytes, INT96 stay what pyarrow takes them for.

    Args:
        metadata: pyarrow's `FileMetaData`.

    Raises:
        ValueError: Bytes that are no footer.
    """
    leaves = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    int96 = any(leaf.physical_type == "INT96" for leaf in leaves) and not any(map(_of_twelve_bytes, leaves))
    noted = _ARROW in (metadata.metadata or {})
    if not int96 and not noted:
        return PlainFooter(metadata, False)
    fields = decode_whole_footer(metadata)
    if noted:
        entries: Elements = fields[5][1]
        fields[5] = (fields[5][0], Elements(entries.kind, [one for one in entries.values if one[1][1] != _ARROW]))
    if int96:
        _take_for_bytes(fields)
    return PlainFooter(_encoded(fields), int96)


def _of_twelve_bytes(leaf: Any) -> bool:
    fixed = leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" and leaf.length == _WIDTH
    return bool(fixed and leaf.logical_type.type != "DECIMAL")


def _take_for_bytes(footer: Fields) -> None:
    """INT96 and values of a fixed length are stored alike, in dictionaries too."""
    for number, element in enumerate(footer[2][1].values):
        if element.get(1) == (_I32, _INT96):
            element |= {1: (_I32, _BYTES), 2: (_I32, _WIDTH)}
            footer[2][1].values[number] = dict(sorted(element.items()))
    for group in footer[4][1].values:
        for column in group[1][1].values:
            meta: Fields = column[3][1]
            if meta[1] == (_I32, _INT96):
                meta[1] = (_I32, _BYTES)
                meta.pop(12, None)


def _encoded(footer: Fields) -> Any:
    import pyarrow.parquet as pq

    return pq.read_metadata(pa.BufferReader(MAGIC + encode_whole_footer(footer)))
