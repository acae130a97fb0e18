"""What each operation does to a table: rows in, files out.

    bulk_insert           new file groups only
    insert                small files first, then new file groups; keys are not looked up
    upsert                keys are looked up; rows that are there are merged into their file group, the others are inserted
    delete                keys are looked up; file groups that hold some are rewritten without them
    insert_overwrite      new file groups; all older ones of the partitions written to leave the table
    insert_overwrite_table   the same, for every partition

Where a global index finds a key in another partition than its row's, the key is deleted there and the row inserted into its own
(see `moves`). Where an index decides in which file group a key lives, new rows go there too, and an insert is an upsert.

Of a merge-on-read table rows for known keys go to a log file of their file group, and deletes too; its base file is rewritten
only where new rows are added to a small one.

A plan says which file groups are rewritten with which rows, and which are begun; its pieces are independent of each other and
run on an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.engine import Engine
from hudimeta.indexes.log_facts import LogFacts
from hudimeta.indexes.tagging import NewGroups, Tagging
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.keys import add_meta_columns
from hudimeta.slices.log_parts import DataPart, DeletePart, LogPart
from hudimeta.slices.merge_rules import KEY_COLUMN, MergeRules
from hudimeta.slices.ordering import field_type, ordering_columns
from hudimeta.slices.stored_rows import StoredRows
from hudimeta.table.file_names import BaseFileName, parse_base_file
from hudimeta.table.key_file import KeyFile
from hudimeta.table.positions import positions_by_number, positions_by_text
from hudimeta.types import META_COLUMNS
from hudimeta.write.base_files import BaseFileWriter
from hudimeta.write.batch import KeyedBatch
from hudimeta.write.log_files import Deletes, LogFileWriter
from hudimeta.write.moves import Leaving
from hudimeta.write.placement import FileSizing, SmallFile, place

__all__ = ["GroupRewrite", "NewGroup", "WritePlan", "execute_plan", "plan_homes", "plan_inserts", "plan_tagged"]


@dataclass
class GroupRewrite:
    """One file group to rewrite.

    Attributes:
        partition_path: Where.
        base: Its base file.
        changed: Positions in the batch of rows whose key the file has.
        inserted: Positions of rows to append.
        removed: Positions of rows whose key leaves the file for another partition.
        unsure: Positions of rows that belong here, be their key there or not.
    """

    partition_path: str
    base: KeyFile
    changed: np.ndarray[Any, Any]
    inserted: np.ndarray[Any, Any]
    removed: np.ndarray[Any, Any] = field(default_factory=lambda: _nothing())
    unsure: np.ndarray[Any, Any] = field(default_factory=lambda: _nothing())


@dataclass
class NewGroup:
    """One file group to begin, with the rows at some positions in the batch.

    Attributes:
        partition_path: Where.
        rows: Positions.
        file_id: Its id, None for any.
        as_log: Begin it with a log file.
    """

    partition_path: str
    rows: np.ndarray[Any, Any]
    file_id: str | None = None
    as_log: bool = False


@dataclass
class WritePlan:
    """What an operation writes; prints as a short list."""

    rewrites: list[GroupRewrite] = field(default_factory=list)
    new_groups: list[NewGroup] = field(default_factory=list)

    def __str__(self) -> str:
        changed = sum(len(r.changed) + len(r.unsure) for r in self.rewrites)
        inserted = sum(len(r.inserted) for r in self.rewrites) + sum(len(n.rows) for n in self.new_groups)
        return (
            f"rewrite {len(self.rewrites)} file groups, begin {len(self.new_groups)}: "
            f"{changed:,} rows for known keys, {inserted:,} new rows"
        )


def plan_inserts(
    batch: KeyedBatch, small: Mapping[str, Sequence[KeyFile]], sizing: FileSizing, rows: np.ndarray[Any, Any] | None = None
) -> WritePlan:
    """Place new rows.

    Args:
        batch: All rows.
        small: Base files by partition that may receive rows; {} to begin new file groups only.
        sizing: Sizes.
        rows: Positions of the new rows; None for all that are no deletes.
    """
    plan = WritePlan()
    # A row that asks for the deletion of its key is never stored.
    wanted = np.flatnonzero(~batch.deleted) if rows is None else rows
    for partition, at in positions_by_text(batch.partitions.take(pa.array(wanted))).items():
        # A slice with log files is left alone: its base file will be rewritten by a compaction anyway.
        files = {f.file_id: f for f in small.get(partition, ()) if not f.logs and not f.busy}
        for placement in place(wanted[at], [SmallFile(f.file_id, f.size) for f in files.values()], sizing):
            if placement.file_id is None:
                plan.new_groups.append(NewGroup(partition, placement.rows))
            else:
                plan.rewrites.append(GroupRewrite(partition, files[placement.file_id], _nothing(), placement.rows))
    return plan


def _nothing() -> np.ndarray[Any, Any]:
    return np.zeros(0, dtype=np.int64)


def plan_tagged(
    batch: KeyedBatch,
    tagging: Tagging,
    files: Mapping[str, Sequence[KeyFile]],
    sizing: FileSizing,
    *,
    insert_rest: bool,
    leaving: Leaving | None = None,
) -> WritePlan:
    """Plan an upsert or a delete.

    Args:
        batch: All rows.
        tagging: Where their keys are.
        files: Base files of the latest slices by partition, for placement.
        sizing: Sizes.
        insert_rest: True for an upsert: rows whose key is not there are inserted, unless they are deletes.
        leaving: Keys that leave file groups of other partitions.
    """
    untagged = np.ones(len(batch), dtype=bool)
    untagged[tagging.row] = False
    fresh = np.flatnonzero(untagged & ~batch.deleted) if insert_rest else _nothing()
    new_groups = tagging.new_groups
    plan = plan_inserts(batch, files, sizing, fresh) if new_groups is None else plan_homes(batch, new_groups, fresh)
    by_group = {(r.partition_path, r.base.file_id): r for r in plan.rewrites}

    def rewrite_of(file: KeyFile) -> GroupRewrite:
        known = by_group.get((file.partition_path, file.file_id))
        if known is None:
            known = GroupRewrite(file.partition_path, file, _nothing(), _nothing())
            by_group[file.partition_path, file.file_id] = known
            plan.rewrites.append(known)
        return known

    for number, at in positions_by_number(tagging.file):
        rewrite = rewrite_of(tagging.files[number])
        if tagging.exact or not insert_rest:
            rewrite.changed = tagging.row[at]
        else:
            rewrite.unsure = tagging.row[at]
    if leaving is not None:
        for number, at in positions_by_number(leaving.file):
            rewrite_of(tagging.files[number]).removed = leaving.row[at]
    return plan


def plan_homes(batch: KeyedBatch, new_groups: NewGroups, rows: np.ndarray[Any, Any] | None = None) -> WritePlan:
    """Begin the file groups that an index asks for, with the rows at some positions; None for all that are no deletes."""
    wanted = ~batch.deleted
    if rows is not None:
        wanted = np.zeros(len(batch), dtype=bool)
        wanted[rows] = True
    kept = wanted[new_groups.row]
    begun = new_groups.row[kept]
    return WritePlan(
        new_groups=[
            NewGroup(new_groups.partition_paths[number], begun[at], new_groups.file_ids[number], new_groups.as_logs)
            for number, at in positions_by_number(new_groups.number[kept])
        ]
    )


@dataclass(frozen=True)
class _Work:
    """One piece of a plan with its task number, which makes write tokens and sequence numbers unique."""

    number: int
    piece: GroupRewrite | NewGroup


def execute_plan(
    plan: WritePlan,
    batch: KeyedBatch,
    writer: BaseFileWriter,
    read_base: Callable[[str, str, int], StoredRows],
    rules: MergeRules,
    instant: str,
    engine: Engine,
    *,
    logs: LogFileWriter | None = None,
    ordering_of: OrderingReader | None = None,
    log_facts: LogFacts | None = None,
    deletes_only: bool = False,
    only: frozenset[str] | None = None,
    first_task: int = 0,
    attempt: int = 0,
) -> list[WrittenFile]:
    """Write all files of a plan.

    Args:
        plan: What to write.
        batch: The rows that it points into.
        writer: Writes files.
        read_base: Reads all rows of a base file in the writer's schema: partition path, name, size -> `StoredRows`.
        rules: Which version of a row wins.
        instant: Of the write.
        engine: Where it runs.
        logs: Writes log files; None for a copy-on-write table.
        ordering_of: Reads the ordering values that some keys have in a file slice; needed with `logs`.
        log_facts: Gathers what indexes want to know of log files; None where they want nothing.
        deletes_only: The batch names keys to delete, whatever their ordering value.
        only: Columns that log files store of the rows; None for all.
        first_task: Number of the first task, for write tokens.
        attempt: Of the calling task, for write tokens.
    """

    def run(work: _Work) -> list[WrittenFile]:
        piece = work.piece
        if isinstance(piece, NewGroup):
            part = batch.take(piece.rows)
            if piece.as_log and piece.file_id is not None and logs is not None:
                return begin_log(logs, log_facts, piece.partition_path, piece.file_id, part, instant, work.number, attempt)
            keys = _keys_of(part, instant, work.number)
            place = piece.partition_path, part.rows, keys
            return [writer.write_new(*place, task=work.number, attempt=attempt, file_id=piece.file_id)]
        gone = batch.take(piece.removed)
        if logs is not None and ordering_of is not None and not len(piece.inserted):
            part = batch.take(np.concatenate([piece.changed, piece.unsure]))
            if deletes_only:
                part, gone = part.take(_nothing()), part
            token = work.number, attempt
            if not _deletes_doubled(piece.base, gone):
                return append_to_log(logs, ordering_of, log_facts, piece.base, part, gone, instant, *token, rules, only)
        stored = read_base(piece.partition_path, piece.base.name, piece.base.size)
        base = stored.rows
        name = parse_base_file(piece.base.name)
        if name is None:
            raise ValueError(piece.base.name)
        there, absent = _settled_by_base(batch, piece.unsure, base)
        part = batch.take(np.concatenate([piece.changed, there]))
        if deletes_only:
            part, gone = part.take(_nothing()), part
        changes = _changes(part, gone, name, instant, work.number, base.schema, rules)
        inserts = _with_meta(batch.take(np.concatenate([piece.inserted, absent])), instant, work.number, name, len(part))
        number = {"task": work.number, "attempt": attempt}
        return [writer.rewrite(piece.partition_path, name, stored, changes, inserts, rules, **number)]

    pieces: list[GroupRewrite | NewGroup] = [*plan.rewrites, *plan.new_groups]
    written = engine.map(run, [_Work(first_task + i, piece) for i, piece in enumerate(pieces)])
    return [file for files in written for file in files]


def _deletes_doubled(base: KeyFile, gone: KeyedBatch) -> bool:
    """Whether the base file must be written anew to delete rows: it holds keys more than once, all of whose rows shall go.

    A delete in a log meets the first of these rows alone, for Hudi's readers and so for ours. Where there are log files
    already, or a compaction is planned, it stays with the log.
    """
    if gone.keys is None or not base.name or base.logs or base.busy:
        return False
    return len(gone.keys.unique()) < len(gone)


OrderingReader = Callable[[KeyFile, pa.StringArray], "tuple[pa.Array, ...]"]
"""Reads the ordering values of keys in a file slice, one array a field in the order of the keys; () without event time."""


def append_to_log(
    logs: LogFileWriter,
    ordering_of: OrderingReader,
    log_facts: LogFacts | None,
    base: KeyFile,
    part: KeyedBatch,
    gone: KeyedBatch,
    instant: str,
    task: int,
    attempt: int,
    rules: MergeRules,
    only: frozenset[str] | None = None,
) -> list[WrittenFile]:
    """Write what a batch has for one file group to its log: rows of `part`, deletes of the keys of `gone`.

    `only` are the columns that are stored of the rows, besides meta columns; None stores whole rows.
    """
    fresh, marked = _split_deletes(part)
    deletes = Deletes(pa.array([], pa.string()))
    if len(gone) and gone.keys is not None:
        deletes = Deletes(gone.keys, ordering_of(base, gone.keys))
    if marked is not None and marked.keys is not None:
        # As Hudi's writers do: readers need not know what marks a row as a delete.
        fields = rules.ordering_fields if rules.by_event_time else ()
        columns = tuple(column.combine_chunks() for column in ordering_columns(marked.rows, fields))
        deletes = deletes.and_of(Deletes(marked.keys, columns))
    rows = _with_meta(fresh, instant, task, base.file_id, 0)
    changes = None
    if log_facts is not None:
        laid_over = rows if marked is None else _with_meta(part, instant, task, base.file_id, 0)
        changes = log_facts.of(base, laid_over, part.deleted, gone.keys)
    updated = rows.num_rows
    if only is not None:
        rows = rows.select([name for name in rows.column_names if name in only or name in META_COLUMNS])
    return logs.append(
        base.partition_path,
        base.file_id,
        rows,
        deletes,
        updated=updated,
        task=task,
        attempt=attempt,
        changes=changes,
        below=base,
    )


def _split_deletes(part: KeyedBatch) -> tuple[KeyedBatch, KeyedBatch | None]:
    """Rows to store and deletes to store as such; deletes stay among the rows where a key comes twice and order decides."""
    if not part.deleted.any() or part.keys is None or len(part.keys.unique()) < len(part):
        return part, None
    return part.take(np.flatnonzero(~part.deleted)), part.take(np.flatnonzero(part.deleted))


def begin_log(
    logs: LogFileWriter,
    log_facts: LogFacts | None,
    partition_path: str,
    file_id: str,
    part: KeyedBatch,
    instant: str,
    task: int,
    attempt: int,
) -> list[WrittenFile]:
    """Begin a file group with a log file."""
    rows = _with_meta(part, instant, task, file_id, 0)
    nothing = Deletes(pa.array([], pa.string()))
    changes = None if log_facts is None else log_facts.of_new_group(rows)
    return logs.append(
        partition_path, file_id, rows, nothing, updated=0, task=task, attempt=attempt, begins=True, changes=changes
    )


def _settled_by_base(
    batch: KeyedBatch, unsure: np.ndarray[Any, Any], base: pa.Table
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Of some rows those whose key the base file has, and those to insert."""
    if not len(unsure) or batch.keys is None:
        return unsure, _nothing()
    own = batch.keys.take(pa.array(unsure))
    there = pc.is_in(own, value_set=base[KEY_COLUMN].combine_chunks().cast(pa.string())).to_numpy(zero_copy_only=False)
    return unsure[there], unsure[~there & ~batch.deleted[unsure]]


def _keys_of(part: KeyedBatch, instant: str, task: int, first: int = 0) -> pa.StringArray:
    if part.keys is not None:
        return part.keys
    from hudimeta.keys import generated_keys

    return generated_keys(len(part), instant, task, first)


def _with_meta(part: KeyedBatch, instant: str, task: int, name: BaseFileName | str, first: int) -> pa.Table:
    return add_meta_columns(
        part.rows,
        instant=instant,
        task=task,
        record_keys=_keys_of(part, instant, task, first),
        partition_path=part.partitions,
        file_name=str(name),
        first=first,
    )


def _changes(
    part: KeyedBatch, gone: KeyedBatch, name: BaseFileName, instant: str, task: int, schema: pa.Schema, rules: MergeRules
) -> Sequence[LogPart]:
    """What is laid over a base file of some schema: rows of `part`, and deletes of `gone` that win whatever their age."""
    changes: list[LogPart] = []
    if len(part):
        rows = _with_meta(part, instant, task, name, 0)
        changes.append(DataPart(rows, part.deleted, np.zeros(len(part), dtype=bool)))
    if len(gone) and gone.keys is not None:
        fields = rules.ordering_fields if rules.by_event_time else ()
        kinds = [field_type(schema, field) or pa.int32() for field in fields]
        ordering = tuple(pa.chunked_array([pa.nulls(len(gone), kind)]) for kind in kinds)
        changes.append(DeletePart(pa.chunked_array([gone.keys]), np.ones(len(gone), dtype=bool), ordering))
    return changes
