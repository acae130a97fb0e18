"""Procedures that tell what services did and plan: cleans, compactions, clusterings, rollbacks, savepoints, instants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from hudimeta.errors import TableError, UnsupportedFeature
from hudimeta.procedures.call import ProcedureCall
from hudimeta.procedures.procedure import Procedure, Rows
from hudimeta.table.clustering_plan import decode_clustering_plan
from hudimeta.table.compaction_plan import decode_compaction_plan
from hudimeta.timeline import naming
from hudimeta.timeline.archived import ArchivedRecords
from hudimeta.timeline.clean_record import emptied_by
from hudimeta.types import Action, Instant, State, TableType

__all__ = ["PROCEDURES", "clustering_rows", "compaction_rows"]

_CLEANS = "@table string!, limit int = 10, showArchived boolean = false, filter string = ''"
_SHOWN_TIME = "%m-%d %H:%M:%S"


def _records(call: ProcedureCall, action: Action, archived: bool) -> Iterator[tuple[Instant, Mapping[str, Any]]]:
    """Completed instants of an action with their records, newest first."""
    for instant in reversed([i for i in call.timeline.completed if i.action is action]):
        yield instant, call.timeline.metadata(instant)
    if archived:
        old = ArchivedRecords(call.timeline.history, [action])
        known = {i.time for i in call.timeline.instants}
        yield from ((i, old.metadata(i)) for i in reversed(old.instants) if i.time not in known)


# Cleans


def _show_cleans(call: ProcedureCall) -> Rows:
    return call.first(
        (
            instant.time,
            instant.completed_at,
            instant.action.value,
            said["startCleanTime"],
            said["timeTakenInMillis"],
            said["totalFilesDeleted"],
            said["earliestCommitToRetain"],
            said.get("lastCompletedCommitTimestamp"),
            said.get("version"),
        )
        for instant, said in _records(call, Action.CLEAN, call["showArchived"])
    )


def _show_cleans_metadata(call: ProcedureCall) -> Rows:
    return call.first(
        (
            instant.time,
            instant.completed_at,
            instant.action.value,
            said["startCleanTime"],
            partition,
            one["policy"],
            *(len(one[name] or ()) for name in ("deletePathPatterns", "successDeleteFiles", "failedDeleteFiles")),
            one.get("isPartitionDeleted"),
            said["timeTakenInMillis"],
            said["totalFilesDeleted"],
        )
        for instant, said in _records(call, Action.CLEAN, call["showArchived"])
        for partition, one in (said["partitionMetadata"] or {}).items()
    )


def _clean_plan(instant: Instant, plan: Mapping[str, Any]) -> tuple[Any, ...]:
    earliest = plan.get("earliestInstantToRetain") or {}
    extra = ", ".join(f"{key}={text}" for key, text in (plan.get("extraMetadata") or {}).items())
    files, gone = plan.get("filePathsToBeDeletedPerPartition") or {}, emptied_by(plan)
    who = (instant.time, instant.state.name, instant.action.value, earliest.get("timestamp"))
    what = (plan.get("lastCompletedCommitTimestamp"), plan.get("policy"), plan.get("version"))
    return (*who, *what, len(files), len(gone), extra or None)


def _show_clean_plans(call: ProcedureCall) -> Rows:
    active = reversed([i for i in call.timeline.instants if i.action is Action.CLEAN])
    rows = [_clean_plan(instant, call.timeline.plan(instant)) for instant in call.first(active)]
    if call["showArchived"]:
        rows += [_clean_plan(instant, plan) for instant, plan in _archived_plans(call)]
    return call.first(rows)


def _archived_plans(call: ProcedureCall) -> Iterator[tuple[Instant, Mapping[str, Any]]]:
    from hudimeta.timeline.content import decode_instant

    history = call.timeline.history
    for row in reversed(history.load(("instant_time", "completion_time", "action", "plan")).to_pylist()):
        if row["action"] == Action.CLEAN.value and row["plan"] and call.timeline.get(row["instant_time"], Action.CLEAN) is None:
            instant = Instant(row["instant_time"], Action.CLEAN, State.COMPLETED, row["completion_time"])
            yield instant, decode_instant(row["plan"], history.folder, False)


# Compactions and clusterings


def _planned_as(call: ProcedureCall, instant: Instant, service: Action) -> Mapping[str, Any] | None:
    """The plan of an instant that was, or is to be, such a service; None for any other."""
    if (instant.pending_action or instant.action) is service and not instant.is_completed:
        return call.timeline.plan(instant)
    requested = naming.pending_name(instant.time, service, State.REQUESTED)
    if requested not in call.timeline.files_of(instant):
        return None
    return call.timeline.plan(replace(instant, pending_action=service))


def _services(call: ProcedureCall, service: Action) -> Iterator[tuple[Instant, Mapping[str, Any]]]:
    """Instants of a service with their plans, newest first."""
    for instant in reversed(call.timeline.instants):
        if instant.action.completed_as is service.completed_as:
            plan = _planned_as(call, instant, service)
            if plan is not None:
                yield instant, plan


def compaction_rows(call: ProcedureCall) -> Iterator[tuple[str, int, str]]:
    """Of every compaction on the active timeline, newest first: instant, file slices of its plan, state."""
    for instant, plan in _services(call, Action.COMPACTION):
        yield instant.time, len(decode_compaction_plan(plan)), instant.state.name


def clustering_rows(call: ProcedureCall, *, partitions: bool) -> Iterator[tuple[str, int, str, str]]:
    """Of every clustering on the active timeline, newest first: instant, groups of its plan, state, partitions or `*`."""
    # In version 6, and after an upgrade from there, a clustering is requested as a replacecommit, as overwrites are.
    for service in (Action.CLUSTERING, Action.REPLACE_COMMIT):
        for instant, plan in _services(call, service):
            groups = decode_clustering_plan(plan).groups
            if service is Action.CLUSTERING or groups:
                paths = sorted({one.partition_path for group in groups for one in group.slices})
                yield instant.time, len(groups), instant.state.name, ",".join(paths) if partitions else "*"


def _show_compaction(call: ProcedureCall) -> Rows:
    if call.properties.type is not TableType.MERGE_ON_READ:
        raise UnsupportedFeature("showing compactions of a copy-on-write table", "It has no log files, so it has none.")
    return call.first(compaction_rows(call))


def _show_clustering(call: ProcedureCall) -> Rows:
    return call.first(clustering_rows(call, partitions=call["show_involved_partition"]))


# Rollbacks, savepoints


def _show_rollbacks(call: ProcedureCall) -> Rows:
    return call.first(
        (
            instant.time,
            undone,
            said["totalFilesDeleted"],
            said["timeTakenInMillis"],
            len(said["partitionMetadata"] or {}),
        )
        for instant, said in _records(call, Action.ROLLBACK, False)
        for undone in said["commitsRollback"] or ()
    )


def _show_rollback_detail(call: ProcedureCall) -> Rows:
    found = [(i, said) for i, said in _records(call, Action.ROLLBACK, False) if i.time == call["instant_time"]]
    if not found:
        what = f"no completed rollback at {call['instant_time']} on the active timeline of the table"
        raise TableError(what, "CALL show_rollbacks lists those that are there, as `instant`.")
    return call.first(
        (said["startRollbackTime"], f"[{', '.join(said['commitsRollback'] or ())}]", partition, name, succeeded)
        for _, said in found
        for partition, one in (said["partitionMetadata"] or {}).items()
        for key, succeeded in (("successDeleteFiles", True), ("failedDeleteFiles", False))
        for name in one[key] or ()
    )


def _show_savepoints(call: ProcedureCall) -> Rows:
    return [(i.time,) for i in reversed(call.timeline.completed) if i.action is Action.SAVEPOINT]


# All instants


def _show_timeline(call: ProcedureCall) -> Rows:
    first, last = call.bound("startTime"), call.bound("endTime")
    timeline, zone = call.timeline, call.properties.zone
    changed = {file.name: file.modified_ms for file in call.storage.list(timeline.folder)}
    active = [(instant, "ACTIVE") for instant in timeline.instants]
    known = {(instant.time, instant.action) for instant in timeline.instants}
    old = timeline.history.instants() if call["showArchived"] else ()
    both = [*((i, "ARCHIVED") for i in old if (i.time, i.action) not in known), *active]
    both = [one for one in both if one[0].time >= first and (not last or one[0].time <= last)]
    chosen = sorted(both, key=lambda one: one[0].time, reverse=True)
    undone = _undone(call)
    rows = []
    for instant, kind in chosen if first and last else call.first(chosen):
        times = _times(instant, timeline.files_of(instant), changed, zone) if kind == "ACTIVE" else (None, None, None)
        rows.append(
            (instant.time, instant.action.value, instant.state.name, *times, kind, undone.get((instant.time, instant.action)))
        )
    return rows


def _times(instant: Instant, files: tuple[str, ...], changed: Mapping[str, int], zone: Any) -> tuple[str | None, ...]:
    """When the instant's three files were written, as the store says; None for one that is not there."""
    found: list[str | None] = []
    for state in State:
        names = [n for n in files if (parsed := naming.parse_instant_name(n)) is not None and parsed.state is state]
        moment = changed.get(names[0].rpartition("/")[2], 0) if names else 0
        found.append(datetime.fromtimestamp(moment / 1000, zone).strftime(_SHOWN_TIME) if moment else None)
    return tuple(found)


def _undone(call: ProcedureCall) -> dict[tuple[str, Action], str]:
    """What rollbacks took back, said at the rollback and at what it took."""
    said: dict[tuple[str, Action], str] = {}
    by: dict[str, list[str]] = {}
    for instant in call.timeline.instants:
        if instant.action is not Action.ROLLBACK:
            continue
        if instant.is_completed:
            gone = list(call.timeline.metadata(instant)["commitsRollback"] or ())
            text = f"Rolled back: {', '.join(gone)}"
        else:
            undone = call.timeline.plan(instant).get("instantToRollback") or {}
            gone = [undone["commitTime"]] if undone else []
            text = f"Rolls back {', '.join(gone)}"
        said[instant.time, instant.action] = text
        for time in gone:
            by.setdefault(time, []).append(instant.time)
    for instant in call.timeline.instants:
        if instant.time in by and instant.action is not Action.ROLLBACK:
            said[instant.time, instant.action] = f"Rolled back by: {', '.join(by[instant.time])}"
    return said


def _show_table_properties(call: ProcedureCall) -> Rows:
    return call.first(sorted(call.properties.items()))


PROCEDURES = (
    Procedure(
        "show_cleans",
        _CLEANS,
        "clean_time string, state_transition_time string, action string, start_clean_time string, time_taken_in_millis bigint, "
        "total_files_deleted int, earliest_commit_to_retain string, last_completed_commit_timestamp string, version int",
        "Completed cleans, newest first.",
        _show_cleans,
    ),
    Procedure(
        "show_cleans_metadata",
        _CLEANS,
        "clean_time string, state_transition_time string, action string, start_clean_time string, partition_path string, "
        "policy string, delete_path_patterns int, success_delete_files int, failed_delete_files int, "
        "is_partition_deleted boolean, time_taken_in_millis bigint, total_files_deleted int",
        "What completed cleans did in each partition, newest first.",
        _show_cleans_metadata,
    ),
    Procedure(
        "show_clean_plans",
        _CLEANS,
        "plan_time string, state string, action string, earliest_instant_to_retain string, "
        "last_completed_commit_timestamp string, policy string, version int, total_partitions_to_clean int, "
        "total_partitions_to_delete int, extra_metadata string",
        "What cleans planned, newest first.",
        _show_clean_plans,
    ),
    Procedure(
        "show_compaction",
        "@table string, @path string, limit int = 20",
        "timestamp string, operation_size int, state string",
        "Compactions, pending and completed, newest first.",
        _show_compaction,
    ),
    Procedure(
        "show_clustering",
        "@table string, @path string, limit int = 20, show_involved_partition boolean = false",
        "timestamp string, input_group_size int, state string, involved_partitions string",
        "Clusterings, pending and completed, newest first.",
        _show_clustering,
    ),
    Procedure(
        "show_rollbacks",
        "@table string!, limit int = 10",
        "instant string, rollback_instant string, total_files_deleted int, time_taken_in_millis bigint, total_partitions int",
        "Completed rollbacks, newest first.",
        _show_rollbacks,
    ),
    Procedure(
        "show_rollback_detail",
        "@table string!, limit int = 10, instant_time string!",
        "instant string, rollback_instant string, partition string, deleted_file string, succeeded boolean",
        "The files that a rollback deleted.",
        _show_rollback_detail,
    ),
    Procedure(
        "show_savepoints",
        "@table string, @path string",
        "savepoint_time string",
        "Savepoints, newest first.",
        _show_savepoints,
    ),
    Procedure(
        "show_timeline",
        "@table string, @path string, limit int = 20, showArchived boolean = false, filter string = '', startTime string = '', "
        "endTime string = ''",
        "instant_time string, action string, state string, requested_time string, inflight_time string, completed_time string, "
        "timeline_type string, rollback_info string",
        "Every instant, newest first; the limit does not count where both ends are named.",
        _show_timeline,
        note="Times are those of the files, in the table's zone; an archived instant has no file, so no times.",
    ),
    Procedure(
        "show_table_properties",
        "@table string, @path string, limit int = 10, filter string = ''",
        "key string, value string",
        "`hoodie.properties`, by key.",
        _show_table_properties,
    ),
)
