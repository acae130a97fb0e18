"""What a commit does to the metadata table, under the table lock: the delta commit before, compaction after it is published."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from hudimeta.errors import CommitConflict
from hudimeta.metadata import column_stats, compaction, files, partition_stats
from hudimeta.metadata.groups import LOGS_KEY
from hudimeta.metadata.indexed_columns import column_type
from hudimeta.metadata.keys import ALL_PARTITIONS, column_stats_keys, to_key_partition
from hudimeta.metadata.metadata_table import MetadataTable
from hudimeta.metadata.rollback import roll_back_metadata
from hudimeta.metadata.statistics import widened_partition_statistics
from hudimeta.metadata.writer import GROUPS_KEY, MetadataDelta, MetadataWriter, WrittenLog
from hudimeta.schema import with_meta_columns
from hudimeta.storage import Storage
from hudimeta.table.properties import TableProperties
from hudimeta.timeline.active import Timeline
from hudimeta.timeline.clock import InstantGenerator
from hudimeta.types import Action
from hudimeta.write.written_file import WrittenFile

__all__ = ["MetadataCommit"]


class MetadataCommit:
    """Brings the metadata table along with the commits of its data table.

    Args:
        storage: Rooted at the data table. properties: Of the data table. times: Makes instants.
        compact_after: Delta commits after which the metadata table is compacted.
    """

    def __init__(self, storage: Storage, properties: TableProperties, times: InstantGenerator, compact_after: int) -> None:
        self._storage, self._properties, self._times = storage, properties, times
        self._compact_after = compact_after
        self._writer = MetadataWriter(storage, properties.version, times)
        self.compacted = False
        self._may_be_due = False

    def commit(
        self,
        timeline: Timeline,
        instant: str,
        written: Sequence[WrittenFile],
        schema: pa.Schema,
        known: MetadataTable | None = None,
        *,
        same_rows: bool = False,
    ) -> dict[str, str]:
        """Commit the changes of a data commit at the same instant.

        Args:
            timeline: Of the data table, as listed under the lock. instant: Of the data commit.
            written: Its new files. schema: Data columns of the table.
            known: The metadata table as the write saw it. It is used again when no instant was completed since: whoever
                changes the metadata table completes an instant of the data table under the same lock.
            same_rows: True for a compaction: what is known of a partition encloses its rows already. Its instant was fixed by
                the plan, so records of later writes, which replace older ones where Apache Hudi made them, are no conflict.

        Returns:
            Entries for the data commit's extraMetadata, which spare readers requests.
        """
        table = self._current(timeline, known)
        return self._write(instant, table, self._delta(table, instant, written, schema, same_rows))

    def clean(self, timeline: Timeline, instant: str, removed: Mapping[str, Sequence[str]], emptied: Sequence[str]) -> None:
        """Take files that a clean deleted out of the metadata table, at the clean's instant.

        Args:
            timeline: Of the data table, as listed under the lock. instant: Of the clean.
            removed: Names of the deleted files, by partition path. emptied: Partitions that have no file any more.
        """
        table = self._current(timeline, None)
        self._write(instant, table, self._removal(table, removed, emptied))

    def _current(self, timeline: Timeline, known: MetadataTable | None) -> MetadataTable:
        """The metadata table of now, after a compaction that died was finished."""
        if known is not None and known.data_timeline.completed == timeline.completed:
            table = known
        else:
            table = MetadataTable.open(self._storage, self._properties, timeline)
        begun = compaction.pending_compaction(table)
        if begun is not None and table is known:
            # A writer compacts after it has published: when the view was made it may have been just about that.
            table = MetadataTable.open(self._storage, self._properties, timeline)
            begun = compaction.pending_compaction(table)
        if begun is not None:
            self.compacted = compaction.resume(self._storage, table, self._writer, self._times, begun)
            table = MetadataTable.open(self._storage, self._properties, timeline)
        return table

    def _write(self, instant: str, table: MetadataTable, delta: MetadataDelta) -> dict[str, str]:
        if table.timeline.get(instant, Action.DELTA_COMMIT) is not None:
            # An earlier run of the same service died behind this step: what it wrote is taken back and written again.
            roll_back_metadata(self._storage, instant, self._times.next(table.timeline.last_time), self._times)
        # The delta commit that is about to be written counts, and its write is pending until it is published.
        self._may_be_due = len(compaction.fresh_deltas(table)) + 1 >= self._compact_after
        groups = self._groups(table, delta)
        self._writer.begin(instant)
        logs = self._writer.write_logs(instant, delta, groups)
        self._writer.complete(instant, logs, table.timeline.last_time)
        return {LOGS_KEY: _names(logs), GROUPS_KEY: json.dumps(groups, sort_keys=True)}

    def compact_when_due(self) -> None:
        """Compact the metadata table when it is time; the write has been published, its lock is still held.

        Raises:
            HudiError: It failed; the next commit finishes it.
        """
        if not self._may_be_due:
            return
        timeline = self._properties.load_timeline(self._storage)
        table = MetadataTable.open(self._storage, self._properties, timeline)
        if compaction.is_due(table, self._compact_after):
            compaction.compact(self._storage, table, self._writer, self._times)
            self.compacted = True

    def _delta(
        self, table: MetadataTable, instant: str, written: Sequence[WrittenFile], schema: pa.Schema, same_rows: bool
    ) -> MetadataDelta:
        rows = [column_stats.SCHEMA.empty_table()]
        if column_stats.PARTITION in table.ready:
            rows += [f.statistics for f in written]
        of_partitions, lost = self._partition_statistics(table, instant, () if same_rows else written, schema)
        removed = {partition_stats.PARTITION: lost} if len(lost) else {}
        return MetadataDelta(file_rows(written), pa.concat_tables(rows), of_partitions, removed)

    def _removal(self, table: MetadataTable, removed: Mapping[str, Sequence[str]], emptied: Sequence[str]) -> MetadataDelta:
        files_of = [(to_key_partition(p), name) for p, names in removed.items() for name in names]
        files_of += [(ALL_PARTITIONS, to_key_partition(p)) for p in emptied]
        rows = pa.table(
            [[k for k, _ in files_of], [n for _, n in files_of], [0] * len(files_of), [True] * len(files_of)],
            schema=files.SCHEMA,
        )
        keys: dict[str, pa.Array] = {}
        if column_stats.PARTITION in table.ready and column_stats.PARTITION in table.index_definitions:
            columns = table.index_definitions[column_stats.PARTITION].source_fields
            stated = [(c, p, n) for p, names in removed.items() for n in names for c in columns]
            parts = [pa.array(list(part), pa.string()) for part in zip(*stated, strict=True)]
            keys = {column_stats.PARTITION: column_stats_keys(*parts).cast(pa.string())} if parts else {}
        nothing = column_stats.SCHEMA.empty_table()
        return MetadataDelta(rows, nothing, nothing, keys, lists_partitions=False)

    def _partition_statistics(
        self, table: MetadataTable, instant: str, written: Sequence[WrittenFile], schema: pa.Schema
    ) -> tuple[pa.Table, pa.Array]:
        """Records of the partitions that files went to, and keys of those that must go."""
        nothing = (partition_stats.SCHEMA.empty_table(), pa.array([], pa.string()))
        if partition_stats.PARTITION not in table.ready:
            return nothing
        definition = table.index_definitions[column_stats.PARTITION]
        full = with_meta_columns(schema)
        types = {c: kind for c in definition.source_fields if (kind := column_type(full, c)) is not None}
        touched = sorted({f.partition_path for f in written if len(f.statistics)})
        if not touched:
            return nothing
        known: Mapping[str, pa.Table] = table.partition_stats(types, touched)
        # Records are merged in the order of instants, not of completions: those of an earlier write that is still at work will
        # come before ours, which must not replace them.
        found = widened_partition_statistics(
            [(f.partition_path, f.statistics) for f in written],
            known,
            types,
            "V2" if definition.is_v2 else "V1",
            existing=sorted(set(touched) & set(table.partitions().to_pylist())),
            tight=not any(i.time < instant for i in table.data_timeline.pending_writes),
        )
        _check_order(table, instant, known, found[1])
        return found

    def _groups(self, table: MetadataTable, delta: MetadataDelta) -> dict[str, int]:
        """How many file groups each metadata partition has: as our newest commit says, else by one listing each."""
        groups = {files.PARTITION: 1}
        known = self._known_groups(table)
        for partition in (column_stats.PARTITION, partition_stats.PARTITION):
            if partition in table.ready:
                groups[partition] = known.get(partition) or len(table.file_groups(partition))
        return groups

    def _known_groups(self, table: MetadataTable) -> dict[str, int]:
        newest = table.data_timeline.writes[-1:]
        extra = table.data_timeline.metadata(newest[0])["extraMetadata"] if newest else {}
        return dict(json.loads(extra.get(GROUPS_KEY) or "{}"))


def _check_order(table: MetadataTable, instant: str, known: Mapping[str, pa.Table], lost: pa.Array) -> None:
    """Refuse partition statistics that those of a write with a later instant, which was completed first, would replace.

    Args:
        table: The metadata table. instant: Of the write. known: Statistics so far. lost: Keys that the write removes.

    Raises:
        CommitConflict: With that write; a write with a new instant can do it.
    """
    timeline = table.data_timeline
    for later in (i for i in timeline.writes if i.time > instant):
        touched = timeline.metadata(later)["partitionToWriteStats"].keys()
        replaced = {
            path
            for rows in known.values()
            for path, tight in zip(rows["partition_path"].to_pylist(), rows["is_tight_bound"].to_pylist(), strict=True)
            if path in touched and (tight or len(lost))
        }
        if replaced:
            raise CommitConflict("write", [(p, "its statistics") for p in sorted(replaced)], later.time)


def file_rows(written: Sequence[WrittenFile]) -> pa.Table:
    """Rows of `files.SCHEMA` for new files: each file below its partition, and each partition below the list of all."""
    partitions = sorted({f.partition_path for f in written})
    return pa.table(
        {
            "key": [to_key_partition(f.partition_path) for f in written] + [ALL_PARTITIONS] * len(partitions),
            "name": [f.name for f in written] + [to_key_partition(p) for p in partitions],
            "size": [f.size for f in written] + [0] * len(partitions),
            "is_deleted": [False] * (len(written) + len(partitions)),
        },
        schema=files.SCHEMA,
    )


def _names(logs: Sequence[WrittenLog]) -> str:
    by_partition: dict[str, list[str]] = {}
    for log in logs:
        by_partition.setdefault(log.partition, []).append(log.name)
    return json.dumps(by_partition, sort_keys=True)
