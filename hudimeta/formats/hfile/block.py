"""One block of an HFile: header, packed data, checksums. `decode_block` undoes `encode_block`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hudimeta.errors import CorruptFileError, UnsupportedFeature
from hudimeta.formats.hfile.checksum import checksum_bytes, checksum_length
from hudimeta.formats.hfile.deflate import DEFLATE_ERRORS, gunzip, gzip_member
from hudimeta.formats.hfile.layout import (
    BLOCK_HEADER_SIZE,
    BYTES_PER_CHECKSUM,
    MAX_BLOCK_BYTES,
    MAX_UNPACKED_BYTES,
    BlockHeader,
    BlockKind,
    ChecksumType,
    Compression,
)

__all__ = ["Block", "block_pieces", "decode_block", "encode_block", "frame_block", "pack"]

_MOST_EXPANSION = 1032
"""Deflate's best: two bits for a repetition of 258 bytes."""
_LARGE_EXPANSION = 4
"""What blocks far beyond Hudi's size may unpack to."""
_PIECE_BYTES = 32 << 10
"""What zlib unpacks at once: it gathers more in several buffers, and copies them."""
_JOINED_BYTES = 256 << 10
"""The pieces of smaller blocks are joined, which is quicker; of larger ones there shall not be two copies."""
_ENCODED_DATA = b"DATABLKE"


@dataclass(frozen=True, slots=True)
class Block:
    """A decoded block: its unpacked data, and the bytes that it takes in the file."""

    data: bytes
    size: int


def encode_block(
    kind: BlockKind,
    data: bytes | memoryview,
    codec: Compression,
    *,
    level: int = 6,
    previous_offset: int = -1,
    checksum: ChecksumType = ChecksumType.NULL,
) -> bytes:
    """The bytes of a block.

    Args:
        kind: Which magic.
        data: Unpacked content.
        codec: GZ or NONE; others raise UnsupportedFeature.
        level: Effort of the deflate, 1 to 9.
        previous_offset: Where the previous block of the kind begins, -1 for none.
        checksum: What to put after the data.
    """
    packed = pack(data, codec, level)
    return frame_block(kind, packed, len(data), previous_offset=previous_offset, checksum=checksum)


def frame_block(
    kind: BlockKind,
    packed: bytes,
    uncompressed_size: int,
    *,
    previous_offset: int = -1,
    checksum: ChecksumType = ChecksumType.NULL,
) -> bytes:
    """The bytes of a block whose content has been packed by `pack`; arguments as of `encode_block`."""
    data_size = BLOCK_HEADER_SIZE + len(packed)
    header = BlockHeader(
        magic=kind.value,
        on_disk_size=len(packed) + checksum_length(data_size, BYTES_PER_CHECKSUM),
        uncompressed_size=uncompressed_size,
        previous_offset=previous_offset,
        checksum_type=checksum,
        bytes_per_checksum=BYTES_PER_CHECKSUM,
        on_disk_data_size=data_size,
    )
    body = header.encode() + packed
    return body + checksum_bytes(checksum, body, BYTES_PER_CHECKSUM)


def pack(data: bytes | memoryview, codec: Compression, level: int) -> bytes:
    """Content as the codec stores it. Raises UnsupportedFeature for codecs other than GZ and NONE."""
    if codec is Compression.GZ:
        packed = gzip_member(data, level)
        # A value of many megabytes that repeats itself, such as a bound of a long text, would be taken for a bomb.
        return packed if len(data) <= _most_unpacked(len(packed)) else gzip_member(data, 0)
    if codec is Compression.NONE:
        return bytes(data)
    raise UnsupportedFeature(f"HFile compression {codec.name}", "Use GZ or NONE.")


def decode_block(
    raw: memoryview, kind: BlockKind, codec: Compression, *, path: str, offset: int, exact_size: int | None = None
) -> Block:
    """The block that `raw` begins with.

    Args:
        raw: Bytes of the file from the block's first byte on; may reach beyond the block.
        kind: The magic that must stand there.
        codec: The file's codec.
        path: For errors.
        offset: Where the block begins in the file.
        exact_size: The block's size as its index entry gives it, None when no index does.

    Raises:
        CorruptFileError: The block contradicts itself, its index entry or its checksum.
        UnsupportedFeature: A codec or block encoding that Hudi does not write.
    """
    header, size = _checked_header(raw, kind, codec, path, offset, exact_size)
    packed = raw[BLOCK_HEADER_SIZE : header.on_disk_data_size]
    return Block(_unpack(packed, codec, header.uncompressed_size, path, offset), size)


def block_pieces(
    raw: memoryview, kind: BlockKind, codec: Compression, *, path: str, offset: int, exact_size: int
) -> Iterator[bytes]:
    """The content of the block that `raw` begins with, in order, a piece at a time; arguments and errors as of `decode_block`.

    Pieces have at most 32 KiB. The content is known to be sound only when the last piece has come.
    """
    header, _ = _checked_header(raw, kind, codec, path, offset, exact_size)
    return _pieces(raw[BLOCK_HEADER_SIZE : header.on_disk_data_size], codec, header.uncompressed_size, path, offset)


def _checked_header(
    raw: memoryview, kind: BlockKind, codec: Compression, path: str, offset: int, exact_size: int | None
) -> tuple[BlockHeader, int]:
    """The header, whose lengths can be relied upon, and the bytes that the block takes in the file."""
    header = _decode_header(raw, kind, path, offset)
    size = BLOCK_HEADER_SIZE + header.on_disk_size
    if exact_size is not None and size != exact_size:
        raise CorruptFileError(path, offset + 8, f"a block of {exact_size} bytes, as the index says", size)
    if not BLOCK_HEADER_SIZE <= size <= len(raw):
        raise CorruptFileError(path, offset + 8, f"a block within {len(raw)} bytes", f"a block of {size} bytes")
    if not BLOCK_HEADER_SIZE <= header.on_disk_data_size <= size:
        raise CorruptFileError(path, offset + 29, f"a data size up to {size}", header.on_disk_data_size)
    most = _most_unpacked(header.on_disk_data_size - BLOCK_HEADER_SIZE)
    if not 0 <= header.uncompressed_size <= most:
        raise CorruptFileError(path, offset + 12, f"an uncompressed size up to {most}", header.uncompressed_size)
    _check_sums(raw[:size], header, codec, path, offset)
    return header, size


def _most_unpacked(packed: int) -> int:
    """What so many bytes may unpack to."""
    return min(MAX_BLOCK_BYTES, _MOST_EXPANSION * packed, MAX_UNPACKED_BYTES + _LARGE_EXPANSION * packed)


def _decode_header(raw: memoryview, kind: BlockKind, path: str, offset: int) -> BlockHeader:
    if len(raw) < BLOCK_HEADER_SIZE:
        raise CorruptFileError(path, offset, f"a block header of {BLOCK_HEADER_SIZE} bytes", f"{len(raw)} bytes")
    header = BlockHeader.decode(raw)
    if header.magic != kind.value:
        if kind is BlockKind.DATA and header.magic == _ENCODED_DATA:
            raise UnsupportedFeature("HFile data block encoding (DATABLKE)", "Rewrite the file without data block encoding.")
        raise CorruptFileError(path, offset, f"block magic {kind.value!r}", bytes(header.magic))
    return header


def _check_sums(block: memoryview, header: BlockHeader, codec: Compression, path: str, offset: int) -> None:
    try:
        checksum = ChecksumType(header.checksum_type)
    except ValueError:
        raise CorruptFileError(path, offset + 24, "a checksum type 0, 1 or 2", header.checksum_type) from None
    if checksum is ChecksumType.NULL:
        return
    if header.bytes_per_checksum < 1:
        raise CorruptFileError(path, offset + 25, "a positive number of bytes per checksum", header.bytes_per_checksum)
    found = len(block) - header.on_disk_data_size
    expected = checksum_length(header.on_disk_data_size, header.bytes_per_checksum)
    if found != expected:
        raise CorruptFileError(path, offset + 29, f"{expected} checksum bytes", found)
    # A gzip member carries its own CRC-32 over the content, so only raw blocks depend on the block's sums.
    if codec is Compression.NONE:
        at = header.on_disk_data_size
        if checksum_bytes(checksum, block[:at], header.bytes_per_checksum) != block[at:]:
            raise CorruptFileError(path, offset + at, f"the {checksum.name} of the block's bytes", block[at:].hex())


def _unpack(packed: memoryview, codec: Compression, size: int, path: str, offset: int) -> bytes:
    pieces = _pieces(packed, codec, size, path, offset)
    if size < _JOINED_BYTES:
        return b"".join(pieces)
    whole = io.BytesIO()
    for piece in pieces:
        whole.write(piece)
    return whole.getvalue()


def _pieces(packed: memoryview, codec: Compression, size: int, path: str, offset: int) -> Iterator[bytes]:
    if codec is Compression.NONE:
        if len(packed) != size:
            raise CorruptFileError(path, offset + 12, f"an uncompressed size of {len(packed)}", size)
        yield bytes(packed)
        return
    unpacker = gunzip()
    left, taken = size, 0
    while left >= 0 and taken < len(packed) and not unpacker.eof:
        some = packed[taken : taken + _PIECE_BYTES]
        taken += len(some)
        for piece in _inflated(unpacker, some, left, path, offset):
            left -= len(piece)
            yield piece
    start = offset + BLOCK_HEADER_SIZE
    if left or not unpacker.eof:
        raise CorruptFileError(
            path, start, f"a gzip member of {size} bytes", f"more or fewer, or no end after {size - left} bytes"
        )
    after = len(packed) - taken + len(unpacker.unused_data)
    if after:
        raise CorruptFileError(path, start, "one gzip member", f"{after} bytes after its end")


def _inflated(unpacker: Any, packed: memoryview | bytes, left: int, path: str, offset: int) -> Iterator[bytes]:
    """What some packed bytes unpack to, in pieces; at most `left` bytes and one more.

    That one tells a member that is longer than announced, without inflating all of it.
    """
    try:
        while left >= 0 and not unpacker.eof and (piece := unpacker.decompress(packed, min(left + 1, _PIECE_BYTES))):
            left, packed = left - len(piece), unpacker.unconsumed_tail
            yield piece
    except DEFLATE_ERRORS as error:
        raise CorruptFileError(path, offset + BLOCK_HEADER_SIZE, "a gzip member", str(error)) from None
