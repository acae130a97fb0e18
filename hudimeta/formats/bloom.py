"""Hudi's bloom filters, bit for bit: simple, and dynamic (several rows, one filled after the other, or each of another file).

All integers are big-endian::

    SIMPLE      head | ceil(bits/8) bytes
    DYNAMIC_V0  head | keys per row i32 | keys in the last row i32 | rows i32 | rows x SIMPLE
    head        version i32 -1 | hashes i32 | hash type u8 1 | bits i32

Each row states its own size, and a dynamic filter that of its first one. Rows that a writer fills are of one size; those of
filters that were put side by side need not be. A key may be in a filter that has it in any row.

Bit i is ``byte[i >> 3] >> (i & 7) & 1``. Parquet footers, HFile meta blocks and the metadata table hold the base64 text of
it. A key's bits come from a chain: ``h = murmur2(key, seed=h)`` starting with seed 0, bit ``|h rem bits|`` with h as a signed
32-bit integer. The murmur2 is Hadoop's, whose 1 to 3 tail bytes are sign-extended and taken in reverse significance. Hash
type 0 is the Jenkins hash, which Hudi never writes.
"""

from __future__ import annotations

import binascii
import io
import itertools
import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pybase64 import b64decode, b64encode_as_string

from hudimeta.errors import CorruptFileError, UnsupportedFeature
from hudimeta.formats.hash_chain import MOST_KEYS_AT_ONCE, Words, arrow_keys, chains, hash_chain
from hudimeta.formats.plain_arrays import array_of

__all__ = ["LEAST_P", "BloomFilter", "BloomRow", "TypeCode", "hash_chain", "size_of_filter"]

TypeCode = Literal["SIMPLE", "DYNAMIC_V0"]

DEFAULT_FALSE_POSITIVES = 1e-9
"""Hudi's `hoodie.index.bloom.fpp`."""
DEFAULT_MAX_KEYS = 100_000
"""Hudi's `hoodie.bloom.index.filter.dynamic.max.entries`: rows are not added beyond it."""

_VERSION = -1
_MURMUR, _JENKINS = 1, 0
_MAX_HASHES = 1024
LEAST_P = 1e-300
"""The least share of false positives for which a filter needs no more hashes than that."""
_ROW_HEAD = struct.Struct(">iiBi")
_DYNAMIC_HEAD = struct.Struct(">iii")
_HEAD_TEXT = -(-_ROW_HEAD.size // 3) * 4
"""Characters of base64 that hold a head."""
_FIRST_HASHES = 4
_SHARE_OF_HASHES = 0.7
"""Of the number that lets the fewest keys pass, in a row that is too small: for a third of the work less, a third more do."""
_SAMPLE = 512


@dataclass(frozen=True, eq=False)
class BloomRow:
    """The bits of some keys.

    Attributes:
        bit_count: How many bits.
        hash_count: Bits set per key.
        content: uint8, shape (ceil(bit_count / 8),).
    """

    bit_count: int
    hash_count: int
    content: npt.NDArray[np.uint8]

    def might_contain_hashes(self, chain: Words, hashes: int) -> npt.NDArray[np.bool_]:
        """As that of a filter, by no more than so many hashes."""
        alive = np.arange(len(chain))
        for column in range(min(self.hash_count, hashes)):
            position = chain[alive, column].astype(np.int64) % self.bit_count
            alive = alive[(self.content[position >> 3] >> (position & 7).astype(np.uint8) & 1).astype(np.bool_)]
            if not alive.size:
                break
        result = np.zeros(len(chain), dtype=np.bool_)
        result[alive] = True
        return result

    def encode(self) -> bytes:
        """The bytes that Java writes for this row, which are a whole simple filter."""
        return _ROW_HEAD.pack(_VERSION, self.hash_count, _MURMUR, self.bit_count) + self.content.tobytes()


@dataclass(frozen=True, eq=False)
class BloomFilter:
    """A filter that answers "surely not" or "maybe".

    Attributes:
        type_code: `SIMPLE` or `DYNAMIC_V0`, as `hoodie_bloom_filter_type_code` and `bloomFilterTypeCode` name it.
        rows: One row when simple, and at least one.
        keys_per_row: Keys that a row takes before the next begins; 0 when simple.
        keys_in_last_row: 0 when simple. Beyond `keys_per_row` once the filter has stopped growing.
    """

    type_code: TypeCode
    rows: tuple[BloomRow, ...]
    keys_per_row: int = 0
    keys_in_last_row: int = 0

    @property
    def hash_count(self) -> int:
        """Hashes of a key that any of its rows asks for."""
        return max(row.hash_count for row in self.rows)

    @classmethod
    def create_simple(cls, keys: Any, p: float = DEFAULT_FALSE_POSITIVES, capacity: int | None = None) -> BloomFilter:
        """A simple filter over `keys`.

        Args:
            keys: Byte strings or texts, or an Arrow array of them; nulls are left out.
            p: Share of foreign keys that may pass when `capacity` keys are in.
            capacity: Keys to be sized for; None for the number given, at least 1. See `size_of_filter` for more keys.
        """
        keys = arrow_keys(keys)
        bits, hashes = size_of_filter(max(len(keys), 1) if capacity is None else capacity, p, len(keys))
        return cls("SIMPLE", _fill(keys, np.zeros(len(keys), dtype=np.int64), 1, bits, hashes))

    @classmethod
    def create_dynamic(
        cls,
        keys: Any,
        p: float = DEFAULT_FALSE_POSITIVES,
        keys_per_row: int | None = None,
        max_keys: int = DEFAULT_MAX_KEYS,
    ) -> BloomFilter:
        """A dynamic filter over `keys`, with the rows that Java would have after adding them in this order.

        Args:
            keys: Byte strings or texts, or an Arrow array of them; nulls are left out.
            p: Share of foreign keys that may pass a full row.
            keys_per_row: None for one row sized to the number of keys; Hudi's default is 60000.
            max_keys: Rows are added while they hold fewer keys than this together; afterwards they are filled in turn.
        """
        keys = arrow_keys(keys)
        count = len(keys)
        per_row = max(count, 1) if keys_per_row is None else keys_per_row
        bits, hashes = size_of_filter(per_row, p)
        most_rows = 1 if keys_per_row is None else max(-(-max_keys // per_row), 1)
        number = np.arange(count, dtype=np.int64)
        row_of_key = number // per_row
        over = number - most_rows * per_row
        # Java puts the first key beyond the limit into row 0, and then goes round from row 0 again.
        row_of_key = np.where(over < 0, row_of_key, np.maximum(over - 1, 0) % most_rows)
        row_count = min(max(-(-count // per_row), 1), most_rows)
        rows = _fill(keys, row_of_key, row_count, bits, hashes)
        return cls("DYNAMIC_V0", rows, per_row, count - (row_count - 1) * per_row)

    @classmethod
    def create_sized(cls, keys: Any, type_code: TypeCode, p: float, capacity: int) -> BloomFilter:
        """A filter of one row over `keys`, with the bits of a simple one whatever its type.

        Args:
            keys: Byte strings or texts, or an Arrow array of them; nulls are left out.
            type_code: Its type.
            p: Share of foreign keys that may pass when `capacity` keys are in.
            capacity: Keys to be sized for.
        """
        keys = arrow_keys(keys)
        simple = cls.create_simple(keys, p, capacity)
        return simple if type_code == "SIMPLE" else simple.as_dynamic(capacity, len(keys))

    @classmethod
    def united(cls, filters: Sequence[BloomFilter], keys: Any) -> BloomFilter:
        """A simple filter over the keys of filters of one row, all of one size, and over other keys; its size is theirs.

        Args:
            filters: At least one.
            keys: Byte strings or texts, or an Arrow array of them; nulls are left out.
        """
        keys = arrow_keys(keys)
        bits, hashes = filters[0].rows[0].bit_count, filters[0].rows[0].hash_count
        (more,) = _fill(keys, np.zeros(len(keys), dtype=np.int64), 1, bits, hashes)
        content = np.bitwise_or.reduce([*(one.rows[0].content for one in filters), more.content])
        return cls("SIMPLE", (BloomRow(bits, hashes, content),))

    @classmethod
    def side_by_side(cls, filters: Sequence[BloomFilter]) -> BloomFilter:
        """A dynamic filter with the rows of others, at least one, whatever their sizes: it lets pass what any of them does."""
        rows = tuple(itertools.chain.from_iterable(one.rows for one in filters))
        return cls("DYNAMIC_V0", rows, max(one.keys_per_row for one in filters), filters[-1].keys_in_last_row)

    def as_dynamic(self, keys_per_row: int, count: int) -> BloomFilter:
        """This filter of one row, which holds `count` keys, as a dynamic one that takes `keys_per_row`."""
        return BloomFilter("DYNAMIC_V0", self.rows, keys_per_row, count)

    def might_contain(self, key: bytes | str) -> bool:
        """False when `key` is surely not in the filter."""
        return bool(self.might_contain_many([key])[0])

    def might_contain_many(self, keys: Any) -> npt.NDArray[np.bool_]:
        """For each key False when it is surely not in the filter; a null may be in every filter, as in Java.

        Args:
            keys: Byte strings or texts, or an Arrow array of them.
        """
        array = arrow_keys(keys, drop_nulls=False)
        result = np.ones(len(array), dtype=np.bool_)
        # Few hashes exclude nearly every foreign key, so the long chains are made for those that are left.
        for hashes in sorted({min(_FIRST_HASHES, self.hash_count), self.hash_count}):
            left = np.flatnonzero(result)
            some = array if len(left) == len(array) else array.cast(pa.large_binary()).take(array_of(left))
            for places, chain in chains(some, hashes):
                result[left[places]] = self.might_contain_hashes(chain, hashes)
        return result

    def might_contain_any(self, keys: Any) -> bool:
        """False when none of some keys is in the filter: `might_contain_many(keys).any()`, which ends with the first find."""
        array = arrow_keys(keys, drop_nulls=False)
        some = array.slice(0, _SAMPLE)
        return bool(self.might_contain_many(some).any() or self.might_contain_many(array.slice(_SAMPLE)).any())

    def might_contain_hashes(self, chain: Words, hashes: int | None = None) -> npt.NDArray[np.bool_]:
        """As `might_contain_many`, for keys already hashed by `hash_chain` with at least `hash_count` hashes.

        The chain does not depend on a filter's size, so one key is hashed once for many files. Fewer `hashes` than the filter
        has exclude fewer keys.
        """
        result = np.zeros(len(chain), dtype=np.bool_)
        for row in self.rows:
            left = np.flatnonzero(~result)
            result[left] = row.might_contain_hashes(chain[left], chain.shape[1] if hashes is None else hashes)
        return result

    def encode(self) -> bytes:
        """The bytes that Java writes for this filter."""
        rows = [row.encode() for row in self.rows]
        if self.type_code == "SIMPLE":
            return rows[0]
        counts = _DYNAMIC_HEAD.pack(self.keys_per_row, self.keys_in_last_row, len(rows))
        return b"".join([rows[0][: _ROW_HEAD.size], counts, *rows])

    @classmethod
    def decode(cls, data: bytes | memoryview, type_code: str | None = None, path: str = "") -> BloomFilter:
        """The filter in `data`.

        Args:
            data: What `encode` returns.
            type_code: `SIMPLE` or `DYNAMIC_V0` as stored beside the filter. It is not believed: Apache Hudi labels the filters
                that it collects from footers with the type that it would write itself. The bytes tell the type.
            path: For errors.

        Raises:
            CorruptFileError: The bytes are no such filter.
            UnsupportedFeature: Another type code, or the Jenkins hash.
        """
        data = memoryview(data)
        bits, _ = _decode_head(data, 0, path)
        row_size = _ROW_HEAD.size + (bits + 7) // 8
        if type_code not in (None, "SIMPLE", "DYNAMIC_V0"):
            raise UnsupportedFeature(f"bloom filter type {type_code!r}", "SIMPLE and DYNAMIC_V0 are read.")
        if len(data) == row_size and not _begins_dynamic(data):
            return cls("SIMPLE", _decode_rows(data, 0, 1, path))
        start = _ROW_HEAD.size + _DYNAMIC_HEAD.size
        if len(data) < start:
            raise CorruptFileError(path, len(data), f"a dynamic bloom filter of {start} bytes or more", f"{len(data)}")
        per_row, in_last, row_count = _DYNAMIC_HEAD.unpack_from(data, _ROW_HEAD.size)
        if per_row < 0 or in_last < 0 or row_count < 1:
            raise CorruptFileError(path, _ROW_HEAD.size, "counts of a bloom filter", (per_row, in_last, row_count))
        return cls("DYNAMIC_V0", _decode_rows(data, start, row_count, path), per_row, in_last)

    def to_base64(self) -> str:
        """The text that footers, meta blocks and the metadata table hold."""
        return b64encode_as_string(self.encode())

    @classmethod
    def from_base64(cls, text: str | bytes, type_code: str | None = None, path: str = "") -> BloomFilter:
        """The filter in a base64 text; arguments and errors as of `decode`."""
        try:
            data = b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise _not_base64(error, path) from None
        return cls.decode(data, type_code, path)

    @staticmethod
    def size_in(text: str) -> tuple[int, int] | None:
        """Bits and hashes of the rows of a filter, by the beginning of its base64 text; None for what is none."""
        try:
            version, hashes, kind, bits = _ROW_HEAD.unpack_from(b64decode(text[:_HEAD_TEXT]))
        except (binascii.Error, ValueError, struct.error):
            return None
        return (bits, hashes) if (version, kind) == (_VERSION, _MURMUR) else None

    @classmethod
    def from_base64_pieces(cls, pieces: Iterable[bytes], type_code: str | None = None, path: str = "") -> BloomFilter:
        """The filter in a base64 text that comes in pieces, so that the text is never there as a whole."""
        data, rest = io.BytesIO(), b""
        try:
            for piece in pieces:
                text = rest + piece
                whole = len(text) // 4 * 4
                data.write(b64decode(text[:whole], validate=True))
                rest = text[whole:]
            data.write(b64decode(rest, validate=True))
        except (binascii.Error, ValueError) as error:
            raise _not_base64(error, path) from None
        return cls.decode(data.getvalue(), type_code, path)


def _not_base64(error: ValueError, path: str) -> CorruptFileError:
    return CorruptFileError(path, 0, "base64 text of a bloom filter", str(error))


def size_of_filter(keys: int, p: float, count: int = 0) -> tuple[int, int]:
    """Bits and hashes of a row for `keys` keys and a share `p` of false positives, as Hudi reckons them.

    Args:
        keys: That it is sized for.
        p: Share of foreign keys that may pass.
        count: Keys that it will hold. Of more than `keys` each sets fewer bits, so that more stay unset: of 214,000 keys in a
            row for 100,000, ten hashes each let one foreign key in 8,000 pass, and Hudi's thirty one in 2,000.
    """
    ln2 = math.log(2)
    bits = math.ceil(keys * (-math.log(p) / (ln2 * ln2)))
    hashes = math.ceil(ln2 * bits / keys)
    return bits, min(_MAX_HASHES, hashes if count <= keys else math.ceil(_SHARE_OF_HASHES * ln2 * bits / count))


def _fill(keys: Any, row_of_key: npt.NDArray[np.int64], row_count: int, bits: int, hashes: int) -> tuple[BloomRow, ...]:
    width = (bits + 7) // 8
    flags = np.zeros(row_count * width * 8, dtype=np.bool_)
    size = np.uint32(bits)
    # Hash by hash and in the same room: what NumPy takes anew for all hashes of a piece is cleared by the system each time.
    # Positions are of the type by which it indexes, since it would convert others value by value.
    room = np.empty(MOST_KEYS_AT_ONCE, dtype=np.intp)
    for places, chain in chains(keys, hashes):
        position = room[: len(places)]
        begin = row_of_key[places] * (width * 8) if row_count > 1 else None
        for number in range(hashes):
            hashed = chain[:, number]
            # NumPy divides by one number much faster than it takes a remainder.
            np.subtract(hashed, hashed // size * size, out=position)
            if begin is not None:
                position += begin
            flags[position] = True
    packed = np.packbits(flags, bitorder="little").reshape(row_count, width)
    return tuple(BloomRow(bits, hashes, content) for content in packed)


def _decode_head(data: memoryview, at: int, path: str) -> tuple[int, int]:
    """Bits and hashes of the row head at `at`."""
    if len(data) < at + _ROW_HEAD.size:
        raise CorruptFileError(path, len(data), "the head of a bloom filter", f"{len(data) - at} bytes")
    version, hashes, kind, bits = _ROW_HEAD.unpack_from(data, at)
    if version > 0 or (version == _VERSION and kind == _JENKINS):
        raise UnsupportedFeature("bloom filter hash 'jenkins'", "Hudi writes murmur filters; rewrite the file.")
    if version != _VERSION or kind != _MURMUR:
        raise CorruptFileError(path, at, f"bloom filter version {_VERSION}, hash type 1", f"{version} and {kind}")
    if not 1 <= hashes <= _MAX_HASHES or bits < 1:
        raise CorruptFileError(path, at + 4, f"1 to {_MAX_HASHES} hashes and some bits", f"{hashes} and {bits}")
    return bits, hashes


def _begins_dynamic(data: memoryview) -> bool:
    """True when the head comes again after the counts, as the first row's."""
    first = _ROW_HEAD.size + _DYNAMIC_HEAD.size
    return data[first : first + _ROW_HEAD.size] == data[: _ROW_HEAD.size]


def _decode_rows(data: memoryview, start: int, row_count: int, path: str) -> tuple[BloomRow, ...]:
    """Rows that take the bytes from `start` to the end."""
    rows: list[BloomRow] = []
    at = start
    while len(rows) < row_count:
        bits, hashes = _decode_head(data, at, path)
        begin, at = at + _ROW_HEAD.size, at + _ROW_HEAD.size + (bits + 7) // 8
        if len(data) < at:
            raise CorruptFileError(path, len(data), f"{bits} bits of a bloom filter", f"{len(data) - begin} bytes")
        rows.append(BloomRow(bits, hashes, np.frombuffer(data[begin:at], dtype=np.uint8)))
    if len(data) != at:
        raise CorruptFileError(path, at, "the end of a bloom filter", f"{len(data) - at} more bytes")
    return tuple(rows)
