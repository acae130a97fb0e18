"""A Parquet file of one row group in memory, made of pages that stand in another file: Arrow reads it as it reads any file.

Its footer has the schema of its columns, and places, sizes and counts of its own. Fields of Parquet's Thrift structures that
are written here (Apache Parquet format, `parquet.thrift`)::

    FileMetaData    1 version  2 schema  3 num_rows  4 row_groups
    RowGroup        1 columns  2 total_byte_size  3 num_rows
    ColumnChunk     2 file_offset  3 meta_data
    ColumnMetaData  1 type  2 encodings  3 path_in_schema  4 codec  5 num_values  6 total_uncompressed_size
                    7 total_compressed_size  9 data_page_offset  11 dictionary_page_offset
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hudimeta.formats.parquet.thrift import Elements, Fields, encode_struct, end_of_field, integer, list_of_structs
from hudimeta.formats.parquet.whole_footer import LENGTH_BYTES, MAGIC, TYPES, Leaf, schema_of_columns

__all__ = ["ColumnPages", "schema_bytes", "small_file"]

_I32, _BINARY, _LIST = 5, 8, 9
"""Kinds of Thrift's values."""
_NEXT_I64, _NEXT_LIST, _NEXT_STRUCT = b"\x16", b"\x19", b"\x1c"
"""How a field begins whose number is one above that of the field before it: the step, then the kind of its value."""
_I64_AFTER_ONE = b"\x26"
"""The same where one number is left out."""
_END = b"\0"
"""Of a structure."""
_SCHEMA = 2
"""The field of a footer."""
_CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "ZSTD": 6}
"""By Arrow's names; it has one name for both codecs of LZ4."""
_ENCODINGS = {
    "PLAIN": 0,
    "PLAIN_DICTIONARY": 2,
    "RLE": 3,
    "BIT_PACKED": 4,
    "DELTA_BINARY_PACKED": 5,
    "DELTA_LENGTH_BYTE_ARRAY": 6,
    "DELTA_BYTE_ARRAY": 7,
    "RLE_DICTIONARY": 8,
    "BYTE_STREAM_SPLIT": 9,
}


@dataclass(frozen=True)
class ColumnPages:
    """Pages of a column.

    Attributes:
        chunk: pyarrow's `ColumnChunkMetaData` of the column in the file that they stand in.
        pages: Their bytes, those of its dictionary first; several pages may be one piece.
        dictionary: Bytes of the dictionary page; 0 without one.
        leaf: What the schema says of the column.
    """

    chunk: Any
    pages: Sequence[bytes | memoryview]
    dictionary: int
    leaf: Leaf = Leaf.STATED


def small_file(schema: bytes, columns: Mapping[int, ColumnPages], row_group: Any, rows: int) -> bytes | None:
    """The file.

    Args:
        schema: Version and schema of the file that the pages stand in, see `schema_bytes`.
        columns: By their numbers there, ascending.
        row_group: Pyarrow's `RowGroupMetaData` that they are of.
        rows: How many each of them has.

    Returns:
        None where Arrow does not tell how pages are packed. Where a column lies in another one, all columns of the original are
        in its schema, and those that are not given cannot be read.
    """
    out = io.BytesIO()
    out.write(MAGIC)
    chunks: list[bytes] = []
    some = schema_of_columns(schema, tuple((at, column.leaf) for at, column in columns.items()))
    if some is None and any(column.leaf is not Leaf.STATED for column in columns.values()):
        return None
    for at in range(row_group.num_columns) if some is None else columns:
        offset = out.tell()
        column = columns[at] if at in columns else ColumnPages(row_group.column(at), (), 0)
        out.writelines(column.pages)
        chunk = _chunk(column, offset, out.tell() - offset, rows)
        if chunk is None:
            return None
        chunks.append(chunk)
    out.write(_footer(some or schema, chunks, out.tell() - len(MAGIC), rows))
    return out.getvalue()


def schema_bytes(metadata: Any) -> bytes:
    """How the footer of a file begins: version and schema, without the end of the structure. Of pyarrow's `FileMetaData`."""
    sink = io.BytesIO()
    metadata.write_metadata_file(sink)
    original = memoryview(sink.getvalue())
    return bytes(original[len(MAGIC) : end_of_field(original, len(MAGIC), _SCHEMA)])


# What follows writes Thrift's bytes itself: of each file that is looked into, a footer is made, for the rows of one query.


def _chunk(column: ColumnPages, offset: int, size: int, rows: int) -> bytes | None:
    """What a footer says of a column's pages, which begin at a byte; None where Arrow does not tell how they are packed."""
    chunk, kind = column.chunk, column.leaf.physical_type(column.chunk.physical_type)
    packing = _packing(kind, tuple(chunk.encodings), chunk.path_in_schema, chunk.compression)
    if packing is None:
        return None
    counts = b"".join(_NEXT_I64 + integer(value) for value in (rows, chunk.total_uncompressed_size, size))
    places = _I64_AFTER_ONE + integer(offset + column.dictionary)
    if column.dictionary:
        places += _I64_AFTER_ONE + integer(offset)
    return b"".join((_I64_AFTER_ONE, integer(0), _NEXT_STRUCT, packing, counts, places, _END, _END))


@lru_cache(maxsize=512)
def _packing(type: str, encodings: tuple[str, ...], path: str, codec: str) -> bytes | None:
    """The first four fields of a column's metadata; None for names that are not known."""
    if type not in TYPES or codec not in _CODECS or not _ENCODINGS.keys() >= set(encodings):
        return None
    meta: Fields = {
        1: (_I32, TYPES.index(type)),
        2: (_LIST, Elements(_I32, [_ENCODINGS[name] for name in encodings])),
        3: (_LIST, Elements(_BINARY, [path.encode()])),
        4: (_I32, _CODECS[codec]),
    }
    return encode_struct(meta).removesuffix(_END)


def _footer(schema: bytes, columns: list[bytes], size: int, rows: int) -> bytes:
    """The end of a file: its version and schema, and the row group."""
    counts = (_NEXT_I64, integer(size), _NEXT_I64, integer(rows), _END)
    group = (_NEXT_LIST, list_of_structs(len(columns)), *columns, *counts)
    text = b"".join((schema, _NEXT_I64, integer(rows), _NEXT_LIST, list_of_structs(1), *group, _END))
    return text + len(text).to_bytes(LENGTH_BYTES, "little") + MAGIC
