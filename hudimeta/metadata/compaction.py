"""Compaction of the metadata table: every file group's logs are merged into a new base file, now and then, by a writer.

The instant T of a compaction must lie behind the completion of every log that it merges and before the completion of every log
that it does not, because readers put a log on top of a base file by exactly that comparison. Writers of the data table complete
their delta commits under the table lock, and a compaction runs under it as well, so a fresh instant is right. It must not run
while a delta commit is completed whose data commit is not: such a log would be merged although readers must not see it.

The plan is stored first; a compaction that died is run again from its plan, and gives the same files under the same names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudimeta.formats.avro.commit_metadata import encode_commit_metadata, write_stat
from hudimeta.formats.avro.container import encode_container
from hudimeta.formats.avro.schemas import COMPACTION_PLAN
from hudimeta.formats.hfile import KeyValues
from hudimeta.metadata import column_stats, files, partition_stats
from hudimeta.metadata.groups import FileGroup
from hudimeta.metadata.keys import ALL_PARTITIONS
from hudimeta.metadata.metadata_table import MetadataTable
from hudimeta.metadata.record import RecordLayout, schema_text
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.metadata.writer import WRITE_TOKEN, MetadataWriter
from hudimeta.storage import Storage, join
from hudimeta.timeline.clock import InstantGenerator
from hudimeta.timeline.transitions import TimelineWriter
from hudimeta.types import Action, Instant, Operation, State

__all__ = ["CompactionPlan", "compact", "is_due", "pending_compaction", "plan"]


@dataclass(frozen=True)
class CompactionPlan:
    """The file groups to compact, by metadata partition."""

    groups: Sequence[tuple[str, FileGroup]]

    def encode(self) -> bytes:
        """As the Avro container in the requested file."""
        operations = [
            {
                "baseInstantTime": group.base.instant if group.base else group.logs[0].instant,
                "deltaFilePaths": [log.path.rpartition("/")[2] for log in group.logs],
                "dataFilePath": group.base.path.rpartition("/")[2] if group.base else None,
                "fileId": group.file_id,
                "partitionPath": partition,
                "metrics": {"TOTAL_LOG_FILES": float(len(group.logs))},
                "bootstrapFilePath": None,
            }
            for partition, group in self.groups
        ]
        record = {
            "operations": operations,
            "extraMetadata": {},
            "version": 2,
            "strategy": None,
            "preserveHoodieMetadata": False,
            "missingSchedulePartitions": [],
        }
        return encode_container(COMPACTION_PLAN, [record])


def is_due(table: MetadataTable, after: int) -> bool:
    """True when at least `after` delta commits were completed since the last compaction, and none of them is in doubt."""
    timeline = table.timeline
    compactions = [i for i in timeline.writes if i.action is Action.COMMIT]
    since = max((i.time for i in compactions), default="")
    fresh = [i for i in timeline.writes if i.action is Action.DELTA_COMMIT and (i.completion or i.time) > since]
    pending = {i.time for i in table.data_timeline.pending}
    return len(fresh) >= max(1, after) and not any(i.time in pending for i in fresh)


def pending_compaction(table: MetadataTable) -> Instant | None:
    """A compaction that was planned and not completed."""
    return next((i for i in table.timeline.pending if i.action is Action.COMPACTION), None)


def plan(table: MetadataTable) -> CompactionPlan:
    """All file groups that have logs."""
    return CompactionPlan(
        [(partition, group) for partition in table.ready for group in table.named_groups(partition) if group.logs]
    )


def compact(storage: Storage, table: MetadataTable, writer: MetadataWriter, times: InstantGenerator) -> str:
    """Compact the metadata table. The caller holds the table lock.

    Args:
        storage: Rooted at the data table. table: The metadata table, opened under the lock. writer: Knows the layout.
        times: Makes instants.

    Returns:
        The compaction's instant.
    """
    inner = storage.sub(METADATA_ROOT)
    timeline = TimelineWriter(inner, table.timeline.folder)
    begun = pending_compaction(table)
    the_plan = plan(table)
    if begun is None:
        instant = times.next(table.timeline.last_time, table.data_timeline.last_time)
        timeline.create_requested(instant, Action.COMPACTION, the_plan.encode())
    else:
        instant = begun.time
    if begun is None or begun.state is State.REQUESTED:
        timeline.create_inflight(instant, Action.COMPACTION)
    stats: dict[str, list[dict[str, Any]]] = {}
    for partition, group in the_plan.groups:
        stats.setdefault(partition, []).append(_write_base(inner, table, writer, instant, partition, group))
    metadata = {
        "partitionToWriteStats": stats,
        "compacted": True,
        "operationType": Operation.COMPACT.value,
        "extraMetadata": {"schema": schema_text(writer.version, meta_fields=False)},
    }
    completion = times.next(instant, table.timeline.last_time)
    timeline.complete(instant, Action.COMPACTION, completion, encode_commit_metadata(metadata))
    return instant


def _write_base(
    inner: Storage, table: MetadataTable, writer: MetadataWriter, instant: str, partition: str, group: FileGroup
) -> dict[str, Any]:
    records = encode_records(partition, table.group_records(partition, group), writer.layout)
    data = writer.base_file(records)
    path = join(partition, f"{group.file_id}_{WRITE_TOKEN}_{instant}.hfile")
    inner.put(path, data)
    facts: dict[str, Any] = {
        "fileId": group.file_id,
        "path": path,
        "partitionPath": partition,
        "fileSizeInBytes": len(data),
        "numWrites": len(records.keys),
        "totalLogFilesCompacted": len(group.logs),
        "totalLogRecords": len(records.keys),
    }
    if group.base is not None:
        facts |= {"prevCommit": group.base.instant, "prevBaseFile": group.base.path.rpartition("/")[2]}
    return write_stat(**facts)


def encode_records(partition: str, rows: pa.Table, layout: RecordLayout) -> KeyValues:
    """Merged records of a metadata partition in the form of a base file."""
    if partition == files.PARTITION:
        has_list = ALL_PARTITIONS in rows["key"].unique().to_pylist()
        return files.encode_values(rows, layout, () if has_list else (ALL_PARTITIONS,))
    if partition == column_stats.PARTITION:
        return column_stats.encode_values(rows, layout)
    return partition_stats.encode_values(rows, layout)
