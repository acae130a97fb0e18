"""The check before publishing: did somebody change what this write rests on?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hudimeta.cached import cached_property
from hudimeta.errors import ClusteringPending, CommitConflict
from hudimeta.metering import Metric, meter_of
from hudimeta.snapshot.planned_groups import groups_of_clustering
from hudimeta.storage import Storage
from hudimeta.timeline import Timeline
from hudimeta.timeline.content import latest_schema, schema_of
from hudimeta.types import COPYING_OPERATIONS, Action, FileGroupId, Instant, Operation

__all__ = [
    "ChangedFile",
    "TableChange",
    "check_clusterings",
    "check_conflicts",
    "check_schema",
    "conflicts_metered",
    "writes_since",
]


_WAIT = (
    "Nothing was published. Run again, new rows go elsewhere; to change or delete rows that are stored there, first finish or "
    "cancel that clustering: t.cluster(), or t.services.clustering.cancel(…)."
)


@contextlib.contextmanager
def conflicts_metered(storage: Storage) -> Iterator[None]:
    """Tell a table's meter whether the checks of a with block find a conflict."""
    meter = meter_of(storage)
    try:
        yield
    except CommitConflict:
        meter.add(Metric.CONFLICT_FAILURE)
        raise
    meter.add(Metric.CONFLICT_SUCCESS)


def writes_since(timeline: Timeline, seen: frozenset[str]) -> list[Instant]:
    """Completed writes that were not completed when `seen` was taken."""
    return [instant for instant in timeline.writes if instant.time not in seen]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One file of a completed write.

    Attributes:
        group: Its file group.
        name: Of the file.
        size: Bytes, as the commit states them.
        adds_rows: It holds rows whose keys its file group did not have before.
    """

    group: FileGroupId
    name: str
    size: int
    adds_rows: bool


@dataclass(frozen=True)
class TableChange:
    """What a completed write did to file groups.

    Attributes:
        time: Its requested time.
        files: Its files.
        replaced: File groups that it took out of the table.
        copies: It is a service, which brings no row of its own.
        merges_logs: It is a log compaction, on which later log files lie as on what it merged.
        compacts: It is a compaction, whose base files log files that are published later lie on.
    """

    time: str
    files: tuple[ChangedFile, ...]
    replaced: frozenset[FileGroupId]
    copies: bool
    merges_logs: bool = False
    compacts: bool = False

    @classmethod
    def of(cls, timeline: Timeline, instant: Instant) -> TableChange:
        """As the commit's metadata tells."""
        metadata = timeline.metadata(instant)
        files = tuple(
            ChangedFile(
                FileGroupId(partition, stat["fileId"]),
                (stat["path"] or "").rpartition("/")[2],
                stat["fileSizeInBytes"] or 0,
                stat["prevCommit"] in (None, "null") or bool(stat["numInserts"]),
            )
            for partition, stats in metadata["partitionToWriteStats"].items()
            for stat in stats
        )
        gone = metadata["partitionToReplaceFileIds"].items()
        replaced = frozenset(FileGroupId(partition, file_id) for partition, ids in gone for file_id in ids)
        operation = metadata.get("operationType")
        merges_logs, compacts = operation == Operation.LOG_COMPACT.value, operation == Operation.COMPACT.value
        return cls(instant.time, files, replaced, operation in COPYING_OPERATIONS, merges_logs, compacts)

    @cached_property
    def groups(self) -> frozenset[FileGroupId]:
        """File groups that it changed, began or replaced."""
        return self.replaced if self.merges_logs else self.replaced | {file.group for file in self.files}

    @cached_property
    def extended(self) -> frozenset[FileGroupId]:
        """File groups whose slices a log compaction goes on with: nobody may have ended them meanwhile by a new base file."""
        return frozenset(file.group for file in self.files if self.merges_logs)

    @cached_property
    def grown(self) -> frozenset[str]:
        """Partitions to which it added rows; those that a compaction takes from logs were there before."""
        return frozenset(file.group.partition_path for file in self.files if file.adds_rows and not self.compacts)


def check_conflicts(
    timeline: Timeline,
    seen: frozenset[str],
    operation: str,
    changed: Iterable[FileGroupId],
    keyed_partitions: Iterable[str] | None = (),
    own: str = "",
) -> None:
    """Refuse to publish over another writer's work.

    Args:
        timeline: As listed under the table lock.
        seen: Completed writes that this write knew when it planned.
        operation: For the error.
        changed: File groups that this write rewrites or replaces.
        keyed_partitions: Partitions into which it inserts rows because no row of their key was there. Rows that another
            writer added to one of them meanwhile may have the same keys, which would then be doubled.
            None for all partitions: rows that were added anywhere would outlive an overwrite of the table.
        own: Instant of this write.

    Raises:
        CommitConflict: Both changed a file group, or both added rows to a partition in which keys are unique, or a pending
            clustering is going to replace a file group that this write changes.
    """
    mine, unique = set(changed), None if keyed_partitions is None else set(keyed_partitions)
    check_clusterings(timeline, operation, mine, own)
    for instant in writes_since(timeline, seen):
        change = TableChange.of(timeline, instant)
        both = sorted(_pairs(mine & change.groups))
        both += sorted((partition, "new rows") for partition in (change.grown if unique is None else unique & change.grown))
        if both:
            raise CommitConflict(operation, both, instant.time)


def check_clusterings(timeline: Timeline, operation: str, changed: Iterable[FileGroupId], own: str = "") -> None:
    """Refuse to change file groups that a pending clustering is going to replace. See `check_conflicts`."""
    mine = set(changed)
    for pending in timeline.pending:
        if (
            pending.action is Action.CLUSTERING
            and pending.time != own
            and (both := sorted(_pairs(mine & groups_of_clustering(timeline, pending))))
        ):
            raise ClusteringPending(operation, both, pending.time, _WAIT)


def check_schema(timeline: Timeline, seen: frozenset[str], operation: str, avro_schema: str, own_instant: str) -> None:
    """Refuse to publish over another writer's new columns: the newest commit's schema is the table's.

    Args:
        timeline: As listed under the table lock.
        seen: Completed writes that this write knew when it planned.
        operation: For the error.
        avro_schema: Schema that this write is going to publish.
        own_instant: Of this write.

    Raises:
        CommitConflict: Another writer changed the schema meanwhile, to one that is not this write's.
    """
    theirs = [(i, text) for i in writes_since(timeline, seen) if (text := schema_of(timeline.metadata(i)))]
    foreign = [(i, text) for i, text in theirs if text != avro_schema]
    if not foreign:
        return
    known = latest_schema((i for i in reversed(timeline.writes) if i.time in seen), timeline)
    for instant, text in foreign:
        # The table's schema is that of the latest instant: a new one must not stand before an old one.
        if known is None or text != known[1] or instant.time > own_instant:
            raise CommitConflict(operation, (), instant.time, what="the table's schema")


def _pairs(groups: Iterable[FileGroupId]) -> Iterable[tuple[str, str]]:
    return ((group.partition_path, group.file_id) for group in groups)
