"""Writing to the metadata table: its creation, and the delta commit that goes with every commit of the data table.

A delta commit bears the data commit's own instant. For each partition that changes, each shard with records gets one log file
with one HFile block; the delta commit's metadata names those files. It is completed just before the data commit, under the
same lock, so a reader that sees the data commit finds its metadata; one that is completed alone belongs to a write that died
and is ignored by readers until the next writer removes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timezone
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.formats.avro.commit_metadata import encode_commit_metadata, write_stat
from hudimeta.formats.hfile import KeyValues, write_hfile
from hudimeta.formats.log import BlockType, HeaderKey, encode_block, encode_delete_content
from hudimeta.formats.properties import encode_properties, table_checksum
from hudimeta.metadata import column_stats, files, partition_stats
from hudimeta.metadata.keys import ALL_PARTITIONS, shard
from hudimeta.metadata.record import RecordLayout, layout_of, schema_text
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.storage import Storage, join
from hudimeta.table.discovery import PARTITION_METAFILE
from hudimeta.timeline.clock import InstantGenerator
from hudimeta.timeline.transitions import TimelineWriter
from hudimeta.types import Action, Operation

__all__ = [
    "GROUPS_KEY",
    "MAINTAINED",
    "MetadataDelta",
    "MetadataWriter",
    "WrittenLog",
    "partition_metafile",
]

MAINTAINED = (files.PARTITION, column_stats.PARTITION, partition_stats.PARTITION)
"""Metadata partitions that every commit of ours brings up to date."""

GROUPS_KEY = "hudimeta.metadata.groups"
"""Entry of a data commit's extraMetadata: JSON, metadata partition -> number of its file groups, which no one else records."""

FIRST_INSTANT = "0" * 17
WRITE_TOKEN = "0-0-0"
_FILE_ID_PREFIX = {
    files.PARTITION: "files",
    column_stats.PARTITION: "col-stats",
    partition_stats.PARTITION: "partition-stats",
}
_EMPTY_DELETE = bytes.fromhex("000000030000000100")
"""Content of a delete block without keys: version 3, one byte of Avro, an empty array."""


@dataclass(frozen=True)
class MetadataDelta:
    """What one data commit changes in the metadata table.

    Attributes:
        files: Rows of `files.SCHEMA`: new and deleted files by partition, and the touched partitions.
        column_stats: Rows of `column_stats.SCHEMA`, one a file and column; empty when not kept.
        partition_stats: Rows of the same shape, one a partition and column; empty when not kept.
        removed: Keys to remove, string, by metadata partition; of any but `files`.
        lists_partitions: False leaves the list of partitions as it is, even where `files` names none.
    """

    files: pa.Table
    column_stats: pa.Table
    partition_stats: pa.Table
    removed: Mapping[str, pa.Array] = field(default_factory=dict)
    lists_partitions: bool = True


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """One log file of a delta commit."""

    partition: str
    file_id: str
    name: str
    size: int
    records: int


def partition_metafile(instant: str, depth: int) -> bytes:
    """Content of `.hoodie_partition_metadata`: without it Java does not find a partition on storage.

    Args:
        instant: Of the first write to the partition. depth: How many folders the partition lies below the table.
    """
    return encode_properties({"commitTime": instant, "partitionDepth": str(depth)}, ["partition metadata"])


def file_group_id(partition: str, group: int) -> str:
    """File id of one file group of a metadata partition."""
    return f"{_FILE_ID_PREFIX[partition]}-{group:04d}-0"


class MetadataWriter:
    """Writes the metadata table of one data table.

    Args:
        storage: Rooted at the data table.
        table_version: 8 or 9; decides the layout of the records.
        times: Makes instants.
    """

    def __init__(self, storage: Storage, table_version: int, times: InstantGenerator) -> None:
        self._storage = storage.sub(METADATA_ROOT)
        self._timeline = TimelineWriter(self._storage)
        self._version = table_version
        self._times = times
        self._schema_text = schema_text(table_version)
        self._layout: RecordLayout = layout_of(self._schema_text)

    @property
    def version(self) -> int:
        """Version of the data table."""
        return self._version

    @property
    def layout(self) -> RecordLayout:
        """Layout of the records that are written."""
        return self._layout

    def create(
        self, table_name: str, groups: Mapping[str, int], database: str = "", content: Mapping[str, KeyValues] | None = None
    ) -> None:
        """Lay out a new metadata table, each partition at its own first instant (0000…0, 0000…1 and so on).

        Nothing refers to it until the data table's properties name its partitions, so a creation that died is simply repeated
        after its folder was removed.

        Args:
            table_name: Name of the data table. database: Its database, "" for none.
            groups: How many file groups each partition has, in the order of creation; `files` comes first and has one.
            content: Records of a table that exists already, by partition; None for a new, empty table.
        """
        self._storage.put_if_absent(".hoodie/hoodie.properties", self._properties(table_name, database))
        for number, (partition, count) in enumerate(groups.items()):
            instant = f"{number:017d}"
            self._timeline.create_requested(instant, Action.DELTA_COMMIT)
            self._timeline.create_inflight(instant, Action.DELTA_COMMIT)
            self._storage.put(join(partition, PARTITION_METAFILE), partition_metafile(FIRST_INSTANT, 1))
            for group in range(count):
                name = f".{file_group_id(partition, group)}_{instant}.log.1_{WRITE_TOKEN}"
                block = encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant}, _EMPTY_DELETE)
                self._storage.put(join(partition, name), block)
            records = (content or {}).get(partition)
            if records is None and partition == files.PARTITION:
                # Readers other than Java need a base file here, even for a table without files.
                records = files.encode_values(files.SCHEMA.empty_table(), self._layout, (ALL_PARTITIONS,))
            stats = [] if records is None else self._write_bases(partition, count, instant, records)
            self._complete(instant, Operation.BULK_INSERT.value, stats)

    def _properties(self, table_name: str, database: str) -> bytes:
        name = f"{table_name}_metadata"
        version = str(self._version)
        # Instants of the table's services are made in its own zone, which must be that of the data table.
        zone = {"hoodie.table.timeline.timezone": "UTC"} if self._times.zone is timezone.utc else {}
        return encode_properties(
            {
                "hoodie.table.name": name,
                "hoodie.table.type": "MERGE_ON_READ",
                "hoodie.table.version": version,
                "hoodie.table.initial.version": version,
                "hoodie.timeline.layout.version": "2",
                "hoodie.timeline.path": "timeline",
                "hoodie.timeline.history.path": "history",
                "hoodie.archivelog.folder": "history",
                "hoodie.table.base.file.format": "HFILE",
                "hoodie.table.recordkey.fields": "key",
                "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
                "hoodie.populate.meta.fields": "false",
                "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
                "hoodie.record.merge.mode": "CUSTOM",
                "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
                "hoodie.datasource.write.drop.partition.columns": "false",
                **zone,
                "hoodie.table.checksum": str(table_checksum("", name)),
            },
            ["Properties of the metadata table"],
        )

    def _write_bases(self, partition: str, count: int, instant: str, records: KeyValues) -> list[dict[str, Any]]:
        stats = []
        for group, part in self._by_shard(records, count):
            file_id = file_group_id(partition, group)
            name = f"{file_id}_{WRITE_TOKEN}_{instant}.hfile"
            data = self.base_file(part)
            self._storage.put(join(partition, name), data)
            stats.append(
                write_stat(
                    fileId=file_id,
                    path=join(partition, name),
                    partitionPath=partition,
                    fileSizeInBytes=len(data),
                    numWrites=len(part.keys),
                    numInserts=len(part.keys),
                )
            )
        return stats

    def base_file(self, records: KeyValues) -> bytes:
        """Bytes of a base file with these records."""
        return write_hfile(records.keys, records.values, schema_text=self._schema_text, bloom=True, with_min_max=True)

    def _by_shard(self, records: KeyValues, count: int) -> list[tuple[int, KeyValues]]:
        if count == 1:
            return [(0, records)]
        groups = shard(records.keys, count)
        return [
            (int(group), KeyValues(records.keys.take(rows), records.values.take(rows)))
            for group in np.unique(groups)
            for rows in [pa.array(np.flatnonzero(groups == group))]
        ]

    def encode(self, delta: MetadataDelta) -> dict[str, KeyValues]:
        """The delta's records by partition; partitions without any are left out."""
        empty = (ALL_PARTITIONS,) if delta.lists_partitions and not _names_partitions(delta.files) else ()
        encoded = {files.PARTITION: files.encode_values(delta.files, self._layout, empty)}
        if len(delta.column_stats):
            encoded[column_stats.PARTITION] = column_stats.encode_values(delta.column_stats, self._layout)
        if len(delta.partition_stats):
            encoded[partition_stats.PARTITION] = partition_stats.encode_values(delta.partition_stats, self._layout)
        return encoded

    def begin(self, instant: str) -> None:
        """Announce the delta commit of a data instant."""
        self._timeline.create_requested(instant, Action.DELTA_COMMIT)
        self._timeline.create_inflight(instant, Action.DELTA_COMMIT)

    def write_logs(self, instant: str, delta: MetadataDelta, groups: Mapping[str, int]) -> list[WrittenLog]:
        """Write the log files of a delta commit.

        Args:
            instant: Of the data commit. delta: What changes. groups: How many file groups each partition has.
        """
        blocks: dict[tuple[str, int], list[tuple[bytes, int]]] = {}
        for partition, records in self.encode(delta).items():
            for group, part in self._by_shard(records, groups[partition]):
                blocks.setdefault((partition, group), []).append((self._log_block(instant, part), len(part.keys)))
        for partition, lost in delta.removed.items():
            for group, part in self._keys_by_shard(lost, groups[partition]):
                block = self._delete_block(instant, partition, part)
                blocks.setdefault((partition, group), []).append((block, len(part)))
        return [self._put_log(instant, partition, group, parts) for (partition, group), parts in blocks.items()]

    def _put_log(self, instant: str, partition: str, group: int, blocks: Sequence[tuple[bytes, int]]) -> WrittenLog:
        file_id = file_group_id(partition, group)
        name = f".{file_id}_{instant}.log.1_{WRITE_TOKEN}"
        data = b"".join(block for block, _ in blocks)
        self._storage.put(join(partition, name), data)
        return WrittenLog(partition, file_id, name, len(data), sum(records for _, records in blocks))

    def _keys_by_shard(self, removed: pa.Array, count: int) -> list[tuple[int, pa.Array]]:
        groups = shard(removed, count) if count > 1 else np.zeros(len(removed), np.int32)
        return [(int(group), removed.filter(pa.array(groups == group))) for group in np.unique(groups)]

    def _delete_block(self, instant: str, partition: str, keys: pa.Array) -> bytes:
        paths = pa.repeat(pa.scalar(partition, pa.string()), len(keys))
        header = {HeaderKey.SCHEMA: self._schema_text, HeaderKey.INSTANT_TIME: instant}
        return encode_block(
            BlockType.DELETE, header, encode_delete_content(keys, paths, [pa.array([0] * len(keys), pa.int32())])
        )

    def _log_block(self, instant: str, records: KeyValues) -> bytes:
        content = write_hfile(records.keys, records.values, schema_text=self._schema_text)
        header = {HeaderKey.SCHEMA: self._schema_text, HeaderKey.INSTANT_TIME: instant}
        return encode_block(BlockType.HFILE_DATA, header, content)

    def complete(self, instant: str, logs: Sequence[WrittenLog], after: str) -> None:
        """Complete a delta commit, whose instant is the data commit's.

        Args:
            instant: Of the data commit. logs: What was written.
            after: The last time on the metadata timeline. The completion lies behind it, however far this machine's clock is
                behind that of the last writer: one before a compaction would hide the logs below its base files.
        """
        stats = [
            write_stat(
                fileId=log.file_id,
                path=join(log.partition, log.name),
                partitionPath=log.partition,
                prevCommit=instant,
                numWrites=log.records,
                numUpdateWrites=log.records,
                fileSizeInBytes=log.size,
                logVersion=1,
            )
            for log in logs
        ]
        self._complete(instant, "UPSERT_PREPPED", stats, after)

    def _complete(self, instant: str, operation: str, stats: list[dict[str, Any]], after: str = "") -> None:
        by_partition: dict[str, list[dict[str, Any]]] = {}
        for stat in stats:
            by_partition.setdefault(stat["partitionPath"], []).append(stat)
        metadata = {
            "partitionToWriteStats": by_partition,
            "operationType": operation,
            "extraMetadata": {"schema": schema_text(self._version, meta_fields=False)},
        }
        completion = self._times.next(instant, after)
        self._timeline.complete(instant, Action.DELTA_COMMIT, completion, encode_commit_metadata(metadata))


def _names_partitions(rows: pa.Table) -> bool:
    import pyarrow.compute as pc

    return bool(pc.any(pc.equal(rows["key"], ALL_PARTITIONS)).as_py())
