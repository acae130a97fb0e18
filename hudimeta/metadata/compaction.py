"""Compaction of the metadata table: every file group's logs are merged into a new base file, now and then, by a writer.

The instant T of a compaction must lie after the completion of every log that it merges and before the completion of every log
that it does not, because readers put a log on top of a base file by exactly that comparison. Writers of the data table complete
their delta commits under the table lock, and a compaction runs under it as well, so a fresh instant is right. It must not run
while a delta commit is completed whose data commit is not: such a log would be merged although readers must not see it.

Others wait for the lock: so what is small is merged before it is taken, and brought on its way to the store. Under it that gets
its names when only delta commits came meanwhile, which lie on top of it.
The plan is stored first; a compaction that died is run again and gives the same files under the same names. Where its plan does
not fit any more, because logs were written after it, it is cancelled: a later instant will take them all.

A write compacts after it was published, never before: Apache Hudi refuses to take a write back whose instant lies before the
last compaction of the metadata table, and so none may be pending that could still die.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudimeta.engine import Engine
from hudimeta.formats.avro.commit_metadata import encode_commit_metadata
from hudimeta.formats.avro.container import encode_container
from hudimeta.formats.avro.schemas import REQUESTED_REPLACE_METADATA
from hudimeta.metadata import group_merges
from hudimeta.metadata.group_files import FileGroup, GroupBaseFile
from hudimeta.metadata.group_merges import NamedGroup
from hudimeta.metadata.metadata_commits import FEWER_KEY
from hudimeta.metadata.metadata_table import MetadataTable
from hudimeta.metadata.own_instants import compaction_instant
from hudimeta.metadata.record import schema_text
from hudimeta.metadata.rollback import METADATA_ROOT, remove_files
from hudimeta.metadata.writer import MetadataWriter
from hudimeta.storage import NewFile, Staged, Storage
from hudimeta.table.compaction_plan import PlannedSlice, decode_compaction_plan, encode_compaction_plan
from hudimeta.timeline import InstantGenerator, TimelineWriter
from hudimeta.types import Action, Instant, Operation, State

__all__ = [
    "MetadataCompactionPlan",
    "PreparedCompaction",
    "commit_of",
    "compact",
    "falls_to",
    "fresh_deltas",
    "is_due",
    "is_enough",
    "pending_compaction",
    "plan",
    "prepare",
    "replacement_of",
    "replacement_plan",
    "resume",
]

_MEBIBYTE = 1 << 20

OVERDUE = 3
"""After so many times the wanted number of delta commits a compaction no longer waits for pending writes to end."""

MERGED_BEFORE_BYTES = 64 << 20
"""What goes beyond is not kept in memory until the lock is there, but merged under it."""

IDLE_COMPACTIONS = 10
"""A group without logs is written anew by the compaction so many after its last: the commit that names its base file may not
be archived before, because nothing else tells where that file is."""

SMALL_IDLE_COMPACTIONS, SMALL_BYTES = 3, 1 << 20
"""The same of a group whose base file is so small that writing it costs less than a longer timeline costs every reader."""


@dataclass(frozen=True)
class MetadataCompactionPlan:
    """The file groups to compact, by metadata partition."""

    groups: Sequence[NamedGroup]

    def slices(self) -> tuple[PlannedSlice, ...]:
        """What its requested file names."""
        return tuple(
            PlannedSlice(
                partition,
                group.file_id,
                group.base.instant if group.base else group.logs[0].instant,
                group.base.path.rpartition("/")[2] if group.base else None,
                tuple(log.path.rpartition("/")[2] for log in group.logs),
                _metrics(group),
            )
            for partition, group in self.groups
        )

    def encode(self) -> bytes:
        """As the Avro container in the requested file."""
        return encode_compaction_plan(self.slices())


def _metrics(group: FileGroup) -> dict[str, float]:
    """What Apache Hudi reads of a plan that it runs in the place of a writer of ours that died; it fails without."""
    logs, base = sum(log.size or 0 for log in group.logs), (group.base.size or 0) if group.base else 0
    return {
        "TOTAL_LOG_FILES": float(len(group.logs)),
        "TOTAL_LOG_FILES_SIZE": float(logs),
        "TOTAL_IO_READ_MB": float((base + logs) // _MEBIBYTE),
        "TOTAL_IO_WRITE_MB": float(base // _MEBIBYTE),
        "TOTAL_IO_MB": float((2 * base + logs) // _MEBIBYTE),
    }


def fresh_deltas(table: MetadataTable) -> list[Instant]:
    """Delta commits that were completed since the last compaction."""
    timeline = table.timeline
    since = max((i.time for i in timeline.writes if i.action is Action.COMMIT), default="")
    return [i for i in timeline.writes_between(since) if i.action is Action.DELTA_COMMIT]


def is_due(table: MetadataTable, after: int) -> bool:
    """True when at least `after` delta commits were completed since the last compaction, none of them is in doubt, and no
    write is pending (or too many were at every try). Nor may a log compaction be, which the next write takes back.
    """
    if any(i.action is Action.LOG_COMPACTION for i in table.timeline.pending):
        return False
    fresh = fresh_deltas(table)
    pending = {i.time for i in table.data_timeline.pending_writes}
    if any(i.time in pending for i in fresh):
        return False
    return is_enough(len(fresh), after, bool(pending))


def is_enough(fresh: int, after: int, pending: bool) -> bool:
    """Whether so many delta commits are worth a compaction, while writes are pending or not."""
    return fresh >= max(1, after) * (OVERDUE if pending else 1)


def falls_to(fresh: int, after: int, pending: bool) -> bool:
    """Whether the writer of the last of so many delta commits is to compact them.

    All writers would merge the same, and one of them publish it. So it falls to whose commit makes it due, and to another one
    now and then, because that one may have died, or found that a write is pending.
    """
    over = fresh - max(1, after)
    return is_enough(fresh, after, pending) and over % max(1, after // 2) == 0


def pending_compaction(table: MetadataTable) -> Instant | None:
    """A compaction that was planned and not completed."""
    return next((i for i in table.timeline.pending if i.action is Action.COMPACTION), None)


def plan(table: MetadataTable) -> MetadataCompactionPlan:
    """All file groups that have logs, and those that have been idle for so long that they hold up archival."""
    compactions = [i.time for i in table.timeline.writes if i.action is Action.COMMIT]

    def is_stale(base: GroupBaseFile) -> bool:
        small = base.size is not None and base.size <= SMALL_BYTES
        most = SMALL_IDLE_COMPACTIONS if small else IDLE_COMPACTIONS
        return len(compactions) >= most and base.instant < compactions[-most]

    def wanted(group: FileGroup) -> bool:
        return bool(group.logs) or (group.base is not None and is_stale(group.base))

    groups = [(name, group) for name in table.ready for group in table.named_groups(name, surely=True)]
    return MetadataCompactionPlan([(name, group) for name, group in groups if wanted(group)])


@dataclass(frozen=True)
class PreparedCompaction:
    """A compaction of which nobody sees anything yet.

    Attributes:
        table: The metadata table as it was.
        instant: Of the compaction.
        staged: Its announcement, and the base files that are made.
        stats: Write stats of these.
        left: File groups of which none is made yet.
    """

    table: MetadataTable
    instant: str
    staged: Staged
    stats: Sequence[Mapping[str, Any]]
    left: Sequence[NamedGroup]

    def close(self) -> None:
        """Let go what was not published."""
        self.staged.close()

    def fits(self, table: MetadataTable) -> bool:
        """Whether the logs that it merges still are all those below its instant.

        Nothing was undone or laid out anew since, and all that came to the metadata table, or counts only now because it was
        completed between two listings, are delta commits that were completed after the instant: their logs lie on top. One that
        was pending then was not merged, whatever became of it.
        """
        then = {i for i in self.table.timeline.instants if i.is_completed or i.action is not Action.DELTA_COMMIT}
        now = set(table.timeline.instants)
        counted, counts = set(self.table.delta_commits), set(table.delta_commits)
        return (
            table.is_laid_out_as(self.table)
            and then <= now
            and counted <= counts
            and all(i.action is Action.DELTA_COMMIT for i in now - then)
            and all((i.completion or "") > self.instant for i in counts - counted)
            and table.data_timeline.get(self.instant) is None
        )


def prepare(storage: Storage, table: MetadataTable, writer: MetadataWriter, times: InstantGenerator) -> PreparedCompaction:
    """Merge what a compaction is about; no lock is needed. What is prepared is to be closed.

    Args:
        storage: Rooted at the data table.
        table: The metadata table.
        writer: Knows the layout.
        times: Makes instants.
    """
    the_plan, instant = plan(table), compaction_instant(table, times)
    before = _first_of(the_plan.groups, MERGED_BEFORE_BYTES)
    merged = group_merges.merge_in_memory(storage, table, instant, writer.version, the_plan.groups[:before])
    begun = _timeline(storage, table).begun_files(instant, Action.COMPACTION, the_plan.encode())
    staged = storage.sub(METADATA_ROOT).stage([*begun, *(NewFile(one.stat["path"], one.data) for one in merged)])
    return PreparedCompaction(table, instant, staged, [one.stat for one in merged], the_plan.groups[before:])


def _first_of(groups: Sequence[NamedGroup], most: int) -> int:
    """How many groups it takes until their files have so many bytes, as they are stored."""
    size = 0
    for number, (_, group) in enumerate(groups):
        if size >= most:
            return number
        size += group_merges.stored_size(group)
    return len(groups)


def compact(
    storage: Storage,
    table: MetadataTable,
    writer: MetadataWriter,
    times: InstantGenerator,
    prepared: PreparedCompaction,
    engine: Engine,
) -> None:
    """Compact the metadata table. The caller holds the table lock.

    Args:
        storage: Rooted at the data table.
        table: The metadata table, opened under the lock.
        writer: Knows the layout.
        times: Makes instants.
        prepared: What fits that table.
        engine: Where file groups are merged that are not yet.
    """
    _timeline(storage, table).publish_begun(prepared.instant, prepared.staged)
    stats = group_merges.merge_and_put(engine, storage, prepared.table, prepared.instant, writer.version, prepared.left)
    _complete(storage, table, writer, times, prepared.instant, [*prepared.stats, *stats])


def resume(
    storage: Storage, table: MetadataTable, writer: MetadataWriter, times: InstantGenerator, begun: Instant, engine: Engine
) -> bool:
    """Finish a compaction that died, or cancel it when its plan is not that of today; True when it was finished.

    Args:
        storage: Rooted at the data table.
        table: The metadata table, opened under the lock.
        writer: Knows the layout.
        times: Makes instants.
        begun: From `pending_compaction`.
        engine: Where file groups are merged.
    """
    timeline, the_plan = _timeline(storage, table), plan(table)
    if _files_by_group(decode_compaction_plan(table.timeline.plan(begun))) != _files_by_group(the_plan.slices()):
        remove_files(storage, begun.time)
        timeline.delete_pending(begun.time, Action.COMPACTION, State.INFLIGHT)
        timeline.delete_pending(begun.time, Action.COMPACTION, State.REQUESTED)
        return False
    if begun.state is State.REQUESTED:
        timeline.create_inflight(begun.time, Action.COMPACTION)
    remove_files(storage, begun.time)  # one that gave an index more file groups wrote some of which the plan says nothing
    stats = group_merges.merge_and_put(engine, storage, table, begun.time, writer.version, the_plan.groups)
    _complete(storage, table, writer, times, begun.time, stats)
    return True


def _files_by_group(slices: Iterable[PlannedSlice]) -> dict[tuple[str, str], tuple[str | None, frozenset[str]]]:
    return {(one.partition_path, one.file_id): (one.base_file, frozenset(one.log_files)) for one in slices}


def _complete(
    storage: Storage,
    table: MetadataTable,
    writer: MetadataWriter,
    times: InstantGenerator,
    instant: str,
    stats: Sequence[Mapping[str, Any]],
) -> None:
    completion = times.next(instant, table.timeline.last_time)
    _timeline(storage, table).complete(instant, Action.COMPACTION, completion, commit_of(writer, stats))


def _timeline(storage: Storage, table: MetadataTable) -> TimelineWriter:
    return TimelineWriter(storage.sub(METADATA_ROOT), table.timeline.folder)


def commit_of(writer: MetadataWriter, stats: Iterable[Mapping[str, Any]]) -> bytes:
    """The content of a compaction's completed file; `stats` as `group_merges` gives them."""
    return encode_commit_metadata(_record_of(writer, stats, Operation.COMPACT))


def replacement_of(
    writer: MetadataWriter, stats: Iterable[Mapping[str, Any]], partition: str, gone: Sequence[str], superseded: Sequence[str]
) -> bytes:
    """The content of a completed replacecommit that gives an index fewer file groups.

    Args:
        writer: Knows the layout.
        stats: Of the base files of the groups that stay, as `group_merges` gives them.
        partition: Metadata partition.
        gone: Ids of the groups that go.
        superseded: Names of all files that are out of use from then on.
    """
    record = _record_of(writer, stats, Operation.INSERT_OVERWRITE)
    record["extraMetadata"][FEWER_KEY] = json.dumps(sorted(superseded))
    return encode_commit_metadata(record | {"partitionToReplaceFileIds": {partition: list(gone)}}, replace=True)


def replacement_plan() -> bytes:
    """The requested file of such a replacecommit: whose it is, and nothing else."""
    ours = {
        "operationType": Operation.INSERT_OVERWRITE.value,
        "clusteringPlan": None,
        "extraMetadata": {FEWER_KEY: ""},
        "version": 1,
    }
    return encode_container(REQUESTED_REPLACE_METADATA, [ours])


def _record_of(writer: MetadataWriter, stats: Iterable[Mapping[str, Any]], operation: Operation) -> dict[str, Any]:
    by_partition: dict[str, list[Mapping[str, Any]]] = {}
    for stat in stats:
        by_partition.setdefault(stat["partitionPath"], []).append(stat)
    return {
        "partitionToWriteStats": by_partition,
        "compacted": operation is Operation.COMPACT,
        "operationType": operation.value,
        "extraMetadata": {"schema": schema_text(writer.version, meta_fields=False)},
    }
