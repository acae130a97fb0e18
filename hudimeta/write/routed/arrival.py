"""The first step of a routed write: rows get their keys and partition paths, and are laid aside, or written at once.

by slot        rows whose key is looked for, or of which one a key is kept: see `slots`
by partition   rows that may go anywhere in their partition, once it is known how many there are
at once        rows that begin file groups of their own whatever others do: bulk inserts and overwrites
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudimeta.config import options as keys
from hudimeta.engine import LocalEngine
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.read.split import Split, read_split
from hudimeta.slices.read_task import ReadTask
from hudimeta.table.file_names import WriteToken
from hudimeta.types import META_COLUMNS, Operation
from hudimeta.write.batch import KeyedBatch, keyed_batch, keys_only_batch
from hudimeta.write.bulk_sort import sorted_for_bulk_insert
from hudimeta.write.carried_keys import carries_keys
from hudimeta.write.execution import FileWriters, execute_plan
from hudimeta.write.operations import plan_inserts
from hudimeta.write.placement import FileSizing
from hudimeta.write.routed.context import OpenedTable, RoutedWrite
from hudimeta.write.routed.exchange import Span, StagedFile
from hudimeta.write.routed.files import FactsSpec, RoutedFiles, handed_back
from hudimeta.write.routed.places import Place, PlacedRows, Role
from hudimeta.write.routed.slots import Slots
from hudimeta.write.row_buckets import table_of
from hudimeta.write.row_changes import RowChange, with_stated_keys

__all__ = ["MANY_PATHS", "Arrival", "Arrived", "ChangedRows", "Route", "few", "gathered", "see"]

PORTION_BYTES = 64 << 20
"""Arrow bytes that a task gathers before it lays them aside: bounds its memory."""
MANY_PATHS = 64
_TASK_BITS = 12
"""Tasks number their files in steps, so that no two files of a write share the first number of their token."""


class Route(enum.Enum):
    """What becomes of arriving rows; see the module's head."""

    BY_SLOT = "by slot"
    BY_PARTITION = "by partition"
    AT_ONCE = "at once"


@dataclass(frozen=True)
class Arrived:
    """What one task hands back: by its route the rows of each slot, or of each partition, or the files.

    Of overwrites also the partitions with deletes, of which no file may tell.
    """

    rows: int
    slots: Mapping[int, Sequence[Span]]
    placed: PlacedRows
    files: RoutedFiles
    paths: tuple[str, ...] | None = None
    """The partitions of the rows of slots, where they are few; None where nobody counted."""
    emptied: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Arrival:
    """The task; see `RowTask`.

    Attributes:
        write: The write.
        route: Which of the three.
        slots: How keys are cut.
        facts: What the indexes want of files.
        whole_table: Keys are unique in the whole table, so that rows which name what to delete need no partition.
    """

    write: RoutedWrite
    route: Route
    slots: Slots
    facts: FactsSpec
    whole_table: bool

    def __call__(self, batches: Iterable[pa.RecordBatch], number: int, attempt: int) -> Arrived:
        """Take in the rows of one part of the input."""
        opened = self.write.opened()
        if self.route is Route.AT_ONCE:
            return self._written(opened, batches, number, attempt)
        slots: dict[int, list[Span]] = {}
        places: dict[Place, list[Span]] = {}
        seen: set[str] = set()
        rows = 0
        emptied: set[str] = set()
        with StagedFile(opened.storage, self.write.staged_path("rows", number, attempt)) as file:
            # Meta columns count where they alone say which rows these are.
            for portion in gathered(batches, PORTION_BYTES, meta=opened.table.generator().generates_keys):
                batch = self._batch(opened, portion)
                rows += len(batch)
                emptied |= self._emptied(batch)
                if self.route is Route.BY_SLOT:
                    see(seen, batch)
                    for slot, spans in file.add_by(table_of(batch), self.slots.numbers(batch)).items():
                        slots.setdefault(slot, []).extend(spans)
                    continue
                # A row that asks for the deletion of its key is never stored.
                batch = self.write.with_defaults(batch.take(np.flatnonzero(~batch.deleted)))
                coded = batch.partitions.dictionary_encode()
                paths = coded.dictionary.to_pylist()
                for code, spans in file.add_by(table_of(batch), coded.indices.to_numpy()).items():
                    places.setdefault(Place(Role.FRESH, paths[code]), []).extend(spans)
        self.write.refuse_when_over(opened.storage, [self.write.staged_path("rows", number, attempt)] if rows else [])
        return Arrived(rows, slots, PlacedRows(places, rows=rows), RoutedFiles(), few(seen), frozenset(emptied))

    def _emptied(self, batch: KeyedBatch) -> set[str]:
        overwrites = self.write.open_write.operation.overwrites
        return batch.partitions_of_deletes() if overwrites else set()

    def _batch(self, opened: OpenedTable, rows: pa.Table) -> KeyedBatch:
        session, table = opened.session, opened.table
        generator, operation = table.generator(), self.write.open_write.operation
        if operation is Operation.DELETE:
            return keys_only_batch(rows, generator, table.snapshot.file_schema, session.rules, whole_table=self.whole_table)
        carried = carries_keys(generator, operation, rows.column_names)
        return keyed_batch(rows, self.write.schema, generator, session.rules, carried=carried)

    def _written(self, opened: OpenedTable, batches: Iterable[pa.RecordBatch], number: int, attempt: int) -> Arrived:
        """Write the rows of each portion into file groups of its own."""
        session, table, write = opened.session, opened.table, self.write
        writers = FileWriters.of(session, table, write.open_write, write.schema)
        files: list[WrittenFile] = []
        rows = 0
        emptied: set[str] = set()
        for portion in gathered(batches, session.options.get(keys.PORTION_BYTES)):
            batch = self._batch(opened, portion)
            rows += len(batch)
            emptied |= self._emptied(batch)
            if write.open_write.operation is Operation.BULK_INSERT:
                batch = sorted_for_bulk_insert(batch, session.options)
            batch = write.with_defaults(batch)
            sizing = FileSizing.of(session, table.snapshot.timeline, write.open_write.operation)
            plan = plan_inserts(batch, {}, sizing)
            files += execute_plan(
                plan, batch, writers, LocalEngine(1), WriteToken((number << _TASK_BITS) + len(files), attempt)
            )
        found = handed_back(opened, write, self.facts, files, number, attempt)
        return Arrived(rows, {}, PlacedRows({}, rows=rows), found, emptied=frozenset(emptied))


@dataclass(frozen=True)
class ChangedRows:
    """The task that takes in rows of the table itself, on a numbered split of a scan.

    Attributes:
        write: The write.
        slots: How keys are cut.
        read: What is read of them.
        change: What becomes of them.
    """

    write: RoutedWrite
    slots: Slots
    read: ReadTask
    change: RowChange

    def __call__(self, item: tuple[int, Split], attempt: int) -> Arrived:
        """Read a split and lay its changed rows aside."""
        opened = self.write.opened()
        number, split = item
        path = self.write.staged_path("rows", number, attempt)
        slots: dict[int, list[Span]] = {}
        seen: set[str] = set()
        rows = 0
        with StagedFile(opened.storage, path) as file:
            for found in gathered(read_split(self.read, split, opened.storage), PORTION_BYTES, meta=True):
                stated = with_stated_keys(opened.session, opened.table, found)
                batch = self.change.prepared(opened.session, opened.table, stated).batch
                rows += len(batch)
                see(seen, batch)
                for slot, spans in file.add_by(table_of(batch), self.slots.numbers(batch)).items():
                    slots.setdefault(slot, []).extend(spans)
        self.write.refuse_when_over(opened.storage, [path] if rows else [])
        return Arrived(rows, slots, PlacedRows({}, rows=rows), RoutedFiles(), few(seen))


def see(paths: set[str], batch: KeyedBatch) -> None:
    """Add the partitions of a batch, while they are few."""
    if len(paths) <= MANY_PATHS:
        paths.update(batch.partitions.drop_null().unique().slice(0, MANY_PATHS + 1).to_pylist())


def few(paths: set[str]) -> tuple[str, ...] | None:
    """What was seen, unless it is too much to tell."""
    return tuple(sorted(paths)) if len(paths) <= MANY_PATHS else None


def gathered(batches: Iterable[pa.RecordBatch], limit: int, *, meta: bool = False) -> Iterator[pa.Table]:
    """The data columns of batches, or with `meta` all of them, joined into tables of about so many bytes."""
    joined = pa.Table.from_batches if meta else _data
    parts: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        parts.append(batch)
        size += batch.nbytes
        if size >= limit:
            yield joined(parts)
            parts, size = [], 0
    if parts:
        yield joined(parts)


def _data(parts: Sequence[pa.RecordBatch]) -> pa.Table:
    """A row's meta columns are of the table that it was read from."""
    rows = pa.Table.from_batches(parts)
    return rows.select([place for place, name in enumerate(rows.column_names) if name not in META_COLUMNS])
