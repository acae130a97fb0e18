"""Leaves out the slices none of whose files holds a value that the predicate asks for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.indexes.question import Candidates, Exclusion, Question, SkippingIndex
from hudimeta.predicate import equalities
from tests.indexes.distinct_values import codec


def indexes(question: Question) -> Iterator[SkippingIndex]:
    """The one index of this kind, where the table has it."""
    if codec.PARTITION in question.ready:
        yield DistinctValues()


class DistinctValues:
    """See `SkippingIndex`."""

    name = kind = codec.PARTITION

    def why_not(self, question: Question) -> str | None:
        """See `SkippingIndex`."""
        column = _column(question)
        return None if column in equalities(question.bound) else f"the predicate names no value of {column}"

    def exclude(self, question: Question, candidates: Candidates) -> Exclusion:
        """Files of which nothing is known stay, log files among them."""
        wanted = equalities(question.bound)[_column(question)].cast(pa.string())
        records = question.metadata.records(self.name)
        holding = records.filter(pc.is_in(records["value"], value_set=wanted))["file_name"].combine_chunks()
        known = pc.is_in(candidates.files.names, value_set=records["file_name"].combine_chunks())
        lacking = pc.and_not(known, pc.is_in(candidates.files.names, value_set=holding))
        return Exclusion.of(~candidates.files.all_of(np.asarray(lacking)), question.bound.conjuncts[0])


def _column(question: Question) -> str:
    (column,) = question.metadata.index_definitions[codec.PARTITION].source_fields
    return column
