"""Carrying out a plan: each piece writes the base file or the log files of one file group, where the engine runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.commit.coordinator import OpenWrite
from hudimeta.commit.early_conflicts import EarlyLook
from hudimeta.commit.session import WriteSession
from hudimeta.engine import Engine
from hudimeta.errors import CommitError
from hudimeta.formats.plain_arrays import array_of, numpy_of, scalar_of, single_array
from hudimeta.indexes.log_facts import LogFacts
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.keys import add_meta_columns
from hudimeta.schema import with_meta_columns
from hudimeta.slices.kept_groups import Touched
from hudimeta.slices.log_parts import DataPart, DeletePart, LogPart, natural_rows
from hudimeta.slices.merge_rules import KEY_COLUMN, MergeRules
from hudimeta.slices.ordering import field_type, ordering_columns
from hudimeta.slices.stored_rows import StoredRowsReader, with_codes
from hudimeta.storage.at_once import waiting_engine
from hudimeta.table.file_names import WriteToken, new_file_id, parse_base_file
from hudimeta.table.key_file import KeyFile, KeyReader
from hudimeta.types import META_COLUMNS, FileGroupId, Operation
from hudimeta.write.base_files import BaseFileWriter
from hudimeta.write.batch import KeyedBatch
from hudimeta.write.doubled_keys import doubled_keys, is_of_known_rows, refuse_to_choose
from hudimeta.write.log_files import Deletes, LogContent, LogFileWriter
from hudimeta.write.moves import OrderingReader
from hudimeta.write.operations import GroupRewrite, NewGroup, WritePlan
from hudimeta.write.table_files import TableFiles

__all__ = ["FileWriters", "WrittenPieces", "execute_pieces", "execute_plan"]


@dataclass(frozen=True)
class FileWriters:
    """What the files of one write are written with.

    Attributes:
        instant: Of the write.
        rules: Which version of a row wins.
        base_files: Writes base files.
        read_base: Reads the rows of a base file in the writer's schema.
        logs: Writes log files; None for a copy-on-write table.
        ordering_of: Reads the ordering values that some keys have in a file slice.
        keys_of: Reads the keys of a base file.
        log_facts: Gathers what indexes want to know of log files; None where they want nothing.
        deletes_only: The batch names keys to delete, whatever their ordering value.
        only: Columns that log files store of the rows besides meta columns; None for all.
        early: Looks for other writers before a file is written; None for no look.
        codable: Columns of new base files that may be codes; see `with_codes`.
        may_keep: Row groups of base files that a write does not touch may be left out, so that they stay as they are.
    """

    instant: str
    rules: MergeRules
    base_files: BaseFileWriter
    read_base: StoredRowsReader
    logs: LogFileWriter | None
    ordering_of: OrderingReader
    keys_of: KeyReader
    log_facts: LogFacts | None
    deletes_only: bool = False
    only: frozenset[str] | None = None
    early: EarlyLook | None = None
    codable: frozenset[str] = frozenset()
    may_keep: bool = False

    @classmethod
    def of(
        cls, session: WriteSession, table: TableFiles, write: OpenWrite, schema: pa.Schema, only: frozenset[str] | None = None
    ) -> FileWriters:
        """The writers of one write.

        Args:
            session: The table.
            table: The table as the write sees it.
            write: Its instant and operation.
            schema: Data columns after it.
            only: See above.
        """
        early = session.concurrency.early
        return cls(
            write.instant,
            session.rules,
            table.writer(write.instant, schema),
            table.read_base(with_meta_columns(schema)),
            table.log_writer(write.instant, schema),
            table.ordering_reader(),
            table.key_reader(alive=False),
            table.log_facts(),
            write.operation is Operation.DELETE,
            only,
            None if early is None else EarlyLook(session.storage, session.properties, early, write),
            table.codable(schema),
            # A merger of the user's may give a row another key, and of expressions no footer tells.
            session.rules.merger is None and not table.facts_wanted().expressions,
        )


@dataclass(frozen=True)
class WrittenPieces:
    """The pieces of a plan with the files of each, and what it takes to write one of them again.

    Attributes:
        pieces: What was written.
        files: The files of each piece.
        batch: The rows that the pieces point into.
        writers: Of the write.
        engine: Where it runs.
        next: Token of the next piece.
    """

    pieces: Sequence[GroupRewrite | NewGroup]
    files: Sequence[Sequence[WrittenFile]]
    batch: KeyedBatch
    writers: FileWriters
    engine: Engine
    next: WriteToken

    @property
    def all_files(self) -> list[WrittenFile]:
        """The files of all pieces."""
        return [file for files in self.files for file in files]

    def again(self, others: Mapping[int, GroupRewrite | NewGroup]) -> WrittenPieces:
        """Write other pieces in the place of some; the files of those are left to the caller.

        Args:
            others: By the position of the piece that they stand for.
        """
        written = execute_pieces(list(others.values()), self.batch, self.writers, self.engine, self.next)
        pieces, files = list(self.pieces), list(self.files)
        for at, piece, made in zip(others, written.pieces, written.files, strict=True):
            pieces[at], files[at] = piece, made
        return replace(self, pieces=pieces, files=files, next=written.next)


def execute_plan(
    plan: WritePlan, batch: KeyedBatch, writers: FileWriters, engine: Engine, first: WriteToken
) -> list[WrittenFile]:
    """Write all files of a plan. See `execute_pieces`."""
    return execute_pieces(plan.pieces, batch, writers, engine, first).all_files


def execute_pieces(
    pieces: Sequence[GroupRewrite | NewGroup], batch: KeyedBatch, writers: FileWriters, engine: Engine, first: WriteToken
) -> WrittenPieces:
    """Write the files of some pieces.

    Args:
        pieces: What to write.
        batch: The rows that they point into.
        writers: Of the write.
        engine: Where it runs.
        first: Token of the first piece; those after it count on.
    """
    work = [_Work(piece, replace(first, task=first.task + number)) for number, piece in enumerate(pieces)]
    begins_files = all(isinstance(piece, NewGroup) and not piece.as_log for piece in pieces)
    written = replace(batch, rows=with_codes(batch.rows, writers.codable)) if begins_files else batch
    files = _engine_for(pieces, batch, writers, engine).map(partial(_write_piece, writers, written), work)
    return WrittenPieces(pieces, files, batch, writers, engine, replace(first, task=first.task + len(pieces)))


def _engine_for(pieces: Sequence[GroupRewrite | NewGroup], batch: KeyedBatch, writers: FileWriters, engine: Engine) -> Engine:
    """Far away each piece waits for some requests, so that more of them are written than there are cores, if they are small."""
    rewritten = (p.base.size for p in pieces if isinstance(p, GroupRewrite) and not (writers.logs is not None and _as_log(p)))
    largest = max(rewritten, default=0) + batch.rows.nbytes // max(1, len(pieces))
    return waiting_engine(engine, writers.read_base.storage, largest)


def _as_log(piece: GroupRewrite) -> bool:
    """Where there are logs, whether the piece goes there as long as its keys are known to be single."""
    return piece.as_log or not len(piece.inserted)


@dataclass(frozen=True)
class _Work:
    """One piece of a plan with its token, which makes file names and sequence numbers unique."""

    piece: GroupRewrite | NewGroup
    token: WriteToken


def _write_piece(writers: FileWriters, batch: KeyedBatch, work: _Work) -> list[WrittenFile]:
    piece, token = work.piece, work.token
    file_id = piece.file_id if isinstance(piece, NewGroup) else piece.base.file_id
    if writers.early is not None and file_id is not None:
        writers.early.check(FileGroupId(piece.partition_path, file_id))
    if isinstance(piece, NewGroup):
        return _begin_group(writers, batch.take(piece.rows), piece, token)
    gone = batch.take(piece.removed)
    if writers.logs is not None and _as_log(piece):
        part = batch.take(np.concatenate([piece.changed, piece.unresolved]))
        if writers.deletes_only:
            part, gone = part.take(_nothing()), part
        if not (_is_doubled(piece.base, gone) or (doubled_keys(part).any() and _is_doubled(piece.base, part))):
            if is_of_known_rows(part, gone) and piece.base.name:
                refuse_to_choose(piece.base, part, gone, writers.keys_of(replace(piece.base, logs=(), log_sizes=()), None))
            return _append_to_log(writers, writers.logs, piece.base, _Change(part, gone, batch.take(piece.inserted)), token)
    return [_rewrite(writers, batch, piece, gone, token)]


def _rewrite(writers: FileWriters, batch: KeyedBatch, piece: GroupRewrite, gone: KeyedBatch, token: WriteToken) -> WrittenFile:
    touched = _touched(batch, piece, every=not writers.may_keep)
    stored = writers.read_base(piece.partition_path, piece.base.name, piece.base.size, touched)
    name = parse_base_file(piece.base.name)
    if name is None:
        raise ValueError(piece.base.name)
    there, absent = _settled_by_base(batch, piece.unresolved, stored.rows)
    known = np.concatenate([piece.changed, there])
    part, new = batch.take(known), np.concatenate([piece.inserted, absent])
    if writers.deletes_only:
        part, gone = part.take(_nothing()), part
    if is_of_known_rows(part, gone):
        refuse_to_choose(piece.base, part, gone, single_array(stored.rows[KEY_COLUMN]).cast(pa.string()))
    rows = _Rows(writers.instant, token.task, str(name))
    doubled = doubled_keys(part)
    if not doubled.any():
        changes = _changes(part, gone, rows, stored.rows.schema, writers.rules)
        return writers.base_files.rewrite(
            piece.partition_path, name, stored, changes, rows.with_meta(batch.take(new), first=len(part)), token
        )
    # All rows of these keys give way to those that they become, since a key does not say which of them a row is of.
    others, several = part.take(np.flatnonzero(~doubled)), part.take(np.flatnonzero(doubled))
    changes = [
        *_changes(others, gone, rows, stored.rows.schema, writers.rules),
        *_changes(part.take(_nothing()), several, rows, stored.rows.schema, writers.rules),
    ]
    inserts = rows.with_meta(batch.take(np.concatenate([new, known[doubled]])), first=len(others))
    written = writers.base_files.rewrite(piece.partition_path, name, stored, changes, inserts, token)
    count = len(several)
    return replace(written, inserted=written.inserted - count, deleted=written.deleted - count, updated=written.updated + count)


def _touched(batch: KeyedBatch, piece: GroupRewrite, *, every: bool) -> Touched:
    """What a piece has for its base file; rows without keys may be any."""
    if batch.keys is None:
        return Touched(array_of([], pa.string()), len(piece.inserted), every or bool(len(piece.known)))
    return Touched(batch.keys.take(array_of(piece.known)), len(piece.inserted) + len(piece.unresolved), every)


def _begin_group(writers: FileWriters, part: KeyedBatch, group: NewGroup, token: WriteToken) -> list[WrittenFile]:
    """Begin a file group with a base file, or where an index or an option asks for it with a log file."""
    if group.as_log and writers.logs is not None:
        file_id = group.file_id or new_file_id()
        rows = _Rows(writers.instant, token.task, file_id).with_meta(part)
        facts = None if writers.log_facts is None else writers.log_facts.of_new_group(rows)
        return writers.logs.append(FileGroupId(group.partition_path, file_id), LogContent(rows, facts=facts), token)
    keys = _keys_of(part, writers.instant, token.task)
    return [writers.base_files.write_new(group.partition_path, part.rows, keys, token, group.file_id)]


@dataclass(frozen=True)
class _Change:
    """What a batch has for one file group: rows of `part`, deletes of the keys of `gone`, and new rows."""

    part: KeyedBatch
    gone: KeyedBatch
    new: KeyedBatch


def _is_doubled(base: KeyFile, gone: KeyedBatch) -> bool:
    """Whether the base file must be written anew: it holds keys more than once, all of whose rows shall go, or become others.

    What a log holds of a key meets the first of these rows alone, for Hudi's readers and so for ours.

    Raises:
        CommitError: There are log files already, or a compaction is planned, which a new base file would pass over.
    """
    if gone.keys is None or not base.name or len(gone.keys.unique()) == len(gone):
        return False
    if base.logs or base.busy:
        counted = gone.keys.value_counts()
        twice = pc.filter(counted.field("values"), pc.greater(counted.field("counts"), scalar_of(1)))
        raise CommitError(
            f"rows of key {twice[0].as_py()!r} shall be {'deleted' if gone.deleted.all() else 'changed'}, which come more than "
            f"once in '{base.partition_path}', file group {base.file_id}: its log files would meet the first of them only",
            "No row was changed; compact the table first (CALL run_compaction, or services.compact()), then say it again.",
        )
    return True


def _append_to_log(
    writers: FileWriters, logs: LogFileWriter, base: KeyFile, change: _Change, token: WriteToken
) -> list[WrittenFile]:
    """Write what a batch has for one file group to its log."""
    part, gone = change.part, change.gone
    fresh, marked = _split_deletes(part)
    deletes = Deletes(array_of([], pa.string()))
    if len(gone) and gone.keys is not None:
        deletes = Deletes(gone.keys, writers.ordering_of(base, gone.keys))
    if marked is not None and marked.keys is not None:
        # As Hudi's writers do: readers need not know what marks a row as a delete.
        deletes = deletes.and_of(Deletes(marked.keys, _order_of_deletes(writers, base, marked, marked.keys)))
    meta = _Rows(writers.instant, token.task, base.file_id)
    rows, updated = meta.with_meta(fresh, first=len(change.new)), len(fresh)
    facts = None
    new = meta.with_meta(change.new)
    if writers.log_facts is not None:
        laid_over = pa.concat_tables([new, rows if marked is None else meta.with_meta(part)])
        deleted = np.concatenate([change.new.deleted, part.deleted])
        facts = writers.log_facts.of(base, laid_over, deleted, gone.keys)
    if len(change.new):
        rows = pa.concat_tables([new, rows])
    elif writers.only is not None and not (writers.rules.by_event_time and logs.may_have_late(base, fresh.of_base_keys)):
        rows = rows.select([name for name in rows.column_names if name in writers.only or name in META_COLUMNS])
    group = FileGroupId(base.partition_path, base.file_id)
    return logs.append(group, LogContent(rows, deletes, updated, facts), token, below=base)


def _order_of_deletes(writers: FileWriters, base: KeyFile, marked: KeyedBatch, deleted: pa.StringArray) -> tuple[pa.Array, ...]:
    """Ordering values that rows which delete their keys state in a log: those of the stored rows where order has no say.

    So readers that compare them nevertheless find that the delete wins, and that a row of the same key wins which comes later.
    """
    rules = writers.rules
    columns = tuple(single_array(column) for column in ordering_columns(marked.rows, rules.delete_fields))
    if not rules.deletes_always:
        return columns
    stored = writers.ordering_of(base, deleted)
    return tuple(pc.coalesce(old.cast(own.type), own) for old, own in zip(stored, columns, strict=True))


def _split_deletes(part: KeyedBatch) -> tuple[KeyedBatch, KeyedBatch | None]:
    """Rows to store and deletes to store as such; deletes stay among the rows where a key comes twice and order decides."""
    if not part.deleted.any() or part.keys is None or len(part.keys.unique()) < len(part):
        return part, None
    return part.take(np.flatnonzero(~part.deleted)), part.take(np.flatnonzero(part.deleted))


def _nothing() -> np.ndarray[Any, Any]:
    return np.zeros(0, dtype=np.int64)


def _settled_by_base(
    batch: KeyedBatch, unresolved: np.ndarray[Any, Any], base: pa.Table
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Of some rows those whose key the base file has, and those to insert."""
    if not len(unresolved) or batch.keys is None:
        return unresolved, _nothing()
    own = batch.keys.take(array_of(unresolved))
    there = numpy_of(pc.is_in(own, value_set=single_array(base[KEY_COLUMN]).cast(pa.string())))
    return unresolved[there], unresolved[~there & ~batch.deleted[unresolved]]


def _keys_of(part: KeyedBatch, instant: str, task: int, first: int = 0) -> pa.StringArray:
    if part.keys is not None:
        return part.keys
    from hudimeta.keys import generated_keys

    return generated_keys(len(part), instant, task, first)


@dataclass(frozen=True)
class _Rows:
    """What the meta columns of the rows of one file say. Attributes: name: Of the file; in logs the bare file id."""

    instant: str
    task: int
    name: str

    def with_meta(self, part: KeyedBatch, first: int = 0) -> pa.Table:
        """Rows with their meta columns; `first` is the sequence number of the first."""
        return add_meta_columns(
            part.rows,
            instant=self.instant,
            task=self.task,
            record_keys=_keys_of(part, self.instant, self.task, first),
            partition_path=part.partitions,
            file_name=self.name,
            first=first,
        )


def _changes(part: KeyedBatch, gone: KeyedBatch, meta: _Rows, schema: pa.Schema, rules: MergeRules) -> Sequence[LogPart]:
    """What is laid over a base file of some schema: rows of `part`, and deletes of `gone` that win whatever their age."""
    changes: list[LogPart] = []
    if len(part):
        changes.append(DataPart(meta.with_meta(part), part.deleted, natural_rows(part.rows, part.deleted, rules)))
    if len(gone) and gone.keys is not None:
        kinds = [field_type(schema, field) or pa.int32() for field in rules.delete_fields]
        ordering = tuple(pa.chunked_array([pa.nulls(len(gone), kind)]) for kind in kinds)
        changes.append(DeletePart(pa.chunked_array([gone.keys]), np.ones(len(gone), dtype=bool), ordering))
    return changes
