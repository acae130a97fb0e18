"""Arrow arrays and scalars from NumPy arrays and Python's values, and back, without an import of pandas.

Whatever of PyArrow takes a list, a NumPy array or a value of Python's looks whether it is something of pandas', and imports
pandas for that where it is installed: a quarter of a second of CPU and 40 MB, as much as all else that the first query or write
of a small table takes. So do `Array.to_numpy` and `numpy.asarray` of an Arrow array. On these ways `array_of`, `scalar_of`,
`fill_null` and `numpy_of` stand in: they give what PyArrow gives, as fast, and leave to PyArrow what is rare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.plain_values import listed, packed, stored_as

__all__ = [
    "array_of",
    "binaries",
    "booleans",
    "fill_null",
    "flags",
    "integers",
    "no_rows",
    "numbers",
    "numpy_of",
    "places",
    "scalar_of",
    "single_array",
    "spread",
    "table_of",
    "texts",
]

_TYPES = {
    np.dtype(of.to_pandas_dtype()): of
    for of in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float32(), pa.float64()),
    )
}
_FEW = 1024
_MANY = 1 << 16  # of more values PyArrow makes an array faster by what counts
_ARROW = (pa.Scalar, pa.Array, pa.ChunkedArray)


def array_of(values: Any, type: pa.DataType | None = None, mask: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """`pyarrow.array`, for NumPy arrays and lists of Python's values; a NumPy array of numbers is shared, not copied."""
    made = None
    if isinstance(values, np.ndarray):
        made = _of_numpy(values, type, mask)
    elif mask is None and isinstance(values, list | tuple) and len(values) <= _MANY:
        made = listed(values, type)
    return pa.array(values, type, mask=mask) if made is None else made


def _of_numpy(values: npt.NDArray[Any], kind: pa.DataType | None, mask: npt.NDArray[np.bool_] | None) -> pa.Array | None:
    is_flags = values.dtype == np.bool_
    made_of = pa.bool_() if is_flags else _TYPES.get(values.dtype)
    if made_of is None or values.ndim != 1 or isinstance(values, np.ma.MaskedArray):
        return None
    if mask is not None and mask.shape != values.shape:
        return None
    if kind is not None and kind != made_of:
        if is_flags or stored_as(kind) is None or (pa.types.is_temporal(kind) and stored_as(kind) != values.dtype):
            return None
        made_of = kind if pa.types.is_temporal(kind) else made_of
    valid = None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little"))
    content = np.packbits(values, bitorder="little") if is_flags else np.ascontiguousarray(values)
    made = pa.Array.from_buffers(made_of, len(values), [valid, pa.py_buffer(content)])
    return made if kind is None or kind == made_of else made.cast(kind)


def scalar_of(value: Any, type: pa.DataType | None = None) -> pa.Scalar:
    """`pyarrow.scalar`."""
    if value is None or isinstance(value, int):
        return _constant(value, type)
    made = listed((value,), type)
    return pa.scalar(value, type) if made is None else made[0]


@lru_cache(_FEW, typed=True)  # what stands in the code, again and again: faster than Arrow is
def _constant(value: int | None, kind: pa.DataType | None) -> pa.Scalar:
    made = listed((value,), kind)
    return pa.scalar(value, kind) if made is None else made[0]


def fill_null(column: Any, value: Any) -> Any:
    """`fill_null` of an array or a column, with a value of Python's or of Arrow's."""
    return column.fill_null(value if isinstance(value, _ARROW) else scalar_of(value, column.type))


def numpy_of(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """`numpy.asarray` of an array or a column; one of numbers without nulls is shared, not copied."""
    values = single_array(column)
    if values.null_count:
        return np.asarray(values)
    if pa.types.is_boolean(values.type):
        return flags(values)
    stored = stored_as(values.type)
    if stored is None or pa.types.is_temporal(values.type):
        return np.asarray(values)
    if not len(values):
        return np.empty(0, stored)
    return np.frombuffer(values.buffers()[1], stored, len(values), values.offset * stored.itemsize)


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
    return packed([value.encode() for value in values], pa.string())


def binaries(values: Sequence[bytes]) -> pa.BinaryArray:
    """Byte strings, none of them None, as an Arrow array of binary."""
    return packed(values, pa.binary())


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


def table_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """`pyarrow.Table.from_pylist`."""
    columns = [array_of([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def spread(values: pa.Array, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """The values, one for each True of `valid` and in order, with nulls between them where it is False."""
    return values.take(array_of(np.cumsum(valid) - 1, mask=~valid))
