"""Hudi's log files: framing, the content of every block type, and record positions."""

from __future__ import annotations

from hudimeta.formats.log.block import BlockType, CorruptSpan, HeaderKey, LogBlock, LogScan
from hudimeta.formats.log.data_blocks import (
    CONTENT_VERSION,
    AvroDatums,
    avro_datums,
    decode_data_block,
    encode_avro_content,
    encode_hfile_content,
    encode_parquet_content,
    open_hfile_block,
)
from hudimeta.formats.log.delete_block import decode_delete_block, encode_delete_content
from hudimeta.formats.log.framing import (
    encode_block,
    encode_command_block,
    frame_block,
    outline,
    outline_blocks,
    read_block,
    read_blocks,
)
from hudimeta.formats.log.key_index import KeyIndex, KeyProbe, LogFileKeys, encode_key_index
from hudimeta.formats.log.key_tail import KeyTail, keys_of_block, read_key_tail
from hudimeta.formats.log.positions import decode_positions, encode_positions
from hudimeta.formats.log.seal import seal_blocks
from hudimeta.formats.log.whole_file import verify_log_file

__all__ = [
    "CONTENT_VERSION",
    "AvroDatums",
    "BlockType",
    "CorruptSpan",
    "HeaderKey",
    "KeyIndex",
    "KeyProbe",
    "KeyTail",
    "LogBlock",
    "LogFileKeys",
    "LogScan",
    "avro_datums",
    "decode_data_block",
    "decode_delete_block",
    "decode_positions",
    "encode_avro_content",
    "encode_block",
    "encode_command_block",
    "encode_delete_content",
    "encode_hfile_content",
    "encode_key_index",
    "encode_parquet_content",
    "encode_positions",
    "frame_block",
    "keys_of_block",
    "open_hfile_block",
    "outline",
    "outline_blocks",
    "read_block",
    "read_blocks",
    "read_key_tail",
    "seal_blocks",
    "verify_log_file",
]
