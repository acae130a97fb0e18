"""Which Arrow type may become which: the promotions that Hudi allows, and representations that mean the same.

Promotions (writing narrower rows into a wider column, or widening the column): int -> long, float, double, string;
long -> float, double, string; float -> double, string; double -> string; bytes <-> string; date -> string; decimal -> wider
decimal, string. A SQL `ALTER COLUMN TYPE` (schema on read) adds numbers -> decimal, and string -> date, decimal.
"""

from __future__ import annotations

import enum

import pyarrow as pa

__all__ = ["Fit", "fit", "is_bytes", "is_list_like", "is_number", "is_text"]

_RANKS: dict[pa.DataType, int] = {pa.int32(): 0, pa.int64(): 1, pa.float32(): 2, pa.float64(): 3}


class Fit(enum.Enum):
    """How values of one type become values of another."""

    SAME = "same"
    PROMOTED = "promoted"
    """Allowed whenever rows are written or files are read."""
    ALTERED = "altered"
    """Allowed only where the table's schema history says so."""
    NO = "no"


def is_text(kind: pa.DataType) -> bool:
    """Any layout of strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Any layout of byte strings."""
    types = pa.types
    variable = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    return bool(variable or types.is_fixed_size_binary(kind))


def is_number(kind: pa.DataType) -> bool:
    """Integers, floating numbers and decimals."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_list_like(kind: pa.DataType) -> bool:
    """Any layout of lists, maps excepted."""
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return True
    return bool(types.is_list_view(kind) or types.is_large_list_view(kind))


def fit(source: pa.DataType, target: pa.DataType) -> Fit:
    """How `source` becomes `target`; both are leaf types after normalisation (see `hudimeta.schema.normalise`)."""
    types = pa.types
    if source == target or types.is_null(source):
        return Fit.SAME
    if is_bytes(source) and is_bytes(target):
        return Fit.NO if types.is_fixed_size_binary(target) else Fit.SAME
    if types.is_timestamp(source) and types.is_timestamp(target):
        return Fit.SAME if (source.tz is None) == (target.tz is None) else Fit.NO
    if source in _RANKS and target in _RANKS:
        return Fit.PROMOTED if _RANKS[source] < _RANKS[target] else Fit.NO
    if is_text(target):
        return Fit.PROMOTED if _has_text(source) else Fit.NO
    if is_text(source) and is_bytes(target) and not types.is_fixed_size_binary(target):
        return Fit.PROMOTED
    if types.is_decimal(target):
        return _into_decimal(source, target)
    return Fit.ALTERED if is_text(source) and types.is_date(target) else Fit.NO


def _has_text(kind: pa.DataType) -> bool:
    return kind in _RANKS or is_bytes(kind) or bool(pa.types.is_date(kind) or pa.types.is_decimal(kind))


def _into_decimal(source: pa.DataType, target: pa.DataType) -> Fit:
    if not pa.types.is_decimal(source):
        return Fit.ALTERED if source in _RANKS or is_text(source) else Fit.NO
    more_fraction = target.scale >= source.scale
    more_whole = target.precision - target.scale >= source.precision - source.scale
    return Fit.PROMOTED if more_fraction and more_whole else Fit.NO
