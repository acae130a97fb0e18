"""Sorting rows out by what they have in common: one sort, however many shares come out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["positions_by_number", "positions_by_text"]

Positions = npt.NDArray[np.int64]


def positions_by_number(numbers: npt.NDArray[Any]) -> list[tuple[int, Positions]]:
    """Where each number stands.

    Args:
        numbers: One integer a row.

    Returns:
        Each distinct number, ascending, with the positions (int64, ascending) of its rows; [] without rows.
    """
    if not len(numbers):  # split never gives no share at all
        return []
    order = np.argsort(numbers, kind="stable")
    distinct, starts = np.unique(numbers[order], return_index=True)
    return list(zip(distinct.tolist(), np.split(order, starts[1:]), strict=True))


def positions_by_text(texts: pa.StringArray) -> dict[str, Positions]:
    """Where each text stands: positions (int64, ascending) by text, in order of first appearance.

    Args:
        texts: One a row, none of them null.
    """
    coded = texts.dictionary_encode()
    names = coded.dictionary.to_pylist()
    return {names[number]: at for number, at in positions_by_number(coded.indices.to_numpy())}
