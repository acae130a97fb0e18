"""What an index is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.indexes.pruning import SliceFiles, Verdicts
from hudimeta.indexes.scan_report import Unused
from hudimeta.slices.record_keys import WantedKeys, wanted_keys
from hudimeta.types import QueryType

if TYPE_CHECKING:
    from hudimeta.metadata import MetadataTable
    from hudimeta.predicate import Bound, ColumnBounds, Expr
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["Exclusion", "LocatingIndex", "Question", "SkippingIndex"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Exclusion:
    """Which slices an index leaves out.

    Attributes:
        verdicts: One element a slice; `reason` counts in `because`.
        because: The parts of the predicate that no row of a slice satisfies.
    """

    verdicts: Verdicts
    because: Sequence[Expr]

    @classmethod
    def of(cls, keep: Mask, because: Expr) -> Exclusion:
        """One reason for all that is left out."""
        return cls(Verdicts(keep, np.where(keep, -1, 0).astype(np.int64)), (because,))


@dataclass
class Question:
    """Which of some slices may hold a row that a predicate keeps.

    Attributes:
        snapshot: The table at its moment.
        bound: The predicate.
        query_type: SNAPSHOT or READ_OPTIMIZED.
        slices: Columns of `table.slices.slices_schema()`: what is left of the read.
        partitions: Those looked up; None for all.
        bounds: Statistics of files that an index has found, by column, for the ones after it.
        notes: Where an index says what it could not tell.
        unused: The indexes that are not asked.
    """

    snapshot: Snapshot
    bound: Bound
    query_type: QueryType = QueryType.SNAPSHOT
    slices: pa.Table = field(default_factory=lambda: pa.table({}))
    partitions: Sequence[str] | None = None
    bounds: dict[str, pa.Table] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unused: list[Unused] = field(default_factory=list)
    _keys: WantedKeys | str | None = None
    _files: tuple[pa.Table, SliceFiles] | None = None

    def not_used(self, index: str, why: str) -> None:
        """Put into the report that an index leaves nothing out."""
        self.unused.append(Unused(index, why))
        self.notes.append(str(self.unused[-1]))

    @property
    def metadata(self) -> MetadataTable:
        """The metadata table; only tables that have one have indexes."""
        found = self.snapshot.metadata
        assert found is not None
        return found

    @property
    def ready(self) -> tuple[str, ...]:
        """Metadata partitions that are complete, none without a metadata table."""
        found = self.snapshot.metadata
        return found.ready if found is not None else ()

    @property
    def files(self) -> SliceFiles:
        """The files of the slices."""
        if self._files is None or self._files[0] is not self.slices:
            self._files = self.slices, SliceFiles.of(self.slices)
        return self._files[1]

    @property
    def keys(self) -> WantedKeys | str:
        """The record keys that the predicate asks for, or why they are not known."""
        if self._keys is None:
            altered = self.snapshot.history is not None
            self._keys = wanted_keys(self.bound, self.snapshot.properties, by_fields=not altered)
        return self._keys

    def ordered(self, stats: dict[str, pa.Table]) -> dict[str, ColumnBounds]:
        """Statistics by column in the order of the files."""
        from hudimeta.indexes.pruning import FileBounds

        order = FileBounds(self.files.names)
        return {name: order.of(table) for name, table in stats.items() if table.num_rows}

    @property
    def file_partitions(self) -> pa.StringArray:
        """For each of the files the path of its partition."""
        paths: Any = self.slices.column("partition_path").combine_chunks()
        return paths.take(pa.array(self.files.of_slice))


class SkippingIndex(Protocol):
    """One index of one table, for one question.

    Attributes:
        name: Metadata partition.
        kind: What `hudimeta.index.use` calls all indexes of this kind.
    """

    name: str
    kind: str

    def why_not(self, question: Question) -> str | None:
        """Why it cannot help, for the report; None when it can. Reads the definitions of indexes at most."""

    def exclude(self, question: Question) -> Exclusion:
        """Which of the question's slices hold no row that the predicate keeps."""


class LocatingIndex(SkippingIndex, Protocol):
    """An index that knows where the rows are, so that other partitions need not be looked up at all."""

    def partitions(self, question: Question) -> tuple[pa.Array, Expr] | None:
        """Paths of all partitions with a row that the predicate keeps, and by which part of it; None when that is not known."""
