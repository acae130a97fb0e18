"""Arrow arrays of lists of Python's values without `pyarrow.array`, which imports pandas: what `plain_arrays` rests on."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["listed", "packed", "stored_as"]

_STORED_AS = {
    **{
        of.id: np.dtype(of.to_pandas_dtype())
        for of in (
            *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
            *(pa.float32(), pa.float64()),
        )
    },
    pa.date32().id: np.dtype(np.int32),
    pa.timestamp("us").id: np.dtype(np.int64),
}
_LONGEST = (1 << 31) - 1  # bytes of all texts of an array whose borders have 32 bits
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
_EXACT = Context(prec=38)  # as many digits as a decimal of 128 bits has
_MICROSECOND = dt.timedelta(microseconds=1)


class _Unsuited(Exception):
    """Values that Arrow shall convert itself, or refuse in its own words."""


def listed(values: Sequence[Any], kind: pa.DataType | None) -> pa.Array | None:
    """Python's values, or None, as an array of that type, or of the type that `pyarrow.array` makes of them.

    None is for `pyarrow.array` to do it: values of several classes, of rare classes, or ones that do not fit the type.
    """
    classes = set(map(type, values))
    missing = type(None) in classes
    classes.discard(type(None))
    if not classes:
        return pa.nulls(len(values), pa.null() if kind is None else kind)
    (one, *others) = classes
    if others or (one not in _MAKERS and not issubclass(one, pa.Scalar)):
        return None
    try:
        if issubclass(one, pa.Scalar):
            return _of_scalars(values, kind)
        make, instead = _MAKERS[one]
        return _with_nulls(values, instead, lambda whole: make(whole, kind)) if missing else make(values, kind)
    except (_Unsuited, OverflowError, UnicodeEncodeError):
        return None


def _with_nulls(values: Sequence[Any], instead: Any, make: Callable[[Sequence[Any]], pa.Array]) -> pa.Array:
    made = make([instead if value is None else value for value in values])
    present = np.fromiter((value is not None for value in values), np.bool_, len(values))
    valid = pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(made.type, len(made), [valid, *made.buffers()[1:]])


def packed(values: Sequence[bytes], kind: pa.DataType) -> pa.Array:
    """Byte strings, none of them None, as an array of strings or of binary."""
    return _joined(b"".join(values), values, kind)


def stored_as(kind: pa.DataType) -> np.dtype[Any] | None:
    """What NumPy calls the numbers in an array of numbers, dates or times; None of other types."""
    return _STORED_AS.get(kind.id)


def _array(kind: pa.DataType, stored: npt.NDArray[Any]) -> pa.Array:
    return pa.Array.from_buffers(kind, len(stored), [None, pa.py_buffer(stored)])


def _joined(content: bytes, parts: Sequence[Any], kind: pa.DataType) -> pa.Array:
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not wide and len(content) > _LONGEST:
        raise _Unsuited
    borders = np.zeros(len(parts) + 1, np.int64 if wide else np.int32)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=borders[1:])
    return pa.Array.from_buffers(kind, len(parts), [None, pa.py_buffer(borders), pa.py_buffer(content)])


def _of_texts(values: Sequence[str], kind: pa.DataType | None) -> pa.Array:
    kind = pa.string() if kind is None else kind
    if kind.id not in _TEXTS and kind.id not in _BINARIES:
        raise _Unsuited
    content = "".join(values)
    return _joined(content.encode(), values, kind) if content.isascii() else packed([v.encode() for v in values], kind)


def _of_bytes(values: Sequence[bytes], kind: pa.DataType | None) -> pa.Array:
    kind = pa.binary() if kind is None else kind
    if kind.id not in _BINARIES:
        raise _Unsuited  # Arrow looks whether it is UTF-8
    return packed(values, kind)


def _of_booleans(values: Sequence[bool], kind: pa.DataType | None) -> pa.Array:
    if kind is not None and not pa.types.is_boolean(kind):
        raise _Unsuited
    bits = np.packbits(np.fromiter(values, np.bool_, len(values)), bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])


def _of_integers(values: Sequence[int], kind: pa.DataType | None) -> pa.Array:
    kind = pa.int64() if kind is None else kind
    stored = stored_as(kind)
    if pa.types.is_decimal128(kind):
        return _of_decimals([Decimal(value) for value in values], kind)
    if stored is None or stored == np.uint64:
        raise _Unsuited
    return _fixed(values, len(values), kind, stored)


def _of_floats(values: Sequence[float], kind: pa.DataType | None) -> pa.Array:
    kind = pa.float64() if kind is None else kind
    stored = stored_as(kind)
    if stored is None or stored.kind != "f":
        raise _Unsuited
    with np.errstate(over="ignore"):
        return _array(kind, np.fromiter(values, np.float64, len(values)).astype(stored, copy=False))


def _of_scalars(values: Sequence[pa.Scalar | None], kind: pa.DataType | None) -> pa.Array:
    kind = next(value.type for value in values if value is not None) if kind is None else kind
    if any(value is not None and value.type != kind for value in values):
        raise _Unsuited
    return pa.concat_arrays([pa.nulls(1, kind) if value is None else pa.repeat(value, 1) for value in values])


def _of_days(values: Sequence[dt.date], kind: pa.DataType | None) -> pa.Array:
    if kind is not None and not pa.types.is_date32(kind):
        raise _Unsuited
    return _fixed((value.toordinal() - _EPOCH_DAY for value in values), len(values), pa.date32(), np.dtype(np.int32))


def _of_moments(values: Sequence[dt.datetime], kind: pa.DataType | None) -> pa.Array:
    kind = pa.timestamp("us") if kind is None else kind
    zones = {value.tzinfo for value in values}
    if not pa.types.is_timestamp(kind) or kind.unit != "us" or not zones <= ({None, dt.timezone.utc} if kind.tz else {None}):
        raise _Unsuited
    numbers = ((value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND for value in values)
    return _fixed(numbers, len(values), kind, np.dtype(np.int64))


def _of_decimals(values: Sequence[Decimal], kind: pa.DataType | None) -> pa.Array:
    if kind is None or not pa.types.is_decimal128(kind):
        raise _Unsuited
    content = b"".join(_unscaled(value, kind).to_bytes(16, "little", signed=True) for value in values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(content)])


def _unscaled(value: Decimal, kind: pa.Decimal128Type) -> int:
    _, digits, exponent = value.as_tuple()
    more = exponent + kind.scale if isinstance(exponent, int) else -1  # a text: infinite, or no number
    if more < 0 or len(digits) + more > kind.precision:
        raise _Unsuited
    return int(value.scaleb(kind.scale, _EXACT))


def _fixed(numbers: Iterable[int], count: int, kind: pa.DataType, stored: np.dtype[Any]) -> pa.Array:
    long = np.fromiter(numbers, np.int64, count)
    if stored == np.int64:
        return _array(kind, long)
    most = 1 << np.finfo(stored).nmant + 1 if stored.kind == "f" else np.iinfo(stored).max
    least = -most if stored.kind == "f" else np.iinfo(stored).min
    if count and not least <= long.min() <= long.max() <= most:
        raise _Unsuited
    return _array(kind, long.astype(stored))


_TEXTS = frozenset([pa.string().id, pa.large_string().id])
_BINARIES = frozenset([pa.binary().id, pa.large_binary().id])
_MAKERS: dict[type, tuple[Callable[[Sequence[Any], pa.DataType | None], pa.Array], Any]] = {
    str: (_of_texts, ""),
    bytes: (_of_bytes, b""),
    bool: (_of_booleans, False),
    int: (_of_integers, 0),
    float: (_of_floats, 0.0),
    dt.date: (_of_days, _EPOCH.date()),
    dt.datetime: (_of_moments, _EPOCH),
    Decimal: (_of_decimals, Decimal(0)),
}
