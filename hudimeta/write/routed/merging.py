"""A merge by tasks: both sides are cut by the columns that must be equal, and what meets in a slot is merged by the engine.

A row of the table stands in one slot only, so that whether several rows of the source match it is seen there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.plain_arrays import array_of, fill_null, no_rows, scalar_of
from hudimeta.formats.required_fields import cast_table
from hudimeta.metadata.keys import shard
from hudimeta.predicate import Expr
from hudimeta.predicate.tree import all_of
from hudimeta.read.split import Split, read_split
from hudimeta.slices.read_task import ReadTask
from hudimeta.types import META_COLUMNS
from hudimeta.write.merge_builder import Merge
from hudimeta.write.merge_clauses import Clause, Sides, merge_condition
from hudimeta.write.merge_keys import Ends, KeyPair, widened, within
from hudimeta.write.routed.arrival import Arrived, few, gathered, see
from hudimeta.write.routed.context import OpenedTable, RoutedWrite
from hudimeta.write.routed.exchange import Span, StagedFile, read_spans
from hudimeta.write.routed.files import RoutedFiles
from hudimeta.write.routed.places import PlacedRows
from hudimeta.write.routed.slots import Slots, packed
from hudimeta.write.row_buckets import table_of
from hudimeta.write.row_changes import scan_of, with_stated_keys

__all__ = ["MergePlan", "MergeSlots", "SourceSide", "TargetSide", "merge_items", "target_range"]

_SLOTS = 256
_PORTION_BYTES = 64 << 20


@dataclass(frozen=True)
class MergePlan:
    """What a merge does; see `MergeBuilder`."""

    on: str | Sequence[str] | Mapping[str, str]
    sides: Sides
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class Side:
    """What a task found of one side.

    Attributes:
        slots: Where the rows of each slot are.
        ends: The smallest and largest value of each column of the table that must be equal; left out where there is none.
    """

    slots: Mapping[int, Sequence[Span]]
    ends: Mapping[str, Ends] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceSide:
    """The task that takes in the source.

    Attributes:
        write: The write.
        pairs: Columns that must be equal.
    """

    write: RoutedWrite
    pairs: Sequence[KeyPair]

    def __call__(self, batches: Iterable[pa.RecordBatch], number: int, attempt: int) -> Side:
        """Lay the rows aside."""
        opened = self.write.opened()
        path = self.write.staged_path("source", number, attempt)
        slots: dict[int, list[Span]] = {}
        ends: dict[str, Ends | None] = {}
        with StagedFile(opened.storage, path) as file:
            for rows in gathered(batches, _PORTION_BYTES):
                columns = [pair.of_source(rows) for pair in self.pairs]
                for pair, column in zip(self.pairs, columns, strict=True):
                    ends[pair.ours] = widened(ends.get(pair.ours), column)
                for slot, spans in file.add_by(rows, _numbers(columns)).items():
                    slots.setdefault(slot, []).extend(spans)
        self.write.refuse_when_over(opened.storage, [path] if slots else [])
        return Side(slots, {name: found for name, found in ends.items() if found is not None})


@dataclass(frozen=True)
class TargetSide:
    """The task that takes in the table's rows.

    Attributes:
        write: The write.
        pairs: Columns that must be equal.
        read: What is read of the rows.
    """

    write: RoutedWrite
    pairs: Sequence[KeyPair]
    read: ReadTask

    def __call__(self, item: tuple[int, Split], attempt: int) -> Side:
        """Lay the rows of a numbered split aside."""
        opened = self.write.opened()
        number, split = item
        path = self.write.staged_path("target", number, attempt)
        slots: dict[int, list[Span]] = {}
        with StagedFile(opened.storage, path) as file:
            for rows in gathered(read_split(self.read, split, opened.storage), _PORTION_BYTES, meta=True):
                for slot, spans in file.add_by(rows, _numbers([pair.of_target(rows) for pair in self.pairs])).items():
                    slots.setdefault(slot, []).extend(spans)
        self.write.refuse_when_over(opened.storage, [path] if slots else [])
        return Side(slots)


def _numbers(columns: Sequence[pa.ChunkedArray]) -> np.ndarray[Any, Any]:
    """The slot of each row: equal values have the same."""
    texts = [fill_null(_text(column), "") for column in columns]
    joined = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, scalar_of("\0"))
    return shard(joined, _SLOTS)


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        # Bytes need not be text; rows of one length are few enough in a key.
        column = pc.binary_length(column)
    return column.cast(pa.string())


def target_range(sides: Sequence[Side], pairs: Sequence[KeyPair]) -> Expr | None:
    """What every row of the table that can match fulfils; None where nothing is known."""
    ends: dict[str, Ends | None] = {}
    for side in sides:
        for name, found in side.ends.items():
            ends[name] = widened(ends.get(name), pa.chunked_array([array_of(found, found[0].type)]))
    parts = [within(pair.ours, limits) for pair in pairs if (limits := ends.get(pair.ours)) is not None]
    return all_of(parts) if parts else None


@dataclass(frozen=True)
class MergeItem:
    """Some slots of both sides. Attributes: number: Of the task. source, target: Their rows."""

    number: int
    source: Sequence[Span]
    target: Sequence[Span]


def merge_items(source: Sequence[Side], target: Sequence[Side], parallelism: int) -> list[MergeItem]:
    """The slots of both sides, packed for tasks."""
    rows: dict[int, tuple[list[Span], list[Span]]] = {}
    for which, sides in enumerate((source, target)):
        for side in sides:
            for slot, spans in side.slots.items():
                rows.setdefault(slot, ([], []))[which].extend(spans)
    paths = [span.path for side in (*source, *target) for spans in side.slots.values() for span in spans]
    order = {path: number for number, path in enumerate(dict.fromkeys(paths))}
    theirs = {span.path for side in target for spans in side.slots.values() for span in spans}
    tasks = packed([(slot, [*both[0], *both[1]]) for slot, both in sorted(rows.items())], parallelism)
    items = []
    for number, task in enumerate(tasks):
        spans = sorted((span for own in task for span in own), key=lambda s: (order[s.path], s.batch, s.start))
        items.append(MergeItem(number, [s for s in spans if s.path not in theirs], [s for s in spans if s.path in theirs]))
    return items


@dataclass(frozen=True)
class MergeSlots:
    """The task that merges, on a `MergeItem`, and lays the rows that come of it aside for the look-up.

    Attributes:
        write: The write.
        slots: How keys are cut.
        merge: Condition and clauses.
        source: Schema of the source.
    """

    write: RoutedWrite
    slots: Slots
    merge: MergePlan
    source: pa.Schema

    def __call__(self, item: MergeItem, attempt: int) -> Arrived:
        """Merge. See `MergeBuilder.execute` for what may be raised."""
        opened = self.write.opened()
        sides, condition = self.merge.sides, merge_condition(self.merge.on, self.merge.sides)
        source = read_spans(opened.storage, item.source) if item.source else self._no_source()
        target = with_stated_keys(opened.session, opened.table, self._target(opened, item))
        batch = Merge(opened.session, opened.table, target, source, sides, condition, self.merge.clauses).prepared().batch
        path = self.write.staged_path("rows", item.number, attempt)
        seen: set[str] = set()
        see(seen, batch)
        with StagedFile(opened.storage, path) as file:
            slots = file.add_by(table_of(batch), self.slots.numbers(batch)) if len(batch) else {}
        self.write.refuse_when_over(opened.storage, [path] if slots else [])
        return Arrived(len(batch), slots, PlacedRows({}, rows=len(batch)), RoutedFiles(), few(seen))

    def _no_source(self) -> pa.Table:
        return no_rows(pa.schema([f for f in self.source if f.name not in META_COLUMNS]))

    def _target(self, opened: OpenedTable, item: MergeItem) -> pa.Table:
        none = no_rows(scan_of(opened.session, opened.table, None).schema)
        return cast_table(read_spans(opened.storage, item.target), none.schema) if item.target else none
