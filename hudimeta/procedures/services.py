"""Procedures that run services: compaction, clustering, cleaning, archival, expiry, going back, other versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hudimeta.errors import ConfigError, TableError, UnsupportedFeature
from hudimeta.procedures.call import ProcedureCall
from hudimeta.procedures.history import clustering_rows, compaction_rows
from hudimeta.procedures.procedure import Procedure, Rows, RunPlace
from hudimeta.services import archival, clean, clustering, compaction, restore, rollback, savepoints, ttl, versions
from hudimeta.types import Action, Instant, TableType

__all__ = ["PROCEDURES"]

_SCHEDULE, _EXECUTE, _BOTH = "schedule", "execute", "scheduleandexecute"
_COMPACTION_OPS = {"run": _BOTH, _SCHEDULE: _SCHEDULE, _EXECUTE: _EXECUTE, _BOTH: _BOTH}
_VERSIONS = {"SIX": 6, "EIGHT": 8, "NINE": 9}
_TABLE = "@table string, @path string"


def _steps(
    call: ProcedureCall,
    op: str,
    pending: Sequence[Instant],
    schedule: Callable[[], str | None],
    execute: Callable[[str], object],
    *,
    asked: Sequence[str],
    parameter: str = "instants",
) -> list[str]:
    """Schedule, execute or both; returns the instants that it was about.

    Without a new plan, what is pending is executed, the oldest first; the call's limit is for those. `parameter` names `asked`.
    """
    if op not in (_SCHEDULE, _EXECUTE, _BOTH):
        raise ConfigError("op", op, f"{_SCHEDULE}, {_EXECUTE} or {_BOTH}")
    times = [instant.time for instant in pending]
    if asked:
        unknown = [time for time in asked if time not in times]
        if unknown:
            raise ConfigError(parameter, ",".join(unknown), f"pending instants: {', '.join(times) or 'there are none'}")
        times = sorted(asked)
    else:
        times = list(call.first(times))
    if op in (_SCHEDULE, _BOTH):
        planned = schedule()
        times = [planned] if planned is not None else times if op == _BOTH else []
    if op in (_EXECUTE, _BOTH):
        for time in times:
            execute(time)
    return times


def _after(call: ProcedureCall) -> ProcedureCall:
    """The same call at the table as it is now."""
    return ProcedureCall(call.arguments, call.storage, call.options, call.engine)


def _run_compaction(call: ProcedureCall) -> Rows:
    if call.properties.type is not TableType.MERGE_ON_READ:
        raise UnsupportedFeature("compacting a copy-on-write table", "It has no log files; only merge-on-read tables need it.")
    named, timestamp = call.names("instants"), call["timestamp"]
    asked = named or ([str(timestamp)] if timestamp is not None else [])
    op = _EXECUTE if asked else _COMPACTION_OPS.get(call["op"].strip().lower(), call["op"])
    session = call.session(call.listed_options())
    times = _steps(
        call,
        op,
        compaction.pending(call.timeline),
        lambda: compaction.schedule(session),
        lambda time: compaction.execute(session, time),
        asked=asked,
        parameter="instants" if named else "timestamp",
    )
    return [row for row in compaction_rows(_after(call)) if row[0] in times]


def _run_clustering(call: ProcedureCall) -> Rows:
    selected = _selected_partitions(call)
    if selected == []:
        return []
    options: dict[str, Any] = {
        "hoodie.clustering.plan.strategy.sort.columns": call["order"],
        "hoodie.layout.optimize.strategy": call["order_strategy"],
        "hoodie.clustering.plan.strategy.partition.regex.pattern": call["partition_regex_pattern"],
    }
    if selected is not None:
        options["hoodie.clustering.plan.strategy.partition.selected"] = ",".join(selected)
    session = call.session(options | call.listed_options())
    asked = call.names("instants")
    times = _steps(
        call,
        _EXECUTE if asked else (call["op"] or _BOTH).strip().lower(),
        clustering.pending(call.timeline),
        lambda: clustering.schedule(session),
        lambda time: clustering.execute(session, time),
        asked=asked,
    )
    rows = clustering_rows(_after(call), partitions=call["show_involved_partition"])
    return [row for row in rows if row[0] in times]


def _selected_partitions(call: ProcedureCall) -> list[str] | None:
    """Partitions that the call names, or that its predicate over partition columns keeps; None for all."""
    if not call["predicate"]:
        return call.names("selected_partitions") or None
    from hudimeta.keys import PartitionLayout
    from hudimeta.predicate import bind, columns, evaluate, parse
    from hudimeta.snapshot.partition_columns import path_values

    paths = call.snapshot.listing.partitions()
    layout = PartitionLayout.from_properties(call.properties)
    wanted, stored = parse(call["predicate"]), call.snapshot.schema.arrow
    values = path_values(paths, layout, stored, call.properties)
    others = set(columns(bind(wanted, stored))) - set(values.schema.names)
    if others:  # a path states no value of them
        allowed = f"a condition over partition columns ({', '.join(values.schema.names) or 'there are none'})"
        raise ConfigError("predicate", call["predicate"], allowed, f"Leave {', '.join(sorted(others))} out of it.")
    kept = evaluate(bind(wanted, values.schema), values)
    return [path for path, keep in zip(paths.to_pylist(), kept.to_pylist(), strict=True) if keep]


def _run_clean(call: ProcedureCall) -> Rows:
    if not call["schedule_in_line"]:
        hint = "A clean plans and runs in one call; leave schedule_in_line out."
        raise UnsupportedFeature("run_clean that only runs what is planned", hint)
    options = {
        "hoodie.clean.policy": call["clean_policy"],
        "hoodie.clean.commits.retained": call["retain_commits"],
        "hoodie.clean.hours.retained": call["hours_retained"],
        "hoodie.clean.fileversions.retained": call["file_versions_retained"],
        "hoodie.clean.trigger.strategy": call["trigger_strategy"],
        "hoodie.clean.trigger.max.commits": call["trigger_max_commits"],
    }
    report = clean.clean(call.session(options | call.listed_options()))
    if report.instant is None:
        return []
    done = _after(call).timeline
    found = done.get(report.instant, Action.CLEAN)
    if found is None:
        raise TableError(f"the clean at {report.instant} is gone from the timeline", "Look at show_cleans.")
    said = done.metadata(found)
    figures = (said["timeTakenInMillis"], said["totalFilesDeleted"], said["earliestCommitToRetain"])
    return [(said["startCleanTime"], *figures, "{}", said.get("version"))]


def _archive_commits(call: ProcedureCall) -> Rows:
    options = {
        "hoodie.keep.min.commits": call["min_commits"],
        "hoodie.keep.max.commits": call["max_commits"],
        "hoodie.clean.commits.retained": call["retain_commits"],
    }
    archival.archive(call.session(options))
    return [(0,)]


def _run_ttl(call: ProcedureCall) -> Rows:
    options = {
        "hoodie.partition.ttl.management.strategy.type": call["ttl_policy"],
        "hoodie.partition.ttl.strategy.days.retain": call["retain_days"],
    }
    report = ttl.expire(call.session(options | call.listed_options()))
    return [(partition,) for partition in report.plan.expired]


# Going back


def _create_savepoint(call: ProcedureCall) -> Rows:
    savepoints.save(call.session(), call["commit_time"] or None, call["comments"] or "", call["user"] or "")
    return [(True,)]


def _delete_savepoint(call: ProcedureCall) -> Rows:
    session = call.session()
    for time in call.names("instant_time") or [_newest_savepoint(call)]:
        savepoints.delete(session, time)
    return [(True,)]


def _rollback_to_savepoint(call: ProcedureCall) -> Rows:
    restore.restore(call.session(), call["instant_time"] or _newest_savepoint(call))
    return [(True,)]


def _newest_savepoint(call: ProcedureCall) -> str:
    found = max(call.timeline.savepoints, default=None)
    if found is None:
        raise TableError("the table has no savepoint", "CALL create_savepoint makes one.")
    return found


def _rollback_to_instant(call: ProcedureCall) -> Rows:
    """As Hudi's: it takes back one write, the newest; its name promises more."""
    rollback.roll_back(call.session(), call["instant_time"])
    return [(True,)]


def _rollback_inflight(call: ProcedureCall) -> Rows:
    from hudimeta.engine.machine import now_ms

    began, time = now_ms(), call["pending_instant"]
    found = call.timeline.get(time)
    if found is None or found.is_completed:
        raise ConfigError("pending_instant", time, "a pending instant of a table service", "CALL show_timeline lists them.")
    if call["delete_request_instant_file"] is False and (found.pending_action or found.action) in (
        Action.COMPACTION,
        Action.CLUSTERING,
    ):
        hint = "Give delete_request_instant_file => true; the service is planned anew when it is due."
        raise UnsupportedFeature("taking a service back and keeping its plan", hint)
    rollback.roll_back(call.session(), time)
    return [(time, f"{(now_ms() - began) / 1000:.3f} s")]


# Versions


def _change_version(verb: str) -> Callable[[ProcedureCall], Rows]:
    def run(call: ProcedureCall) -> Rows:
        word = call["to_version"].strip().upper()
        to = _VERSIONS.get(word) or (int(word) if word.isdecimal() and len(word) < 9 else 0)
        if not to:
            raise ConfigError("to_version", call["to_version"], f"a version: {', '.join(_VERSIONS)}, or its number")
        versions.change_version(call.storage, call.options, to, verb, call.engine)
        return [(True,)]

    return run


def _runs(name: str, takes: str, gives: str, doc: str, run: Callable[[ProcedureCall], Rows], note: str = "") -> Procedure:
    return Procedure(name, takes, gives, doc, run, RunPlace.ENGINE, acts=True, note=note)


PROCEDURES = (
    _runs(
        "run_compaction",
        "op string!, @table string, @path string, timestamp bigint, options string, instants string, limit int",
        "timestamp string, operation_size int, state string",
        "Plan a compaction, run what is planned, or both (`schedule`, `execute`, `run`).",
        _run_compaction,
    ),
    _runs(
        "run_clustering",
        f"{_TABLE}, predicate string, order string, show_involved_partition boolean = false, op string, order_strategy string, "
        "options string, instants string, selected_partitions string, partition_regex_pattern string, limit int",
        "timestamp string, input_group_size int, state string, involved_partitions string",
        "Plan a clustering, run what is planned, or both (`schedule`, `execute`, `scheduleAndExecute`).",
        _run_clustering,
    ),
    _runs(
        "run_clean",
        "@table string!, schedule_in_line boolean = true, clean_policy string, retain_commits int, hours_retained int, "
        "file_versions_retained int, trigger_strategy string, trigger_max_commits int, options string",
        "start_clean_time string, time_taken_in_millis bigint, total_files_deleted int, earliest_commit_to_retain string, "
        "bootstrap_part_metadata string, version int",
        "Delete files that no retained moment needs; no row where there is nothing to do.",
        _run_clean,
        "`schedule_in_line => false` is refused.",
    ),
    _runs(
        "archive_commits",
        f"{_TABLE}, min_commits int = 20, max_commits int = 30, retain_commits int = 10, enable_metadata boolean = true",
        "result int",
        "Move old instants from the active timeline to its history; 0 when it went well.",
        _archive_commits,
    ),
    _runs(
        "run_ttl",
        "@table string!, ttl_policy string, retain_days int, options string",
        "deleted_partitions string",
        "Take partitions that have outlived their time out of the table.",
        _run_ttl,
    ),
    _runs(
        "create_savepoint",
        "@table string, commit_time string = '', user string = '', comments string = '', @path string",
        "create_savepoint_result boolean",
        "Pin a write, the newest where none is named.",
        _create_savepoint,
    ),
    _runs(
        "delete_savepoint",
        "@table string, instant_time string = '', @path string",
        "delete_savepoint_result boolean",
        "Give savepoints up, the newest where none is named.",
        _delete_savepoint,
    ),
    _runs(
        "rollback_to_savepoint",
        "@table string, instant_time string = '', @path string",
        "rollback_savepoint_result boolean",
        "Take the table back to a savepoint, the newest where none is named.",
        _rollback_to_savepoint,
    ),
    _runs(
        "rollback_to_instant",
        "@table string!, instant_time string!",
        "rollback_result boolean",
        "Take the newest write out of the table.",
        _rollback_to_instant,
    ),
    _runs(
        "run_rollback_inflight_tableservice",
        f"{_TABLE}, pending_instant string!, delete_request_instant_file boolean = false",
        "instant string, time_cost string",
        "Take a pending service back.",
        _rollback_inflight,
    ),
    _runs(
        "upgrade_table",
        "@table string!, to_version string!",
        "result boolean",
        "Move the table to a later version: `EIGHT`, `NINE`.",
        _change_version("upgrade"),
    ),
    _runs(
        "downgrade_table",
        "@table string!, to_version string!",
        "result boolean",
        "Move the table to an earlier version: `EIGHT`.",
        _change_version("downgrade"),
    ),
)
