"""Hudi's log files: framing, the content of every block type, and record positions."""

from __future__ import annotations

from hudimeta.formats.log.framing import (
    BlockType,
    CorruptSpan,
    HeaderKey,
    LogBlock,
    LogScan,
    encode_block,
    encode_command_block,
    read_blocks,
)
from hudimeta.formats.log.positions import decode_positions, encode_positions

__all__ = [
    "BlockType",
    "CorruptSpan",
    "HeaderKey",
    "LogBlock",
    "LogScan",
    "decode_positions",
    "encode_block",
    "encode_command_block",
    "encode_positions",
    "read_blocks",
]
