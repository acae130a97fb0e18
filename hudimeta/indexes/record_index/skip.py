"""The file group of each record key: the metadata partition `record_index`, for the whole table or by partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.formats.plain_arrays import numpy_of, scalar_of, single_array
from hudimeta.indexes.proof import why_unproven
from hudimeta.indexes.question import Candidates, Exclusion, Question
from hudimeta.metadata import answers, record_index
from hudimeta.slices.record_keys import WantedKeys

if TYPE_CHECKING:
    from hudimeta.predicate import Expr

__all__ = ["Locations", "RecordIndexSkip"]


class Locations:
    """File groups that hold all rows of some record keys.

    Args:
        found: As `answers.record_locations` gives them.
        because: What asks for these keys.
    """

    def __init__(self, found: pa.Table, because: Expr) -> None:
        self.because = because
        self.partitions = single_array(found.column("partition_path")).unique()
        self._groups = _names(found.column("partition_path"), found.column("file_id").cast(pa.string())).unique()

    def exclusion(self, slices: pa.Table) -> Exclusion:
        """All slices of other file groups."""
        import pyarrow.compute as pc

        groups = _names(slices.column("partition_path"), slices.column("file_id"))
        keep = numpy_of(pc.is_in(groups, value_set=self._groups))
        return Exclusion.of(keep, self.because)


def _names(partitions: pa.ChunkedArray, file_ids: pa.ChunkedArray) -> pa.Array:
    import pyarrow.compute as pc

    joined = pc.binary_join_element_wise(partitions.cast(pa.string()), file_ids, scalar_of("\0"))
    return single_array(joined)


class RecordIndexSkip:
    """Leaves out slices of file groups that hold none of the keys that the predicate asks for."""

    name = kind = record_index.PARTITION

    def __init__(self) -> None:
        self._found: Locations | None = None

    def why_not(self, question: Question) -> str | None:
        """See `SkippingIndex`."""
        keys = question.keys
        return keys if isinstance(keys, str) else why_unproven(question, (self.name,))

    def partitions(self, question: Question) -> tuple[pa.Array, Expr] | None:
        """See `LocatingIndex`."""
        found = self._located(question)
        return found.partitions, found.because

    def exclude(self, question: Question, candidates: Candidates) -> Exclusion:
        """See `SkippingIndex`."""
        return self._located(question).exclusion(candidates.slices)

    def _located(self, question: Question) -> Locations:
        if self._found is None:
            keys = question.keys
            assert isinstance(keys, WantedKeys)
            self._found = Locations(answers.record_locations(question.metadata, keys.texts), keys.because)
        return self._found
