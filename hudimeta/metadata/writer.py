"""Writing to the metadata table: its creation, and the delta commit that goes with every commit of the data table.

A delta commit bears the data commit's own instant. For each partition that changes, each shard with records gets one log file
with one HFile block; the delta commit's metadata names those files. It is completed just before the data commit, under the
same lock, so a reader that sees the data commit finds its metadata; one that is completed alone belongs to a write that died
and is ignored by readers until the next writer removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timezone
from functools import partial
from typing import Any

import pyarrow as pa

from hudimeta.engine import Engine, LocalEngine
from hudimeta.formats.avro.commit_metadata import encode_commit_metadata, write_stat
from hudimeta.formats.hfile import HFileInfo, HFileWriter, KeyValues, write_hfile
from hudimeta.formats.log import BlockType, HeaderKey, encode_block, encode_delete_content, frame_block, seal_blocks
from hudimeta.formats.plain_arrays import array_of, scalar_of
from hudimeta.formats.properties import encode_properties, table_checksum
from hudimeta.formats.seal import sealed_properties
from hudimeta.keys.partition_metafile import partition_metafile
from hudimeta.metadata.beginnings import INIT_BELOW
from hudimeta.metadata.delta import MetadataDelta, PartitionDelta, by_group
from hudimeta.metadata.group_files import ANEW_KEY, NAME_KEY, file_group_id, file_group_ids
from hudimeta.metadata.record import RecordLayout, layout_of, schema_text
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.storage import NewFile, Staged, Storage, join, put_own
from hudimeta.storage.at_once import FEW_NEARBY, is_nearby, waiting_engine
from hudimeta.table.discovery import PARTITION_METAFILE
from hudimeta.timeline import InstantGenerator, TimelineWriter
from hudimeta.types import Action, Operation

__all__ = ["PROPERTIES_COMMENT", "EncodedBase", "EncodedLog", "MetadataWriter", "WrittenLog", "encode_base"]

FIRST_INSTANT = "0" * 17
PROPERTIES_COMMENT = "Properties of the metadata table"
"""First line of its properties file; that of Apache Hudi's writers is another."""
WRITE_TOKEN, LOG_TOKEN = "0-0-0", "1-0-0"
_EMPTY_DELETE = bytes.fromhex("000000030000000100")
"""Content of a delete block without keys: version 3, one byte of Avro, an empty array."""


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """One log file of a delta commit."""

    partition: str
    file_id: str
    name: str
    size: int
    records: int


@dataclass(frozen=True, slots=True)
class EncodedLog:
    """A log file that is not written yet."""

    about: WrittenLog
    data: bytes


@dataclass(frozen=True, slots=True)
class EncodedBase:
    """A base file that is not written yet: its file group, path, bytes and number of records."""

    file_id: str
    path: str
    data: bytes
    records: int


Announce = Callable[[str], AbstractContextManager[object]]
"""Entered around the writing of a file with its path, relative to the metadata table."""
_HELD_BYTES = 16 << 20
"""Of new base files, so many are held and put at once; one that has more is put alone."""


def _held(made: Iterable[EncodedBase]) -> Iterator[list[EncodedBase]]:
    """Base files in portions to put at once, each made when it is asked for."""
    held, size = list[EncodedBase](), 0
    for base in made:
        held.append(base)
        size += len(base.data)
        if size >= _HELD_BYTES:
            yield held
            held, size = [], 0
    yield held


def encode_base(table_version: int, name: str, pieces: Iterable[KeyValues]) -> tuple[bytes, int]:
    """Bytes of a base file, and how many records it holds.

    Args:
        table_version: 8 or 9; decides the schema.
        name: Under which it is going to lie; readers hold it to that.
        pieces: Its records, in the order of their keys.
    """
    info = HFileInfo(schema_text(table_version), with_min_max=True, extra={NAME_KEY: name.encode()}, sealed=True)
    writer = HFileWriter(info, bloom=True)
    for records in pieces:
        writer.add(records.keys, records.values)
    return writer.finish(), writer.records


class MetadataWriter:
    """Writes the metadata table of one data table.

    Args:
        storage: Rooted at the data table.
        table_version: 8 or 9; decides the layout of the records.
        times: Makes instants.
        engine: Runs what can be done side by side; None for one after the other.
    """

    def __init__(self, storage: Storage, table_version: int, times: InstantGenerator, engine: Engine | None = None) -> None:
        self._storage = storage.sub(METADATA_ROOT)
        self._run_all = waiting_engine(engine or LocalEngine(1), storage).map
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

    def create(self, table_name: str) -> None:
        """Begin a new metadata table, without any partition; `table_name` is that of the data table."""
        put_own(self._storage, ".hoodie/hoodie.properties", self._properties(table_name))

    def initialise(
        self,
        partition: str,
        instant: str,
        ids: Sequence[str],
        content: Iterable[tuple[int, KeyValues]] = (),
        after: str = "",
        *,
        ready: Sequence[EncodedBase] = (),
        changes: Mapping[int, PartitionDelta] | None = None,
    ) -> None:
        """Lay out a metadata partition: an empty log for each of its file groups, base files for those that have records.

        Args:
            partition: Its name.
            instant: Of its creation.
            ids: Of its file groups.
            content: The place of each group among `ids` that has records, and these, sorted by key; asked for as their files
                are put, some at a time.
            after: The last time on the metadata timeline.
            ready: Base files that were made before.
            changes: What has changed in file groups since these were made, by their places.
        """
        self._timeline.create_requested(instant, Action.DELTA_COMMIT)
        self._timeline.create_inflight(instant, Action.DELTA_COMMIT)
        self.lay_groups(partition, instant, ids)
        made = (self.encode_base(partition, ids[group], instant, part) for group, part in content)
        stats = [stat for bases in (ready, *_held(made)) for stat in self._run_all(partial(self._put_base, partition), bases)]
        logs = [self._encoded(instant, LOG_TOKEN, ids[group], part) for group, part in (changes or {}).items()]
        stats += [_log_stat(instant, log) for log in self.put_logs(logs)]
        extra = {} if instant < INIT_BELOW else {ANEW_KEY: partition}
        self.complete(instant, self._record(Operation.BULK_INSERT.value, stats, extra), after)

    def lay_groups(self, partition: str, instant: str, ids: Sequence[str], announce: Announce = nullcontext) -> None:
        """Put the empty log of each file group; see `initialise` and `write_logs`."""
        metafile = join(partition, PARTITION_METAFILE)
        block = encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant}, _EMPTY_DELETE)
        paths = [join(partition, f".{file_id}_{instant}.log.1_{WRITE_TOKEN}") for file_id in ids]

        def put(path: str) -> None:
            if path == metafile:
                self._storage.put(path, partition_metafile(FIRST_INSTANT, 1))
                return
            with announce(path):
                self._storage.put(path, block)

        self._run_all(put, [metafile, *paths])

    def _properties(self, table_name: str) -> bytes:
        name = f"{table_name}_metadata"
        version = str(self._version)
        # Instants of the table's services are made in its own zone, which must be that of the data table.
        zone = {"hoodie.table.timeline.timezone": "UTC"} if self._times.zone is timezone.utc else {}
        written = encode_properties(
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
            [PROPERTIES_COMMENT],
        )
        return sealed_properties(written)

    def encode_base(self, partition: str, file_id: str, instant: str, records: KeyValues) -> EncodedBase:
        """The base file of a file group of a new partition; see `initialise`."""
        name = f"{file_id}_{WRITE_TOKEN}_{instant}.hfile"
        return EncodedBase(file_id, join(partition, name), *encode_base(self._version, name, [records]))

    def _put_base(self, partition: str, base: EncodedBase) -> dict[str, Any]:
        self._storage.put(base.path, base.data)
        return write_stat(
            fileId=base.file_id,
            path=base.path,
            partitionPath=partition,
            fileSizeInBytes=len(base.data),
            numWrites=base.records,
            numInserts=base.records,
        )

    @staticmethod
    def shards(part: PartitionDelta, groups: int) -> list[tuple[int, KeyValues]]:
        """The new records of each file group that gets any."""
        if groups == 1:
            return [(0, part.records)]
        return [(group, part.records.take(rows)) for group, rows in by_group(part.records.keys, groups, part.hashed)]

    def begin(self, instant: str) -> None:
        """Announce the delta commit of a data instant."""
        self._timeline.publish_begun(instant, self.stage(instant, ()))

    def stage(self, instant: str, logs: Iterable[EncodedLog]) -> Staged:
        """Bring the delta commit of a data instant on its way: its announcement, and these log files."""
        begun = self._timeline.begun_files(instant, Action.DELTA_COMMIT)
        return self._storage.stage([*begun, *_new_files(logs)])

    def begin_staged(self, instant: str, staged: Staged, logs: Sequence[EncodedLog]) -> list[WrittenLog]:
        """Announce a delta commit that is on its way, and let some of its log files lie in the metadata table."""
        begun = self._timeline.begun_files(instant, Action.DELTA_COMMIT)
        paths = {file.path for file in (*begun, *_new_files(logs))}
        self._timeline.publish_begun(instant, staged, paths)
        return [log.about for log in logs]

    def write_logs(
        self,
        instant: str,
        delta: MetadataDelta,
        groups: Mapping[str, int],
        *,
        token: str = LOG_TOKEN,
        announce: Announce = nullcontext,
    ) -> list[WrittenLog]:
        """Write the log files of a delta commit.

        Args:
            instant: Of the data commit.
            delta: What changes.
            groups: How many file groups each partition has.
            token: Write token of the logs.
            announce: Entered with the path of each file while it is written.
        """
        for part in delta.parts:
            if part.begins:
                count = part.groups or groups[part.partition]
                ids = file_group_ids(part.partition, count, part.data_partition)
                self.lay_groups(part.partition, instant, ids, announce)
        work = self._by_file_group(delta, groups)
        if announce is nullcontext and len(work) <= FEW_NEARBY and is_nearby(self._storage):
            return self.put_logs([self._encoded(instant, token, *share) for share in work])

        def write(share: tuple[str, PartitionDelta]) -> WrittenLog:
            return self._put_log(self._encoded(instant, token, *share), announce)

        logs: list[WrittenLog] = self._run_all(write, work)
        return logs

    def encode_logs(self, instant: str, delta: MetadataDelta, groups: Mapping[str, int]) -> list[EncodedLog]:
        """The log files of a delta commit that begins no file groups; see `write_logs`."""
        return [self._encoded(instant, LOG_TOKEN, *share) for share in self._by_file_group(delta, groups)]

    def put_logs(self, logs: Sequence[EncodedLog]) -> list[WrittenLog]:
        """Write encoded log files."""
        self._storage.stage(_new_files(logs)).publish()
        return [log.about for log in logs]

    def _by_file_group(self, delta: MetadataDelta, groups: Mapping[str, int]) -> list[tuple[str, PartitionDelta]]:
        """File ids, and what changes in each file group."""
        return [
            (file_group_id(part.partition, group, part.data_partition), share)
            for part in delta.parts
            for group, share in self._shares(part, part.groups or groups[part.partition])
        ]

    def _shares(self, part: PartitionDelta, groups: int) -> list[tuple[int, PartitionDelta]]:
        """What a change has for each file group."""
        records = dict(self.shards(part, groups)) if len(part.records) else {}
        removed = {group: part.removed.take(rows) for group, rows in by_group(part.removed, groups, part.hashed)}
        nothing = PartitionDelta(part.partition)
        return [
            (group, PartitionDelta(part.partition, records.get(group, nothing.records), removed.get(group, nothing.removed)))
            for group in sorted(records.keys() | removed.keys())
        ]

    def _encoded(self, instant: str, token: str, file_id: str, part: PartitionDelta) -> EncodedLog:
        blocks = [self._log_block(instant, part.records)] if len(part.records) else []
        blocks += [self._delete_block(instant, part.partition, part.removed)] if len(part.removed) else []
        # The file groups of a new data partition begin at this instant as well, with empty logs that bear the other token.
        name = f".{file_id}_{instant}.log.1_{token}"
        seal_blocks(blocks, name)
        data = b"".join(blocks)
        return EncodedLog(WrittenLog(part.partition, file_id, name, len(data), len(part)), data)

    def _put_log(self, log: EncodedLog, announce: Announce = nullcontext) -> WrittenLog:
        path = _path_of(log)
        with announce(path):
            self._storage.put(path, log.data)
        return log.about

    def _delete_block(self, instant: str, partition: str, keys: pa.Array) -> bytearray:
        paths = pa.repeat(scalar_of(partition, pa.string()), len(keys))
        header = {HeaderKey.SCHEMA: self._schema_text, HeaderKey.INSTANT_TIME: instant}
        return frame_block(
            BlockType.DELETE, header, encode_delete_content(keys, paths, [array_of([0] * len(keys), pa.int32())])
        )

    def _log_block(self, instant: str, records: KeyValues) -> bytearray:
        content = write_hfile(records.keys, records.values, HFileInfo(self._schema_text))
        header = {HeaderKey.SCHEMA: self._schema_text, HeaderKey.INSTANT_TIME: instant}
        return frame_block(BlockType.HFILE_DATA, header, content)

    def record(self, instant: str, logs: Sequence[WrittenLog]) -> bytes:
        """What the completed file of a delta commit holds that has written these logs."""
        return self._record("UPSERT_PREPPED", [_log_stat(instant, log) for log in logs])

    def complete(self, instant: str, record: bytes, after: str) -> None:
        """Complete a delta commit, whose instant is the data commit's.

        Args:
            instant: Of the data commit.
            record: See `record`.
            after: The last time on the metadata timeline. The completion lies after it, however far this machine's clock is
                behind that of the last writer: one before a compaction would hide the logs below its base files.
        """
        self._timeline.complete(instant, Action.DELTA_COMMIT, self._times.next(instant, after), record)

    def _record(self, operation: str, stats: list[dict[str, Any]], extra: Mapping[str, str] | None = None) -> bytes:
        by_partition: dict[str, list[dict[str, Any]]] = {}
        for stat in stats:
            by_partition.setdefault(stat["partitionPath"], []).append(stat)
        metadata = {
            "partitionToWriteStats": by_partition,
            "operationType": operation,
            "extraMetadata": {"schema": schema_text(self._version, meta_fields=False), **(extra or {})},
        }
        return encode_commit_metadata(metadata)


def _path_of(log: EncodedLog) -> str:
    return join(log.about.partition, log.about.name)


def _new_files(logs: Iterable[EncodedLog]) -> list[NewFile]:
    return [NewFile(_path_of(log), log.data) for log in logs]


def _log_stat(instant: str, log: WrittenLog) -> dict[str, Any]:
    return write_stat(
        fileId=log.file_id,
        path=join(log.partition, log.name),
        partitionPath=log.partition,
        prevCommit=instant,
        numWrites=log.records,
        numUpdateWrites=log.records,
        fileSizeInBytes=log.size,
        logVersion=1,
    )
