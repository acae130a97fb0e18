"""Some pages of a Parquet file as a small Parquet file of their own, so that only they are unpacked and decoded.

A row group stores each column as a dictionary page, if it has one, and data pages. Pages of all columns that cover the same
rows make a row group again: its footer has the file's schema, and places, sizes and counts of its own. Arrow reads it as it
reads any file, page checksums included. Where columns divide their rows differently, the rows are extended to what all of them
share. Where the pages lie is told by the page index of the file, if it can be relied on (see `page_index`); else their headers
are gone through.

Fields of Parquet's Thrift structures that are read or written here (Apache Parquet format, `parquet.thrift`)::

    FileMetaData    1 version  2 schema  3 num_rows  4 row_groups
    RowGroup        1 columns  2 total_byte_size  3 num_rows
    ColumnChunk     2 file_offset  3 meta_data
    ColumnMetaData  1 type  2 encodings  3 path_in_schema  4 codec  5 num_values  6 total_uncompressed_size
                    7 total_compressed_size  9 data_page_offset  11 dictionary_page_offset
    PageHeader      1 type  3 compressed_page_size  5 data_page_header {1 num_values}  7 dictionary_page_header
                    8 data_page_header_v2 {1 num_values}
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hudimeta.formats.parquet.thrift import (
    VARINT,
    Elements,
    Fields,
    decode_struct,
    encode_struct,
    end_of_field,
    integer,
    list_of_structs,
    zigzag,
)
from hudimeta.formats.parquet.whole_footer import LENGTH_BYTES, MAGIC, schema_of_columns

if TYPE_CHECKING:
    from hudimeta.formats.parquet.page_index import PageIndex

__all__ = ["MAX_GAP", "PageFile", "chunk_span", "pages_around"]

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
_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
"""By their numbers."""
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
_DICTIONARY = 2
_COUNTED_IN = {0: 5, 3: 8}
"""Kinds of data pages, and the field of their headers that counts their values."""
_PLAIN_HEADER = re.compile(
    rb"\x15\x00\x15%b\x15(%b)(?:\x15%b\x1c|\x2c)\x15(%b)\x15[\x00-\x7f]\x15[\x00-\x7f]\x15[\x00-\x7f]\x00\x00" % ((VARINT,) * 4)
)
"""Of a data page of the first version without statistics, as most are: its compressed size, and its number of values."""
MAX_GAP = 256 << 10
_WORTH = 0.5
"""Of a row group's rows: when more of them must be read, it is read as usual."""

Read = Callable[[int, int], bytes]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PageFile:
    """A Parquet file of one row group.

    Attributes:
        content: The file.
        kept: For each row of the original row group whether it is in the file.
    """

    content: bytes
    kept: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Chunk:
    """The pages of a column. Attributes: first: Byte of the file where they begin. starts: int64, byte of each data page, and
    the end. borders: int64, first row of each data page, and the number of rows. data: All of them, if they were read."""

    first: int
    starts: Rows
    borders: Rows
    data: memoryview | None = None

    @property
    def dictionary(self) -> int:
        """Bytes of the dictionary page; 0 without one."""
        return int(self.starts[0]) - self.first

    def spans(self, runs: tuple[Rows, Rows]) -> list[tuple[int, int]]:
        """Offset and length of the dictionary page, and of runs of pages: the first of each, and the one after the last."""
        begin, end = (self.starts[side].tolist() for side in runs)
        found = [(start, stop - start) for start, stop in zip(begin, end, strict=True)]
        return [(self.first, self.dictionary), *found] if self.dictionary else found


@dataclass(frozen=True)
class _Page:
    """Attributes: end: The byte after it. values: How many it has; None for a dictionary."""

    end: int
    values: int | None


def pages_around(
    metadata: Any,
    group: int,
    columns: Sequence[str],
    wanted: npt.NDArray[np.bool_],
    read: Read,
    index: PageIndex | None = None,
    gap: int = MAX_GAP,
) -> PageFile | None:
    """A file with the pages of a row group that hold some rows.

    Args:
        metadata: pyarrow's `FileMetaData`.
        group: Number of the row group.
        columns: Dotted paths of leaf columns, or of what they lie in.
        wanted: For each row of the group whether it is wanted.
        read: Bytes of the file from an offset, a length.
        index: The file's page index, if it can be relied on: then nothing but the pages is read.
        gap: So many bytes that are not needed are read rather than asked around.

    Returns:
        None where that saves little, where a column repeats values within a row, and where anything is not as it should be:
        reading the whole row group then shows what is wrong.
    """
    chosen = _leaves(metadata, group, columns)
    if not chosen or not _worth_it(wanted):
        return None
    chunks = _told_chunks(metadata, group, chosen, index) if index is not None else None
    if chunks is None:
        chunks = _read_chunks(metadata, group, chosen, len(wanted), read, gap)
    if chunks is None:
        return None
    kept = _extended(wanted, [chunk.borders for chunk in chunks.values()])
    if not _worth_it(kept):
        return None
    pages = _pages(chunks, kept, read, gap)
    schema = index.schema_bytes if index is not None else _schema_bytes(metadata)
    return _file(metadata.row_group(group), schema, chunks, pages, kept)


def _worth_it(kept: npt.NDArray[np.bool_]) -> bool:
    return bool(0 < np.count_nonzero(kept) <= _WORTH * len(kept))


def _leaves(metadata: Any, group: int, columns: Sequence[str]) -> list[int]:
    """Numbers of the leaf columns; none where one of them repeats values, so that its pages do not tell their rows."""
    found = []
    whole, parts = frozenset(columns), tuple(f"{name}." for name in columns)
    row_group, schema = metadata.row_group(group), metadata.schema
    for at in range(metadata.num_columns):
        column = schema.column(at)
        if column.path in whole or column.path.startswith(parts):
            if column.max_repetition_level or row_group.column(at).file_path:
                return []
            found.append(at)
    return found


def chunk_span(column: Any) -> tuple[int, int]:
    """Offset and length of a column's pages."""
    first = int(column.data_page_offset)
    if column.has_dictionary_page and column.dictionary_page_offset:
        first = min(first, int(column.dictionary_page_offset))
    return first, int(column.total_compressed_size)


def _fetched(spans: Sequence[tuple[int, int]], read: Read, gap: int) -> list[memoryview]:
    """The bytes of ascending spans; those that are near each other by one request."""
    found: list[memoryview] = []
    for first, (start, _) in enumerate(spans):
        if first < len(found):
            continue
        last = first
        while last + 1 < len(spans) and 0 <= spans[last + 1][0] - sum(spans[last]) <= gap:
            last += 1
        data = memoryview(read(start, sum(spans[last]) - start)).cast("B")
        found += [data[offset - start : offset - start + length] for offset, length in spans[first : last + 1]]
    return found


def _told_chunks(metadata: Any, group: int, chosen: Sequence[int], index: PageIndex) -> dict[int, _Chunk] | None:
    """The pages of some columns as the page index tells them; None where it does not tell all."""
    chunks: dict[int, _Chunk] = {}
    row_group, places = metadata.row_group(group), index.places(group, chosen)
    for at, place in places.items() if places is not None else ():
        first, length = chunk_span(row_group.column(at))
        if first > place.starts[0] or place.starts[-1] != first + length:
            return None
        chunks[at] = _Chunk(first, place.starts, place.borders)
    return chunks or None


def _read_chunks(metadata: Any, group: int, chosen: Sequence[int], rows: int, read: Read, gap: int) -> dict[int, _Chunk] | None:
    """The same by reading them, and going through the headers of their pages."""
    chunks: dict[int, _Chunk] = {}
    spans = [chunk_span(metadata.row_group(group).column(at)) for at in chosen]
    for at, (first, _), data in zip(chosen, spans, _fetched(spans, read, gap), strict=True):
        chunk = _chunk(data, first, rows)
        if chunk is None:
            return None
        chunks[at] = chunk
    return chunks


def _pages(chunks: dict[int, _Chunk], kept: npt.NDArray[np.bool_], read: Read, gap: int) -> dict[int, list[memoryview]]:
    """The bytes of the pages that have some of the rows, by column, dictionary pages included."""
    borders = {id(chunk.borders): chunk.borders for chunk in chunks.values()}
    runs = {key: _runs(np.flatnonzero(kept[border[:-1]])) for key, border in borders.items()}
    spans = {at: chunk.spans(runs[id(chunk.borders)]) for at, chunk in chunks.items()}
    away = [span for at, chunk in chunks.items() if chunk.data is None for span in spans[at]]
    fetched = iter(_fetched(away, read, gap))
    found: dict[int, list[memoryview]] = {}
    for at, chunk in chunks.items():
        data, first = chunk.data, chunk.first
        found[at] = [next(fetched) if data is None else data[start - first : start - first + size] for start, size in spans[at]]
    return found


def _runs(pages: Rows) -> tuple[Rows, Rows]:
    """Ascending numbers as runs: the first of each, and the number after its last."""
    breaks = np.flatnonzero(np.diff(pages) > 1)
    return pages[np.append(0, breaks + 1)], pages[np.append(breaks, -1)] + 1


def _chunk(data: memoryview, first: int, rows: int) -> _Chunk | None:
    """The pages of a column with so many rows, which begin at a byte; None where they are not laid out as they should be."""
    starts: list[int] = []
    borders, at, dictionary = [0], 0, 0
    while at < len(data) and borders[-1] < rows:
        page = _page(data, at)
        if page is None or page.end > len(data):
            return None
        if page.values is not None:
            starts.append(at)
            borders.append(borders[-1] + page.values)
        elif at == 0:
            dictionary = page.end
        else:
            return None
        at = page.end
    if borders[-1] != rows or starts[0] != dictionary:
        return None
    return _Chunk(first, np.array([*starts, at], dtype=np.int64) + first, np.array(borders, dtype=np.int64), data)


def _page(data: memoryview, at: int) -> _Page | None:
    """The page that begins at a byte; None for what is none."""
    plain = _PLAIN_HEADER.match(data, at)
    if plain is not None:
        length, count = zigzag(plain[1]), zigzag(plain[2])
        return _Page(plain.end() + length, count) if length >= 0 and count > 0 else None
    try:
        header, content = decode_struct(data, at)
        kind, size = header[1][1], header[3][1]
        values = None if kind == _DICTIONARY else header[_COUNTED_IN[kind]][1][1][1]
        return _Page(content + size, values) if size >= 0 and (values is None or values > 0) else None
    except (KeyError, TypeError, ValueError):
        return None


def _extended(wanted: npt.NDArray[np.bool_], borders: Sequence[Rows]) -> npt.NDArray[np.bool_]:
    """The rows of whole pages of every column, of which the wanted ones are some."""
    kept, before = wanted, -1
    borders = list({id(border): border for border in borders}.values())
    borders = list({border.tobytes(): border for border in borders}.values())  # most columns divide their rows alike
    while (count := int(np.count_nonzero(kept))) != before:
        before = count
        for border in borders:
            kept = np.repeat(np.logical_or.reduceat(kept, border[:-1]), np.diff(border))
    return kept


# What follows writes Thrift's bytes itself: of each file that is looked into, a footer is made, for the rows of one query.


def _file(
    row_group: Any, schema: bytes, chunks: dict[int, _Chunk], pages: dict[int, list[memoryview]], kept: npt.NDArray[np.bool_]
) -> PageFile | None:
    count, out = int(np.count_nonzero(kept)), io.BytesIO()
    out.write(MAGIC)
    columns: list[bytes] = []
    some = schema_of_columns(schema, tuple(chunks))
    for at in range(row_group.num_columns) if some is None else chunks:
        offset = out.tell()
        out.writelines(pages.get(at, ()))
        dictionary = chunks[at].dictionary if at in chunks else 0
        column = _column(row_group.column(at), offset, dictionary, out.tell() - offset, count)
        if column is None:
            return None
        columns.append(column)
    out.write(_footer(some or schema, columns, out.tell() - len(MAGIC), count))
    return PageFile(out.getvalue(), kept)


def _column(column: Any, offset: int, dictionary: int, size: int, rows: int) -> bytes | None:
    """What a footer says of a column's pages; None where Arrow does not tell how they are packed.

    Args:
        column: pyarrow's `ColumnChunkMetaData` in the original file.
        offset: Where the pages begin.
        dictionary: Bytes of the dictionary page; 0 without one.
        size: Bytes of all pages.
        rows: How many they hold.
    """
    packing = _packing(column.physical_type, tuple(column.encodings), column.path_in_schema, column.compression)
    if packing is None:
        return None
    counts = b"".join(_NEXT_I64 + integer(value) for value in (rows, column.total_uncompressed_size, size))
    places = _I64_AFTER_ONE + integer(offset + dictionary)
    if dictionary:
        places += _I64_AFTER_ONE + integer(offset)
    return b"".join((_I64_AFTER_ONE, integer(0), _NEXT_STRUCT, packing, counts, places, _END, _END))


@lru_cache(maxsize=512)
def _packing(type: str, encodings: tuple[str, ...], path: str, codec: str) -> bytes | None:
    """The first four fields of a column's metadata; None for names that are not known."""
    if type not in _TYPES or codec not in _CODECS or not _ENCODINGS.keys() >= set(encodings):
        return None
    meta: Fields = {
        1: (_I32, _TYPES.index(type)),
        2: (_LIST, Elements(_I32, [_ENCODINGS[name] for name in encodings])),
        3: (_LIST, Elements(_BINARY, [path.encode()])),
        4: (_I32, _CODECS[codec]),
    }
    return encode_struct(meta).removesuffix(_END)


def _schema_bytes(metadata: Any) -> bytes:
    """How the footer of a file begins: version and schema."""
    sink = io.BytesIO()
    metadata.write_metadata_file(sink)
    original = memoryview(sink.getvalue())
    return bytes(original[len(MAGIC) : end_of_field(original, len(MAGIC), _SCHEMA)])


def _footer(schema: bytes, columns: list[bytes], size: int, rows: int) -> bytes:
    """The end of a file: the version and the schema of the original file, and the row group."""
    counts = (_NEXT_I64, integer(size), _NEXT_I64, integer(rows), _END)
    group = (_NEXT_LIST, list_of_structs(len(columns)), *columns, *counts)
    text = b"".join((schema, _NEXT_I64, integer(rows), _NEXT_LIST, list_of_structs(1), *group, _END))
    return text + len(text).to_bytes(LENGTH_BYTES, "little") + MAGIC
