"""Parquet files put together from the row groups of others, whose pages are copied and not decoded.

A stitched file has the row groups of its sources, one after the other; of each, one column is taken from elsewhere: the name of
the file, which Hudi keeps in every row. Other columns may be taken from a second file, which has them anew for the same rows.
Pages, their checksums and their statistics stay as they are; what says where something lies is written anew::

    PAR1 | row groups of the first source | ... of the last | column indexes | offset indexes | footer | length | PAR1

Fields that change (Apache Parquet format, `parquet.thrift`; see `pages` for more of them)::

    FileMetaData    3 num_rows  4 row_groups  5 key_value_metadata
    RowGroup        1 columns  2 total_byte_size  5 file_offset  6 total_compressed_size  7 ordinal
    ColumnChunk     2 file_offset  4, 5 place of its offset index  6, 7 of its column index
    ColumnMetaData  6 total_uncompressed_size  7 total_compressed_size  9 data_page_offset  11 dictionary_page_offset
                    14, 15 place of its bloom filter, which is not copied
    OffsetIndex     1 page_locations {1 offset}
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.errors import CorruptFileError
from hudimeta.formats.parquet.moments import CALENDAR_KEY, Moments
from hudimeta.formats.parquet.one_text import one_text
from hudimeta.formats.parquet.seal import INDEX_KEY, blank_entries, sealed_end
from hudimeta.formats.parquet.thrift import VARINT, Elements, Fields, decode_struct, encode_struct, integer, zigzag
from hudimeta.formats.parquet.verified import bad_pages, check_indexes
from hudimeta.formats.parquet.whole_footer import MAGIC, decode_footer, encode_footer

__all__ = ["StitchSource", "stitch", "why_not_stitched"]

_I16, _I32, _I64, _BINARY, _STRUCT = 4, 5, 6, 8, 12
_ROWS, _GROUPS, _ENTRIES = 3, 4, 5
_ARROW = "parquet-cpp-arrow"
"""How its name as a writer begins."""

_A_LIST, _LONG_LIST = 0x19, 15
"""How a structure begins whose first field is a list; and the size that says that the size follows."""
_LOCATION = re.compile(rb"\x16(%b)(\x15%b\x16(%b)\x00)" % ((VARINT,) * 3))
"""Of a page: where it is, its size, its first row."""

Read = Callable[[int, int], Any]


@dataclass(frozen=True)
class StitchSource:
    """A file whose row groups are copied.

    Attributes:
        path: For errors.
        metadata: pyarrow's `FileMetaData`, as `read_end` verified it.
        footer: The bytes that it was made of.
        read: Bytes of the file: offset, length.
        size: Bytes that it has.
        groups: Numbers of the row groups that are copied; None for all.
        anew: A file in memory whose columns are taken instead of those of the same path: its row groups have the rows of
            `groups`, one after the other. None where all columns are copied.
    """

    path: str
    metadata: Any
    footer: bytes
    read: Read
    size: int
    groups: Sequence[int] | None = None
    anew: StitchSource | None = None

    @cached_property
    def headers_told(self) -> bool:
        """Whether the footer, which has a seal, tells of the headers of pages as Arrow does."""
        return self.entry(INDEX_KEY) is not None and str(self.metadata.created_by).startswith(_ARROW)

    @cached_property
    def _entries(self) -> Mapping[bytes, bytes]:
        """Those of the footer, a bloom filter among them, all of which pyarrow copies each time that it is asked."""
        return self.metadata.metadata or {}

    def entry(self, key: str) -> bytes | None:
        """An entry of the key/value metadata."""
        return self._entries.get(key.encode())


def why_not_stitched(sources: Sequence[StitchSource], schema: pa.Schema, name_column: str) -> str | None:
    """Why files cannot be put together as they are; None where they can.

    Args:
        sources: The files.
        schema: Columns that the new file must have, in their order.
        name_column: The one that is written anew.
    """
    first = sources[0]
    if not any(source.metadata.num_rows for source in sources):
        return "there are no rows"
    for source in sources:
        metadata = source.metadata
        if metadata.schema.to_arrow_schema().remove_metadata() != schema:
            return f"{source.path} has other columns than the table"
        if not metadata.schema.equals(first.metadata.schema):
            return f"{source.path} spells its columns differently in Parquet than {first.path}"
        if metadata.created_by != first.metadata.created_by:
            return f"{source.path} is of another writer than {first.path}"
        if source.entry(CALENDAR_KEY) != first.entry(CALENDAR_KEY):
            return f"{source.path} says otherwise of its calendar than {first.path}"
        if Moments(metadata).are_old:
            return f"{source.path} has dates of an older calendar"
    if schema.names.count(name_column) != 1 or first.metadata.schema.column(_place_of(first, name_column)).path != name_column:
        return f"there is no column {name_column}"
    return None


def _place_of(source: StitchSource, column: str) -> int:
    paths = [source.metadata.schema.column(at).path for at in range(source.metadata.num_columns)]
    return paths.index(column) if column in paths else 0


def stitch(
    stream: Any, sources: Sequence[StitchSource], name_column: str, name: str, entries: Mapping[str, str]
) -> tuple[int, Any]:
    """Write a file that has the row groups of its sources.

    Args:
        stream: Has `write(bytes)`; closing it stays with the caller.
        sources: Of which `why_not_stitched` says nothing.
        name_column: Text column that holds the file's name in every row.
        name: Of the new file.
        entries: Key/value metadata of the new file; the seal is added.

    Returns:
        Bytes of the file, and pyarrow's `FileMetaData` of it.

    Raises:
        CorruptFileError: A page, or a page index, is not what its checksum says.
    """
    import pyarrow.parquet as pq

    for source in sources:  # damage that went unnoticed here would have a right checksum in the new file
        check_indexes(source.metadata, source.read, source.size, source.path)

    at = _place_of(sources[0], name_column)
    file = _Stitching(stream, name, at, nullable=bool(sources[0].metadata.schema.column(at).max_definition_level))
    footers = [decode_footer(source.footer) for source in sources]
    for source, footer in zip(sources, footers, strict=True):
        groups = footer[_GROUPS][1].values
        file.append(source, groups if source.groups is None else [groups[number] for number in source.groups])
    size, end = file.finish(footers[0], dict(entries) | blank_entries(name))
    return size, pq.read_metadata(pa.BufferReader(end))


class _Stitching:
    """The file so far.

    Args:
        stream: Where it goes.
        name: Of the file.
        at: Number of the column that holds the name.
        nullable: Whether that may have nulls.
    """

    def __init__(self, stream: Any, name: str, at: int, *, nullable: bool) -> None:
        self._stream, self._name, self._at, self._nullable = stream, name, at, nullable
        self._groups: list[Fields] = []
        self._indexes: list[tuple[Fields, bytes, bytes, int]] = []
        self._written = 0
        self._write(MAGIC)

    def _write(self, data: bytes | memoryview) -> None:
        self._stream.write(data)
        self._written += len(data)

    def append(self, source: StitchSource, groups: Sequence[Fields]) -> None:
        """Row groups of a file."""
        indexes = _IndexBytes(source, groups)
        anew = itertools.repeat(_NOTHING) if source.anew is None else _anew_of(source.anew)
        for group, chunks in zip(groups, anew, strict=source.anew is not None):
            self._group(source, group, indexes, chunks)

    def _group(self, source: StitchSource, group: Fields, indexes: _IndexBytes, anew: Mapping[bytes, _AnewChunk]) -> None:
        """The chunks of a row group, as many at once as lie beside each other."""
        columns: list[Fields] = group[1][1].values
        spans = [_span(column[3][1]) for column in columns]
        begin, end = min(start for start, _ in spans), max(start + length for start, length in spans)
        data = memoryview(source.read(begin, end - begin)).cast("B")  # Arrow's buffers are of signed bytes
        first, number = self._written, len(self._groups)
        run = stop = begin
        for at, (start, length) in enumerate(spans):
            other = anew.get(_path_of(columns[at]))
            if at == self._at or other is not None or start != stop:
                self._write(data[run - begin : stop - begin])
                run = start
            stop = start + length
            bounds, places = indexes.of(columns[at])
            if at == self._at or other is not None:
                columns[at] = self._name_chunk(columns[at], group[_ROWS][1], places) if other is None else self._anew(other)
                run = stop
                continue
            _verify(data[start - begin : stop - begin], source, start, length, columns[at])
            self._move(columns[at], self._written - run, bounds, places)
        self._write(data[run - begin : stop - begin])
        totals = [column[3][1] for column in columns]
        group[2] = (_I64, sum(meta[6][1] for meta in totals))
        group[5] = (_I64, first)
        group[6] = (_I64, sum(meta[7][1] for meta in totals))
        if 7 in group:
            group[7] = (_I16, number)
        self._groups.append(dict(sorted(group.items())))

    def _name_chunk(self, old: Fields, rows: int, places: bytes) -> Fields:
        """The file's name in every row, in pages of the same rows as those that had the old one."""
        made = one_text(self._name, old[3][1][3][1], [*_first_rows(places, rows), rows], nullable=self._nullable)
        column: Fields = {2: (_I64, 0), 3: (_STRUCT, made.metadata)}
        self._move(column, self._written, made.bounds, made.places)
        self._write(made.pages)
        return column

    def _anew(self, chunk: _AnewChunk) -> Fields:
        """A chunk of another file, in the place of one of this row group."""
        self._move(chunk.column, self._written - chunk.start, *chunk.indexes)
        self._write(chunk.pages)
        return chunk.column

    def _move(self, column: Fields, delta: int, bounds: bytes, places: bytes) -> None:
        """Say where a chunk lies; its page indexes follow when all row groups are there."""
        for field in (4, 5, 6, 7):
            column.pop(field, None)
        meta: Fields = column[3][1]
        for field in (14, 15):
            meta.pop(field, None)
        for field in (9, 10, 11):
            if field in meta:
                meta[field] = (_I64, meta[field][1] + delta)
        if column[2][1]:
            column[2] = (_I64, column[2][1] + delta)
        if bounds or places:
            self._indexes.append((column, bounds, places, delta))

    def finish(self, footer: Fields, entries: Mapping[str, str]) -> tuple[int, bytes]:
        """The indexes and the footer: bytes of the whole file, and its footer's."""
        end = bytearray()
        for column, bounds, _, _ in (one for one in self._indexes if one[1]):
            column[6], column[7] = (_I64, self._written + len(end)), (_I32, len(bounds))
            end += bounds
        for column, _, places, delta in (one for one in self._indexes if one[2]):
            moved = _moved_places(places, delta)
            column[4], column[5] = (_I64, self._written + len(end)), (_I32, len(moved))
            end += moved
        for group in self._groups:
            chunks = [dict(sorted(one.items())) for one in group[1][1].values]
            group[1] = (group[1][0], Elements(_STRUCT, chunks))
        footer[_ROWS] = (_I64, sum(group[_ROWS][1] for group in self._groups))
        footer[_GROUPS] = (footer[_GROUPS][0], Elements(_STRUCT, self._groups))
        pairs = [{1: (_BINARY, _binary(key)), 2: (_BINARY, _binary(value))} for key, value in entries.items()]
        footer[_ENTRIES] = (footer[_GROUPS][0], Elements(_STRUCT, pairs))
        sealed = sealed_end(bytes(end) + encode_footer(footer))
        self._write(sealed)
        return self._written, sealed[len(end) :]


@dataclass(frozen=True)
class _AnewChunk:
    """A column chunk that is taken instead of another.

    Attributes:
        column: As a footer tells it.
        start: Byte of its file where it begins.
        pages: Its bytes.
        indexes: Its column index and its offset index.
    """

    column: Fields
    start: int
    pages: Any
    indexes: tuple[bytes, bytes]


_NOTHING: Mapping[bytes, _AnewChunk] = {}


def _anew_of(source: StitchSource) -> Iterator[Mapping[bytes, _AnewChunk]]:
    """For each row group of a file its chunks, by the paths of their columns."""
    groups = decode_footer(source.footer)[_GROUPS][1].values
    indexes = _IndexBytes(source, groups)
    for group in groups:
        found = {}
        for column in group[1][1].values:
            start, length = _span(column[3][1])
            found[_path_of(column)] = _AnewChunk(column, start, source.read(start, length), indexes.of(column))
        yield found


def _path_of(column: Fields) -> bytes:
    """The path of a chunk's column, a list of Thrift."""
    path: bytes = column[3][1][3][1]
    return path


class _IndexBytes:
    """The page indexes of a file, read at once."""

    def __init__(self, source: StitchSource, groups: Sequence[Fields]) -> None:
        columns = [column for group in groups for column in group[1][1].values]
        spans = [(c[a][1], c[a][1] + c[b][1]) for c in columns for a, b in ((4, 5), (6, 7)) if a in c and b in c]
        self._begin = min((start for start, _ in spans), default=0)
        end = max((stop for _, stop in spans), default=0)
        self._data = bytes(source.read(self._begin, end - self._begin)) if end > self._begin else b""

    def of(self, column: Fields) -> tuple[bytes, bytes]:
        """Bytes of a chunk's column index and offset index; b"" where it has none."""
        bounds, places = (self._of(column, *fields) for fields in ((6, 7), (4, 5)))
        return bounds, places

    def _of(self, column: Fields, offset: int, length: int) -> bytes:
        if offset not in column or length not in column:
            return b""
        start = column[offset][1] - self._begin
        return self._data[start : start + column[length][1]]


def _span(meta: Fields) -> tuple[int, int]:
    """Offset and length of a chunk's pages."""
    first: int = meta[9][1]
    dictionary: int = meta[11][1] if 11 in meta else 0
    return min(first, dictionary) if dictionary else first, meta[7][1]


def _locations(places: bytes) -> tuple[int, list[re.Match[bytes]]]:
    """Where the locations of an offset index begin, and each of them; none where they are not written as they should be."""
    size, at = places[1] >> 4, 2
    if size == _LONG_LIST:
        shift = size = 0
        while at < len(places):
            size, shift, at = size | (places[at] & 0x7F) << shift, shift + 7, at + 1
            if places[at - 1] < 0x80:
                break
    begin, found = at, []
    for _ in range(size if places[0] == _A_LIST and places[1] & 15 == _STRUCT else 0):
        location = _LOCATION.match(places, at)
        if location is None:
            return begin, []
        found.append(location)
        at = location.end()
    return begin, found


def _first_rows(places: bytes, rows: int) -> list[int]:
    """The first row of each page, by an offset index; all rows are one page where that does not tell."""
    found = [zigzag(location[3]) for location in _locations(places)[1]] if places else []
    ascending = all(one < other for one, other in itertools.pairwise([*found, rows]))
    return found if found and found[0] == 0 and ascending else [0]


def _moved_places(places: bytes, delta: int) -> bytes:
    """An offset index whose pages lie elsewhere."""
    begin, locations = _locations(places)
    if locations:
        moved = b"".join(b"\x16%b%b" % (integer(zigzag(one[1]) + delta), one[2]) for one in locations)
        return places[:begin] + moved + places[locations[-1].end() :]
    index, _ = decode_struct(places)
    for location in index[1][1].values:
        location[1] = (_I64, location[1][1] + delta)
    return encode_struct(index)


def _binary(text: str) -> bytes:
    """A text as Thrift writes it."""
    value = text.encode()
    return encode_struct({1: (_BINARY, value)})[1:-1]


def _verify(pages: memoryview, source: StitchSource, start: int, length: int, column: Fields) -> None:
    """Refuse to copy damage."""
    meta: Fields = column[3][1]
    found = next(bad_pages(pages, start, length, meta if source.headers_told else None), None)
    if found is not None:
        offset, expected, actual = found
        names = decode_struct(b"\x19" + meta[3][1] + b"\0")[0][1][1].values
        raise CorruptFileError(source.path, offset, f"{expected} (column {b'.'.join(names).decode(errors='replace')})", actual)
