"""Rollback: take a failed or abandoned write back, so that nothing of it is left.

The order makes every step repeatable: the plan is stored first; then the completed file goes, of a write that had one (see
`services.rollback`), then the data files, then the inflight file, then the requested file, so that a rollback which dies
half-way is found by its plan and run again. Apache Hudi may do so, too: of a write without an inflight file it deletes nothing.
The metadata table takes the instant back before the data timeline says that it is gone. Data files are found by the write's
markers; only where there are none are the partitions listed, and the outcome says so.

The writer may not be dead but have stood still for longer than its lock lasts. Without its inflight file it publishes
nothing; and if it looked for that just before it was stopped, what it publishes does not count (see `timeline.disowned`) and is
removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hudimeta.commit.liveness import Heartbeat
from hudimeta.commit.markers import files_of_write, refuse_files_of_others, remove_markers
from hudimeta.commit.service_runs import ACTIONS
from hudimeta.commit.strays import delete_late_files, delete_marked_metadata
from hudimeta.errors import CommitError, HudiError
from hudimeta.formats.avro.container import decode_container
from hudimeta.indexes.bucket.consistent_hashing import forget_rings
from hudimeta.indexes.bucket.partition_rules import forget_rules
from hudimeta.metadata.rollback import roll_back_metadata
from hudimeta.redaction import without_user
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import at_once, delete_files
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.timeline import InstantGenerator, Timeline, TimelineWriter
from hudimeta.timeline.naming import parse_instant_name
from hudimeta.timeline.rollback_record import encode_rollback_metadata, encode_rollback_plan, rollback_target
from hudimeta.types import Action, Instant, State

__all__ = ["RollbackOutcome", "RollbackPlan", "execute", "pending_plan", "plan"]


@dataclass(frozen=True)
class RollbackPlan:
    """What a rollback will do.

    Attributes:
        instant: Requested time of the write to take back.
        action: Its action.
        files: Data files to delete, by partition path, as names; not all of them need exist.
        listed: True when they were found by listing, because the write left no markers.
    """

    instant: str
    action: Action
    files: Mapping[str, tuple[str, ...]]
    listed: bool = False

    @property
    def n_files(self) -> int:
        """How many data files the plan names."""
        return sum(len(names) for names in self.files.values())


@dataclass(frozen=True)
class RollbackOutcome:
    """What a rollback did.

    Attributes:
        time: Requested time of the rollback.
        plan: Its plan.
        deleted: How many data files were there and are gone.
    """

    time: str
    plan: RollbackPlan
    deleted: int


def plan(storage: Storage, instant: Instant, partitions: Sequence[str]) -> RollbackPlan:
    """Find what a pending write left behind.

    Args:
        storage: Rooted at the table.
        instant: The pending instant; of a completed one `services.rollback` makes the plan.
        partitions: All partition paths of the table, searched only when the write has no markers.

    Raises:
        CommitError: The instant is completed.
    """
    if instant.is_completed:
        raise CommitError(
            f"instant {instant.time} is completed and cannot be rolled back",
            "t.rollback(…) takes the newest completed write back, t.restore(…) all that came after one.",
        )
    action = instant.pending_action or instant.action
    marked = files_of_write(storage, instant.time)
    if marked is not None:
        return RollbackPlan(instant.time, action, _by_partition(marked))
    return RollbackPlan(instant.time, action, _search(storage, instant.time, partitions), listed=True)


def _by_partition(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    files: dict[str, list[str]] = {}
    for path in paths:
        partition, _, name = path.rpartition("/")
        files.setdefault(partition, []).append(name)
    return {partition: tuple(names) for partition, names in files.items()}


def _search(storage: Storage, instant: str, partitions: Sequence[str]) -> dict[str, tuple[str, ...]]:
    files: dict[str, tuple[str, ...]] = {}
    for partition, entries in zip(partitions, at_once(storage.list, partitions, storage), strict=True):
        names = tuple(e.name for e in entries if not e.is_folder and _instant_of(e.name) == instant)
        if names:
            files[partition] = names
    return files


def _instant_of(name: str) -> str | None:
    parsed = parse_base_file(name) or parse_log_file(name)
    return parsed.instant if parsed else None


def execute(
    storage: Storage,
    timeline: Timeline,
    times: InstantGenerator,
    the_plan: RollbackPlan,
    *,
    time: str | None = None,
    has_metadata: bool = True,
) -> RollbackOutcome:
    """Carry a plan out. The caller holds the table lock.

    Args:
        storage: Rooted at the table.
        timeline: As listed under the lock.
        times: Makes the instants.
        the_plan: From `plan`, or from `pending_plan` for a rollback that died.
        time: Requested time of that rollback; None starts a new one.
        has_metadata: The table has a metadata table.
    """
    refuse_files_of_others((join(p, name) for p, names in the_plan.files.items() for name in names), the_plan.instant)
    writer = TimelineWriter(storage, timeline.folder)
    if time is None:
        time = times.next(timeline.last_time)
        _request(storage, writer, time, the_plan)
    elif (found := timeline.get(time, Action.ROLLBACK)) is not None and found.state is State.REQUESTED:
        writer.create_inflight(time, Action.ROLLBACK)
    _withdraw(writer, timeline, the_plan)
    deleted = _delete(storage, the_plan)
    writer.delete_pending(the_plan.instant, the_plan.action, State.INFLIGHT)
    if has_metadata:
        roll_back_metadata(storage, the_plan.instant, time, times)
        delete_marked_metadata(storage, the_plan.instant)
    deleted = _without_traces(storage, the_plan, deleted)
    _withdraw_late(storage, timeline.folder, the_plan)
    # Last: while it is there nobody else takes the instant, whose heartbeat and markers would have been removed here.
    writer.delete_pending(the_plan.instant, the_plan.action, State.REQUESTED)
    if the_plan.action in ACTIONS:  # whoever was to run it may have begun meanwhile, see `TimelineWriter.begin_planned`
        writer.delete_pending(the_plan.instant, the_plan.action, State.INFLIGHT)
    completion = times.next(time, timeline.last_time)
    outcome = encode_rollback_metadata(without_user(storage.root), time, the_plan.instant, the_plan.action, deleted)
    writer.complete(time, Action.ROLLBACK, completion, outcome)
    return RollbackOutcome(time, the_plan, sum(len(names) for names in deleted.values()))


def _request(storage: Storage, writer: TimelineWriter, time: str, the_plan: RollbackPlan) -> None:
    """Store the plan, so that whoever finds the rollback dead can run it again."""
    stored = encode_rollback_plan(without_user(storage.root), the_plan.instant, the_plan.action, the_plan.files)
    writer.create_requested(time, Action.ROLLBACK, stored)
    writer.create_inflight(time, Action.ROLLBACK)


def _withdraw(writer: TimelineWriter, timeline: Timeline, the_plan: RollbackPlan) -> None:
    """Delete the completed file of a write that has one: from here on nobody sees it."""
    for found in (*timeline.completed, *timeline.undone):
        if found.is_completed and (found.time, found.action) == (the_plan.instant, the_plan.action.completed_as):
            writer.delete_completed(found)


def _delete(storage: Storage, the_plan: RollbackPlan) -> dict[str, list[str]]:
    """Delete the data files of the plan; those that were there, by partition path."""
    named = [(partition, name, join(partition, name)) for partition, names in the_plan.files.items() for name in names]
    gone = set(delete_files(storage, [path for *_, path in named]))
    deleted: dict[str, list[str]] = {partition: [] for partition in the_plan.files}
    for partition, name, path in named:
        if path in gone:
            deleted[partition].append(name)
    return deleted


def _without_traces(storage: Storage, the_plan: RollbackPlan, deleted: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Remove what else the write left beside its files, and files that came late; all files that are gone.

    Before the end, because afterwards nobody looks for them; a rollback that is run again goes by its plan.
    """
    Heartbeat(storage, the_plan.instant).stop()
    all_deleted = _with_late_files(storage, the_plan.instant, deleted)
    if the_plan.action in (Action.CLUSTERING, Action.REPLACE_COMMIT):
        forget_rings(storage, [the_plan.instant])
        forget_rules(storage, [the_plan.instant])
    remove_markers(storage, the_plan.instant)
    return all_deleted


def _withdraw_late(storage: Storage, folder: str, the_plan: RollbackPlan) -> None:
    """Remove what the write published while it was rolled back."""
    for entry in storage.list(folder):
        file = parse_instant_name(entry.name)
        if file is None or file.state is not State.COMPLETED:
            continue
        if (file.time, file.action) == (the_plan.instant, the_plan.action.completed_as):
            storage.delete(entry.path)


def _with_late_files(storage: Storage, instant: str, deleted: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Delete what tasks of the write finished meanwhile; what is finished from now on, its task deletes (see PlainWrite).

    Spark gives a write up while some of its tasks still run.
    """
    found = {partition: list(names) for partition, names in deleted.items()}
    for path in delete_late_files(storage, instant):
        partition, _, name = path.rpartition("/")
        if name not in found.get(partition, ()):
            found.setdefault(partition, []).append(name)
    return found


def pending_plan(timeline: Timeline, rollback: Instant) -> RollbackPlan:
    """The plan of a rollback that was requested and not completed.

    Raises:
        HudiError: Its requested file holds no plan.
    """
    records = decode_container(timeline.pending_bytes(rollback), rollback.file_name, ("HoodieRollbackPlan",))
    target = rollback_target(records[0]) if records else None
    if target is None:
        raise HudiError(f"rollback {rollback.time} has no plan", "Delete its requested and inflight files and write again.")
    record = records[0]
    files: dict[str, tuple[str, ...]] = {}
    for request in record["RollbackRequests"] or ():
        names = tuple(path.rpartition("/")[2] for path in request["filesToBeDeleted"])
        if names:
            files[request["partitionPath"]] = (*files.get(request["partitionPath"], ()), *names)
    return RollbackPlan(*target, files)
