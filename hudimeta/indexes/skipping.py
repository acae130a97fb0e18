"""Indexes that leave file slices out of a read: one small module each, asked one after the other, cheapest first.

    record_index        the file group of each record key
    column_stats        bounds of columns, by file
    expression_index    bounds, or a bloom filter, of an expression over a column, by file
    secondary_index     the record keys of each value of a column, then the record index
    bloom_filters       which record keys a base file may hold
    row_groups          what the footer of a base file says, once it is open: bounds, range and bloom filter of the keys

An index says first why it cannot help (`why_not`), else which slices hold no row that the predicate keeps (`exclude`). What it
does not know stays in the read, so switching an index off changes what is opened and never what is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hudimeta.indexes.question import Candidates, Exclusion, Question, SkippingIndex

__all__ = ["Candidates", "Exclusion", "Question", "SkippingIndex", "indexes_of"]


def indexes_of(question: Question) -> list[SkippingIndex]:
    """The indexes of a table in the order in which to ask them; statistics of partitions are not among them."""
    return [index for kind in KINDS for index in kind(question)]


def _column_stats(question: Question) -> Iterator[SkippingIndex]:
    from hudimeta.metadata import column_stats

    if column_stats.PARTITION in question.ready:
        from hudimeta.indexes.column_stats.skip import ColumnStatsSkip

        yield ColumnStatsSkip()


def _expression_indexes(question: Question) -> Iterator[SkippingIndex]:
    from hudimeta.metadata import expression_index

    for name in question.ready:
        if name.startswith(expression_index.PREFIX):
            from hudimeta.indexes.expression_index.skip import ExpressionIndexSkip

            yield ExpressionIndexSkip(name)


def _record_index(question: Question) -> Iterator[SkippingIndex]:
    from hudimeta.metadata import record_index

    if record_index.PARTITION in question.ready:
        from hudimeta.indexes.record_index.skip import RecordIndexSkip

        yield RecordIndexSkip()


def _secondary_indexes(question: Question) -> Iterator[SkippingIndex]:
    from hudimeta.metadata import secondary_index

    for name in question.ready:
        if name.startswith(secondary_index.PREFIX):
            from hudimeta.indexes.secondary_index.skip import SecondaryIndexSkip

            yield SecondaryIndexSkip(name)


def _bloom_filters(question: Question) -> Iterator[SkippingIndex]:
    from hudimeta.metadata import bloom_filters

    if bloom_filters.PARTITION in question.ready:
        from hudimeta.indexes.bloom_filters.skip import BloomFiltersSkip

        yield BloomFiltersSkip()


KINDS: tuple[Callable[[Question], Iterable[SkippingIndex]], ...] = (
    _record_index,
    _column_stats,
    _expression_indexes,
    _secondary_indexes,
    _bloom_filters,
)
"""For each kind, which indexes of it a table has, in the order of asking. A new kind is one line here."""
