"""The second step of a routed write: rows of one key meet, one of them is kept, and the table's index says where it belongs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.indexes.tagging import NewGroups, Tagging
from hudimeta.table.key_file import KeyFile
from hudimeta.types import Operation
from hudimeta.write.batch import KeyedBatch
from hudimeta.write.combining import combine, combining_rules
from hudimeta.write.doubled_keys import combined_where_new
from hudimeta.write.duplicates import DuplicatePolicy, combines, duplicate_policy, settle_duplicates
from hudimeta.write.routed.computed import one_change_a_row
from hudimeta.write.routed.context import OpenedTable, RoutedWrite
from hudimeta.write.routed.exchange import Span, StagedFile, read_spans
from hudimeta.write.routed.places import Place, PlacedRows, Role
from hudimeta.write.row_buckets import table_of

__all__ = ["LookUp", "LookUpItem", "looks_up"]


def looks_up(opened: OpenedTable, operation: Operation) -> bool:
    """Whether a write asks for its keys."""
    if operation in (Operation.UPSERT, Operation.DELETE):
        return True
    if duplicate_policy(opened.session.options, operation) is not DuplicatePolicy.NONE:
        return True
    return operation in (Operation.INSERT, Operation.BULK_INSERT) and opened.table.lookup.fixes_places


@dataclass(frozen=True)
class LookUpItem:
    """Some slots. Attributes: number: Of the task. spans: Their rows, in the order in which they came."""

    number: int
    spans: Sequence[Span]


@dataclass(frozen=True)
class LookUp:
    """The task, on a `LookUpItem`. Attributes: write: The write. known: The rows were read from the table."""

    write: RoutedWrite
    known: bool = False

    def __call__(self, item: LookUpItem, attempt: int) -> PlacedRows:
        """Combine, look up, and lay the rows aside by their places."""
        opened = self.write.opened()
        session, table, operation = opened.session, opened.table, self.write.open_write.operation
        batch, twice = one_change_a_row(opened, read_spans(opened.storage, item.spans))
        came = len(batch)
        looking = looks_up(opened, operation)
        # Several deletes of one key are then several rows of the table, and writing must know that.
        combining = combines(session.options, operation) and not (operation is Operation.DELETE and self.known)
        if twice or combining or (looking and table.lookup.fixes_places):
            rules = combining_rules(session.properties, session.rules)
            one_a_key = partial(combine if operation.overwrites else table.lookup.one_a_key, rules=rules)
            batch = one_a_key(batch) if twice else combined_where_new(batch, one_a_key)
        sorter = _Sorter(self.write)
        placed = self._placed(opened, batch, sorter, looking)
        path = self.write.staged_path("placed", item.number, attempt)
        with StagedFile(opened.storage, path) as file:
            spans = sorter.laid_aside(file)
        self.write.refuse_when_over(opened.storage, [path] if spans else [])
        return replace(placed, spans=spans, files=sorter.files, rows=came, notes=tuple(dict.fromkeys(session.notes)))

    def _placed(self, opened: OpenedTable, batch: KeyedBatch, sorter: _Sorter, looking: bool) -> PlacedRows:
        operation, lookup = self.write.open_write.operation, opened.table.lookup
        fresh = np.flatnonzero(~batch.deleted)
        if not looking or batch.keys is None:
            new_groups = lookup.new_groups(batch)
            if new_groups is None:
                sorter.add_fresh(batch, fresh)
                return PlacedRows({})
            sorter.add_new_groups(batch, new_groups, fresh)
            return PlacedRows({}, as_logs=new_groups.as_logs)
        policy = duplicate_policy(opened.session.options, operation)
        if policy is not DuplicatePolicy.NONE:
            tagging, _ = opened.table.lookup.held(batch)
            fresh = settle_duplicates(batch, tagging.row, policy)
            sorter.add_fresh(batch, fresh)
            return replace(_counted(tagging, tagging.asked, tagging.hits), dropped=len(batch) - len(fresh))
        found = lookup.find(batch)
        batch, tagging, moved_keys = found.batch, found.settled.tagging, found.settled.moved_keys
        role = Role.CHANGED if tagging.exact or operation is Operation.DELETE else Role.UNRESOLVED
        sorter.add_known(batch, tagging.row, role, tagging.files, tagging.file)
        sorter.add_known(batch, moved_keys.row, Role.REMOVED, tagging.files, moved_keys.file)
        placed = _counted(tagging, found.asked, found.hits)
        placed = replace(placed, unmatched=found.unmatched, moved=found.settled.moved, outdated=found.settled.outdated)
        if operation is Operation.DELETE:
            return placed
        untagged = np.setdiff1d(np.flatnonzero(~batch.deleted), tagging.row)
        if tagging.new_groups is None:
            sorter.add_fresh(batch, untagged)
            return placed
        sorter.add_new_groups(batch, tagging.new_groups, untagged)
        return replace(placed, as_logs=tagging.new_groups.as_logs)


def _counted(tagging: Tagging, asked: int, hits: int) -> PlacedRows:
    return PlacedRows(
        {},
        looked_up=True,
        title=tagging.title,
        note=tagging.note,
        exact=tagging.exact,
        by_range=tagging.by_range,
        by_bloom=tagging.by_bloom,
        read=tagging.read,
        asked=asked,
        hits=hits,
    )


class _Sorter:
    """Collects rows by where they go."""

    def __init__(self, write: RoutedWrite) -> None:
        self._write = write
        self.files: dict[tuple[str, str], KeyFile] = {}
        self._numbers: dict[Place, int] = {}
        self._parts: list[pa.Table] = []
        self._codes: list[np.ndarray[Any, Any]] = []

    def add_fresh(self, batch: KeyedBatch, at: np.ndarray[Any, Any]) -> None:
        """Rows that may go anywhere in their partition."""
        coded = batch.partitions.take(pa.array(at)).dictionary_encode()
        places = [Place(Role.FRESH, path) for path in coded.dictionary.to_pylist()]
        self._add_new(batch, at, places, coded.indices.to_numpy())

    def add_known(
        self, batch: KeyedBatch, at: np.ndarray[Any, Any], role: Role, files: Sequence[KeyFile], number: np.ndarray[Any, Any]
    ) -> None:
        """Rows for file groups that are there; `number` are positions in `files`."""
        used, own = np.unique(number, return_inverse=True)
        held = [files[int(n)] for n in used]
        self.files |= {(file.partition_path, file.file_id): file for file in held}
        self._add(batch, at, [Place(role, file.partition_path, file.file_id) for file in held], own)

    def add_new_groups(self, batch: KeyedBatch, new_groups: NewGroups, wanted: np.ndarray[Any, Any]) -> None:
        """Rows for file groups that an index asks for."""
        kept = np.isin(new_groups.row, wanted)
        pairs = zip(new_groups.partition_paths, new_groups.file_ids, strict=True)
        self._add_new(batch, new_groups.row[kept], [Place(Role.BEGINNING, *pair) for pair in pairs], new_groups.number[kept])

    def _add_new(
        self, batch: KeyedBatch, at: np.ndarray[Any, Any], places: Sequence[Place], codes: np.ndarray[Any, Any]
    ) -> None:
        self._add(self._write.with_defaults(batch.take(at)), np.arange(len(at)), places, codes)

    def _add(self, batch: KeyedBatch, at: np.ndarray[Any, Any], places: Sequence[Place], codes: np.ndarray[Any, Any]) -> None:
        if not len(at):
            return
        numbers = np.array([self._numbers.setdefault(place, len(self._numbers)) for place in places], np.int64)
        self._parts.append(table_of(batch.take(at)))
        self._codes.append(numbers[codes])

    def laid_aside(self, file: StagedFile) -> dict[Place, list[Span]]:
        """Stage the rows; returns where those of each place are."""
        if not self._parts:
            return {}
        places = list(self._numbers)
        spans = file.add_by(pa.concat_tables(self._parts), np.concatenate(self._codes))
        return {places[number]: own for number, own in spans.items()}
