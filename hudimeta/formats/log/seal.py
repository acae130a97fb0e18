"""Seals of log blocks: a checksum of all bytes of a block, and what file the block belongs to.

The format itself has no checksum. The seal stands in the header entry TARGET_INSTANT_TIME, which means something in command
blocks only, as ASCII text of a fixed length::

    crc32:CCCCCCCC:SSSSSSSSSSSSSSS:NNNNNNNN

    C   CRC-32 of the block, computed with these eight digits as zeros, hexadecimal
    S   bytes of the whole file, decimal; 0 in a block that is not yet part of a file
    N   CRC-32 of the file's name, hexadecimal; 0 in a block that is not yet part of a file

Metadata logs of before 2026-11 end after the checksum; nothing is known of their file then.

So a file that lacks its end, or that stands in another one's place, is known by any of its blocks, without asking anybody.
Other readers ignore the entry (Apache Hudi 1.0.2 to 1.2.0 and hudi-rs 0.5 give the same rows for sealed logs of data and of
metadata tables).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hudimeta.errors import CorruptFileError
from hudimeta.formats.crc32 import crc32
from hudimeta.formats.log.block import BlockType, HeaderKey, LogBlock

__all__ = ["BLANK_SEAL", "Seal", "check_seal", "fill_seal", "is_seal", "seal_blocks", "seal_of"]

SEAL_PREFIX: Final = "crc32:"
_SIZE_DIGITS: Final = 15
BLANK_SEAL: Final = f"{SEAL_PREFIX}{'0' * 8}:{'0' * _SIZE_DIGITS}:{'0' * 8}"
_PATTERN: Final = re.compile(f"{SEAL_PREFIX}([0-9a-f]{{8}})(?::([0-9]{{{_SIZE_DIGITS}}}):([0-9a-f]{{8}}))?")
_ENTRY: Final = struct.Struct(">ii")
_SUM_AT: Final = len(SEAL_PREFIX)
_FILE_AT: Final = _SUM_AT + 8 + 1


@dataclass(frozen=True, slots=True)
class Seal:
    """What a seal says. Attributes: checksum: Of the block. file_size: 0 when not said. name: CRC-32 of the file's name."""

    checksum: str
    file_size: int
    name: str


def is_seal(text: str) -> bool:
    """True for the text of a seal."""
    return _PATTERN.fullmatch(text) is not None


def seal_of(block: LogBlock) -> Seal | None:
    """The seal of a block; None for a block without one. Raises CorruptFileError: The entry is neither a seal nor absent."""
    text = block.header.get(HeaderKey.TARGET_INSTANT_TIME)
    if text is None or block.type is BlockType.COMMAND:
        return None
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise block.damaged("a seal or no TARGET_INSTANT_TIME in a block that is no command", repr(text))
    return Seal(match[1], int(match[2] or 0), match[3] or "")


def check_seal(block: LogBlock, raw: memoryview) -> None:
    """Refuse a block whose bytes changed, or that stands in another file than it was written to.

    Args:
        block: Decoded from `raw`.
        raw: The bytes of the whole block.

    Raises:
        CorruptFileError: The seal is broken.
    """
    seal = seal_of(block)
    if seal is None:
        return
    head = bytes(raw[: block.content_offset - block.offset])
    at = _text_at(head, block.header[HeaderKey.TARGET_INSTANT_TIME]) + _SUM_AT
    checksum = crc32(head[:at] + b"0" * 8 + head[at + 8 :])
    actual = f"{crc32(raw[len(head) :], checksum):08x}"
    if actual != seal.checksum:
        raise block.damaged(f"bytes with the checksum {seal.checksum}", actual)
    name = block.path.rpartition("/")[2]
    if seal.file_size and name and _of_name(name) != seal.name:
        raise CorruptFileError(block.path, block.offset, "a block of this file", "a block of a file with another name")


def fill_seal(block: bytearray, file_size: int = 0, name: str = "") -> None:
    """Seal a block that was framed with `BLANK_SEAL`.

    Args:
        block: Its bytes.
        file_size: Of its file with all blocks.
        name: Of its file; "" for a block without one.
    """
    at = _text_at(block, BLANK_SEAL)
    if name:
        block[at + _FILE_AT : at + len(BLANK_SEAL)] = f"{file_size:0{_SIZE_DIGITS}d}:{_of_name(name)}".encode()
    block[at + _SUM_AT : at + _SUM_AT + 8] = f"{crc32(block):08x}".encode()


def seal_blocks(blocks: Sequence[bytearray], name: str) -> None:
    """Seal all blocks of a file.

    Args:
        blocks: Framed with `BLANK_SEAL`, in file order.
        name: Of the file, without its folder.
    """
    size = sum(map(len, blocks))
    for block in blocks:
        fill_seal(block, size, name)


def _text_at(block: bytes | bytearray, text: str) -> int:
    return block.index(_ENTRY.pack(HeaderKey.TARGET_INSTANT_TIME, len(text)) + text.encode()) + _ENTRY.size


def _of_name(name: str) -> str:
    return f"{crc32(name.encode()):08x}"
