"""Writing a stream of batches that need not fit into memory, in one commit.

What fits into one portion is written as any table. Of a longer stream, rows whose keys nobody asks for (bulk inserts,
overwrites, plain inserts) become files portion by portion. All others are laid aside on local disk, cut by their keys: then
one row a key is kept and looked up in one pass for each portion's worth of them, rows for known keys are laid aside again by
file group, so that each is rewritten once, and new rows by partition, so that their files are as large as a portion makes them.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.commit.attempts import until_no_conflict
from hudimeta.commit.coordinator import OpenWrite
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.config import options as keys
from hudimeta.errors import CommitConflict
from hudimeta.indexes.tagging import NewGroups
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metadata.keys import shard
from hudimeta.schema import SchemaChange
from hudimeta.storage import open_storage
from hudimeta.table.file_names import WriteToken
from hudimeta.table.key_file import KeyFile
from hudimeta.table.positions import positions_by_number
from hudimeta.types import Operation
from hudimeta.write.asked_indexes import ensure_metadata
from hudimeta.write.batch import KeyedBatch, keyed_batch, keys_only_batch
from hudimeta.write.bulk_sort import sorted_for_bulk_insert
from hudimeta.write.carried_keys import CARRIED_NOTE, carries_keys
from hudimeta.write.combining import combine, combining_rules
from hudimeta.write.default_values import DefaultValues
from hudimeta.write.duplicates import DuplicatePolicy, combines, duplicate_policy, refuse_unheeded, settle_duplicates
from hudimeta.write.execution import FileWriters, execute_plan
from hudimeta.write.first_schema import with_first_schema
from hudimeta.write.operations import GroupRewrite, NewGroup, WritePlan, plan_inserts
from hudimeta.write.placement import FileSizing
from hudimeta.write.placing import check_ages
from hudimeta.write.row_buckets import BUCKETS, RowBuckets, batch_of, table_of
from hudimeta.write.rows_in import batches_of, joined_batches
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import (
    overwritten,
    publish,
    replaced_by,
    write_rows,
)
from hudimeta.write.write_result import WriteResult

__all__ = ["write_stream"]

_GROUP, _ROLE = "\0group", "\0role"
_LOOK_UPS_TOLD = 3
_READ_ONCE = (
    "Nothing was published. The write is not tried again by itself, because its stream was read: hand the rows over once more, "
    "or as a table; or raise hudimeta.write.portion.bytes, up to which a stream is kept."
)
_ROLES = 4
_CHANGED, _REMOVED, _UNRESOLVED, _BEGINNING = range(_ROLES)


def write_stream(session: WriteSession, operation: Operation, reader: pa.RecordBatchReader) -> CommitReport:
    """Write all rows of a stream in one commit.

    Args:
        session: The table.
        operation: INSERT, BULK_INSERT, UPSERT, DELETE or an overwrite.
        reader: The rows; read once. What is in memory at a time is a few times `hudimeta.write.portion.bytes`.

    Raises:
        CommitConflict: Other writers were first. A stream of more than one portion cannot be read again, so it is not retried.
        HudiError: See `write_rows`; the write was rolled back.
    """
    portions = joined_batches(batches_of(reader), session.options.get(keys.PORTION_BYTES))
    first = next(portions, pa.Table.from_batches([], reader.schema))
    second = next(portions, None)
    if second is None:
        return with_first_schema(session, operation, reader.schema, lambda: write_rows(session, operation, first))
    write = until_no_conflict(_write_portions, attempts=1)
    try:
        return write(session, operation, reader.schema, _chained(first, second, portions))
    except CommitConflict as conflict:
        raise conflict.with_cure(_READ_ONCE) from conflict


def _table_and_change(session: WriteSession, operation: Operation, incoming: pa.Schema) -> tuple[TableFiles, SchemaChange]:
    table = TableFiles.now(session)
    has_keys, in_buckets = not table.generator().generates_keys, table.lookup.fixes_places
    refuse_unheeded(session.options, operation, has_keys=has_keys, in_buckets=in_buckets)
    deletes = operation is Operation.DELETE
    return table, SchemaChange(table.snapshot.file_schema) if deletes else table.evolve(incoming)


def _write_portions(
    session: WriteSession, operation: Operation, incoming: pa.Schema, portions: Iterator[pa.Table]
) -> CommitReport:
    timings = Timings()
    table, change = with_first_schema(session, operation, incoming, lambda: _table_and_change(session, operation, incoming))
    if ensure_metadata(session):
        table = TableFiles.now(session)
    with session.coordinator.writing(operation, table.snapshot.timeline) as (write, begun):
        table = table if begun is table.snapshot.timeline else TableFiles.at(session, begun)
        defaults = DefaultValues.of(session.properties, change)
        carried = carries_keys(table.generator(), operation, incoming.names)
        session.notes += [CARRIED_NOTE] if carried else []
        stream = _Stream(session, table, write, change.schema, timings, defaults, carried)
        return publish(session, table, write, change.schema, stream.write(portions), timings)


def _chained(first: pa.Table, second: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield second
    yield from rest


class _Stream:
    def __init__(
        self,
        session: WriteSession,
        table: TableFiles,
        write: OpenWrite,
        schema: pa.Schema,
        timings: Timings,
        defaults: DefaultValues | None,
        carried: bool,
    ) -> None:
        self._session, self._table, self._write, self._schema = session, table, write, schema
        self._timings, self._defaults = timings, defaults
        self._generator, self._carried = table.generator(), carried
        self._has_keys = carried or not self._generator.generates_keys
        self._rules = session.rules
        self._combining = combining_rules(session.properties, session.rules)
        self._sizing = FileSizing.of(session, table.snapshot.timeline, write.operation)
        self._limit = session.options.get(keys.PORTION_BYTES)
        self._policy = duplicate_policy(session.options, write.operation)
        self._fixed = table.lookup.fixes_places
        self._looks_up = write.operation in (Operation.UPSERT, Operation.DELETE) or self._policy is not DuplicatePolicy.NONE
        self._looks_up |= self._fixed and not write.operation.overwrites
        self._files: list[WrittenFile] = []
        self._grown: set[str] = set()
        self._overwritten: set[str] = set()
        self._index: list[str] = []
        self._begins_with_logs = False
        self._unmatched = self._dropped = self._asked = self._hits = self._moved = 0

    def write(self, portions: Iterator[pa.Table]) -> WriteResult:
        """Write every portion; nothing becomes visible."""
        operation = self._write.operation
        if self._has_keys and (self._looks_up or self._fixed or combines(self._session.options, operation)):
            self._write_by_key(portions)
        else:
            for rows in portions:
                with self._timings.phase("check"):
                    batch = self._batch(rows)
                self._write_fresh(batch)
        replaced: dict[str, list[str]] = {}
        sole = self._grown if self._looks_up else set()
        if operation.overwrites:
            touched = overwritten(self._session, self._table.snapshot, operation, self._overwritten)
            replaced, sole = replaced_by(self._table.snapshot, operation, touched), set(touched)
        # With a global index a row of the same key could have come anywhere.
        anywhere = self._looks_up and bool(sole) and self._table.lookup.choice.is_global
        return WriteResult(
            self._files,
            replaced,
            None if anywhere else frozenset(sole),
            _in_short(self._index),
            self._unmatched,
            self._dropped,
            self._asked,
            self._hits,
            self._moved,
        )

    def _batch(self, rows: pa.Table) -> KeyedBatch:
        if self._write.operation is Operation.DELETE:
            return keys_only_batch(
                rows,
                self._generator,
                self._table.snapshot.file_schema,
                self._rules,
                whole_table=self._table.lookup.choice.is_global,
            )
        batch = keyed_batch(rows, self._schema, self._generator, self._rules, carried=self._carried)
        if self._write.operation.overwrites:
            self._overwritten.update(batch.partitions.unique().to_pylist())
        return batch

    # Rows whose keys nobody asks for

    def _write_fresh(self, batch: KeyedBatch) -> None:
        batch = batch if self._defaults is None else self._defaults.given_to(batch)
        if self._write.operation is Operation.BULK_INSERT:
            batch = sorted_for_bulk_insert(batch, self._session.options)
        plan = plan_inserts(batch, {}, self._sizing)
        self._grown.update(group.partition_path for group in plan.new_groups)
        self._execute(plan, batch)

    # All others

    def _write_by_key(self, portions: Iterator[pa.Table]) -> None:
        # Closed also when the source breaks off, before the folder goes.
        with tempfile.TemporaryDirectory(prefix="hudimeta-") as folder, contextlib.ExitStack() as opened:
            storage = open_storage(folder)
            by_key, by_group, by_partition = (
                opened.enter_context(contextlib.closing(RowBuckets(storage, name, self._limit)))
                for name in ("keys", "groups", "partitions")
            )
            for rows in portions:
                with self._timings.phase("check"):
                    batch = self._batch(rows)
                    if batch.keys is not None:
                        by_key.add(table_of(batch), shard(batch.keys, BUCKETS))
            by_key.close()
            groups = _Groups()
            for buckets in by_key.together(self._limit):
                self._sort_out(batch_of(by_key.read(buckets)), groups, by_group, by_partition)
            by_group.close()
            by_partition.close()
            for buckets in by_group.together(self._limit):
                self._write_known(by_group.read(buckets), groups)
            for number in np.flatnonzero(by_partition.bytes):
                for rows in by_partition.portions(int(number)):
                    self._write_fresh(batch_of(rows))

    def _sort_out(self, batch: KeyedBatch, groups: _Groups, by_group: RowBuckets, by_partition: RowBuckets) -> None:
        """One row a key, then known keys to their file group and the others to their partition."""
        operation = self._write.operation
        if combines(self._session.options, operation) or (self._fixed and self._looks_up):
            one_a_key = combine if operation.overwrites else self._table.lookup.one_a_key
            batch = one_a_key(batch, self._combining)
        fresh = np.flatnonzero(~batch.deleted)
        new_groups = None if self._looks_up else self._table.lookup.new_groups(batch)
        if new_groups is not None:
            self._begin(batch, new_groups, fresh, groups, by_group)
            return
        if self._looks_up and batch.keys is not None:
            with self._timings.phase("look-up"):
                if self._policy is DuplicatePolicy.NONE:
                    batch, fresh = self._found(batch, groups, by_group)
                else:
                    tagging, _ = self._table.lookup.held(batch)
                    fresh = settle_duplicates(batch, tagging.row, self._policy)
                    self._count(str(tagging), tagging.asked, tagging.hits)
                    self._dropped += len(batch) - len(fresh)
        if operation is Operation.DELETE or not len(fresh):
            return
        part = batch.take(fresh)
        by_partition.add(table_of(part), shard(part.partitions, BUCKETS))

    def _found(self, batch: KeyedBatch, groups: _Groups, by_group: RowBuckets) -> tuple[KeyedBatch, np.ndarray[Any, Any]]:
        """Lay aside what changes file groups; returns the rows as they were settled, and which of them are new."""
        found = self._table.lookup.find(batch)
        self._count(found.text, found.asked, found.hits)
        self._unmatched += found.unmatched
        settled = found.settled
        self._moved += settled.moved
        tagging, moved_keys = settled.tagging, settled.moved_keys
        role = _CHANGED if tagging.exact or self._write.operation is Operation.DELETE else _UNRESOLVED
        numbers = groups.numbers(tagging.files)
        for at, file, as_what in ((tagging.row, tagging.file, role), (moved_keys.row, moved_keys.file, _REMOVED)):
            rows = table_of(settled.batch.take(at)).append_column(_GROUP, pa.array(numbers[file]))
            by_group.add(rows.append_column(_ROLE, pa.array(np.full(len(at), as_what))), numbers[file] % BUCKETS)
        fresh = np.setdiff1d(np.flatnonzero(~settled.batch.deleted), tagging.row)
        if tagging.new_groups is None:
            return settled.batch, fresh
        if self._write.operation is not Operation.DELETE:
            self._begin(settled.batch, tagging.new_groups, fresh, groups, by_group)
        return settled.batch, fresh[:0]

    def _begin(
        self, batch: KeyedBatch, new_groups: NewGroups, rows: np.ndarray[Any, Any], groups: _Groups, by_group: RowBuckets
    ) -> None:
        """Lay aside rows whose file group is to be begun, by that group."""
        begun = [KeyFile(p, i, "", 0) for p, i in zip(new_groups.partition_paths, new_groups.file_ids, strict=True)]
        numbers = groups.numbers(begun)[new_groups.number]
        wanted = np.isin(new_groups.row, rows)
        at, numbers = new_groups.row[wanted], numbers[wanted]
        self._begins_with_logs = new_groups.as_logs or self._sizing.into_logs
        part = batch.take(at)
        part = part if self._defaults is None else self._defaults.given_to(part)
        table = table_of(part).append_column(_GROUP, pa.array(numbers))
        by_group.add(table.append_column(_ROLE, pa.array(np.full(len(at), _BEGINNING))), numbers % BUCKETS)

    def _count(self, text: str, asked: int, hits: int) -> None:
        self._index.append(text)
        self._asked += asked
        self._hits += hits

    def _write_known(self, rows: pa.Table, groups: _Groups) -> None:
        by_group: dict[int, dict[int, np.ndarray[Any, Any]]] = {}
        for code, at in positions_by_number(rows[_GROUP].to_numpy() * _ROLES + rows[_ROLE].to_numpy()):
            by_group.setdefault(code // _ROLES, {})[code % _ROLES] = at
        batch = batch_of(rows.drop_columns([_GROUP, _ROLE]))
        plan = WritePlan()
        nothing = np.zeros(0, np.int64)
        for number, by_role in by_group.items():
            file = groups.files[number]
            if _BEGINNING in by_role:
                begun = NewGroup(file.partition_path, by_role[_BEGINNING], file.file_id, self._begins_with_logs)
                plan.new_groups.append(begun)
                self._grown.add(file.partition_path)
                continue
            changed, removed, unresolved = (by_role.get(role, nothing) for role in (_CHANGED, _REMOVED, _UNRESOLVED))
            plan.rewrites.append(GroupRewrite(file.partition_path, file, changed, nothing, removed, unresolved))
        check_ages(plan, self._write)
        self._execute(plan, batch)

    def _execute(self, plan: WritePlan, batch: KeyedBatch) -> None:
        writers = FileWriters.of(self._session, self._table, self._write, self._schema)
        with self._timings.phase("write"):
            self._files += execute_plan(plan, batch, writers, self._session.engine, WriteToken(len(self._files)))


def _in_short(look_ups: Sequence[str]) -> str:
    """What was said of look-ups, of a few of them: the commit keeps this text, and a stream may have any number of portions."""
    distinct = list(dict.fromkeys(look_ups))
    more = len(distinct) - _LOOK_UPS_TOLD
    return "; ".join(distinct[:_LOOK_UPS_TOLD]) + (f"; and so in {more:,} more look-ups" if more > 0 else "")


class _Groups:
    """Numbers for the file groups that were found, the same in every pass."""

    def __init__(self) -> None:
        self.files: list[KeyFile] = []
        self._known: dict[tuple[str, str], int] = {}

    def numbers(self, files: Sequence[KeyFile]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The numbers of some file groups, in their order."""
        found = []
        for file in files:
            place = (file.partition_path, file.file_id)
            if place not in self._known:
                self._known[place] = len(self.files)
                self.files.append(file)
            found.append(self._known[place])
        return np.array(found, np.int64)
