"""One block of a log file as a value: its type, its header, and what the header says."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hudimeta.errors import CorruptFileError, UnsupportedFeature

__all__ = ["ROLLBACK_COMMAND", "BlockType", "CorruptSpan", "HeaderKey", "LogBlock", "LogScan"]

ROLLBACK_COMMAND: Final = "0"


class BlockType(enum.IntEnum):
    """What a block holds; the value is the number on disk."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6

    @property
    def holds_records(self) -> bool:
        """True for the three kinds of block that hold rows of the table."""
        return self in (BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA)


class HeaderKey(enum.IntEnum):
    """Names of a block's header entries; the value is the number on disk."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One block of a log file, cut out but not decoded.

    Attributes:
        type: What the content is.
        header: Header entries; values are text.
        content: The content's bytes, a view into the file's.
        offset: Byte offset of the block's magic in the file.
        size: Bytes of the whole block, magic and trailer included.
        content_offset: Byte offset of the content in the file.
        footer: Footer entries, in practice none; keyed by the number on disk.
        path: The file, for messages.
        outlined: The content was left in the file; `read_block` reads it.
    """

    type: BlockType
    header: Mapping[HeaderKey, str]
    content: memoryview
    offset: int
    size: int
    content_offset: int = 0
    footer: Mapping[int, str] | None = None
    path: str = ""
    outlined: bool = False

    @property
    def instant(self) -> str:
        """Requested time of the write that made the block.

        Raises:
            CorruptFileError: The entry is absent or not a number.
        """
        instant = self.header.get(HeaderKey.INSTANT_TIME, "")
        if not (instant.isascii() and instant.isdigit()):
            raise self.damaged("an instant time in the block's header", repr(instant))
        return instant

    @property
    def schema_json(self) -> str:
        """Avro schema of the records, as JSON text.

        Raises:
            CorruptFileError: The block has none.
        """
        schema = self.header.get(HeaderKey.SCHEMA)
        if not schema:
            raise self.damaged("a schema in the block's header", "none")
        return schema

    @property
    def is_partial(self) -> bool:
        """True when the records hold only the columns that the write changed."""
        return self._flag(HeaderKey.IS_PARTIAL)

    @property
    def compacted_instants(self) -> tuple[str, ...]:
        """Instants whose blocks a log compaction merged into this one; empty for an ordinary block."""
        times = self.header.get(HeaderKey.COMPACTED_BLOCK_TIMES, "")
        instants = tuple(time.strip() for time in times.split(",") if time.strip())
        if not all(instant.isascii() and instant.isdigit() for instant in instants):
            raise self.damaged("instant times in COMPACTED_BLOCK_TIMES", repr(times))
        return instants

    @property
    def rollback_target(self) -> str | None:
        """The instant that a command block takes back; None when the block is no command.

        Raises:
            CorruptFileError: A command without a target.
            UnsupportedFeature: A command other than rollback.
        """
        if self.type is not BlockType.COMMAND:
            return None
        command = self.header.get(HeaderKey.COMMAND_BLOCK_TYPE)
        if command != ROLLBACK_COMMAND:
            raise UnsupportedFeature(f"log command {command!r} at byte {self.offset} of {self.path or '<memory>'}")
        target = self.header.get(HeaderKey.TARGET_INSTANT_TIME, "")
        if not (target.isascii() and target.isdigit()):
            raise self.damaged("a target instant in the rollback block's header", repr(target))
        return target

    @property
    def is_sealed(self) -> bool:
        """True when the block carries a checksum; `read_blocks` has verified it."""
        return self.type is not BlockType.COMMAND and HeaderKey.TARGET_INSTANT_TIME in self.header

    def damaged(self, expected: object, actual: object, at: int | None = None) -> CorruptFileError:
        """The error for a fault in this block; `at` counts from the start of the content, None is the block's start."""
        offset = self.offset if at is None else self.content_offset + at
        return CorruptFileError(self.path, offset, expected, actual)

    def _flag(self, key: HeaderKey) -> bool:
        value = self.header.get(key, "false").lower()
        if value not in ("true", "false"):
            raise self.damaged(f"true or false in {key.name}", repr(value))
        return value == "true"


@dataclass(frozen=True, slots=True)
class CorruptSpan:
    """Bytes of a log file that are no block: what a writer that died left, or damage.

    Attributes:
        path: The file.
        offset: Where the span starts.
        size: Its bytes, up to the next block or the end of the file.
        reason: What is wrong, for the reader.
        is_past_end: It lies after the end that the file had when it was complete.
    """

    path: str
    offset: int
    size: int
    reason: str
    is_past_end: bool = False

    def __str__(self) -> str:
        return f"{self.path} from byte {self.offset}, {self.size} bytes: {self.reason}"


@dataclass(frozen=True, slots=True)
class LogScan:
    """What a log file consists of: its blocks in file order, and the spans that had to be skipped."""

    blocks: list[LogBlock]
    corrupt: list[CorruptSpan]
