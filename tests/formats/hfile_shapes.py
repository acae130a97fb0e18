"""Puts HFiles together block by block, in the shapes that other writers produce and ours does not."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from hudimeta.formats.hfile.block import encode_block
from hudimeta.formats.hfile.layout import BlockKind, Compression, encode_hadoop_vint, encode_key, encode_varint
from hudimeta.formats.hfile.trailer import Trailer, encode_file_info

Pair = tuple[bytes, bytes]
Place = tuple[int, int, bytes]


def cell(key: bytes, value: bytes) -> bytes:
    return struct.pack(">ii", len(key) + 12, len(value)) + encode_key(key) + value + b"\x00"


def native_key(row: bytes) -> bytes:
    """As Hudi 1.1 writes index keys: no suffix, and the length as a protobuf varint."""
    key = struct.pack(">h", len(row)) + row
    return encode_varint(len(key)) + key


def hbase_key(row: bytes) -> bytes:
    key = encode_key(row)
    return encode_hadoop_vint(len(key)) + key


@dataclass
class Shape:
    """An HFile under construction: `data` and `index` append blocks, `finish` adds the rest."""

    codec: Compression = Compression.GZ
    minor: int = 3
    native: bool = False
    body: bytearray = field(default_factory=bytearray)
    entries: int = 0
    info: dict[str, bytes] = field(default_factory=lambda: {"KEY_VALUE_VERSION": b"\x00\x00\x00\x01", "schema": b'"bytes"'})

    def data(self, pairs: Sequence[Pair], index_key: bytes | None = None) -> Place:
        self.entries += len(pairs)
        return self._append(BlockKind.DATA, b"".join(cell(*pair) for pair in pairs), index_key or pairs[0][0])

    def index(self, kind: BlockKind, places: Sequence[Place]) -> Place:
        entries = [struct.pack(">qi", offset, size) + encode_key(row) for offset, size, row in places]
        ends = [0]
        for entry in entries:
            ends.append(ends[-1] + len(entry))
        payload = struct.pack(f">i{len(ends)}i", len(entries), *ends) + b"".join(entries)
        return self._append(kind, payload, places[0][2])

    def finish(self, root: Sequence[Place], levels: int = 1, **changed: int) -> bytes:
        key = native_key if self.native else hbase_key
        payload = b"".join(struct.pack(">qi", offset, size) + key(row) for offset, size, row in root)
        if levels > 1:
            payload += struct.pack(">qii", *root[0][:2], 0)
        load = len(self.body)
        self._append(BlockKind.ROOT_INDEX, payload, b"")
        self._append(BlockKind.ROOT_INDEX, b"", b"")
        info = len(self.body)
        self._append(BlockKind.FILE_INFO, encode_file_info(self.info), b"")
        facts = {"data_index_count": len(root), "entry_count": self.entries, "index_levels": levels} | changed
        trailer = Trailer(
            file_info_offset=info,
            load_on_open_offset=load,
            data_index_size=len(payload),
            total_uncompressed=None,
            meta_index_count=0,
            first_data_block=0,
            last_data_block=0,
            codec=self.codec,
            minor=self.minor,
            **facts,
        )
        return bytes(self.body) + trailer.encode()

    def _append(self, kind: BlockKind, payload: bytes, row: bytes) -> Place:
        offset = len(self.body)
        self.body += encode_block(kind, payload, self.codec)
        return offset, len(self.body) - offset, row
