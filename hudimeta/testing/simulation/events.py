"""What the actors of a history saw, each from where it stands: writes, undos, reads and polls. Times are true ones."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.testing.model import ModelTable, Place, Row
from hudimeta.types import Operation

__all__ = [
    "Change",
    "Changes",
    "PollSeen",
    "ReadSeen",
    "SavedSeen",
    "State",
    "UndoDone",
    "WriteDone",
    "WriterOutcome",
    "state_of",
]

State = tuple[tuple[str, str, float], ...]
"""Rows as partition, key and value, sorted."""

Changes = tuple[tuple[str, str, str, str], ...]
"""Changes of rows as operation, key, and the value before and after as text, "" for none; sorted."""

Change = Callable[[ModelTable], Mapping[Place, list[Row]]]
"""What becomes of rows, given a state of the table: the new rows of each place that is touched."""


class WriterOutcome(enum.Enum):
    """How a write ended for its writer."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class WriteDone:
    """A write, as its writer knows it.

    Attributes:
        name: Of the write; its commit carries it.
        operation: What was asked for.
        rows: Of which rows.
        begun, ended: When.
        outcome: How it ended for the writer.
        completion: Of what was acknowledged; None where nothing was to be written.
        error: Of a refused one, as text.
        change: What it makes of the rows that are there, where it does not just bring its own.
        expires: It takes out the partitions that have outlived their time, whichever these are.
    """

    name: str
    operation: Operation
    rows: pa.Table
    begun: float
    ended: float
    outcome: WriterOutcome
    completion: str | None = None
    error: str = ""
    change: Change | None = None
    expires: bool = False

    def __str__(self) -> str:
        keys = ",".join(self.rows["id"].to_pylist()) if self.rows.num_rows else "…"
        error = f" {self.error}" if self.error else ""
        return f"{self.name} {self.operation.value} {keys} {self.outcome.value} {self.completion or ''}{error}"


@dataclass(frozen=True)
class UndoDone:
    """A restore or rollback, as who asked for it knows it.

    Attributes:
        actor: Who.
        what: Was to be done.
        begun, ended: When.
        outcome: How it ended.
        instant: Its requested time, where it was told and something was undone.
        error: Of a refused one, as text.
    """

    actor: str
    what: str
    begun: float
    ended: float
    outcome: WriterOutcome
    instant: str | None = None
    error: str = ""

    def __str__(self) -> str:
        return f"{self.actor} {self.what} {self.outcome.value} {self.instant or ''} {self.error}"


@dataclass(frozen=True)
class ReadSeen:
    """A read of the table.

    Attributes:
        name: Who read what.
        begun, ended: When.
        state: What it saw.
        asked: Which rows it asked for; None for all.
    """

    name: str
    begun: float
    ended: float
    state: State
    asked: Callable[[Row], bool] | None = None


@dataclass(frozen=True)
class SavedSeen:
    """A saved moment as it is read at the end: requested time of the write that was saved, and the rows."""

    instant: str
    state: State


@dataclass(frozen=True)
class PollSeen:
    """A read of what changed, and what it saw.

    Attributes:
        name: Who asked.
        begin, end: Completion times, the first excluded.
        state: The rows that an incremental query answered with.
        changes: The changes that a CDC query answered with; None of an incremental one.
    """

    name: str
    begin: str
    end: str
    state: State = ()
    changes: Changes | None = None

    def __str__(self) -> str:
        return f"{self.name} of {self.begin} to {self.end}"


def state_of(table: pa.Table) -> State:
    """The state that some rows are."""
    return tuple(sorted(zip(*(table[name].to_pylist() for name in ("part", "id", "x")), strict=True)))
