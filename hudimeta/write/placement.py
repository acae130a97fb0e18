"""Where new rows go: small files first, then new file groups of about the target size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["FileSizing", "Placement", "SmallFile", "place", "rows_a_file"]


@dataclass(frozen=True)
class FileSizing:
    """How large base files are meant to be, in bytes; `small_limit` 0 turns filling off. `row_bytes` is an estimate."""

    target: int
    small_limit: int
    row_bytes: float


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A base file with room."""

    file_id: str
    size: int


@dataclass(frozen=True)
class Placement:
    """Rows of one partition and where they go.

    Attributes:
        file_id: The small file that receives them; None for a new file group. rows: int64 positions in the batch.
    """

    file_id: str | None
    rows: np.ndarray[Any, Any]


def rows_a_file(sizing: FileSizing) -> int:
    """How many rows fill a new file."""
    return max(1, int(sizing.target / sizing.row_bytes))


def place(rows: np.ndarray[Any, Any], small: Sequence[SmallFile], sizing: FileSizing) -> list[Placement]:
    """Assign the new rows of one partition, keeping their order.

    Args:
        rows: Positions in the batch. small: Files of the partition; those at or above the limit are passed over.
        sizing: Sizes.
    """
    placements: list[Placement] = []
    at = 0
    for file in sorted(small, key=lambda f: f.size):
        if at >= len(rows) or file.size >= sizing.small_limit:
            break
        room = int((sizing.target - file.size) / sizing.row_bytes)
        if room > 0:
            placements.append(Placement(file.file_id, rows[at : at + room]))
            at += room
    left = len(rows) - at
    if left > 0:
        # Equal shares, so that the last file is not a crumb that the next write must rewrite.
        parts = -(-left // rows_a_file(sizing))
        placements += [Placement(None, part) for part in np.array_split(rows[at:], parts)]
    return placements


def row_bytes_of(stats: Mapping[str, Sequence[Mapping[str, Any]]], fallback: float) -> float:
    """Bytes a row as the write stats of a commit show them; `fallback` when they hold too little to tell."""
    size = sum(stat["totalWriteBytes"] or 0 for part in stats.values() for stat in part)
    rows = sum(stat["numWrites"] or 0 for part in stats.values() for stat in part)
    return size / rows if rows and size > (1 << 20) else fallback
