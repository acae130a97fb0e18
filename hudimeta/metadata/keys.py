r"""Keys of metadata records, and the file group that each key lives in.

    column id, partition id   XXH64 of the UTF-8 text, seed 0xFFFFFFFFDABADABA (0xdabadaba as a *signed* 32-bit number,
                              widened), 8 bytes big-endian, standard base64: 12 characters
    file id                   MD5 of the UTF-8 file name (a log file keeps its leading dot), base64: 24 characters

    column_stats              column id + partition id + file id                  48 characters
    partition_stats           column id + partition id                            24
    bloom_filters             partition id + file id                              36
    expression index          as column_stats; its partition rows: column id + id of "__partition_stat__" + partition id
    record_index              the record key
    secondary_index_*         esc(value) + "$" + esc(record key), `\` before `\`, `$` and NUL; a null value is one bare NUL
    files                     the partition path, or "__all_partitions__"

The empty partition path (a table without partitions) counts as "." wherever it is hashed or used as a key.

A file group is chosen by Java's `String.hashCode` of the key over UTF-16 code units: |hash| mod the number of groups.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from hudimeta.errors import CorruptFileError, UnsupportedFeature
from hudimeta.formats.plain_arrays import array_of, fill_null, scalar_of, single_array
from hudimeta.metadata.datum import binary_parts, join_binary
from hudimeta.types import MOST_GROUPS

__all__ = [
    "ALL_PARTITIONS",
    "NO_PARTITION",
    "bloom_filter_keys",
    "column_id",
    "column_stats_keys",
    "file_ids",
    "from_key_partition",
    "hash_ids",
    "java_hash",
    "partition_stats_keys",
    "path_id",
    "secondary_heads",
    "secondary_keys",
    "secondary_prefixes",
    "shard",
    "shard_to_write",
    "split_secondary_keys",
    "to_key_partition",
]

ALL_PARTITIONS = "__all_partitions__"
NO_PARTITION = "."
PARTITION_STAT = "__partition_stat__"
NULL_VALUE = b"\x00"

_SEED = 0xFFFFFFFFDABADABA
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)


def to_key_partition(path: str) -> str:
    """The spelling of a partition path inside the metadata table: "." for the table without partitions."""
    return path or NO_PARTITION


def from_key_partition(key: str) -> str:
    """The partition path that a key of `files` stands for: "" for "."."""
    return "" if key == NO_PARTITION else key


def column_id(text: str) -> bytes:
    """The 12 characters that stand for a column name or partition path ("" counts as ".")."""
    digest = xxhash.xxh64(to_key_partition(text).encode(), seed=_SEED).digest()
    return base64.b64encode(digest)


def path_id(path: str) -> str:
    """The 16 hexadecimal digits by which Apache Hudi's locks name the place of a table."""
    return str(xxhash.xxh64(path.encode(), seed=_SEED).hexdigest()).upper()


def hash_ids(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Column or partition ids of many texts, each distinct text hashed once; a binary array of 12 bytes each."""
    coded = single_array(texts).dictionary_encode()
    ids = array_of([column_id(t) for t in coded.dictionary.to_pylist()], pa.binary())
    return ids.take(coded.indices)


def file_ids(names: pa.Array | pa.ChunkedArray) -> pa.Array:
    """File ids of many file names; a binary array of 24 bytes each."""
    coded = single_array(names).dictionary_encode()
    md5 = hashlib.md5
    digests = b"".join([md5(n, usedforsecurity=False).digest() for n in coded.dictionary.cast(pa.binary()).to_pylist()])
    text = _base64(np.frombuffer(digests, np.uint8).reshape(-1, 16))
    ids = _fixed(text)
    return ids.take(coded.indices)


def column_stats_keys(columns: pa.Array, partitions: pa.Array, names: pa.Array) -> pa.Array:
    """Keys of column_stats: one per (column, partition path, file name); a binary array."""
    return join_binary(hash_ids(columns), hash_ids(partitions), file_ids(names))


def partition_stats_keys(columns: pa.Array, partitions: pa.Array) -> pa.Array:
    """Keys of partition_stats: one per (column, partition path); a binary array."""
    return join_binary(hash_ids(columns), hash_ids(partitions))


def bloom_filter_keys(partitions: pa.Array, names: pa.Array) -> pa.Array:
    """Keys of bloom_filters: one per (partition path, file name); a binary array."""
    return join_binary(hash_ids(partitions), file_ids(names))


def secondary_prefixes(values: pa.Array) -> pa.Array:
    """`esc(value) + "$"`: what every key of a secondary value begins with; binary. None stands for the null value."""

    escaped = _escape(values)
    return join_binary(fill_null(escaped, scalar_of(NULL_VALUE, pa.binary())), b"$")


def secondary_keys(values: pa.Array, record_keys: pa.Array) -> pa.Array:
    """Keys of a secondary index: `values` are the Java texts of the column (None for null); a binary array."""
    return join_binary(secondary_prefixes(values), _escape(record_keys))


def split_secondary_keys(keys: pa.Array, path: str = "") -> tuple[pa.Array, pa.Array]:
    """Secondary value (None for null) and record key of each key; two string arrays. The inverse of `secondary_keys`.

    Raises:
        CorruptFileError: A key without "$", in a file at `path`.
    """
    import pyarrow.compute as pc

    keys = single_array(keys)
    plain = pc.invert(pc.or_(_contains(keys, b"\\"), _contains(keys, b"\x00")))
    if pc.all(plain).as_py() is not False and pc.all(_contains(keys, b"$")).as_py() is not False:
        parts = pc.split_pattern(keys.cast(pa.string()), "$", max_splits=1)
        return pc.list_element(parts, scalar_of(0)), pc.list_element(parts, scalar_of(1))
    pairs = [_split_secondary(key, path) for key in keys.cast(pa.binary()).to_pylist()]
    return array_of([v for v, _ in pairs], pa.string()), array_of([k for _, k in pairs], pa.string())


def secondary_heads(keys: pa.Array) -> pa.Array:
    """What keys of a secondary index begin with, up to and with the "$" that ends the value: binary."""
    import pyarrow.compute as pc

    keys = single_array(keys).cast(pa.binary())
    if not pc.any(_contains(keys, b"\\")).as_py():
        return join_binary(pc.list_element(pc.split_pattern(keys, b"$", max_splits=1), scalar_of(0)), b"$")
    return array_of([key[: _end_of_value(key) + 1] for key in keys.to_pylist()], pa.binary())


def _split_secondary(key: bytes, path: str) -> tuple[str | None, str]:
    at = _end_of_value(key)
    if at >= len(key):
        raise CorruptFileError(path, 0, "a secondary key with a separator", key[:80])
    value, rest = key[:at], key[at + 1 :]
    return None if value == NULL_VALUE else _unescape(value), _unescape(rest)


def _end_of_value(key: bytes) -> int:
    at = 0
    while at < len(key) and key[at] != 0x24:
        at += 2 if key[at] == 0x5C else 1
    return at


def _unescape(text: bytes) -> str:
    out, at = bytearray(), 0
    while at < len(text):
        at += text[at] == 0x5C
        out += text[at : at + 1]
        at += 1
    return out.decode()


def _escape(values: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    text = single_array(values).cast(pa.binary())
    for special in (b"\\", b"$", b"\x00"):
        if pc.any(_contains(text, special)).as_py():
            text = pc.replace_substring(text, special, b"\\" + special)
    return text


def _contains(values: pa.Array, needle: bytes) -> pa.Array:
    import pyarrow.compute as pc

    return pc.match_substring(values.cast(pa.binary()), needle)


def shard(keys: pa.Array | pa.ChunkedArray, groups: int) -> npt.NDArray[np.int32]:
    """The file group of each key: the ordinal of the group among the partition's file ids in text order.

    Args:
        keys: Strings, or binary holding UTF-8.
        groups: Number of file groups of the partition.
    """
    hashes = java_hash(keys).astype(np.int64)
    return (np.abs(hashes) % groups).astype(np.int32)


def shard_to_write(keys: pa.Array | pa.ChunkedArray, groups: int) -> npt.NDArray[np.int32]:
    """As `shard`, where the ordinal is the number in the file id, as it is while numbers have four digits.

    Raises:
        UnsupportedFeature: More file groups than have numbers of four digits.
    """
    if groups > MOST_GROUPS:
        hint = "Make the index anew with fewer: t.indexes.drop, then t.indexes.create."
        raise UnsupportedFeature(f"writing to an index with more than {MOST_GROUPS:,} file groups ({groups:,})", hint)
    return shard(keys, groups)


def java_hash(keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int32]:
    """Java's `String.hashCode` of each key."""
    column = single_array(keys)
    data, borders = binary_parts(column)
    first, last = int(borders[0]), int(borders[-1])
    if not (data[first:last] & 0x80).any():
        return _polynomial(data, borders).view(np.int32)
    # UTF-8 beyond ASCII: Java hashes UTF-16 units, so those keys (and only those) are spelled out as such.
    high = np.concatenate([[0], np.cumsum(data[first:last] >> 7, dtype=np.int64)])
    wide = np.flatnonzero(high[borders[1:] - first] != high[borders[:-1] - first])
    hashes = _polynomial(data, borders)
    units = [t.decode().encode("utf-16-le") for t in column.take(array_of(wide)).cast(pa.binary()).to_pylist()]
    wide_borders = np.concatenate([[0], np.cumsum([len(u) // 2 for u in units])]).astype(np.int64)
    hashes[wide] = _polynomial(np.frombuffer(b"".join(units), "<u2"), wide_borders)
    return hashes.view(np.int32)


def _polynomial(units: npt.NDArray[Any], borders: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Sum of unit[i] * 31^(length-1-i) modulo 2^32 of each row, all rows advancing one unit at a time."""
    lengths = np.diff(borders)
    hashes = np.zeros(len(lengths), np.uint32)
    if not len(lengths):
        return hashes
    shortest, longest = int(lengths.min()), int(lengths.max())
    if shortest == longest and shortest:
        block = units[borders[0] : borders[-1]].reshape(-1, shortest)
        for place in range(shortest):
            hashes = hashes * np.uint32(31) + block[:, place]
        return hashes
    order = np.argsort(-lengths, kind="stable")
    starts, sorted_lengths = borders[:-1][order], lengths[order]
    work = np.zeros(len(lengths), np.uint32)
    for place in range(longest):
        active = len(work) if place < shortest else int(np.searchsorted(-sorted_lengths, -place, "left"))
        work[:active] = work[:active] * np.uint32(31) + units[starts[:active] + place]
    hashes[order] = work
    return hashes


def _base64(digests: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Standard base64 with padding of equally long rows."""
    rows, size = digests.shape
    missing = -size % 3
    padded = np.zeros((rows, size + missing), np.uint8)
    padded[:, :size] = digests
    three = padded.reshape(rows, (size + missing) // 3, 3).astype(np.uint32)
    word = (three[:, :, 0] << 16) | (three[:, :, 1] << 8) | three[:, :, 2]
    sextets = np.stack([word >> 18, word >> 12, word >> 6, word], axis=2) & 63
    text: npt.NDArray[np.uint8] = _BASE64[sextets].reshape(rows, (size + missing) // 3 * 4)
    if missing:
        text[:, -missing:] = ord("=")
    return text


def _fixed(matrix: npt.NDArray[np.uint8]) -> pa.Array:
    rows, width = matrix.shape
    borders = (np.arange(rows + 1) * width).astype(np.int32)
    data = np.ascontiguousarray(matrix)
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(borders), pa.py_buffer(data)])
