"""The metadata partitions `expr_index_*`: what an expression over a column comes to, file by file, and partition by partition.

An index of bounds has a record for every partition, since Apache Hudi opens only the partitions that have one once any has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.config import options as keys
from hudimeta.errors import UnsupportedFeature
from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.plain_arrays import array_of, no_rows, single_array
from hudimeta.indexes.bloom_filters.keep import removed_filters
from hudimeta.indexes.column_stats.keep import check_order
from hudimeta.indexes.expression_index.facts import (
    WantedExpression,
    expression_of,
    expression_record,
    index_timezone,
)
from hudimeta.indexes.protocol import BuiltIndex, CleanChange, CommitChange, IndexDelta, IndexSource, Reach
from hudimeta.metadata import MetadataTable, answers, bloom_filters, column_stats, expression_index
from hudimeta.metadata.delta import PartitionDelta
from hudimeta.metadata.expression_index import ExpressionKind
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.record import RecordLayout
from hudimeta.metadata.statistics import widened_partition_statistics
from hudimeta.metadata.writer import MetadataWriter
from hudimeta.schema import with_meta_columns
from hudimeta.slices.single_files import SingleFile, file_part, held_by, parts_of, task_for
from hudimeta.snapshot.file_slice import slices_of

__all__ = ["ExpressionIndexKeep", "definition_of"]

Stated = tuple[str, pa.Table]
"""Partition path of a file, and its record."""


class ExpressionIndexKeep:
    """See `IndexMaintainer`."""

    def keeps(self, partition: str) -> bool:
        """See `IndexMaintainer`."""
        return partition.startswith(expression_index.PREFIX)

    def delta(self, partition: str, change: CommitChange) -> IndexDelta:
        """A record for each new file: as it came with the file, else from its rows; and for each partition it went to."""
        wanted = WantedExpression(definition_of(change.table.index_definitions, partition), change.timezone)
        known = [(f.partition_path, f.facts.expressions[partition]) for f in change.written if partition in f.facts.expressions]
        missing = [f for f in change.written if partition not in f.facts.expressions]
        if missing:
            parts = [file_part(f.partition_path, f.name, f.size) for f in missing]
            task = task_for(change.storage, change.properties, change.timeline, [wanted.column.split(".")[0]], [change.instant])
            known += change.engine.map(
                lambda part: _record(wanted, part, held_by(part, task, change.storage), task.output_schema), parts
            )
        rows = [table for _, table in known]
        lost = array_of([], pa.string())
        if wanted.kind is ExpressionKind.COLUMN_STATS and change.properties.is_partitioned and not change.same_rows:
            of_partitions, lost = _widened(wanted, change, known)
            rows.append(of_partitions)
        return IndexDelta([PartitionDelta(partition, _encoded(wanted, rows, change.layout), lost)])

    def holds(self, partition: str, change: CommitChange, now: MetadataTable) -> bool:
        """Not after other commits, which may have changed what it was compared with."""
        return not change.missed(now.data_timeline)

    def cleaned(self, partition: str, change: CleanChange) -> IndexDelta:
        """One key for each deleted file that can have a record."""
        wanted = WantedExpression(definition_of(change.table.index_definitions, partition))
        if wanted.kind is ExpressionKind.BLOOM_FILTERS:
            return removed_filters(partition, change)
        gone = [(path, name) for path, names in change.removed.items() for name in names]
        if not gone:
            return IndexDelta()
        paths, names = (array_of([pair[i] for pair in gone], pa.string()) for i in (0, 1))
        columns = array_of([wanted.column] * len(gone), pa.string())
        removed = expression_index.file_keys(columns, paths, names).cast(pa.string())
        return IndexDelta([PartitionDelta(partition, removed=removed)])

    def build(self, partition: str, source: IndexSource) -> BuiltIndex:
        """Records of the files of the newest slices, log files among them."""
        # The first index is built in some zone; one that is built anew may be Apache Hudi's.
        is_new = partition not in source.properties.metadata_partitions
        timezone = index_timezone(source.options, source.properties) or ("UTC" if is_new else None)
        wanted = WantedExpression(definition_of(source.definitions, partition), timezone)
        indexed, _ = expression_of(wanted, with_meta_columns(source.schema))
        groups = source.options.get(keys.EXPRESSION_GROUPS)
        parts = [part for one in slices_of(source.slices) for part in parts_of(one)]
        if not parts:
            return BuiltIndex(groups, reach=Reach.PARTITION)
        task = task_for(source.storage, source.properties, source.timeline, [wanted.column.split(".")[0]])
        known = source.of_each(
            partition, lambda part: _record(wanted, part, held_by(part, task, source.storage), task.output_schema), parts
        )
        rows = [table for _, table in known]
        if wanted.kind is ExpressionKind.COLUMN_STATS and source.properties.is_partitioned:
            found, _ = widened_partition_statistics(known, {}, {wanted.column: indexed.type}, wanted.regime)
            rows.append(_rekeyed(found))
        part = PartitionDelta(partition, _encoded(wanted, rows, source.layout))
        return BuiltIndex(groups, MetadataWriter.shards(part, groups) if len(part) else (), reach=Reach.PARTITION)


def definition_of(definitions: Mapping[str, IndexDefinition], partition: str) -> IndexDefinition:
    """The definition of an expression index.

    Raises:
        UnsupportedFeature: There is none, or it names several columns.
    """
    found = definitions.get(partition)
    if found is None or len(found.source_fields) != 1:
        raise UnsupportedFeature(
            f"keeping the index {partition} up to date, whose definition is missing or names several columns",
            "Drop it with t.metadata.drop_index.",
        )
    return found


def _record(wanted: WantedExpression, part: SingleFile, pieces: Iterable[pa.Table], schema: pa.Schema) -> Stated:
    one = part.alone
    instant, size = one.base_instant, one.size
    record = expression_record(
        wanted,
        pieces,
        schema,
        partition_path=part.partition_path,
        name=part.name,
        size=size,
        instant=instant,
        is_log=part.is_log,
    )
    return part.partition_path, record


def _widened(wanted: WantedExpression, change: CommitChange, known: Sequence[Stated]) -> tuple[pa.Table, pa.Array]:
    """Records of the touched partitions: what was known of them, widened by the new files; and keys of those that must go."""
    touched = sorted({path for path, table in known if len(table)})
    if not touched:
        return no_rows(column_stats.SCHEMA), array_of([], pa.string())
    indexed, _ = expression_of(wanted, with_meta_columns(change.schema))
    stated: Mapping[str, pa.Table] = {
        wanted.column: answers.expression_partition_stats(change.table, wanted.partition, indexed.type, touched)
    }
    rows, lost = widened_partition_statistics(
        known,
        stated,
        {wanted.column: indexed.type},
        wanted.regime,
        existing=sorted(set(touched) & _with_files(change.table)),
        tight=not any(i.time < change.instant for i in change.timeline.pending_writes),
    )
    check_order(change.table, change.instant, stated, lost)
    return _rekeyed(rows), _keys_of(wanted, lost, touched)


def _with_files(table: MetadataTable) -> set[str]:
    return set(table.partitions().to_pylist())


def _rekeyed(rows: pa.Table) -> pa.Table:
    """Statistics of partitions under the keys that they have in an expression index."""
    if not len(rows):
        return rows
    keyed = expression_index.partition_keys(single_array(rows["column_name"]), single_array(rows["file_name"]))
    return rows.set_column(rows.schema.get_field_index("key"), "key", keyed.cast(pa.string()))


def _keys_of(wanted: WantedExpression, lost: pa.Array, touched: Sequence[str]) -> pa.Array:
    """Keys as `partition_stats` has them, as the expression index has them."""
    from hudimeta.metadata.keys import partition_stats_keys

    paths = array_of(list(touched), pa.string())
    columns = array_of([wanted.column] * len(paths), pa.string())
    gone = pc.is_in(partition_stats_keys(columns, paths).cast(pa.string()), value_set=lost)
    return expression_index.partition_keys(columns.filter(gone), paths.filter(gone)).cast(pa.string())


def _encoded(wanted: WantedExpression, rows: Sequence[pa.Table], layout: RecordLayout) -> KeyValues:
    like = column_stats.SCHEMA if wanted.kind is ExpressionKind.COLUMN_STATS else bloom_filters.SCHEMA
    return expression_index.encode_values(pa.concat_tables([no_rows(like), *rows]), layout, wanted.kind)
