"""Where new rows go: small files first, then new file groups of about the target size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from hudimeta.commit.session import WriteSession
from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.table.key_file import KeyFile
from hudimeta.timeline import Timeline
from hudimeta.types import Operation, TableType

__all__ = ["FileSizing", "Placement", "SmallFile", "place", "rows_a_file", "shares_of"]


@dataclass(frozen=True)
class FileSizing:
    """How large base files are meant to be, in bytes, and how new rows come to them.

    Attributes:
        target: Of a new file.
        small_limit: Files below it are filled; 0 turns filling off.
        row_bytes: An estimate.
        into_logs: New rows go to log files; a slice counts with its logs.
        rows: Of a new file, where options say how many; None for what its size allows.
        candidates: How many files of a partition are filled at most; None for all small ones.
    """

    target: int
    small_limit: int
    row_bytes: float
    into_logs: bool = False
    rows: int | None = None
    candidates: int | None = None

    @classmethod
    def of(cls, session: WriteSession, timeline: Timeline, operation: Operation, *, into_bases: bool = False) -> FileSizing:
        """Target sizes of a write, with the bytes a row that the newest write shows.

        Args:
            session: The write.
            timeline: Of the table.
            operation: What is done.
            into_bases: New rows go to base files, whatever the options say of log files.
        """
        options, by_logs = session.options, session.properties.type is TableType.MERGE_ON_READ
        adds = operation in (Operation.INSERT, Operation.UPSERT) and not into_bases
        into_logs = by_logs and adds and options.get(keys.LOG_INSERTS)
        found = timeline.latest_schema()
        stats = timeline.metadata(found[0])["partitionToWriteStats"] if found else {}
        return cls(
            options.get(keys.MAX_FILE_SIZE),
            # Where writers do not block each other, new rows go to new files: a base file is rewritten by one writer alone.
            0 if session.concurrency.non_blocking is not None else options.get(keys.SMALL_FILE_LIMIT),
            _row_bytes_of(stats, float(options.get(keys.RECORD_SIZE_ESTIMATE))),
            into_logs,
            _rows_asked_for(options, operation),
            options.get(keys.SMALL_CANDIDATES) if by_logs and not into_logs else None,
        )

    def open_files(self, files: Sequence[KeyFile]) -> dict[str, KeyFile]:
        """The slices that may receive new rows, by file id.

        A slice with log files is left alone where its base file would have to be rewritten: a compaction will do that anyway.
        """
        found = [file for file in files if not file.busy and (self.into_logs or not file.logs)]
        if self.candidates is not None:
            small = sorted((file for file in found if file.size < self.small_limit), key=lambda file: file.size)
            found = small[: self.candidates]
        return {file.file_id: file for file in found}


_COUNTED = (Operation.INSERT, Operation.UPSERT, Operation.INSERT_OVERWRITE, Operation.INSERT_OVERWRITE_TABLE)
"""What can count the rows of a new file; bulk inserts go by bytes, as in Apache Hudi."""


def _rows_asked_for(options: Options, operation: Operation) -> int | None:
    by_bytes = operation not in _COUNTED or options.get(keys.SPLIT_BY_SIZE)
    return None if by_bytes else options.get(keys.SPLIT_ROWS)


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A file group with room, and the bytes of its newest slice."""

    file_id: str
    size: int

    @classmethod
    def of(cls, file: KeyFile) -> SmallFile:
        """A slice."""
        return cls(file.file_id, file.size + sum(file.log_sizes))


@dataclass(frozen=True)
class Placement:
    """Rows of one partition and where they go.

    Attributes:
        file_id: The small file that receives them; None for a new file group.
        rows: int64 positions in the batch.
    """

    file_id: str | None
    rows: np.ndarray[Any, Any]


def rows_a_file(sizing: FileSizing) -> int:
    """How many rows fill a new file."""
    return sizing.rows or max(1, int(sizing.target / sizing.row_bytes))


def place(rows: np.ndarray[Any, Any], small: Sequence[SmallFile], sizing: FileSizing) -> list[Placement]:
    """Assign the new rows of one partition, keeping their order.

    Args:
        rows: Positions in the batch.
        small: Files of the partition; those at or above the limit are passed over.
        sizing: Sizes.
    """
    return [Placement(file_id, rows[start:stop]) for file_id, start, stop in shares_of(len(rows), small, sizing)]


def shares_of(count: int, small: Sequence[SmallFile], sizing: FileSizing) -> list[tuple[str | None, int, int]]:
    """The same for so many rows: the file id (None for a new file group) and which rows, from one number up to another."""
    shares: list[tuple[str | None, int, int]] = []
    at = 0
    for file in sorted(small, key=lambda f: f.size):
        if at >= count or file.size >= sizing.small_limit:
            break
        room = int((sizing.target - file.size) / sizing.row_bytes)
        if room > 0:
            shares.append((file.file_id, at, min(at + room, count)))
            at += room
    left = count - at
    if left > 0:
        # Equal shares, so that the last file is not a crumb that the next write must rewrite.
        parts = -(-left // rows_a_file(sizing))
        size, longer = divmod(left, parts)
        borders = [at + n * size + min(n, longer) for n in range(parts + 1)]
        shares += [(None, start, stop) for start, stop in pairwise(borders)]
    return shares


def _row_bytes_of(stats: Mapping[str, Sequence[Mapping[str, Any]]], fallback: float) -> float:
    """Bytes a row as the write stats of a commit show them; `fallback` when they hold too little to tell."""
    size = sum(stat["totalWriteBytes"] or 0 for part in stats.values() for stat in part)
    rows = sum(stat["numWrites"] or 0 for part in stats.values() for stat in part)
    return size / rows if rows and size > (1 << 20) else fallback
