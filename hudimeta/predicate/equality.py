"""Values of two columns made alike where Spark takes them for equal, for joins that compare bytes."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from hudimeta.predicate.casts import cast_array, to_canonical
from hudimeta.predicate.types import canonical_type, common_type, is_floating

__all__ = ["as_joined", "joined_type", "with_one_zero"]


def joined_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type in which Spark compares two columns for equality; None where it does not, and for nested types.

    Args:
        one: Type of a column.
        other: Of the other.
    """
    found = common_type(canonical_type(one), canonical_type(other))
    if found is None or pa.types.is_nested(found):
        return None
    return pa.bool_() if pa.types.is_null(found) else found


def as_joined(values: pa.ChunkedArray, kind: pa.DataType, *, timezone: str = "UTC") -> pa.ChunkedArray:
    """A column in the type in which it is compared: values that are equal have equal bytes.

    Args:
        values: Of one of the two columns.
        kind: Of `joined_type`.
        timezone: The session's time zone.

    Returns:
        As many values of `kind`; null for null, and for what is no value of that type, which equals nothing.
    """
    cast = [cast_array(to_canonical(chunk), kind, timezone) for chunk in values.chunks]
    return pa.chunked_array([with_one_zero(chunk) if is_floating(kind) else chunk for chunk in cast], kind)


def with_one_zero(values: pa.Array) -> pa.Array:
    """Floating values with -0.0 as 0.0 and every NaN as one, so that equal numbers have equal bits."""
    raw = np.array(values.fill_null(0)) + np.zeros(1, values.type.to_pandas_dtype())
    raw[np.isnan(raw)] = math.nan
    return pa.array(raw, type=values.type, mask=np.asarray(values.is_null()), from_pandas=False)
