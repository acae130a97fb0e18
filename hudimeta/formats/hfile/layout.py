"""Names, numbers and integer spellings of HFile version 3, the container of Hudi's metadata table.

All integers are big-endian. A file is::

    data blocks (leaf index blocks between them if the index has levels)   DATABLK*  IDXLEAF2
    meta blocks (bloom filter), intermediate index blocks                  METABLKc  IDXINTE2
    load-on-open: data root index | meta root index | file info            IDXROOT2  IDXROOT2  FILEINF2
    trailer, the last 4096 bytes                                           TRABLK"$

Every block but the trailer begins with a header of 33 bytes::

     0  8 bytes  magic
     8  i32      on-disk size without header = compressed length + checksum bytes
    12  i32      uncompressed size without header, no checksum
    16  i64      offset of the previous block of the kind, -1 for none; readers ignore it
    24  u8       checksum type: 0 none, 1 CRC-32, 2 CRC-32C
    25  i32      bytes covered by one checksum (16384)
    29  i32      on-disk data size with header = 33 + compressed length

After the data stand 4 checksum bytes for every 16384 bytes of header and data. The codec named in the trailer packs every
block of the file; GZ is one gzip member per block. Source: Hudi tech spec, "HFile format"; Apache HBase reference guide,
appendix on HFile.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass

from hudimeta.errors import CorruptFileError

__all__ = [
    "BLOCK_HEADER_SIZE",
    "BYTES_PER_CHECKSUM",
    "KEY_SUFFIX",
    "MAX_BLOCK_BYTES",
    "MAX_KEY_BYTES",
    "BlockHeader",
    "BlockKind",
    "ChecksumType",
    "Compression",
    "ByteCursor",
    "encode_hadoop_vint",
    "encode_key",
    "encode_varint",
]

BLOCK_HEADER_SIZE = 33
BYTES_PER_CHECKSUM = 16384
MAX_BLOCK_BYTES = 256 << 20
"""Largest uncompressed block that is accepted; Hudi aims at 1 MiB, and a single value is below 1 MiB in practice."""
MAX_UNPACKED_BYTES = 16 << 20
"""Size to which a block may unpack, besides some times what it takes in the file."""
MAX_KEY_BYTES = 32767
KEY_SUFFIX = b"\x00\x7f\xff\xff\xff\xff\xff\xff\xff\x04"
"""What follows the row in a cell's key: no family, no qualifier, the latest timestamp, type Put."""

_HEADER = struct.Struct(">8siiqBii")


class BlockKind(enum.Enum):
    """The magics of the blocks that Hudi writes."""

    DATA = b"DATABLK*"
    META = b"METABLKc"
    ROOT_INDEX = b"IDXROOT2"
    INTERMEDIATE_INDEX = b"IDXINTE2"
    LEAF_INDEX = b"IDXLEAF2"
    FILE_INFO = b"FILEINF2"


class Compression(enum.IntEnum):
    """Compression codes of the trailer; only GZ and NONE are in use."""

    LZO = 0
    GZ = 1
    NONE = 2
    SNAPPY = 3
    LZ4 = 4
    BZIP2 = 5
    ZSTD = 6


class ChecksumType(enum.IntEnum):
    """Which checksum stands after a block's data; NULL keeps the place and fills it with zeros."""

    NULL = 0
    CRC32 = 1
    CRC32C = 2


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """The 33 bytes before every block; see the module's docstring for the fields.

    Attributes:
        checksum_type: The raw byte, since a damaged one must be reported and not raise on construction.
    """

    magic: bytes
    on_disk_size: int
    uncompressed_size: int
    previous_offset: int
    checksum_type: int
    bytes_per_checksum: int
    on_disk_data_size: int

    def encode(self) -> bytes:
        """The header's bytes."""
        return _HEADER.pack(
            self.magic,
            self.on_disk_size,
            self.uncompressed_size,
            self.previous_offset,
            self.checksum_type,
            self.bytes_per_checksum,
            self.on_disk_data_size,
        )

    @classmethod
    def decode(cls, data: memoryview | bytes) -> BlockHeader:
        """The header that `data` begins with; the caller has made sure of 33 bytes."""
        return cls(*_HEADER.unpack_from(data))


def encode_key(row: bytes) -> bytes:
    """A cell's full key as HBase spells it: i16 length, row, suffix."""
    return len(row).to_bytes(2, "big") + row + KEY_SUFFIX


def encode_varint(value: int) -> bytes:
    """A protobuf varint of a non-negative integer below 2**64."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_hadoop_vint(value: int) -> bytes:
    """A Hadoop VInt of a non-negative integer: one byte up to 127, else a byte -112-n and n bytes."""
    if value <= 127:
        return bytes([value])
    width = (value.bit_length() + 7) // 8
    return struct.pack(">b", -112 - width) + value.to_bytes(width, "big")


class ByteCursor:
    """Reads integers and byte strings in order, and refuses to pass the end.

    Args:
        data: The bytes.
        path: File they came from, for errors.
        offset: Where the bytes begin in the file; for packed data where their block begins.
    """

    __slots__ = ("data", "offset", "path", "position")

    def __init__(self, data: memoryview | bytes, path: str, offset: int) -> None:
        self.data = data
        self.path = path
        self.offset = offset
        self.position = 0

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self.data) - self.position

    def damaged(self, expected: object, actual: object) -> CorruptFileError:
        """The error for what stands at the cursor."""
        return CorruptFileError(self.path, self.offset + self.position, expected, actual)

    def take(self, count: int, what: str) -> bytes:
        """The next `count` bytes."""
        if not 0 <= count <= self.left:
            raise self.damaged(f"{count} bytes of {what}", f"{self.left} left")
        start = self.position
        self.position = start + count
        return bytes(self.data[start : self.position])

    def varint(self, what: str) -> int:
        """A protobuf varint, below 2**64."""
        if self.position < len(self.data) and (first := self.data[self.position]) < 0x80:  # almost always
            self.position += 1
            return first
        value = shift = 0
        while shift < 70:
            byte = self.take(1, what)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFF_FFFF_FFFF_FFFF
            shift += 7
        raise self.damaged(f"a varint for {what}", "more than 10 bytes")

    def hadoop_vint(self, what: str) -> int:
        """A Hadoop VInt that is not negative."""
        first = int.from_bytes(self.take(1, what), "big", signed=True)
        if first >= 0:
            return first
        width = -112 - first
        if not 1 <= width <= 4:
            raise self.damaged(f"a Hadoop VInt for {what}", f"first byte {first}")
        return int.from_bytes(self.take(width, what), "big")
