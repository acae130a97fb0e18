"""The metadata partitions `column_stats`, one record a file and column, and `partition_stats`, one a partition and column.

Log files of the newest slices have records too: Apache Hudi makes the statistics of a partition of what those of its files say,
and of a file that says nothing its readers would lose rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.config import options as keys
from hudimeta.errors import CommitConflict
from hudimeta.formats.plain_arrays import array_of, no_rows
from hudimeta.indexes.column_stats.stored_files import bounds_of_late_files, file_bounds, log_bounds
from hudimeta.indexes.protocol import BuiltIndex, CleanChange, CommitChange, IndexDelta, IndexSource, Reach
from hudimeta.metadata import MetadataTable, answers, column_stats, partition_stats
from hudimeta.metadata.delta import PartitionDelta
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.indexed_columns import column_type
from hudimeta.metadata.keys import column_stats_keys, to_key_partition
from hudimeta.metadata.statistics import has_limits, nothing_yet, widened_partition_statistics
from hudimeta.metadata.writer import MetadataWriter
from hudimeta.schema import with_meta_columns
from hudimeta.table.remembered import REMEMBERED_KEY
from hudimeta.table.slices import build_slices
from hudimeta.table.visibility import Visibility
from hudimeta.timeline import Timeline
from hudimeta.types import COPYING_OPERATIONS, Instant

__all__ = ["ColumnStatsKeep", "PartitionStatsKeep", "check_order"]


class ColumnStatsKeep:
    """See `IndexMaintainer`."""

    def keeps(self, partition: str) -> bool:
        """See `IndexMaintainer`."""
        return partition == column_stats.PARTITION

    def delta(self, partition: str, change: CommitChange) -> IndexDelta:
        """The statistics that came with the files, or of their rows where the index is younger than the write."""
        known = [f.statistics for f in change.written]
        known += bounds_of_late_files(change, change.table.index_definitions[partition])
        rows = pa.concat_tables([no_rows(column_stats.SCHEMA), *known])
        return IndexDelta([PartitionDelta(partition, column_stats.encode_values(rows, change.layout))])

    def holds(self, partition: str, change: CommitChange, now: MetadataTable) -> bool:
        """Always: it tells of the commit's own files alone."""
        return True

    def cleaned(self, partition: str, change: CleanChange) -> IndexDelta:
        """One key for each column of a deleted file."""
        definition = change.table.index_definitions.get(partition)
        columns = definition.source_fields if definition is not None else ()
        stated = [(c, p, n) for p, names in change.removed.items() for n in names for c in columns]
        if not stated:
            return IndexDelta()
        parts = [array_of(list(part), pa.string()) for part in zip(*stated, strict=True)]
        return IndexDelta([PartitionDelta(partition, removed=column_stats_keys(*parts).cast(pa.string()))])

    def build(self, partition: str, source: IndexSource) -> BuiltIndex:
        """Statistics of every base file, superseded ones too, and of the log files of the newest slices, from their rows."""
        definition = source.definitions[partition]
        found = [*file_bounds(source, definition), *log_bounds(source, definition)]
        rows = pa.concat_tables([no_rows(column_stats.SCHEMA), *(s for _, s in found)])
        groups = source.options.get(keys.COLUMN_STATS_GROUPS)
        part = PartitionDelta(partition, column_stats.encode_values(rows, source.layout))
        return BuiltIndex(groups, MetadataWriter.shards(part, groups) if len(part) else (), reach=Reach.FILE_GROUP)


class PartitionStatsKeep:
    """See `IndexMaintainer`."""

    def keeps(self, partition: str) -> bool:
        """See `IndexMaintainer`."""
        return partition == partition_stats.PARTITION

    def delta(self, partition: str, change: CommitChange) -> IndexDelta:
        """What was known of the touched partitions, widened; a compaction's rows are enclosed already.

        A compaction's instant was fixed by the plan: records of later writes, which replace older ones where Apache Hudi made
        them, are no conflict.
        """
        if change.same_rows:
            return IndexDelta()
        table = change.table
        unknown = _without_statistics(change)
        touched = sorted({*unknown, *(f.partition_path for f in change.written if len(f.statistics))})
        definition = change.statistics or table.index_definitions[column_stats.PARTITION]
        every = _types(change.schema, definition)
        added = {name for name in every if not unknown and name.partition(".")[0] in change.added - change.unbounded}
        if not touched and not added and not change.unbounded:
            return IndexDelta()
        partitions = table.partitions().to_pylist()
        stated = answers.partition_stats(table, every, sorted({*touched, *partitions[:1]}))
        own = array_of(touched, pa.string())
        known = {name: found.filter(pc.is_in(found["partition_path"], own)) for name, found in stated.items()}
        held = {*_with_rows(change, sorted(set(touched) & set(partitions)), known), *unknown}
        looked_at = {*held, *partitions[:1]} - unknown
        unbounded = _unbounded(change, every, looked_at)
        if not touched and not added and not unbounded:
            return IndexDelta()
        types = {name: kind for name, kind in every.items() if name not in unbounded}
        blank = array_of(sorted(unknown), pa.string())
        bounded = {name: found.filter(pc.invert(pc.is_in(found["partition_path"], blank))) for name, found in known.items()}
        # Records are merged in the order of instants, not of completions: those of an earlier write that is still at work will
        # come before ours, which must not replace them.
        regime = "V2" if definition.is_v2 else "V1"
        rows, lost = widened_partition_statistics(
            [*((f.partition_path, f.statistics) for f in change.written), *nothing_yet(partitions, added)],
            bounded,
            types,
            regime,
            existing=held,
            added=added,
            tight=_is_alone(change, change.timeline),
        )
        check_order(table, change.instant, known, lost)
        silent = {name: kind for name, kind in types.items() if name not in added and _is_silent(kind, stated[name], looked_at)}
        rows = pa.concat_tables([rows, *_of_all_partitions(table, touched, unbounded, silent, regime)])
        return IndexDelta([PartitionDelta(partition, partition_stats.encode_values(rows, change.layout), lost)])

    def holds(self, partition: str, change: CommitChange, now: MetadataTable) -> bool:
        """Where others wrote to other partitions, or what they say of these is united with it by whoever reads both."""
        own, timeline = {f.partition_path for f in change.written}, now.data_timeline
        if change.added or change.unbounded:
            return False
        missed = [i for i in change.missed(timeline) if own & timeline.metadata(i)["partitionToWriteStats"].keys()]
        if _is_alone(change, change.timeline):
            return not missed and _is_alone(change, timeline)
        return not missed or (own <= set(change.table.partitions().to_pylist()) and _is_united(change, now, missed, own))

    def cleaned(self, partition: str, change: CleanChange) -> IndexDelta:
        """Nothing: statistics may be wider than the rows."""
        return IndexDelta()

    def build(self, partition: str, source: IndexSource) -> BuiltIndex:
        """The statistics of the base files together; those of a partition with log files say nothing, its rows are not read."""
        if not len(source.base_files) and not source.with_logs:
            return BuiltIndex(1, reach=Reach.PARTITION)
        definition = source.definitions[column_stats.PARTITION]
        files = file_bounds(source, definition)
        parts = [no_rows(partition_stats.SCHEMA)]
        for lacking, types in _by_lack(source, files, _types(source.schema, definition)):
            regime, unknown = "V2" if definition.is_v2 else "V1", sorted({*source.with_logs, *lacking})
            parts.append(widened_partition_statistics(files, {}, types, regime, existing=unknown)[0])
        rows = pa.concat_tables(parts)
        content = [(0, partition_stats.encode_values(rows, source.layout))] if len(rows) else ()
        return BuiltIndex(1, content, reach=Reach.PARTITION)


def _is_alone(change: CommitChange, timeline: Timeline) -> bool:
    """False while another write is at work: one with an earlier instant must not be replaced, and who is about to be completed
    first would have this made again.
    """
    return not any(i.time != change.instant for i in timeline.pending_writes)


def _is_united(change: CommitChange, now: MetadataTable, missed: Sequence[Instant], own: Collection[str]) -> bool:
    """Whether records of others, which came meanwhile, only widen what was known of some partitions, and replace nothing."""
    logged = now.logged(partition_stats.PARTITION, frozenset(i.time for i in missed))
    if logged is None or len(logged.removed):
        return False
    paths = array_of(sorted({*own, *map(to_key_partition, own)}), pa.string())
    rows = logged.rows.filter(pc.is_in(logged.rows["file_name"], paths))
    replaces = pc.or_(rows["is_deleted"], rows["is_tight_bound"])
    return not pc.any(replaces, min_count=0).as_py()


def _with_rows(change: CommitChange, listed: Sequence[str], known: Mapping[str, pa.Table]) -> list[str]:
    """Which of some partitions held rows before: one whose files were all replaced is listed until they are cleaned."""
    stated = {path for rows in known.values() for path in rows["partition_path"].to_pylist()}
    bare = [path for path in listed if path not in stated]
    if not bare:
        return list(listed)
    held = set(build_slices(change.table.files(bare), Visibility.of(change.timeline))["partition_path"].to_pylist())
    return [path for path in listed if path in stated or path in held]


def _of_all_partitions(
    table: MetadataTable,
    touched: Sequence[str],
    unbounded: Mapping[str, pa.DataType],
    silent: Mapping[str, pa.DataType],
    regime: str,
) -> list[pa.Table]:
    """Records as wide as the type, since Hudi's readers take a partition without a record for one without values.

    Args:
        table: The metadata table before the commit.
        touched: Partitions that it writes to.
        unbounded: Columns that no statistics so far bound, with their types.
        silent: Columns of which partitions may have no record; those of `touched` have one.
        regime: "V1" or "V2".
    """
    listed = set(table.partitions().to_pylist()) if unbounded or silent else set()
    parts = [widened_partition_statistics([], {}, unbounded, regime, existing=sorted(listed | set(touched)))[0]]
    if silent:
        known, others = answers.partition_stats(table, silent), sorted(listed - set(touched))
        parts.append(widened_partition_statistics([], known, silent, regime, existing=others)[0])
    return parts


def _is_silent(kind: pa.DataType, stated: pa.Table, looked_at: Collection[str]) -> bool:
    """Whether partitions have no record of a column: Apache Hudi adds and renames columns without a word about older files."""
    return has_limits(kind) and not set(looked_at) <= set(stated["partition_path"].to_pylist())


def _unbounded(change: CommitChange, every: Mapping[str, pa.DataType], looked_at: Collection[str]) -> dict[str, pa.DataType]:
    """Columns that statistics of older files do not know by their names, unless partitions are said to hold any value of them.

    After an ALTER they are, until Apache Hudi writes: it bounds partitions by those files alone that know the name, and its
    readers then pass over the rows of the others.
    """
    found = {name: kind for name, kind in every.items() if name in change.unbounded}
    if not change.written and not change.replaced:
        return found
    limited = {name: kind for name, kind in found.items() if has_limits(kind)}
    wide = answers.partitions_of_anything(change.table, limited, sorted(looked_at))
    return {name: kind for name, kind in limited.items() if not set(looked_at) <= wide[name]}


def _without_statistics(change: CommitChange) -> set[str]:
    """Partitions with new rows of which nothing is known, because the index is younger than what their writer knew."""
    return {f.partition_path for f in change.written if f.rows and not len(f.statistics)}


def _by_lack(
    source: IndexSource, files: Sequence[tuple[str, pa.Table]], types: Mapping[str, pa.DataType]
) -> Iterator[tuple[frozenset[str], dict[str, pa.DataType]]]:
    """Columns by the partitions with a file in use that has no statistics of them: its rows, null perhaps, are not known."""
    newest = set(zip(source.slices["partition_path"].to_pylist(), source.slices["base_file"].to_pylist(), strict=True))
    lacking: dict[str, set[str]] = {name: set() for name in types}
    for name, (path, statistics) in zip(source.base_files["name"].to_pylist(), files, strict=True):
        if (path, name) in newest:
            for column in types.keys() - set(statistics["column_name"].to_pylist()):
                lacking[column].add(path)
    for paths in dict.fromkeys(frozenset(found) for found in lacking.values()):
        yield paths, {name: kind for name, kind in types.items() if lacking[name] == paths}


def _types(schema: pa.Schema, definition: IndexDefinition) -> dict[str, pa.DataType]:
    full = with_meta_columns(schema)
    return {c: kind for c in definition.source_fields if (kind := column_type(full, c)) is not None}


def check_order(table: MetadataTable, instant: str, known: Mapping[str, pa.Table], lost: pa.Array) -> None:
    """Refuse partition statistics that those of a write with a later instant, which was completed first, would replace.

    Args:
        table: The metadata table.
        instant: Of the write.
        known: Statistics so far.
        lost: Keys that the write removes.

    Raises:
        CommitConflict: With that write; a write with a new instant can do it.
    """
    timeline = table.data_timeline
    for later in (i for i in timeline.writes if i.time > instant):
        metadata = timeline.metadata(later)
        if metadata["operationType"] in COPYING_OPERATIONS and REMEMBERED_KEY in (metadata["extraMetadata"] or {}):
            continue  # a compaction of ours, which writes none
        touched = metadata["partitionToWriteStats"].keys()
        replaced = {
            path
            for rows in known.values()
            for path, tight in zip(rows["partition_path"].to_pylist(), rows["is_tight_bound"].to_pylist(), strict=True)
            if path in touched and (tight or len(lost))
        }
        if replaced:
            what = f"the statistics of {len(replaced)} partitions, such as {min(replaced)!r}"
            raise CommitConflict("write", (), later.time, what=what)
