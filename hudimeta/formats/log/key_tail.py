"""The end of a log file, read for its entry of keys (see `key_index`) and for the key column of its only block of rows.

Blocks are walked backwards by their trailers, from the last one to the Parquet block whose footer has the entry. Whatever
stands there instead, in logs of others as in damaged ones, gives None: the log must be read as a whole then, which tells
damage.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.errors import CorruptFileError
from hudimeta.formats.log.block import BlockType, LogBlock
from hudimeta.formats.log.key_index import ENTRY_KEY, KeyIndex, LogFileKeys, decode_key_index
from hudimeta.formats.parquet import check_seal, entry_in
from hudimeta.formats.parquet.pages import chunk_span
from hudimeta.formats.parquet.verified import read_metadata
from hudimeta.formats.parquet.whole_footer import MAGIC

__all__ = ["KeyTail", "keys_of_block", "read_key_tail"]

TAIL_PART: Final = 8
LEAST_TAIL: Final = 16 << 10
MOST_TAIL: Final = 1 << 20
"""What the first request reads: an eighth of the file, which prints of keys seldom exceed, within the limits."""
_BLOCKS: Final = 2
"""How many blocks from the end the entry may be: a delete block may follow the block that has it."""
_TRAILER: Final = struct.Struct(">q")
_NO_FOOTER: Final = bytes(4)
_END: Final = 8
"""Bytes after a footer of Parquet: its length and the magic."""

ReadRange = Callable[[int, int], bytes]
"""Bytes of the file: offset, length."""


@dataclass(frozen=True)
class KeyTail:
    """What was found at the end of a log file.

    Attributes:
        path: Of the file.
        index: The entry.
        footer: The footer of the block that has it, the length and the magic after it included.
        end: Where the content of that block ends in the file.
    """

    path: str
    index: KeyIndex
    footer: bytes
    end: int

    @cached_property
    def metadata(self) -> Any:
        """Pyarrow's `FileMetaData` of the block."""
        return read_metadata(pa.BufferReader(MAGIC + self.footer), self.path)

    @property
    def rows(self) -> int:
        """Rows of the block; 0 where they stand in blocks before it."""
        return int(self.metadata.num_rows)

    @property
    def size(self) -> int:
        """Bytes of the content: a Parquet file that has no page indexes, its footer right after its pages."""
        groups, columns = range(self.metadata.num_row_groups), range(self.metadata.num_columns)
        spans = (chunk_span(self.metadata.row_group(group).column(column)) for group in groups for column in columns)
        return max(map(sum, spans), default=len(MAGIC)) + len(self.footer)

    @property
    def start(self) -> int:
        """Where the content begins in the file."""
        return self.end - self.size

    def read_column(self, name: str, read: ReadRange) -> pa.ChunkedArray:
        """A column of the block without the others, its pages compared with their checksums.

        Args:
            name: Of a flat column.
            read: Reads the file.

        Raises:
            CorruptFileError: Damage.
        """
        import pyarrow.parquet as pq

        content = bytearray(self.size)  # which takes no memory where nothing is written
        try:
            at = self.metadata.schema.names.index(name)
            for group in range(self.metadata.num_row_groups):
                start, length = chunk_span(self.metadata.row_group(group).column(at))
                content[start : start + length] = read(self.start + start, length)
            source = pa.BufferReader(pa.py_buffer(content))
            with pq.ParquetFile(source, metadata=self.metadata, page_checksum_verification=True) as file:
                found: pa.ChunkedArray = file.read([name])[name]
        except (pa.ArrowException, OSError, ValueError) as error:
            what = str(error).partition("\n")[0]
            raise CorruptFileError(self.path, self.start, f"pages of the column {name}", what) from error
        return found


def read_key_tail(read: ReadRange, path: str, size: int) -> KeyTail | None:
    """What the end of a log file says of its keys.

    Args:
        read: Reads the file.
        path: Of the file.
        size: Its bytes, as the table states them.

    Returns:
        None for a file without such an entry where it belongs.

    Raises:
        CorruptFileError: The entry is damaged, or that of another file.
    """
    window = _Window(read, size)
    end = size
    for _ in range(_BLOCKS):
        trailer = window.between(end - _TRAILER.size, end)
        if len(trailer) < _TRAILER.size:
            return None
        length = _TRAILER.unpack(trailer)[0] + _TRAILER.size
        content_end = end - _TRAILER.size - len(_NO_FOOTER)
        if not 0 < length <= end or window.between(content_end, content_end + len(_NO_FOOTER)) != _NO_FOOTER:
            return None
        if window.between(content_end - len(MAGIC), content_end) == MAGIC:
            return _of_block(window, path, end - length, content_end)
        end -= length
    return None


def keys_of_block(block: LogBlock) -> LogFileKeys | None:
    """What the footer of a Parquet block says of the keys that its file touches: those of the block are among them.

    Args:
        block: With its content.

    Returns:
        None where nothing is said, or nothing that can be believed: the rows do not need it.
    """
    content = block.content
    if block.type is not BlockType.PARQUET_DATA or len(content) < _END:
        return None
    start = len(content) - _END - int.from_bytes(content[-_END : -len(MAGIC)], "little")
    if start < 0:
        return None
    footer = bytes(content[start:])
    try:
        if ENTRY_KEY.encode() not in footer or not check_seal(footer, block.path, block.content_offset + start):
            return None
        entry = entry_in(footer, ENTRY_KEY)
        return None if entry is None else decode_key_index(entry, block.path, 0).own
    except CorruptFileError:
        return None


def _of_block(window: _Window, path: str, block_start: int, content_end: int) -> KeyTail | None:
    footer_size = int.from_bytes(window.between(content_end - _END, content_end - len(MAGIC)), "little")
    start = content_end - _END - footer_size
    if start <= block_start:
        return None
    footer = window.between(start, content_end)
    if ENTRY_KEY.encode() not in footer or not check_seal(footer, path, start):
        return None
    entry = entry_in(footer, ENTRY_KEY)
    return None if entry is None else KeyTail(path, decode_key_index(entry, path, window.size), footer, content_end)


class _Window:
    """The end of a file, read once, and again where more is needed."""

    def __init__(self, read: ReadRange, size: int) -> None:
        self._read, self.size = read, size
        self._start = max(size - min(max(size // TAIL_PART, LEAST_TAIL), MOST_TAIL), 0)
        self._data = read(self._start, size - self._start)

    def between(self, start: int, end: int) -> bytes:
        """Some bytes; fewer than asked for outside of the file."""
        start = max(start, 0)
        if start >= end:
            return b""
        if start >= self._start:
            return self._data[start - self._start : end - self._start]
        return self._read(start, end - start)
