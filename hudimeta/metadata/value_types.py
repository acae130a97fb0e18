"""The type of a column as V2 statistics record it beside the bounds."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import pyarrow as pa

__all__ = ["TIMESTAMP_UNITS", "ValueType", "is_raw", "is_text", "names_by_type", "value_type_of"]


class ValueType(enum.IntEnum):
    """The type of a column beside its V2 bounds (`valueType.typeOrdinal`)."""

    V1 = 0
    NULL = 1
    BOOLEAN = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BYTES = 8
    FIXED = 9
    DECIMAL = 10
    UUID = 11
    DATE = 12
    TIME_MILLIS = 13
    TIME_MICROS = 14
    TIMESTAMP_MILLIS = 15
    TIMESTAMP_MICROS = 16
    TIMESTAMP_NANOS = 17
    LOCAL_TIMESTAMP_MILLIS = 18
    LOCAL_TIMESTAMP_MICROS = 19
    LOCAL_TIMESTAMP_NANOS = 20


TIMESTAMP_UNITS = {
    ValueType.TIMESTAMP_MILLIS: "ms",
    ValueType.TIMESTAMP_MICROS: "us",
    ValueType.TIMESTAMP_NANOS: "ns",
    ValueType.LOCAL_TIMESTAMP_MILLIS: "ms",
    ValueType.LOCAL_TIMESTAMP_MICROS: "us",
    ValueType.LOCAL_TIMESTAMP_NANOS: "ns",
}


def is_text(kind: pa.DataType) -> bool:
    """True for strings of any offset width."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view())


def is_raw(kind: pa.DataType) -> bool:
    """True for byte sequences of any kind."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def value_type_of(kind: pa.DataType) -> tuple[ValueType, str | None]:
    """Ordinal and additional information that V2 writes beside bounds of an Arrow type."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_decimal(kind):
        return ValueType.DECIMAL, f"{kind.precision},{kind.scale}"
    if pa.types.is_timestamp(kind):
        stem = "LOCAL_TIMESTAMP" if kind.tz is None else "TIMESTAMP"
        return ValueType[f"{stem}_{ {'ms': 'MILLIS', 'us': 'MICROS', 'ns': 'NANOS'}.get(kind.unit, 'MILLIS') }"], None
    tests = (
        (pa.types.is_boolean, ValueType.BOOLEAN),
        (pa.types.is_int64, ValueType.LONG),
        (pa.types.is_integer, ValueType.INT),
        (pa.types.is_float64, ValueType.DOUBLE),
        (pa.types.is_floating, ValueType.FLOAT),
        (pa.types.is_fixed_size_binary, ValueType.FIXED),
        (pa.types.is_date, ValueType.DATE),
        (pa.types.is_time32, ValueType.TIME_MILLIS),
        (pa.types.is_time64, ValueType.TIME_MICROS),
        (is_raw, ValueType.BYTES),
        (is_text, ValueType.STRING),
    )
    return next((ordinal for test, ordinal in tests if test(kind)), ValueType.NULL), None


def names_by_type(columns: Mapping[str, pa.DataType]) -> dict[pa.DataType, list[str]]:
    """Columns by their type: of each there are a handful of rows, and every pass over them costs the same.

    Args:
        columns: Arrow type by column.
    """
    found: dict[pa.DataType, list[str]] = {}
    for name, kind in columns.items():
        found.setdefault(kind, []).append(name)
    return found
