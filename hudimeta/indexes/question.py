"""What an index is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.formats.plain_arrays import array_of, single_array
from hudimeta.indexes.pruning import FilesOfSlices, Verdicts
from hudimeta.indexes.scan_report import Unused
from hudimeta.slices.record_keys import WantedKeys, wanted_keys
from hudimeta.types import QueryType

if TYPE_CHECKING:
    from hudimeta.metadata import MetadataTable
    from hudimeta.predicate import Bound, ColumnBounds, Expr
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["Candidates", "Exclusion", "LocatingIndex", "Question", "SkippingIndex"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Question:
    """Which file slices may hold a row that a predicate keeps.

    Attributes:
        snapshot: The table at its moment.
        bound: The predicate.
        query_type: SNAPSHOT or READ_OPTIMIZED.
    """

    snapshot: Snapshot
    bound: Bound
    query_type: QueryType = QueryType.SNAPSHOT

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

    @cached_property
    def keys(self) -> WantedKeys | str:
        """The record keys that the predicate asks for, or why they are not known."""
        properties = self.snapshot.properties
        return wanted_keys(self.bound, properties, by_fields=all(map(self.is_kept, properties.record_keys)))

    def is_kept(self, column: str) -> bool:
        """See `column_history.keeps`."""
        from hudimeta.snapshot.column_history import keeps

        return keeps(self.snapshot, column)


@dataclass(frozen=True)
class Candidates:
    """The file slices that no index has left out yet.

    Attributes:
        slices: Columns of `table.slices.slices_schema()`.
        partitions: Those looked up; None for all.
        bounds: Statistics of files that an index has found, by column, for the indexes after it.
    """

    slices: pa.Table
    partitions: Sequence[str] | None = None
    bounds: Mapping[str, pa.Table] = field(default_factory=dict)

    @cached_property
    def files(self) -> FilesOfSlices:
        """The files of the slices."""
        return FilesOfSlices.of(self.slices)

    def ordered(self, stats: Mapping[str, pa.Table]) -> dict[str, ColumnBounds]:
        """Statistics by column in the order of the files."""
        from hudimeta.indexes.pruning import FileBounds

        order = FileBounds(self.files.names)
        return {name: order.of(table) for name, table in stats.items() if table.num_rows}

    @property
    def file_partitions(self) -> pa.StringArray:
        """For each of the files the path of its partition."""
        paths: Any = single_array(self.slices.column("partition_path"))
        return paths.take(array_of(self.files.of_slice))

    def after(self, exclusion: Exclusion) -> Candidates:
        """What an index leaves, with the statistics that it found."""
        keep = exclusion.verdicts.keep
        if keep.all() and not exclusion.bounds:
            return self
        slices = self.slices if keep.all() else self.slices.filter(array_of(keep))
        return Candidates(slices, self.partitions, {**self.bounds, **exclusion.bounds})


@dataclass(frozen=True)
class Exclusion:
    """Which slices an index leaves out.

    Attributes:
        verdicts: One element a slice; `reason` counts in `because`.
        because: The parts of the predicate that no row of a slice satisfies.
        bounds: Statistics of files that it has found, by column.
        remarks: What it could not tell.
    """

    verdicts: Verdicts
    because: Sequence[Expr]
    bounds: Mapping[str, pa.Table] = field(default_factory=dict)
    remarks: tuple[str | Unused, ...] = ()

    @classmethod
    def of(
        cls, keep: Mask, because: Expr, bounds: Mapping[str, pa.Table] | None = None, remarks: Sequence[str | Unused] = ()
    ) -> Exclusion:
        """One reason for all that is left out."""
        return cls(Verdicts(keep, np.where(keep, -1, 0).astype(np.int64)), (because,), bounds or {}, tuple(remarks))


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

    def exclude(self, question: Question, candidates: Candidates) -> Exclusion:
        """Which of the candidates hold no row that the predicate keeps."""


class LocatingIndex(SkippingIndex, Protocol):
    """An index that knows where the rows are, so that other partitions need not be looked up at all."""

    def partitions(self, question: Question) -> tuple[pa.Array, Expr] | None:
        """Paths of all partitions with a row that the predicate keeps, and by which part of it; None when that is not known."""
