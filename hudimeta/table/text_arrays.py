"""Cutting Arrow string arrays with NumPy: the bytes of all strings lie in one buffer, so a cut is two arrays of positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = ["instant_number", "instant_text", "slice_text", "text_buffers"]

_CHUNK_BYTES = 1 << 26
_INSTANT_DIGITS = 17


def text_buffers(
    texts: pa.StringArray,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The bytes of a pa.string array without copying: (uint8 data, int64 starts, int64 ends)."""
    import numpy as np

    _, offsets_buffer, data_buffer = texts.buffers()
    n = len(texts)
    if n == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return np.zeros(0, dtype=np.uint8), nothing, nothing
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32)[texts.offset : texts.offset + n + 1].astype(np.int64)
    data = np.zeros(0, dtype=np.uint8) if data_buffer is None else np.frombuffer(data_buffer, dtype=np.uint8)
    return data, offsets[:-1], offsets[1:]


def slice_text(data: np.ndarray[Any, Any], starts: np.ndarray[Any, Any], ends: np.ndarray[Any, Any]) -> pa.StringArray:
    """Cut one string out of `data` for each (start, end): pa.string array.

    Rows of one common length, the usual case for file ids, are copied as rows of a matrix; others byte by byte.
    """
    import numpy as np
    import pyarrow as pa

    lengths = ends - starts
    n = len(lengths)
    offsets = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    total = int(offsets[-1])
    out = np.empty(total, dtype=np.uint8)
    if n and total:
        width = int(lengths[0])
        if (lengths == width).all():
            _copy_rows(data, starts, width, out)
        else:
            _copy_ragged(data, starts, lengths, offsets, out)
    kind = np.int32 if total < 2**31 else np.int64
    buffers = [None, pa.py_buffer(offsets.astype(kind)), pa.py_buffer(out)]
    if kind is np.int32:
        return pa.StringArray.from_buffers(n, buffers[1], buffers[2])
    return pa.LargeStringArray.from_buffers(n, buffers[1], buffers[2])


def _copy_rows(data: np.ndarray[Any, Any], starts: np.ndarray[Any, Any], width: int, out: np.ndarray[Any, Any]) -> None:
    import numpy as np

    windows = np.lib.stride_tricks.sliding_window_view(data, width)
    rows = out.reshape(-1, width)
    step = max(1, _CHUNK_BYTES // width)
    for at in range(0, len(starts), step):
        rows[at : at + step] = windows[starts[at : at + step]]


def _copy_ragged(
    data: np.ndarray[Any, Any],
    starts: np.ndarray[Any, Any],
    lengths: np.ndarray[Any, Any],
    offsets: np.ndarray[Any, Any],
    out: np.ndarray[Any, Any],
) -> None:
    import numpy as np

    step = max(1, _CHUNK_BYTES // max(1, int(lengths.max())))
    for at in range(0, len(starts), step):
        part = lengths[at : at + step]
        begin = offsets[at]
        size = int(part.sum())
        shift = np.repeat(starts[at : at + step] - (offsets[at : at + len(part)] - begin), part)
        out[begin : begin + size] = data[shift + np.arange(size)]


def instant_number(instant: str) -> int:
    """An instant's digits as a number, 14-digit ones filled up with zeros: orders as the texts do."""
    return int(instant[:_INSTANT_DIGITS].ljust(_INSTANT_DIGITS, "0"))


def instant_text(numbers: np.ndarray[Any, Any]) -> pa.StringArray:
    """The inverse for many: 17-digit texts, pa.string array."""
    import numpy as np
    import pyarrow as pa

    n = len(numbers)
    digits = np.empty((n, _INSTANT_DIGITS), dtype=np.uint8)
    rest = numbers.astype(np.int64, copy=True)
    for at in range(_INSTANT_DIGITS - 1, -1, -1):
        rest, digit = np.divmod(rest, 10)
        digits[:, at] = digit + 0x30
    offsets = np.arange(0, (n + 1) * _INSTANT_DIGITS, _INSTANT_DIGITS, dtype=np.int64)
    return pa.LargeStringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(digits)).cast(pa.string())
