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
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.config.options import VALIDATE
from hudimeta.errors import ConfigError, IndexNotReady, MetadataFileMissing, MetadataOutOfSync, NotFound, UnsupportedFeature
from hudimeta.formats.plain_arrays import array_of, numpy_of, single_array
from hudimeta.indexes.decisions import Decisions, LeftOut
from hudimeta.indexes.scan_report import Skip, Unused
from hudimeta.read.chosen_partitions import chosen_partitions
from hudimeta.snapshot.opened_ahead import find_ahead
from hudimeta.snapshot.partition_columns import path_bounds, path_values
from hudimeta.types import QueryType

if TYPE_CHECKING:
    from hudimeta.indexes.pruning import Verdicts
    from hudimeta.indexes.skipping import Candidates, Question, SkippingIndex
    from hudimeta.predicate import Bound, Expr
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["PlannedSlices", "plan_slices", "planned_range"]

_PARTITION_COLUMN = "_hoodie_partition_path"
_COLUMN_STATS = "column_stats"
_PARTITION_STATS = "partition_stats"
_RECORD_INDEX = "record_index"
_LOCATED = "the record index tells where the keys are"
_FEW_PARTITIONS = 64
"""Up to so many partitions, statistics of files alone decide: they are tighter, and the others would cost requests of their own
(a base file and every log that is not yet compacted) only to save looking up a few entries in what is read anyway."""


Gone = tuple[pa.Array, str, pa.Array]
"""Paths of partitions that are left out, by what, and for each the part of the predicate why."""


@dataclass(frozen=True)
class PlannedSlices:
    """What a plan found, and how.

    Attributes:
        snapshot: The table as it was planned: without indexes that were dropped or built anew meanwhile.
        slices: Columns of `table.slices.slices_schema()`: what must be read.
        partitions, partitions_kept, slices_total, files_total: See `ScanReport`.
        skipped, unused, notes: See `ScanReport`.
        decisions: What decided, file by file.
        seconds: What planning took.
    """

    snapshot: Snapshot
    slices: pa.Table
    partitions: int
    partitions_kept: int
    slices_total: int
    files_total: int
    skipped: tuple[Skip, ...] = ()
    unused: tuple[Unused, ...] = ()
    notes: tuple[str, ...] = ()
    decisions: Decisions = field(default_factory=Decisions)
    seconds: float = 0.0


@dataclass(frozen=True)
class _Step:
    """What one kind of knowledge left out, for the report, and what it could not tell."""

    skipped: tuple[Skip, ...] = ()
    remarks: tuple[str | Unused, ...] = ()
    partitions: tuple[Gone, ...] = ()
    slices: tuple[LeftOut, ...] = ()


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
    notes: tuple[str, ...] = ()
    if snapshot.options.get(VALIDATE):
        from hudimeta.snapshot.listing_check import check_against_storage

        notes = (check_against_storage(snapshot),)
    elif snapshot.modes.validated:
        from hudimeta.snapshot.listing_check import compare_with_metadata

        notes = (compare_with_metadata(snapshot),)
    if bound is None:
        plan = planned_range(snapshot, snapshot.slices(chosen_partitions(snapshot), query_type))
    else:
        plan = _planned(snapshot, bound, query_type)
    notes += plan.snapshot.plan_remarks
    return replace(plan, notes=notes + plan.notes, seconds=time.perf_counter() - begin)


def planned_range(snapshot: Snapshot, slices: pa.Table) -> PlannedSlices:
    """The plan of a read whose slices are known: all of them."""
    partitions = len(slices.column("partition_path").unique())
    return PlannedSlices(
        snapshot, slices, partitions, partitions, len(slices), _file_count(slices), decisions=Decisions(slices)
    )


def _file_count(slices: pa.Table) -> int:
    import pyarrow.compute as pc

    logs = pc.sum(pc.list_value_length(slices.column("log_files"))).as_py() or 0
    return len(slices) - int(slices.column("base_file").null_count) + int(logs)


def _planned(snapshot: Snapshot, bound: Bound, query_type: QueryType) -> PlannedSlices:
    """A plan by what is known of rows, without indexes that are dropped or built anew meanwhile."""
    from hudimeta.indexes.skipping import Question

    try:
        return _plan_filtered(Question(snapshot, bound, query_type))
    except (MetadataOutOfSync, NotFound) as error:
        failed = error.partition if isinstance(error, (MetadataOutOfSync, MetadataFileMissing)) else ""
        changed = snapshot.without_changed_indexes(failed)
        if changed is None:
            raise
    plan = _planned(changed.snapshot, bound, query_type)
    return replace(plan, notes=(*(f"{name} not used: it was built anew meanwhile" for name in changed.anew), *plan.notes))


def _plan_filtered(question: Question) -> PlannedSlices:
    from hudimeta.indexes.allowed import check_allowed
    from hudimeta.indexes.skipping import Candidates

    snapshot = question.snapshot
    check_allowed(snapshot)
    indexes, unused = _usable_indexes(question)
    steps = [_Step(remarks=unused)]
    chosen = chosen_partitions(snapshot)
    are_found = find_ahead(snapshot, [index.name for index in indexes])
    paths = single_array(snapshot.partitions() if chosen is None else array_of(chosen, pa.string()))
    are_found()
    kept, found = _partitions(question, indexes, paths)
    steps += found
    wanted = chosen if len(kept) == len(paths) else kept.to_pylist()
    whole = snapshot.slices(wanted, question.query_type)
    left = Candidates(whole, wanted)
    for index in indexes:
        if left.slices.num_rows:
            left, step = _skip_by_index(index, question, left)
            steps.append(step)
    remarks = [remark for step in steps for remark in step.remarks]
    return PlannedSlices(
        snapshot,
        left.slices,
        partitions=len(paths),
        partitions_kept=len(kept),
        slices_total=len(whole),
        files_total=_file_count(whole),
        skipped=tuple(skip for step in steps for skip in step.skipped),
        unused=tuple(remark for remark in remarks if isinstance(remark, Unused)),
        notes=tuple(map(str, remarks)),
        decisions=Decisions(
            left.slices,
            tuple(gone for step in steps for gone in step.slices),
            tuple(gone for step in steps for gone in step.partitions),
        ),
    )


# Partitions


def _partitions(
    question: Question, indexes: Sequence[SkippingIndex], paths: pa.StringArray
) -> tuple[pa.StringArray, list[_Step]]:
    """The partitions to look up, and why not the others."""
    if not question.snapshot.properties.partition_fields:
        return paths, []
    kept, by_paths = _by_paths(question, paths)
    kept, by_times = _by_time_keys(question, kept)
    if by_times.skipped:
        by_paths = replace(by_paths, remarks=())  # what the path does not state was computed from the key
    kept, by_stats = _by_partition_stats(question, kept, located=_locates_all(indexes, question))
    kept, by_keys = _by_key_indexes(question, indexes, kept)
    return kept, [by_paths, by_times, by_stats, *by_keys]


def _by_paths(question: Question, paths: pa.StringArray) -> tuple[pa.StringArray, _Step]:
    from hudimeta.indexes.pruning import by_path_values
    from hudimeta.keys import PartitionLayout

    snapshot, bound = question.snapshot, question.bound
    layout = PartitionLayout.from_properties(snapshot.properties)
    values = path_values(paths, layout, snapshot.schema.arrow, snapshot.properties)
    uncertain = [name for name in layout.fields if name not in values.column_names]
    if snapshot.properties.populate_meta:
        # A table without columns has no rows either, so that nothing can be appended to it.
        values = values.append_column(_PARTITION_COLUMN, paths) if values.num_columns else pa.table({_PARTITION_COLUMN: paths})
    looked_at = {c.name for c in bound.columns}
    unclear = [name for name in uncertain if name in looked_at]
    notes = tuple(f"partition column {name}: its values cannot be read back from partition paths" for name in unclear)
    if not looked_at & set(values.column_names):
        return paths, _Step(remarks=notes)
    kept, step = _without_partitions("partition", paths, by_path_values(bound, values), bound.conjuncts)
    return kept, replace(step, remarks=notes)


def _without_partitions(
    by: str, paths: pa.StringArray, verdicts: Verdicts, because: Sequence[Expr]
) -> tuple[pa.StringArray, _Step]:
    """The partitions that are kept; the others go into the report."""
    if verdicts.keep.all():
        return paths, _Step()
    skipped = tuple(Skip(by, sql, partitions=n) for sql, n, _ in verdicts.counts(because))
    gone = (paths.filter(array_of(~verdicts.keep)), by, verdicts.texts(because))
    return paths.filter(array_of(verdicts.keep)), _Step(skipped, partitions=(gone,))


def _by_time_keys(question: Question, paths: pa.StringArray) -> tuple[pa.StringArray, _Step]:
    """Partitions of a time-based key generator: the few values that the predicate allows lie in the partitions they make."""
    from hudimeta.keys import KeyGenerator, KeyGeneratorType
    from hudimeta.predicate import equalities
    from hudimeta.snapshot.partition_columns import partitions_of_values

    snapshot = question.snapshot
    if not len(paths) or snapshot.properties.keygen.value != KeyGeneratorType.TIMESTAMP.value:
        return paths, _Step()
    (name,) = snapshot.properties.partition_fields
    values = equalities(question.bound).get(name)
    if values is None:
        return paths, _Step()
    try:
        generator = KeyGenerator.from_properties(snapshot.properties)
    except (ConfigError, UnsupportedFeature):
        return paths, _Step()  # older tables do not store how time becomes a path
    wanted = partitions_of_values(generator, values)
    if wanted is None:
        return paths, _Step()
    import pyarrow.compute as pc

    in_them = pc.is_in(paths, value_set=wanted)
    kept = paths.filter(in_them)
    if len(kept) == len(paths):
        return paths, _Step()
    why = f"{name} has one of {len(values)} values"
    gone = paths.filter(pc.invert(in_them))
    return kept, _Step(
        (Skip("partition", why, partitions=len(gone)),), partitions=((gone, "partition", pa.repeat(why, len(gone))),)
    )


def _by_partition_stats(question: Question, paths: pa.StringArray, *, located: bool) -> tuple[pa.StringArray, _Step]:
    import numpy as np

    from hudimeta.indexes.allowed import why_forbidden
    from hudimeta.indexes.column_stats.skip import statistic_columns, why_no_columns
    from hudimeta.indexes.proof import runs_ahead, why_unproven
    from hudimeta.indexes.pruning import FileBounds, Verdicts
    from hudimeta.metadata import answers
    from hudimeta.predicate import FileStats, may_match

    snapshot, bound = question.snapshot, question.bound
    if snapshot.metadata is None or _PARTITION_STATS not in question.ready:
        return paths, _Step()
    columns = statistic_columns(snapshot, bound)
    why = None
    if not _may_use(snapshot, _PARTITION_STATS):
        why = why_forbidden(snapshot)
    elif not columns:
        why = why_no_columns(question)
    elif located:
        why = _LOCATED
    elif len(paths) < 2 or (len(paths) <= _FEW_PARTITIONS and _may_use(snapshot, _COLUMN_STATS)):
        why = f"{len(paths)} partitions are left, and what is known of their files decides better"
    elif not snapshot.is_latest or runs_ahead(snapshot.metadata):
        why = "they hold only the latest state of the table"
    why = why or why_unproven(question, (_PARTITION_STATS,))
    if why is not None:
        return paths, _Step(remarks=(Unused(_PARTITION_STATS, why),))
    try:
        stats = answers.partition_stats(snapshot.metadata, columns)
    except IndexNotReady:
        return paths, _Step()
    ordered = FileBounds(paths, "partition_path")
    bounds = {name: ordered.of(table) for name, table in stats.items() if table.num_rows}
    if not bounds:
        return paths, _Step()
    bounds.update(path_bounds(snapshot, {column.name for column in bound.columns}, paths))
    verdict = may_match(bound, FileStats(len(paths), bounds))
    verdicts = Verdicts(verdict.keep, verdict.decided_by.astype(np.int64))
    return _without_partitions(_PARTITION_STATS, paths, verdicts, bound.conjuncts)


def _by_key_indexes(
    question: Question, indexes: Sequence[SkippingIndex], paths: pa.StringArray
) -> tuple[pa.StringArray, list[_Step]]:
    """Partitions that hold rows which the predicate asks for by key, as far as indexes know."""
    import numpy as np
    import pyarrow.compute as pc

    from hudimeta.indexes.pruning import Verdicts

    steps = []
    for index in indexes:
        locate = getattr(index, "partitions", None)
        found = locate(question) if locate is not None and len(paths) else None
        if found is not None:
            known, because = found
            keep = numpy_of(pc.is_in(paths, value_set=known))
            verdicts = Verdicts(keep, np.where(keep, -1, 0).astype(np.int64))
            paths, step = _without_partitions(index.name, paths, verdicts, (because,))
            steps.append(step)
    return paths, steps


# Files


def _usable_indexes(question: Question) -> tuple[list[SkippingIndex], tuple[Unused, ...]]:
    """The indexes that can help, and why the others cannot."""
    from hudimeta.indexes.allowed import FOOTERS, may_use, why_forbidden
    from hudimeta.indexes.column_stats.skip import statistic_columns
    from hudimeta.indexes.skipping import indexes_of

    snapshot = question.snapshot
    usable, unused = [], []
    for index in indexes_of(question):
        allowed = may_use(snapshot, index.kind, index.name)
        why = index.why_not(question) if allowed else why_forbidden(snapshot)
        if why is None:
            usable.append(index)
        else:
            unused.append(Unused(index.name, why))
    if _locates_all(usable, question):
        unused += [Unused(index.name, _LOCATED) for index in usable if index.kind != _RECORD_INDEX]
        usable = [index for index in usable if index.kind == _RECORD_INDEX]
    begun = snapshot.metadata.unfinished if snapshot.metadata is not None else {}
    unused += [Unused(name, f"its building, begun at {instant}, was not finished") for name, instant in sorted(begun.items())]
    if _COLUMN_STATS not in {*question.ready, *begun} and statistic_columns(snapshot, question.bound):
        unused.append(Unused(_COLUMN_STATS, snapshot.listing_reason or "the table has no such index"))
    if not may_use(snapshot, FOOTERS):
        unused.append(Unused(FOOTERS, why_forbidden(snapshot)))
    return usable, tuple(unused)


def _locates_all(indexes: Sequence[SkippingIndex], question: Question) -> bool:
    """Whether the record index names the file groups with the rows, so that nothing else can say more: each look-up would
    cost requests, and statistics of files more with every file."""
    keys = question.keys
    return not isinstance(keys, str) and keys.alone and any(index.kind == _RECORD_INDEX for index in indexes)


def _skip_by_index(index: SkippingIndex, question: Question, candidates: Candidates) -> tuple[Candidates, _Step]:
    """What an index leaves of the candidates."""
    exclusion = index.exclude(question, candidates)
    verdicts, because = exclusion.verdicts, exclusion.because
    if verdicts.keep.all():
        return candidates.after(exclusion), _Step(remarks=exclusion.remarks)
    skipped = tuple(
        Skip(index.name, sql, slices=n, files=n_files)
        for sql, n, n_files in verdicts.counts(because, candidates.files.files_per_slice)
    )
    gone = LeftOut(candidates.slices, verdicts, index.name, because)
    return candidates.after(exclusion), _Step(skipped, exclusion.remarks, slices=(gone,))


def _may_use(snapshot: Snapshot, partition: str) -> bool:
    from hudimeta.indexes.allowed import may_use

    ready = snapshot.metadata.ready if snapshot.metadata is not None else ()
    return partition in ready and may_use(snapshot, partition)
