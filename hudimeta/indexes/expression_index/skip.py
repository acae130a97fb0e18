"""Values of an expression over a column, by file: the metadata partitions `expr_index_<name>`, bounds or bloom filters."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hudimeta.config.options import INDEX_TRUST
from hudimeta.formats.plain_arrays import array_of
from hudimeta.indexes.bloom_filters.skip import without_any
from hudimeta.indexes.expression_index.matching import IndexedExpression, indexed_expression, widened
from hudimeta.indexes.pruning import Verdicts
from hudimeta.indexes.question import Candidates, Exclusion, Question
from hudimeta.metadata import answers
from hudimeta.metadata.expression_index import ExpressionKind
from hudimeta.snapshot.partition_columns import stated_columns

if TYPE_CHECKING:
    from hudimeta.predicate import Expr

__all__ = ["ExpressionIndexSkip"]


class ExpressionIndexSkip:
    """Leaves out slices in no file of which the expression has a value that the predicate keeps.

    Args:
        name: Metadata partition.
    """

    kind = "expression_index"

    def __init__(self, name: str) -> None:
        self.name = name

    def why_not(self, question: Question) -> str | None:
        """See `SkippingIndex`."""
        from hudimeta.predicate import to_sql
        from hudimeta.predicate.tree import walk

        definition = question.metadata.index_definitions.get(self.name)
        if definition is None:
            return "its definition is missing"
        if renamed := [column for column in definition.source_fields if not question.is_kept(column)]:
            return f"older files hold {', '.join(renamed)} under another name or type"
        indexed = self._expression(question)
        if indexed is None:
            return f"its expression {definition.function}({', '.join(definition.source_fields)}) is not known here"
        if not any(node in indexed.spellings for node in walk(question.bound.expr)):
            return f"the predicate does not look at {to_sql(indexed.expr)}"
        stated = stated_columns(question.snapshot) & set(definition.source_fields)
        if stated:
            return f"rows show of {min(stated)} what their partition path says, which files may hold otherwise"
        blooms = definition.kind == ExpressionKind.BLOOM_FILTERS.value
        if blooms and not _asked_texts(question, indexed):
            return f"the predicate does not fix {to_sql(indexed.expr)} to texts"
        if indexed.zoned and not question.snapshot.options.get(INDEX_TRUST) and (blooms or not indexed.can_be_widened):
            return f"its values depend on the time zone of who built it; {INDEX_TRUST.key}=true says that it is the reader's"
        return None

    def exclude(self, question: Question, candidates: Candidates) -> Exclusion:
        """See `SkippingIndex`."""
        indexed = self._expression(question)
        assert indexed is not None
        if question.metadata.index_definitions[self.name].kind == ExpressionKind.BLOOM_FILTERS.value:
            return self._by_filters(question, candidates, indexed)
        return self._by_bounds(question, candidates, indexed)

    def _by_bounds(self, question: Question, candidates: Candidates, indexed: IndexedExpression) -> Exclusion:
        from hudimeta.indexes.pruning import by_statistics

        stats = answers.expression_stats(question.metadata, self.name, indexed.type, candidates.partitions)
        if indexed.zoned and not question.snapshot.options.get(INDEX_TRUST):
            stats = widened(stats, indexed)
        found = candidates.ordered({self.name: stats})
        expressions = dict.fromkeys(indexed.spellings, found[self.name]) if found else {}
        verdicts = by_statistics(question.bound, candidates.files, candidates.ordered(candidates.bounds), expressions)
        return Exclusion(verdicts, question.bound.conjuncts)

    def _by_filters(self, question: Question, candidates: Candidates, indexed: IndexedExpression) -> Exclusion:
        files, conjuncts = candidates.files, question.bound.conjuncts
        keep, reason = np.ones(files.count, np.bool_), np.full(files.count, -1, np.int64)
        for number, texts in _asked_texts(question, indexed):
            lacking = without_any(question, candidates, self.name, texts, keep[files.of_slice])
            gone = files.all_of(lacking) & keep
            keep[gone], reason[gone] = False, number
        return Exclusion(Verdicts(keep, reason), conjuncts)

    def _expression(self, question: Question) -> IndexedExpression | None:
        definition = question.metadata.index_definitions[self.name]
        return indexed_expression(definition, question.bound.schema, question.bound.timezone)


def _asked_texts(question: Question, indexed: IndexedExpression) -> list[tuple[int, pa.StringArray]]:
    """Per conjunct that fixes the expression: its number, and the texts that it allows."""
    if not pa.types.is_string(indexed.type):
        return []
    found = ((n, _allowed(part, indexed.spellings)) for n, part in enumerate(question.bound.conjuncts))
    return [(number, texts) for number, texts in found if texts is not None]


def _allowed(part: Expr, spellings: Collection[Expr]) -> pa.StringArray | None:
    from hudimeta.predicate.tree import Compare, CompareOp, InSet, Literal

    if isinstance(part, InSet) and part.child in spellings:
        return part.values
    if isinstance(part, Compare) and part.op is CompareOp.EQ and part.left in spellings and isinstance(part.right, Literal):
        return array_of([] if part.right.is_null else [part.right.scalar.as_py()], pa.string())
    return None
