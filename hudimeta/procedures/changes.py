"""Procedures that change a table or copy of it: partitions, markers, exported instants, tables and views made of it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence

from hudimeta.commit.markers import remove_markers
from hudimeta.config import HudiWarning
from hudimeta.engine.machine import now_ms
from hudimeta.errors import ConfigError, TableError
from hudimeta.procedures.call import ProcedureCall
from hudimeta.procedures.procedure import Procedure, Rows, RunPlace
from hudimeta.snapshot.named_partitions import named_partitions
from hudimeta.storage import open_storage
from hudimeta.timeline.archived import ArchivedRecords
from hudimeta.timeline.naming import completed_name
from hudimeta.types import Action
from hudimeta.write.table_writer import delete_partitions

__all__ = ["PROCEDURES"]

_IN_SPARK = "It makes a table or view of the session's catalog."


def _deleted(call: ProcedureCall, names: Sequence[str]) -> None:
    """Take partitions out; the result has no place for those that are not there, so a warning names them."""
    session = call.session()
    _, missing = named_partitions(session.snapshot_now(), names)
    delete_partitions(session, names)
    if missing:
        hint = "SHOW PARTITIONS, or t.file_slices(), tells the paths."
        named = ", ".join(map(repr, missing))
        warnings.warn(
            f"nothing was taken out of {named}: no partition of that path has rows. {hint}", HudiWarning, stacklevel=2
        )


def _drop_partition(call: ProcedureCall) -> Rows:
    _deleted(call, call.names("partition"))
    return [("Success",)]


def _truncate_table(call: ProcedureCall) -> Rows:
    begin, names = now_ms(), call.names("partitions")
    if names and not call.properties.is_partitioned:
        raise ConfigError("partitions", call["partitions"], "nothing: the table is not partitioned", "Leave it out.")
    if names:
        _deleted(call, names)
    else:
        delete_partitions(call.session(), ["*"])
    return [("SUCCESS", now_ms() - begin)]


def _delete_marker(call: ProcedureCall) -> Rows:
    times = call.names("instant_time")
    session = call.session()
    with session.lock.held():
        pending = {instant.time for instant in session.properties.load_timeline(call.storage).pending}
        for time in pending.intersection(times):
            hint = (
                "Roll the write back: CALL run_rollback_inflight_tableservice, or the next write does when its writer is dead."
            )
            raise TableError(f"the write at {time} is pending, and its markers say which files it made", hint)
        for time in times:
            remove_markers(session.fenced, time)
    return [(True,)]


def _export_instants(call: ProcedureCall) -> Rows:
    folder, words = call["local_folder"], call.names("actions")
    unknown = [word for word in words if word not in {action.value for action in Action}]
    if unknown:
        raise ConfigError("actions", unknown[0], ", ".join(action.value for action in Action))
    limit = call["limit"] if call["limit"] >= 0 else None
    there = open_storage(folder)
    if there.stat("") is None:
        raise ConfigError("local_folder", folder, "a folder that exists")
    actions = [action for action in Action if action.value in words]
    archived = ArchivedRecords(call.timeline.history, actions)
    known = {(i.time, i.action) for i in call.timeline.instants}
    found = [(i, archived.metadata) for i in archived.instants if (i.time, i.action) not in known]
    found += [(i, call.timeline.metadata) for i in call.timeline.completed if i.action in actions]
    chosen = (list(reversed(found)) if call["desc"] else found)[:limit]
    for instant, read in chosen:
        name = instant.file_name or completed_name(instant.time, instant.action, instant.completion)
        there.put(name.rpartition("/")[2], json.dumps(read(instant), indent=2, default=_shown).encode())
    return [(f"Exported {len(chosen)} Instants to {folder}",)]


def _shown(value: object) -> str:
    """Bytes in a record, which JSON does not know."""
    return value.hex() if isinstance(value, bytes) else str(value)


PROCEDURES = (
    Procedure(
        "drop_partition",
        "@table string!, partition string!",
        "result string",
        "Take all rows of partitions out of the table.",
        _drop_partition,
        acts=True,
    ),
    Procedure(
        "truncate_table",
        "@table string!, partitions string",
        "result string, time_cost bigint",
        "Take all rows out of the table, or out of some partitions.",
        _truncate_table,
        acts=True,
        note="It is a commit like any other: earlier moments stay readable until a clean. Apache Hudi deletes the folder.",
    ),
    Procedure(
        "delete_marker",
        "@table string!, instant_time string!",
        "delete_marker_result boolean",
        "Remove the markers that a write left, or several writes.",
        _delete_marker,
        acts=True,
        note="Those of a pending write stay: a rollback needs them.",
    ),
    Procedure(
        "export_instants",
        "@table string!, local_folder string!, limit int = -1, "
        "actions string = 'clean,commit,deltacommit,rollback,savepoint,restore', desc boolean = false",
        "export_detail string",
        "Write what completed instants say into a folder, as JSON.",
        _export_instants,
    ),
    Procedure(
        "copy_to_table",
        "@table string!, query_type string = 'snapshot', new_table string!, begin_instance_time string = '', "
        "end_instance_time string = '', as_of_instant string = '', save_mode string = 'overwrite', columns string = ''",
        "status int",
        "Write what a query of the table gives into another table of the catalog.",
        place=RunPlace.SPARK,
        why=_IN_SPARK,
    ),
    Procedure(
        "copy_to_temp_view",
        "@table string!, query_type string = 'snapshot', view_name string!, begin_instance_time string = '', "
        "end_instance_time string = '', as_of_instant string = '', replace boolean = false, global boolean = false",
        "status int",
        "Make a temporary view of what a query of the table gives.",
        place=RunPlace.SPARK,
        why=_IN_SPARK,
    ),
)
