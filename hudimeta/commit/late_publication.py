"""A write that was published, perhaps: where the store did not say so, and after its lock was lost.

A writer may stand still between its last look at the lock and the request that publishes. Nothing tells the store to refuse
such a request, so the writer looks once more afterwards, with the lock taken anew. Mostly nobody came in between, and the write
stands. Where another writer took it for dead and rolled it back, published first what this one conflicts with, or built an
index without it, it is taken off the timeline again, and the error says that nothing was written.
"""

from __future__ import annotations

from hudimeta.commit.conflicts import check_conflicts, check_schema, writes_since
from hudimeta.commit.locks.protocol import TableLock
from hudimeta.commit.publication import OpenWrite, Publication
from hudimeta.commit.recovery import Recovery
from hudimeta.errors import CommitConflict, CommitError, CommitOutcomeUnknown, LockError, StorageError
from hudimeta.storage import Storage
from hudimeta.table.properties import TableProperties
from hudimeta.timeline import Timeline
from hudimeta.timeline.naming import pending_name
from hudimeta.types import Action, Instant, Operation, State

__all__ = ["refuse_unpublished", "settle_late"]


def refuse_unpublished(storage: Storage, properties: TableProperties, write: OpenWrite, error: StorageError) -> None:
    """Return when a write was published after all, though the store refused the request.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        write: What was to be published.
        error: What the store said.

    Raises:
        StorageError: It was not.
        CommitOutcomeUnknown: The store cannot be asked.
    """
    try:
        found = properties.load_timeline(storage).get(write.instant, write.action)
    except StorageError:
        raise CommitOutcomeUnknown(write.instant, str(error)) from error
    if found is None or not found.is_completed:
        raise error


def settle_late(
    storage: Storage,
    properties: TableProperties,
    lock: TableLock,
    recovery: Recovery,
    write: OpenWrite,
    publication: Publication,
    known: Timeline,
) -> None:
    """Return when a write stands that was published after its lock was lost; else take it back.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        lock: Of the table, not held.
        recovery: Of the table.
        write: What was published.
        publication: What it made visible.
        known: The timeline on which it was found to fit.

    Raises:
        CommitError: It was rolled back before it was published.
        CommitConflict: Another writer was first.
        CommitOutcomeUnknown: Another writer was first and a third one rests on both, or the store or the lock cannot be asked.
    """
    try:
        with lock.held():
            _settle(storage, properties.load_timeline(storage), recovery, write, publication, known)
    except (LockError, StorageError) as error:
        raise CommitOutcomeUnknown(write.instant, f"its lock was lost, and {error}") from error


def _settle(
    storage: Storage, timeline: Timeline, recovery: Recovery, write: OpenWrite, publication: Publication, known: Timeline
) -> None:
    late = next((i for i in timeline.disowned if i.time == write.instant), None)
    if late is not None:
        recovery.disown(timeline, late)
    found = timeline.get(write.instant, write.action)
    if found is None or not found.is_completed:
        raise CommitError(
            f"instant {write.instant} was taken for dead and rolled back while its writer stood still",
            "Nothing was published; run the write again.",
        )
    built = [i for i in timeline.completed if i.action is Action.INDEXING and known.get(i.time, i.action) != i]
    if write.action is Action.COMPACTION and not built:
        return  # what others add to a file group meanwhile lies on top of its base file
    seen = frozenset(known.completion_times) | {write.instant}
    rest_on_it = _begun_after(storage, timeline, found, writes_since(timeline, seen))
    try:
        if built:  # over the table without this write
            raise CommitConflict(write.operation.value, (), built[0].time, what="the table's indexes")
        keyed = None if write.operation is Operation.INSERT_OVERWRITE_TABLE else publication.keyed_partitions
        check_conflicts(timeline, seen | rest_on_it, write.operation.value, publication.changed, keyed, write.instant)
        if not write.runs_a_plan:
            check_schema(timeline, seen | rest_on_it, write.operation.value, publication.avro_schema, write.instant)
    except CommitConflict as error:
        if rest_on_it:
            beside = f"it was published beside {error.winner} after its lock was lost, and {min(rest_on_it)} rests on both"
            raise CommitOutcomeUnknown(write.instant, beside) from error
        recovery.disown(timeline, found)
        raise


def _begun_after(storage: Storage, timeline: Timeline, found: Instant, others: list[Instant]) -> frozenset[str]:
    """Which writes began when this one was on the timeline already, by the store's own clock: they saw it."""
    if not others:
        return frozenset()
    changed = {entry.name: entry.modified_ms for entry in storage.list(timeline.folder)}
    since = changed.get(found.file_name, 0)
    requested = {i.time: pending_name(i.time, i.pending_action or i.action, State.REQUESTED) for i in others}
    return frozenset(time for time, name in requested.items() if changed.get(name, 0) > since)
