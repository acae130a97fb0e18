"""Checksums of HFile blocks: one u32 for every stretch of header and data.

CRC-32 is of `formats.crc32`. CRC-32C (Castagnoli, reflected polynomial 0x82f63b78) has no C implementation among our
dependencies, so it is computed by NumPy: a checksum is linear, hence a stretch is cut into lanes that advance together one byte
a step, and the lanes are folded pairwise by an operator that appends as many zero bytes as the right one is long.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from hudimeta.formats.crc32 import crc32
from hudimeta.formats.hfile.layout import ChecksumType

__all__ = ["checksum_bytes", "checksum_length", "crc32c"]

_LANE = 128
_POLYNOMIAL = 0x82F63B78

_Words = npt.NDArray[np.uint32]


def checksum_length(size: int, stretch: int) -> int:
    """Bytes that the checksums of `size` bytes take."""
    return 4 * -(-size // stretch)


def checksum_bytes(kind: ChecksumType, data: bytes | memoryview, stretch: int) -> bytes:
    """The checksum area of a block: `data` is header and packed data, `stretch` the bytes that one checksum covers."""
    if kind is ChecksumType.NULL:
        return bytes(checksum_length(len(data), stretch))
    if kind is ChecksumType.CRC32:
        view = memoryview(data)
        return b"".join(crc32(view[at : at + stretch]).to_bytes(4, "big") for at in range(0, len(view), stretch))
    return crc32c(data, stretch).astype(">u4").tobytes()


def crc32c(data: bytes | memoryview, stretch: int) -> _Words:
    """CRC-32C of every `stretch` bytes of `data`, the last one possibly shorter."""
    content = np.frombuffer(data, dtype=np.uint8)
    if content.size == 0:
        return np.zeros(0, dtype=np.uint32)
    stretch = min(stretch, content.size)
    full, rest = divmod(content.size, stretch)
    sums = [_crc_rows(content[: full * stretch].reshape(full, stretch))]
    if rest:
        sums.append(_crc_rows(content[full * stretch :].reshape(1, rest)))
    return np.concatenate(sums)


def _crc_rows(rows: npt.NDArray[np.uint8]) -> _Words:
    count, width = rows.shape
    if width < 4:
        return np.array([_crc_of_few(row.tobytes()) for row in rows], dtype=np.uint32)
    lanes = _LANE
    while lanes < width:
        lanes *= 2
    # Zeros in front do not change a sum that starts from zero; the real start value is xored into the first four bytes.
    padded = np.zeros((count, lanes), dtype=np.uint8)
    padded[:, lanes - width :] = rows
    padded[:, lanes - width : lanes - width + 4] ^= 0xFF
    columns = np.ascontiguousarray(padded.reshape(-1, _LANE).T)
    state = np.zeros(columns.shape[1], dtype=np.uint32)
    table = _byte_table()
    for column in columns:
        state = table[(state ^ column) & 0xFF] ^ (state >> np.uint32(8))
    length = _LANE
    while state.size > count:
        state = _apply(_append_zeros(length), state[0::2]) ^ state[1::2]
        length *= 2
    sums: _Words = state ^ np.uint32(0xFFFF_FFFF)
    return sums


def _crc_of_few(data: bytes) -> int:
    table = _byte_table()
    state = 0xFFFF_FFFF
    for byte in data:
        state = int(table[(state ^ byte) & 0xFF]) ^ state >> 8
    return state ^ 0xFFFF_FFFF


@functools.cache
def _byte_table() -> _Words:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


@functools.cache
def _append_zeros(length: int) -> _Words:
    """Four tables of 256 words that carry a state over `length` zero bytes; `length` is a power of two."""
    if length > 1:
        half = _append_zeros(length // 2)
        return _apply(half, half)
    values = np.arange(256, dtype=np.uint32)[None, :] << (8 * np.arange(4, dtype=np.uint32))[:, None]
    moved: _Words = _byte_table()[values & 0xFF] ^ (values >> np.uint32(8))
    return moved


def _apply(tables: _Words, state: _Words) -> _Words:
    moved: _Words = (
        tables[0][state & 0xFF]
        ^ tables[1][(state >> np.uint32(8)) & 0xFF]
        ^ tables[2][(state >> np.uint32(16)) & 0xFF]
        ^ tables[3][state >> np.uint32(24)]
    )
    return moved
