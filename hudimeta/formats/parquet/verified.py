"""Opening Parquet files so that damage is found: size, footer, name and pages.

The end of a file is read once, its footer compared with its seal (see `seal`), and only then given to Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hudimeta.errors import CorruptFileError
from hudimeta.formats.crc32 import crc32
from hudimeta.formats.parquet.page_counts import counted_values
from hudimeta.formats.parquet.page_headers import HeaderSums, read_header, read_strictly
from hudimeta.formats.parquet.pages import chunk_span
from hudimeta.formats.parquet.seal import INDEX_KEY, check_contents, check_name, check_seal, named_in, own_entries
from hudimeta.formats.parquet.thrift import Fields
from hudimeta.formats.parquet.whole_footer import MAGIC

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FileEnd", "bad_pages", "damaged_page", "open_verified", "read_end", "read_metadata", "verify_parquet_file"]

TAIL_BYTES = 64 << 10
_BEFORE_BYTES = 32 << 10
"""Read before a long footer: the page indexes of most files."""
_END = 8
Read = Callable[[int, int], bytes]
"""Bytes of a file: offset, length."""


@dataclass(frozen=True)
class FileEnd:
    """The end of a Parquet file, as it was written.

    Attributes:
        tail: Its last bytes, from somewhere before the footer on.
        start: Where the footer begins in them.
        offset: Where it begins in the file.
        sealed: Whether the footer has a checksum, which was right.
    """

    tail: bytes
    start: int
    offset: int
    sealed: bool

    @property
    def footer(self) -> memoryview:
        """The footer, with its length and the magic after it."""
        return memoryview(self.tail)[self.start :]

    @property
    def before(self) -> memoryview:
        """What was read along with the footer, up to it."""
        return memoryview(self.tail)[: self.start]


def read_metadata(source: Any, path: str = "", size: int = 0) -> Any:
    """Pyarrow's `FileMetaData` of a Parquet file whose footer is what was written. See `read_end`."""
    return read_end(source, path, size)[0]


def read_end(source: Any, path: str = "", size: int = 0) -> tuple[Any, FileEnd]:
    """The end of a Parquet file whose footer is what was written, and pyarrow's `FileMetaData` of it.

    Args:
        source: An open `pyarrow.NativeFile`.
        path: For errors, and because a footer of ours knows the name.
        size: Bytes that the file should have; 0 when nobody says.

    Raises:
        CorruptFileError: Another size, no Parquet footer, or one that was changed or belongs to another file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    actual = int(source.size())
    if size and actual != size:
        raise CorruptFileError(path, min(actual, size), f"a file of {size} bytes", f"{actual} bytes")
    tail, start = _tail(source, actual, path)
    offset = actual - len(tail) + start
    sealed = check_seal(tail, path, offset, start)
    try:
        metadata = pq.read_metadata(pa.BufferReader(tail))  # which looks at nothing before the footer
        entries = (
            named_in(tail, start) if sealed else own_entries(metadata)
        )  # making all of them texts takes as long as the rest
        check_contents(entries, metadata, path, offset, sealed=sealed)
        check_name(entries, metadata, path, offset)
    except (pa.ArrowException, ValueError, LookupError, OSError) as error:
        raise CorruptFileError(path, offset, "the footer of a Parquet file", _first_line(error)) from error
    return metadata, FileEnd(tail, start, offset, sealed)


def _tail(source: Any, size: int, path: str) -> tuple[bytes, int]:
    """The last bytes of a file, and where the footer begins in them. Footers with a filter are large: nothing is copied."""
    if size < _END + len(MAGIC):
        raise CorruptFileError(path, size, "the footer of a Parquet file", f"a file of {size} bytes")
    tail = bytes(source.read_at(min(size, TAIL_BYTES), max(size - TAIL_BYTES, 0)))
    length = int.from_bytes(tail[-_END:-4], "little")
    if tail[-4:] != MAGIC:
        raise CorruptFileError(path, size - 4, "the footer of a Parquet file, which ends in PAR1", repr(tail[-4:]))
    if length > size - _END - len(MAGIC):
        raise CorruptFileError(path, size - _END, f"the footer of a Parquet file within its {size} bytes", f"{length} bytes")
    if length + _END <= len(tail):
        return tail, len(tail) - _END - length
    before = min(_BEFORE_BYTES, size - _END - length)
    return bytes(source.read_at(before + length + _END, size - _END - length - before)), before


def open_verified(source: Any, path: str = "", size: int = 0, **options: Any) -> Any:
    """A `pyarrow.parquet.ParquetFile` that compares pages with their checksums. See `read_metadata`."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(source, metadata=read_metadata(source, path, size), page_checksum_verification=True, **options)


def verify_parquet_file(source: Any, path: str = "", size: int = 0) -> pa.Table:
    """Read every byte of a Parquet file.

    Args:
        source: An open `pyarrow.NativeFile`, or the bytes.
        path: For errors, and because a footer of ours knows the file's name.
        size: Bytes that the file should have; 0 when nobody says.

    Returns:
        All its rows.

    Raises:
        CorruptFileError: Damage, with the offset of the page.
    """
    import pyarrow as pa

    source = pa.BufferReader(source) if isinstance(source, (bytes, bytearray, memoryview)) else source
    metadata = read_metadata(source, path, size)

    def read(offset: int, length: int) -> bytes:
        return bytes(source.read_at(length, offset))

    if read(0, len(MAGIC)) != MAGIC:
        raise CorruptFileError(path, 0, "a Parquet file, which begins with PAR1", repr(read(0, len(MAGIC))))
    found = damaged_page(metadata, read, range(metadata.num_row_groups), None)
    if found is not None:
        raise CorruptFileError(path, *found)
    check_indexes(metadata, read, int(source.size()), path)
    try:
        rows = open_verified(source, path, size).read()
    except (pa.ArrowException, ValueError, OSError) as error:
        raise CorruptFileError(path, 0, "readable rows", _first_line(error)) from error
    if rows.num_rows != metadata.num_rows:
        raise CorruptFileError(path, 0, f"{metadata.num_rows} rows", rows.num_rows)
    return rows


def damaged_page(
    metadata: Any, read: Read, groups: Sequence[int], columns: Sequence[str] | None
) -> tuple[int, str, str] | None:
    """The first page that is not what its header says: its offset, what was expected, and what is there. None without one.

    Args:
        metadata: pyarrow's `FileMetaData`.
        read: Reads the file.
        groups: Row groups to look at.
        columns: Dotted paths of leaf columns, or of what they lie in; None for all.
    """
    for group in groups:
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            name = chunk.path_in_schema
            if columns is None or any(name == c or name.startswith(f"{c}.") for c in columns):
                start, length = chunk_span(chunk)
                pages = memoryview(read(start, length)).cast("B")
                for offset, expected, actual in bad_pages(pages, start, length):
                    return offset, f"{expected} (column {name})", actual
                found = counted_values(pages, 0, length)
                if found is not None and found != chunk.num_values:
                    return start, f"pages with {chunk.num_values} values (column {name})", f"headers that count {found}"
    return None


def bad_pages(data: memoryview, start: int, length: int, column: Fields | None = None) -> Iterator[tuple[int, str, str]]:
    """Pages of a column that are not what their headers say: offset, what was expected, and what is there.

    Args:
        data: The column's pages.
        start: Where they begin in the file.
        length: Bytes that they should have.
        column: Its metadata, as `decode_footer` gives it, which tells of the headers as Arrow does; None where it does not,
            and they are believed.
    """
    at = 0
    if len(data) < length:
        yield start + len(data), f"{length} bytes of pages", f"the file's end after {len(data)}"
    read, sums = (read_header, None) if column is None else (read_strictly, HeaderSums())
    while at < len(data):
        try:
            header = read(data, at)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            yield start + at, "a page header", _first_line(error)
            return
        end = header.start + header.packed
        if not header.start <= end <= len(data):
            yield start + at, "a page inside its column", f"one of {header.packed} bytes"
            return
        actual = crc32(data[header.start : end])
        if header.checksum is not None and actual != header.checksum:
            yield start + at, f"a page with the checksum {header.checksum:08x}", f"{actual:08x}"
        if sums is not None:
            sums.add(header, at)
        at = end
    if column is not None and sums is not None:
        yield from ((start, *odd) for odd in sums.odd(column))


def check_indexes(metadata: Any, read: Read, size: int, path: str) -> None:
    """Compare what lies between the pages and the footer with its checksum, which our files have.

    Args:
        metadata: pyarrow's `FileMetaData`.
        read: Reads the file.
        size: Its bytes.
        path: For errors.

    Raises:
        CorruptFileError: The page indexes are not what was written.
    """
    stated = own_entries(metadata).get(INDEX_KEY.encode())
    if stated is None:
        return
    chunks = (metadata.row_group(g).column(c) for g in range(metadata.num_row_groups) for c in range(metadata.num_columns))
    start = max((sum(chunk_span(chunk)) for chunk in chunks), default=len(MAGIC))
    end = size - _END - int.from_bytes(read(size - _END, 4), "little")
    actual = f"{crc32(read(start, end - start)):08x}"
    if actual != stated.decode():
        raise CorruptFileError(path, start, f"page indexes with the checksum {stated.decode()}", actual)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
