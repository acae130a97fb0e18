"""Compaction of merge-on-read tables: log files are merged into new base files, and nothing else changes.

A plan names the file slices; it is stored on the timeline before anything is written, at an instant after the completion of
every log file that it names. A run that died is run again from its plan, after what it left was deleted. Rows keep their
commit time and sequence number. Writers may go on meanwhile: their log files complete after the plan's instant and lie on
the new base.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from hudimeta.commit.coordinator import OpenWrite, Publication
from hudimeta.commit.early_conflicts import give_way_to_writers
from hudimeta.commit.published_schema import published_schema
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.config import options as keys
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metering import Metric, meter_of
from hudimeta.reports import Report, Reports
from hudimeta.schema import SchemaHistory
from hudimeta.services.compaction_strategy import choose
from hudimeta.services.plan_runs import put_plan, run_plans
from hudimeta.services.planned_slices import columns_at, reading, remove_leftovers, report_of, with_sizes
from hudimeta.slices.read_task import ReadTask
from hudimeta.slices.reader import SliceReader
from hudimeta.snapshot.file_slice import FileSlice, slices_of
from hudimeta.snapshot.planned_groups import groups_in_plans
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import engine_of_files
from hudimeta.table.compaction_plan import PlannedSlice, decode_compaction_plan, encode_compaction_plan
from hudimeta.table.file_names import WriteToken
from hudimeta.timeline import Timeline, TimelineWriter, parse_instant
from hudimeta.types import Action, FileGroupId, Instant, Operation, State
from hudimeta.write.base_files import BaseFileWriter
from hudimeta.write.table_files import TableFiles

__all__ = ["CompactionPlan", "compact", "execute", "is_due", "may_be_due", "pending", "plan", "schedule"]

_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
_COUNTING = ("NUM_COMMITS", _AFTER_LAST_REQUEST)

_MEBIBYTE = 1 << 20
_UNKNOWN_BYTES = 64 * _MEBIBYTE
"""Of a slice whose plan says nothing of its size."""


@dataclass(frozen=True, repr=False)
class CompactionPlan(Report):
    """File slices to compact, those with the most log bytes first; prints as a list."""

    slices: tuple[FileSlice, ...]
    size: int = 0
    """About how many bytes of files are merged."""

    def __str__(self) -> str:
        lines = [f"compact {len(self.slices)} file slices"]
        lines += [
            f"  {join(s.partition_path, s.file_id)}: {len(s.log_files)} logs, {sum(s.log_sizes):,} bytes" for s in self.slices
        ]
        return "\n".join(lines)

    def encode(self) -> bytes:
        """As the Avro container in the requested file."""
        return encode_compaction_plan(_planned_slice(s) for s in self.slices)

    @staticmethod
    def of(record: Mapping[str, Any]) -> CompactionPlan:
        """From the record in a requested file."""
        planned = decode_compaction_plan(record)
        return CompactionPlan(tuple(map(_file_slice, planned)), sum(_bytes_merged(one.metrics) for one in planned))


def _bytes_merged(metrics: Mapping[str, float]) -> int:
    """About how many bytes of one slice; of its base file the plan has whole megabytes."""
    base = metrics.get("TOTAL_IO_WRITE_MB")
    if base is None:
        return _UNKNOWN_BYTES
    return round((base + 0.5) * _MEBIBYTE + (metrics.get("TOTAL_LOG_FILES_SIZE") or 0))


def _planned_slice(file_slice: FileSlice) -> PlannedSlice:
    logs = float(sum(file_slice.log_sizes))
    metrics = {
        "TOTAL_LOG_FILES": float(len(file_slice.log_files)),
        "TOTAL_LOG_FILES_SIZE": logs,
        "TOTAL_IO_READ_MB": (file_slice.base_size + logs) // _MEBIBYTE,
        "TOTAL_IO_WRITE_MB": float(file_slice.base_size // _MEBIBYTE),
        "TOTAL_IO_MB": (2 * file_slice.base_size + logs) // _MEBIBYTE,
    }
    one = file_slice
    return PlannedSlice(one.partition_path, one.file_id, one.base_instant, one.base_file, one.log_files, metrics)


def _file_slice(one: PlannedSlice) -> FileSlice:
    """Without sizes, which no plan tells."""
    sizes = (0,) * len(one.log_files)
    return FileSlice(one.partition_path, one.file_id, one.base_instant, one.base_file, 0, one.log_files, sizes)


def pending(timeline: Timeline) -> list[Instant]:
    """Compactions that were planned and not completed, oldest first."""
    return [i for i in timeline.pending if (i.pending_action or i.action) is Action.COMPACTION]


def plan(session: WriteSession, snapshot: Snapshot) -> CompactionPlan:
    """The file slices with log files that the strategy takes.

    Left out are those in the plan of a pending service.

    Raises:
        ConfigError: See `choose`.
    """
    taken = groups_in_plans(snapshot.timeline)
    slices = [s for s in slices_of(snapshot.slices()) if s.log_files and FileGroupId(s.partition_path, s.file_id) not in taken]
    today = datetime.fromtimestamp(session.times.now_ms() // 1000, session.times.zone).date()
    return CompactionPlan(tuple(choose(slices, session.options, today)))


def schedule(session: WriteSession, *, to_run: bool = False) -> str | None:
    """Put a compaction on the timeline; returns its instant, None when no slice has log files.

    Args:
        session: The table.
        to_run: It is run next, see `Coordinator.plan`.
    """

    def encoded(snapshot: Snapshot) -> bytes | None:
        the_plan = plan(session, snapshot)
        return the_plan.encode() if the_plan.slices else None

    instant = put_plan(session, Action.COMPACTION, encoded, to_run=to_run)
    if instant is not None:
        meter_of(session.storage).add(Metric.COMPACTION_REQUESTED)
    return instant


def execute(session: WriteSession, instant: str) -> CommitReport:
    """Run a compaction that is on the timeline.

    Raises:
        CommitError: No such pending compaction, or another process is running it.
    """
    with session.coordinator.running(instant, Action.COMPACTION) as (timeline, found):
        return _run(session, timeline, found)


def _run(session: WriteSession, timeline: Timeline, found: Instant) -> CommitReport:
    instant = found.time
    timings = Timings()
    mark = session.request_mark()
    snapshot = session.snapshot_at(timeline)
    if session.concurrency.prefers_writers:
        groups = [FileGroupId(one.partition_path, one.file_id) for one in CompactionPlan.of(timeline.plan(found)).slices]
        patience = session.concurrency.patience_s
        give_way_to_writers(session.storage, timeline, Operation.COMPACT.value, groups, alone=False, patience_s=patience)
    remove_leftovers(session, instant)
    if found.state is State.REQUESTED:
        TimelineWriter(session.storage, timeline.folder).begin_planned(instant, Action.COMPACTION)
    planned = CompactionPlan.of(timeline.plan(found))
    slices = planned.slices
    schema, history = columns_at(session, snapshot, instant)
    with timings.phase("merge"):
        files = _merge_all(session, snapshot, instant, planned, schema, history)
    write = OpenWrite.of_plan(timeline, instant, Action.COMPACTION, Operation.COMPACT)
    stated = published_schema(schema, session.properties.name, history, instant)
    publication = Publication(files, schema, stated.avro, extra=stated.extra, known=snapshot.metadata, history=stated.history)
    with timings.phase("publish"):
        completion = session.coordinator.publish(write, publication)
        TableFiles(session, snapshot).window.add_compacted(files, slices)
    notes = (f"{sum(len(s.log_files) for s in slices):,} log files merged",)
    report = report_of(session, write, completion, files, timings, requests=session.requests_since(mark), notes=notes)
    return session.reported(report, write.action)


def compact(session: WriteSession, *, after_a_write: bool = False) -> Reports[CommitReport]:
    """Roll dead writes back, run what is pending, then plan and run a compaction of all that has log files since.

    Args:
        session: The table.
        after_a_write: The session's write has just been published, and rolled dead ones back as it began.
    """
    return run_plans(session, pending, schedule, execute, after_a_write=after_a_write)


def may_be_due(session: WriteSession, timeline: Timeline) -> bool:
    """False when `is_due` would say no on the timeline after one more delta commit: then that need not be listed."""
    if session.options.get(keys.COMPACT_TRIGGER) not in _COUNTING:
        return True
    return len(_fresh(session, timeline)[1]) + 1 >= session.options.get(keys.COMPACT_AFTER)


def is_due(session: WriteSession, timeline: Timeline) -> bool:
    """True when enough delta commits were completed, or enough time went by, since the last compaction: see the options.

    Nothing is due while no delta commit was completed since.
    """
    options = session.options
    trigger = options.get(keys.COMPACT_TRIGGER)
    since, fresh = _fresh(session, timeline)
    if not fresh:
        return False
    many = len(fresh) >= options.get(keys.COMPACT_AFTER)
    zone = session.properties.zone
    began = parse_instant(since or fresh[0].time, zone)
    late = parse_instant(session.times.next(timeline.last_time), zone) - began >= options.get(keys.COMPACT_AFTER_S) * 1000
    by_trigger = {"TIME_ELAPSED": late, "NUM_AND_TIME": many and late, "NUM_OR_TIME": many or late}
    return by_trigger.get(trigger or "", many)


def _fresh(session: WriteSession, timeline: Timeline) -> tuple[str, list[Instant]]:
    """The last compaction ("" for none), and the delta commits that were completed since."""
    done = max((i.time for i in timeline.writes if i.action is Action.COMMIT), default="")
    planned = max((i.time for i in pending(timeline)), default="")
    since = max(done, planned) if session.options.get(keys.COMPACT_TRIGGER) == _AFTER_LAST_REQUEST else done
    return since, [i for i in timeline.writes if i.action is Action.DELTA_COMMIT and i.completed_at > since]


def _merge_all(
    session: WriteSession,
    snapshot: Snapshot,
    instant: str,
    planned: CompactionPlan,
    data: pa.Schema,
    history: SchemaHistory | None,
) -> list[WrittenFile]:
    task, writer = reading(session, snapshot, data, history), TableFiles(session, snapshot).writer(instant, data)
    slices = with_sizes(snapshot, planned.slices)
    engine = engine_of_files(session.engine, session.storage, [one.size for one in slices])
    return engine.map(_Merge(session.storage, task, writer), list(enumerate(slices)))


@dataclass(frozen=True)
class _Merge:
    """Merges a numbered file slice into a new base file; a value, so that it can run in another process."""

    storage: Storage
    task: ReadTask
    writer: BaseFileWriter

    def __call__(self, work: tuple[int, FileSlice]) -> WrittenFile:
        number, file_slice = work
        reader = SliceReader(self.task, self.storage)
        rows = pa.concat_tables([self.task.output_schema.empty_table(), *reader.tables(file_slice)])
        # Columns of an altered table may have other names in the file, and virtual keys are not stored.
        as_stored = self.task.history is None and not self.task.virtual_keys
        merger = reader.merger if as_stored else None
        written = self.writer.write_compacted(file_slice, rows, merger, WriteToken(number), self._sides(file_slice, rows))
        return replace(written, figures=_figures(file_slice, reader))

    def _sides(self, file_slice: FileSlice, rows: pa.Table) -> tuple[pa.Table, pa.Table] | None:
        """The rows before and after, with keys, for the change file: None without a base file, where all rows are new.

        Readers of Apache Hudi that take changes from compactions, as Flink's do, refuse one without ("There should be a cdc log
        file").
        """
        if not self.writer.captures_changes or file_slice.base_file is None:
            return None
        reader = SliceReader(self.task, self.storage)
        pieces = reader.tables(replace(file_slice, log_files=(), log_sizes=()))
        before = pa.concat_tables([self.task.output_schema.empty_table(), *pieces])
        return reader.with_keys(before), reader.with_keys(rows)


def _figures(file_slice: FileSlice, reader: SliceReader) -> dict[str, int]:
    """What the stat of a compacted file says of its log, as Apache Hudi counts."""
    counts, merged = reader.counts, reader.merge_counts
    figures = {
        "totalLogRecords": counts.log_records,
        "totalLogBlocks": counts.log_blocks + counts.blocks_ignored,
        "totalLogFilesCompacted": len(file_slice.log_files),
        "totalLogSizeCompacted": sum(file_slice.log_sizes),
    }
    if merged is None:
        return figures
    rows = {"numInserts": merged.inserted, "numUpdateWrites": merged.updated, "numDeletes": merged.deleted}
    return {**figures, **rows, "totalUpdatedRecordsCompacted": merged.keys}
