"""Some pages of a Parquet file as a small Parquet file of their own, so that only they are unpacked and decoded.

A row group stores each column as a dictionary page, if it has one, and data pages. Pages of all columns that cover the same
rows make a row group again (see `small_file`), which Arrow reads as it reads any, page checksums included. Where columns divide
their rows differently, the rows are extended to what all of them share. Where the pages lie is told by the page index of the
file, if it can be relied on (see `page_index`); else their headers are gone through.

Fields of Parquet's Thrift structures that are read here (Apache Parquet format, `parquet.thrift`)::

    PageHeader      1 type  3 compressed_page_size  5 data_page_header {1 num_values}  7 dictionary_page_header
                    8 data_page_header_v2 {1 num_values}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hudimeta.formats.parquet.quick_decimals import quicker
from hudimeta.formats.parquet.small_file import ColumnPages, schema_bytes, small_file
from hudimeta.formats.parquet.thrift import VARINT, decode_struct, zigzag

if TYPE_CHECKING:
    from hudimeta.formats.parquet.page_index import PageIndex

__all__ = ["MAX_GAP", "PageFile", "chunk_span", "pages_around"]

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
    schema, row_group = index.schema_bytes if index is not None else schema_bytes(metadata), metadata.row_group(group)
    count, chosen_pages = int(np.count_nonzero(kept)), {}
    for at, chunk in chunks.items():
        whole = ColumnPages(row_group.column(at), pages[at], chunk.dictionary)
        chosen_pages[at] = quicker(whole, metadata.schema.column(at), count)
    content = small_file(schema, chosen_pages, row_group, count)
    return None if content is None else PageFile(content, kept)


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
