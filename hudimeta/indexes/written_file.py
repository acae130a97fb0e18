"""What the writer of a base file hands to the coordinator: plain data, small enough for a Spark commit message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hudimeta.formats.avro.commit_metadata import write_stat
from hudimeta.indexes.facts import FileFacts
from hudimeta.storage import join
from hudimeta.table.file_names import parse_base_file, parse_log_file

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["WrittenFile"]


@dataclass(frozen=True)
class WrittenFile:
    """One new base or log file.

    Attributes:
        partition_path: "" for a table without partitions.
        file_id, name: Of the file.
        size: Bytes.
        rows: In the file.
        inserted, updated, deleted: Rows of the batch that went into it.
        outdated: Those that lost.
        previous_name, previous_instant: The base file that this one supersedes, None for a new file group and for logs.
        log_instant: Of a log file the instant that wrote it; None for a base file.
        begins_group: A log file that is the first file of its group.
        statistics: Rows of `hudimeta.metadata.column_stats.SCHEMA`, one a column; no rows for a file without rows, and
            for tables that keep no statistics.
        facts: What the other indexes want to know of its rows.
        slice_names: Of a log file in a table that captures changes the base file, "" for none, and the earlier log files.
        change_files: Name and bytes of the change files that were written beside it.
        groups_kept: Row groups of the superseded file that it has as they were.
        chunks_kept: Of other row groups of that file the column chunks that it has as they were.
        figures: More of its stat, by their names there, which stand in the place of the others.
    """

    partition_path: str
    file_id: str
    name: str
    size: int
    rows: int
    inserted: int
    updated: int
    deleted: int
    statistics: pa.Table
    previous_name: str | None = None
    previous_instant: str | None = None
    log_instant: str | None = None
    begins_group: bool = False
    facts: FileFacts = field(default_factory=FileFacts)
    change_files: tuple[tuple[str, int], ...] = ()
    slice_names: tuple[str, ...] = ()
    outdated: int = 0
    groups_kept: int = 0
    chunks_kept: int = 0
    figures: Mapping[str, int] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Relative to the table."""
        return join(self.partition_path, self.name)

    @property
    def paths(self) -> tuple[str, ...]:
        """Of the file and its change files, relative to the table."""
        return (self.path, *(join(self.partition_path, name) for name, _ in self.change_files))

    @property
    def is_new_group(self) -> bool:
        """True when the file begins a file group."""
        return self.begins_group or (self.previous_name is None and self.log_instant is None)

    def stat(self) -> dict[str, Any]:
        """As commit metadata has it."""
        facts: dict[str, Any] = {
            "fileId": self.file_id,
            "path": self.path,
            "partitionPath": self.partition_path,
            "fileSizeInBytes": self.size,
            "numWrites": self.rows,
            "numInserts": self.inserted,
            "numUpdateWrites": self.updated,
            "numDeletes": self.deleted,
        }
        if self.previous_name is not None:
            facts |= {"prevCommit": self.previous_instant, "prevBaseFile": self.previous_name}
        if self.log_instant is not None:
            log = parse_log_file(self.name)
            facts |= {"prevCommit": self.log_instant, "logVersion": 1 if log is None else log.version}
        if self.slice_names:
            base = parse_base_file(self.slice_names[0])
            facts |= {"baseFile": self.slice_names[0], "logFiles": [*self.slice_names[1:], self.name]}
            facts |= {"prevCommit": base.instant} if base is not None else {}
        if self.change_files:
            facts["cdcStats"] = {join(self.partition_path, name): size for name, size in self.change_files}
        return write_stat(**{**facts, **self.figures})
