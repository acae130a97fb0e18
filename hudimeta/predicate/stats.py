"""What is known about columns of many files: bounds and counts, as Arrow arrays with one element per file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.formats.groups import extremes_of_groups
from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of
from hudimeta.predicate.tree import Expr
from hudimeta.predicate.types import is_floating

__all__ = ["ColumnBounds", "FileStats"]


@dataclass(frozen=True)
class ColumnBounds:
    """Bounds and counts of one column, or of one expression, in each of many files.

    Attributes:
        min: A value that no value of the file is less than, null when unknown; typed as the column.
        max: Likewise from above.
        null_count: int64, number of nulls, null when unknown; None when unknown everywhere.
        value_count: int64, number of rows, nulls included, null when unknown; None when unknown everywhere.
        nan_aware: For floats: True when NaN would be the maximum, so that a bound that is a number proves that there is no
            NaN. Footers leave NaN out, so the default is False. One flag, or one per file.
        truncated: For strings and binary values: bounds may be cut off to a prefix. One flag, or one per file.

    Bounds may be wider than the values, never narrower. A column that is null in every row is proven so by counts only.
    """

    min: pa.Array
    max: pa.Array
    null_count: pa.Array | None = None
    value_count: pa.Array | None = None
    nan_aware: bool | np.ndarray[Any, Any] = False
    truncated: bool | np.ndarray[Any, Any] = False

    def union(self, groups: np.ndarray[Any, Any], count: int) -> ColumnBounds:
        """Bounds of groups of files, such as the base file and log files of each slice.

        Args:
            groups: int64, the group of each file, from 0.
            count: Number of groups.

        Returns:
            Bounds with one element per group. A group is unknown where a file with values is; a group without files has no
            rows.
        """
        rows, nulls = _counts(self.value_count, groups), _counts(self.null_count, groups)
        unbounded = numpy_of(self.min.is_null()) & numpy_of(self.max.is_null())
        without_values = unbounded & (rows >= 0) & ((rows == 0) | (nulls >= rows))
        aware = np.broadcast_to(np.asarray(self.nan_aware), groups.shape)
        cut = np.broadcast_to(np.asarray(self.truncated), groups.shape)
        return ColumnBounds(
            _extreme(self.min, groups, count, without_values, "min"),
            _extreme(self.max, groups, count, without_values, "max"),
            _sum(nulls, groups, count),
            _sum(rows, groups, count),
            ~_any(~aware & ~without_values, groups, count),
            _any(cut, groups, count) if cut.any() else False,
        )


def _counts(counts: pa.Array | None, groups: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Counts with -1 for unknown."""
    if counts is None:
        return np.full(groups.shape, -1, dtype=np.int64)
    return numpy_of(fill_null(counts.cast(pa.int64()), -1))


def _any(flags: np.ndarray[Any, Any], groups: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = np.bincount(groups[flags], minlength=count) > 0
    return found


def _sum(counts: np.ndarray[Any, Any], groups: np.ndarray[Any, Any], count: int) -> pa.Array:
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, groups, counts)
    return array_of(total, mask=_any(counts < 0, groups, count))


def _extreme(
    values: pa.Array, groups: np.ndarray[Any, Any], count: int, without_values: np.ndarray[Any, Any], which: str
) -> pa.Array:
    """Minimum or maximum per group, null where a file with values has none; a NaN among the maxima is the maximum."""
    import pyarrow.compute as pc

    nan = np.zeros(groups.shape, dtype=bool)
    if is_floating(values.type):
        nan = numpy_of(fill_null(pc.is_nan(values), False))
        values = pc.if_else(array_of(nan), scalar_of(None, values.type), values)
    unknown = numpy_of(values.is_null()) & ~without_values & ~(nan & (which == "max"))
    found = extremes_of_groups(values, groups, count, which)
    result = pc.if_else(array_of(_any(unknown, groups, count)), scalar_of(None, values.type), found)
    if nan.any() and which == "max":
        result = pc.if_else(array_of(_any(nan, groups, count)), scalar_of(float("nan"), values.type), result)
    return result


@dataclass(frozen=True)
class FileStats:
    """What is known about many files.

    Attributes:
        length: Number of files.
        columns: Dotted column name to bounds, each of `length` elements. A column that is not here is unknown.
        expressions: Bound expression (see :func:`~hudimeta.predicate.bind.bind_value`) to bounds, from expression
            indexes.
    """

    length: int
    columns: Mapping[str, ColumnBounds] = field(default_factory=dict)
    expressions: Mapping[Expr, ColumnBounds] = field(default_factory=dict)
