"""Log compaction: the blocks of many log files of a slice become one, which stands for them; the base file stays as it is.

Readers of a slice that many small writes have appended to open one log file instead of many, for what the log holds and not for
what the whole slice holds. The block names the instants that it stands for; their files stay until the slice is compacted and
cleaned, so that moments before it can still be read. Rows keep their commit time and sequence number.

What is merged is the beginning of a log: never what follows a write that is still at work, whose rows would sort after what is
older than they are. A slice that ends before the log compaction is published, because it was compacted, clustered or rewritten,
is left out: its rows stand in the next slice already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hudimeta.commit.conflicts import (
    TableChange,
    writes_since,
)
from hudimeta.commit.coordinator import OpenWrite, Publication
from hudimeta.commit.planned_runs import cancel as cancel_plan
from hudimeta.commit.published_schema import published_schema
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.config import options as keys
from hudimeta.errors import CommitConflict, UnsupportedFeature
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.reports import Report, Reports
from hudimeta.services.plan_runs import put_plan, run_plans
from hudimeta.services.planned_slices import columns_at, reading, remove_leftovers, report_of
from hudimeta.slices.log_folding import LogFolder, LogStretch
from hudimeta.slices.read_task import ReadTask
from hudimeta.snapshot.file_slice import FileSlice, slices_of
from hudimeta.snapshot.planned_groups import groups_in_plans, groups_under_clustering, groups_under_compaction
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import engine_of_files
from hudimeta.table.compaction_plan import PlannedSlice, decode_compaction_plan, encode_compaction_plan
from hudimeta.table.file_names import WriteToken, parse_base_file, parse_log_file
from hudimeta.table.key_file import KeyFile
from hudimeta.timeline import Timeline, TimelineWriter
from hudimeta.types import Action, FileGroupId, Instant, Operation, State, TableType
from hudimeta.write.log_files import Deletes, LogContent, LogFileWriter
from hudimeta.write.table_files import TableFiles

__all__ = [
    "LogCompactionPlan",
    "cancel",
    "execute",
    "is_due",
    "log_compact",
    "may_be_due",
    "pending",
    "plan",
    "schedule",
    "size_of",
]

_BLOCKS_A_WRITE = 2
"""Of a slice, rows and deletes; only very large writes bring more."""
_WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)


@dataclass(frozen=True, repr=False)
class LogCompactionPlan(Report):
    """File slices whose logs are merged, each with the log files that are; prints as a list."""

    slices: tuple[FileSlice, ...]

    def __str__(self) -> str:
        lines = [f"merge the logs of {len(self.slices)} file slices"]
        lines += [
            f"  {join(s.partition_path, s.file_id)}: {len(s.log_files)} logs, {sum(s.log_sizes):,} bytes" for s in self.slices
        ]
        return "\n".join(lines)

    @property
    def size(self) -> int:
        """Bytes of the log files."""
        return sum(sum(one.log_sizes) for one in self.slices)

    def encode(self) -> bytes:
        """As the Avro container in the requested file."""
        return encode_compaction_plan(map(_planned_slice, self.slices), of_logs=True)


def size_of(record: Mapping[str, Any]) -> int:
    """About how many bytes of log files a plan in a requested file names."""
    return round(sum(one.metrics.get("TOTAL_LOG_FILES_SIZE") or 0 for one in decode_compaction_plan(record)))


def _planned_slice(one: FileSlice) -> PlannedSlice:
    logs = float(sum(one.log_sizes))
    metrics = {"TOTAL_LOG_FILES": float(len(one.log_files)), "TOTAL_LOG_FILES_SIZE": logs}
    return PlannedSlice(one.partition_path, one.file_id, one.base_instant, one.base_file, one.log_files, metrics)


def pending(timeline: Timeline) -> list[Instant]:
    """Log compactions that were planned and not completed, oldest first."""
    return [i for i in timeline.pending if (i.pending_action or i.action) is Action.LOG_COMPACTION]


def _oldest_writer(timeline: Timeline) -> str:
    """The oldest instant that may still bring log files; "" for none."""
    return min((i.time for i in timeline.pending if (i.pending_action or i.action) in _WRITES), default="")


def plan(session: WriteSession, snapshot: Snapshot) -> LogCompactionPlan:
    """The file slices whose logs have so many blocks as `hoodie.log.compaction.blocks.threshold` says.

    Left out are those in the plan of a pending service, and log files after those of a write that is still at work. The logs
    are read to count their blocks: large ones by their outlines.

    Raises:
        UnsupportedFeature: The table has no log files.
    """
    if session.properties.type is not TableType.MERGE_ON_READ:
        hint = "It has no log files; only merge-on-read tables need it."
        raise UnsupportedFeature("log compaction of a copy-on-write table", hint)
    taken, before = groups_in_plans(snapshot.timeline), _oldest_writer(snapshot.timeline)
    slices = [
        one
        for one in slices_of(snapshot.slices())
        if len(one.log_files) > 1 and FileGroupId(one.partition_path, one.file_id) not in taken
    ]
    if not slices:
        return LogCompactionPlan(())
    look = _Look(
        session.storage,
        reading(session, snapshot, snapshot.file_schema, snapshot.history),
        before,
        session.options.get(keys.LOG_BLOCKS),
    )
    found = engine_of_files(session.engine, session.storage, [sum(one.log_sizes) for one in slices]).map(look, slices)
    return LogCompactionPlan(tuple(one for one in found if one is not None))


@dataclass(frozen=True)
class _Look:
    """Finds what of a slice's log is worth merging; a value, so that it can run in another process."""

    storage: Storage
    task: ReadTask
    before: str
    threshold: int

    def __call__(self, one: FileSlice) -> FileSlice | None:
        stretch = LogFolder(self.task, self.storage).stretch(one, one.log_files, self.before)
        if not stretch.is_worth(self.threshold):
            return None
        last = max(block.instant for block in stretch.blocks)
        logs = [
            (name, size)
            for name, size in zip(one.log_files, one.log_sizes, strict=True)
            if (log := parse_log_file(name)) is not None and log.instant <= last
        ]
        return replace(one, log_files=tuple(name for name, _ in logs), log_sizes=tuple(size for _, size in logs))


def schedule(session: WriteSession, *, to_run: bool = False) -> str | None:
    """Put a log compaction on the timeline; returns its instant, None when no log has enough blocks.

    Args:
        session: The table.
        to_run: It is run next, see `Coordinator.plan`.
    """

    def encoded(snapshot: Snapshot) -> bytes | None:
        the_plan = plan(session, snapshot)
        return the_plan.encode() if the_plan.slices else None

    return put_plan(session, Action.LOG_COMPACTION, encoded, to_run=to_run)


def cancel(session: WriteSession, instant: str) -> None:
    """Take a log compaction that is on the timeline back: what it wrote goes, and its plan.

    Raises:
        CommitError: No such pending log compaction, or a process is running it.
    """
    patience = session.concurrency.patience_s
    cancel_plan(session.fenced, session.properties, session.lock, session.times, instant, Action.LOG_COMPACTION, patience)


def execute(session: WriteSession, instant: str) -> CommitReport:
    """Run a log compaction that is on the timeline.

    Raises:
        CommitError: No such pending log compaction, or another process is running it.
        CommitConflict: A slice ended while its log was merged; run it again.
    """
    with session.coordinator.running(instant, Action.LOG_COMPACTION) as (timeline, found):
        return _run(session, timeline, found)


def _run(session: WriteSession, timeline: Timeline, found: Instant) -> CommitReport:
    instant = found.time
    timings = Timings()
    mark = session.request_mark()
    snapshot = session.snapshot_at(timeline)
    remove_leftovers(session, instant)
    if found.state is State.REQUESTED:
        TimelineWriter(session.storage, timeline.folder).begin_planned(instant, Action.LOG_COMPACTION)
    planned = decode_compaction_plan(timeline.plan(found))
    works = _works(snapshot, planned, instant)
    schema, history = columns_at(session, snapshot, instant)
    writer = TableFiles(session, snapshot).log_writer(instant, schema)
    assert writer is not None, "the plan of a log compaction is made of log files"
    with timings.phase("merge"):
        merge = _Merge(session.storage, reading(session, snapshot, schema, history), writer, _oldest_writer(timeline))
        engine = engine_of_files(session.engine, session.storage, [sum(one.log_sizes) for _, one, _ in works])
        merged = [one for one in engine.map(merge, works) if one is not None]
    files = [file for one in merged for file in one.files]
    write = OpenWrite.of_plan(timeline, instant, Action.LOG_COMPACTION, Operation.LOG_COMPACT)
    stated = published_schema(schema, session.properties.name, history, instant)
    publication = Publication(files, schema, stated.avro, extra=stated.extra, known=snapshot.metadata, history=stated.history)
    settling = _SlicesGoOn(publication, write.seen, {one.group: one.newest for one in merged})
    with timings.phase("publish"):
        completion = session.coordinator.publish(write, replace(publication, settling=settling))
    left = len(planned) - len(merged)
    notes = (
        f"{sum(one.blocks for one in merged):,} log blocks merged",
        *([f"{left:,} file slices left out: they ended since, or writers are at work below"] if left else ()),
    )
    report = report_of(session, write, completion, files, timings, requests=session.requests_since(mark), notes=notes)
    return session.reported(report, write.action)


_Work = tuple[int, FileSlice, frozenset[str]]
"""A numbered slice as it is, and the names of the log files that may be merged."""


def _works(snapshot: Snapshot, planned: Sequence[PlannedSlice], instant: str) -> list[_Work]:
    """The planned slices that are still the newest of their file groups, and in no plan of another service."""
    by_group = {FileGroupId(one.partition_path, one.file_id): one for one in planned}
    busy = groups_under_compaction(snapshot.timeline) | groups_under_clustering(snapshot.timeline)
    works: list[_Work] = []
    for one in slices_of(snapshot.slices(sorted({group.partition_path for group in by_group}))):
        group = FileGroupId(one.partition_path, one.file_id)
        wanted = by_group.get(group)
        if wanted is not None and group not in busy and wanted.base_file == one.base_file:
            works.append((len(works), one, frozenset(wanted.log_files)))
    return works


@dataclass(frozen=True)
class _Merged:
    """What came of one slice: its new files, how many blocks they stand for, and the newest instant of those."""

    group: FileGroupId
    files: list[WrittenFile]
    blocks: int
    newest: str


@dataclass(frozen=True)
class _Merge:
    """Merges the log of a slice into new log files; a value, so that it can run in another process."""

    storage: Storage
    task: ReadTask
    writer: LogFileWriter
    before: str

    def __call__(self, work: _Work) -> _Merged | None:
        number, one, names = work
        folder = LogFolder(self.task, self.storage)
        stretch = folder.stretch(one, names, self.before)
        if not stretch.is_worth(0):
            return None
        group = FileGroupId(one.partition_path, one.file_id)
        contents = (LogContent(r.rows, Deletes(r.deleted, r.ordering), r.rows.num_rows) for r in folder.folded(stretch))
        below = KeyFile(
            one.partition_path, one.file_id, one.base_file or "", one.base_size, None, None, one.log_files, False, one.log_sizes
        )
        files = self.writer.append_merged(group, contents, stretch.instants, WriteToken(number), below)
        files[:1] = [replace(file, figures=_figures(one, stretch, files, folder.counts.log_records)) for file in files[:1]]
        return _Merged(group, files, len(stretch.blocks), max(stretch.instants))


def _figures(one: FileSlice, stretch: LogStretch, files: Sequence[WrittenFile], records: int) -> dict[str, int]:
    """What the stat of the first of a slice's files says of the log that was merged, as Apache Hudi counts."""
    merged = {block.path for block in stretch.blocks}
    sizes = [s for name, s in zip(one.log_files, one.log_sizes, strict=True) if join(one.partition_path, name) in merged]
    return {
        "totalLogRecords": records,
        "totalUpdatedRecordsCompacted": sum(file.rows + file.deleted for file in files),
        "totalLogBlocks": len(stretch.blocks),
        "totalLogFilesCompacted": len(sizes),
        "totalLogSizeCompacted": sum(sizes),
    }


@dataclass(frozen=True)
class _SlicesGoOn:
    """Sees to it that what a log compaction merged still lies where it was, below everything that others wrote meanwhile."""

    publication: Publication
    seen: frozenset[str]
    newest: Mapping[FileGroupId, str]

    def under_lock(self, timeline: Timeline) -> Publication:
        """See `Settling`."""
        ending = groups_under_compaction(timeline) | groups_under_clustering(timeline)
        self._refuse(self.newest.keys() & ending, "a pending service", "is going to change")
        for instant in writes_since(timeline, self.seen):
            self._refuse(self._crossed(TableChange.of(timeline, instant)), instant.time, "changed meanwhile")
        return self.publication

    def settle(self, timeline: Timeline) -> Publication:
        """See `Settling`."""
        return self.under_lock(timeline)

    @staticmethod
    def _refuse(met: Iterable[FileGroupId], winner: str, did: str) -> None:
        groups = sorted({(group.partition_path, group.file_id) for group in met})
        if groups:
            raise CommitConflict(Operation.LOG_COMPACT.value, groups, winner, "Run it again.", did=did)

    def _crossed(self, change: TableChange) -> Iterator[FileGroupId]:
        yield from change.replaced & self.newest.keys()
        for file in change.files:
            newest = self.newest.get(file.group)
            if newest is not None and (parse_base_file(file.name) is not None or change.time < newest):
                yield file.group


def log_compact(session: WriteSession, *, after_a_write: bool = False) -> Reports[CommitReport]:
    """Roll dead writes back, run what is pending, then plan and run a log compaction.

    Args:
        session: The table.
        after_a_write: The session's write has just been published, and rolled dead ones back as it began.
    """
    return run_plans(session, pending, schedule, execute, after_a_write=after_a_write)


def may_be_due(session: WriteSession, timeline: Timeline) -> bool:
    """False when `is_due` would say no on the timeline after one more delta commit: then that need not be listed."""
    return bool(pending(timeline)) or _blocks(timeline, 1) >= session.options.get(keys.LOG_BLOCKS)


def is_due(session: WriteSession, timeline: Timeline) -> bool:
    """True when a log may have come to have enough blocks since the last compaction of logs or slices, or one is planned."""
    return bool(pending(timeline)) or _blocks(timeline, 0) >= session.options.get(keys.LOG_BLOCKS)


def _blocks(timeline: Timeline, more: int) -> int:
    """How many blocks a log can have got since the last compaction, after so many delta commits more."""
    since = max((i.time for i in timeline.writes if i.action is Action.COMMIT or _merges_logs(i)), default="")
    fresh = sum(i.action is Action.DELTA_COMMIT and i.completed_at > since and i.time != since for i in timeline.writes)
    return 1 + _BLOCKS_A_WRITE * (fresh + more) if fresh + more else 0


def _merges_logs(instant: Instant) -> bool:
    return instant.pending_action is Action.LOG_COMPACTION
