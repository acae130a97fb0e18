"""Bounds of columns, by file: the metadata partition `column_stats`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.indexes.question import Candidates, Exclusion, Question
from hudimeta.metadata import answers, column_stats

if TYPE_CHECKING:
    from hudimeta.predicate import Bound
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["ColumnStatsSkip", "statistic_columns"]


class ColumnStatsSkip:
    """Leaves out slices none of whose files holds values that the predicate keeps."""

    name = kind = column_stats.PARTITION

    def why_not(self, question: Question) -> str | None:
        """See `SkippingIndex`."""
        if not statistic_columns(question.snapshot, question.bound):
            return "the predicate looks at no column that has bounds"
        if question.snapshot.history is not None:
            return "the table was altered, and statistics go by the columns' former names"
        return None

    def exclude(self, question: Question, candidates: Candidates) -> Exclusion:
        """See `SkippingIndex`."""
        from hudimeta.indexes.pruning import by_statistics
        from hudimeta.snapshot.partition_columns import path_bounds

        columns = statistic_columns(question.snapshot, question.bound)
        bounds = answers.column_stats(question.metadata, columns, candidates.partitions)
        found, remarks = candidates.ordered(bounds), []
        for name in bounds:
            if name not in found:
                remarks.append(f"column_stats: column {name} is not indexed")
                continue
            unknown, files = found[name].value_count, len(candidates.files.names)
            missing = unknown.null_count if unknown is not None else files
            if missing:
                remarks.append(f"column_stats: no statistics of {name} for {missing:,} of {files:,} files")
        looked_at = {column.name for column in question.bound.columns}
        found.update(path_bounds(question.snapshot, looked_at, candidates.file_partitions))
        verdicts = by_statistics(question.bound, candidates.files, found)
        return Exclusion(verdicts, question.bound.conjuncts, bounds, tuple(remarks))


def statistic_columns(snapshot: Snapshot, bound: Bound) -> dict[str, pa.DataType]:
    """Columns of the predicate that statistics may bound, with the types in which they were recorded.

    A moment is a number there, in the unit in which it is stored, which is not always the one in which it is shown.
    """
    from hudimeta.slices.ordering import field_type
    from hudimeta.snapshot.partition_columns import stated_columns

    found = {}
    stated = stated_columns(snapshot)
    for column in bound.columns:
        if column.name in stated:  # paths say what rows show, whatever files hold
            continue
        kind = field_type(snapshot.schema.arrow, column.name)
        if kind is not None and pa.types.is_timestamp(kind):
            kind = field_type(snapshot.schema.stored, column.name) or kind
        if kind is not None and not pa.types.is_nested(kind):
            found[column.name] = kind
    return found
