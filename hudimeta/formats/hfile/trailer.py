"""The last 4096 bytes of an HFile, and its file info block.

Trailer: magic ``TRABLK"$``, a varint length, a protobuf message, zeros, and in the last four bytes the minor version (u8)
and the major version (u24, 3). Fields of the message::

     1 file_info_offset              6 meta_index_count         11 comparator_class_name (bytes)
     2 load_on_open_data_offset      7 entry_count              12 compression_codec
     3 uncompressed_data_index_size  8 num_data_index_levels    13 encryption_key (bytes)
     4 total_uncompressed_bytes      9 first_data_block_offset
     5 data_index_count             10 last_data_block_offset   (9 and 10 are 2**64-1 in an empty file)

File info: ``PBUF``, a varint length, and a message of repeated field 1, each a message {1: key, 2: value}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hudimeta.errors import UnsupportedFeature
from hudimeta.formats.hfile.layout import ByteCursor, Compression, encode_varint

__all__ = ["COMPARATOR", "TRAILER_SIZE", "Trailer", "decode_file_info", "decode_trailer", "encode_file_info"]

TRAILER_SIZE = 4096
COMPARATOR = "org.apache.hudi.io.storage.HoodieHBaseKVComparator"
"""Readers of HBase load this class by name, so the text is part of the format."""

_MAGIC = b'TRABLK"$'
_FILE_INFO_MAGIC = b"PBUF"
_MAJOR = 3
_ABSENT = (1 << 64) - 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class Trailer:
    """What the trailer says.

    Attributes:
        file_info_offset, load_on_open_offset: Byte offsets in the file.
        data_index_size: Bytes of the data root index before packing.
        total_uncompressed: Of all data blocks, None if absent.
        data_index_count, meta_index_count: Entries in the two root indexes.
        entry_count: Cells in the file.
        index_levels: 1 when the root index points at data blocks.
        first_data_block, last_data_block: Byte offsets, -1 in an empty file.
        comparator: Java class.
        codec: Packs every block.
        minor: Minor version, 3 from HBase, 0 from Hudi's own writer.
    """

    file_info_offset: int
    load_on_open_offset: int
    data_index_size: int
    total_uncompressed: int | None
    data_index_count: int
    meta_index_count: int
    entry_count: int
    index_levels: int
    first_data_block: int
    last_data_block: int
    codec: Compression
    comparator: str = COMPARATOR
    minor: int = 3
    major: int = _MAJOR

    def encode(self) -> bytes:
        """The 4096 bytes."""
        numbers: list[tuple[int, int | None]] = [
            (1, self.file_info_offset),
            (2, self.load_on_open_offset),
            (3, self.data_index_size),
            (4, self.total_uncompressed),
            (5, self.data_index_count),
            (6, self.meta_index_count),
            (7, self.entry_count),
            (8, self.index_levels),
            (9, self.first_data_block & _ABSENT),
            (10, self.last_data_block & _ABSENT),
        ]
        message = b"".join(
            encode_varint(field << 3 | _VARINT) + encode_varint(value) for field, value in numbers if value is not None
        )
        message += _length_delimited(11, self.comparator.encode()) + encode_varint(12 << 3 | _VARINT)
        message += encode_varint(self.codec)
        head = _MAGIC + encode_varint(len(message)) + message
        return head + bytes(TRAILER_SIZE - 4 - len(head)) + bytes([self.minor]) + self.major.to_bytes(3, "big")


def decode_trailer(data: memoryview, path: str, offset: int) -> Trailer:
    """The trailer in `data`, which has 4096 bytes and begins at `offset` of the file.

    Raises:
        CorruptFileError: No trailer stands there, or it lacks a field.
        UnsupportedFeature: Another major version, another codec, or an encrypted file.
    """
    cursor = ByteCursor(data[: TRAILER_SIZE - 4], path, offset)
    magic = cursor.take(8, "trailer magic")
    if magic != _MAGIC:
        cursor.position = 0
        raise cursor.damaged(f"the trailer magic {_MAGIC!r}", magic)
    major = int.from_bytes(data[TRAILER_SIZE - 3 :], "big")
    if major != _MAJOR:
        raise UnsupportedFeature(f"HFile version {major} ({path or 'in memory'})", "Only version 3 is read.")
    numbers: dict[int, int] = {}
    texts: dict[int, bytes] = {}
    for field, value in _fields(cursor, "trailer"):
        if isinstance(value, int):
            numbers[field] = value
        else:
            texts[field] = value
    if 13 in texts:
        raise UnsupportedFeature(f"HFile encryption ({path or 'in memory'})")
    for field, name in ((1, "file_info_offset"), (2, "load_on_open_data_offset"), (5, "data_index_count")):
        if field not in numbers:
            raise cursor.damaged(f"the trailer field {name}", "none")
    if 7 not in numbers or 12 not in numbers:
        raise cursor.damaged("the trailer fields entry_count and compression_codec", f"fields {sorted(numbers)}")
    return Trailer(
        file_info_offset=numbers[1],
        load_on_open_offset=numbers[2],
        data_index_size=numbers.get(3, 0),
        total_uncompressed=numbers.get(4),
        data_index_count=numbers[5],
        meta_index_count=numbers.get(6, 0),
        entry_count=numbers[7],
        index_levels=numbers.get(8, 1),
        first_data_block=_signed(numbers.get(9, _ABSENT)),
        last_data_block=_signed(numbers.get(10, _ABSENT)),
        codec=_codec(numbers[12], cursor),
        comparator=texts.get(11, b"").decode("utf-8", "replace"),
        minor=data[TRAILER_SIZE - 4],
        major=major,
    )


def encode_file_info(info: Mapping[str, bytes]) -> bytes:
    """The payload of a file info block, entries in the order of their names' bytes."""
    message = b""
    for name in sorted(info, key=str.encode):
        pair = _length_delimited(1, name.encode()) + _length_delimited(2, info[name])
        message += _length_delimited(1, pair)
    return _FILE_INFO_MAGIC + encode_varint(len(message)) + message


def decode_file_info(payload: bytes, path: str, offset: int) -> dict[str, bytes]:
    """Names and values of a file info block that begins at `offset` of the file.

    Raises:
        CorruptFileError: The payload is not a file info message.
    """
    cursor = ByteCursor(payload, path, offset)
    magic = cursor.take(4, "file info magic")
    if magic != _FILE_INFO_MAGIC:
        raise cursor.damaged(f"file info magic {_FILE_INFO_MAGIC!r}", magic)
    info: dict[str, bytes] = {}
    for field, pair in _fields(cursor, "file info"):
        if field != 1 or isinstance(pair, int):
            raise cursor.damaged("a name and value pair of the file info", f"field {field}")
        parts = dict(_message(ByteCursor(pair, path, offset), "file info pair"))
        name, value = parts.get(1), parts.get(2, b"")
        if not isinstance(name, bytes) or not isinstance(value, bytes):
            raise cursor.damaged("a file info pair with a name", f"fields {sorted(parts)}")
        info[name.decode("utf-8", "replace")] = value
    return info


def _fields(cursor: ByteCursor, what: str) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a message that follows its own length."""
    length = cursor.varint(f"{what} length")
    start = cursor.offset + cursor.position
    return _message(ByteCursor(cursor.take(length, what), cursor.path, start), what)


def _message(cursor: ByteCursor, what: str) -> Iterator[tuple[int, int | bytes]]:
    of_tag = f"{what} tag"
    while cursor.left:
        tag = cursor.varint(of_tag)
        field, wire = tag >> 3, tag & 7
        of_field = f"{what} field {field}"
        if wire == _VARINT:
            yield field, cursor.varint(of_field)
        elif wire == _BYTES:
            yield field, cursor.take(cursor.varint(of_field), of_field)
        elif wire in (_FIXED64, _FIXED32):
            cursor.take(8 if wire == _FIXED64 else 4, of_field)
        else:
            raise cursor.damaged(f"a protobuf field of the {what}", f"wire type {wire}")


def _length_delimited(field: int, value: bytes) -> bytes:
    return encode_varint(field << 3 | _BYTES) + encode_varint(len(value)) + value


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _codec(code: int, cursor: ByteCursor) -> Compression:
    try:
        codec = Compression(code)
    except ValueError:
        raise cursor.damaged("a compression codec 0 to 6", code) from None
    if codec not in (Compression.GZ, Compression.NONE):
        raise UnsupportedFeature(
            f"HFile compression {codec.name} ({cursor.path or 'in memory'})",
            "Set hoodie.hfile.compression.algorithm to GZ and let the metadata table be compacted.",
        )
    return codec
