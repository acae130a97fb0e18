"""CommitReport: what a write did, at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["CommitReport"]


@dataclass(frozen=True)
class CommitReport:
    """What a commit did.

    Attributes:
        instant: Requested time. completion: Completion time; None when nothing was to be written, then nothing was.
        operation: Name as in the commit's metadata.
        inserted, updated, deleted: Rows. unmatched_deletes: Keys to delete that the table did not have.
        dropped_duplicates: Rows that an insert left out because the table had their key.
        files_written: Base files. file_groups_added: How many of them began a file group. bytes_written: Of base files.
        file_groups_replaced: How many an overwrite took out.
        rolled_back: Instants of dead writes that were rolled back first.
        index: How existing rows were found, and what it cost, in words; empty when nothing was looked up.
        looked_up, found: Keys asked of the index, and those that it knew. moved: Rows that changed their partition.
        compacted_metadata: True when the metadata table was compacted as well.
        attempts: How often the write was tried; more than one after conflicts.
        seconds: By phase. requests: By (kind, purpose). notes: Whatever else the user should know.
    """

    instant: str
    completion: str | None
    operation: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unmatched_deletes: int = 0
    dropped_duplicates: int = 0
    files_written: int = 0
    file_groups_added: int = 0
    bytes_written: int = 0
    file_groups_replaced: int = 0
    rolled_back: tuple[str, ...] = ()
    index: str = ""
    looked_up: int = 0
    found: int = 0
    moved: int = 0
    compacted_metadata: bool = False
    attempts: int = 1
    seconds: Mapping[str, float] = field(default_factory=dict)
    requests: Mapping[tuple[str, str], int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.completion is None:
            return f"{self.operation}: nothing to write"
        lines = [
            f"{self.operation} at {self.instant}: "
            f"{self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted",
            f"  files     {self.files_written} written ({self.bytes_written:,} bytes), {self.file_groups_added} new file groups"
            + (f", {self.file_groups_replaced} replaced" if self.file_groups_replaced else ""),
        ]
        if self.index:
            lines.append(f"  look-up   {self.index}")
        if self.unmatched_deletes:
            lines.append(f"  unmatched {self.unmatched_deletes:,} keys to delete were not in the table")
        if self.dropped_duplicates:
            lines.append(f"  dropped   {self.dropped_duplicates:,} rows whose key was in the table")
        if self.attempts > 1:
            lines.append(f"  attempts  {self.attempts}, after conflicts with other writers")
        if self.rolled_back:
            lines.append(f"  rolled back before: {', '.join(self.rolled_back)}")
        if self.compacted_metadata:
            lines.append("  metadata table compacted")
        if self.requests:
            by_kind: dict[str, int] = {}
            for (kind, _), n in self.requests.items():
                by_kind[kind] = by_kind.get(kind, 0) + n
            lines.append("  requests  " + ", ".join(f"{n} {k}" for k, n in sorted(by_kind.items())))
        if self.seconds:
            lines.append("  seconds   " + ", ".join(f"{name} {took:.2f}" for name, took in self.seconds.items()))
        lines += [f"  note      {note}" for note in self.notes]
        return "\n".join(lines)
