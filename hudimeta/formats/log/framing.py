"""Log files cut into blocks: the framing, without what is inside a block.

A log file is a sequence of blocks, nothing before, between or after them. All integers are big-endian and signed::

    6  magic            #HUDI#
    8  length           L: bytes after this field, up to and with the trailer
    4  format version   1
    4  block type       ordinal of BlockType
    .  header           int count, then count times: int ordinal of HeaderKey, int byte length, UTF-8 text
    8  content length   C
    C  content
    .  footer           shaped as the header; empty in everything that was ever written
    8  trailer          L + 6, the block's size without the trailer itself: lets a reader walk backwards

The numbering that the published specification gives (block types and header keys from 1, lengths in front of header and
footer) is not what is on disk.

Three faults are what a writer that died leaves behind, and Hudi's own reader steps over them to the next magic: the length
runs past the end of the file, the trailer disagrees with the length, or neither a magic nor the end of the file follows.
They come back as `CorruptSpan`, never in silence. Everything else that does not add up inside a block whose frame is right
is damage, and raises.

A block may carry a *seal*, a checksum of all its bytes, which the format itself lacks (see `seal`); a sealed block whose bytes
changed is refused.

A file that is larger than memory should be is walked by ranges (`outline_blocks`): a reader then knows which blocks there are,
and reads those that count one by one (`read_block`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from hudimeta.errors import ConfigError, CorruptFileError, UnsupportedFeature
from hudimeta.formats.log.block import ROLLBACK_COMMAND, BlockType, CorruptSpan, HeaderKey, LogBlock, LogScan
from hudimeta.formats.log.seal import BLANK_SEAL, check_seal, fill_seal, is_seal, seal_of

__all__ = [
    "LOG_FORMAT_VERSION",
    "MAGIC",
    "MAX_BLOCK_SIZE",
    "BlockType",
    "CorruptSpan",
    "HeaderKey",
    "LogBlock",
    "LogScan",
    "encode_block",
    "encode_command_block",
    "frame_block",
    "outline",
    "outline_blocks",
    "read_block",
    "read_blocks",
]

MAGIC: Final = b"#HUDI#"
LOG_FORMAT_VERSION: Final = 1
MAX_BLOCK_SIZE: Final = 2**31 - 1
"""Hudi keeps a block's size in a 32-bit integer, so no larger block may be written and none can be right."""
MAX_HEADER_ENTRIES: Final = 64
OUTLINE_WINDOW: Final = 1 << 16
"""Bytes that one request of a walk reads: the end of a block, and the header of the next with its schema."""
_LENGTH_OFFSET: Final = len(MAGIC)
_BODY_OFFSET: Final = _LENGTH_OFFSET + 8
_TRAILER_SIZE: Final = 8
_MIN_LENGTH: Final = 4 + 4 + 4 + 8 + 4 + _TRAILER_SIZE
_ENTRY_SIZE: Final = 8
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_PAIR: Final = struct.Struct(">ii")


def read_blocks(data: bytes | memoryview, path: str = "", size: int | None = None) -> LogScan:
    """Cut a log file into blocks; contents are not decoded.

    Args:
        data: The whole file.
        path: Its name, for messages, spans and the seals.
        size: Bytes that it had when it was complete; the first block's seal says so too, if it has one. What lies after them
            is a span of its own.

    Raises:
        CorruptFileError: A block with a right frame whose inside does not add up, or whose seal is broken; a file that is
            shorter than it was.
        UnsupportedFeature: A log format version, block type or header entry that is unknown.
    """
    whole = memoryview(data).cast("B")
    stated = [one for one in (size, _sealed_size(whole, path)) if one]
    if max(stated, default=0) > len(whole):
        raise CorruptFileError(path, len(whole), f"a file of {max(stated)} bytes", f"its end after {len(whole)}")
    size = min(stated, default=len(whole))
    view = whole[:size]
    blocks: list[LogBlock] = []
    corrupt: list[CorruptSpan] = []
    position = 0
    while position < len(view):
        fault = _frame_fault(view, position)
        if fault is None:
            block = _read_block(view, position, path)
            blocks.append(block)
            position += block.size
            continue
        following = _next_magic(view, position + 1)
        corrupt.append(CorruptSpan(path, position, following - position, fault))
        position = following
    if len(whole) > size:
        why = f"after the {size} bytes of the write that made the file"
        corrupt.append(CorruptSpan(path, size, len(whole) - size, why, is_past_end=True))
    return LogScan(blocks, corrupt)


def _sealed_size(view: memoryview, path: str) -> int:
    """Bytes of the whole file as the seal of its first block says; 0 when it says nothing that can be read."""
    try:
        seal = seal_of(_outline_of(view, 0, path)[0]) if _is_magic(view, 0) else None
    except (CorruptFileError, UnsupportedFeature, struct.error):
        return 0
    return seal.file_size if seal is not None else 0


def outline(scan: LogScan) -> LogScan:
    """The same blocks without their contents, so that the file's bytes can go; `read_block` reads a block again."""
    return LogScan([replace(block, content=memoryview(b""), outlined=True) for block in scan.blocks], scan.corrupt)


def outline_blocks(read_range: Callable[[int, int], bytes], size: int, path: str = "") -> LogScan | None:
    """The outline of a log file, from a request for each block.

    Args:
        read_range: Reads so many bytes (second) from an offset (first).
        size: Of the file.
        path: Its name, for messages.

    Returns:
        Blocks without contents, whose seals are not checked yet; None when anything does not add up or a header is uncommonly
        large: the file must be read as a whole then.
    """
    blocks: list[LogBlock] = []
    window, start, origin = memoryview(read_range(0, OUTLINE_WINDOW)), 0, 0
    try:
        while start < size:
            head = window[start - origin :]
            if not _is_magic(head, 0) or len(head) < _BODY_OFFSET + _MIN_LENGTH:
                return None
            end = start + _BODY_OFFSET + _LONG.unpack_from(head, _LENGTH_OFFSET)[0]
            block, content_size = _outline_of(head, start, path)
            origin = block.content_offset + content_size
            if not (block.content_offset <= origin < end <= size) or end - start > MAX_BLOCK_SIZE:
                return None
            window = memoryview(read_range(origin, OUTLINE_WINDOW))
            _, tail = _read_map(window, 0, end - _TRAILER_SIZE - origin, path)
            rest = window[end - origin :]
            sound = tail == end - _TRAILER_SIZE - origin and _LONG.unpack_from(window, tail)[0] == end - start - _TRAILER_SIZE
            if not sound or (len(rest) >= len(MAGIC) and not _is_magic(rest, 0)):
                return None
            blocks.append(replace(block, size=end - start))
            start = end
    except (CorruptFileError, UnsupportedFeature, struct.error):
        return None
    return LogScan(blocks, [])


def _outline_of(head: memoryview, start: int, path: str) -> tuple[LogBlock, int]:
    """The block whose beginning `head` is, without its content and size; and how long the content is."""
    version, kind = _PAIR.unpack_from(head, _BODY_OFFSET)
    if version != LOG_FORMAT_VERSION or kind not in list(BlockType):
        raise CorruptFileError(path, start, "a known block", f"version {version}, type {kind}")
    entries, position = _read_map(head, _BODY_OFFSET + 8, len(head), path)
    content_size = _LONG.unpack_from(head, position)[0]
    header = _name_keys(entries, start, path)
    block = LogBlock(BlockType(kind), header, memoryview(b""), start, 0, start + position + 8, {}, path, outlined=True)
    _check_type(block)
    if block.type is BlockType.COMMAND and content_size:
        raise block.damaged("an empty command block", f"{content_size} bytes", at=0)
    return block, content_size


def read_block(data: bytes, known: LogBlock) -> LogBlock:
    """A block of which the outline is known, with its content.

    Args:
        data: The bytes of the block, `known.size` from `known.offset` of its file.
        known: What the outline said.

    Raises:
        CorruptFileError: Other bytes than those that were outlined, or a broken seal.
    """
    view = memoryview(data).cast("B")
    fault = _frame_fault(view, 0)
    if fault is not None:
        raise known.damaged("the block that stood here", fault)
    try:
        block = _read_block(view, 0, known.path)
    except CorruptFileError as error:
        raise CorruptFileError(known.path, known.offset + error.offset, error.expected, error.actual) from error
    if (block.type, block.header, block.size) != (known.type, known.header, known.size):
        raise known.damaged("the block that stood here", "another one")
    return replace(block, offset=known.offset, content_offset=known.offset + block.content_offset)


def _frame_fault(view: memoryview, start: int) -> str | None:
    """Why no whole block starts here; None when one does."""
    if not _is_magic(view, start):
        return "no magic where a block should start"
    if start + _BODY_OFFSET > len(view):
        return "the file ends inside the block's length"
    length = _LONG.unpack_from(view, start + _LENGTH_OFFSET)[0]
    if not _MIN_LENGTH <= length <= MAX_BLOCK_SIZE:
        return f"the block's length is {length}"
    end = start + _BODY_OFFSET + length
    if end > len(view):
        return f"the block's length {length} runs {end - len(view)} bytes past the end of the file"
    trailer = _LONG.unpack_from(view, end - _TRAILER_SIZE)[0]
    if trailer != length + len(MAGIC):
        return f"the trailer is {trailer}, the block's length needs {length + len(MAGIC)}"
    # Fewer bytes than a magic are the end of the file to Hudi; they become a span of their own.
    if len(view) - end >= len(MAGIC) and not _is_magic(view, end):
        return "neither another block nor the end of the file follows"
    return None


def _is_magic(view: memoryview, start: int) -> bool:
    return bytes(view[start : start + len(MAGIC)]) == MAGIC


def _next_magic(view: memoryview, start: int) -> int:
    """Offset of the next magic at or after `start`, the file's length when there is none."""
    step = 1 << 20
    while start < len(view):
        found = bytes(view[start : start + step + len(MAGIC) - 1]).find(MAGIC)
        if found >= 0:
            return start + found
        start += step
    return len(view)


def _read_block(view: memoryview, start: int, path: str) -> LogBlock:
    length = _LONG.unpack_from(view, start + _LENGTH_OFFSET)[0]
    size = _BODY_OFFSET + length
    body_end = start + size - _TRAILER_SIZE
    position = start + _BODY_OFFSET
    version, kind = _PAIR.unpack_from(view, position)
    if version != LOG_FORMAT_VERSION:
        raise UnsupportedFeature(f"log format version {version} at byte {start} of {path or '<memory>'}")
    try:
        block_type = BlockType(kind)
    except ValueError:
        raise UnsupportedFeature(f"log block type {kind} at byte {start} of {path or '<memory>'}") from None
    entries, position = _read_map(view, position + 8, body_end, path)
    if position + 8 > body_end:
        raise CorruptFileError(path, position, "a content length inside the block", "the block's end")
    content_length = _LONG.unpack_from(view, position)[0]
    content_offset = position + 8
    if not 0 <= content_length <= body_end - content_offset:
        raise CorruptFileError(path, position, f"a content length up to {body_end - content_offset}", content_length)
    footer, position = _read_map(view, content_offset + content_length, body_end, path)
    if position != body_end:
        raise CorruptFileError(path, position, "the block's trailer", f"{body_end - position} bytes before it")
    content = view[content_offset : content_offset + content_length]
    header = _name_keys(entries, start, path)
    block = LogBlock(block_type, header, content, start, size, content_offset, footer, path)
    _check_type(block)
    check_seal(block, view[start : start + size])
    return block


def _read_map(view: memoryview, position: int, end: int, path: str) -> tuple[dict[int, str], int]:
    """Decode a header or footer that must end by `end`; returns the entries and the offset after them."""
    if position + 4 > end:
        raise CorruptFileError(path, position, "a header inside the block", "the block's end")
    count = _INT.unpack_from(view, position)[0]
    if not 0 <= count <= MAX_HEADER_ENTRIES:
        raise CorruptFileError(path, position, f"a number of entries up to {MAX_HEADER_ENTRIES}", count)
    position += 4
    entries: dict[int, str] = {}
    for _ in range(count):
        if position + _ENTRY_SIZE > end:
            raise CorruptFileError(path, position, "a header entry inside the block", "the block's end")
        key, length = _PAIR.unpack_from(view, position)
        position += _ENTRY_SIZE
        if not 0 <= length <= end - position:
            raise CorruptFileError(path, position - 4, f"an entry length up to {end - position}", length)
        if key in entries:
            raise CorruptFileError(path, position - _ENTRY_SIZE, "each header entry once", f"entry {key} twice")
        try:
            entries[key] = str(view[position : position + length], "utf-8")
        except UnicodeDecodeError:
            raise CorruptFileError(path, position, f"UTF-8 text in header entry {key}", "other bytes") from None
        position += length
    return entries, position


def _name_keys(entries: Mapping[int, str], start: int, path: str) -> dict[HeaderKey, str]:
    try:
        return {HeaderKey(key): value for key, value in entries.items()}
    except ValueError:
        unknown = sorted(set(entries) - set(HeaderKey))
        raise UnsupportedFeature(f"log header entry {unknown[0]} at byte {start} of {path or '<memory>'}") from None


def _check_type(block: LogBlock) -> None:
    """Refuse what no writer makes, so that a flipped type does not turn a data block into something that is passed over."""
    if block.type is BlockType.CORRUPT:
        raise block.damaged("a block type that writers use", "type 2, CORRUPT")
    if block.type is BlockType.COMMAND and len(block.content):
        raise block.damaged("an empty command block", f"{len(block.content)} bytes", at=0)
    if block.type is not BlockType.COMMAND and HeaderKey.COMMAND_BLOCK_TYPE in block.header:
        raise block.damaged("a command block", block.type.name)
    for key, value in block.header.items():
        if key is not HeaderKey.TARGET_INSTANT_TIME and is_seal(value):
            raise block.damaged("a seal in TARGET_INSTANT_TIME", f"one in {key.name}")


def encode_block(
    block_type: BlockType,
    header: Mapping[HeaderKey, str],
    content: bytes | memoryview,
    *,
    seal: bool = False,
) -> bytes:
    """Frame one block; the inverse of `read_blocks` for a file of one block.

    Args:
        block_type: What the content is.
        header: Entries, written in the order given.
        content: The content, encoded for the type.
        seal: Add a checksum over the whole block; not for command blocks, which need the entry themselves.

    Raises:
        ConfigError: The block would be larger than MAX_BLOCK_SIZE.
    """
    block = frame_block(block_type, header, content, sealed=seal)
    if seal and block_type is not BlockType.COMMAND:
        fill_seal(block)
    return bytes(block)


def frame_block(
    block_type: BlockType, header: Mapping[HeaderKey, str], content: bytes | memoryview, *, sealed: bool = True
) -> bytearray:
    """One block, as `encode_block` does, whose seal is yet blank: `seal_blocks` fills it in when the file is complete."""
    entries = [_entry(key, value) for key, value in header.items()]
    if sealed and block_type is not BlockType.COMMAND:
        entries.append(_entry(HeaderKey.TARGET_INSTANT_TIME, BLANK_SEAL))
    length = _MIN_LENGTH + sum(map(len, entries)) + len(content)
    if length + _BODY_OFFSET > MAX_BLOCK_SIZE:
        raise ConfigError(
            "hoodie.logfile.data.block.max.size",
            length,
            f"blocks below {MAX_BLOCK_SIZE} bytes",
            "Write fewer rows per block.",
        )
    block = bytearray(MAGIC)
    block += struct.pack(">qiii", length, LOG_FORMAT_VERSION, block_type, len(entries))
    for entry in entries:
        block += entry
    block += _LONG.pack(len(content))
    block += content
    block += struct.pack(">iq", 0, length + len(MAGIC))
    return block


def encode_command_block(instant: str, target: str) -> bytes:
    """A block that takes back every block of `target` that stands before it in the file slice."""
    header = {
        HeaderKey.INSTANT_TIME: instant,
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
        HeaderKey.TARGET_INSTANT_TIME: target,
    }
    return encode_block(BlockType.COMMAND, header, b"")


def _entry(key: HeaderKey, value: str) -> bytes:
    text = value.encode()
    return _PAIR.pack(key, len(text)) + text
