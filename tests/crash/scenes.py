"""All that can be done to a table with every index, each as a scene: the table before, the act, what must come of it."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

from hudimeta.api import verbs
from hudimeta.api.plain_write import PlainWrite
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.services import archival, clean, clustering, compaction, log_compaction, restore, rollback, savepoints
from hudimeta.services.indexing import create_beside, create_index, drop_index, rebuild, resize
from hudimeta.services.partial_logs import compact_partial_logs
from hudimeta.storage import Storage
from hudimeta.testing.builders import ModelledTable, simple_place, simple_rows
from hudimeta.testing.model import ModelTable
from hudimeta.types import Action, Operation, TableType
from hudimeta.write.altering import alter, alteration
from hudimeta.write.creation import create_table
from hudimeta.write.row_changes import update_where
from hudimeta.write.streaming import write_stream
from hudimeta.write.table_writer import delete_partitions, write_rows
from tests.crash.killing import Scene
from tests.crash.service_scenes import SERVICE_SCENES
from tests.crash.starts import (
    FEW,
    MERGED_SOON,
    ROWS,
    SHORT,
    Make,
    Starts,
    aged,
    bare,
    captured,
    dead,
    empty,
    logged,
    on,
    options_of,
    spread,
    worn,
    young,
)

__all__ = ["LOGS_ALONE", "SCENES", "age_heartbeats"]


def _write(operation: Operation, rows: pa.Table, **more: str) -> Make:
    return on(
        young,
        lambda session: write_rows(session, operation, rows),
        lambda model: model.write(operation, rows),
        {key.replace("__", "."): value for key, value in more.items()},
    )


def _merge(session: WriteSession) -> None:
    builder = verbs.merge(session.storage, session.options, simple_rows([2, 3, 40], 5), "id", ("target", "source"))
    builder.when_matched_update({"x": "source.x"}).when_not_matched_insert(
        {n: f"source.{n}" for n in ROWS.column_names}
    ).execute()


def _merged(model: ModelTable) -> None:
    model.change(lambda row: {**row, "x": 5.0} if row["id"] in ("k0002", "k0003") else row)
    model.write(Operation.UPSERT, simple_rows([40], 5))


def _stream(session: WriteSession) -> None:
    reader = pa.RecordBatchReader.from_batches(ROWS.schema, iter(ROWS.to_batches(max_chunksize=4)))
    write_stream(session, Operation.UPSERT, reader)


def _plain(starts: Starts, type: str) -> Scene:
    """Two tasks and a commit, all of them in the process that dies; minutes later somebody looks."""
    table = starts.young(type)
    parts = [simple_rows(range(6, 14), 5), simple_rows(range(10, 18), 6)]

    def act(path: Path, storage: Storage) -> None:
        # Every step opens the table by its path; this makes each of them meet the same faults.
        with mock.patch("hudimeta.api.plain_write.open_storage", return_value=storage):
            write = PlainWrite.begin(str(path), options_of(type), parts[0].schema, overwrite=False)
            write = pickle.loads(pickle.dumps(write))
            try:
                write.commit([write.write(iter(rows.to_batches()), task, 0) for task, rows in enumerate(parts)])
            except Exception:
                write.abort()
                raise

    after = table.model.copy()
    after.write(Operation.UPSERT, pa.concat_tables(parts))
    return Scene(Path(table.path), act, table.model, after, age_heartbeats)


def age_heartbeats(path: Path) -> None:
    """As if minutes had passed since the writer died."""
    for beat in (path / ".hoodie/.heartbeat").glob("*"):
        os.utime(beat, (1, 1))


def _beside_a_window(starts: Starts, type: str) -> Scene:
    """An upsert that asks the record window, merges its runs and adds one."""
    table = starts.windowed(type)

    def act(_: Path, storage: Storage) -> None:
        write_rows(WriteSession(storage, table.options), Operation.UPSERT, ROWS)

    after = table.model.copy()
    after.write(Operation.UPSERT, ROWS)
    return Scene(Path(table.path), act, table.model, after)


def _created(starts: Starts, type: str) -> Scene:
    """Unless the creation got as far as making the table, another one succeeds; either way the table is sound and empty."""
    options = OPTIONS.read(options_of(type))

    def create(_: Path, storage: Storage) -> None:
        create_table(storage, FEW.schema, options)

    def ensure(path: Path) -> None:
        if not (path / ".hoodie/hoodie.properties").exists():
            ModelledTable(str(path), options_of(type))

    nothing = ModelTable(simple_place, "ts")
    return Scene(None, create, nothing, nothing.copy(), ensure)


def _index(partition: str, **what: Any) -> Make:
    def make(session: WriteSession) -> None:
        if partition not in session.properties.metadata_partitions:
            create_index(session, **what)

    return on(young, make, again=make)


def _index_beside(session: WriteSession) -> None:
    if "secondary_index_part" not in session.properties.metadata_partitions:
        create_beside(session, kind="secondary_index", name="part", columns=["part"])


def _drop(session: WriteSession) -> None:
    if "secondary_index_ts" in session.properties.metadata_partitions:
        drop_index(session.storage, session.options, "secondary_index_ts")


def _clustered(starts: Starts, type: str) -> Scene:
    """A clustering that is planned and run; while it is pending nobody changes the rows that it names, but rows may come."""
    sorting = {"hoodie.clustering.plan.strategy.sort.columns": "x"}
    scene = on(young, clustering.cluster, given=sorting, again=clustering.cluster)(starts, type)
    return replace(scene, comes=simple_rows([900, 901], 900))


def _compacted(starts: Starts, type: str) -> Scene:
    """A compaction that is planned and run; the next write plans none, so another run finishes what was begun."""
    return on(young, compaction.compact, again=compaction.compact)(starts, type)


def _logs_merged(starts: Starts, type: str) -> Scene:
    """The same of a log compaction."""
    return on(logged, log_compaction.log_compact, given=MERGED_SOON, again=log_compaction.log_compact)(starts, type)


def _restored(model: ModelTable) -> None:
    """As of the earlier of the two moments that are kept."""
    point = min(model.past)
    model.rows, model.past = {}, {point: model.past[point]}
    for row in model.past[point]:
        model.rows.setdefault(model.place_of(row), []).append(row)


def _restore(session: WriteSession) -> None:
    """To the write before the newest that the model remembers; a compaction between the two goes as well."""
    timeline = session.properties.load_timeline(session.storage)
    merges = session.properties.type is TableType.MERGE_ON_READ
    writes = [i for i in timeline.writes if not (merges and i.action is Action.COMMIT)]
    restore.restore(session, writes[-2].time)


def _roll_back(session: WriteSession) -> None:
    rollback.roll_back(session, session.properties.load_timeline(session.storage).writes[-1].time)


SCENES: Mapping[str, Make] = {
    "insert": _write(Operation.INSERT, simple_rows(range(20, 26), 5)),
    "first write": on(
        empty, lambda session: write_rows(session, Operation.INSERT, ROWS), lambda model: model.write(Operation.INSERT, ROWS)
    ),
    "bulk_insert": _write(Operation.BULK_INSERT, simple_rows(range(20, 26), 5)),
    "upsert": _write(Operation.UPSERT, ROWS),
    "delete": _write(Operation.DELETE, simple_rows(range(4), 5)),
    "insert_overwrite": _write(Operation.INSERT_OVERWRITE, FEW),
    "insert_overwrite_table": _write(Operation.INSERT_OVERWRITE_TABLE, FEW),
    "delete_partition": on(
        young,
        lambda session: delete_partitions(session, ["p1"]),
        lambda model: model.write(Operation.DELETE_PARTITION, simple_rows([1], 0)),
    ),
    "update": on(
        young,
        lambda session: update_where(session, {"x": "x + 1"}, "ts = 2"),
        lambda model: model.change(lambda row: {**row, "x": row["x"] + 1} if row["ts"] == 2 else row),
    ),
    "merge": on(young, _merge, _merged),
    "stream": on(young, _stream, lambda model: model.write(Operation.UPSERT, ROWS), {"hudimeta.write.portion.bytes": "400"}),
    "plain write of two tasks": _plain,
    "upsert beside a record window": _beside_a_window,
    "upsert whose changes are captured": on(
        captured, lambda session: write_rows(session, Operation.UPSERT, ROWS), lambda model: model.write(Operation.UPSERT, ROWS)
    ),
    "alter": on(young, lambda session: alter(session, alteration({"z": pa.int64()}), compact_partial_logs)),
    "upkeep of the metadata table": on(
        aged,
        lambda session: write_rows(session, Operation.UPSERT, FEW),
        lambda model: model.write(Operation.UPSERT, FEW),
        {"hoodie.metadata.compact.max.delta.commits": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"},
        again=lambda session: write_rows(session, Operation.UPSERT, FEW),
    ),
    "compaction": _compacted,
    "log compaction": _logs_merged,
    "clustering": _clustered,
    "clean": on(worn, clean.clean, given=SHORT, again=clean.clean, kept=1),
    "archive": on(worn, archival.archive, given=SHORT, again=archival.archive, archives=True),
    "rollback": on(dead, lambda session: session.coordinator.recover()),
    "savepoint": on(young, savepoints.save, again=savepoints.save),
    "restore": on(worn, _restore, _restored),
    "restore over an index": on(young, _restore, _restored),
    "rollback of a completed write": on(worn, _roll_back, _restored),
    "create": _created,
    "bootstrap of the metadata table": on(
        bare, lambda session: write_rows(session, Operation.UPSERT, ROWS), lambda model: model.write(Operation.UPSERT, ROWS)
    ),
    "make an index of values": _index("secondary_index_part", kind="secondary_index", name="part", columns=["part"]),
    "make an index of bounds": _index("expr_index_far", kind="column_stats", name="far", columns=["x"], expression="identity"),
    "make an index beside writers": on(young, _index_beside, again=_index_beside),
    "drop an index": on(young, _drop, again=_drop),
    "rebuild": on(young, rebuild, again=rebuild),
    "resize an index": on(young, lambda session: resize(session, 3), again=lambda session: resize(session, 3)),
    "resize an index to fewer": on(spread, lambda session: resize(session, 2), again=lambda session: resize(session, 2)),
    **SERVICE_SCENES,
}
LOGS_ALONE = ("compaction", "log compaction", "compaction by steps")
"""Scenes of merge-on-read tables alone."""
