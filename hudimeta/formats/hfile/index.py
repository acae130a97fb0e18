"""Index blocks of an HFile: which block holds which keys.

Root index (data and meta), as often as the trailer counts::

    offset i64 | block size i32 | key length Hadoop VInt | key

A data entry's key is ``row length i16 | row`` and, from HBase, the 10-byte suffix; Hudi 1.1 wrote the length as a protobuf
varint, which differs from 128 up. A meta entry's key is the plain name. The root block of a file with several levels ends in
16 more bytes, the middle key. Leaf and intermediate index blocks::

    n i32 | (n+1) x i32 offsets of the entries, counted from the end of this table | n x (offset i64 | block size i32 | key)

An entry's key may be a "fake" one: shorter than the block's first key, but above every key of the block before.
"""

from __future__ import annotations

import itertools
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hudimeta.cached import cached_property
from hudimeta.errors import CorruptFileError
from hudimeta.formats.hfile.layout import BLOCK_HEADER_SIZE, ByteCursor, encode_hadoop_vint, encode_key

__all__ = ["BlockIndex", "decode_index_block", "decode_meta_root", "decode_root", "encode_meta_root", "encode_root"]

_ENTRY = struct.Struct(">qi")
_MIDDLE_KEY_BYTES = 16
_SUFFIX_BYTES = 10


@dataclass(frozen=True)
class BlockIndex:
    """Blocks in the order of their keys.

    Attributes:
        keys: First key of each block or a fake key, without length and suffix.
        offsets: int64, where each block begins in the file.
        sizes: int64, bytes of each block with header and checksums.
    """

    keys: list[bytes]
    offsets: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def is_sorted(self) -> bool:
        """False in a file whose writer did not order keys by their bytes."""
        return all(a <= b for a, b in itertools.pairwise(self.keys))

    def all_blocks(self) -> npt.NDArray[np.int64]:
        """Positions of all entries."""
        return np.arange(len(self.keys), dtype=np.int64)

    def blocks_of_keys(self, wanted: Sequence[bytes]) -> npt.NDArray[np.int64]:
        """Positions of the entries whose blocks can hold any of the sorted keys `wanted`, ascending."""
        if not self.is_sorted:
            return self.all_blocks()
        keys = self.keys
        chosen: set[int] = set()
        if len(wanted) > 4 * len(keys):
            for block in range(len(keys)):
                first = bisect_left(wanted, keys[block])
                if first == len(wanted):
                    break
                if block + 1 == len(keys) or wanted[first] < keys[block + 1] or wanted[first] == keys[block]:
                    chosen.add(block)
        else:
            for key in wanted:
                last = bisect_right(keys, key) - 1
                if last >= 0:
                    # Equal keys share a block, so only blocks that begin with the key itself come before the last one.
                    first = bisect_left(keys, key) if keys[last] == key else last
                    chosen.update(range(first, last + 1))
        return np.array(sorted(chosen), dtype=np.int64)

    def blocks_of_prefixes(self, prefixes: Sequence[bytes]) -> npt.NDArray[np.int64]:
        """Positions of the entries whose blocks can hold a key that starts with any of `prefixes`, ascending."""
        if not self.is_sorted:
            return self.all_blocks()
        chosen: set[int] = set()
        for prefix in prefixes:
            start = bisect_left(self.keys, prefix)
            if start == len(self.keys) or self.keys[start] != prefix:
                start = max(start - 1, 0)
            above = _above(prefix)
            chosen.update(range(start, len(self.keys) if above is None else bisect_left(self.keys, above)))
        return np.array(sorted(chosen), dtype=np.int64)

    def take(self, positions: npt.NDArray[np.int64]) -> BlockIndex:
        """The entries at `positions`."""
        keys = [self.keys[i] for i in positions.tolist()]
        return BlockIndex(keys, self.offsets[positions], self.sizes[positions])

    @classmethod
    def concat(cls, parts: Sequence[BlockIndex]) -> BlockIndex:
        """All entries of `parts`, in order."""
        keys = [key for part in parts for key in part.keys]
        if not parts:
            return cls(keys, np.zeros(0, np.int64), np.zeros(0, np.int64))
        return cls(keys, np.concatenate([p.offsets for p in parts]), np.concatenate([p.sizes for p in parts]))


def encode_root(entries: Sequence[tuple[int, int, bytes]]) -> bytes:
    """Payload of a data root index of (offset, size, first row) entries, with full keys."""
    return _encode_entries([(offset, size, encode_key(row)) for offset, size, row in entries])


def encode_meta_root(entries: Sequence[tuple[int, int, bytes]]) -> bytes:
    """Payload of a meta root index of (offset, size, name) entries."""
    return _encode_entries(entries)


def decode_root(payload: bytes, count: int, *, multi_level: bool, path: str, offset: int, limit: int) -> BlockIndex:
    """The data root index.

    Args:
        payload: Unpacked block.
        count: Entries, from the trailer.
        multi_level: Whether 16 more bytes may follow the entries.
        path: For errors.
        offset: Where the index block begins.
        limit: Byte offset that no indexed block may pass.

    Raises:
        CorruptFileError: The entries do not fill the payload, or point outside of the file's data or at overlapping blocks.
    """
    cursor = ByteCursor(payload, path, offset)
    _check_count(count, cursor, _ENTRY.size + 3)
    rows: list[bytes] = []
    places: list[tuple[int, int]] = []
    for _ in range(count):
        places.append(_ENTRY.unpack(cursor.take(_ENTRY.size, "index entry")))
        rows.append(_decode_key(cursor))
    if cursor.left not in ((0, _MIDDLE_KEY_BYTES) if multi_level else (0,)):
        raise cursor.damaged(f"the end of an index of {count} entries", f"{cursor.left} bytes more")
    return _index(rows, places, cursor, limit)


def decode_meta_root(payload: bytes, count: int, *, path: str, offset: int, limit: int) -> dict[str, tuple[int, int]]:
    """The meta root index: name to (offset, size). Arguments and errors as of `decode_root`."""
    cursor = ByteCursor(payload, path, offset)
    _check_count(count, cursor, _ENTRY.size + 1)
    names: list[bytes] = []
    places: list[tuple[int, int]] = []
    for _ in range(count):
        places.append(_ENTRY.unpack(cursor.take(_ENTRY.size, "index entry")))
        names.append(cursor.take(cursor.hadoop_vint("name length"), "name of a meta block"))
    if cursor.left:
        raise cursor.damaged(f"the end of a meta index of {count} entries", f"{cursor.left} bytes more")
    for name, (at, size) in zip(names, places, strict=True):
        if not 0 <= at <= limit - BLOCK_HEADER_SIZE or not BLOCK_HEADER_SIZE <= size <= limit - at:
            raise CorruptFileError(path, offset, f"meta block {name!r} below byte {limit}", f"{size} bytes at byte {at}")
    return {name.decode("utf-8", "replace"): place for name, place in zip(names, places, strict=True)}


def decode_index_block(payload: bytes, *, path: str, offset: int, limit: int) -> BlockIndex:
    """A leaf or intermediate index block. Arguments and errors as of `decode_root`."""
    cursor = ByteCursor(payload, path, offset)
    count = int.from_bytes(cursor.take(4, "number of index entries"), "big", signed=True)
    _check_count(count, cursor, 4 + _ENTRY.size + 2)
    ends = struct.unpack(f">{count + 1}i", cursor.take(4 * (count + 1), "offsets of index entries"))
    if ends[0] != 0 or ends[-1] != cursor.left:
        raise cursor.damaged(f"entry offsets from 0 to {cursor.left}", f"{ends[0]} to {ends[-1]}")
    rows: list[bytes] = []
    places: list[tuple[int, int]] = []
    for start, end in itertools.pairwise(ends):
        size = end - start - _ENTRY.size
        if size < 2:
            raise cursor.damaged("an index entry with a key", f"an entry of {end - start} bytes")
        places.append(_ENTRY.unpack(cursor.take(_ENTRY.size, "index entry")))
        key = cursor.take(size, "key of an index entry")
        row = _row(key)
        if row is None:
            raise cursor.damaged("a key that begins with its row's length", key[:24].hex())
        rows.append(row)
    return _index(rows, places, cursor, limit)


def _encode_entries(entries: Sequence[tuple[int, int, bytes]]) -> bytes:
    return b"".join(_ENTRY.pack(offset, size) + encode_hadoop_vint(len(key)) + key for offset, size, key in entries)


def _decode_key(cursor: ByteCursor) -> bytes:
    """A root entry's length and key; the length is tried as Hadoop spells it, then as protobuf does."""
    start = cursor.position
    for read in (cursor.hadoop_vint, cursor.varint):
        cursor.position = start
        try:
            row = _row(cursor.take(read("key length"), "key of an index entry"))
        except CorruptFileError:
            continue
        if row is not None:
            return row
    cursor.position = start
    raise cursor.damaged("a key that begins with its row's length", bytes(cursor.data[start : start + 24]).hex())


def _row(key: bytes) -> bytes | None:
    """The row of a key with or without suffix; None when the lengths contradict each other."""
    size = int.from_bytes(key[:2], "big")
    if len(key) < 2 or len(key) not in (size + 2, size + 2 + _SUFFIX_BYTES):
        return None
    return key[2 : 2 + size]


def _check_count(count: int, cursor: ByteCursor, smallest: int) -> None:
    if not 0 <= count <= cursor.left // smallest:
        raise cursor.damaged(f"at most {cursor.left // smallest} index entries", count)


def _index(keys: list[bytes], places: list[tuple[int, int]], cursor: ByteCursor, limit: int) -> BlockIndex:
    both = np.array(places, dtype=np.int64).reshape(-1, 2)
    offsets, sizes = both[:, 0].copy(), both[:, 1].copy()
    ends = np.append(offsets[1:], limit)
    bad = np.flatnonzero((offsets < 0) | (sizes < BLOCK_HEADER_SIZE) | (offsets > limit) | (sizes > ends - offsets))
    if bad.size:
        at = int(bad[0])
        raise CorruptFileError(
            cursor.path,
            cursor.offset,
            f"indexed blocks one after the other below byte {limit}",
            f"entry {at} at byte {offsets[at]} with {sizes[at]} bytes",
        )
    return BlockIndex(keys, offsets, sizes)


def _above(prefix: bytes) -> bytes | None:
    """The smallest key above all that start with `prefix`; None when there is none."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else None
