"""The coordinator: one write from its instant to its publication, or back to where it began.

A write goes through four steps. *Begin* rolls dead writes back and puts a new instant on the timeline. *Work* writes data
files, a marker before each; the coordinator has no part in it. *Publish*, under the table lock, checks for conflicts, commits
the metadata table at the same instant, and then creates the completed file, the one moment at which the write becomes visible.
*Abort* takes everything back. A process that dies leaves the instant pending, and the next writer's begin does the abort.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hudimeta.concurrency.liveness import Heartbeat, is_alive
from hudimeta.concurrency.lock import TableLock
from hudimeta.errors import CommitOutcomeUnknown, StorageError
from hudimeta.formats.avro.commit_metadata import encode_commit_metadata
from hudimeta.formats.avro.container import encode_container
from hudimeta.formats.avro.schemas import REQUESTED_REPLACE_METADATA
from hudimeta.metadata.metadata_table import MetadataTable
from hudimeta.services import rollback
from hudimeta.storage import Storage, join
from hudimeta.table.properties import TableProperties
from hudimeta.timeline.active import Timeline
from hudimeta.timeline.clock import InstantGenerator
from hudimeta.timeline.naming import pending_name
from hudimeta.timeline.transitions import TimelineWriter
from hudimeta.types import Action, FileGroupId, Instant, Operation, State
from hudimeta.write.conflicts import check_conflicts
from hudimeta.write.markers import remove_markers
from hudimeta.write.metadata_commit import MetadataCommit
from hudimeta.write.written_file import WrittenFile

__all__ = ["Coordinator", "OpenWrite", "Publication"]

_OVERWRITES = (Operation.INSERT_OVERWRITE, Operation.INSERT_OVERWRITE_TABLE, Operation.DELETE_PARTITION)


@dataclass(frozen=True)
class OpenWrite:
    """A write that has begun: plain data, so that it can travel to Spark's tasks and back.

    Attributes:
        instant: Requested time. action: COMMIT or REPLACE_COMMIT. operation: What is done.
        seen: Requested times of the writes that were completed when it began.
        rolled_back: Dead writes that were rolled back first.
    """

    instant: str
    action: Action
    operation: Operation
    seen: frozenset[str]
    rolled_back: tuple[str, ...] = ()


@dataclass(frozen=True)
class Publication:
    """What is to be made visible.

    Attributes:
        files: New base files.
        replaced: File ids to take out of the table, by partition; of overwrites only.
        schema: Data columns of the table after the write. avro_schema: The same as JSON.
        extra: Further entries of the commit's extraMetadata.
        keyed_partitions: See `check_conflicts`.
        known: The metadata table as the write saw it; spares a request when nothing happened meanwhile.
    """

    files: Sequence[WrittenFile]
    schema: pa.Schema
    avro_schema: str
    replaced: Mapping[str, Sequence[str]] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    keyed_partitions: frozenset[str] = frozenset()
    known: MetadataTable | None = None


class Coordinator:
    """Begins, publishes and aborts the writes of one table.

    Args:
        storage: Rooted at the table. properties: Of the table. lock: The table's lock. times: Makes instants.
        metadata: Brings the metadata table along; None for a table that has none.
    """

    def __init__(
        self,
        storage: Storage,
        properties: TableProperties,
        lock: TableLock,
        times: InstantGenerator,
        metadata: MetadataCommit | None,
    ) -> None:
        self._storage, self._properties, self._lock, self._times = storage, properties, lock, times
        self._metadata = metadata
        self._writer = TimelineWriter(storage, properties.timeline_folder)
        self._held = contextlib.ExitStack()

    @property
    def times(self) -> InstantGenerator:
        """The source of instants."""
        return self._times

    @property
    def compacted_metadata(self) -> bool:
        """True when a commit of this coordinator compacted the metadata table."""
        return self._metadata is not None and self._metadata.compacted

    # Begin

    def recover(self, timeline: Timeline | None = None) -> tuple[str, ...]:
        """Roll back what dead writers left; returns their instants. Doing it twice is doing it once.

        Args:
            timeline: The table's timeline where it was listed just now; None lists it.
        """
        if not self._dead(timeline or self._properties.load_timeline(self._storage)):
            return ()
        with self._lock.held():
            timeline = self._properties.load_timeline(self._storage)
            undone = []
            for instant in self._dead(timeline):
                undone.append(self._undo(timeline, instant, None))
                timeline = self._properties.load_timeline(self._storage)
            return tuple(undone)

    def _dead(self, timeline: Timeline) -> list[Instant]:
        """Pending rollbacks, and pending writes that nobody works on; plans of services wait for their executor."""
        dead = []
        for instant in timeline.pending:
            action = instant.pending_action or instant.action
            if action is Action.ROLLBACK:
                dead.append(instant)
            elif action in (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT):
                requested = join(timeline.folder, pending_name(instant.time, action, State.REQUESTED))
                if not is_alive(self._storage, instant.time, requested):
                    dead.append(instant)
        # A rollback that died is finished first: what it undoes must not be undone twice.
        return sorted(dead, key=lambda i: i.action is not Action.ROLLBACK)

    def _undo(self, timeline: Timeline, instant: Instant, partitions: Sequence[str] | None) -> str:
        has_metadata = self._properties.has_metadata_table
        if instant.action is Action.ROLLBACK:
            the_plan, time = rollback.pending_plan(timeline, instant), instant.time
        else:
            the_plan = rollback.plan(self._storage, instant, self._partitions() if partitions is None else partitions)
            time = None
        rollback.execute(self._storage, timeline, self._times, the_plan, time=time, has_metadata=has_metadata)
        Heartbeat(self._storage, the_plan.instant).stop()
        return the_plan.instant

    def _partitions(self) -> list[str]:
        """Every partition folder of the table, found on storage: a dead write may have made one that no index knows."""
        from hudimeta.table.discovery import partitions_on_storage

        return partitions_on_storage(self._storage)

    def begin(
        self, operation: Operation, timeline: Timeline | None = None, *, heartbeat: bool = False
    ) -> tuple[OpenWrite, Timeline]:
        """Put a new instant on the timeline, after dead writes were rolled back.

        Args:
            operation: What will be done.
            timeline: The table's timeline where it was listed just now; None lists it.
            heartbeat: Keep the write alive by a heartbeat file instead of this process: for writes that pass through many.

        Returns:
            The write, and the timeline on which it began: what is completed there is what the write knows.
        """
        timeline = timeline or self._properties.load_timeline(self._storage)
        undone = self.recover(timeline)
        if undone:
            timeline = self._properties.load_timeline(self._storage)
        action = Action.REPLACE_COMMIT if operation in _OVERWRITES else Action.COMMIT
        with self._lock.alone_here():
            instant = self._times.next(timeline.last_time)
            requested = join(timeline.folder, pending_name(instant, action, State.REQUESTED))
            guard = None if heartbeat else self._storage.guard(requested)
            if heartbeat:
                Heartbeat(self._storage, instant).beat()
            elif guard is None:
                self._held.enter_context(Heartbeat(self._storage, instant).beating())
            content = encode_container(REQUESTED_REPLACE_METADATA, [_NO_PLAN]) if action is Action.REPLACE_COMMIT else b""
            self._writer.create_requested(instant, action, content)
            if guard is not None:
                self._held.enter_context(guard)
        self._writer.create_inflight(instant, action)
        return OpenWrite(instant, action, operation, frozenset(timeline.completion_times), undone), timeline

    # Publish

    def publish(self, write: OpenWrite, publication: Publication) -> str:
        """Make a write visible; returns its completion time. After an error the caller aborts the write.

        Raises:
            CommitConflict: Another writer was first.
            CommitOutcomeUnknown: Storage failed at the last step and could not be asked what became of it.
            HudiError: Anything else that failed before the last step.
        """
        with self._lock.held():
            completion = self._publish_locked(write, publication)
        self._finish(write)
        return completion

    def _publish_locked(self, write: OpenWrite, publication: Publication) -> str:
        timeline = self._properties.load_timeline(self._storage)
        changed = [FileGroupId(f.partition_path, f.file_id) for f in publication.files if not f.is_new_group]
        changed += [FileGroupId(p, file_id) for p, ids in publication.replaced.items() for file_id in ids]
        check_conflicts(timeline, write.seen, write.operation.value, changed, publication.keyed_partitions)
        extra = {"schema": publication.avro_schema, **publication.extra}
        if self._metadata is not None:
            extra |= self._metadata.commit(timeline, write.instant, publication.files, publication.schema, publication.known)
        content = encode_commit_metadata(_commit_record(write, publication, extra), replace=bool(_replaces(write)))
        self._lock.check()
        completion = self._times.next(timeline.last_time, write.instant)
        try:
            self._writer.complete(write.instant, write.action, completion, content)
        except StorageError as error:
            self._judge_outcome(write, error)
        return completion

    def _judge_outcome(self, write: OpenWrite, error: StorageError) -> None:
        """Return when the instant is completed after all, else raise what happened."""
        try:
            found = self._properties.load_timeline(self._storage).get(write.instant, write.action)
        except StorageError:
            raise CommitOutcomeUnknown(write.instant, str(error)) from error
        if found is None or not found.is_completed:
            raise error

    def _finish(self, write: OpenWrite) -> None:
        """Tidy up; nothing here may turn a published write into an error."""
        with contextlib.suppress(StorageError):
            remove_markers(self._storage, write.instant)
            Heartbeat(self._storage, write.instant).stop()
        self._held.close()

    # Abort

    def abort(self, write: OpenWrite) -> None:
        """Roll a write back, unless it is completed already: then nothing happens."""
        self._held.close()
        with self._lock.held():
            timeline = self._properties.load_timeline(self._storage)
            found = timeline.get(write.instant, write.action)
            if found is None or found.is_completed:
                return
            self._undo(timeline, found, ())

    @contextlib.contextmanager
    def writing(self, operation: Operation, timeline: Timeline) -> Iterator[tuple[OpenWrite, Timeline]]:
        """Begin a write; an exception inside the with block aborts it, unless its outcome cannot be known. See `begin`."""
        write, begun = self.begin(operation, timeline)
        try:
            yield write, begun
        except CommitOutcomeUnknown:
            self._held.close()
            raise
        except BaseException:
            self.abort(write)
            raise


_NO_PLAN = {"operationType": None, "clusteringPlan": None, "extraMetadata": None, "version": None}


def _replaces(write: OpenWrite) -> bool:
    return write.action is Action.REPLACE_COMMIT


def _commit_record(write: OpenWrite, publication: Publication, extra: Mapping[str, str]) -> dict[str, Any]:
    stats: dict[str, list[dict[str, Any]]] = {}
    for file in publication.files:
        stats.setdefault(file.partition_path, []).append(file.stat())
    record: dict[str, Any] = {
        "partitionToWriteStats": stats,
        "operationType": write.operation.value,
        "extraMetadata": dict(extra),
    }
    if _replaces(write):
        record["partitionToReplaceFileIds"] = {p: list(ids) for p, ids in publication.replaced.items()}
    return record
