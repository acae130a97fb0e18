"""The action `indexing` on the data timeline: who makes an index says so there, before and after.

An index that is built bears the instant of its `indexing` action: its base files have that instant in the metadata table, so
that what older instants ever wrote to a partition of the same name lies below them. The completed action names each metadata
partition, and says of a record or secondary index that it lacks no row.

An index is built under the table lock, or beside writers by a plan that does not name its maker. Whoever holds the lock and
sees a pending action that names us knows that its process died; a plan without a maker waits for whoever runs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hudimeta.errors import NotFound
from hudimeta.formats.avro.container import encode_container
from hudimeta.formats.avro.schemas import INDEX_COMMIT_METADATA, INDEX_PLAN
from hudimeta.metadata.completeness import proof_of
from hudimeta.metadata.index_definitions import DEFAULT_PATH, decode_definitions, encode_definitions
from hudimeta.metadata.metadata_commits import gives_fewer_groups
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.metadata.strays import MAKER_KEY, is_ours, partitions_of, waits
from hudimeta.storage import Storage, is_on_disk
from hudimeta.storage.at_once import delete_files
from hudimeta.table.properties import TableProperties, load
from hudimeta.timeline import InstantGenerator, Timeline, TimelineWriter, one_earlier
from hudimeta.timeline.naming import LAYOUT_V1, pending_name
from hudimeta.types import Action, Instant, State

__all__ = [
    "announce",
    "begin_run",
    "complete",
    "discard_dead",
    "encode_index_plan",
    "forget_in_metadata",
    "indexing_instant",
    "partitions_of",
    "remove_index",
    "remove_index_files",
    "remove_unnamed",
    "says_who_runs",
    "take_back_build",
    "waits",
    "withdraw",
]


def indexing_instant(storage: Storage, timeline: Timeline, times: InstantGenerator) -> str:
    """An instant for an indexing action: a free one before the newest other action. It counts by its completion.

    Where the newest instant is an indexing action, Apache Hudi begins all indexes that its next write makes at that instant,
    and takes back each for the next: the first has no base file then, and statistics of partitions know of new files alone.
    Where nothing is before it, and in version 6, which knows no completion times, it is the newest.

    Args:
        storage: Rooted at the table.
        timeline: Listed under the table lock.
        times: Makes instants.
    """
    inside = Timeline.load(storage.sub(METADATA_ROOT), place=METADATA_ROOT)
    done = [i.time for i in timeline.completed if i.action is not Action.INDEXING]
    taken = {i.time for i in (*timeline.instants, *inside.instants)}
    instant = None if timeline.layout == LAYOUT_V1 or not done else one_earlier(max(done))
    while instant is not None and instant in taken:
        instant = one_earlier(instant)
    return instant or times.next(timeline.last_time, inside.last_time)


def announce(storage: Storage, timeline: Timeline, instant: str, partitions: Iterable[str], upto: str) -> None:
    """Put an indexing action on the timeline, requested and begun.

    Args:
        storage: Rooted at the table.
        timeline: Of the table.
        instant: Of the action.
        partitions: Metadata partitions that are built or judged.
        upto: The newest write that they cover.

    Raises:
        InstantExists: A writer chose the same instant just now; nothing is on the timeline.
    """
    plan = {"version": 1, "indexPartitionInfos": [_info(name, upto, {MAKER_KEY: "hudimeta"}) for name in partitions]}
    writer = TimelineWriter(storage, timeline.folder)
    writer.create_alone(instant, Action.INDEXING, encode_container(INDEX_PLAN, [plan]))
    writer.create_inflight(instant, Action.INDEXING)


def encode_index_plan(partitions: Iterable[str], upto: str) -> bytes:
    """A plan that waits for whoever runs it, as its requested file has it.

    Args:
        partitions: Metadata partitions to build.
        upto: The newest write when it was planned.
    """
    plan = {"version": 1, "indexPartitionInfos": [_info(name, upto, {}) for name in partitions]}
    return encode_container(INDEX_PLAN, [plan])


def take_back_build(storage: Storage, timeline: Timeline, instant: str, partitions: Iterable[str]) -> None:
    """Remove what a run of such a plan wrote that died; the plan and the definitions stay. The caller holds the table lock.

    Args:
        storage: Rooted at the table.
        timeline: Listed under the lock.
        instant: Of the plan.
        partitions: That it names.
    """
    ready = load(storage).metadata_partitions
    for name in partitions:
        if name not in ready:
            remove_index_files(storage, name)
    forget_in_metadata(storage, timeline, instant)


def complete(
    storage: Storage,
    timeline: Timeline,
    times: InstantGenerator,
    instant: str,
    partitions: Mapping[str, bool],
    upto: str,
    version: int,
) -> str:
    """Complete an indexing action; returns the completion time.

    Args:
        storage: Rooted at the table.
        timeline: Of the table.
        times: Makes the completion time.
        instant: Of the action.
        partitions: Metadata partitions, and whether each is proven to lack no row.
        upto: The newest write that the partitions cover.
        version: Of the table.
    """
    ours = {MAKER_KEY: "hudimeta"}
    infos = [_info(name, upto, ours | (proof_of([name], version) if proven else {})) for name, proven in partitions.items()]
    record = {"version": 1, "operationType": None, "indexPartitionInfos": infos}
    completion = times.next(instant, timeline.last_time)
    content = encode_container(INDEX_COMMIT_METADATA, [record])
    TimelineWriter(storage, timeline.folder).complete(instant, Action.INDEXING, completion, content)
    return completion


def _info(partition: str, upto: str, extra: dict[str, str]) -> dict[str, Any]:
    return {"version": 1, "metadataPartitionPath": partition, "indexUptoInstant": upto, "extraMetadata": extra}


def discard_dead(storage: Storage, timeline: Timeline) -> tuple[str, ...]:
    """Take back the indexing actions of ours that died; returns their instants. The caller holds the table lock.

    Indexes that are complete, but that the table's properties do not name yet, are removed as well. So is what a maker left
    that stood still while it was taken back, and then announced that it was at work, or that it was done. A plan that one of us
    ran waits again.

    Args:
        storage: Rooted at the table.
        timeline: Listed under the lock.
    """
    pending = [i for i in timeline.pending if i.action is Action.INDEXING]
    late = [i for i in pending if pending_name(i.time, i.action, State.REQUESTED) not in timeline.files_of(i)]
    planned = [i for i in pending if i not in late and is_ours(timeline.plan(i))]
    runs = [i for i in pending if i.state is State.INFLIGHT and i not in late + planned and _runs_here(timeline, i)]
    done = _done_too_late(timeline)
    dead = [*late, *planned, *runs, *done]
    if not dead:
        return ()
    properties = load(storage)
    for instant in late:
        withdraw(storage, timeline, instant.time)
    for instant in planned:
        for name in partitions_of(timeline.plan(instant)):
            if name not in properties.metadata_partitions:
                remove_index(storage, properties, name)
        forget_in_metadata(storage, timeline, instant.time)
        withdraw(storage, timeline, instant.time)
    for instant in runs:
        take_back_build(storage, timeline, instant.time, partitions_of(timeline.plan(instant)))
        TimelineWriter(storage, timeline.folder).delete_pending(instant.time, Action.INDEXING, State.INFLIGHT)
    for instant in done:  # of which everything else was taken back
        TimelineWriter(storage, timeline.folder).delete_completed(instant)
    return tuple(i.time for i in dead)


def _done_too_late(timeline: Timeline) -> list[Instant]:
    """Completed actions of ours without their earlier files, among writes that are not archived."""
    first = timeline.first_active_write or ""
    return [
        i
        for i in timeline.completed
        if i.action is Action.INDEXING
        and i.completed_at > first
        and pending_name(i.time, i.action, State.REQUESTED) not in timeline.files_of(i)
        and is_ours(timeline.metadata(i))
    ]


def begin_run(storage: Storage, timeline: Timeline, instant: str) -> None:
    """Say that a plan which waited is run by us, under the lock: whoever holds that next and sees this knows that we died."""
    TimelineWriter(storage, timeline.folder).create_inflight(instant, Action.INDEXING, MAKER_KEY.encode())


def _runs_here(timeline: Timeline, instant: Instant) -> bool:
    return says_who_runs(timeline.pending_bytes(instant, State.INFLIGHT))


def says_who_runs(data: bytes | None) -> bool:
    """Whether this is what an inflight file holds of a plan that we run or ran, see `begin_run`."""
    return data == MAKER_KEY.encode()


def remove_unnamed(storage: Storage, timeline: Timeline) -> None:
    """Remove what we built and the table's properties do not name: whoever built it died in between. The caller holds the lock.

    Args:
        storage: Rooted at the table.
        timeline: Listed under the lock.
    """
    ours = [i for i in timeline.completed if i.action is Action.INDEXING and is_ours(timeline.metadata(i))]
    if not ours:
        return
    properties = load(storage)
    named = {*properties.metadata_partitions, *properties.metadata_partitions_inflight}
    there = {entry.name for entry in storage.list(METADATA_ROOT) if entry.is_folder}
    for name in sorted({name for i in ours for name in partitions_of(timeline.metadata(i))} & there - named):
        remove_index(storage, properties, name)


def withdraw(storage: Storage, timeline: Timeline, instant: str) -> None:
    """Take an indexing action off the timeline; see `announce`."""
    writer = TimelineWriter(storage, timeline.folder)
    writer.delete_pending(instant, Action.INDEXING, State.INFLIGHT)
    writer.delete_pending(instant, Action.INDEXING, State.REQUESTED)


def remove_index(storage: Storage, properties: TableProperties, partition: str) -> None:
    """Remove the definition and the files of an index that the table's properties do not name."""
    path = properties.index_defs_path or DEFAULT_PATH
    try:
        definitions = decode_definitions(storage.read(path), path)
    except NotFound:
        definitions = {}
    if definitions.pop(partition, None) is not None:
        storage.put(path, encode_definitions(definitions))
    _forget_taken_out(storage, partition)
    remove_index_files(storage, partition)


def remove_index_files(storage: Storage, partition: str) -> None:
    """Remove the files of an index, and only those that are there now.

    Whoever stands still before its request removes it late, when another one may have built the index: of that no file may go.
    """
    folder = f"{METADATA_ROOT}/{partition}"
    if is_on_disk(storage):
        storage.delete_folder(folder)  # nobody takes a lock over there whose holder lives
        return
    delete_files(storage, [one.path for one in storage.list(folder) if not one.is_folder])


def _forget_taken_out(storage: Storage, partition: str) -> None:
    """Take off the metadata table's timeline what took file groups out of an index: one that is made later has their names."""
    inner = storage.sub(METADATA_ROOT)
    own = Timeline.load(inner, place=METADATA_ROOT)
    writer = TimelineWriter(inner, own.folder)
    for one in own.writes:
        if gives_fewer_groups(own, one) and partition in own.metadata(one)["partitionToReplaceFileIds"]:
            writer.delete_completed(one)
            writer.delete_pending(one.time, Action.REPLACE_COMMIT, State.INFLIGHT)
            writer.delete_pending(one.time, Action.REPLACE_COMMIT, State.REQUESTED)


def forget_in_metadata(storage: Storage, timeline: Timeline, instant: str) -> None:
    """Take what an indexing action wrote off the metadata table's timeline.

    A maker that stood still for longer than its lock lasted may have chosen its instant before a writer that has it, too: then
    what is there is the writer's, if that has begun.
    """
    others = [i for i in timeline if i.time == instant and i.action is not Action.INDEXING]
    if any(i.state is not State.REQUESTED for i in others):
        return
    inner = storage.sub(METADATA_ROOT)
    own = Timeline.load(inner, place=METADATA_ROOT)
    writer = TimelineWriter(inner, own.folder)
    found = own.get(instant, Action.DELTA_COMMIT)
    if found is not None and found.is_completed:
        writer.delete_completed(found)
    if found is not None:
        writer.delete_pending(instant, Action.DELTA_COMMIT, State.INFLIGHT)
        writer.delete_pending(instant, Action.DELTA_COMMIT, State.REQUESTED)
