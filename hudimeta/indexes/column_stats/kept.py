"""Bounds of columns from kept plans: in the order of the files of the kept slices, so that nothing is looked up by name.

Files that came since a plan was kept are looked up as ever, and what both say is put together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hudimeta.formats.plain_arrays import flags, single_array
from hudimeta.indexes.pruning import FileBounds, FilesOfSlices, Verdicts, by_statistics
from hudimeta.indexes.question import Candidates, Mask, Question
from hudimeta.metadata import bloom_filters, expression_index
from hudimeta.predicate import ColumnBounds

if TYPE_CHECKING:
    from hudimeta.plan_cache import PlanCache
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["Missing", "exclude_by_kept", "keep_bounds"]

Missing = Mapping[str, tuple[int, int]]
"""By column for how many files there are no statistics, and of how many; a column that is not indexed at all is absent."""


def exclude_by_kept(
    question: Question,
    candidates: Candidates,
    columns: Mapping[str, pa.DataType],
    plain: Callable[[Candidates], tuple[Verdicts, Missing]],
) -> tuple[Verdicts, Missing] | None:
    """Which slices are left out by kept bounds; None where not all columns are kept, or others shall see the bounds.

    Args:
        question: What is asked.
        candidates: The slices.
        columns: Columns with statistics that the predicate looks at.
        plain: Answers for a few slices without anything kept.
    """
    kept = _kept_of(question.snapshot, candidates)
    if kept is None or kept.manifest is None or _others_see_bounds(question, columns):
        return None
    tables = {name: kept.bounds(name, kind) for name, kind in columns.items()}
    found = {name: _as_bounds(table) for name, table in tables.items() if table is not None}
    if len(found) < len(columns):
        return None
    manifest = kept.manifest
    changed = bool(len(manifest.gone) or len(manifest.newer))
    files = FilesOfSlices.of(manifest.rows) if changed else candidates.files
    first = by_statistics(question.bound, files, found)
    if not changed:
        return first, {name: (_count_unknown(bounds), len(files)) for name, bounds in found.items()}
    counts = np.ones(len(manifest.rows), np.bool_)
    counts[manifest.gone] = False
    first, of_files = Verdicts(first.keep[counts], first.reason[counts]), counts[files.of_slice]
    missing = {name: ((_unknown(bounds) & of_files).sum(), of_files.sum()) for name, bounds in found.items()}
    if not len(manifest.newer):
        return first, missing
    partitions = manifest.newer.column("partition_path").unique().to_pylist()
    second, also = plain(Candidates(manifest.newer, partitions))
    newer_files = len(FilesOfSlices.of(manifest.newer))
    for name, (lacking, of) in missing.items():
        more = also.get(name, (newer_files, newer_files))
        missing[name] = lacking + more[0], of + more[1]
    keep, reason = np.concatenate([first.keep, second.keep]), np.concatenate([first.reason, second.reason])
    return Verdicts(keep, reason), missing


def keep_bounds(
    question: Question, candidates: Candidates, stats: Mapping[str, pa.Table], kinds: Mapping[str, pa.DataType]
) -> None:
    """Keep the bounds that were read for all slices of a kept plan.

    Args:
        question: What was asked.
        candidates: The slices.
        stats: By column what the metadata table said of all files.
        kinds: By column its type.
    """
    kept = _kept_of(question.snapshot, candidates)
    if kept is None or kept.manifest is None:
        return
    lacking = [name for name, table in stats.items() if table.num_rows and kept.bounds(name, kinds[name]) is None]
    if not lacking:
        return
    names = FilesOfSlices.of(kept.manifest.rows).names
    if len(names.unique()) < len(names):
        return  # statistics of files of one name are united, and one of these may come or go later
    order = FileBounds(names)
    for name in lacking:
        kept.keep_bounds(name, kinds[name], _as_table(order.of(stats[name])))


def _kept_of(snapshot: Snapshot, candidates: Candidates) -> PlanCache | None:
    """The kept plan whose slices the candidates are, all of them."""
    kept = snapshot.kept_plan
    return kept if kept is not None and kept.whole is not None and candidates.slices is kept.whole else None


def _others_see_bounds(question: Question, columns: Mapping[str, pa.DataType]) -> bool:
    """Whether there are indexes that go by the bounds found here, or bounds that paths state."""
    looked_at = {column.name for column in question.bound.columns}
    named = (bloom_filters.PARTITION, expression_index.PREFIX)
    return looked_at != columns.keys() or any(name.startswith(named) for name in question.ready)


def _as_table(bounds: ColumnBounds) -> pa.Table:
    aware = np.broadcast_to(np.asarray(bounds.nan_aware), len(bounds.min))
    columns = [bounds.min, bounds.max, bounds.null_count, bounds.value_count, pa.array(aware)]
    return pa.table(columns, ["min", "max", "null_count", "value_count", "nan_aware"])


def _as_bounds(table: pa.Table) -> ColumnBounds:
    low, high, nulls, rows, aware = (single_array(column) for column in table.columns)
    return ColumnBounds(low, high, nulls, rows, flags(aware))


def _unknown(bounds: ColumnBounds) -> Mask:
    """For which files there are no statistics."""
    if bounds.value_count is None:
        return np.ones(len(bounds.min), np.bool_)
    return flags(bounds.value_count.is_null())


def _count_unknown(bounds: ColumnBounds) -> int:
    return len(bounds.min) if bounds.value_count is None else bounds.value_count.null_count
