"""Indexes that leave file slices out of a read: one small module each, asked one after the other, cheapest first.

    column_stats        bounds of columns, by file
    expression_index    bounds, or a bloom filter, of an expression over a column, by file
    record_index        the file group of each record key
    secondary_index     the record keys of each value of a column, then the record index
    bloom_filters       which record keys a base file may hold
    row_groups          what the footer of a base file says, once it is open: bounds, range and bloom filter of the keys

An index says first why it cannot help (`why_not`), else which slices hold no row that the predicate keeps (`exclude`). What it
does not know stays in the read, so switching an index off changes what is opened and never what is returned.
"""

from __future__ import annotations

from hudimeta.indexes.question import Candidates, Exclusion, Question, SkippingIndex

__all__ = ["Candidates", "Exclusion", "Question", "SkippingIndex", "indexes_of"]


def indexes_of(question: Question) -> list[SkippingIndex]:
    """The indexes of a table in the order in which to ask them; statistics of partitions are not among them."""
    from hudimeta.indexes.bloom_filters.skip import BloomFilters
    from hudimeta.indexes.column_stats.skip import ColumnStats
    from hudimeta.indexes.expression_index.skip import ExpressionIndex
    from hudimeta.indexes.record_index.skip import RecordIndex
    from hudimeta.indexes.secondary_index.skip import SecondaryIndex
    from hudimeta.metadata import bloom_filters, column_stats, expression_index, record_index, secondary_index

    ready = question.ready
    found: list[SkippingIndex] = [ColumnStats()] if column_stats.PARTITION in ready else []
    found += [ExpressionIndex(name) for name in ready if name.startswith(expression_index.PREFIX)]
    found += [RecordIndex()] if record_index.PARTITION in ready else []
    found += [SecondaryIndex(name) for name in ready if name.startswith(secondary_index.PREFIX)]
    found += [BloomFilters()] if bloom_filters.PARTITION in ready else []
    return found
