"""Minimum and maximum values: a union of one-field records, read into typed Arrow columns and written from them.

A bound keeps its *kind* (which wrapper) and its *body*, the bytes inside the wrapper:

    INT, LONG, DATE, LOCAL_DATE, TIME_MICROS, TIMESTAMP_MICROS   zig-zag number
    BOOLEAN 1 byte, FLOAT 4 and DOUBLE 8 bytes little-endian
    STRING, BYTES, DECIMAL                                       the bytes (their Avro length left out)
    ARRAY                                                        the whole record; never used as a bound here

Two regimes share these kinds. V1 gives every type its own wrapper (decimal: two's complement at scale 15; date: DATE;
timestamps: LONG in the column's own unit). V2 writes decimals as BYTES of the unscaled number (additional information
"precision,scale"), dates as INT, and the ordinal of the column's type beside the bounds.

NaN is written as infinity, and infinity is read as unknown. Hudi's Spark reader keeps bounds in a cached table that passes over
every row with NaN, so a file with such a bound would be skipped whatever the predicate; infinity lets it skip rightly, but
for `x = double('NaN')`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of
from hudimeta.metadata.datum import DatumCursor, Spans, binary_parts, chunks, encode_longs, join_binary
from hudimeta.metadata.record import BoundKind, RecordLayout
from hudimeta.metadata.value_types import TIMESTAMP_UNITS, ValueType, is_raw, is_text

__all__ = [
    "Bounds",
    "encode_bounds",
    "order_value",
    "read_bounds",
    "typed_bounds",
    "unscaled_decimals",
    "wrap_bounds",
]

_VARIABLE = (BoundKind.BYTES, BoundKind.STRING, BoundKind.DECIMAL)
_NUMBERS = (
    BoundKind.INT,
    BoundKind.LONG,
    BoundKind.DATE,
    BoundKind.TIME_MICROS,
    BoundKind.TIMESTAMP_MICROS,
    BoundKind.LOCAL_DATE,
)
_FIXED = {BoundKind.BOOLEAN: 1, BoundKind.FLOAT: 4, BoundKind.DOUBLE: 8}
_INFO = re.compile(r"\d{1,2}, ?(\d{1,2})", re.ASCII)
_MOST_DIGITS = 38
_V1_DECIMAL_SCALE = 15
_V1_DECIMAL_PRECISION = 30


@dataclass(frozen=True)
class Bounds:
    """One column of bounds: `kinds` (BoundKind, int8) and `bodies` (binary, empty where the kind is NULL)."""

    kinds: npt.NDArray[np.int8]
    bodies: pa.Array


def read_bounds(cursor: DatumCursor, layout: RecordLayout) -> Bounds:
    """Walk one bound of every datum."""
    kinds = np.array(layout.branches, np.int8)[cursor.branch(len(layout.branches))]
    if (kinds == kinds[:1]).all():
        return Bounds(kinds, _body(cursor, BoundKind(int(kinds[0]))).column(pa.binary()))
    start, end = cursor.pos.copy(), cursor.pos.copy()
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        part = cursor.at(rows)
        spans = _body(part, BoundKind(int(kind)))
        start[rows], end[rows] = spans.start, spans.end
        cursor.resume(rows, part)
    return Bounds(kinds, Spans(cursor.buffer, start, end).column(pa.binary()))


def _body(cursor: DatumCursor, kind: BoundKind) -> Spans:
    start = cursor.pos
    if kind in _VARIABLE:
        return cursor.bytes()
    if kind in _FIXED:
        return cursor.fixed(_FIXED[kind])
    if kind in _NUMBERS:
        cursor.long()
    elif kind is BoundKind.ARRAY:
        _skip_arrays(cursor)
    return Spans(cursor.buffer, start, cursor.pos)


def _skip_arrays(cursor: DatumCursor) -> None:
    """Step over [null, array of wrappers], datum by datum: no writer is known to index arrays."""
    for row in range(len(cursor.pos)):
        one = cursor.at(np.array([row]))
        if one.branch(2)[0]:
            while (count := int(one.long()[0])) != 0:
                if count < 0:
                    one.long()
                if abs(count) > int(one.end[0] - one.pos[0]):
                    raise one.fail(0, "an array inside the record")
                for _ in range(abs(count)):
                    _body(one, BoundKind(int(one.branch(int(BoundKind.ARRAY))[0])))
        cursor.resume(np.array([row]), one)


def encode_bounds(bounds: Bounds, layout: RecordLayout) -> pa.Array:
    """The union of every bound as Avro bytes, the inverse of `read_bounds`; binary.

    Raises:
        ValueError: A kind that the layout has no branch for.
    """
    import pyarrow.compute as pc

    branch_of = np.full(len(BoundKind), -1, np.int64)
    branch_of[list(layout.branches)] = np.arange(len(layout.branches))
    branches = branch_of[bounds.kinds]
    if (branches < 0).any():
        raise ValueError(f"the record layout has no branch for {BoundKind(int(bounds.kinds[np.argmin(branches)])).name}")
    _, borders = binary_parts(bounds.bodies)
    variable = np.isin(bounds.kinds, _VARIABLE)
    lengths = encode_longs(np.diff(borders))
    if not variable.all():
        lengths = pc.if_else(array_of(variable), lengths, scalar_of(b"", pa.binary()))
    return join_binary(encode_longs(branches), lengths, bounds.bodies)


def typed_bounds(
    bounds: Bounds, wanted: pa.DataType, ordinals: npt.NDArray[np.int64] | None = None, infos: pa.Array | None = None
) -> pa.Array:
    """Bounds as values of a column's Arrow type.

    Args:
        bounds: What a file recorded, whatever the regime.
        wanted: The column's type today; a bound whose type cannot stand for it (text for a number, say) is unknown.
        ordinals: ValueType of each row, 0 for V1.
        infos: "precision,scale" of V2 decimals, string.

    Returns:
        Array of `wanted`; None means unknown (also for all-null columns, which the counts tell apart, for NaN and for
        infinity, which stands for it).
    """
    wanted = wanted.value_type if pa.types.is_dictionary(wanted) else wanted
    rows = len(bounds.kinds)
    ordinals = np.zeros(rows, np.int64) if ordinals is None else ordinals
    groups = bounds.kinds.astype(np.int64) * 64 + np.clip(ordinals, 0, 63)
    distinct = np.unique(groups)
    if len(distinct) == 1:
        whole = _typed(bounds.bodies, int(distinct[0]), wanted, infos)
        return pa.nulls(rows, wanted) if whole is None else whole
    parts, order, size = [], np.full(rows, -1, np.int64), 0
    for group in distinct:
        at = np.flatnonzero(groups == group)
        index = array_of(at)
        part = _typed(bounds.bodies.take(index), int(group), wanted, infos.take(index) if infos is not None else None)
        if part is not None:
            parts.append(part)
            order[at] = size + np.arange(len(at))
            size += len(at)
    if not parts:
        return pa.nulls(rows, wanted)
    return pa.concat_arrays(parts).take(array_of(order, mask=order < 0))


def _typed(bodies: pa.Array, group: int, wanted: pa.DataType, infos: pa.Array | None) -> pa.Array | None:
    kind, ordinal = BoundKind(group // 64), group % 64
    try:
        if kind in _NUMBERS:
            return _from_numbers(bodies, kind, ordinal, wanted)
        if kind in (BoundKind.FLOAT, BoundKind.DOUBLE):
            return _from_floats(bodies, kind, wanted)
        if kind is BoundKind.DECIMAL and pa.types.is_decimal(wanted):
            return unscaled_decimals(bodies, _V1_DECIMAL_SCALE, wanted)
        if kind is BoundKind.BYTES and pa.types.is_decimal(wanted):
            return _from_bytes_decimals(bodies, infos, wanted)
        if kind is BoundKind.BOOLEAN and pa.types.is_boolean(wanted):
            data, borders = binary_parts(bodies)
            return array_of(data[borders[:-1]] != 0, pa.bool_())
        text, raw = is_text(wanted), is_raw(wanted)
        if (kind is BoundKind.STRING and (text or raw)) or (kind is BoundKind.BYTES and raw):
            return bodies.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None  # a value that the column's type of today cannot hold bounds nothing
    return None


def _from_numbers(bodies: pa.Array, kind: BoundKind, ordinal: int, wanted: pa.DataType) -> pa.Array | None:
    values = [cursor.long() for cursor in chunks(bodies)]
    numbers = array_of(np.concatenate(values) if values else np.empty(0, np.int64))
    dates = (BoundKind.INT, BoundKind.DATE, BoundKind.LOCAL_DATE)
    if pa.types.is_date(wanted):
        return numbers.cast(pa.int32()).cast(pa.date32()).cast(wanted) if kind in dates else None
    if pa.types.is_timestamp(wanted):
        if kind not in (BoundKind.LONG, BoundKind.TIMESTAMP_MICROS):
            return None
        unit = "us" if kind is BoundKind.TIMESTAMP_MICROS else TIMESTAMP_UNITS.get(ValueType(ordinal), wanted.unit)
        return numbers.cast(pa.timestamp(unit, wanted.tz)).cast(wanted)
    if pa.types.is_time(wanted):
        if kind is BoundKind.INT:
            return numbers.cast(pa.int32()).cast(pa.time32("ms")).cast(wanted)
        return numbers.cast(pa.time64("us")).cast(wanted)
    plain = kind in (BoundKind.INT, BoundKind.LONG)
    if plain and pa.types.is_floating(wanted):
        return numbers.cast(wanted, safe=False)
    if plain and pa.types.is_decimal(wanted):
        return numbers.cast(pa.decimal256(76, wanted.scale)).cast(wanted)
    if plain and pa.types.is_integer(wanted):
        return numbers.cast(wanted)
    return None


def _from_floats(bodies: pa.Array, kind: BoundKind, wanted: pa.DataType) -> pa.Array | None:
    if not pa.types.is_floating(wanted):
        return None
    data, borders = binary_parts(bodies)
    single = kind is BoundKind.FLOAT
    dtype: Any = "<f4" if single else "<f8"
    values = np.frombuffer(data[borders[0] : borders[-1]].tobytes(), dtype)
    known = array_of(values, mask=np.isnan(values) | np.isposinf(values))
    if single and pa.types.is_float64(wanted):
        # A column that was widened shows the double that the float's text stands for, so its bounds must as well.
        return known.cast(pa.string()).cast(wanted)
    return known.cast(wanted)


def _from_bytes_decimals(bodies: pa.Array, infos: pa.Array | None, wanted: pa.DataType) -> pa.Array | None:
    if infos is None:
        return None
    scales = {text: _scale(text) for text in infos.unique().to_pylist()}
    alike = set(scales.values())
    if len(alike) == 1 and (scale := alike.pop()) is not None:
        return unscaled_decimals(bodies, scale, wanted)
    parts = [
        pa.nulls(1, wanted) if (scale := scales[text]) is None else unscaled_decimals(bodies[i : i + 1], scale, wanted)
        for i, text in enumerate(infos.to_pylist())
    ]
    return pa.concat_arrays(parts)


def _scale(info: str | None) -> int | None:
    """Decimals of a bound, as its additional information says; None where that says nothing, so that the bound is unknown."""
    found = _INFO.fullmatch(info or "")
    return int(found[1]) if found and int(found[1]) <= _MOST_DIGITS else None


def unscaled_decimals(bodies: pa.Array, scale: int, wanted: pa.DataType) -> pa.Array:
    """Big-endian two's complement of any length to decimals."""
    data, borders = binary_parts(bodies)
    lengths = np.diff(borders)
    if len(lengths) and int(lengths.max()) > 16:
        raise pa.ArrowInvalid("a decimal of more than 38 digits")
    little = np.zeros((len(lengths), 16), np.uint8)
    for place in range(int(lengths.max()) if len(lengths) else 0):
        rows = np.flatnonzero(lengths > place)
        little[rows, place] = data[borders[1:][rows] - 1 - place]
    if len(data):
        negative = (lengths > 0) & (data[np.minimum(borders[:-1], len(data) - 1)] >= 128)
        little[(np.arange(16) >= lengths[:, None]) & negative[:, None]] = 0xFF
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(lengths), [None, pa.py_buffer(little)]).cast(wanted)


def order_value(kind: int, body: bytes) -> Any:
    """A Python value that sorts as the bound does among bounds of the same kind.

    Raises:
        ValueError: A kind without an order (NULL, ARRAY).
    """
    if kind in (BoundKind.STRING, BoundKind.BYTES):
        return body  # V2 decimals stand here too; callers that know the scale must not use this
    if kind == BoundKind.DECIMAL:
        return int.from_bytes(body, "big", signed=True)
    if kind in _NUMBERS:
        return int(next(chunks(array_of([body], pa.binary()))).long()[0])
    if kind in _FIXED:
        return body[0] if kind == BoundKind.BOOLEAN else float(np.frombuffer(body, "<f4" if len(body) == 4 else "<f8")[0])
    raise ValueError(f"bounds of kind {BoundKind(kind).name} have no order")


def wrap_bounds(values: pa.Array, version: str = "V1") -> Bounds:
    """Typed values as bounds, the inverse of `typed_bounds`; None becomes the kind NULL.

    Args:
        values: Minima or maxima of one column; NaN becomes infinity.
        version: Regime of the index, "V1" or "V2".

    Raises:
        ValueError: A type that statistics do not hold (nested types; in V1 decimals that do not fit 30 digits at scale 15).
    """
    kind, column = values.type, values
    if pa.types.is_dictionary(kind):
        return wrap_bounds(values.cast(kind.value_type), version)
    if pa.types.is_decimal(kind):
        wrapper, bodies = _wrap_decimals(column, version)
    elif pa.types.is_boolean(kind):
        wrapper, bodies = BoundKind.BOOLEAN, _fixed_bodies(column.cast(pa.uint8()), np.uint8)
    elif pa.types.is_floating(kind):
        single = not pa.types.is_float64(kind)
        wrapper = BoundKind.FLOAT if single else BoundKind.DOUBLE
        bodies = _fixed_bodies(_without_nan(column.cast(pa.float32() if single else kind)), "<f4" if single else "<f8")
    elif is_text(kind):
        wrapper, bodies = BoundKind.STRING, column.cast(pa.binary())
    elif is_raw(kind):
        wrapper, bodies = BoundKind.BYTES, column.cast(pa.binary())
    else:
        wrapper = _number_kind(kind, version)
        numbers = column.cast(pa.date32()).cast(pa.int32()) if pa.types.is_date(kind) else column
        numbers = numbers.cast(pa.int32()) if pa.types.is_time32(kind) else numbers
        bodies = encode_longs(numpy_of(fill_null(numbers.cast(pa.int64()), 0)))
    import pyarrow.compute as pc

    missing = numpy_of(column.is_null())
    kinds = np.where(missing, np.int8(BoundKind.NULL), np.int8(wrapper)).astype(np.int8)
    if missing.any():
        bodies = pc.if_else(array_of(missing), scalar_of(b"", pa.binary()), bodies)
    return Bounds(kinds, bodies)


def _without_nan(column: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.if_else(pc.is_nan(column), scalar_of(np.inf, column.type), column)


def _number_kind(kind: pa.DataType, version: str) -> BoundKind:
    if pa.types.is_date(kind):
        return BoundKind.DATE if version == "V1" else BoundKind.INT
    if pa.types.is_time64(kind):
        return BoundKind.TIME_MICROS if version == "V1" else BoundKind.LONG
    if pa.types.is_time32(kind):
        return BoundKind.INT
    if pa.types.is_timestamp(kind) or pa.types.is_int64(kind) or pa.types.is_uint32(kind):
        return BoundKind.LONG
    if pa.types.is_integer(kind):
        return BoundKind.INT
    raise ValueError(f"column statistics do not hold values of type {kind}")


def _wrap_decimals(values: pa.Array, version: str) -> tuple[BoundKind, pa.Array]:
    scale = values.type.scale
    if version == "V1":
        if scale > _V1_DECIMAL_SCALE or values.type.precision + _V1_DECIMAL_SCALE - scale > _V1_DECIMAL_PRECISION:
            raise ValueError(f"V1 column statistics do not hold values of type {values.type}")
        scale = _V1_DECIMAL_SCALE
    exact = fill_null(values.cast(pa.decimal128(38, scale)), 0)
    little = np.frombuffer(exact.buffers()[1], np.uint8, len(exact) * 16, exact.offset * 16).reshape(-1, 16)
    big = little[:, ::-1]
    # The shortest form drops leading bytes that repeat the sign bit of the byte after them.
    sign = np.where(big[:, :1] >= 128, 0xFF, 0).astype(np.uint8)
    idle = (big[:, :-1] == sign) & ((big[:, 1:] & 0x80) == (sign & 0x80))
    drop = np.cumprod(idle, axis=1, dtype=np.int64).sum(axis=1)
    keep = np.arange(16) >= drop[:, None]
    borders = np.concatenate([[0], np.cumsum(16 - drop)]).astype(np.int32)
    bodies = pa.Array.from_buffers(pa.binary(), len(exact), [None, pa.py_buffer(borders), pa.py_buffer(big[keep])])
    return (BoundKind.DECIMAL if version == "V1" else BoundKind.BYTES), bodies


def _fixed_bodies(column: pa.Array, dtype: Any) -> pa.Array:
    data = numpy_of(fill_null(column, 0)).astype(dtype)
    borders = (np.arange(len(data) + 1) * data.itemsize).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(data), [None, pa.py_buffer(borders), pa.py_buffer(data.tobytes())])
