"""From a predicate to the file slices that must be read: partitions first, then every index of the table, cheapest first.

    1. partition paths     values that the path states exactly; needs the list of partitions only
    2. partition_stats     bounds of whole partitions where there are many; of the newest moment only, older ones are not kept
    3. key indexes         partitions in which no row has one of the keys, or values, that the predicate asks for
    4. every index         slices of the partitions that are left, see `hudimeta.indexes.skipping`

Only partitions that survive are asked for their files. What is not known excludes nothing; the report says so, and says of each
index that was not used why.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.config.options import VALIDATE
from hudimeta.errors import ConfigError, IndexNotReady, MetadataOutOfSync, NotFound, UnsupportedFeature
from hudimeta.indexes.decisions import Decisions
from hudimeta.indexes.scan_report import Skip, Unused
from hudimeta.snapshot.partition_columns import path_bounds, path_values
from hudimeta.types import QueryType

if TYPE_CHECKING:
    from hudimeta.indexes.pruning import Verdicts
    from hudimeta.indexes.skipping import Question, SkippingIndex
    from hudimeta.predicate import Bound, Expr
    from hudimeta.snapshot.snapshot import Snapshot

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
        skipped, unused, notes: See `ScanReport`.
        decisions: What decided, file by file.
        seconds: What planning took.
    """

    slices: pa.Table
    partitions: int = 0
    partitions_kept: int = 0
    slices_total: int = 0
    files_total: int = 0
    skipped: list[Skip] = field(default_factory=list)
    unused: list[Unused] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    decisions: Decisions = field(default_factory=Decisions)
    seconds: float = 0.0


def plan_slices(snapshot: Snapshot, bound: Bound | None, query_type: QueryType = QueryType.SNAPSHOT) -> PlannedSlices:
    """Choose the file slices of a read.

    Args:
        snapshot: The table at its moment.
        bound: The predicate, None for every row.
        query_type: SNAPSHOT or READ_OPTIMIZED.

    Raises:
        ValidationFailed: Validation was asked for by option, and the metadata table does not list what is on storage.
    """
    begin = time.perf_counter()
    plan = PlannedSlices(pa.table({}))
    if snapshot.options.get(VALIDATE):
        from hudimeta.snapshot.listing_check import check_against_storage

        plan.notes.append(check_against_storage(snapshot))
    if bound is None:
        plan.slices = snapshot.slices(None, query_type)
        _count(plan, None)
    else:
        plan = _planned(snapshot, bound, query_type, plan.notes)
    plan.decisions.kept = plan.slices
    plan.seconds = time.perf_counter() - begin
    return plan


def _planned(snapshot: Snapshot, bound: Bound, query_type: QueryType, notes: Sequence[str]) -> PlannedSlices:
    """A plan by what is known of rows, without indexes that are dropped or built anew meanwhile."""
    plan = PlannedSlices(pa.table({}), notes=[*notes])
    try:
        _plan_filtered(snapshot, bound, query_type, plan)
    except (MetadataOutOfSync, NotFound) as error:
        failed = error.partition if isinstance(error, MetadataOutOfSync) else error.path.partition("/")[0]
        anew = snapshot.forget_changed_indexes(failed)
        if anew is None:
            raise
        return _planned(
            snapshot, bound, query_type, [*notes, *(f"{name} not used: it was built anew meanwhile" for name in anew)]
        )
    return plan


def _plan_filtered(snapshot: Snapshot, bound: Bound, query_type: QueryType, plan: PlannedSlices) -> None:
    from hudimeta.indexes.allowed import check_allowed
    from hudimeta.indexes.skipping import Question

    check_allowed(snapshot)
    question = Question(snapshot, bound, query_type, notes=plan.notes, unused=plan.unused)
    indexes = _usable_indexes(question)
    question.partitions = _partitions(snapshot, bound, plan, question, indexes)
    plan.slices = snapshot.slices(question.partitions, query_type)
    _count(plan, question.partitions)
    for index in indexes:
        if not plan.slices.num_rows:
            break
        _skip_by_index(index, question, plan)


def planned_range(slices: pa.Table) -> PlannedSlices:
    """The plan of an incremental read whose slices are known: all of them."""
    import pyarrow.compute as pc

    logs = pc.sum(pc.list_value_length(slices.column("log_files"))).as_py() or 0
    partitions = len(slices.column("partition_path").unique())
    files = len(slices) - slices.column("base_file").null_count + logs
    return PlannedSlices(slices, partitions, partitions, len(slices), files, decisions=Decisions(slices))


def _count(plan: PlannedSlices, partitions: Sequence[str] | None) -> None:
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


def _partitions(
    snapshot: Snapshot, bound: Bound, plan: PlannedSlices, question: Question, indexes: Sequence[SkippingIndex]
) -> list[str] | None:
    """The partitions to look up; None for all, when none can be excluded."""
    paths = snapshot.listing.partitions()
    if isinstance(paths, pa.ChunkedArray):
        paths = paths.combine_chunks()
    plan.partitions = len(paths)
    if not snapshot.properties.partition_fields:
        return None
    kept = _by_paths(snapshot, bound, plan, paths)
    kept = _by_time_keys(snapshot, bound, plan, kept)
    kept = _by_partition_stats(question, plan, kept)
    kept = _by_key_indexes(question, indexes, plan, kept)
    if len(kept) == len(paths):
        return None
    result: list[str] = kept.to_pylist()
    return result


def _by_paths(snapshot: Snapshot, bound: Bound, plan: PlannedSlices, paths: pa.StringArray) -> pa.StringArray:
    from hudimeta.indexes.pruning import by_path_values
    from hudimeta.keys import PartitionLayout

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
    return _without_partitions(plan, "partition", paths, verdicts, bound.conjuncts)


def _without_partitions(
    plan: PlannedSlices, by: str, paths: pa.StringArray, verdicts: Verdicts, because: Sequence[Expr]
) -> pa.StringArray:
    """The partitions that are kept; the others go into the report."""
    plan.skipped += [Skip(by, sql, partitions=n) for sql, n, _ in verdicts.counts(because)]
    gone = ~verdicts.keep
    if gone.any():
        plan.decisions.partitions.append((paths.filter(pa.array(gone)), by, verdicts.texts(because)))
    return paths.filter(pa.array(verdicts.keep))


def _by_time_keys(snapshot: Snapshot, bound: Bound, plan: PlannedSlices, paths: pa.StringArray) -> pa.StringArray:
    """Partitions of a time-based key generator: the few values that the predicate allows lie in the partitions they make."""
    from hudimeta.keys import KeyGenerator, KeyGeneratorType
    from hudimeta.predicate import equalities
    from hudimeta.snapshot.time_partitions import partitions_of_values

    if not len(paths) or snapshot.properties.keygen.value != KeyGeneratorType.TIMESTAMP.value:
        return paths
    (name,) = snapshot.properties.partition_fields
    values = equalities(bound).get(name)
    if values is None:
        return paths
    try:
        generator = KeyGenerator.from_properties(snapshot.properties)
    except (ConfigError, UnsupportedFeature):
        return paths  # older tables do not store how time becomes a path
    wanted = partitions_of_values(generator, values)
    if wanted is None:
        return paths
    import pyarrow.compute as pc

    in_them = pc.is_in(paths, value_set=wanted)
    kept = paths.filter(in_them)
    if len(kept) < len(paths):
        why = f"{name} has one of {len(values)} values"
        plan.skipped.append(Skip("partition", why, partitions=len(paths) - len(kept)))
        gone = paths.filter(pc.invert(in_them))
        plan.decisions.partitions.append((gone, "partition", pa.repeat(why, len(gone))))
        plan.notes = [note for note in plan.notes if not note.startswith(f"partition column {name}:")]
    return kept


def _by_partition_stats(question: Question, plan: PlannedSlices, paths: pa.StringArray) -> pa.StringArray:
    import numpy as np

    from hudimeta.indexes.allowed import why_forbidden
    from hudimeta.indexes.column_stats.skip import statistic_columns
    from hudimeta.indexes.proof import runs_ahead, why_unproven
    from hudimeta.indexes.pruning import FileBounds, Verdicts
    from hudimeta.predicate import FileStats, may_match

    snapshot, bound = question.snapshot, question.bound
    if snapshot.metadata is None or _PARTITION_STATS not in question.ready:
        return paths
    columns = statistic_columns(snapshot, bound)
    why = None
    if not _may_use(snapshot, _PARTITION_STATS):
        why = why_forbidden(snapshot)
    elif not columns:
        why = "the predicate looks at no column that has bounds"
    elif len(paths) < 2 or (len(paths) <= _FEW_PARTITIONS and _may_use(snapshot, _COLUMN_STATS)):
        why = f"{len(paths)} partitions are left, and what is known of their files decides better"
    elif not snapshot.is_latest or snapshot.history is not None or runs_ahead(snapshot.metadata):
        why = "they hold only the latest state of the table"
    why = why or why_unproven(question, (_PARTITION_STATS,))
    if why is not None:
        question.not_used(_PARTITION_STATS, why)
        return paths
    try:
        stats = snapshot.metadata.partition_stats(columns)
    except IndexNotReady:
        return paths
    ordered = FileBounds(paths, "partition_path")
    bounds = {name: ordered.of(table) for name, table in stats.items() if table.num_rows}
    if not bounds:
        return paths
    bounds.update(path_bounds(snapshot, {column.name for column in bound.columns}, paths))
    verdict = may_match(bound, FileStats(len(paths), bounds))
    verdicts = Verdicts(verdict.keep, verdict.decided_by.astype(np.int64))
    return _without_partitions(plan, _PARTITION_STATS, paths, verdicts, bound.conjuncts)


def _by_key_indexes(
    question: Question, indexes: Sequence[SkippingIndex], plan: PlannedSlices, paths: pa.StringArray
) -> pa.StringArray:
    """Partitions that hold rows which the predicate asks for by key, as far as indexes know."""
    import numpy as np
    import pyarrow.compute as pc

    from hudimeta.indexes.pruning import Verdicts

    for index in indexes:
        locate = getattr(index, "partitions", None)
        found = locate(question) if locate is not None and len(paths) else None
        if found is not None:
            known, because = found
            keep = np.asarray(pc.is_in(paths, value_set=known))
            verdicts = Verdicts(keep, np.where(keep, -1, 0).astype(np.int64))
            paths = _without_partitions(plan, index.name, paths, verdicts, (because,))
    return paths


# Files


def _usable_indexes(question: Question) -> list[SkippingIndex]:
    """The indexes that can help; why the others cannot goes into the notes."""
    from hudimeta.indexes.allowed import FOOTERS, may_use, why_forbidden
    from hudimeta.indexes.column_stats.skip import statistic_columns
    from hudimeta.indexes.skipping import indexes_of

    snapshot = question.snapshot
    usable = []
    for index in indexes_of(question):
        allowed = may_use(snapshot, index.kind, index.name)
        why = index.why_not(question) if allowed else why_forbidden(snapshot)
        if why is None:
            usable.append(index)
        else:
            question.not_used(index.name, why)
    if _COLUMN_STATS not in question.ready and statistic_columns(snapshot, question.bound):
        question.not_used(_COLUMN_STATS, snapshot.listing_reason or "the table has no such index")
    if not may_use(snapshot, FOOTERS):
        question.not_used(FOOTERS, why_forbidden(snapshot))
    return usable


def _skip_by_index(index: SkippingIndex, question: Question, plan: PlannedSlices) -> None:
    """Leave out of the plan what an index excludes."""
    question.slices = plan.slices
    exclusion = index.exclude(question)
    verdicts, because = exclusion.verdicts, exclusion.because
    for sql, n, n_files in verdicts.counts(because, question.files.files_per_slice):
        plan.skipped.append(Skip(index.name, sql, slices=n, files=n_files))
    gone = ~verdicts.keep
    if gone.any():
        plan.decisions.slices.append((plan.slices.filter(pa.array(gone)), index.name, verdicts.texts(because)))
        plan.slices = plan.slices.filter(pa.array(verdicts.keep))


def _may_use(snapshot: Snapshot, partition: str) -> bool:
    from hudimeta.indexes.allowed import may_use

    ready = snapshot.metadata.ready if snapshot.metadata is not None else ()
    return partition in ready and may_use(snapshot, partition)
