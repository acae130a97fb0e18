"""Sorting rows out by what they have in common: one sort, however many shares come out of it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.bulk_texts import coded
from hudimeta.formats.plain_arrays import array_of, numpy_of

__all__ = ["positions_by_number", "positions_by_text", "rows_at"]

Positions = npt.NDArray[np.int64]

_FEW = (1 << 16) - 1
_ROWS_A_CHUNK = 4096
"""With fewer of them the calls cost more than the copies."""


def positions_by_number(numbers: npt.NDArray[Any]) -> list[tuple[int, Positions]]:
    """Where each number stands.

    Args:
        numbers: One integer a row.

    Returns:
        Each distinct number, ascending, with the positions (int64, ascending) of its rows; [] without rows.
    """
    if not len(numbers):  # split never gives no share at all
        return []
    least, most = int(numbers.min()), int(numbers.max())
    if most - least > _FEW:
        order = np.argsort(numbers, kind="stable")
        distinct, starts = np.unique(numbers[order], return_index=True)
        return list(zip(distinct.tolist(), np.split(order, starts[1:]), strict=True))
    # Numbers of 16 bits are sorted by their digits, in a time that grows with the rows alone.
    near = (numbers - least).astype(np.uint16)
    order, counts = np.argsort(near, kind="stable"), np.bincount(near)
    found = np.flatnonzero(counts)
    return list(zip((found + least).tolist(), np.split(order, np.cumsum(counts[found])[:-1]), strict=True))


def positions_by_text(texts: pa.StringArray) -> dict[str, Positions]:
    """Where each text stands: positions (int64, ascending) by text, in order of first appearance.

    Args:
        texts: One a row, none of them null.
    """
    codes = coded(texts)
    names = codes.dictionary.to_pylist()
    return {names[number]: at for number, at in positions_by_number(numpy_of(codes.indices))}


def rows_at(table: pa.Table, at: Positions) -> pa.Table:
    """The rows of a table at some positions, in that order.

    Arrow copies all chunks of a column into one before it takes rows of it. Ascending positions are taken from each chunk by
    itself, so that what is not wanted is not copied: a share of every partition is taken of the same rows.

    Args:
        table: Of any number of chunks.
        at: Positions, in any order.
    """
    parts = table.to_batches()
    if len(parts) < 2 or len(table) < len(parts) * _ROWS_A_CHUNK or (np.diff(at) < 0).any():
        return table.take(array_of(at))
    ends = np.cumsum([len(part) for part in parts])
    cuts = np.searchsorted(at, np.append(0, ends)).astype(np.int64)
    shares = zip(parts, ends, itertools.pairwise(map(int, cuts)), strict=True)
    found = [part.take(array_of(at[low:high] - (end - len(part)))) for part, end, (low, high) in shares if low < high]
    return pa.Table.from_batches(found, table.schema)
