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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hudimeta.formats.plain_arrays import array_of
from hudimeta.indexes.tagging import NewGroups, Tagging
from hudimeta.table.key_file import KeyFile
from hudimeta.table.positions import positions_by_number, positions_by_text
from hudimeta.types import FileGroupId
from hudimeta.write.batch import KeyedBatch
from hudimeta.write.moves import MovedKeys
from hudimeta.write.placement import FileSizing, SmallFile, place

__all__ = ["GroupRewrite", "NewGroup", "WritePlan", "plan_new_groups", "plan_inserts", "plan_tagged"]


@dataclass
class GroupRewrite:
    """One file group to rewrite.

    Attributes:
        partition_path: Where.
        base: Its base file.
        changed: Positions in the batch of rows whose key the file has.
        inserted: Positions of rows to append.
        removed: Positions of rows whose key leaves the file for another partition.
        unresolved: Positions of rows that belong here, be their key there or not.
        as_log: Rows to append go to its log.
    """

    partition_path: str
    base: KeyFile
    changed: np.ndarray[Any, Any]
    inserted: np.ndarray[Any, Any]
    removed: np.ndarray[Any, Any] = field(default_factory=lambda: _nothing())
    unresolved: np.ndarray[Any, Any] = field(default_factory=lambda: _nothing())
    as_log: bool = False

    @property
    def group(self) -> FileGroupId:
        """The file group."""
        return FileGroupId(self.partition_path, self.base.file_id)

    @property
    def known(self) -> np.ndarray[Any, Any]:
        """Positions of all rows that are not simply appended."""
        return np.concatenate([self.changed, self.removed, self.unresolved])


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

    @property
    def fresh(self) -> np.ndarray[Any, Any]:
        """Positions of the rows that are new in the table, as far as the index tells."""
        parts = [one.rows for one in self.new_groups] + [one.inserted for one in self.rewrites]
        return np.concatenate([_nothing(), *parts])

    @property
    def pieces(self) -> list[GroupRewrite | NewGroup]:
        """All of them, each independent of the others."""
        return [*self.rewrites, *self.new_groups]

    def __str__(self) -> str:
        changed = sum(len(r.changed) + len(r.unresolved) for r in self.rewrites)
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
        small: Slices by partition that may receive rows; {} to begin new file groups only.
        sizing: Sizes.
        rows: Positions of the new rows; None for all that are no deletes.
    """
    plan = WritePlan()
    # A row that asks for the deletion of its key is never stored.
    wanted = np.flatnonzero(~batch.deleted) if rows is None else rows
    for partition, at in positions_by_text(batch.partitions.take(array_of(wanted))).items():
        files = sizing.open_files(small.get(partition, ()))
        for placement in place(wanted[at], [SmallFile.of(file) for file in files.values()], sizing):
            if placement.file_id is None:
                plan.new_groups.append(NewGroup(partition, placement.rows, as_log=sizing.into_logs))
            else:
                file = files[placement.file_id]
                plan.rewrites.append(GroupRewrite(partition, file, _nothing(), placement.rows, as_log=sizing.into_logs))
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
    moved_keys: MovedKeys | None = None,
) -> WritePlan:
    """Plan an upsert or a delete.

    Args:
        batch: All rows.
        tagging: Where their keys are.
        files: Base files of the latest slices by partition, for placement.
        sizing: Sizes.
        insert_rest: True for an upsert: rows whose key is not there are inserted, unless they are deletes.
        moved_keys: Keys that leave file groups of other partitions.
    """
    untagged = np.ones(len(batch), dtype=bool)
    untagged[tagging.row] = False
    fresh = np.flatnonzero(untagged & ~batch.deleted) if insert_rest else _nothing()
    new_groups = tagging.new_groups
    if new_groups is None:
        plan = plan_inserts(batch, files, sizing, fresh)
    else:
        plan = plan_new_groups(batch, new_groups, fresh, as_logs=sizing.into_logs)
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
            rewrite.unresolved = tagging.row[at]
    if moved_keys is not None:
        for number, at in positions_by_number(moved_keys.file):
            rewrite_of(tagging.files[number]).removed = moved_keys.row[at]
    return plan


def plan_new_groups(
    batch: KeyedBatch, new_groups: NewGroups, rows: np.ndarray[Any, Any] | None = None, *, as_logs: bool = False
) -> WritePlan:
    """Begin the file groups that an index asks for.

    Args:
        batch: All rows.
        new_groups: What the index asks for.
        rows: Positions of the rows; None for all that are no deletes.
        as_logs: Begin them with log files though the index does not ask for that.
    """
    wanted = ~batch.deleted
    if rows is not None:
        wanted = np.zeros(len(batch), dtype=bool)
        wanted[rows] = True
    kept = wanted[new_groups.row]
    begun = new_groups.row[kept]
    return WritePlan(
        new_groups=[
            NewGroup(new_groups.partition_paths[number], begun[at], new_groups.file_ids[number], as_logs or new_groups.as_logs)
            for number, at in positions_by_number(new_groups.number[kept])
        ]
    )
