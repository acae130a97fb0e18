"""Arrow arrays from NumPy arrays and lists without `pyarrow.array`, where a process may be about to end.

`pyarrow.array` looks whether it was given something of pandas', and imports pandas for it where that is installed: a third of
a second of CPU, as much as all else that opening a table and listing its partitions takes. On that path these stand in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["binaries", "booleans", "flags", "integers", "no_rows", "numbers", "places", "single_array", "spread", "texts"]

_TYPES = {np.dtype(np.int32): pa.int32(), np.dtype(np.int64): pa.int64()}


def integers(values: npt.NDArray[Any]) -> pa.Array:
    """An int32 or int64 array as an Arrow array of that type, sharing its memory."""
    return pa.Array.from_buffers(_TYPES[values.dtype], len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def numbers(values: pa.Array) -> npt.NDArray[np.int64]:
    """An int32 or int64 array without nulls as NumPy's int64; the inverse of `integers`."""
    kind = np.int64 if values.type == pa.int64() else np.int32
    if not len(values):
        return np.empty(0, np.int64)
    stored = np.frombuffer(values.buffers()[1], kind, len(values), values.offset * np.dtype(kind).itemsize)
    return stored.astype(np.int64, copy=False)


def booleans(values: npt.NDArray[np.bool_]) -> pa.BooleanArray:
    """A bool array as an Arrow array."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))])


def flags(values: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """An array of booleans without nulls as NumPy's, ten times as fast as Arrow does it; the inverse of `booleans`."""
    if not len(values):
        return np.empty(0, np.bool_)
    first, begin = divmod(values.offset, 8)
    bits = np.frombuffer(values.buffers()[1], np.uint8, offset=first)
    unpacked = np.unpackbits(bits, count=begin + len(values), bitorder="little")
    return unpacked[begin:].view(np.bool_)


def texts(values: Sequence[str]) -> pa.StringArray:
    """Strings, none of them None, as an Arrow array of strings."""
    return _packed([value.encode() for value in values], pa.string())


def binaries(values: Sequence[bytes]) -> pa.BinaryArray:
    """Byte strings, none of them None, as an Arrow array of binary."""
    return _packed(values, pa.binary())


def _packed(values: Sequence[bytes], kind: pa.DataType) -> pa.Array:
    borders = np.zeros(len(values) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=borders[1:])
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(borders), pa.py_buffer(b"".join(values))])


def places(mask: pa.BooleanArray) -> npt.NDArray[np.int64]:
    """Where an Arrow array of booleans without nulls is true."""
    return np.flatnonzero(flags(mask))


def single_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array, without a copy where it is one already."""
    if isinstance(column, pa.Array):
        return column
    if not column.num_chunks:
        return pa.nulls(0, column.type)  # Arrow would make it of an empty list, and import pandas for that
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def no_rows(schema: pa.Schema) -> pa.Table:
    """An empty table."""
    return pa.Table.from_batches([], schema)


def spread(values: pa.Array, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """The values, one for each True of `valid` and in order, with nulls between them where it is False."""
    return values.take(pa.array(np.cumsum(valid) - 1, mask=~valid))
