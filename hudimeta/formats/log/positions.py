"""Row positions in the header entry RECORD_POSITIONS: base64 of a 64-bit Roaring bitmap in the portable form.

Standard base64 with padding; inside, all integers are little-endian and unsigned::

    8  number of buckets, ascending; per bucket
       4  upper 32 bits of the bucket's values, then a 32-bit Roaring bitmap of the lower ones:
       4  cookie: 12346, and 4 bytes with the number of containers;
          or 12347 | (containers - 1) << 16, and one bit per container, ceil(n / 8) bytes: it is run-length encoded
       4  per container: 2 upper half of its values, 2 cardinality - 1
       4  per container: offset from the cookie; absent with cookie 12347 and fewer than 4 containers
       .  containers: runs (2 count, then per run 2 start and 2 length - 1); or, when cardinality is at most 4096, 2 per
          value; or 8192 bytes of bits

Positions are row numbers in the base file whose instant the entry BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS names, from 0.
Source: the Roaring bitmap format specification, RFC-46 and the log headers of Hudi 1.0.
"""

from __future__ import annotations

import binascii
import struct
from typing import Final

import numpy as np
import numpy.typing as npt
from pybase64 import b64decode, b64encode_as_string

from hudimeta.errors import ConfigError, CorruptFileError

__all__ = ["MAX_POSITIONS", "decode_positions", "encode_positions"]

MAX_POSITIONS: Final = 2**22
"""More rows than base files have; few bytes of runs can claim far more."""

_COOKIE: Final = 12346
_COOKIE_WITH_RUNS: Final = 12347
_NO_OFFSETS_BELOW: Final = 4
_ARRAY_LIMIT: Final = 4096
_BITMAP_BYTES: Final = 8192
_MAX_CONTAINERS: Final = 65536

Positions = npt.NDArray[np.int64]


def decode_positions(text: str, limit: int = MAX_POSITIONS, path: str = "") -> Positions:
    """Row numbers that a header entry names.

    Args:
        text: The entry's value.
        limit: Refuse more positions than this, before they are allocated.
        path: The log file, for messages.

    Returns:
        Ascending int64 positions without duplicates.

    Raises:
        CorruptFileError: The text is no such bitmap; offsets count from the bitmap's first byte.
    """
    try:
        data = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise CorruptFileError(path, 0, "base64 text in RECORD_POSITIONS", repr(text[:40])) from None
    source = _Source(data, path)
    buckets = source.integer(8)
    parts: list[Positions] = []
    previous, total = -1, 0
    for _ in range(buckets):
        upper = source.integer(4)
        if not previous < upper < 2**31:
            raise source.fault("ascending buckets below 2^31", upper)
        previous = upper
        low = _decode_bitmap(source, limit - total)
        total += len(low)
        parts.append(low + (np.int64(upper) << 32))
    if source.position != len(data):
        raise source.fault("the bitmap's end", f"{len(data) - source.position} more bytes")
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def encode_positions(positions: npt.ArrayLike) -> str:
    """The header entry for row numbers; the inverse of `decode_positions`.

    Args:
        positions: Integers from 0 to 2^63 - 1, in any order; duplicates count once.

    Raises:
        ConfigError: A position below 0.
    """
    values = np.unique(np.asarray(positions, dtype=np.int64))
    if len(values) and values[0] < 0:
        raise ConfigError("record positions", int(values[0]), "row numbers from 0")
    uppers, starts = np.unique(values >> 32, return_index=True)
    out = bytearray(struct.pack("<Q", len(uppers)))
    for upper, low in zip(uppers, np.split(values & 0xFFFFFFFF, starts[1:]), strict=False):
        out += struct.pack("<I", upper)
        out += _encode_bitmap(low)
    return b64encode_as_string(out)


class _Source:
    """Bytes that are consumed from the front; every read past the end is a fault."""

    def __init__(self, data: bytes, path: str) -> None:
        self.data, self.path, self.position = data, path, 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.position:
            raise self.fault(f"{count} bytes", f"{len(self.data) - self.position}")
        self.position += count
        return self.data[self.position - count : self.position]

    def integer(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def shorts(self, count: int) -> Positions:
        return np.frombuffer(self.take(2 * count), "<u2").astype(np.int64)

    def fault(self, expected: object, actual: object) -> CorruptFileError:
        return CorruptFileError(self.path, self.position, f"{expected} in RECORD_POSITIONS", actual)


def _decode_bitmap(source: _Source, limit: int) -> Positions:
    """One 32-bit bitmap as ascending int64 values."""
    start = source.position
    cookie = source.integer(4)
    runs = np.zeros(0, bool)
    if cookie == _COOKIE:
        count = source.integer(4)
    elif cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = np.frombuffer(source.take((count + 7) // 8), np.uint8)
        runs = np.unpackbits(flags, bitorder="little")[:count].astype(bool)
    else:
        raise source.fault(f"a bitmap's cookie {_COOKIE} or {_COOKIE_WITH_RUNS}", cookie)
    if count > _MAX_CONTAINERS:
        raise source.fault(f"at most {_MAX_CONTAINERS} containers", count)
    described = source.shorts(2 * count)
    uppers, cardinalities = described[0::2], described[1::2] + 1
    if np.any(np.diff(uppers) <= 0):
        raise source.fault("ascending containers", "others")
    if int(cardinalities.sum()) > limit:
        raise source.fault(f"at most {limit} positions", int(cardinalities.sum()))
    offsets = None
    if cookie == _COOKIE or count >= _NO_OFFSETS_BELOW:
        offsets = np.frombuffer(source.take(4 * count), "<u4")
    parts: list[Positions] = []
    for index in range(count):
        if offsets is not None and int(offsets[index]) != source.position - start:
            raise source.fault(f"container {index} at {source.position - start}", int(offsets[index]))
        is_run = cookie != _COOKIE and bool(runs[index])
        low = _decode_container(source, int(cardinalities[index]), is_run)
        parts.append(low + (uppers[index] << 16))
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _decode_container(source: _Source, cardinality: int, is_run: bool) -> Positions:
    values: Positions
    if is_run:
        pairs = source.shorts(2 * source.integer(2))
        starts, lengths = pairs[0::2], pairs[1::2] + 1
        ends = np.cumsum(lengths)
        if not len(ends) or int(ends[-1]) != cardinality:
            raise source.fault(f"runs of {cardinality} values", int(ends[-1]) if len(ends) else 0)
        values = np.arange(cardinality, dtype=np.int64) + np.repeat(starts - (ends - lengths), lengths)
    elif cardinality <= _ARRAY_LIMIT:
        values = source.shorts(cardinality)
    else:
        bits = np.unpackbits(np.frombuffer(source.take(_BITMAP_BYTES), np.uint8), bitorder="little")
        values = np.flatnonzero(bits).astype(np.int64)
    if len(values) != cardinality or values[-1] >= 2**16 or np.any(np.diff(values) <= 0):
        raise source.fault(f"{cardinality} ascending values", "others")
    return values


def _encode_bitmap(values: Positions) -> bytes:
    """A 32-bit bitmap whose containers take the smallest of their three forms, as Hudi writes them."""
    uppers, starts = np.unique(values >> 16, return_index=True)
    encoded = [_encode_container(low) for low in np.split(values & 0xFFFF, starts[1:])]
    containers = [container for container, _ in encoded]
    runs = np.array([is_run for _, is_run in encoded], bool)
    cardinalities = np.diff(np.append(starts, len(values)))
    described = np.column_stack((uppers, cardinalities - 1)).astype("<u2").tobytes()
    if runs.any():
        cookie = _COOKIE_WITH_RUNS | (len(containers) - 1) << 16
        head = struct.pack("<I", cookie) + np.packbits(runs, bitorder="little").tobytes()
    else:
        head = struct.pack("<II", _COOKIE, len(containers))
    head += described
    if not runs.any() or len(containers) >= _NO_OFFSETS_BELOW:
        sizes = np.array([len(container) for container in containers], np.int64)
        offsets = len(head) + 4 * len(containers) + np.cumsum(sizes) - sizes
        head += offsets.astype("<u4").tobytes()
    return head + b"".join(containers)


def _encode_container(low: Positions) -> tuple[bytes, bool]:
    """One container, and whether it holds runs."""
    first = np.flatnonzero(np.diff(low, prepend=-2) != 1)
    if 2 + 4 * len(first) < min(2 * len(low), _BITMAP_BYTES):
        lengths = np.diff(np.append(first, len(low)))
        pairs = np.column_stack((low[first], lengths - 1)).astype("<u2")
        return struct.pack("<H", len(first)) + pairs.tobytes(), True
    if len(low) <= _ARRAY_LIMIT:
        return low.astype("<u2").tobytes(), False
    bits = np.zeros(2**16, np.uint8)
    bits[low] = 1
    return np.packbits(bits, bitorder="little").tobytes(), False
