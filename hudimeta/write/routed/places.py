"""Where rows of a routed write go: a file group that is there, one that is begun, or wherever there is room in a partition."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hudimeta.table.key_file import KeyFile
from hudimeta.write.routed.exchange import Span

__all__ = ["Place", "PlacedRows", "Role"]


class Role(enum.IntEnum):
    """What rows are to their file group: see `GroupRewrite` and `NewGroup`."""

    FRESH = 0
    CHANGED = 1
    UNRESOLVED = 2
    REMOVED = 3
    BEGINNING = 4


@dataclass(frozen=True, slots=True)
class Place:
    """Where some rows go.

    Attributes:
        role: As what.
        partition_path: Their partition.
        file_id: Of the file group; "" for rows that may go to any.
    """

    role: Role
    partition_path: str
    file_id: str = ""


@dataclass(frozen=True)
class PlacedRows:
    """What one task found out about its rows, which it laid aside.

    Attributes:
        spans: Where the rows for each place are.
        files: The file groups among the places, by partition path and id.
        rows: How many rows came.
        as_logs: File groups that are begun begin with log files.
        title, note, exact, by_range, by_bloom, read: Of the look-up, see `Tagging`.
        looked_up: There was one.
        asked, hits, unmatched, moved, outdated, dropped: Keys looked for and found, deletes without a row, rows that change
            their partition, that were left out because an older row is newer, that were left out because their key is there.
        notes: For the report.
    """

    spans: Mapping[Place, Sequence[Span]]
    files: Mapping[tuple[str, str], KeyFile] = field(default_factory=dict)
    rows: int = 0
    as_logs: bool = False
    looked_up: bool = False
    title: str = ""
    note: str = ""
    exact: bool = True
    by_range: int = 0
    by_bloom: int = 0
    read: int = 0
    asked: int = 0
    hits: int = 0
    unmatched: int = 0
    moved: int = 0
    outdated: int = 0
    dropped: int = 0
    notes: tuple[str, ...] = ()
