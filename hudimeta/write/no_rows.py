"""Writes that have nothing to do: they leave nothing on the timeline, unless `hoodie.allow.empty.commit` asks for it."""

from __future__ import annotations

from hudimeta.commit.coordinator import OpenWrite
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import options as keys
from hudimeta.types import Operation

__all__ = ["NO_ROWS", "commits_no_rows", "nothing_left"]

NO_ROWS = f"there were no rows, and nothing was committed ({keys.EMPTY_COMMIT.key})"
"""What a report says then."""


def commits_no_rows(session: WriteSession, operation: Operation) -> bool:
    """Whether a write without rows is a commit all the same: an overwrite may still empty partitions."""
    return operation.overwrites or session.options.get(keys.EMPTY_COMMIT)


def nothing_left(session: WriteSession, operation: Operation, note: str = "", write: OpenWrite | None = None) -> CommitReport:
    """What is said of a write that has nothing to do; one that has begun is taken back."""
    if write is not None:
        session.coordinator.withdraw(write)
    notes = (*session.notes, note) if note else tuple(session.notes)
    return CommitReport("", None, operation.value, rolled_back=write.rolled_back if write is not None else (), notes=notes)
