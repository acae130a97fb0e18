"""Bounds of columns, by file: the metadata partition `column_stats`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.indexes.question import Candidates, Exclusion, Question
from hudimeta.metadata import answers, column_stats

if TYPE_CHECKING:
    from hudimeta.indexes.column_stats.kept import Missing
    from hudimeta.indexes.pruning import Verdicts
    from hudimeta.predicate import Bound
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["ColumnStatsSkip", "statistic_columns", "why_no_columns"]


class ColumnStatsSkip:
    """Leaves out slices none of whose files holds values that the predicate keeps."""

    name = kind = column_stats.PARTITION

    def why_not(self, question: Question) -> str | None:
        """See `SkippingIndex`."""
        return why_no_columns(question)

    def exclude(self, question: Question, candidates: Candidates) -> Exclusion:
        """See `SkippingIndex`."""

        columns = statistic_columns(question.snapshot, question.bound)
        because = question.bound.conjuncts
        kept = None
        if question.snapshot.kept_plan is not None:
            from hudimeta.indexes.column_stats.kept import exclude_by_kept

            kept = exclude_by_kept(question, candidates, columns, lambda few: _looked_up(question, few, columns)[:2])
        if kept is not None:
            return Exclusion(kept[0], because, remarks=_remarks(question, columns, kept[1]))
        verdicts, missing, bounds = _looked_up(question, candidates, columns)
        if question.snapshot.kept_plan is not None:
            from hudimeta.indexes.column_stats.kept import keep_bounds

            keep_bounds(question, candidates, bounds, columns)
        return Exclusion(verdicts, because, bounds, _remarks(question, columns, missing))


def _looked_up(
    question: Question, candidates: Candidates, columns: Mapping[str, pa.DataType]
) -> tuple[Verdicts, Missing, Mapping[str, pa.Table]]:
    """What the metadata table says: verdicts, for how many files it says nothing, and the statistics."""
    from hudimeta.indexes.pruning import by_statistics
    from hudimeta.snapshot.partition_columns import path_bounds

    bounds = answers.column_stats(question.metadata, columns, candidates.partitions)
    found, files = candidates.ordered(bounds), len(candidates.files)
    missing = {}
    for name, known in found.items():
        missing[name] = known.value_count.null_count if known.value_count is not None else files, files
    looked_at = {column.name for column in question.bound.columns}
    found.update(path_bounds(question.snapshot, looked_at, candidates.file_partitions))
    return by_statistics(question.bound, candidates.files, found), missing, bounds


def why_no_columns(question: Question) -> str | None:
    """Why statistics bound no column of the predicate; None where they bound one."""
    if statistic_columns(question.snapshot, question.bound):
        return None
    if renamed := _renamed(question):
        return f"older files hold {', '.join(renamed)} under another name or type"
    return "the predicate looks at no column that has bounds"


def _renamed(question: Question) -> list[str]:
    """Columns of the predicate whose names do not lead to them in older files, and so not in statistics."""
    return [column.name for column in question.bound.columns if not question.is_kept(column.name)]


def _remarks(question: Question, columns: Mapping[str, pa.DataType], missing: Missing) -> tuple[str, ...]:
    remarks = [f"column_stats: older files hold {name} under another name or type" for name in _renamed(question)]
    for name in columns:
        if name not in missing:
            remarks.append(f"column_stats: column {name} is not indexed")
        elif missing[name][0]:
            lacking, files = missing[name]
            remarks.append(f"column_stats: no statistics of {name} for {lacking:,} of {files:,} files")
    return tuple(remarks)


def statistic_columns(snapshot: Snapshot, bound: Bound) -> dict[str, pa.DataType]:
    """Columns of the predicate that statistics may bound, with the types in which they were recorded.

    A moment is a number there, in the unit in which it is stored, which is not always the one in which it is shown.
    """
    from hudimeta.slices.ordering import field_type
    from hudimeta.snapshot.column_history import keeps
    from hudimeta.snapshot.partition_columns import stated_columns

    found = {}
    stated = stated_columns(snapshot)
    for column in bound.columns:
        if column.name in stated:  # paths say what rows show, whatever files hold
            continue
        if not keeps(snapshot, column.name):
            continue
        kind = field_type(snapshot.schema.arrow, column.name)
        if kind is not None and pa.types.is_timestamp(kind):
            kind = field_type(snapshot.schema.stored, column.name) or kind
        if kind is not None and not pa.types.is_nested(kind):
            found[column.name] = kind
    return found
