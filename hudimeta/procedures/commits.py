"""Procedures that tell what commits did, on the active and on the archived timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from hudimeta.procedures.call import ProcedureCall
from hudimeta.procedures.procedure import Procedure, Rows
from hudimeta.timeline import SystemClock, format_instant
from hudimeta.timeline.archived import ArchivedRecords
from hudimeta.types import Action, Instant

__all__ = ["PROCEDURES", "new_files", "total", "write_stats"]

_NO_COMMIT = "null"
"""What the write statistics of a new file name as the commit before."""
_TOTALS = (
    "total_bytes_written bigint, total_files_added bigint, total_files_updated bigint, total_partitions_written bigint, "
    "total_records_written bigint, total_update_records_written bigint, total_errors bigint"
)
_FIGURES = (
    ("num_writes", "numWrites"),
    ("num_inserts", "numInserts"),
    ("num_deletes", "numDeletes"),
    ("num_update_writes", "numUpdateWrites"),
    ("total_errors", "totalWriteErrors"),
    ("total_log_blocks", "totalLogBlocks"),
    ("total_corrupt_log_blocks", "totalCorruptLogBlock"),
    ("total_rollback_blocks", "totalRollbackBlocks"),
    ("total_log_records", "totalLogRecords"),
    ("total_updated_records_compacted", "totalUpdatedRecordsCompacted"),
    ("total_bytes_written", "totalWriteBytes"),
)
"""Columns of a file's statistics, and their names in commit metadata."""
_OF_FILES = (
    "commit_time string, state_transition_time string, action string, partition string, file_id string, "
    "previous_commit string, " + ", ".join(f"{name} bigint" for name, _ in _FIGURES)
)
_OF_ONE = "@table string!, limit int = 10, instant_time string!"
_DAY_MS = 86_400_000
_FIRST_DAYS, _LAST_DAYS = 10, 1
"""Archived commits are shown from so many days ago until so many days ago, where a call says nothing else."""

Said = Mapping[str, Any]
"""Commit metadata, with Hudi's field names."""


def write_stats(said: Said) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Partition path and statistics of every file that a commit wrote."""
    for partition, stats in (said.get("partitionToWriteStats") or {}).items():
        yield from ((partition, stat) for stat in stats)


def total(stats: Iterable[Mapping[str, Any]], name: str) -> int:
    """The sum of a statistic."""
    return sum(stat.get(name) or 0 for stat in stats)


def new_files(stats: Iterable[Mapping[str, Any]]) -> int:
    """How many of the files begin a file group."""
    return sum((stat.get("prevCommit") or _NO_COMMIT) == _NO_COMMIT for stat in stats)


def _totals(said: Said) -> tuple[int, ...]:
    """In the order of `_TOTALS`."""
    stats = [stat for _, stat in write_stats(said)]
    added = new_files(stats)
    written = (total(stats, "totalWriteBytes"), added, len(stats) - added, len(said.get("partitionToWriteStats") or {}))
    rows = (total(stats, "numWrites"), total(stats, "numUpdateWrites"), total(stats, "totalWriteErrors"))
    return written + rows


def _of_files(instant: Instant, said: Said) -> Iterator[tuple[Any, ...]]:
    for partition, stat in write_stats(said):
        who = (instant.time, instant.completed_at, instant.action.value, partition, stat.get("fileId"))
        yield (*who, stat.get("prevCommit"), *(stat.get(name) or 0 for _, name in _FIGURES))


# The active timeline


def _newest_first(call: ProcedureCall) -> Iterator[tuple[Instant, Said]]:
    """The completed writes with what they say; only those that somebody asks for are read."""
    for instant in reversed(call.timeline.writes):
        yield instant, call.timeline.metadata(instant)


def _show_commits(call: ProcedureCall) -> Rows:
    return call.first((i.time, i.completed_at, i.action.value, *_totals(said)) for i, said in _newest_first(call))


def _show_commits_metadata(call: ProcedureCall) -> Rows:
    return call.first(row for instant, said in _newest_first(call) for row in _of_files(instant, said))


def _one(call: ProcedureCall) -> tuple[Instant, Said]:
    instant = call.write_at(call["instant_time"])
    return instant, call.timeline.metadata(instant)


def _show_commit_files(call: ProcedureCall) -> Rows:
    instant, said = _one(call)
    return call.first(
        (
            instant.action.value,
            partition,
            stat.get("fileId"),
            stat.get("prevCommit"),
            *(stat.get(name) or 0 for name in ("numUpdateWrites", "numWrites", "totalWriteBytes", "totalWriteErrors")),
            stat.get("fileSizeInBytes") or 0,
        )
        for partition, stat in write_stats(said)
    )


def _show_commit_partitions(call: ProcedureCall) -> Rows:
    instant, said = _one(call)
    rows = []
    for partition, stats in (said.get("partitionToWriteStats") or {}).items():
        added = new_files(stats)
        old = [stat for stat in stats if (stat.get("prevCommit") or _NO_COMMIT) != _NO_COMMIT]
        figures = (total(stats, "numInserts"), total(old, "numUpdateWrites"), total(stats, "totalWriteBytes"))
        rows.append((instant.action.value, partition, added, len(old), *figures, total(stats, "totalWriteErrors")))
    return call.first(rows)


def _show_commit_write_stats(call: ProcedureCall) -> Rows:
    instant, said = _one(call)
    stats = [stat for _, stat in write_stats(said)]
    size, rows = total(stats, "totalWriteBytes"), total(stats, "numWrites")
    # Rounded up, as Hudi does.
    return call.first([(instant.action.value, size, rows, -(-size // rows) if rows else 0)])


def _show_commit_extra_metadata(call: ProcedureCall) -> Rows:
    instant, said = _one(call)
    key = (call["metadata_key"] or "").strip()
    extra = sorted((said.get("extraMetadata") or {}).items())
    return call.first((instant.time, instant.action.value, name, text) for name, text in extra if key in ("", name))


# The archived timeline


def _archived(call: ProcedureCall) -> Iterator[tuple[Instant, Said]]:
    """Archived writes in the range that the call names, newest first; its end is included, its beginning not."""
    now, zone = SystemClock().now_ms(), call.properties.zone
    first = call.bound("start_ts") or format_instant(now - _FIRST_DAYS * _DAY_MS, zone)
    last = call.bound("end_ts") or format_instant(now - _LAST_DAYS * _DAY_MS, zone)
    archived = ArchivedRecords(call.timeline.history, [action for action in Action if action.writes_data], first)
    for instant in reversed(archived.instants):
        if first < instant.time <= last:
            yield instant, archived.metadata(instant)


def _show_archived_commits(call: ProcedureCall) -> Rows:
    return call.first((instant.time, instant.completed_at, *_totals(said)) for instant, said in _archived(call))


def _show_archived_commits_metadata(call: ProcedureCall) -> Rows:
    return call.first(row for instant, said in _archived(call) for row in _of_files(instant, said))


# Two timelines, and writing amplification


def _commits_compare(call: ProcedureCall) -> Rows:
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.storage import CountingStorage, open_storage

    other = Snapshot.open(CountingStorage(open_storage(call["path"], call.options.texts)), call.options)
    source, target = ([i.time for i in table.timeline.writes] for table in (call.snapshot, other))
    newest, newest_there = max(source, default="0"), max(target, default="0")
    behind = newest_there > newest
    later = [time for time in target if time > newest] if behind else [time for time in source if time > newest_there]
    how = f"{'behind' if behind else 'ahead'} by {len(later)} commits"
    return [(f"Source {call.properties.name} is {how}. Commits to catch up - [{', '.join(later)}]",)]


def _stats_wa(call: ProcedureCall) -> Rows:
    rows: list[tuple[Any, ...]] = []
    upserted = written = 0
    for instant in (i for i in call.timeline.writes if i.action is not Action.DELTA_COMMIT):
        stats = [stat for _, stat in write_stats(call.timeline.metadata(instant))]
        one, all_of_it = total(stats, "numUpdateWrites"), total(stats, "numWrites")
        rows.append((instant.time, one, all_of_it, _factor(all_of_it, one)))
        upserted, written = upserted + one, written + all_of_it
    return call.first([*rows, ("Total", upserted, written, _factor(written, upserted))])


def _factor(written: int, upserted: int) -> str:
    """As Java's pattern `#.00` prints it: without a zero before the point."""
    if not upserted:
        return "0"
    text = f"{written / upserted:.2f}"
    return text.removeprefix("0") if text.startswith("0.") else text


def _shows(name: str, takes: str, gives: str, doc: str, run: Callable[[ProcedureCall], Rows]) -> Procedure:
    return Procedure(name, takes, gives, doc, run)


PROCEDURES = (
    _shows(
        "show_commits",
        "@table string!, limit int = 10",
        f"commit_time string, state_transition_time string, action string, {_TOTALS}",
        "Completed writes of the active timeline with their totals, newest first.",
        _show_commits,
    ),
    _shows(
        "show_commits_metadata",
        "@table string!, limit int = 10",
        _OF_FILES,
        "What completed writes say of each file that they wrote, newest first.",
        _show_commits_metadata,
    ),
    _shows(
        "show_commit_files",
        _OF_ONE,
        "action string, partition_path string, file_id string, previous_commit string, total_records_updated bigint, "
        "total_records_written bigint, total_bytes_written bigint, total_errors bigint, file_size bigint",
        "The files of one write.",
        _show_commit_files,
    ),
    _shows(
        "show_commit_partitions",
        _OF_ONE,
        "action string, partition_path string, total_files_added bigint, total_files_updated bigint, "
        "total_records_inserted bigint, total_records_updated bigint, total_bytes_written bigint, total_errors bigint",
        "The partitions of one write.",
        _show_commit_partitions,
    ),
    _shows(
        "show_commit_write_stats",
        _OF_ONE,
        "action string, total_bytes_written bigint, total_records_written bigint, avg_record_size bigint",
        "Bytes and rows of one write.",
        _show_commit_write_stats,
    ),
    _shows(
        "show_commit_extra_metadata",
        "@table string!, limit int = 100, instant_time string, metadata_key string",
        "instant_time string, action string, metadata_key string, metadata_value string",
        "What a write, the newest where none is named, says beside its files.",
        _show_commit_extra_metadata,
    ),
    _shows(
        "show_archived_commits",
        "@table string!, limit int = 10, start_ts string = '', end_ts string = ''",
        f"commit_time string, state_transition_time string, {_TOTALS}",
        "Archived writes between two instants (ten days ago and yesterday, where none are named), newest first.",
        _show_archived_commits,
    ),
    _shows(
        "show_archived_commits_metadata",
        "@table string!, limit int = 10, start_ts string = '', end_ts string = ''",
        _OF_FILES,
        "What archived writes say of each file that they wrote, newest first.",
        _show_archived_commits_metadata,
    ),
    _shows(
        "commits_compare",
        "@table string!, path string!",
        "compare_detail string",
        "Which of two tables is ahead, and by which commits.",
        _commits_compare,
    ),
    _shows(
        "stats_wa",
        "@table string!, limit int = 10",
        "commit_time string, total_upserted bigint, total_written bigint, write_amplification_factor string",
        "How many rows each write to base files wrote for each row that it changed, oldest first, and all together.",
        _stats_wa,
    ),
)
