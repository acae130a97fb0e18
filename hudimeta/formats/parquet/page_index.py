"""The page index of a Parquet file: where each page lies, which rows it has, and between which values they are.

It stands between the last page and the footer, and has no checksum of its own. Only files that hudimeta wrote have one in their
footer (see `seal`), so the index of others is not used: a bit that flipped in it would make rows disappear.

Fields of Parquet's Thrift structures that are read here (Apache Parquet format, `parquet.thrift`)::

    ColumnChunk     3 meta_data  4 offset_index_offset  5 offset_index_length  6 column_index_offset  7 column_index_length
    OffsetIndex     1 page_locations
    PageLocation    1 offset  2 compressed_page_size  3 first_row_index
    ColumnIndex     1 null_pages  2 min_values  3 max_values  5 null_counts
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.errors import CorruptFileError
from hudimeta.formats.crc32 import crc32
from hudimeta.formats.parquet.seal import INDEX_KEY, entry_in
from hudimeta.formats.parquet.thrift import VARINT, decode_struct, end_of_field, zigzag
from hudimeta.formats.parquet.verified import FileEnd
from hudimeta.formats.plain_arrays import array_of

__all__ = ["PageBounds", "PageIndex", "PagePlaces", "page_index_of"]

_SEEN: dict[int, bytes] = {}
"""The beginning of a footer with so many columns: the files of a table begin alike, and going through it takes a while."""

Numbers = npt.NDArray[np.int64]

_SCHEMA = 2
"""The last field of a footer that says nothing of its rows."""
_I32, _I64, _LIST, _STRUCTS = 0x15, 0x16, 0x19, 0x0C
"""How a field begins whose number is one above that of the field before it; and the kind of a list's elements."""
_LONG_LIST = 15
_OF_LOCATION = 7
"""Varints of a page's location: three values, a header before each, and the end of the structure."""
_HEADERS = np.array([_I32, _I64, 0, _I64])
_PLACES = re.compile(rb"\x00\x16(%b)\x15(%b)(?:\x16(%b)\x15(%b))?\x00" % ((VARINT,) * 4))
"""The end of a column chunk: that of its metadata, then places and sizes of its offset index and its column index."""
_WIDTHS = {"INT32": ("<i4", 4), "INT64": ("<i8", 8), "FLOAT": ("<f4", 4), "DOUBLE": ("<f8", 8)}


@dataclass(frozen=True)
class PagePlaces:
    """The data pages of a column chunk.

    Attributes:
        starts: int64, byte of each in the file, and the byte after the last.
        borders: int64, first row of each in the row group, and the number of rows.
    """

    starts: Numbers
    borders: Numbers


@dataclass(frozen=True)
class PageBounds:
    """Bounds of the pages of a column chunk, one element a page.

    Attributes:
        low, high: As Parquet stores them; None of a page without values.
        nulls: Number of nulls; None where it is not stated.
    """

    low: list[bytes | None]
    high: list[bytes | None]
    nulls: list[int] | None

    def typed(self, physical: str, kind: pa.DataType) -> tuple[pa.Array, pa.Array] | None:
        """The bounds as Arrow arrays; None for types that are stored in another way than they are ordered.

        Args:
            physical: Parquet's name of the column's type.
            kind: Its type in Arrow.
        """
        low, high = (_typed(side, physical, kind) for side in (self.low, self.high))
        return None if low is None or high is None else (low, high)


class PageIndex:
    """The page index of an open file.

    Args:
        metadata: Pyarrow's `FileMetaData`.
        end: The end of the file.
        start: Byte of the file where the index begins.
        places: Of each column chunk, row group by row group, place and size of its offset index and of its column index; the
            latter are 0 where it has none.
    """

    def __init__(self, metadata: Any, end: FileEnd, start: int, places: Numbers) -> None:
        self._metadata, self._end, self._start, self._places = metadata, end, start, places
        self._data = end.before[len(end.before) - (end.offset - start) :]

    @cached_property
    def schema_bytes(self) -> bytes:
        """How the footer begins: version and schema, without the end of the structure."""
        footer, columns = self._end.footer, self._metadata.num_columns
        known = _SEEN.get(columns, b"")
        if not known or footer[: len(known)] != known:
            known = _SEEN[columns] = bytes(footer[: end_of_field(footer, 0, _SCHEMA)])
        return known

    def places(self, group: int, columns: Sequence[int]) -> dict[int, PagePlaces] | None:
        """Where the pages of some column chunks lie; None where that is not told of all of them in the usual way.

        Args:
            group: Number of the row group.
            columns: Numbers of the leaf columns.
        """
        lists = [self._list(self._place(group, column)[0] - self._start) for column in columns]
        found: dict[int, PagePlaces] = {}
        for count in {count for count, _ in lists}:
            alike = [number for number, (other, _) in enumerate(lists) if other == count]
            tables = self._locations(count, np.array([lists[number][1] for number in alike]))
            if tables is None:
                return None
            starts, sizes, rows = (tables[:, :, field] >> 1 for field in (0, 2, 4))
            starts = _with_column(starts, starts[:, -1] + sizes[:, -1])
            borders = _with_column(rows, self._metadata.row_group(group).num_rows)
            if (starts[:, 1:] != starts[:, :-1] + sizes).any() or rows[:, 0].any() or (borders[:, 1:] <= rows).any():
                return None
            shared = borders[0] if (borders == borders[0]).all() else None  # most columns divide their rows alike
            for at, number in enumerate(alike):
                found[columns[number]] = PagePlaces(starts[at], borders[at] if shared is None else shared)
        return found

    def _locations(self, count: int, begin: Numbers) -> Numbers | None:
        """Lists of as many page locations, as varints: one row a list, in it one a page. None for any other layout."""
        first, values = self._varints
        # The byte before a list may be the beginning of a varint to whoever does not know what it is.
        tokens = np.searchsorted(first, begin + 1)[:, np.newaxis] + np.arange(_OF_LOCATION * count - 1)
        if not count or tokens.max() >= len(values) or any(self._data[at] != _I64 for at in begin.tolist()):
            return None
        table = _with_column(values[tokens], _I64).reshape(len(begin), count, _OF_LOCATION)
        if (table[:, :, [1, 3, 5, 6]] != _HEADERS).any() or (table[:, :, [0, 2, 4]] & 1).any():
            return None
        return table

    def bounds(self, group: int, column: int) -> PageBounds | None:
        """Bounds of the pages of a column chunk; None where none are stated. The column is given by its number."""
        _, _, offset, length = self._place(group, column)
        if not length:
            return None
        try:
            fields, _ = decode_struct(self._data, offset - self._start)
            empty, low, high = (fields[number][1].values for number in (1, 2, 3))
            nulls = fields[5][1].values if 5 in fields else None
        except (KeyError, AttributeError, ValueError):
            return None
        if not len(empty) == len(low) == len(high) or (nulls is not None and len(nulls) != len(empty)):
            return None
        low, high = ([None if none else v for none, v in zip(empty, side, strict=True)] for side in (low, high))
        return PageBounds(low, high, nulls)

    def _place(self, group: int, column: int) -> list[int]:
        found: list[int] = self._places[group * self._metadata.num_columns + column].tolist()
        return found

    def _list(self, at: int) -> tuple[int, int]:
        """How many structures the list has that is a structure's first field, and where they begin; 0 for anything else."""
        head = self._data[at + 1]
        if self._data[at] != _LIST or head & 15 != _STRUCTS:
            return 0, at
        if head >> 4 < _LONG_LIST:
            return head >> 4, at + 2
        at += 2
        size, shift = 0, 0
        while True:
            byte = self._data[at]
            size, shift, at = size | (byte & 0x7F) << shift, shift + 7, at + 1
            if byte < 0x80:
                return size, at

    @cached_property
    def _varints(self) -> tuple[Numbers, Numbers]:
        """The index read as varints: where each begins, and its value. Headers of fields are varints of one byte."""
        raw = np.frombuffer(self._data, np.uint8)
        ends = np.flatnonzero(raw < 0x80)
        raw = raw[: ends[-1] + 1]
        first = np.append(0, ends[:-1] + 1)
        shifts = 7 * (np.arange(len(raw)) - np.repeat(first, ends - first + 1))
        return first, np.add.reduceat((raw & 0x7F).astype(np.int64) << np.minimum(shifts, 62), first)


def page_index_of(metadata: Any, end: FileEnd, path: str = "") -> PageIndex | None:
    """The page index of a file; None where it has none, or none with a checksum, or where it was not read with the footer.

    Args:
        metadata: Pyarrow's `FileMetaData`.
        end: The end of the file.
        path: For errors.

    Raises:
        CorruptFileError: It was changed.
    """
    stated = entry_in(end.tail, INDEX_KEY, end.start) if end.sealed else None
    count = metadata.num_row_groups * metadata.num_columns
    if stated is None or not count:
        return None
    found = [[zigzag(part) if part else 0 for part in match.groups()] for match in islice(_PLACES.finditer(end.footer), count)]
    places = np.array(found, np.int64)
    if len(found) < count or not _is_whole(places, end.offset):
        return None
    start = int(_spans(places)[0, 0])
    if start < end.offset - len(end.before):
        return None
    actual = f"{crc32(end.before[start - end.offset :]):08x}"
    if actual.encode() != stated:
        raise CorruptFileError(path, start, f"a page index with the checksum {stated.decode(errors='replace')}", actual)
    return PageIndex(metadata, end, start, places)


def _with_column(table: Numbers, last: Any) -> Numbers:
    """A table with one column more."""
    found = np.empty((len(table), table.shape[1] + 1), np.int64)
    found[:, :-1], found[:, -1] = table, last
    return found


def _is_whole(places: Numbers, footer: int) -> bool:
    """Whether column indexes and offset indexes lie one after the other up to the footer, as nothing else would."""
    spans = _spans(places)
    after = np.append(spans[1:, 0], footer)
    return bool((spans[:, 0] + spans[:, 1] == after).all() and (spans[:, 1] > 0).all())


def _spans(places: Numbers) -> Numbers:
    bounded = places[places[:, 3] > 0]
    return np.concatenate((bounded[:, 2:], places[:, :2]))


def _typed(values: list[bytes | None], physical: str, kind: pa.DataType) -> pa.Array | None:
    """Bounds as Parquet stores them, as an Arrow array."""
    t = pa.types
    if t.is_string(kind) and physical == "BYTE_ARRAY":
        try:
            return array_of(values, pa.binary()).cast(pa.string())
        except pa.ArrowInvalid:
            return None  # cut off within a character
    if t.is_boolean(kind) and physical == "BOOLEAN":
        return array_of([None if value is None else any(value) for value in values], pa.bool_())
    known = np.array([value is not None for value in values], np.bool_)
    if t.is_decimal128(kind):
        numbers = _decimals(values, physical)
    elif t.is_signed_integer(kind) or t.is_date32(kind) or t.is_timestamp(kind) or t.is_float32(kind) or t.is_float64(kind):
        numbers = _plain(values, physical, kind)
    else:
        return None
    if numbers is None:
        return None
    validity = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(numbers)])


def _plain(values: list[bytes | None], physical: str, kind: pa.DataType) -> bytes | None:
    """Numbers of a fixed width, little-endian, in the width of an Arrow type."""
    if physical not in _WIDTHS:
        return None
    stored, width = _WIDTHS[physical]
    if any(value is not None and len(value) != width for value in values):
        return None
    floating = pa.types.is_floating(kind)
    if floating != (stored[1] == "f"):
        return None
    numbers = np.frombuffer(b"".join(value or bytes(width) for value in values), stored)
    return numbers.astype(f"<{'f' if floating else 'i'}{kind.bit_width // 8}").tobytes()


def _decimals(values: list[bytes | None], physical: str) -> bytes | None:
    """Unscaled values, little-endian in 16 bytes."""
    order: Any = "little" if physical in ("INT32", "INT64") else "big"
    numbers = [int.from_bytes(value or b"", order, signed=True) for value in values]
    try:
        return b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)
    except OverflowError:
        return None
