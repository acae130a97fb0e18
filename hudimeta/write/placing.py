"""Where the rows of a batch go: to the rows of their keys, into small files, or into new file groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hudimeta.commit.coordinator import OpenWrite
from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.errors import CommitConflict
from hudimeta.table.key_file import KeyFile
from hudimeta.types import Operation
from hudimeta.write.batch import KeyedBatch
from hudimeta.write.duplicates import DuplicatePolicy, duplicate_policy, settle_duplicates
from hudimeta.write.operations import WritePlan, plan_inserts, plan_new_groups, plan_tagged
from hudimeta.write.placement import FileSizing
from hudimeta.write.table_files import TableFiles
from hudimeta.write.write_result import WriteResult

__all__ = ["INSERTS", "KEYED", "PlacedBatch", "check_ages", "older_than", "place"]

KEYED = (Operation.UPSERT, Operation.DELETE)
"""Operations that look the keys of their rows up, whatever the index."""
INSERTS = (Operation.INSERT, Operation.BULK_INSERT)


_NOTHING_YET = WriteResult((), {}, None)


@dataclass(frozen=True)
class PlacedBatch:
    """A batch each of whose rows has its place.

    Attributes:
        batch: The rows, each with the partition that it goes to.
        plan: Which file group each of them goes to.
        is_looked_up: Their keys were looked up.
        result: Of the write, as far as it is known: what the look-up came to.
    """

    batch: KeyedBatch
    plan: WritePlan
    is_looked_up: bool = False
    result: WriteResult = _NOTHING_YET


def place(session: WriteSession, table: TableFiles, write: OpenWrite, batch: KeyedBatch, timings: Timings) -> PlacedBatch:
    """Give the rows of a batch their places.

    Args:
        session: The table.
        table: Its files, as the write sees them.
        write: Whose batch it is.
        batch: The rows.
        timings: Take the time of the look-up.

    Raises:
        CommitConflict: The place of a row is in a file group that a write with a later instant has changed.
    """
    operation, sizing = write.operation, FileSizing.of(session, table.snapshot.timeline, write.operation)
    policy = duplicate_policy(session.options, operation)
    keyed = operation in KEYED or (operation in INSERTS and table.lookup.fixes_places)
    if batch.keys is not None and policy is not DuplicatePolicy.NONE:
        with timings.phase("look-up"):
            placed = _without_duplicates(table, write, batch, sizing, policy)
    elif batch.keys is not None and keyed:
        with timings.phase("look-up"):
            placed = _by_key(table, write, batch, sizing)
    else:
        placed = PlacedBatch(batch, _unseen(table, write, batch, sizing), keyed or policy is not DuplicatePolicy.NONE)
    check_ages(placed.plan, write)
    return placed


def _by_key(table: TableFiles, write: OpenWrite, batch: KeyedBatch, sizing: FileSizing) -> PlacedBatch:
    found = table.lookup.find(batch)
    small, settled, inserts = older_than(write.instant, found.files), found.settled, write.operation is not Operation.DELETE
    plan = plan_tagged(found.batch, settled.tagging, small, sizing, insert_rest=inserts, moved_keys=settled.moved_keys)
    result = replace(
        _NOTHING_YET,
        index=found.text,
        unmatched=found.unmatched,
        looked_up=found.asked,
        found=found.hits,
        moved=settled.moved,
    )
    return PlacedBatch(found.batch, plan, True, result)


def _without_duplicates(
    table: TableFiles, write: OpenWrite, batch: KeyedBatch, sizing: FileSizing, policy: DuplicatePolicy
) -> PlacedBatch:
    """The rows of an insert whose keys the table does not have yet."""
    tagging, files = table.lookup.held(batch)
    fresh = settle_duplicates(batch, tagging.row, policy)
    small = older_than(write.instant, files) if sizing.small_limit else {}
    dropped = len(batch) - len(fresh)
    result = replace(_NOTHING_YET, index=str(tagging), dropped=dropped, looked_up=tagging.asked, found=tagging.hits)
    return PlacedBatch(batch, plan_inserts(batch, small, sizing, fresh), True, result)


def _unseen(table: TableFiles, write: OpenWrite, batch: KeyedBatch, sizing: FileSizing) -> WritePlan:
    """Places of rows whose keys nobody looks up."""
    if write.operation in (Operation.INSERT, Operation.UPSERT):
        partitions = batch.partitions.unique().to_pylist()
        small = older_than(write.instant, table.snapshot.key_files(partitions)) if sizing.small_limit else {}
        return plan_inserts(batch, small, sizing)
    if write.operation is Operation.DELETE_PARTITION:
        return WritePlan()
    new_groups = table.lookup.new_groups(batch)
    return plan_inserts(batch, {}, sizing) if new_groups is None else plan_new_groups(batch, new_groups)


def older_than(instant: str, files: Mapping[str, Sequence[KeyFile]]) -> dict[str, list[KeyFile]]:
    """Files of slices that began before an instant: a file of that instant would not be seen above a younger one."""
    return {partition: [f for f in found if f.newest_instant < instant] for partition, found in files.items()}


def check_ages(plan: WritePlan, write: OpenWrite) -> None:
    """Refuse to change file groups that another write with a later instant changed already: readers would not see it.

    Raises:
        CommitConflict: With the other write; a write with a new instant can do it.
    """
    for rewrite in plan.rewrites:
        if rewrite.base.newest_instant >= write.instant:
            group = (rewrite.partition_path, rewrite.base.file_id)
            raise CommitConflict(write.operation.value, [group], rewrite.base.newest_instant)
