"""What each operation does to a table: rows in, files out.

    bulk_insert           new file groups only
    insert                small files first, then new file groups; keys are not looked up
    upsert                keys are looked up; rows that are there are merged into their file group, the others are inserted
    delete                keys are looked up; file groups that hold some are rewritten without them
    insert_overwrite      new file groups; all older ones of the partitions written to leave the table
    insert_overwrite_table   the same, for every partition

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

from hudimeta.engine import Engine
from hudimeta.index.key_file import KeyFile
from hudimeta.index.tagging import Tagging
from hudimeta.keys import add_meta_columns
from hudimeta.read.log_parts import DataPart, DeletePart, LogPart
from hudimeta.read.merge_rules import MergeRules
from hudimeta.read.ordering import field_type, ordering_columns
from hudimeta.table.file_names import BaseFileName, parse_base_file
from hudimeta.write.base_files import BaseFileWriter
from hudimeta.write.batch import KeyedBatch
from hudimeta.write.log_files import Deletes, LogFileWriter
from hudimeta.write.placement import FileSizing, SmallFile, place
from hudimeta.write.written_file import WrittenFile

__all__ = ["GroupRewrite", "NewGroup", "WritePlan", "execute_plan", "plan_inserts", "plan_tagged"]


@dataclass
class GroupRewrite:
    """One file group to rewrite.

    Attributes:
        partition_path: Where. base: Its base file.
        changed: Positions in the batch of rows whose key the file has. inserted: Positions of rows to append.
    """

    partition_path: str
    base: KeyFile
    changed: np.ndarray[Any, Any]
    inserted: np.ndarray[Any, Any]


@dataclass
class NewGroup:
    """One file group to begin, with the rows at some positions in the batch."""

    partition_path: str
    rows: np.ndarray[Any, Any]


@dataclass
class WritePlan:
    """What an operation writes; prints as a short list."""

    rewrites: list[GroupRewrite] = field(default_factory=list)
    new_groups: list[NewGroup] = field(default_factory=list)

    def __str__(self) -> str:
        changed = sum(len(r.changed) for r in self.rewrites)
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
        batch: All rows. small: Base files by partition that may receive rows; {} to begin new file groups only.
        sizing: Sizes. rows: Positions of the new rows; None for all that are no deletes.
    """
    plan = WritePlan()
    # A row that asks for the deletion of its key is never stored.
    wanted = np.flatnonzero(~batch.deleted) if rows is None else rows
    for partition, own in _by_partition(batch.partitions, wanted).items():
        # A slice with log files is left alone: its base file will be rewritten by a compaction anyway.
        files = {f.file_id: f for f in small.get(partition, ()) if not f.logs and not f.busy}
        for placement in place(own, [SmallFile(f.file_id, f.size) for f in files.values()], sizing):
            if placement.file_id is None:
                plan.new_groups.append(NewGroup(partition, placement.rows))
            else:
                plan.rewrites.append(GroupRewrite(partition, files[placement.file_id], _nothing(), placement.rows))
    return plan


def _nothing() -> np.ndarray[Any, Any]:
    return np.zeros(0, dtype=np.int64)


def plan_tagged(
    batch: KeyedBatch, tagging: Tagging, files: Mapping[str, Sequence[KeyFile]], sizing: FileSizing, *, insert_rest: bool
) -> WritePlan:
    """Plan an upsert or a delete.

    Args:
        batch: All rows. tagging: Where their keys are. files: Base files of the latest slices by partition, for placement.
        sizing: Sizes. insert_rest: True for an upsert: rows whose key is not there are inserted, unless they are deletes.
    """
    untagged = np.ones(len(batch), dtype=bool)
    untagged[tagging.row] = False
    fresh = np.flatnonzero(untagged & ~batch.deleted) if insert_rest else _nothing()
    plan = plan_inserts(batch, files, sizing, fresh)
    by_group = {(r.partition_path, r.base.file_id): r for r in plan.rewrites}
    order = np.argsort(tagging.file, kind="stable")
    numbers, starts = np.unique(tagging.file[order], return_index=True)
    shares = np.split(tagging.row[order], starts[1:]) if len(numbers) else []  # split never gives no share at all
    for number, rows in zip(numbers, shares, strict=True):
        file = tagging.files[int(number)]
        known = by_group.get((file.partition_path, file.file_id))
        if known is None:
            plan.rewrites.append(GroupRewrite(file.partition_path, file, rows, _nothing()))
        else:
            known.changed = rows
    return plan


def _by_partition(partitions: pa.StringArray, rows: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    coded = partitions.take(pa.array(rows)).dictionary_encode()
    codes = coded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    borders = np.searchsorted(codes[order], np.arange(len(coded.dictionary) + 1))
    return {p: rows[order[borders[i] : borders[i + 1]]] for i, p in enumerate(coded.dictionary.to_pylist())}


@dataclass(frozen=True)
class _Work:
    """One piece of a plan with its task number, which makes write tokens and sequence numbers unique."""

    number: int
    piece: GroupRewrite | NewGroup


def execute_plan(
    plan: WritePlan,
    batch: KeyedBatch,
    writer: BaseFileWriter,
    read_base: Any,
    rules: MergeRules,
    instant: str,
    engine: Engine,
    *,
    logs: LogFileWriter | None = None,
    ordering_of: OrderingReader | None = None,
    deletes_only: bool = False,
    first_task: int = 0,
    attempt: int = 0,
) -> list[WrittenFile]:
    """Write all files of a plan.

    Args:
        plan: What to write. batch: The rows that it points into. writer: Writes files.
        read_base: Reads all rows of a base file in the writer's schema: (partition path, file name) -> table.
        rules: Which version of a row wins. instant: Of the write. engine: Where it runs.
        logs: Writes log files; None for a copy-on-write table.
        ordering_of: Reads the ordering values that some keys have in a file slice; needed with `logs`.
        deletes_only: The batch names keys to delete, whatever their ordering value.
        first_task, attempt: Of the calling task, for write tokens.
    """

    def run(work: _Work) -> WrittenFile:
        piece = work.piece
        if isinstance(piece, NewGroup):
            part = batch.take(piece.rows)
            keys = _keys_of(part, instant, work.number)
            return writer.write_new(piece.partition_path, part.rows, keys, task=work.number, attempt=attempt)
        if logs is not None and ordering_of is not None and not len(piece.inserted):
            part = batch.take(piece.changed)
            return append_to_log(logs, ordering_of, piece.base, part, instant, work.number, attempt, deletes_only, rules)
        base = read_base(piece.partition_path, piece.base.name)
        name = parse_base_file(piece.base.name)
        if name is None:
            raise ValueError(piece.base.name)
        changes = _changes(batch.take(piece.changed), name, instant, work.number, base.schema if deletes_only else None, rules)
        fresh = batch.take(piece.inserted)
        inserts = _with_meta(fresh, instant, work.number, name, len(piece.changed))
        return writer.rewrite(piece.partition_path, name, base, changes, inserts, rules, task=work.number, attempt=attempt)

    pieces: list[GroupRewrite | NewGroup] = [*plan.rewrites, *plan.new_groups]
    return engine.map(run, [_Work(first_task + i, piece) for i, piece in enumerate(pieces)])


OrderingReader = Callable[[KeyFile, pa.StringArray], "tuple[pa.Array, ...]"]
"""Reads the ordering values of keys in a file slice, one array a field in the order of the keys; () without event time."""


def append_to_log(
    logs: LogFileWriter,
    ordering_of: OrderingReader,
    base: KeyFile,
    part: KeyedBatch,
    instant: str,
    task: int,
    attempt: int,
    deletes_only: bool,
    rules: MergeRules,
) -> WrittenFile:
    """Write what a batch has for one file group to a log file of it."""
    if deletes_only and part.keys is not None:
        nothing = _with_meta(part.take(_nothing()), instant, task, base.file_id, 0)
        deletes = Deletes(part.keys, ordering_of(base, part.keys))
        return logs.append(base.partition_path, base.file_id, nothing, deletes, updated=0, task=task, attempt=attempt)
    fresh, gone = _split_deletes(part)
    rows = _with_meta(fresh, instant, task, base.file_id, 0)
    deletes = Deletes(pa.array([], pa.string()))
    if gone is not None and gone.keys is not None:
        # As Hudi's writers do: readers need not know what marks a row as a delete.
        fields = rules.ordering_fields if rules.by_event_time else ()
        columns = ordering_columns(gone.rows, fields)
        deletes = Deletes(gone.keys, tuple(column.combine_chunks() for column in columns))
    return logs.append(base.partition_path, base.file_id, rows, deletes, updated=rows.num_rows, task=task, attempt=attempt)


def _split_deletes(part: KeyedBatch) -> tuple[KeyedBatch, KeyedBatch | None]:
    """Rows to store and deletes to store as such; deletes stay among the rows where a key comes twice and order decides."""
    if not part.deleted.any() or part.keys is None or len(part.keys.unique()) < len(part):
        return part, None
    return part.take(np.flatnonzero(~part.deleted)), part.take(np.flatnonzero(part.deleted))


def _keys_of(part: KeyedBatch, instant: str, task: int, first: int = 0) -> pa.StringArray:
    if part.keys is not None:
        return part.keys
    from hudimeta.keys.record_key import generated_keys

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
    part: KeyedBatch, name: BaseFileName, instant: str, task: int, deletes_of: pa.Schema | None, rules: MergeRules
) -> Sequence[LogPart]:
    """What is laid over the base file: rows, or (with the schema of the file) deletes that win whatever their age."""
    if not len(part):
        return []
    if deletes_of is not None and part.keys is not None:
        fields = rules.ordering_fields if rules.by_event_time else ()
        kinds = [field_type(deletes_of, field) or pa.int32() for field in fields]
        ordering = tuple(pa.chunked_array([pa.nulls(len(part), kind)]) for kind in kinds)
        return [DeletePart(pa.chunked_array([part.keys]), np.ones(len(part), dtype=bool), ordering)]
    rows = _with_meta(part, instant, task, name, 0)
    return [DataPart(rows, part.deleted, np.zeros(len(part), dtype=bool))]
