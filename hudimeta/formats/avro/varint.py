"""Avro's zigzag varints, whole columns at a time.

A long is zigzagged (0, -1, 1, -2 … become 0, 1, 2, 3 …) and written as groups of seven bits, lowest first; the top bit of a
byte says that another follows. Up to eight bytes are handled as one 64-bit word: the lowest clear top bit marks the end, and
the groups are pushed together by three shifts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["MAX_BYTES", "Bytes", "Longs", "decode_longs", "encode_longs", "words_of"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

MAX_BYTES = 10
"""Bytes of the longest varint; the buffer that is decoded must go on for 16 bytes after the last position."""

_WORD_BYTES = 8
_TOPS = np.uint64(0x8080808080808080)
_LOWS = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONE = np.uint64(1)
_SEVEN = np.uint64(7)
_SIZES_BY_BIT = np.uint64(0x0102030405060708)
_IN_WORD = 1 << 56
_SHORT = (np.arange(128) >> 1) ^ -(np.arange(128) & 1)


def words_of(data: Bytes) -> _Words:
    """The 64-bit little-endian word that begins at each byte: a view, one entry for each byte but the last seven."""
    count = max(len(data) - _WORD_BYTES + 1, 0)
    view: _Words = np.ndarray((count,), dtype="<u8", buffer=data, strides=(1,))
    return view


def decode_longs(data: Bytes, words: _Words, at: Longs) -> tuple[Longs, Longs, npt.NDArray[np.bool_] | None]:
    """The longs at many positions.

    Args:
        data: The bytes, with 16 to spare after the last position.
        words: `words_of(data)`.
        at: Positions.

    Returns:
        Values, sizes in bytes, and which of them are no varint (None when all are).
    """
    first = data[at]
    if not (first & 0x80).any():
        return _SHORT[first], np.ones(len(at), np.int64), None
    word = words[at]
    stops = ~word & _TOPS
    stop = stops & (~stops + _ONE)
    sizes = ((stop >> _SEVEN) * _SIZES_BY_BIT) >> np.uint64(56)
    value = _gather_groups(word & (stop | (stop - _ONE)) & _LOWS)
    faults = None
    if not stops.all():
        faults = _finish_long_ones(words, at, stops == 0, value, sizes)
    unzigzagged = (value >> _ONE).view(np.int64) ^ -(value & _ONE).view(np.int64)
    return unzigzagged, sizes.view(np.int64), faults


def _gather_groups(x: _Words) -> _Words:
    """Push eight groups of seven bits together into 56 bits."""
    x = (x & np.uint64(0x007F007F007F007F)) | ((x & np.uint64(0x7F007F007F007F00)) >> _ONE)
    x = (x & np.uint64(0x00003FFF00003FFF)) | ((x & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
    x = (x & np.uint64(0x000000000FFFFFFF)) | ((x & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4))
    return x


def _finish_long_ones(
    words: _Words, at: Longs, mask: npt.NDArray[np.bool_], value: _Words, sizes: _Words
) -> npt.NDArray[np.bool_] | None:
    """Add bytes nine and ten where a varint goes on after its word. Returns which are faulty."""
    rows = np.flatnonzero(mask)
    rest = words[at[rows] + _WORD_BYTES]
    ninth, tenth = rest & np.uint64(0xFF), (rest >> np.uint64(8)) & np.uint64(0xFF)
    ends = ninth < 0x80
    value[rows] |= ((ninth & np.uint64(0x7F)) << np.uint64(56)) | np.where(ends, np.uint64(0), tenth << np.uint64(63))
    sizes[rows] = np.where(ends, np.uint64(9), np.uint64(10))
    bad = ~ends & (tenth > 1)
    if not bad.any():
        return None
    faults = np.zeros(len(at), np.bool_)
    faults[rows[bad]] = True
    return faults


def encode_longs(values: npt.NDArray[Any]) -> tuple[Bytes, Longs]:
    """Varints of many longs.

    Returns:
        A matrix with one row for each value, its bytes left-aligned, and the sizes in bytes.
    """
    wide = values.astype(np.int64, copy=False)
    zigzag = ((wide << 1) ^ (wide >> 63)).view(np.uint64)
    top = int(zigzag.max(initial=0))
    if top < 0x80:
        return zigzag.astype(np.uint8)[:, None], np.ones(len(wide), np.int64)
    sizes = np.ones(len(wide), np.int64)
    for bits in range(7, min(top.bit_length(), 64), 7):
        sizes += zigzag >= np.uint64(1 << bits)
    if top >= _IN_WORD:
        return _spread_any(zigzag, sizes), sizes
    word = _spread_groups(zigzag) | (_TOPS & ((_ONE << ((sizes - 1) * 8).view(np.uint64)) - _ONE))
    return word.view(np.uint8).reshape(-1, _WORD_BYTES)[:, : int(sizes.max())], sizes


def _spread_groups(x: _Words) -> _Words:
    """Pull 56 bits apart into eight groups of seven."""
    x = (x & np.uint64(0x000000000FFFFFFF)) | ((x << np.uint64(4)) & np.uint64(0x0FFFFFFF00000000))
    x = (x & np.uint64(0x00003FFF00003FFF)) | ((x << np.uint64(2)) & np.uint64(0x3FFF00003FFF0000))
    x = (x & np.uint64(0x007F007F007F007F)) | ((x << _ONE) & np.uint64(0x7F007F007F007F00))
    return x


def _spread_any(zigzag: _Words, sizes: Longs) -> Bytes:
    """The same byte by byte, for values of more than 56 bits."""
    out = np.empty((len(zigzag), MAX_BYTES), np.uint8)
    for k in range(MAX_BYTES):
        group = (zigzag >> np.uint64(7 * k)).astype(np.uint8) & 0x7F
        out[:, k] = group | np.where(sizes > k + 1, 0x80, 0).astype(np.uint8)
    return out
