"""Rows of one file slice: the base file piece by piece, the log merged over it, then what the predicate keeps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.config import HudiWarning
from hudimeta.errors import CorruptFileError
from hudimeta.formats.base_file import BaseFile, open_base_file
from hudimeta.formats.log import BlockType, KeyProbe
from hudimeta.formats.plain_arrays import texts
from hudimeta.formats.required_fields import cast_table
from hudimeta.schema.conform import conform
from hudimeta.slices.bootstrap import BASE_PATH_KEY, METADATA_ONLY_INSTANT, BootstrapSource
from hudimeta.slices.log_damage import LogFileRules
from hudimeta.slices.log_keys import LogKeys
from hudimeta.slices.log_parts import DataPart, LogPart, data_part, delete_part, deletes_of, read_log_parts, rows_of
from hudimeta.slices.log_records import SliceBlocks, SliceLog, scan_slice_logs
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.projection import leaf_paths, picked
from hudimeta.slices.read_task import ReadTask
from hudimeta.slices.row_groups import MatchingRows, filled_with, with_constants
from hudimeta.slices.slice_logs import LogFiles
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.snapshot.partition_columns import path_values
from hudimeta.storage import join
from hudimeta.storage.at_once import opened_ahead

if TYPE_CHECKING:
    from hudimeta.keys import KeyGenerator
    from hudimeta.schema import InternalSchema
    from hudimeta.slices.merge import MergeCounts, SliceMerger
    from hudimeta.slices.whole_groups import WholeGroups
    from hudimeta.storage import Storage

__all__ = ["OpensBase", "ReadCounts", "SliceReader", "left_out"]

OpensBase: TypeAlias = "Callable[[], BaseFile] | None"
"""Gives the open base file of a slice; None where it has none, or none that holds its columns."""


@dataclass(slots=True)
class ReadCounts:
    """What reading did, for the report: see `ScanReport`.

    Attributes:
        log_records: Records of log blocks that were merged; for services also those of blocks that later ones outdo.
        ruled_out: Base files of which no row was read, because of what their footers say: path and part of the predicate.
    """

    rows: int = 0
    rows_read: int = 0
    rows_passed_by: int = 0
    rows_ruled_out: int = 0
    row_groups: int = 0
    row_groups_skipped: int = 0
    logs: int = 0
    logs_passed_by: int = 0
    log_blocks: int = 0
    blocks_ignored: int = 0
    blocks_outdone: int = 0
    log_records: int = 0
    spilled: int = 0
    corrupt: list[str] = field(default_factory=list)
    ruled_out: dict[str, str] = field(default_factory=dict)

    def add(self, other: ReadCounts) -> None:
        """Count what another reader did."""
        for field_ in fields(self):
            mine, its = getattr(self, field_.name), getattr(other, field_.name)
            setattr(self, field_.name, mine | its if isinstance(mine, dict) else mine + its)

    def add_spilled(self, size: int) -> None:
        """Count bytes that went to disk."""
        self.spilled += size


class SliceReader:
    """Reads slices of one table. Not for several threads at once.

    Args:
        task: What to read of each slice.
        storage: Rooted at the table.

    Attributes:
        merger: What merged a slice that was read as a whole; None where none had logs, or one was merged on disk.
        merge_counts: What merging did, in rows; None where nothing was merged.
    """

    merger: SliceMerger | None = None
    merge_counts: MergeCounts | None = None

    def __init__(self, task: ReadTask, storage: Storage) -> None:
        self.task, self.counts = task, ReadCounts()
        self._storage = storage

    def tables(self, file_slice: FileSlice) -> Iterator[pa.Table]:
        """The slice's rows with `task.output_schema`, in pieces that fit memory; empty pieces are left out.

        Raises:
            CorruptFileError, UnsupportedFeature, NotFound, SchemaMismatch: A file cannot be read.
        """
        constants = self._constants(file_slice)
        for piece in self.stored_rows(file_slice, pa.table({}) if self.task.as_stored else constants):
            self.counts.rows_read += piece.num_rows
            result = self._finish(piece, constants)
            self.counts.rows += result.num_rows
            if result.num_rows:
                yield result

    def logged(self, file_slice: FileSlice) -> Iterator[pa.Table]:
        """The rows of the slice's log files as they were logged, those that later ones replace or delete too; see `tables`."""
        constants = self._constants(file_slice)
        for part in self._log_parts(self._blocks(file_slice)):
            if isinstance(part, DataPart):
                yield self._finish(self._without_keys(part.rows), constants)

    def readable(self, file_slice: FileSlice) -> Iterator[pa.Table]:
        """As `tables`; what cannot be read any more of a damaged slice is left out where the task says so, never in silence."""
        try:
            yield from self.tables(file_slice)
        except CorruptFileError as error:
            if not self.task.skip_damage:
                raise
            self.counts.corrupt.append(left_out(file_slice, error))

    def _constants(self, file_slice: FileSlice) -> pa.Table:
        """What the slice's path states."""
        task, path = self.task, texts([file_slice.partition_path])
        return path_values(path, task.partition_layout, task.table_schema, task.properties)

    def _finish(self, piece: pa.Table, constants: pa.Table) -> pa.Table:
        """Add the values that the path states, drop rows, and choose columns."""
        task = self.task
        constants = constants.select([n for n in constants.column_names if n in task.needed.names])
        piece = filled_with(piece, constants) if task.as_stored else with_constants(piece, constants)
        if task.predicate is not None:
            from hudimeta.predicate import evaluate

            piece = piece.filter(evaluate(task.predicate, piece))
        if task.beside is not None:
            piece = task.beside.filter(piece)
        columns = [picked(piece, name) for name in task.columns]
        return cast_table(pa.table(columns, names=list(task.columns)), task.output_schema)

    # Base and log

    def stored_rows(self, file_slice: FileSlice, constants: pa.Table) -> Iterator[pa.Table]:
        """Rows as the files have them, with at least the needed columns that the path does not state."""
        with self._base_file(file_slice) as base:
            if self.task.read_optimized or not file_slice.log_files:
                yield from self._unmerged_rows(file_slice, base, constants)
            else:
                yield from self._logged_rows(file_slice, base, constants)

    @contextmanager
    def _base_file(self, file_slice: FileSlice) -> Iterator[OpensBase]:
        """What opens the base file, which waits for a far-away store beside log files; None where there is nothing to open."""
        path, size = file_slice.base_path, file_slice.base_size
        is_skeleton = file_slice.base_instant == METADATA_ONLY_INSTANT and self.task.properties.get(BASE_PATH_KEY)
        if path is None or is_skeleton:
            yield None
            return
        with opened_ahead(lambda: open_base_file(self._storage, path, size), self._storage) as opened:
            yield opened

    def _unmerged_rows(self, file_slice: FileSlice, base: OpensBase, constants: pa.Table) -> Iterator[pa.Table]:
        plain = pa.schema([f for f in self.task.needed if f.name not in constants.column_names])
        return self._base_rows(file_slice, base, plain, constants)

    def _logged_rows(self, file_slice: FileSlice, base: OpensBase, constants: pa.Table) -> Iterator[pa.Table]:
        task, blocks = self.task, self._matching_blocks(file_slice)
        if not blocks.blocks:
            yield from self._unmerged_rows(file_slice, base, constants)
            return
        if task.merged_range is not None and any(block.is_partial for block in blocks.blocks):
            groups, reader = self._whole_groups
            yield from reader.stored_rows(groups.of(file_slice), constants)
            return
        from hudimeta.slices.bounded_merge import merged_rows
        from hudimeta.slices.merge import MergeCounts

        self.merge_counts = self.merge_counts or MergeCounts()
        blocks = self._without_outdone(blocks)
        pieces = self._base_rows(file_slice, base, task.merged)
        pieces = pieces if task.merged_range is None else map(task.merged_range.taking_part, pieces)
        rows_of_base = (self.with_keys(piece) for piece in pieces)
        parts = self._counted(self._log_parts(blocks))
        how = (task.merged, task.rules, task.merge_memory, self.counts.add_spilled)
        for rows in merged_rows(parts, rows_of_base, *how, whole=self._merges_whole, counts=self.merge_counts):
            yield self._without_keys(rows)

    def _merges_whole(self, merger: SliceMerger) -> None:
        self.merger = merger

    @cached_property
    def _whole_groups(self) -> tuple[WholeGroups, SliceReader]:
        """File groups of which a range is not enough, and what reads them."""
        from hudimeta.slices.whole_groups import WholeGroups

        groups = WholeGroups(self.task, self._storage)
        reader = SliceReader(groups.task, self._storage)
        reader.counts = self.counts
        return groups, reader

    def _base_rows(
        self, file_slice: FileSlice, base: OpensBase, wanted: pa.Schema, constants: pa.Table | None = None
    ) -> Iterator[pa.Table]:
        """Rows of the base file.

        Args:
            file_slice: The slice.
            base: See `_base_file`.
            wanted: What comes out.
            constants: When the rows are not merged: what the path states, so that row groups without a match may be left out.
        """
        if file_slice.base_path is None:
            return
        if base is None:
            for piece in self._bootstrap_source.pieces(file_slice, wanted.names):
                yield conform(piece, wanted) if len(wanted) else piece
            return
        file, instant = base(), file_slice.base_instant
        groups = file.groups_of(file_slice.share, file_slice.shares)
        if constants is None or self.task.predicate is None:
            for number in groups:
                yield from self._portions(file, number, wanted, instant)
        else:
            yield from self._matching.pieces(file, groups, wanted, instant, constants)

    @cached_property
    def _matching(self) -> MatchingRows:
        return MatchingRows(self.task, self.counts, self._piece)

    def _piece(self, file: BaseFile, number: int, wanted: pa.Schema, instant: str) -> pa.Table:
        """A row group with the columns of today, under today's names and types."""
        return self._as_of_today(file.piece(number, self._stored_names(wanted, instant)), wanted, instant)

    def _portions(self, file: BaseFile, number: int, wanted: pa.Schema, instant: str) -> Iterator[pa.Table]:
        """The same, a large one in portions."""
        pieces = file.portions(number, self._stored_names(wanted, instant))
        return (self._as_of_today(piece, wanted, instant) for piece in pieces)

    def _stored_names(self, wanted: pa.Schema, instant: str) -> Sequence[str]:
        """What columns were called when a file was written."""
        history = self.task.history
        then = None if history is None else history.at(instant)
        return leaf_paths(wanted) if then is None or history is None else _former_names(wanted.names, then, history.latest)

    def _as_of_today(self, piece: pa.Table, wanted: pa.Schema, instant: str) -> pa.Table:
        history = self.task.history
        then = None if history is None else history.at(instant)
        # Arrow forgets how many rows a table without columns has, so a column of nothing keeps the count.
        rows = piece if piece.num_columns else pa.table({"": pa.nulls(piece.num_rows)})
        if not len(wanted):
            return rows
        if then is not None and history is not None and piece.num_columns:
            return conform(then.read_as(piece, history.latest), wanted, altered=True)
        return conform(rows, wanted)

    @cached_property
    def _bootstrap_source(self) -> BootstrapSource:
        return BootstrapSource(self._storage, self.task.properties, self.task.storage_options)

    # Logs

    def _matching_blocks(self, file_slice: FileSlice) -> SliceBlocks:
        """The slice's blocks that count, without those of log files that touch none of the keys which the predicate asks for.

        The rows that such files would have changed have other keys, and the predicate drops them as they are.
        """
        task, wanted = self.task, None
        if task.log_keys and task.predicate is not None and task.history is None:
            wanted = self._matching.wanted_keys
        if wanted is None:
            return self._blocks(file_slice)
        logs = dict(zip(file_slice.log_files, file_slice.log_sizes, strict=True))
        kept = self._log_keys.touching(file_slice.partition_path, logs, KeyProbe(wanted.texts))
        self.counts.logs += len(logs)
        self.counts.logs_passed_by += len(logs) - len(kept)
        if len(kept) == len(logs):
            return self._blocks(file_slice)
        some = replace(file_slice, log_files=tuple(kept), log_sizes=tuple(logs[name] for name in kept))
        found = self._logs(some) if kept else []
        if any(block.compacted_instants for log in found for block in log.scan.blocks):
            self.counts.logs_passed_by -= len(logs) - len(kept)
            found = self._logs(file_slice)  # what a log compaction merged stands where the newest of those blocks does
        return self._counting(found)

    @cached_property
    def _log_keys(self) -> LogKeys:
        return LogKeys(self._storage)

    def _blocks(self, file_slice: FileSlice) -> SliceBlocks:
        """The slice's blocks that count."""
        return self._counting(self._logs(file_slice))

    def _counting(self, logs: Iterable[SliceLog]) -> SliceBlocks:
        """The blocks of a slice's log files that count."""
        blocks = scan_slice_logs(logs, visible=self.task.instants, as_of=self.task.as_of)
        self.counts.log_blocks += len(blocks.blocks)
        self.counts.blocks_ignored += blocks.invisible + blocks.rolled_back + blocks.superseded
        self.counts.corrupt += map(str, blocks.corrupt)
        return blocks

    def _without_outdone(self, blocks: SliceBlocks) -> SliceBlocks:
        """The blocks of which a row may win."""
        task = self.task
        if not task.block_keys or task.history is not None or task.virtual_keys:
            return blocks
        from hudimeta.slices.outdone_blocks import without_outdone

        left = without_outdone(blocks.blocks, task.rules)
        if task.as_stored and len(left) < len(blocks.blocks):
            kept = set(map(id, left))
            passed_by = (block for block in blocks.blocks if id(block) not in kept)
            self.counts.log_records += sum(rows_of(block, (KEY_COLUMN,)).num_rows for block in passed_by)
        self.counts.blocks_outdone += len(blocks.blocks) - len(left)
        return replace(blocks, blocks=left)

    def _logs(self, file_slice: FileSlice) -> list[SliceLog]:
        """The slice's log files."""
        return self._log_files.of(file_slice)

    @cached_property
    def _log_files(self) -> LogFiles:
        return LogFiles(LogFileRules.of(self._storage, self.task.properties), self.task.merge_memory.limit)

    def _log_parts(self, blocks: SliceBlocks) -> Iterator[LogPart]:
        """The records of blocks, decoded one by one."""
        task, history = self.task, self.task.history
        contents = self._log_files.with_contents(blocks.blocks)
        if history is None:
            yield from read_log_parts(contents, task.merged, self._bring, task.rules)
            return
        for block in contents:
            if block.type is BlockType.DELETE:
                yield delete_part(deletes_of(block), task.merged, task.rules, block)
            else:
                rows = history.at(block.instant).read_as(rows_of(block), history.latest)
                yield data_part(rows, task.merged, self._bring_altered, task.rules, block.is_partial)

    def _counted(self, parts: Iterable[LogPart]) -> Iterator[LogPart]:
        for part in parts:
            self.counts.log_records += part.rows.num_rows if isinstance(part, DataPart) else len(part.keys)
            yield part

    def _bring(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        return self.with_keys(conform(rows, schema))

    def _bring_altered(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        return self.with_keys(conform(rows, schema, altered=True))

    # Keys

    def with_keys(self, rows: pa.Table) -> pa.Table:
        """Rows with the keys that the table does not store."""
        if not self.task.virtual_keys or KEY_COLUMN not in rows.schema.names:
            return rows
        keys = self._generator.record_keys(rows)
        return rows.set_column(rows.schema.get_field_index(KEY_COLUMN), KEY_COLUMN, keys)

    def _without_keys(self, rows: pa.Table) -> pa.Table:
        """Merged rows with the needed columns; keys that the table does not store are not shown either."""
        if self.task.virtual_keys:
            hidden = pa.nulls(rows.num_rows, pa.string())
            rows = rows.set_column(rows.schema.get_field_index(KEY_COLUMN), KEY_COLUMN, hidden)
        return conform(rows, self.task.needed)

    @cached_property
    def _generator(self) -> KeyGenerator:
        from hudimeta.keys import KeyGenerator

        # How a single COMPLEX key is spelled matters to deletes only, which name keys as they were written.
        generator = KeyGenerator.from_properties(self.task.properties)
        return replace(generator, complex_single_field_prefix=True) if generator.lacks_prefix else generator


def left_out(file_slice: FileSlice, error: CorruptFileError) -> str:
    """Warn that a damaged slice was left out of a read; returns the words for its report."""
    name = join(file_slice.partition_path, file_slice.file_id)
    text = f"the rows of file group {name} were left out as hudimeta.read.corrupt=skip asks for: {error.message}"
    warnings.warn(text, HudiWarning, stacklevel=3)
    return text


def _former_names(names: Iterable[str], then: InternalSchema, now: InternalSchema) -> list[str]:
    """What columns of today were called in an older file; columns that no version knows keep their names."""
    sources = then.sources(now)
    return [former for name in names if (former := sources.get(name, name)) is not None]
