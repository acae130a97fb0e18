"""Indexes that somebody else than the committing process writes, because their records grow with the rows of a commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hudimeta.indexes.protocol import CommitChange, IndexDelta
from hudimeta.metadata.writer import WrittenLog

__all__ = ["IndexesApart", "WrittenApart"]


@dataclass(frozen=True)
class WrittenApart:
    """What was written.

    Attributes:
        logs: The log files, to be named by the metadata table's commit.
        deltas: By metadata partition what became of the index, without records.
    """

    logs: Sequence[WrittenLog]
    deltas: Mapping[str, IndexDelta]


class IndexesApart(Protocol):
    """Writes some indexes of a commit."""

    def keeps(self, partition: str) -> bool:
        """True for the metadata partitions that it writes."""
        ...

    def write(self, change: CommitChange, names: Sequence[str], groups: Mapping[str, int]) -> WrittenApart:
        """Write the log files of some metadata partitions, after the metadata table's commit has begun, under the table lock.

        Args:
            change: The commit.
            names: The metadata partitions.
            groups: How many file groups each partition has.
        """
        ...
