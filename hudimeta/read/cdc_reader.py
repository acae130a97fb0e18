"""The changes of one commit to one file group, as rows of operation, time, image before and image after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.errors import CorruptFileError, NotFound, RangeLost
from hudimeta.formats.log import BlockType, LogBlock, decode_data_block
from hudimeta.formats.plain_arrays import array_of, fill_null, no_rows, scalar_of
from hudimeta.read.cdc_images import record_images, row_images
from hudimeta.read.cdc_plan import ChangeSource, GroupChange
from hudimeta.redaction import redacted
from hudimeta.schema import conform
from hudimeta.slices.fold import fold_log_records
from hudimeta.slices.log_damage import LogFileRules, read_log_file
from hudimeta.slices.log_records import SliceLog
from hudimeta.slices.merge import SliceMerger
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.read_task import ReadTask, VisibleInstants
from hudimeta.slices.reader import SliceReader
from hudimeta.slices.same_keys import has_doubles, numbered, told_apart
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.snapshot.partition_columns import path_values
from hudimeta.storage import join
from hudimeta.types import META_COLUMNS

if TYPE_CHECKING:
    from hudimeta.predicate import Bound
    from hudimeta.storage import Storage

__all__ = ["CHANGE_SCHEMA", "ChangeReader", "ChangeTask"]

CHANGE_SCHEMA = pa.schema([(name, pa.string()) for name in ("op", "ts_ms", "before", "after")])
"""What a CDC query returns: operation (`i`, `u`, `d`), requested time of the commit, images as JSON (null for none)."""

INSERT, UPDATE, DELETE = "i", "u", "d"
_VERSION_COLUMNS = META_COLUMNS[:2]
"""Commit time and sequence number: a version of a row that was written anew has others."""


class _KeyedRows(NamedTuple):
    """Rows of the table with their record keys, which the rows themselves need not show."""

    keys: pa.ChunkedArray
    rows: pa.Table


@redacted
@dataclass(frozen=True)
class ChangeTask(ReadTask):
    """How changes are read: as a task of all columns and rows of the table says, and then shown.

    Attributes:
        shown: Columns of `CHANGE_SCHEMA` that are returned, in this order.
        condition: Changes for which it is not true are dropped; None keeps all.
        completions: Requested time -> completion time of the completed writes on the active timeline.
    """

    shown: tuple[str, ...] = tuple(CHANGE_SCHEMA.names)
    condition: Bound | None = None
    completions: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def output_schema(self) -> pa.Schema:
        """Schema of the changes that come out."""
        return pa.schema([CHANGE_SCHEMA.field(name) for name in self.shown])

    @cached_property
    def images(self) -> frozenset[str]:
        """Columns that must be rendered."""
        looked_at = {column.path[0] for column in self.condition.columns} if self.condition is not None else set()
        return frozenset({*self.shown, *looked_at})

    def rows_seen_by(self, instants: VisibleInstants) -> ReadTask:
        """The task of reading rows, with only the log blocks of some instants."""
        task = ReadTask(**{f.name: getattr(self, f.name) for f in fields(ReadTask)})
        return replace(task, instants=instants)


class ChangeReader(SliceReader):
    """Reads changes of one table. Not for several threads at once.

    Args:
        task: A `ChangeTask`.
        storage: Rooted at the table.
    """

    def __init__(self, task: ChangeTask, storage: Storage) -> None:
        super().__init__(task, storage)
        self._change_task = task

    def tables(self, file_slice: FileSlice) -> Iterator[pa.Table]:
        """The changes of a `GroupChange` with `task.output_schema`, in pieces that fit memory; empty pieces are left out.

        Raises:
            RangeLost: Files of the commit are cleaned.
            CorruptFileError, UnsupportedFeature: A file cannot be read.
        """
        if not isinstance(file_slice, GroupChange):
            raise TypeError(f"expected a GroupChange, not {type(file_slice).__name__}")
        try:
            for changes in self._changes(file_slice):
                self.counts.rows_read += changes.num_rows
                kept = self._kept(changes)
                self.counts.rows += kept.num_rows
                if kept.num_rows:
                    yield kept
        except NotFound as error:
            raise RangeLost(
                f"the changes of commit {file_slice.instant} cannot be known: {error.path} is gone",
                "Cleaning removes files of older commits: begin the range after this commit.",
            ) from error
        # A log file is looked at once for each side.
        self.counts.corrupt[:] = dict.fromkeys(self.counts.corrupt)

    def _kept(self, changes: pa.Table) -> pa.Table:
        task = self._change_task
        if task.condition is not None:
            from hudimeta.predicate import evaluate

            changes = changes.filter(evaluate(task.condition, changes))
        return changes.select(task.shown)

    def _changes(self, change: GroupChange) -> Iterator[pa.Table]:
        source = change.source
        if source is ChangeSource.NEW_ROWS:
            for rows in self._rows_of(change).tables(change):
                yield self._listed(change, INSERT, after=rows)
        elif source is ChangeSource.REMOVED_ROWS and change.before is not None:
            for rows in self._rows_before(change).tables(change.before):
                yield self._listed(change, DELETE, before=rows)
        elif source is ChangeSource.CHANGE_FILE:
            yield from self._logged(change)
        elif source is ChangeSource.REWRITTEN:
            after = self._rows_of(change).keyed(change)
            yield from self._compared(change, self._rows_before(change).keyed(change.before), after)
        elif source is ChangeSource.LOG_FILES:
            yield from self._compared(change, *self._overlaid(change))

    def _overlaid(self, change: GroupChange) -> tuple[_KeyedRows, _KeyedRows]:
        """The rows that the commit's log files touch, before and after."""
        before, own = self._rows_before(change), self._rows_of(change)
        both = before.task.instants.completed | own.task.instants.completed
        after = self._rows(VisibleInstants(both, before.task.instants.first_active))
        logs = own.logs(change)
        keys = own.keys_of(logs)
        names = {str(log.name) for log in logs}
        if change.before is not None:
            # In version 6 commits append to one another's log files: none is read twice.
            logs += [log for log in own.logs(change.before) if str(log.name) not in names]
        base = before.base(change.before, keys)
        partition = change.partition_path
        sides = before.merged(partition, base, logs, keys), after.merged(partition, base, logs, keys)
        self.counts.log_blocks += after.counts.log_blocks
        self.counts.blocks_ignored += after.counts.blocks_ignored
        return sides

    # Readers of rows

    def _rows_of(self, change: GroupChange) -> _KeyedReader:
        """Reads what the commit wrote."""
        return self._rows(VisibleInstants(frozenset((change.instant,)), None))

    def _rows_before(self, change: GroupChange) -> _KeyedReader:
        """Reads what others had committed when the commit completed.

        A savepointed commit is older than what counts as the first one that is not archived, and not archived itself.
        """
        task = self._change_task
        earlier = frozenset(t for t, completed in task.completions.items() if completed < change.completed)
        return self._rows(VisibleInstants(earlier, min(task.instants.first_active or change.instant, change.instant)))

    def _rows(self, instants: VisibleInstants) -> _KeyedReader:
        reader = _KeyedReader(self._change_task.rows_seen_by(instants), self._storage)
        reader.counts.corrupt = self.counts.corrupt
        return reader

    # Change files

    def _logged(self, change: GroupChange) -> Iterator[pa.Table]:
        for name, size in zip(change.change_files, change.change_sizes, strict=True):
            path = join(change.partition_path, name)
            for block in self._change_blocks(path, size, change.instant):
                yield self._of_block(change, path, decode_data_block(block).combine_chunks())

    def _change_blocks(self, path: str, size: int, instant: str) -> list[LogBlock]:
        scan = read_log_file(LogFileRules.of(self._storage, self.task.properties), path, size)
        self.counts.corrupt += map(str, scan.corrupt)
        blocks = [b for b in scan.blocks if b.type is BlockType.CDC_DATA and b.instant == instant]
        self.counts.log_blocks += len(blocks)
        return blocks

    def _of_block(self, change: GroupChange, path: str, records: pa.Table) -> pa.Table:
        """Changes of one block: images that its mode leaves out are those of the base files before and after."""
        import pyarrow.compute as pc

        operations = records.column("op")
        images = {}
        for name, absent, base, reader in (
            ("before", INSERT, change.before, self._rows_before),
            ("after", DELETE, change, self._rows_of),
        ):
            if name not in self._change_task.images:
                continue
            if name in records.column_names:
                chunks = [record_images(self._record_of_today(chunk, change)) for chunk in records.column(name).chunks]
                images[name] = pa.chunked_array(chunks, pa.string())
            else:
                wanted = pc.if_else(pc.equal(operations, absent), scalar_of(None), records.column("record_key"))
                found = reader(change).keyed(base, wanted.drop_null())
                images[name] = self._looked_up(path, wanted, found, change.instant if base is change else None)
        return self._table(change, operations, **images)

    def _record_of_today(self, records: pa.StructArray, change: GroupChange) -> pa.StructArray:
        """Records of a change file with the columns that the table has now; null for null.

        Apache Hudi reads them by the schema of the table, too, but finds nothing in columns that were renamed since then.
        """
        task = self.task
        wanted = pa.schema([f.with_nullable(True) for f in task.table_schema if f.name not in META_COLUMNS])
        if records.type.equals(pa.struct(wanted)):
            return records
        rows = pa.table(records.flatten(), names=[field.name for field in records.type])
        then = None if task.history is None else task.history.at(change.instant)
        if then is not None and task.history is not None:
            rows = then.read_as(rows, task.history.latest)
        stated = _stated(task, change.partition_path)
        for name in stated.column_names:
            if name not in rows.column_names:  # partition columns that no file holds
                rows = rows.append_column(name, pa.repeat(stated.column(name)[0], rows.num_rows))
        fitted = conform(rows, wanted, altered=then is not None).combine_chunks()
        columns = [column.combine_chunks() for column in fitted.columns]
        return pa.StructArray.from_arrays(columns, fields=list(wanted), mask=records.is_null())

    def _looked_up(self, path: str, keys: pa.ChunkedArray, found: _KeyedRows, instant: str | None) -> pa.ChunkedArray:
        """The image of each key's row, null for null. Of several rows of a key those that `instant` wrote are meant, the last
        ones; without it, the first ones."""
        import pyarrow.compute as pc

        sought, known = keys, found.keys.combine_chunks()
        if has_doubles(known):
            found = found if instant is None else _written_by(instant, found)
            sought, known = (numbered(k, from_end=instant is not None) for k in (keys, found.keys))
        at = pc.index_in(sought, value_set=known, skip_nulls=True)
        if at.null_count > keys.null_count:
            lost = keys.filter(pc.and_(at.is_null(), keys.is_valid()))[0]
            raise CorruptFileError(path, 0, "changes of rows that the base files have", f"a change of {lost.as_py()!r}")
        return self._images(found.rows).take(at)

    # Two versions of a file group

    def _compared(self, change: GroupChange, before: _KeyedRows, after: _KeyedRows) -> Iterator[pa.Table]:
        """What makes the rows before those after: deletes, updates, inserts."""
        import pyarrow.compute as pc

        was, remains = told_apart(before.keys, after.keys)
        at = pc.index_in(was, value_set=remains)
        there = at.is_valid()
        yield self._listed(change, DELETE, before=before.rows.filter(pc.invert(there)))
        old, new = before.rows.filter(there), after.rows.take(at.drop_null())
        differs = self._differs(old, new)
        yield self._listed(change, UPDATE, before=old.filter(differs), after=new.filter(differs))
        fresh = pc.invert(pc.is_in(remains, value_set=was))
        yield self._listed(change, INSERT, after=after.rows.filter(fresh))

    def _differs(self, old: pa.Table, new: pa.Table) -> pa.ChunkedArray:
        """Rows written anew, though maybe with the same values, or with a value that has changed."""
        import pyarrow.compute as pc

        data = [name for name in old.column_names if name not in META_COLUMNS]
        differs = pc.not_equal(self._images(old.select(data)), self._images(new.select(data)))
        for name in _VERSION_COLUMNS:
            if name in old.column_names:
                versions = (fill_null(rows.column(name), "") for rows in (old, new))
                differs = pc.or_(differs, pc.not_equal(*versions))
        return differs

    # Output

    def _listed(
        self, change: GroupChange, operation: str, before: pa.Table | None = None, after: pa.Table | None = None
    ) -> pa.Table:
        """Changes of one kind, row by row."""
        sides = {"before": before, "after": after}
        count = next(rows.num_rows for rows in sides.values() if rows is not None)
        rendered = {n: self._images(r) for n, r in sides.items() if r is not None and n in self._change_task.images}
        return self._table(change, pa.chunked_array([pa.repeat(operation, count)]), **rendered)

    def _table(self, change: GroupChange, operations: pa.ChunkedArray, **images: pa.ChunkedArray) -> pa.Table:
        nothing = pa.nulls(len(operations), pa.string())
        sides = [images.get(name, nothing) for name in ("before", "after")]
        return pa.table([operations, pa.repeat(change.instant, len(operations)), *sides], schema=CHANGE_SCHEMA)

    def _images(self, rows: pa.Table) -> pa.ChunkedArray:
        batches = rows.combine_chunks().to_batches(max_chunksize=self.task.batch_rows)
        return pa.chunked_array([row_images(batch) for batch in batches], pa.string())


class _KeyedReader(SliceReader):
    """Reads whole rows together with their record keys."""

    def logs(self, file_slice: FileSlice) -> list[SliceLog]:
        """The slice's log files."""
        return self._logs(file_slice) if file_slice.log_files else []

    def keys_of(self, logs: Sequence[SliceLog]) -> pa.Array:
        """Keys of the records in the blocks that count."""
        parts = list(self._log_parts(self._counting(logs)))
        return fold_log_records(parts, self.task.merged, self.task.rules).keys

    def keyed(self, file_slice: FileSlice | None, only: pa.ChunkedArray | None = None) -> _KeyedRows:
        """The rows of the slice's base file; `only` those with one of these keys, where it is given."""
        partition = "" if file_slice is None else file_slice.partition_path
        return self._finished(partition, self.base(file_slice, None if only is None else only.combine_chunks()))

    def base(self, file_slice: FileSlice | None, only: pa.Array | None) -> list[pa.Table]:
        """Rows of the slice's base file with the columns of a merge; `only` those with one of these keys."""
        if file_slice is None:
            return []
        with self._base_file(file_slice) as base:
            pieces = map(self.with_keys, self._base_rows(file_slice, base, self.task.merged))
            return [piece if only is None else _with_key(piece, only) for piece in pieces]

    def merged(self, partition_path: str, base: Sequence[pa.Table], logs: Sequence[SliceLog], keys: pa.Array) -> _KeyedRows:
        """Base rows with the blocks that count merged over them, and the rows with some keys that only the blocks have."""
        parts = list(self._log_parts(self._counting(logs)))
        merger = SliceMerger(fold_log_records(parts, self.task.merged, self.task.rules), self.task.rules)
        pieces = [merger.merge(rows) for rows in base]
        return self._finished(partition_path, [*pieces, _with_key(merger.remaining(), keys)])

    def _finished(self, partition_path: str, pieces: Sequence[pa.Table]) -> _KeyedRows:
        merged = pa.concat_tables(pieces) if pieces else no_rows(self.task.merged)
        shown = self._finish(self._without_keys(merged), _stated(self.task, partition_path))
        return _KeyedRows(merged.column(KEY_COLUMN), shown)


def _stated(task: ReadTask, partition_path: str) -> pa.Table:
    """Values that a partition path states."""
    return path_values(array_of([partition_path], pa.string()), task.partition_layout, task.table_schema, task.properties)


def _written_by(instant: str, found: _KeyedRows) -> _KeyedRows:
    """Without older rows of keys of which a commit wrote others. Rows without meta columns do not tell."""
    import pyarrow.compute as pc

    if _VERSION_COLUMNS[0] not in found.rows.column_names:
        return found
    own = fill_null(pc.equal(found.rows.column(_VERSION_COLUMNS[0]), instant), False)
    kept = pc.or_(own, pc.invert(pc.is_in(found.keys, value_set=found.keys.filter(own).combine_chunks())))
    return _KeyedRows(found.keys.filter(kept), found.rows.filter(kept))


def _with_key(rows: pa.Table, keys: pa.Array) -> pa.Table:
    import pyarrow.compute as pc

    column = rows.column(KEY_COLUMN)
    return rows.filter(pc.is_in(column, value_set=keys.cast(column.type)))
