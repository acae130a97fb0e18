"""The noted reads of a table as questions to the table of now, and what each of them reads today."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.cached import cached_property
from hudimeta.errors import ConfigError
from hudimeta.formats.plain_arrays import single_array
from hudimeta.predicate import Bound, bind, parse_sql
from hudimeta.read.planner import plan_slices
from hudimeta.read.query_notes import NotedShape, QueryNotes
from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["AskedQuery", "TableSlices", "asked_queries"]

MOST_QUERIES = 48
"""So many predicates are planned and judged, of those shapes first that read most."""


@dataclass(frozen=True)
class TableSlices:
    """All file slices of a table.

    Attributes:
        rows: Columns of `table.slices.slices_schema()`.
    """

    rows: pa.Table

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Bytes of the base file and logs of each."""
        found = np.asarray(pc.fill_null(self.rows["base_size"], 0)).astype(np.int64)
        logs = single_array(self.rows["log_sizes"])
        np.add.at(found, np.asarray(pc.list_parent_indices(logs)), np.asarray(pc.fill_null(pc.list_flatten(logs), 0)))
        return found

    def partitions(self, places: npt.NDArray[np.int64]) -> set[str]:
        """Partition paths of some of them."""
        return set(self.rows["partition_path"].take(pa.array(places)).unique().to_pylist())

    @cached_property
    def _names(self) -> pa.Array:
        return _names(self.rows)

    def places(self, some: pa.Table) -> npt.NDArray[np.int64]:
        """Where some of these slices stand."""
        return self._at(_names(some))

    def places_in(self, partition_path: str, file_ids: Sequence[str]) -> npt.NDArray[np.int64]:
        """Where the slices of some file groups of a partition stand."""
        return self._at(pa.array([f"{partition_path}\0{file_id}" for file_id in file_ids], pa.string()))

    def _at(self, names: pa.Array) -> npt.NDArray[np.int64]:
        return np.asarray(pc.index_in(names, value_set=self._names).drop_null()).astype(np.int64)


def _names(slices: pa.Table) -> pa.Array:
    named = pc.binary_join_element_wise(slices["partition_path"], slices["file_id"], "\0")
    return single_array(named)


@dataclass(frozen=True)
class AskedQuery:
    """A noted predicate.

    Attributes:
        bound: Bound to the table of now.
        weight: Noted reads that it stands for.
        kept: Places of the slices that it reads today.
        bytes: Of these.
    """

    bound: Bound
    weight: float
    kept: npt.NDArray[np.int64]
    bytes: int


def asked_queries(snapshot: Snapshot, notes: QueryNotes, slices: TableSlices) -> tuple[list[AskedQuery], list[str]]:
    """What the noted reads would read today, and what of the notes could not be used.

    Args:
        snapshot: The table of now.
        notes: Of its reads.
        slices: All that it has.
    """
    found, remarks, left = [], [], MOST_QUERIES
    for shape in sorted(notes.shapes.values(), key=lambda one: -one.bytes_kept):
        bounds = list(_bounds(snapshot, shape))[: max(0, left)]
        left -= len(bounds)
        if not bounds:
            why = "its predicates are too long to be kept, no longer fit the table, or many others read more"
            remarks.append(f"{shape.queries:,} reads with {shape} are not judged: {why}")
        for bound in bounds:
            kept = slices.places(plan_slices(snapshot, bound).slices)
            found.append(AskedQuery(bound, shape.queries / len(bounds), kept, int(slices.sizes[kept].sum())))
    return found, remarks


def _bounds(snapshot: Snapshot, shape: NotedShape) -> Iterator[Bound]:
    for sample in reversed(shape.samples):
        try:
            yield bind(parse_sql(sample.predicate), snapshot.schema.arrow, timezone=sample.timezone)
        except ConfigError:  # the table has lost the column meanwhile
            continue
