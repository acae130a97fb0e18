"""Minima, maxima and sums of groups of rows, for few rows without Arrow's engine of queries, whose import brings pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of

__all__ = ["extremes_of_groups", "sums_of_groups"]

_Groups = npt.NDArray[Any]
_FEW = 8192  # to sort them takes less time than to group them


def extremes_of_groups(values: pa.Array, groups: _Groups, count: int, which: str) -> pa.Array:
    """Minimum or maximum of each group; null where it has no values. NaN counts only where there are no other numbers.

    Args:
        values: Of a type that Arrow sorts.
        groups: The group of each value, from 0.
        count: Number of groups.
        which: `min` or `max`.
    """
    held, at = (_by_sorting if len(values) <= _FEW else _by_grouping)(values, groups, count, which)
    return held.take(array_of(at, mask=at < 0))


def sums_of_groups(values: pa.Array, groups: _Groups, count: int) -> pa.Array:
    """Sum of the integers of each group, as int64; null where it has none."""
    total = np.zeros(count, np.int64)
    np.add.at(total, groups, numpy_of(fill_null(values, 0)))
    return array_of(total, mask=np.bincount(groups[numpy_of(values.is_valid())], minlength=count) == 0)


def _by_sorting(values: pa.Array, groups: _Groups, count: int, which: str) -> tuple[pa.Array, _Groups]:
    """Values, and for each group the place of its extreme among them, -1 without one."""
    import pyarrow.compute as pc

    order = numpy_of(pc.array_sort_indices(values, order="ascending" if which == "min" else "descending")).astype(np.int64)
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values))
    first = np.full(count, len(values))
    np.minimum.at(first, groups, rank)
    return values, np.append(order, -1)[first]


def _by_grouping(values: pa.Array, groups: _Groups, count: int, which: str) -> tuple[pa.Array, _Groups]:
    found = pa.table({"group": array_of(groups), "value": values}).group_by("group").aggregate([("value", which)])
    at = np.full(count, -1)
    at[numpy_of(found["group"])] = np.arange(found.num_rows)
    return found[f"value_{which}"].combine_chunks(), at
