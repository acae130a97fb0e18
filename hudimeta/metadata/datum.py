"""A column of Avro datums walked side by side: one cursor, a position in every datum, each step one NumPy pass over all.

Avro's binary form has no field borders, so a reader must walk each datum. Walking one datum after the other costs
microseconds per field in Python; here every read moves the positions of thousands of datums at once:

    long, int    zig-zag, 7 bits a byte, lowest group first, the top bit says that another byte follows (10 bytes at most)
    boolean      one byte, 0 or 1
    string,bytes length as a long, then the bytes
    union        branch number as a long (one byte here: no union of the metadata record has 64 branches)
    record       its fields, one after the other

Byte spans are not copied while walking: `binary_column` turns spans into an Arrow array with one gather in C++. Damaged
lengths are refused when they are met, and `finish` proves that every datum was used up to its last byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.errors import CorruptFileError
from hudimeta.formats.plain_arrays import array_of, integers, scalar_of

__all__ = ["DatumCursor", "Ints", "Spans", "chunks", "encode_longs", "encode_texts", "join_binary"]

Ints: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]

CHUNK_ROWS = 32_768
CHUNK_BYTES = 4 << 20
# A damaged datum may lead the walk past its end before a span or `finish` notices: at most 10 bytes for each field.
PADDING = 1024

_CONTINUES = np.uint64(0x8080808080808080)
_SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONE = np.uint64(1)
_WIDTHS = np.uint64(0x0102030405060708)


@dataclass(frozen=True)
class Spans:
    """Byte ranges in the cursor's buffer, one per datum; `present` is False where the datum holds null instead."""

    buffer: pa.Buffer
    start: Ints
    end: Ints
    present: Mask | None = None

    def column(self, kind: pa.DataType) -> pa.Array:
        """The spans as an Arrow array of `kind` (binary, string or their large forms): one gather, no Python per row.

        Starts ascend, so the array of all borders [s0, e0, s1, e1, ...] is itself a valid Arrow array whose even elements
        are the spans; taking those lets Arrow copy the bytes.
        """
        rows = len(self.start)
        large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        borders = np.empty(2 * rows, np.int64 if large else np.int32)
        borders[0::2], borders[1::2] = self.start, self.end
        both = pa.Array.from_buffers(kind, max(2 * rows - 1, 0), [None, pa.py_buffer(borders), self.buffer])
        even = np.arange(0, 2 * rows, 2)
        return both.take(integers(even) if self.present is None else array_of(even, mask=~self.present))


class DatumCursor:
    """Positions in many datums that move together.

    Args:
        data: The bytes of all datums, one after the other, then at least `PADDING` spare bytes.
        pos: Offset of each datum.
        end: Offset after each datum.
        path: File they come from, for errors.
    """

    __slots__ = ("_words", "buffer", "data", "end", "path", "pos")

    def __init__(self, data: Bytes, pos: Ints, end: Ints, path: str = "") -> None:
        self.data, self.pos, self.end, self.path = data, pos, end, path
        self.buffer = pa.py_buffer(data)
        # Eight bytes from any offset: a view whose elements overlap, so that one gather fetches a whole varint.
        self._words = np.ndarray((max(len(data) - 7, 0),), "<u8", data, 0, (1,))

    def at(self, rows: npt.NDArray[np.intp]) -> DatumCursor:
        """A cursor over some of the datums only; give it back with `resume`."""
        part = DatumCursor.__new__(DatumCursor)
        part.data, part.path, part.buffer, part._words = self.data, self.path, self.buffer, self._words
        part.pos, part.end = self.pos[rows], self.end[rows]
        return part

    def resume(self, rows: npt.NDArray[np.intp], part: DatumCursor) -> None:
        """Take over the positions that `part` reached."""
        self.pos[rows] = part.pos

    def byte(self) -> Bytes:
        """One byte of each datum."""
        value = self.data[self.pos]
        self.pos = self.pos + 1
        return value

    def boolean(self) -> Mask:
        """One boolean of each datum."""
        value = self.byte()
        self._check(value > 1, "a boolean of 0 or 1")
        return value.astype(np.bool_)

    def branch(self, branches: int) -> Bytes:
        """The union branch of each datum, below `branches` (at most 64)."""
        value = self.byte()
        self._check((value & 1).astype(np.bool_) | (value >= 2 * branches), f"a union branch below {branches}")
        number: Bytes = value >> np.uint8(1)
        return number

    def long(self) -> Ints:
        """One zig-zag number of each datum."""
        first = self.data[self.pos]
        if not (first & 0x80).any():
            self.pos = self.pos + 1
            small = first.astype(np.int64)
            return (small >> 1) ^ -(small & 1)
        word = self._words[self.pos]
        stop = ~word & _CONTINUES
        lowest = stop & (~stop + _ONE)
        groups = word & _SEVEN & (lowest - _ONE)
        groups = (groups & np.uint64(0x007F007F007F007F)) | ((groups & np.uint64(0x7F007F007F007F00)) >> _ONE)
        groups = (groups & np.uint64(0x00003FFF00003FFF)) | ((groups & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
        groups = (groups & np.uint64(0x0FFFFFFF)) | ((groups & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4))
        width = ((lowest >> np.uint64(7)) * _WIDTHS) >> np.uint64(56)
        long_form = np.flatnonzero(lowest == 0)
        if len(long_form):
            self._long_tail(groups, width, long_form)
        self.pos = self.pos + width.astype(np.int64)
        value: Ints = ((groups >> _ONE) ^ (~(groups & _ONE) + _ONE)).view(np.int64)
        return value

    def _long_tail(self, groups: npt.NDArray[np.uint64], width: npt.NDArray[np.uint64], rows: npt.NDArray[np.intp]) -> None:
        at = self.pos[rows]
        ninth, tenth = self.data[at + 8].astype(np.uint64), self.data[at + 9].astype(np.uint64)
        more = ninth >= 128
        self._check(more & (tenth > 1), "a number of at most 64 bits")
        tenth = np.where(more, tenth, np.uint64(0))
        groups[rows] |= ((ninth & np.uint64(0x7F)) << np.uint64(56)) | (tenth << np.uint64(63))
        width[rows] = np.where(more, np.uint64(10), np.uint64(9))

    def fixed(self, size: int) -> Spans:
        """`size` bytes of each datum."""
        start = self.pos
        self._check(start + size > self.end, f"{size} more bytes")
        self.pos = start + size
        return Spans(self.buffer, start, self.pos)

    def bytes(self) -> Spans:
        """One string or byte sequence of each datum."""
        length = self.long()
        self._check((length < 0) | (length > self.end - self.pos), "a length inside the record")
        start = self.pos
        self.pos = start + length
        return Spans(self.buffer, start, self.pos)

    def optional_long(self) -> tuple[Ints, Mask]:
        """A [null, long] of each datum: the numbers (0 for null) and where there is one."""
        present = self.branch(2).astype(np.bool_)
        if present.all():
            return self.long(), present
        values = np.zeros(len(present), np.int64)
        rows = np.flatnonzero(present)
        if len(rows):
            part = self.at(rows)
            values[rows] = part.long()
            self.resume(rows, part)
        return values, present

    def optional_bytes(self) -> Spans:
        """A [null, string] or [null, bytes] of each datum."""
        present = self.branch(2).astype(np.bool_)
        if present.all():
            return self.bytes()
        start, end = self.pos.copy(), self.pos.copy()
        rows = np.flatnonzero(present)
        if len(rows):
            part = self.at(rows)
            spans = part.bytes()
            start[rows], end[rows] = spans.start, spans.end
            self.resume(rows, part)
        return Spans(self.buffer, start, end, present)

    def optional(self, read: Callable[[DatumCursor], None]) -> npt.NDArray[np.intp]:
        """A [null, X] of each datum where `read` walks one X; returns the datums that have one."""
        present = self.branch(2).astype(np.bool_)
        rows = np.flatnonzero(present)
        if len(rows) == len(present):
            read(self)
        elif len(rows):
            part = self.at(rows)
            read(part)
            self.resume(rows, part)
        return rows

    def finish(self) -> None:
        """Prove that every datum ends where its bytes end."""
        self._check(self.pos != self.end, "the end of the record")

    def fail(self, row: int, expected: str) -> CorruptFileError:
        """The error for one datum."""
        at = int(self.pos[row])
        return CorruptFileError(self.path, at, f"{expected} (metadata record)", bytes(self.data[at : at + 8]).hex())

    def _check(self, wrong: npt.NDArray[np.bool_], expected: str) -> None:
        if wrong.any():
            raise self.fail(int(np.argmax(wrong)), expected)


def chunks(values: pa.Array | pa.ChunkedArray, path: str = "") -> Iterator[DatumCursor]:
    """Cut a column of datums into cursors small enough for the processor's cache.

    Args:
        values: binary or large_binary without nulls.
        path: File they come from, for errors.
    """
    for part in values.chunks if isinstance(values, pa.ChunkedArray) else (values,):
        data, borders = binary_parts(part)
        row, rows = 0, len(part)
        while row < rows:
            limit = int(np.searchsorted(borders, borders[row] + CHUNK_BYTES))
            last = min(rows, row + CHUNK_ROWS, max(row + 1, limit))
            first, end = int(borders[row]), int(borders[last])
            padded = np.zeros(end - first + PADDING, np.uint8)
            padded[: end - first] = data[first:end]
            yield DatumCursor(padded, borders[row:last] - first, borders[row + 1 : last + 1] - first, path)
            row = last


def binary_parts(array: pa.Array) -> tuple[Bytes, Ints]:
    """The data bytes and the len+1 borders of a binary or string array (large or not), without copying the bytes."""
    wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    if not len(array):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, data = array.buffers()
    kind: Any = np.int64 if wide else np.int32
    width = 8 if wide else 4
    borders = np.frombuffer(offsets, kind, len(array) + 1, array.offset * width).astype(np.int64)
    return np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8), borders


def encode_longs(values: npt.NDArray[Any], prefix: bytes = b"") -> pa.Array:
    """Zig-zag numbers as a binary array, each after the same `prefix` (a union branch, say)."""
    signed = values.astype(np.int64)
    rest = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
    lead = len(prefix)
    widest = 1
    top = int(rest.max()) if len(rest) else 0
    while top >> (7 * widest):
        widest += 1
    matrix = np.empty((len(rest), lead + widest), np.uint8)
    matrix[:, :lead] = np.frombuffer(prefix, np.uint8)
    width = np.ones(len(rest), np.int64)
    for place in range(widest):
        group = (rest & np.uint64(0x7F)).astype(np.uint8)
        rest = rest >> np.uint64(7)
        more = rest != 0
        matrix[:, lead + place] = group | (more.astype(np.uint8) << 7)
        width += more
    keep = np.arange(widest) < width[:, None]
    if lead:
        keep = np.concatenate([np.ones((len(rest), lead), np.bool_), keep], axis=1)
    borders = np.zeros(len(rest) + 1, np.int32)
    np.cumsum(width + lead, out=borders[1:])
    return pa.Array.from_buffers(pa.binary(), len(rest), [None, pa.py_buffer(borders), pa.py_buffer(matrix[keep])])


def encode_texts(column: pa.Array) -> pa.Array:
    """Strings or byte sequences (no nulls) as Avro writes them: length, then bytes; a binary array."""
    _, borders = binary_parts(column)
    return join_binary(encode_longs(np.diff(borders)), column)


def join_binary(*columns: pa.Array | bytes) -> pa.Array:
    """Join binary columns row by row; `bytes` stand for the same bytes in every row."""
    import pyarrow.compute as pc

    parts = [
        scalar_of(c, pa.binary()) if isinstance(c, bytes) else c if c.type == pa.binary() else c.cast(pa.binary())
        for c in columns
    ]
    return pc.binary_join_element_wise(*parts, scalar_of(b"", pa.binary()))
