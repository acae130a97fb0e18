"""What a metadata table consists of, and whether it is in step with its table: RFC-15's `metadata stats`."""

from __future__ import annotations

from dataclasses import dataclass

from hudimeta.errors import IndexNotReady, MetadataOutOfSync
from hudimeta.metadata import MetadataTable, files
from hudimeta.metadata.group_files import GroupBaseFile, LogFile
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.redaction import hidden
from hudimeta.reports import Report
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import Storage, join
from hudimeta.types import Action

__all__ = ["MetadataStats", "PartitionSize", "stats_of"]


@dataclass(frozen=True)
class PartitionSize:
    """Files of the newest slices of one metadata partition.

    Attributes:
        name: Of the partition.
        file_groups: How many it has.
        base_files, base_bytes: Their base files.
        log_files, log_bytes: Their log files.
    """

    name: str
    file_groups: int
    base_files: int
    base_bytes: int
    log_files: int
    log_bytes: int


@dataclass(frozen=True, repr=False)
class MetadataStats(Report):
    """A metadata table in figures.

    Attributes:
        table: Location of the data table.
        in_sync: It has every completed write of the table's active timeline.
        why: Why reads do not use it, "" where they do.
        data_partitions: Partitions of the data table that it lists.
        last_compaction: Instant of its newest completed compaction, None without one.
        partitions: Its own partitions.
    """

    table: str
    in_sync: bool
    why: str
    data_partitions: int = 0
    last_compaction: str | None = None
    partitions: tuple[PartitionSize, ...] = ()

    def total(self, figure: str) -> int:
        """The sum of a figure of `PartitionSize` over all partitions."""
        return sum(getattr(one, figure) for one in self.partitions)

    def figures(self) -> dict[str, str | int | bool]:
        """RFC-15's own names and order."""
        return {
            "basePath": self.table,
            "partitionCount": self.data_partitions,
            "lastCompactionTimestamp": self.last_compaction or "none",
            "isInSync": self.in_sync,
            "logFileCount": self.total("log_files"),
            "totalBaseFileSizeInBytes": self.total("base_bytes"),
            "totalLogFileSizeInBytes": self.total("log_bytes"),
            "baseFileCount": self.total("base_files"),
        }

    def __str__(self) -> str:
        lines = [
            f"{name}: {str(value).lower() if isinstance(value, bool) else value}" for name, value in self.figures().items()
        ]
        return "\n".join([*lines, *([f"not used: {self.why}"] if self.why else [])])


def stats_of(snapshot: Snapshot) -> MetadataStats:
    """Count files and bytes of the metadata table of a snapshot.

    Raises:
        IndexNotReady: The table has none.
    """
    table = hidden(snapshot.storage.root)
    if not snapshot.properties.has_metadata_table:
        raise IndexNotReady(files.PARTITION, f"not there: {snapshot.listing_reason}")
    try:
        metadata = snapshot.metadata or MetadataTable.open(snapshot.storage, snapshot.properties, snapshot.timeline)
    except MetadataOutOfSync as error:
        return MetadataStats(table, False, error.message)
    storage = snapshot.storage
    sizes = tuple(_size_of(metadata, name, storage) for name in metadata.ready)
    compactions = [i.time for i in metadata.timeline.writes if i.action is Action.COMMIT]
    last = compactions[-1] if compactions else None
    return MetadataStats(table, True, snapshot.listing_reason, len(metadata.partitions()), last, sizes)


def _size_of(metadata: MetadataTable, name: str, storage: Storage) -> PartitionSize:
    groups = [group for group in metadata.file_groups(name) if group.base is not None or group.logs]
    bases = [_bytes_of(storage, group.base) for group in groups if group.base is not None]
    logs = [_bytes_of(storage, log) for group in groups for log in group.logs]
    return PartitionSize(name, len(groups), len(bases), sum(bases), len(logs), sum(logs))


def _bytes_of(storage: Storage, file: GroupBaseFile | LogFile) -> int:
    """Of a file of the metadata table, whose listing does not always tell it."""
    if file.size is not None:
        return file.size
    found = storage.stat(join(METADATA_ROOT, file.path))
    return found.size if found is not None else 0
