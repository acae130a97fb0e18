"""CommitReport: what a write did, at what cost; and what of it a commit's metadata keeps.

The write stats of a commit say what became of rows and files. What they do not say (how rows were found, seconds, requests
until the moment of publication) our commits carry as JSON under `hudimeta.report`, so that whoever did not run the write can
ask: Spark commits in a process of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hudimeta.errors import TableError
from hudimeta.formats.json_text import parse_json
from hudimeta.reports import Report
from hudimeta.types import Operation

if TYPE_CHECKING:
    from hudimeta.timeline import Timeline
    from hudimeta.types import Instant

__all__ = ["REPORT_KEY", "CommitReport"]

REPORT_KEY = "hudimeta.report"
_KEPT = (
    "unmatched_deletes",
    "dropped_duplicates",
    "outdated",
    "row_groups_kept",
    "column_chunks_kept",
    "rolled_back",
    "index",
    "looked_up",
    "found",
    "moved",
    "notes",
)


@dataclass(frozen=True, repr=False)
class CommitReport(Report):
    """What a commit did.

    Attributes:
        instant: Requested time.
        completion: Completion time; None when nothing was to be written, then nothing was.
        operation: Name as in the commit's metadata.
        inserted, updated, deleted: Rows. Those of file groups that an overwrite or `delete_partition` took out are not
            counted, since nobody reads them.
        unmatched_deletes: Keys to delete that the table did not have.
        dropped_duplicates: Rows that an insert left out because the table had their key.
        outdated: Updates and deletes that changed nothing, because the table's row has a greater ordering value. What goes to
            a log file is not counted: there readers decide.
        files_written: Base and log files.
        log_files_written: How many of them are log files.
        bytes_written: Of both.
        file_groups_added: How many file groups were begun.
        partitions: How many partitions got files.
        change_files_written: Files of captured changes, which are not counted above.
        file_groups_replaced: How many an overwrite took out.
        row_groups_kept: Row groups of superseded base files that were copied without decoding: none of their rows changes.
        column_chunks_kept: Of the other row groups the column chunks that were copied: none of their cells changes.
        rolled_back: Instants of dead writes that were rolled back first.
        index: How existing rows were found, and what it cost, in words; empty when nothing was looked up.
        looked_up, found: Keys asked of the index, and those that it knew.
        moved: Rows that changed their partition.
        compacted_metadata: True when the metadata table was compacted as well.
        attempts: How often the write was tried; more than one after conflicts.
        seconds: By phase.
        requests: By (kind, purpose).
        notes: Whatever else the user should know.
    """

    instant: str
    completion: str | None
    operation: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unmatched_deletes: int = 0
    dropped_duplicates: int = 0
    outdated: int = 0
    files_written: int = 0
    log_files_written: int = 0
    change_files_written: int = 0
    partitions: int = 0
    file_groups_added: int = 0
    bytes_written: int = 0
    file_groups_replaced: int = 0
    row_groups_kept: int = 0
    column_chunks_kept: int = 0
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
        notes = [f"  note      {note}" for note in self.notes]
        if self.completion is None:
            return "\n".join([f"{self.operation}: nothing to write", *notes])
        lines = [
            f"{self.operation} at {self.instant}: "
            f"{self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted",
            f"  files     {self._files} ({self.bytes_written:,} bytes)"
            + (f", {self.log_files_written} of them log files" if self.log_files_written else "")
            + (f", and {self.change_files_written} change files" if self.change_files_written else ""),
            f"  groups    {self.file_groups_added} new"
            + (f", {self.file_groups_replaced} replaced" if self.file_groups_replaced else "")
            + (", whose rows are not counted as deleted" if self.rows_left_uncounted else ""),
        ]
        if self.row_groups_kept:
            lines.append(f"  kept      {self.row_groups_kept:,} row groups of superseded files, copied without decoding")
        if self.column_chunks_kept:
            lines.append(f"  copied    {self.column_chunks_kept:,} column chunks of superseded files, of which no cell changes")
        if self.index:
            lines.append(f"  look-up   {self.index}")
        if self.unmatched_deletes:
            lines.append(f"  unmatched {self.unmatched_deletes:,} keys to delete were not in the table")
        if self.dropped_duplicates:
            lines.append(f"  dropped   {self.dropped_duplicates:,} rows whose key was in the table")
        if self.outdated:
            lines.append(f"  outdated  {self.outdated:,} rows lost against rows of the table with greater ordering values")
        if self.attempts > 1:
            lines.append(f"  attempts  {self.attempts}, after conflicts with other writers")
        if self.rolled_back:
            lines.append(f"  rolled back before: {', '.join(self.rolled_back)}")
        if self.compacted_metadata:
            lines.append("  metadata table compacted")
        if self.requests:
            lines.append("  requests  " + ", ".join(_by_kind(self.requests)))
        if self.seconds:
            lines.append("  seconds   " + ", ".join(f"{name} {took:.2f}" for name, took in self.seconds.items()))
        return "\n".join([*lines, *notes])

    @property
    def rows_left_uncounted(self) -> bool:
        """True where rows went with whole file groups, and nobody counted them: `deleted` does not say how many rows went."""
        rewritten = self.operation.upper() in (Operation.CLUSTER.value, Operation.COMPACT.value)
        return self.file_groups_replaced > 0 and not rewritten

    @property
    def _files(self) -> str:
        if not self.partitions:
            return f"{self.files_written:,} written"
        return f"{self.files_written:,} written in {self.partitions:,} partition{'s' if self.partitions > 1 else ''}"

    def encoded(self) -> str:
        """What a commit's metadata keeps, beside its write stats."""
        kept = {name: value for name in _KEPT if (value := getattr(self, name))}
        kept["seconds"] = {name: round(took, 3) for name, took in self.seconds.items()}
        kept["requests"] = {f"{kind} {purpose}": n for (kind, purpose), n in sorted(self.requests.items())}
        return json.dumps(kept, separators=(",", ":"))

    @classmethod
    def found_on(cls, timeline: Timeline, instant: str | None = None) -> CommitReport:
        """The report of a completed write.

        Args:
            timeline: Of the table.
            instant: Its requested time; None for the newest write.

        Raises:
            TableError: There is no such write on the active timeline.
        """
        found = next((i for i in reversed(timeline.writes) if instant in (None, i.time)), None)
        if found is None:
            what = "there is no completed write" if instant is None else f"{instant} is no completed write"
            raise TableError(f"{what} on the active timeline", "See t.timeline for what is there.")
        return cls.of_commit(found, timeline.metadata(found))

    @classmethod
    def of_commit(cls, instant: Instant, metadata: Mapping[str, Any]) -> CommitReport:
        """The report of a commit on the timeline, whoever wrote it; what its metadata does not say is missing.

        Args:
            instant: A completed write.
            metadata: Its metadata.
        """
        stats = [stat for part in metadata["partitionToWriteStats"].values() for stat in part]
        text = (metadata.get("extraMetadata") or {}).get(REPORT_KEY)
        kept = _report_kept(text)
        facts = {name: kept[name] for name in _KEPT if name in kept}
        for name in ("rolled_back", "notes"):
            facts[name] = tuple(facts.get(name, ()))
        logs = sum(stat["logVersion"] is not None for stat in stats)
        return cls(
            instant.time,
            instant.completion,
            metadata.get("operationType") or instant.action.value,
            inserted=_sum(stats, "numInserts"),
            updated=_sum(stats, "numUpdateWrites"),
            deleted=_sum(stats, "numDeletes"),
            files_written=len(stats),
            log_files_written=logs,
            change_files_written=sum(len(stat["cdcStats"] or {}) for stat in stats),
            partitions=len(metadata["partitionToWriteStats"]),
            file_groups_added=sum(stat["prevCommit"] in (None, "", "null") for stat in stats),
            bytes_written=_sum(stats, "totalWriteBytes"),
            file_groups_replaced=sum(len(ids) for ids in (metadata.get("partitionToReplaceFileIds") or {}).values()),
            seconds=kept.get("seconds", {}),
            requests={(k.partition(" ")[0], k.partition(" ")[2]): n for k, n in kept.get("requests", {}).items()},
            **facts,
        )


def _report_kept(text: str | None) -> dict[str, Any]:
    """What our commit says of itself; nothing where anybody else wrote something there."""
    try:
        kept = parse_json(text) if text else {}
    except ValueError:
        kept = {}
    return kept if isinstance(kept, dict) else {}


def _sum(stats: list[Mapping[str, Any]], name: str) -> int:
    return sum(stat[name] or 0 for stat in stats)


def _by_kind(requests: Mapping[tuple[str, str], int]) -> list[str]:
    """`12 GET (7 metadata, 5 data)`, one a kind."""
    kinds: dict[str, dict[str, int]] = {}
    for (kind, purpose), n in sorted(requests.items()):
        kinds.setdefault(kind, {})[purpose] = n
    shown = []
    for kind, purposes in kinds.items():
        parts = ", ".join(f"{n} {purpose}" for purpose, n in sorted(purposes.items(), key=lambda one: -one[1]))
        shown.append(f"{sum(purposes.values())} {kind} ({parts})")
    return shown
