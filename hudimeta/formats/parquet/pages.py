"""Some pages of a Parquet file as a small Parquet file of their own, so that only they are unpacked and decoded.

A row group stores each column as a dictionary page, if it has one, and data pages. Pages of all columns that cover the same
rows make a row group again: its footer is that of the file with other places, sizes and counts. Arrow reads it as it reads any
file, page checksums included. Where columns divide their rows differently, the rows are extended to what all of them share.

Fields of Parquet's Thrift structures that are changed here (Apache Parquet format, `parquet.thrift`)::

    FileMetaData    2 schema  3 num_rows  4 row_groups  5 key_value_metadata
    RowGroup        1 columns  2 total_byte_size  3 num_rows  4 sorting_columns  5 file_offset  6 total_compressed_size
    ColumnChunk     2 file_offset  3 meta_data  4 to 7 places of its page index
    ColumnMetaData  5 num_values  6 total_uncompressed_size  7 total_compressed_size  9 data_page_offset  10 index_page_offset
                    11 dictionary_page_offset  12 statistics  14, 15 place of its bloom filter  16 size statistics
    PageHeader      1 type  3 compressed_page_size  5 data_page_header {1 num_values}  7 dictionary_page_header
                    8 data_page_header_v2 {1 num_values}
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hudimeta.formats.parquet.thrift import Elements, Fields, decode_struct
from hudimeta.formats.parquet.whole_footer import MAGIC, decode_footer, encode_footer

__all__ = ["PageFile", "chunk_span", "pages_around"]

_I64 = 6
_DICTIONARY = 2
_COUNTED_IN = {0: 5, 3: 8}
"""Kinds of data pages, and the field of their headers that counts their values."""
_MAX_GAP = 256 << 10
_WORTH = 0.5
"""Of a row group's rows: when more of them must be read, it is read as usual."""

Read = Callable[[int, int], bytes]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PageFile:
    """A Parquet file of one row group.

    Attributes:
        content: The file.
        rows: int64 of shape (n, 2): which rows of the original row group it holds, first, and one past the last, of each run.
    """

    content: bytes
    rows: Rows


@dataclass(frozen=True)
class _Chunk:
    """The pages of a column. Attributes: data: The chunk's bytes. dictionary: How many of them are the dictionary page.
    starts: int64, byte of each data page, and the end. borders: int64, first row of each data page, and the number of rows."""

    data: memoryview
    dictionary: int
    starts: Rows
    borders: Rows


@dataclass(frozen=True)
class _Page:
    """Attributes: end: The byte after it. values: How many it has; None for a dictionary."""

    end: int
    values: int | None


def pages_around(
    metadata: Any, group: int, columns: Sequence[str], wanted: npt.NDArray[np.bool_], read: Read
) -> PageFile | None:
    """A file with the pages of a row group that hold some rows.

    Args:
        metadata: pyarrow's `FileMetaData`.
        group: Number of the row group.
        columns: Dotted paths of leaf columns, or of what they lie in.
        wanted: For each row of the group whether it is wanted.
        read: Bytes of the file from an offset, a length.

    Returns:
        None where that saves little, where a column repeats values within a row, and where anything is not as it should be:
        reading the whole row group then shows what is wrong.
    """
    chosen = _leaves(metadata, group, columns)
    if not chosen or not _worth_it(wanted):
        return None
    spans = [chunk_span(metadata.row_group(group).column(at)) for at in chosen]
    chunks: dict[int, _Chunk] = {}
    for at, data in zip(chosen, _fetched(spans, read), strict=True):
        chunk = _chunk(data, len(wanted))
        if chunk is None:
            return None
        chunks[at] = chunk
    kept = _extended(wanted, [chunk.borders for chunk in chunks.values()])
    return _file(metadata, group, chunks, kept) if _worth_it(kept) else None


def _worth_it(kept: npt.NDArray[np.bool_]) -> bool:
    return bool(0 < np.count_nonzero(kept) <= _WORTH * len(kept))


def _leaves(metadata: Any, group: int, columns: Sequence[str]) -> list[int]:
    """Numbers of the leaf columns; none where one of them repeats values, so that its pages do not tell their rows."""
    found = []
    for at in range(metadata.num_columns):
        path = metadata.schema.column(at).path
        if any(path == name or path.startswith(f"{name}.") for name in columns):
            if metadata.schema.column(at).max_repetition_level or metadata.row_group(group).column(at).file_path:
                return []
            found.append(at)
    return found


def chunk_span(column: Any) -> tuple[int, int]:
    """Offset and length of a column's pages."""
    first = int(column.data_page_offset)
    if column.has_dictionary_page and column.dictionary_page_offset:
        first = min(first, int(column.dictionary_page_offset))
    return first, int(column.total_compressed_size)


def _fetched(spans: Sequence[tuple[int, int]], read: Read) -> list[memoryview]:
    """The bytes of ascending spans; those that are near each other by one request."""
    found: list[memoryview] = []
    for first, (start, _) in enumerate(spans):
        if first < len(found):
            continue
        last = first
        while last + 1 < len(spans) and 0 <= spans[last + 1][0] - sum(spans[last]) <= _MAX_GAP:
            last += 1
        data = memoryview(read(start, sum(spans[last]) - start))
        found += [data[offset - start : offset - start + length] for offset, length in spans[first : last + 1]]
    return found


def _chunk(data: memoryview, rows: int) -> _Chunk | None:
    """The pages of a column with so many rows; None where they are not laid out as they should be."""
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
    if borders[-1] != rows:
        return None
    return _Chunk(data, dictionary, np.array([*starts, at], dtype=np.int64), np.array(borders, dtype=np.int64))


def _page(data: memoryview, at: int) -> _Page | None:
    """The page that begins at a byte; None for what is none."""
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
    while (count := int(np.count_nonzero(kept))) != before:
        before = count
        for border in borders:
            kept = np.repeat(np.logical_or.reduceat(kept, border[:-1]), np.diff(border))
    return kept


def _file(metadata: Any, group: int, chunks: dict[int, _Chunk], kept: npt.NDArray[np.bool_]) -> PageFile:
    count = int(np.count_nonzero(kept))
    out = io.BytesIO()
    out.write(MAGIC)
    footer = decode_footer(metadata)
    row_group: Fields = footer[4][1].values[group]
    for at, column in enumerate(row_group[1][1].values):
        offset = out.tell()
        dictionary = 0
        if at in chunks:
            chunk = chunks[at]
            dictionary = chunk.dictionary
            out.write(chunk.data[:dictionary])
            for page in np.flatnonzero(kept[chunk.borders[:-1]]).tolist():
                out.write(chunk.data[chunk.starts[page] : chunk.starts[page + 1]])
        _place(column, offset, dictionary, out.tell() - offset, count)
    for field in (4, 5):
        row_group.pop(field, None)
    row_group[3] = (_I64, count)
    footer[3] = (_I64, count)
    footer[4] = (footer[4][0], Elements(footer[4][1].kind, [row_group]))
    footer.pop(5, None)
    out.write(encode_footer(footer))
    edges = np.flatnonzero(np.diff(kept.astype(np.int8), prepend=0, append=0))
    return PageFile(out.getvalue(), edges.reshape(-1, 2))


def _place(column: Fields, offset: int, dictionary: int, size: int, rows: int) -> None:
    """Say where a column's pages are now."""
    for field in (4, 5, 6, 7):
        column.pop(field, None)
    column[2] = (_I64, 0)
    meta: Fields = column[3][1]
    for field in (10, 11, 12, 14, 15, 16):
        meta.pop(field, None)
    meta[5] = (_I64, rows)
    meta[7] = (_I64, size)
    meta[9] = (_I64, offset + dictionary)
    if dictionary:
        meta[11] = (_I64, offset)
    column[3] = (column[3][0], dict(sorted(meta.items())))
