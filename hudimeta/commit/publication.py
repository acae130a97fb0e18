"""What travels through a write: the instant that it began with, and what it wants to be made visible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from hudimeta.errors import CommitConflict, CommitError
from hudimeta.formats.avro.container import encode_container
from hudimeta.formats.avro.schemas import REQUESTED_REPLACE_METADATA
from hudimeta.indexes.apart import IndexesApart
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metadata import MetadataTable
from hudimeta.timeline import Timeline
from hudimeta.timeline.naming import pending_name
from hudimeta.timeline.rollback_record import rollback_target, taken_back
from hudimeta.types import Action, FileGroupId, Instant, Operation, State

__all__ = ["OpenWrite", "Publication", "Settling", "Unsettled", "check_still_ours", "commit_record", "requested_content"]


_UNDOING = (Action.ROLLBACK, Action.RESTORE)


@dataclass(frozen=True)
class OpenWrite:
    """A write that has begun: plain data, so that it can travel to Spark's tasks and back.

    Attributes:
        instant: Requested time.
        action: COMMIT, DELTA_COMMIT or REPLACE_COMMIT; of a planned service its pending word.
        operation: What is done.
        seen: Requested times of the writes that were completed when it began.
        rolled_back: Dead writes that were rolled back first.
        by_many: True when it passes through many processes.
        undoings_seen: Requested times of the rollbacks and restores that were completed when the run of a plan began. They may
            name its instant: Apache Hudi takes back what a run left, or did, and leaves the plan to be run again.
    """

    instant: str
    action: Action
    operation: Operation
    seen: frozenset[str]
    rolled_back: tuple[str, ...] = ()
    by_many: bool = False
    undoings_seen: frozenset[str] = frozenset()

    @classmethod
    def of_plan(cls, timeline: Timeline, instant: str, action: Action, operation: Operation) -> OpenWrite:
        """The run of a plan.

        Args:
            timeline: As it was when the run began.
            instant: Of the plan.
            action: Its pending word.
            operation: What is done.
        """
        undoings = frozenset(i.time for i in timeline.completed if i.action in _UNDOING)
        return cls(instant, action, operation, frozenset(timeline.completion_times), undoings_seen=undoings)

    @property
    def replaces(self) -> bool:
        """True when its metadata says which file groups it takes out."""
        return self.action.completed_as is Action.REPLACE_COMMIT

    @property
    def runs_a_plan(self) -> bool:
        """True for a service that was planned: the table holds the same rows before and after."""
        return self.action in (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)


class Settling(Protocol):
    """Says whether a write fits on top of the commits that came while it was under way, and makes it fit."""

    def under_lock(self, timeline: Timeline) -> Publication:
        """What may be published on top of everything on this timeline, which was listed under the table lock.

        Raises:
            Unsettled: To find that out takes more than is done while everybody waits.
            CommitConflict: It does not fit.
        """

    def settle(self, timeline: Timeline) -> Publication:
        """Make the write fit on top of everything on a timeline; nobody waits. Raises CommitConflict when it does not fit."""


class Unsettled(Exception):
    """Commits came that are to be looked at before the lock is taken again; never leaves the coordinator.

    Args:
        settling: Looks at them.
        timeline: On which they stand.
    """

    def __init__(self, settling: Settling, timeline: Timeline) -> None:
        super().__init__()
        self._settling, self._timeline = settling, timeline

    def settled(self) -> Publication:
        """What may be published instead; the lock is not held."""
        return self._settling.settle(self._timeline)


@dataclass(frozen=True)
class Publication:
    """What is to be made visible.

    Attributes:
        files: New base files.
        replaced: File ids to take out of the table, by partition; of overwrites only.
        schema: Data columns of the table after the write.
        avro_schema: The same as JSON.
        extra: Further entries of the commit's extraMetadata.
        keyed_partitions: See `check_conflicts`.
        known: The metadata table as the write saw it; spares a request when nothing happened meanwhile.
        history: Versions of the table's columns, for a table that was altered (see `schema_commits`); None for all others.
        apart: Writes indexes that the committing process does not; None for none.
        settling: Looks at the commits that came meanwhile, row by row; None compares file groups and partitions alone.
        decides: Called with the timeline right before the write becomes visible, under the table lock: what must change at the
            same moment. What it raises ends the write.
        renamed: Columns that older files hold under other names, or in types that did not grow to these; dotted.
    """

    files: Sequence[WrittenFile]
    schema: pa.Schema
    avro_schema: str
    replaced: Mapping[str, Sequence[str]] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    keyed_partitions: frozenset[str] | None = frozenset()
    known: MetadataTable | None = None
    history: str | None = None
    apart: IndexesApart | None = None
    settling: Settling | None = None
    decides: Callable[[Timeline], None] | None = None
    renamed: frozenset[str] = frozenset()

    @property
    def changed(self) -> frozenset[FileGroupId]:
        """File groups that are there already, and that it changes or takes out."""
        changed = {FileGroupId(file.partition_path, file.file_id) for file in self.files if not file.is_new_group}
        return frozenset(changed.union(FileGroupId(p, file_id) for p, ids in self.replaced.items() for file_id in ids))


def check_still_ours(timeline: Timeline, write: OpenWrite) -> None:
    """Before anything of it reaches the metadata table: a write that was taken for dead and rolled back is over."""
    found = timeline.get(write.instant, write.action)
    # One that was rolled back between its two files has the second one all the same.
    requested = pending_name(write.instant, write.action, State.REQUESTED)
    if found is None or found.state is not State.INFLIGHT or requested not in timeline.files_of(found):
        raise CommitError(
            f"instant {write.instant} is not in flight any more: another writer rolled it back",
            "Nothing was published; run the write again.",
        )
    others = [i.action.value for i in timeline if i.time == write.instant and i.action not in (write.action, Action.SAVEPOINT)]
    # A rollback that died half-way freed its write's instant, and whoever finishes it takes back what bears it then.
    rollbacks = [i for i in timeline.pending if i.action is Action.ROLLBACK and i.time > write.instant]
    targets = (rollback_target(timeline.plan(i)) for i in rollbacks)
    if any(target is not None and target[0] == write.instant for target in targets):
        others.append("rollback of another write")
    # Or there was one that is undone: what names its instant later would mean ours, and readers of its record leave ours out.
    later = [i for i in timeline.completed if i.action in _UNDOING and i.time > write.instant]
    later = [i for i in later if i.time not in write.undoings_seen]
    others += [f"{i.action.value} of another write" for i in later if _names(timeline, i, write)]
    if others:
        what = f"the instant {write.instant}"
        raise CommitConflict(write.operation.value, (), f"a {others[0]}", what=what, did="has taken")


def _names(timeline: Timeline, undone: Instant, write: OpenWrite) -> bool:
    return (write.instant, write.action.completed_as) in taken_back(timeline.metadata(undone))


def requested_content(action: Action) -> bytes:
    """What the requested file of a write holds: of an overwrite a plan that says nothing."""
    if action is not Action.REPLACE_COMMIT:
        return b""
    nothing = {"operationType": None, "clusteringPlan": None, "extraMetadata": None, "version": None}
    return encode_container(REQUESTED_REPLACE_METADATA, [nothing])


def commit_record(write: OpenWrite, publication: Publication, extra: Mapping[str, str]) -> dict[str, Any]:
    """The commit's metadata; `extra` is its extraMetadata."""
    stats: dict[str, list[dict[str, Any]]] = {}
    for file in publication.files:
        stats.setdefault(file.partition_path, []).append(file.stat())
    record: dict[str, Any] = {
        "partitionToWriteStats": stats,
        "compacted": write.operation in (Operation.COMPACT, Operation.LOG_COMPACT),
        "operationType": write.operation.value,
        "extraMetadata": dict(extra),
    }
    if write.replaces:
        record["partitionToReplaceFileIds"] = {p: list(ids) for p, ids in publication.replaced.items()}
    return record
