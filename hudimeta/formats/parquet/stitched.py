"""Parquet files put together from the row groups of others, whose pages are copied and not decoded.

A stitched file has the row groups of its sources, one after the other; of each, one column is taken from elsewhere: the name of
the file, which Hudi keeps in every row. Pages, their checksums and their statistics stay as they are; what says where something
lies is written anew::

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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudimeta.errors import CorruptFileError
from hudimeta.formats.parquet.footer import CALENDAR_KEY
from hudimeta.formats.parquet.pages import chunk_span
from hudimeta.formats.parquet.seal import blank_entries, sealed_end
from hudimeta.formats.parquet.thrift import Elements, Fields, decode_struct, encode_struct
from hudimeta.formats.parquet.verified import bad_pages
from hudimeta.formats.parquet.whole_footer import MAGIC, decode_footer, encode_footer

__all__ = ["StitchSource", "stitch", "why_not_stitched"]

_I16, _I32, _I64, _BINARY, _STRUCT = 4, 5, 6, 8, 12
_ROWS, _GROUPS, _ENTRIES = 3, 4, 5
_REBASED = "org.apache.spark.legacy"
"""Entries of Spark that begin so say that dates or timestamps are those of another calendar."""

Read = Callable[[int, int], bytes]


@dataclass(frozen=True)
class StitchSource:
    """A file whose row groups are copied.

    Attributes:
        path: For errors.
        metadata: pyarrow's `FileMetaData`, as `read_metadata` verified it.
        read: Bytes of the file: offset, length.
    """

    path: str
    metadata: Any
    read: Read

    def entry(self, key: str) -> bytes | None:
        """An entry of the key/value metadata."""
        found: bytes | None = (self.metadata.metadata or {}).get(key.encode())
        return found


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
        if any(key.startswith(_REBASED.encode()) for key in metadata.metadata or {}):
            return f"{source.path} has dates of an older calendar"
    if schema.names.count(name_column) != 1 or first.metadata.schema.column(_place_of(first, name_column)).path != name_column:
        return f"there is no column {name_column}"
    return None


def _place_of(source: StitchSource, column: str) -> int:
    paths = [source.metadata.schema.column(at).path for at in range(source.metadata.num_columns)]
    return paths.index(column) if column in paths else 0


def stitch(
    stream: Any, sources: Sequence[StitchSource], name_column: str, name: str, entries: Mapping[str, str], codec: str
) -> tuple[int, Any]:
    """Write a file that has all row groups of its sources.

    Args:
        stream: Has `write(bytes)`; closing it stays with the caller.
        sources: Of which `why_not_stitched` says nothing.
        name_column: Text column that holds the file's name in every row.
        name: Of the new file.
        entries: Key/value metadata of the new file; the seal is added.
        codec: Of the pages of that column.

    Returns:
        Bytes of the file, and pyarrow's `FileMetaData` of it.

    Raises:
        CorruptFileError: A page is not what its checksum says.
    """
    import pyarrow.parquet as pq

    at = _place_of(sources[0], name_column)
    rows = [s.metadata.row_group(g).num_rows for s in sources for g in range(s.metadata.num_row_groups)]
    names = _name_file(sources[0].metadata.schema.to_arrow_schema().field(name_column), rows, name, codec)
    file = _Stitching(stream, names, at)
    for source in sources:
        file.append(source)
    size, end = file.finish(decode_footer(sources[0].metadata), dict(entries) | blank_entries(name))
    return size, pq.read_metadata(pa.BufferReader(end))


def _name_file(field: pa.Field, rows: Sequence[int], name: str, codec: str) -> StitchSource:
    """A Parquet file of the one column, with a row group for each of the others."""
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    schema = pa.schema([field]).remove_metadata()
    with pq.ParquetWriter(
        sink,
        schema,
        compression="none" if codec == "uncompressed" else codec,
        write_page_checksum=True,
        write_page_index=True,
        store_schema=False,
    ) as writer:
        for count in rows:
            writer.write_table(pa.table([pa.repeat(pa.scalar(name, field.type), count)], schema=schema), row_group_size=count)
    content = memoryview(sink.getvalue())
    metadata = pq.read_metadata(pa.BufferReader(content))
    return StitchSource(name, metadata, lambda offset, length: bytes(content[offset : offset + length]))


class _Stitching:
    """The file so far.

    Args:
        stream: Where it goes.
        names: Source of the replaced column; its row groups are taken in turn.
        at: Number of that column.
    """

    def __init__(self, stream: Any, names: StitchSource, at: int) -> None:
        self._stream, self._names, self._at = stream, names, at
        self._name_groups = decode_footer(names.metadata)[_GROUPS][1].values
        self._groups: list[Fields] = []
        self._indexes: list[tuple[Fields, bytes, bytes, int]] = []
        self._written = 0
        self._write(MAGIC)

    def _write(self, data: bytes | memoryview) -> None:
        self._stream.write(data)
        self._written += len(data)

    def append(self, source: StitchSource) -> None:
        """All row groups of a file."""
        groups = decode_footer(source.metadata)[_GROUPS][1].values
        indexes = _IndexBytes(source, groups)
        for number, group in enumerate(groups):
            self._group(source, number, group, indexes)

    def _group(self, source: StitchSource, number: int, group: Fields, indexes: _IndexBytes) -> None:
        described = source.metadata.row_group(number)
        columns: list[Fields] = group[1][1].values
        spans = [chunk_span(described.column(at)) for at in range(len(columns))]
        begin, end = min(start for start, _ in spans), max(start + length for start, length in spans)
        data = memoryview(source.read(begin, end - begin))
        first = self._written
        mine = len(self._groups)
        for at, (start, length) in enumerate(spans):
            if at == self._at:
                columns[at] = self._name_chunk(mine)
                continue
            pages = data[start - begin : start - begin + length]
            _verify(pages, source.path, start, length, described.column(at))
            self._move(columns[at], self._written - start, *indexes.of(columns[at]))
            self._write(pages)
        totals = [column[3][1] for column in columns]
        group[2] = (_I64, sum(meta[6][1] for meta in totals))
        group[5] = (_I64, first)
        group[6] = (_I64, sum(meta[7][1] for meta in totals))
        if 7 in group:
            group[7] = (_I16, mine)
        self._groups.append(dict(sorted(group.items())))

    def _name_chunk(self, number: int) -> Fields:
        column: Fields = self._name_groups[number][1][1].values[0]
        start, length = chunk_span(self._names.metadata.row_group(number).column(0))
        moved = _IndexBytes(self._names, [self._name_groups[number]]).of(column)
        self._move(column, self._written - start, *moved)
        self._write(self._names.read(start, length))
        return column

    def _move(self, column: Fields, delta: int, pages: bytes, places: bytes) -> None:
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
        if pages or places:
            self._indexes.append((column, pages, places, delta))

    def finish(self, footer: Fields, entries: Mapping[str, str]) -> tuple[int, bytes]:
        """The indexes and the footer: bytes of the whole file, and its footer's."""
        end = bytearray()
        for column, pages, _, _ in (one for one in self._indexes if one[1]):
            column[6], column[7] = (_I64, self._written + len(end)), (_I32, len(pages))
            end += pages
        for column, _, places, delta in (one for one in self._indexes if one[2]):
            moved = _moved_places(places, delta)
            column[4], column[5] = (_I64, self._written + len(end)), (_I32, len(moved))
            end += moved
        for group in self._groups:
            columns = group[1][1]
            group[1] = (group[1][0], Elements(columns.kind, [dict(sorted(one.items())) for one in columns.values]))
        footer[_ROWS] = (_I64, sum(group[3][1] for group in self._groups))
        footer[_GROUPS] = (footer[_GROUPS][0], Elements(_STRUCT, self._groups))
        pairs: list[Fields] = [{1: (_BINARY, k.encode()), 2: (_BINARY, v.encode())} for k, v in entries.items()]
        footer[_ENTRIES] = (footer[_GROUPS][0], Elements(_STRUCT, pairs))
        sealed = sealed_end(bytes(end) + encode_footer(footer))
        self._write(sealed)
        return self._written, sealed[len(end) :]


class _IndexBytes:
    """The page indexes of a file, read at once."""

    def __init__(self, source: StitchSource, groups: Sequence[Fields]) -> None:
        columns = [column for group in groups for column in group[1][1].values]
        spans = [(c[a][1], c[a][1] + c[b][1]) for c in columns for a, b in ((4, 5), (6, 7)) if a in c and b in c]
        self._begin = min((start for start, _ in spans), default=0)
        end = max((stop for _, stop in spans), default=0)
        self._data = source.read(self._begin, end - self._begin) if end > self._begin else b""

    def of(self, column: Fields) -> tuple[bytes, bytes]:
        """Bytes of a chunk's column index and offset index; b"" where it has none."""
        pages, places = (self._of(column, *fields) for fields in ((6, 7), (4, 5)))
        return pages, places

    def _of(self, column: Fields, offset: int, length: int) -> bytes:
        if offset not in column or length not in column:
            return b""
        start = column[offset][1] - self._begin
        return self._data[start : start + column[length][1]]


def _moved_places(places: bytes, delta: int) -> bytes:
    """An offset index whose pages lie elsewhere."""
    index, _ = decode_struct(places)
    for location in index[1][1].values:
        location[1] = (_I64, location[1][1] + delta)
    return encode_struct(index)


def _verify(pages: memoryview, path: str, start: int, length: int, chunk: Any) -> None:
    """Refuse to copy damage."""
    for offset, expected, actual in bad_pages(pages, start, length):
        raise CorruptFileError(path, offset, f"{expected} (column {chunk.path_in_schema})", actual)
