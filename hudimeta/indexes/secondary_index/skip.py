"""Values of a column that is not the key: `secondary_index_<name>` tells the record keys, `record_index` their file groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hudimeta.formats.plain_arrays import single_array
from hudimeta.indexes.proof import why_unproven
from hudimeta.indexes.question import Candidates, Exclusion, Question
from hudimeta.indexes.record_index.skip import Locations
from hudimeta.indexes.scan_report import Unused
from hudimeta.metadata import answers, record_index
from hudimeta.snapshot.partition_columns import stated_columns

if TYPE_CHECKING:
    from hudimeta.predicate import Expr

__all__ = ["SecondaryIndexSkip"]

_MOST_KEYS = 100_000
"""A value of more rows than this is spread over so many files that looking each row up costs more than it saves."""


class SecondaryIndexSkip:
    """Leaves out slices of file groups that hold no row with one of the values that the predicate asks for.

    Args:
        name: Metadata partition.
    """

    kind = "secondary_index"

    def __init__(self, name: str) -> None:
        self.name = name
        self._found: Locations | str | None = None

    def why_not(self, question: Question) -> str | None:
        """See `SkippingIndex`."""
        from hudimeta.predicate import equalities

        if not equalities(question.bound):
            # Said before the definitions are asked which column it is: that would be a request for nothing.
            return "the predicate does not fix any column to certain values"
        definition = question.metadata.index_definitions.get(self.name)
        if definition is None or len(definition.source_fields) != 1:
            return "its definition is missing"
        (column,) = definition.source_fields
        if not question.is_kept(column):
            return f"older files hold {column} under another name or type"
        if column in stated_columns(question.snapshot):
            return f"rows show of {column} what their partition path says, which the index may know otherwise"
        wanted = _texts(question, column)
        if wanted is None:
            return f"the predicate does not fix {column} to text, whole numbers or dates"
        if record_index.PARTITION not in question.ready:
            return "the table has no record index, which tells where its keys are"
        return why_unproven(question, (self.name, record_index.PARTITION))

    def partitions(self, question: Question) -> tuple[pa.Array, Expr] | None:
        """See `LocatingIndex`."""
        found = self._located(question)
        return None if isinstance(found, str) else (found.partitions, found.because)

    def exclude(self, question: Question, candidates: Candidates) -> Exclusion:
        """See `SkippingIndex`."""
        found = self._located(question)
        if not isinstance(found, str):
            return found.exclusion(candidates.slices)
        everything = np.ones(candidates.slices.num_rows, np.bool_)
        return Exclusion.of(everything, question.bound.expr, remarks=(Unused(self.name, found),))

    def _located(self, question: Question) -> Locations | str:
        """The file groups, or why they are not asked for."""
        if self._found is None:
            (column,) = question.metadata.index_definitions[self.name].source_fields
            wanted = _texts(question, column)
            assert wanted is not None
            texts, because = wanted
            keys = single_array(answers.keys_with_values(question.metadata, self.name, texts)["record_key"]).unique()
            if len(keys) > _MOST_KEYS:
                self._found = f"{len(keys):,} rows have such values"
            else:
                self._found = Locations(answers.record_locations(question.metadata, keys), because)
        return self._found


def _texts(question: Question, column: str) -> tuple[pa.StringArray, Expr] | None:
    """The values that the predicate allows a column as the index spells them, and which part says so; None when not known."""
    from hudimeta.predicate import equalities

    bound = question.bound
    values = equalities(bound).get(column)
    if values is None:
        return None
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    if not (pa.types.is_string(values.type) or pa.types.is_integer(values.type)):
        return None
    parts = [part for part in bound.conjuncts if column in equalities(bound.with_conjuncts([part]))]
    return values.cast(pa.string()), bound.with_conjuncts(parts).expr
