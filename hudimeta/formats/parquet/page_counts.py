"""How many values the headers of a column's pages count, held against the footer.

No checksum covers the headers (see `page_headers`), and Arrow reads no further than to the last row: where a header counts more
values than its page has, the values of later pages move down, and nothing is missing at the end. Of other damage to a header
Arrow tells. The pages of a column have as many values together as the footer says, whoever wrote the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any

import pyarrow as pa

from hudimeta.errors import CorruptFileError
from hudimeta.formats.parquet.pages import chunk_span
from hudimeta.formats.parquet.thrift import VARINT, decode_struct, zigzag

__all__ = ["check_counts", "counted_values", "miscounted"]

_BYTE = rb"[\x00-\x7f]"
_DATA = rb"\x15(%b)(?:\x15%b){3}\x00" % (VARINT, _BYTE)
"""The header of a data page of the first version without statistics: its number of values, and three encodings."""
_PLAIN_HEADER = re.compile(
    rb"\x15[\x00\x04]\x15%b\x15(%b)(?:\x15%b(?:\x1c%b|\x3c\x15%b\x15%b[\x11\x12]?\x00)|\x2c%b)\x00"
    % (VARINT, VARINT, VARINT, _DATA, VARINT, _BYTE, _DATA)
)
"""Of a data page or a dictionary, as most are: the compressed size, and of data the values, with a checksum or without one."""
_count_of = lru_cache(256)(zigzag)
"""Most pages have as many values as others."""
_SIZE, _KIND = 3, 1
_COUNTED_IN = {0: 5, 3: 8}
"""Kinds of data pages, and the field of their headers whose first field counts their values."""


def check_counts(file: Any, metadata: Any, groups: Iterable[int], leaves: Collection[int] | None, path: str) -> None:
    """Compare the headers of columns with the footer; nothing of a file that is far away.

    Args:
        file: `pyarrow.NativeFile`.
        metadata: pyarrow's `FileMetaData`.
        groups: Numbers of the row groups.
        leaves: Numbers of the leaf columns; all when None.
        path: For errors.

    Raises:
        CorruptFileError: A header counts other values than its page has.
    """
    if not isinstance(file, (pa.MemoryMappedFile, pa.BufferReader)):
        return
    file.seek(0)
    data = memoryview(file.read_buffer()).cast("B")
    for group in groups:
        for offset, expected, actual in miscounted(data, metadata, group, leaves):
            raise CorruptFileError(path, offset, expected, actual)


def miscounted(data: memoryview, metadata: Any, group: int, leaves: Collection[int] | None) -> Iterator[tuple[int, str, str]]:
    """Columns whose headers count other values than the footer: where they begin, what was expected, and what is there.

    Args:
        data: The file.
        metadata: pyarrow's `FileMetaData`.
        group: Number of the row group.
        leaves: As of `check_counts`.
    """
    row_group = metadata.row_group(group)
    for at in range(metadata.num_columns) if leaves is None else leaves:
        chunk = row_group.column(at)
        first, length = chunk_span(chunk)
        found = counted_values(data, first, first + length) if length else None
        if found is not None and found != chunk.num_values:
            yield first, f"pages with {chunk.num_values} values (column {chunk.path_in_schema})", f"headers that count {found}"


def counted_values(data: memoryview, at: int, end: int) -> int | None:
    """The values of the pages between two bytes, by their headers; None where these do not lead from one to the other."""
    found, match = 0, _PLAIN_HEADER.match
    while at < end:
        plain = match(data, at)
        if plain is not None:
            packed, count, without_checksum = plain.groups(b"")
            size = zigzag(packed)
            if count or without_checksum:
                found += _count_of(count or without_checksum)
            at = plain.end() + size
        else:
            try:
                header, content = decode_struct(data, at)
                kind, size = header[_KIND][1], header[_SIZE][1]
                found += header[_COUNTED_IN[kind]][1][1][1] if kind in _COUNTED_IN else 0
            except (KeyError, TypeError, ValueError):
                return None
            at = content + size
        if size < 0:
            return None
    return found if at == end else None
