"""Running a planned restore: what its plan names goes, newest first, until one write is the newest again.

From its plan on the table reads as restored (see `timeline.restore_record`) and its metadata table is not asked, so that no
step is seen half-done. Each step can be repeated: whoever holds the table lock and sees a pending restore knows that its
process died, and finishes it. Completed files go first, for readers who do not know of the plan; then data files, then inflight
files; then the metadata table follows; the requested files go last.

The metadata table is taken back to the point, delta commit by delta commit, which leaves every index as it was. Where
it has merged what goes, or built an index since, nothing tells the two apart: then it is built anew, with the same indexes.
Meanwhile the properties name none of its partitions; the inflight file of the restore does, for whoever finishes it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from hudimeta.commit.liveness import Heartbeat
from hudimeta.commit.locks.protocol import TableLock
from hudimeta.commit.markers import remove_markers
from hudimeta.commit.metadata_again import planned_again
from hudimeta.commit.metadata_bootstrap import bootstrap_metadata
from hudimeta.commit.publication import OpenWrite
from hudimeta.commit.removal import delete_in_tasks
from hudimeta.config import HudiWarning, Options
from hudimeta.engine import Engine
from hudimeta.engine.machine import now_ms
from hudimeta.errors import CommitConflict, CommitError, CorruptFileError, HudiError, NotFound, UnsupportedFeature
from hudimeta.indexes.bucket.consistent_hashing import forget_rings
from hudimeta.indexes.bucket.partition_rules import forget_rules
from hudimeta.indexes.registry import maintainer_of
from hudimeta.metadata.rollback import METADATA_ROOT, take_back_delta
from hudimeta.redaction import without_user
from hudimeta.snapshot.schema_commits import forget_schema_commits
from hudimeta.snapshot.table_schema import file_schema
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import delete_files, files_at_once
from hudimeta.table.discovery import list_table
from hudimeta.table.file_names import parse_names
from hudimeta.table.properties import TableProperties, update
from hudimeta.table.properties import load as load_properties
from hudimeta.table.text_arrays import instant_text
from hudimeta.timeline import InstantGenerator, Timeline, TimelineWriter
from hudimeta.timeline.naming import parse_instant_name, pending_name
from hudimeta.timeline.restore_record import RestoreRecord, decode_restore_plan, encode_restore_metadata
from hudimeta.timeline.rollback_record import rollback_target
from hudimeta.types import Action, Instant, State

__all__ = [
    "Restorer",
    "files_of_instants",
    "metadata_must_be_built",
    "newest_last",
    "partitions_built_anew",
    "is_merged",
    "pending_restores",
    "refuse_undone",
]

_PARTITIONS = "hoodie.table.metadata.partitions"
_MERGES = (Action.COMMIT, Action.REPLACE_COMMIT)
_PENDING = "~"  # greater than the text of any time


def pending_restores(timeline: Timeline) -> tuple[Instant, ...]:
    """Restores that are not completed, the oldest first."""
    return tuple(i for i in timeline.pending if i.action is Action.RESTORE)


def newest_last(instant: Instant) -> tuple[str, str]:
    """Sorts instants by their completion; those that are not completed come last."""
    return instant.completion_order if instant.is_completed else (_PENDING, instant.time)


def files_of_instants(storage: Storage, times: Sequence[str]) -> pa.Table:
    """Data files, logs and CDC files that some instants wrote, found on storage: partition_path, name, size, instant."""
    listing = list_table(storage)
    names = listing["name"].combine_chunks() if len(listing) else pa.array([], pa.string())
    parsed = parse_names(names)
    listing = listing.append_column("instant", instant_text(parsed.instants))
    ours = np.isin(np.asarray(listing["instant"].to_numpy(zero_copy_only=False), dtype=object), list(times))
    return listing.filter(pa.array(parsed.valid & ours))


def refuse_undone(timeline: Timeline, write: OpenWrite) -> None:
    """Refuse a write that rests on what a restore, or a rollback, has undone since it began.

    Raises:
        CommitConflict: With the instant that is gone.
    """
    for restore in pending_restores(timeline):
        winner = f"the restore at {restore.time}"
        raise CommitConflict(write.operation.value, (), winner, what="the whole table", did="is taking back")
    gone = [time for time in write.seen - timeline.completion_times.keys() if not timeline.is_committed(time)]
    if gone:
        what = f"what instant {min(gone)} wrote"
        raise CommitConflict(write.operation.value, (), "a restore or rollback", what=what, did="has taken back")


def metadata_must_be_built(
    storage: Storage, properties: TableProperties, timeline: Timeline, plan: RestoreRecord, gone: Sequence[Instant]
) -> str:
    """Why the metadata table cannot be taken back to the point of a restore; "" when it can, or when there is none.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        timeline: Of the table.
        plan: Of the restore.
        gone: What of it is still on the timeline.
    """
    if not properties.has_metadata_table or not plan.instants:
        return ""
    try:
        inner = Timeline.load(storage.sub(METADATA_ROOT), zone=properties.zone, place=METADATA_ROOT)
    except (HudiError, ValueError) as error:
        return f"it cannot be read: {error}"
    for lost in inner.empty_writes:  # Apache Hudi was killed while it told it of a restore
        return f"its {lost.action.value} at {lost.time} has lost its content"
    if any(i.action in (Action.RESTORE, Action.ROLLBACK, Action.LOG_COMPACTION) for i in inner.pending):
        return "another writer left it half restored"  # and what it was to take back counts no more
    deltas = {i.time: i for i in inner.writes if i.action is Action.DELTA_COMMIT}
    completed = [i.time for i in gone if i.is_completed]
    unknown = [time for time in completed if time not in deltas]
    if unknown:
        return f"it does not tell what {unknown[0]} wrote"
    since = min((deltas[time].completion_order for time in plan.times if time in deltas), default=None)
    if since is None:
        return ""
    merged = [i for i in inner.instants if i.action.completed_as in _MERGES and _is_after(i, since)]
    if merged:
        word = "compaction" if merged[0].action.completed_as is Action.COMMIT else merged[0].action.value
        return f"its {word} at {merged[0].time} merged what goes"
    known = {i.time for i in (*timeline.instants, *gone)}
    own = [i for i in deltas.values() if i.time not in known and i.completion_order > since]
    if own:
        return f"partitions of it were laid out at {own[0].time}"
    built = [i for i in timeline.completed if i.action is Action.INDEXING and i.completion_order > since]
    return f"an index was built at {built[0].time}" if built else ""


def is_merged(storage: Storage, properties: TableProperties, instant: str) -> bool:
    """Whether a compaction of the metadata table has merged what a write wrote there, so that no rollback can take it out."""
    inner = Timeline.load(storage.sub(METADATA_ROOT), zone=properties.zone, place=METADATA_ROOT)
    delta = inner.get(instant, Action.DELTA_COMMIT)
    if delta is None or not delta.is_completed:
        return False
    return any(i.is_completed and i.action.completed_as in _MERGES and _is_after(i, delta.completion_order) for i in inner)


def _is_after(instant: Instant, since: tuple[str, str]) -> bool:
    return not instant.is_completed or instant.completion_order > since


@dataclass(frozen=True)
class Restorer:
    """Runs the planned restores of one table.

    Attributes:
        storage: Rooted at the table.
        lock: The table's lock, which the caller holds.
        times: Makes instants.
        options: Of who restores: with them indexes are built.
        engine: Where files are deleted and indexes built.
    """

    storage: Storage
    lock: TableLock
    times: InstantGenerator
    options: Options
    engine: Engine

    def finish(self, timeline: Timeline) -> tuple[str, ...]:
        """Finish the restores that died; returns the instants that they undid."""
        return tuple(time for restore in pending_restores(timeline) for time in self.run(timeline, restore)[0].times)

    def run(self, timeline: Timeline, restore: Instant) -> tuple[RestoreRecord, int]:
        """Run the restore that is pending at an instant; returns its plan, and how many files were there and are gone.

        Args:
            timeline: Listed under the lock.
            restore: Of the plan.
        """
        begun = now_ms()
        properties = load_properties(self.storage)
        plan = decode_restore_plan(timeline.plan(restore))
        writer = TimelineWriter(self.storage, timeline.folder)
        anew = self._begin(timeline, restore, properties, plan)
        if anew and properties.has_metadata_table:
            update(self.storage, {_PARTITIONS: "", f"{_PARTITIONS}.inflight": ""})
        self._remove_instants(timeline, State.COMPLETED)
        deleted = self._delete_files(plan)
        # Apache Hudi, should it come next, deletes no file of a write that is only requested.
        self._remove_instants(timeline, State.INFLIGHT)
        if anew:
            self._build_metadata(timeline, anew)
        elif properties.has_metadata_table and plan.instants:
            take_back_delta(self.storage, *plan.times)
        self._remove_instants(timeline, State.REQUESTED)
        self._remove_rollbacks(timeline, restore, plan)
        delete_files(self.storage, [Heartbeat(self.storage, time).path for time in plan.times])
        files_at_once(partial(remove_markers, self.storage), plan.times, self.storage)
        forget_schema_commits(self.storage, plan.times)
        forget_rings(self.storage, plan.times)
        forget_rules(self.storage, plan.times)
        last = properties.load_timeline(self.storage).last_time
        content = encode_restore_metadata(without_user(self.storage.root), restore.time, now_ms() - begun, plan, deleted)
        writer.complete(restore.time, Action.RESTORE, self.times.next(last, restore.time), content)
        return plan, sum(len(names) for parts in deleted.values() for names in parts.values())

    def _remove_instants(self, timeline: Timeline, state: State) -> None:
        """Remove the files of a state of what is undone: of completed instants one by one, the newest first."""
        paths = []
        for instant in sorted(timeline.undone, key=newest_last, reverse=True):
            for name in timeline.files_of(instant):
                file = parse_instant_name(name)
                if file is not None and file.state is state:
                    paths.append(join(timeline.folder, name))
        for some in [paths] if state is not State.COMPLETED else [[path] for path in paths]:
            delete_files(self.storage, some)

    def _delete_files(self, plan: RestoreRecord) -> dict[str, dict[str, list[str]]]:
        """Delete every file of what is undone; their names by instant and partition path."""
        found = files_of_instants(self.storage, plan.times)
        columns = [found[name].to_pylist() for name in ("instant", "partition_path", "name")]
        deleted: dict[str, dict[str, list[str]]] = {}
        paths = []
        for instant, partition, name in zip(*columns, strict=True):
            deleted.setdefault(instant, {}).setdefault(partition, []).append(name)
            paths.append(join(partition, name))
        delete_in_tasks(self.storage, paths, self.engine)
        return deleted

    def _remove_rollbacks(self, timeline: Timeline, restore: Instant, plan: RestoreRecord) -> None:
        """Remove rollbacks that died and take back what is gone now: Apache Hudi's restores begin one for each instant."""
        gone = frozenset(plan.times)
        writer = TimelineWriter(self.storage, timeline.folder)
        for rollback in (i for i in timeline.pending if i.action is Action.ROLLBACK):
            try:
                target = rollback_target(timeline.plan(rollback))
            except (CorruptFileError, NotFound):
                target = None
            if target[0] in gone if target is not None else rollback.time > restore.time:
                writer.delete_pending(rollback.time, Action.ROLLBACK, State.INFLIGHT)
                writer.delete_pending(rollback.time, Action.ROLLBACK, State.REQUESTED)

    # The metadata table, built anew

    def _begin(self, timeline: Timeline, restore: Instant, properties: TableProperties, plan: RestoreRecord) -> tuple[str, ...]:
        """Say that the work has begun; returns the partitions of the metadata table that are built anew."""
        path = join(timeline.folder, pending_name(restore.time, Action.RESTORE, State.INFLIGHT))
        begun = restore.state is State.INFLIGHT
        noted = partitions_built_anew(timeline.pending_bytes(restore, State.INFLIGHT), path) if begun else ()
        if noted:
            return noted
        why = metadata_must_be_built(self.storage, properties, timeline, plan, timeline.undone)
        names = tuple(sorted(properties.metadata_partitions)) if why else ()
        if not begun:
            writer = TimelineWriter(self.storage, timeline.folder)
            writer.create_inflight(restore.time, Action.RESTORE, ",".join(names).encode())
        elif names:
            self._note(path, ",".join(names).encode())
        return names

    def _note(self, path: str, names: bytes) -> None:
        """Write down what is built anew, while nobody else has done so or has finished the restore."""
        try:
            noted = self.storage.put_if_unchanged(path, names, b"")
        except NotFound:
            noted = False
        except UnsupportedFeature:  # the lock is that of this process: there is nobody else
            self.storage.put(path, names)
            return
        if not noted:
            raise CommitError(
                f"another process is at work on {path}", "Look at t.timeline, and run t.recover() if it is there."
            )

    def _build_metadata(self, timeline: Timeline, names: Sequence[str]) -> None:
        properties = load_properties(self.storage)
        schema = file_schema(properties, timeline)
        if schema is None:
            self.storage.delete_folder(METADATA_ROOT)
            return
        planned, left_out = planned_again(self.storage, properties, names, schema, self.options)
        for name in left_out:
            warnings.warn(f"{name} is not built again: create it anew", HudiWarning, stacklevel=2)
        now = properties.load_timeline(self.storage)
        bootstrap_metadata(self.storage, properties, now, schema, self.options, self.times, self.engine, planned)


def partitions_built_anew(noted: bytes, path: str) -> tuple[str, ...]:
    """The partitions of the metadata table that a restore builds anew, as its inflight file says; none where it keeps them.

    Raises:
        CorruptFileError: It says something else.
    """
    text = noted.decode(errors="replace")
    names = tuple(text.split(",")) if text else ()
    if any(maintainer_of(name) is None for name in names):
        hint = "Restore the file from a copy, or delete it: the restore goes on, and t.metadata.rebuild() makes the indexes."
        raise CorruptFileError(path, 0, "names of partitions of the metadata table", repr(text[:80]), hint)
    return names
