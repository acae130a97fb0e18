"""What a clustering did to the layout of a table: files, bytes, and how many files a filter leaves out before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hudimeta.commit.report import CommitReport
from hudimeta.reports import Report
from hudimeta.services.space_curves import Numbers

__all__ = ["ClusteringReport", "FilesRead", "GroupLayout", "files_read", "shares_skipped"]


@dataclass(frozen=True)
class FilesRead:
    """How many files of a group a filter on one value of a column reads, on average over the group's rows.

    Attributes:
        before, after: By their smallest and greatest values.
    """

    before: float
    after: float


@dataclass(frozen=True)
class GroupLayout:
    """What a group's files were and are.

    Attributes:
        read: Of a filter on each column that rows were sorted by.
        files_before, files_after: How many.
    """

    read: tuple[FilesRead, ...]
    files_before: int
    files_after: int


@dataclass(frozen=True, repr=False)
class ClusteringReport(Report):
    """What a clustering did.

    Attributes:
        commit: The commit.
        files_before, bytes_before: Base and log files that were replaced.
        files_after, bytes_after: Files that took their place.
        skipped: By column, the share of files that a filter on one of its values leaves out, before and after; of the columns
            that rows were sorted by.
        groups_copied: Groups whose files were put together without being decoded; None where that was not asked for.
        decoded_because: Why others were decoded.
    """

    commit: CommitReport
    files_before: int
    bytes_before: int
    files_after: int
    bytes_after: int
    skipped: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    groups_copied: int | None = None
    decoded_because: tuple[str, ...] = ()

    @property
    def instant(self) -> str:
        """Requested time."""
        return self.commit.instant

    def __str__(self) -> str:
        lines = [
            str(self.commit),
            f"  clustered {self.files_before:,} files ({self.bytes_before:,} bytes) into "
            f"{self.files_after:,} ({self.bytes_after:,} bytes)",
        ]
        lines += [
            f"  layout    a filter on one value of {name} leaves out {after:.0%} of the files, before {before:.0%}"
            for name, (before, after) in self.skipped.items()
        ]
        if self.groups_copied is not None:
            lines.append(f"  copied    {self.groups_copied:,} groups without decoding them")
        lines += [f"  decoded   the other groups: {reason}" for reason in self.decoded_because]
        return "\n".join(lines)


def files_read(values: Numbers, before: Sequence[int], after: Sequence[int], order: npt.NDArray[np.int64] | None) -> FilesRead:
    """How many files a filter on one value reads.

    Args:
        values: Of the rows as they were, from `ordinals`.
        before: Rows of each file before.
        after: Rows of each file after.
        order: Where the rows stand now; None as before.
    """
    spread = np.sort(values)
    moved = values if order is None else values[order]
    return FilesRead(_touched(values, before, spread), _touched(moved, after, spread))


def _touched(values: Numbers, counts: Sequence[int], spread: Numbers) -> float:
    rows = np.array([count for count in counts if count], np.int64)
    if not len(rows):
        return 0.0
    starts = np.concatenate([[0], np.cumsum(rows)[:-1]])
    lows, highs = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    held = np.searchsorted(spread, highs, side="right") - np.searchsorted(spread, lows, side="left")
    return float(held.sum() / len(spread))


def shares_skipped(columns: Sequence[str], groups: Sequence[GroupLayout]) -> dict[str, tuple[float, float]]:
    """The share of files that filters leave out, over all groups.

    Args:
        columns: Which rows were sorted by.
        groups: Of the clustering.
    """
    before, after = sum(group.files_before for group in groups), sum(group.files_after for group in groups)
    found = {}
    for at, name in enumerate(columns):
        read = [group.read[at] for group in groups]
        old, new = sum(one.before for one in read), sum(one.after for one in read)
        found[name] = (max(0.0, 1 - old / before) if before else 0.0, max(0.0, 1 - new / after) if after else 0.0)
    return found
