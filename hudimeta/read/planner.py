"""From a predicate to the file slices that must be read: partitions by their paths, then statistics, cheapest first.

    1. partition paths     values that the path states exactly; needs the list of partitions only
    2. partition_stats     bounds of whole partitions where there are many; of the newest moment only, older ones are not kept
    3. column_stats        bounds of every base and log file of the partitions that are left

Only partitions that survive 1 and 2 are asked for their files. Statistics that are missing exclude nothing; the report says so.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.config.options import DATA_SKIPPING
from hudimeta.errors import IndexNotReady
from hudimeta.read.partition_columns import path_values
from hudimeta.read.report import Skip
from hudimeta.types import QueryType

if TYPE_CHECKING:
    from hudimeta.read.predicate import Bound
    from hudimeta.read.snapshot import Snapshot

__all__ = ["PlannedSlices", "plan_slices", "planned_range"]

_PARTITION_COLUMN = "_hoodie_partition_path"
_COLUMN_STATS = "column_stats"
_PARTITION_STATS = "partition_stats"
_FEW_PARTITIONS = 64
"""Up to so many partitions, statistics of files alone decide: they are tighter, and the others would cost requests of their own
(a base file and every log that is not yet compacted) only to save looking up a few entries in what is read anyway."""


@dataclass
class PlannedSlices:
    """What a plan found, and how.

    Attributes:
        slices: Columns of `table.slices.slices_schema()`: what must be read.
        partitions, partitions_kept, slices_total, files_total: See `ScanReport`.
        skipped, notes: See `ScanReport`. seconds: What planning took.
    """

    slices: pa.Table
    partitions: int = 0
    partitions_kept: int = 0
    slices_total: int = 0
    files_total: int = 0
    skipped: list[Skip] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


def plan_slices(snapshot: Snapshot, bound: Bound | None, query_type: QueryType = QueryType.SNAPSHOT) -> PlannedSlices:
    """Choose the file slices of a read.

    Args:
        snapshot: The table at its moment. bound: The predicate, None for every row.
        query_type: SNAPSHOT or READ_OPTIMIZED.
    """
    begin = time.perf_counter()
    plan = PlannedSlices(pa.table({}))
    partitions = _partitions(snapshot, bound, plan) if bound is not None else None
    plan.slices = snapshot.slices(partitions, query_type)
    _count(plan, snapshot, partitions)
    if bound is not None and plan.slices.num_rows:
        _skip_by_column_stats(snapshot, bound, plan, partitions)
    plan.seconds = time.perf_counter() - begin
    return plan


def planned_range(slices: pa.Table) -> PlannedSlices:
    """The plan of an incremental read whose slices are known: all of them."""
    import pyarrow.compute as pc

    logs = pc.sum(pc.list_value_length(slices.column("log_files"))).as_py() or 0
    partitions = len(slices.column("partition_path").unique())
    files = len(slices) - slices.column("base_file").null_count + logs
    return PlannedSlices(slices, partitions, partitions, len(slices), files)


def _count(plan: PlannedSlices, snapshot: Snapshot, partitions: Sequence[str] | None) -> None:
    import pyarrow.compute as pc

    slices = plan.slices
    plan.slices_total = slices.num_rows
    logs = pc.sum(pc.list_value_length(slices.column("log_files"))).as_py() or 0
    plan.files_total = len(slices) - slices.column("base_file").null_count + logs
    if partitions is None:
        # Without a predicate the list of partitions was not asked for: those with files are what there is.
        plan.partitions = plan.partitions or len(slices.column("partition_path").unique())
        plan.partitions_kept = plan.partitions
    else:
        plan.partitions_kept = len(partitions)


# Partitions


def _partitions(snapshot: Snapshot, bound: Bound, plan: PlannedSlices) -> list[str] | None:
    """The partitions to look up; None for all, when none can be excluded."""
    paths = snapshot.listing.partitions()
    if isinstance(paths, pa.ChunkedArray):
        paths = paths.combine_chunks()
    plan.partitions = len(paths)
    if not snapshot.properties.partition_fields:
        return None
    kept = _by_paths(snapshot, bound, plan, paths)
    kept = _by_time_keys(snapshot, bound, plan, kept)
    kept = _by_partition_stats(snapshot, bound, plan, kept)
    if len(kept) == len(paths):
        return None
    result: list[str] = kept.to_pylist()
    return result


def _by_paths(snapshot: Snapshot, bound: Bound, plan: PlannedSlices, paths: pa.StringArray) -> pa.StringArray:
    from hudimeta.keys import PartitionLayout
    from hudimeta.read.pruning import by_path_values

    layout = PartitionLayout.from_properties(snapshot.properties)
    values = path_values(paths, layout, snapshot.schema.arrow, snapshot.properties)
    uncertain = [name for name in layout.fields if name not in values.column_names]
    if snapshot.properties.populate_meta:
        # A table without columns has no rows either, so that nothing can be appended to it.
        values = values.append_column(_PARTITION_COLUMN, paths) if values.num_columns else pa.table({_PARTITION_COLUMN: paths})
    looked_at = {c.name for c in bound.columns}
    unclear = [name for name in uncertain if name in looked_at]
    plan.notes += [f"partition column {name}: its values cannot be read back from partition paths" for name in unclear]
    if not looked_at & set(values.column_names):
        return paths
    verdicts = by_path_values(bound, values)
    plan.skipped += [Skip("partition", sql, partitions=n) for sql, n, _ in verdicts.counts(bound.conjuncts)]
    return paths.filter(pa.array(verdicts.keep))


def _by_time_keys(snapshot: Snapshot, bound: Bound, plan: PlannedSlices, paths: pa.StringArray) -> pa.StringArray:
    """Partitions of a time-based key generator: the few values that the predicate allows lie in the partitions they make."""
    from hudimeta.keys import KeyGenerator, KeyGeneratorType
    from hudimeta.read.predicate import equalities
    from hudimeta.read.time_partitions import partitions_of_values

    if not len(paths) or snapshot.properties.keygen.value != KeyGeneratorType.TIMESTAMP.value:
        return paths
    (name,) = snapshot.properties.partition_fields
    values = equalities(bound).get(name)
    if values is None:
        return paths
    wanted = partitions_of_values(KeyGenerator.from_properties(snapshot.properties), values)
    if wanted is None:
        return paths
    import pyarrow.compute as pc

    kept = paths.filter(pc.is_in(paths, value_set=wanted))
    if len(kept) < len(paths):
        plan.skipped.append(Skip("partition", f"{name} has one of {len(values)} values", partitions=len(paths) - len(kept)))
        plan.notes = [note for note in plan.notes if not note.startswith(f"partition column {name}:")]
    return kept


def _by_partition_stats(snapshot: Snapshot, bound: Bound, plan: PlannedSlices, paths: pa.StringArray) -> pa.StringArray:
    from hudimeta.read.predicate import FileStats, may_match, to_sql
    from hudimeta.read.pruning import FileBounds

    if len(paths) < 2 or not _may_use(snapshot, _PARTITION_STATS) or snapshot.metadata is None:
        return paths
    if len(paths) <= _FEW_PARTITIONS and _may_use(snapshot, _COLUMN_STATS):
        return paths
    columns = _statistic_columns(snapshot, bound)
    if not snapshot.is_latest or not columns or snapshot.history is not None:
        return paths
    try:
        stats = snapshot.metadata.partition_stats(columns)
    except IndexNotReady:
        return paths
    ordered = FileBounds(paths, "partition_path")
    bounds = {name: ordered.of(table) for name, table in stats.items() if table.num_rows}
    if not bounds:
        return paths
    verdict = may_match(bound, FileStats(len(paths), bounds))
    for number, conjunct in enumerate(bound.conjuncts):
        excluded = int((verdict.decided_by == number).sum())
        if excluded:
            plan.skipped.append(Skip(_PARTITION_STATS, to_sql(conjunct), partitions=excluded))
    return paths.filter(pa.array(verdict.keep))


# Files


def _skip_by_column_stats(
    snapshot: Snapshot, bound: Bound, plan: PlannedSlices, partitions: Sequence[str] | None
) -> None:
    from hudimeta.read.pruning import FileBounds, SliceFiles, by_statistics

    columns = _statistic_columns(snapshot, bound)
    if not columns:
        return
    if snapshot.history is not None:
        plan.notes.append("column_stats not used: the table was altered, and statistics go by the columns' former names")
        return
    if snapshot.metadata is None or not _may_use(snapshot, _COLUMN_STATS):
        plan.notes.append(f"column_stats not used: {_why_not(snapshot)}")
        return
    stats = snapshot.metadata.column_stats(columns, partitions)
    files = SliceFiles.of(plan.slices)
    ordered, bounds = FileBounds(files.names), {}
    for name, table in stats.items():
        if not table.num_rows:
            plan.notes.append(f"column_stats: column {name} is not indexed")
            continue
        bounds[name] = ordered.of(table)
        unknown = bounds[name].value_count
        missing = unknown.null_count if unknown is not None else len(files.names)
        if missing:
            plan.notes.append(f"column_stats: no statistics of {name} for {missing:,} of {len(files.names):,} files")
    if not bounds:
        return
    verdicts = by_statistics(bound, files, bounds)
    for sql, n, n_files in verdicts.counts(bound.conjuncts, files.files_per_slice):
        plan.skipped.append(Skip(_COLUMN_STATS, sql, slices=n, files=n_files))
    plan.slices = plan.slices.filter(pa.array(verdicts.keep))


def _statistic_columns(snapshot: Snapshot, bound: Bound) -> dict[str, pa.DataType]:
    """Columns of the predicate that statistics may bound, with the types in which to compare."""
    from hudimeta.read.ordering import field_type

    found = {}
    for column in bound.columns:
        kind = field_type(snapshot.schema.arrow, column.name)
        if kind is not None and not pa.types.is_nested(kind):
            found[column.name] = kind
    return found


def _may_use(snapshot: Snapshot, partition: str) -> bool:
    ready = snapshot.metadata.ready if snapshot.metadata is not None else ()
    return snapshot.options.get(DATA_SKIPPING) and partition in ready


def _why_not(snapshot: Snapshot) -> str:
    if not snapshot.options.get(DATA_SKIPPING):
        return "switched off by hoodie.enable.data.skipping=false"
    return snapshot.listing_reason or "the table has no such index"
