"""Cells of data blocks, found and copied out without a Python object per cell.

A data block is a row of cells with nothing between them::

    key length i32 = row + 12 | value length i32 | row length i16 | row | 00 | timestamp i64 | 04 | value | mvcc 00

`find_cells` returns where rows and values stand (`RawCells`); `RawCells.to_key_values` copies them into Arrow arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.errors import CorruptFileError
from hudimeta.formats.plain_arrays import array_of, integers

__all__ = ["KeyValues", "RawCells", "find_cells"]

_Places = npt.NDArray[np.int64]

_HEAD = 10
_SUFFIX = 10
_FRAME = 8 + 1  # two lengths before key and value, one mvcc byte after
_INT32_BYTES = (1 << 31) - 1

_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_MANY_BLOCKS = 16
"""From so many blocks on it pays to walk them side by side."""
_MOST_STEPS = 4096


@dataclass(frozen=True)
class KeyValues:
    """Keys and values in file order.

    Attributes:
        keys: Arrow binary, or large_binary beyond 2 GiB.
        values: Of the same type and length.
    """

    keys: Any
    values: Any

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, indices: Any) -> KeyValues:
        """The pairs at `indices`, an Arrow or NumPy array of integers."""
        chosen = array_of(indices)
        return KeyValues(self.keys.take(chosen), self.values.take(chosen))

    @classmethod
    def empty(cls) -> KeyValues:
        """No pair at all."""
        return cls(array_of([], pa.binary()), array_of([], pa.binary()))

    @classmethod
    def concat(cls, parts: Sequence[KeyValues]) -> KeyValues:
        """The pairs of all `parts`, in order."""
        if not parts:
            return cls.empty()
        if len(parts) == 1:
            return parts[0]
        size = max(sum(p.keys.nbytes for p in parts), sum(p.values.nbytes for p in parts))
        kind = pa.large_binary() if size > _INT32_BYTES else pa.binary()
        return cls(pa.concat_arrays([p.keys.cast(kind) for p in parts]), pa.concat_arrays([p.values.cast(kind) for p in parts]))


@dataclass(frozen=True)
class RawCells:
    """Where the keys and values of cells stand in unpacked bytes; for decoders that read columns of values by NumPy.

    Attributes:
        buffer: uint8, the unpacked data blocks, one after the other.
        key_start, key_len, value_start, value_len: int64, one element per cell: byte positions in `buffer` and lengths.
    """

    buffer: npt.NDArray[np.uint8]
    key_start: _Places
    key_len: _Places
    value_start: _Places
    value_len: _Places

    def __len__(self) -> int:
        return len(self.key_start)

    @classmethod
    def empty(cls) -> RawCells:
        """No cell at all."""
        none = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(0, dtype=np.uint8), none, none, none, none)

    def take(self, indices: npt.NDArray[np.int64]) -> RawCells:
        """The cells at `indices`, over the same buffer."""
        return RawCells(
            self.buffer,
            self.key_start[indices],
            self.key_len[indices],
            self.value_start[indices],
            self.value_len[indices],
        )

    def keys(self) -> Any:
        """The keys as an Arrow array, binary or (beyond 2 GiB of buffer) large_binary."""
        return self._gather(0)

    def values(self) -> Any:
        """The values as an Arrow array, of the type of `keys`."""
        return self._gather(2)

    def to_key_values(self) -> KeyValues:
        """Keys and values as Arrow arrays, copied out of the buffer."""
        return KeyValues(self.keys(), self.values())

    def _gather(self, first: int) -> Any:
        """Every fourth piece of the buffer from piece `first` on.

        The cells' borders, taken together, are the offsets of one Arrow array over the whole buffer: key, suffix, value, what
        lies between, key … A `take` of the wanted pieces then copies at C speed, whatever their lengths.
        """
        count = len(self)
        wide = self.buffer.size > _INT32_BYTES
        kind = pa.large_binary() if wide else pa.binary()
        if count == 0:
            return array_of([], kind)
        if (np.diff(self.key_start) < 0).any():
            order = np.argsort(self.key_start, kind="stable")
            return self.take(order)._gather(first).take(array_of(np.argsort(order)))
        borders = np.empty(4 * count, dtype=np.int64 if wide else np.int32)
        borders[0::4] = self.key_start
        borders[1::4] = self.key_start + self.key_len
        borders[2::4] = self.value_start
        borders[3::4] = self.value_start + self.value_len
        pieces = pa.Array.from_buffers(
            kind, 4 * count - 1, [None, pa.py_buffer(borders), pa.py_buffer(np.ascontiguousarray(self.buffer))]
        )
        return pieces.take(integers(np.arange(first, 4 * count - 1, 4, dtype=np.int64)))


def find_cells(blocks: Sequence[bytes], offsets: Sequence[int], path: str) -> RawCells:
    """The cells of unpacked data blocks.

    Args:
        blocks: Unpacked data blocks.
        offsets: Where each block begins in the file, for errors.
        path: For errors.

    Raises:
        CorruptFileError: A length leads outside of its block, or a cell is not of the one shape that Hudi writes.
    """
    buffer = np.frombuffer(blocks[0] if len(blocks) == 1 else b"".join(blocks), dtype=np.uint8)
    bases = np.zeros(len(blocks) + 1, dtype=np.int64)
    np.cumsum([len(block) for block in blocks], out=bases[1:])
    begin = _side_by_side(buffer, bases) if len(blocks) >= _MANY_BLOCKS else None
    if begin is None:
        starts = [
            _cell_starts(block, path, offset) + base
            for block, offset, base in zip(blocks, offsets, bases.tolist(), strict=False)
        ]
        begin = np.concatenate(starts) if starts else np.zeros(0, dtype=np.int64)
    key_size, value_len, row_len = _lengths(buffer, begin)
    key_start = begin + _HEAD
    value_start = begin + 8 + key_size
    wrong = (key_size != row_len + 12) | (value_len > _INT32_BYTES)
    if not wrong.any():
        # Only now is it certain that the suffix and the mvcc byte lie within the buffer.
        suffix = key_start + row_len
        wrong = (buffer[suffix] != 0) | (buffer[suffix + (_SUFFIX - 1)] != 4) | (buffer[value_start + value_len] != 0)
    if wrong.any():
        _report(int(np.flatnonzero(wrong)[0]), begin, bases, offsets, buffer, path)
    return RawCells(buffer, key_start, row_len, value_start, value_len)


def _side_by_side(buffer: npt.NDArray[np.uint8], bases: _Places) -> _Places | None:
    """The cells of many blocks, one step through all of them at a time: a NumPy pass for the nth cell of every block.

    None where a length leads outside of its block, which `_cell_starts` reports, and where few blocks hold most of the cells.
    """
    words = _numbers_anywhere(buffer, ">u8")
    position, end = bases[:-1], bases[1:]
    found: list[_Places] = []
    while len(position):
        if len(position) < _MANY_BLOCKS and len(found) > _MOST_STEPS:
            return None
        found.append(position)
        try:
            sizes = words[position].astype(np.uint64)
        except IndexError:  # within the last bytes of the buffer, where no cell has room
            return None
        # Unsigned lengths always lead forward, so damage ends the walk early but never keeps it going. Lengths that were read
        # beyond a block's end lead beyond it: no cell is that short.
        step = ((sizes >> _HALF) + (sizes & _LOW_HALF)).view(np.int64)
        position = position + step + _FRAME
        left = position < end
        if np.count_nonzero(left) != len(left):
            if (position > end).any():
                return None
            position, end = position[left], end[left]
    return np.sort(np.concatenate(found))


def _cell_starts(block: bytes, path: str, offset: int) -> _Places:
    size = len(block)
    if size < _HEAD:
        raise CorruptFileError(path, offset, "a data block with a cell", f"{size} unpacked bytes")
    read = struct.Struct(">II").unpack_from
    key_size, value_size = read(block, 0)
    step = key_size + value_size + _FRAME
    count, rest = divmod(size, step)
    if rest == 0 and count > 1 and _all_alike(block, step, count):
        return np.arange(0, size, step, dtype=np.int64)
    found: list[int] = []
    add = found.append
    position = 0
    # Unsigned lengths always lead forward, so damage ends the loop early or late but never keeps it going.
    try:
        while position < size:
            add(position)
            key_size, value_size = read(block, position)
            position += key_size + value_size + _FRAME
    except struct.error:
        position = -1
    if position != size:
        where = f"lengths of the cell at unpacked byte {found[-1]} that lead outside"
        raise CorruptFileError(path, offset, f"cells that fill a data block of {size} unpacked bytes", where)
    return np.array(found, dtype=np.int64)


def _all_alike(block: bytes, step: int, count: int) -> bool:
    """Whether all cells have the lengths of the first one, so that the block is a plain stride."""
    if block[(count - 1) * step : (count - 1) * step + 8] != block[:8]:
        return False
    heads = np.frombuffer(block, dtype=np.uint8).reshape(count, step)[:, :8]
    return bool((heads == heads[0]).all())


def _lengths(buffer: npt.NDArray[np.uint8], begin: _Places) -> tuple[_Places, _Places, _Places]:
    if begin.size and int(begin[-1]) + _HEAD > buffer.size:
        # The last cell is shorter than its own head; pad, the shape check then reports it.
        buffer = np.append(buffer, np.zeros(_HEAD, dtype=np.uint8))
    sizes = _numbers_anywhere(buffer, ">u8")[begin].astype(np.uint64)
    rows = _numbers_anywhere(buffer, ">u2")[begin + 8].astype(np.int64)
    return (sizes >> _HALF).astype(np.int64), (sizes & _LOW_HALF).astype(np.int64), rows


def _numbers_anywhere(buffer: npt.NDArray[np.uint8], kind: str) -> npt.NDArray[Any]:
    """The number that begins at every byte: a view whose elements overlap."""
    width = np.dtype(kind).itemsize
    numbers: npt.NDArray[Any] = np.ndarray((max(buffer.size - width + 1, 0),), kind, buffer, 0, (1,))
    return numbers


def _report(
    cell: int, begin: _Places, bases: _Places, offsets: Sequence[int], buffer: npt.NDArray[np.uint8], path: str
) -> None:
    start = int(begin[cell])
    block = int(np.searchsorted(bases, start, side="right")) - 1
    raise CorruptFileError(
        path,
        int(offsets[block]),
        "a cell of key length row + 12, no family, type Put and mvcc 0",
        f"{buffer[start : start + 32].tobytes().hex()} at unpacked byte {start - int(bases[block])} of the block",
    )
