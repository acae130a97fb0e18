"""A column chunk that has one text in every row: its pages are made without making the rows.

The dictionary page has the text, data pages are runs of its number. Nothing is compressed, there is nothing to gain::

    dictionary page  header | length of the text u32 | text
    data page        header | levels | width of a number u8 1 | run | number u8 0
    levels           length u32 | run | level u8 1; only of a column that may have nulls
    run              2 x values, as a varint

Fields of Parquet's Thrift structures that are written here (Apache Parquet format, `parquet.thrift`)::

    PageHeader      1 type  2 uncompressed_page_size  3 compressed_page_size  4 crc  5 data_page_header
                    7 dictionary_page_header {1 num_values  2 encoding}
    DataPageHeader  1 num_values  2 encoding  3 definition_level_encoding  4 repetition_level_encoding
    ColumnMetaData  1 type  2 encodings  3 path_in_schema  4 codec  5 num_values  6 total_uncompressed_size
                    7 total_compressed_size  9 data_page_offset  11 dictionary_page_offset  12 statistics  13 encoding_stats
    Statistics      3 null_count  5 max_value  6 min_value  7, 8 whether these are exact
    ColumnIndex     1 null_pages  2 min_values  3 max_values  4 boundary_order  5 null_counts
    OffsetIndex     1 page_locations {1 offset  2 compressed_page_size  3 first_row_index}
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from hudimeta.formats.crc32 import crc32
from hudimeta.formats.parquet.thrift import Elements, Fields, encode_struct, varint

__all__ = ["OneText", "one_text"]

_TRUE, _I32, _I64, _BINARY, _LIST, _STRUCT = 1, 5, 6, 8, 9, 12
_BYTE_ARRAY = 6
_PLAIN, _RLE, _DICTIONARY_CODES = 0, 3, 8
"""Encodings."""
_DATA, _DICTIONARY = 0, 2
"""Kinds of pages."""
_UNCOMPRESSED = 0
_ASCENDING = 1
_LENGTH_BYTES = 4


@dataclass(frozen=True)
class OneText:
    """A column chunk.

    Attributes:
        pages: Its bytes.
        metadata: What the footer says of it, in the form of `decode_level`, as if it began at byte 0.
        bounds: Its column index.
        places: Its offset index, as if it began at byte 0.
    """

    pages: bytes
    metadata: Fields
    bounds: bytes
    places: bytes


def one_text(text: str, path: bytes, borders: Sequence[int], *, nullable: bool) -> OneText:
    """The chunk of a text.

    Args:
        text: In every row.
        path: Of the column, a list of Thrift.
        borders: First row of each page, and the number of rows.
        nullable: Whether the column may have nulls.
    """
    value = text.encode()
    dictionary = _page(_DICTIONARY, 7, {1: (_I32, 1), 2: (_I32, _PLAIN)}, len(value).to_bytes(_LENGTH_BYTES, "little") + value)
    pages, places = [dictionary], []
    at = len(dictionary)
    for first, end in itertools.pairwise(borders):
        page = _data_page(end - first, nullable)
        places.append({1: (_I64, at), 2: (_I32, len(page)), 3: (_I64, first)})
        pages.append(page)
        at += len(page)
    count, exact = len(places), (_BINARY, value)
    metadata: Fields = {
        1: (_I32, _BYTE_ARRAY),
        2: (_LIST, _list(_I32, [_PLAIN, _RLE, _DICTIONARY_CODES])),
        3: (_LIST, path),
        4: (_I32, _UNCOMPRESSED),
        5: (_I64, borders[-1]),
        6: (_I64, at),
        7: (_I64, at),
        9: (_I64, len(dictionary)),
        11: (_I64, 0),
        12: (_STRUCT, encode_struct({3: (_I64, 0), 5: exact, 6: exact, 7: (_TRUE, True), 8: (_TRUE, True)})),
        13: (_LIST, _list(_STRUCT, [_counted(_DICTIONARY, _PLAIN, 1), _counted(_DATA, _DICTIONARY_CODES, count)])),
    }
    values = (_LIST, Elements(_BINARY, [value] * count))
    none = (_LIST, Elements(_I64, [0] * count))
    bounds: Fields = {1: (_LIST, Elements(_TRUE, [False] * count)), 2: values, 3: values, 4: (_I32, _ASCENDING), 5: none}
    return OneText(b"".join(pages), metadata, encode_struct(bounds), encode_struct({1: (_LIST, Elements(_STRUCT, places))}))


@lru_cache(maxsize=1024)
def _data_page(rows: int, nullable: bool) -> bytes:
    """So many times the first text of the dictionary; most pages of a file have as many rows."""
    run = varint(rows << 1)
    levels = (len(run) + 1).to_bytes(_LENGTH_BYTES, "little") + run + b"\1" if nullable else b""
    header: Fields = {1: (_I32, rows), 2: (_I32, _DICTIONARY_CODES), 3: (_I32, _RLE), 4: (_I32, _RLE)}
    return _page(_DATA, 5, header, levels + b"\1" + run + b"\0")


def _page(kind: int, field: int, header: Fields, content: bytes) -> bytes:
    checksum = crc32(content)
    whole: Fields = {
        1: (_I32, kind),
        2: (_I32, len(content)),
        3: (_I32, len(content)),
        4: (_I32, checksum - (1 << 32) if checksum >> 31 else checksum),
        field: (_STRUCT, header),
    }
    return encode_struct(whole) + content


def _counted(kind: int, encoding: int, pages: int) -> Fields:
    return {1: (_I32, kind), 2: (_I32, encoding), 3: (_I32, pages)}


def _list(kind: int, values: list[object]) -> bytes:
    """A list by itself, as it stands in a structure."""
    return encode_struct({1: (_LIST, Elements(kind, values))})[1:-1]
