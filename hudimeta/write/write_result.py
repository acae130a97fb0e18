"""What the work of a write came to, before it is published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hudimeta.indexes.record_window.runs import RunStamp
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.write.execution import WrittenPieces

__all__ = ["WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """What a write wrote.

    Attributes:
        files: New base and log files.
        replaced: File ids that leave the table, by partition path; of overwrites only.
        keyed_partitions: See `check_conflicts`.
        index: How existing rows were found, in words.
        unmatched, dropped, looked_up, found, moved: See `CommitReport`.
        pieces: What was written from memory, and can be written again; None where tasks or portions wrote.
        rests_on_rows: The rows were computed from what the table held.
        window_runs: What tasks wrote for the record window.
    """

    files: Sequence[WrittenFile]
    replaced: Mapping[str, Sequence[str]]
    keyed_partitions: frozenset[str] | None
    index: str = ""
    unmatched: int = 0
    dropped: int = 0
    looked_up: int = 0
    found: int = 0
    moved: int = 0
    pieces: WrittenPieces | None = None
    rests_on_rows: bool = False
    window_runs: Sequence[RunStamp] = ()
