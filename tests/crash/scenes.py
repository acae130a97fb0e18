"""All that can be done to a table with every index, each as a scene: the table before, the act, what must come of it."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

from hudimeta.api import verbs
from hudimeta.api.plain_write import PlainWrite
from hudimeta.api.table import Table
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.engine import LocalEngine
from hudimeta.services import archival, clean, clustering, compaction, log_compaction, restore, rollback, savepoints
from hudimeta.services.indexing import create_beside, create_index, drop_index, rebuild, resize
from hudimeta.storage import Storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_place, simple_rows
from hudimeta.testing.model import ModelTable
from hudimeta.types import Action, Operation, TableType
from hudimeta.write.altering import alter, alteration
from hudimeta.write.creation import create_table
from hudimeta.write.row_changes import update_where
from hudimeta.write.streaming import write_stream
from hudimeta.write.table_writer import delete_partitions, write_rows
from tests.crash.killing import Scene, calls_of, killed_at

__all__ = ["LOGS_ALONE", "SCENES", "TYPES", "Starts"]

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
INDEXED = {
    **SIMPLE_OPTIONS,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.metadata.index.secondary.column": "ts",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.bloom.filter.file.group.count": "1",
    "hoodie.metadata.index.column.stats.file.group.count": "1",
    "hoodie.metadata.index.expression.file.group.count": "1",
}
UPKEEP = {"hoodie.metadata.compact.max.delta.commits": "1"}
SHORT = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    **UPKEEP,
}
MERGED_SOON = {"hoodie.log.compaction.blocks.threshold": "2"}
FEW, ROWS = simple_rows([1, 3, 60], 5), simple_rows(range(6, 18), 5)


class Starts:
    """Tables to begin with, each made once.

    Args:
        home: Where they are made.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.young, self.worn, self.aged = cache(self._young), cache(self._worn), cache(self._aged)
        self.dead, self.bare, self.captured = cache(self._dead), cache(self._bare), cache(self._captured)
        self.empty, self.calls, self.logged = cache(self._empty), cache(self._calls), cache(self._logged)

    def scene(self, name: str, type: str) -> Scene:
        """A scene by its name in `SCENES`."""
        return SCENES[name](self, type)

    def _calls(self, name: str, type: str) -> list[str]:
        return calls_of(self.scene(name, type), self.home / f"calls {name} {type}")

    def _new(self, name: str, given: Mapping[str, str]) -> ModelledTable:
        return ModelledTable(str(self.home / name), given)

    def _young(self, type: str) -> ModelledTable:
        """A table with two commits, on a merge-on-read table the second one in logs, and two expression indexes."""
        table = self._new(f"young {type}", options_of(type))
        table.write(Operation.INSERT, simple_rows(range(12), 1))
        create_index(table.session(), kind="column_stats", name="up", columns=["id"], expression="upper")
        create_index(table.session(), kind="bloom_filters", name="low", columns=["part"], expression="lower")
        table.write(Operation.UPSERT, simple_rows(range(4, 10), 2))
        return table

    def _worn(self, type: str) -> ModelledTable:
        """The same after a few more commits: files to clean, instants to archive."""
        return self._later("worn", type, range(3, 8))

    def _logged(self, type: str) -> ModelledTable:
        """The young one after one more commit: two log blocks in each slice."""
        source = self.young(type)
        path = self.home / f"logged {type}"
        shutil.copytree(source.path, path, symlinks=True)
        table = ModelledTable(str(path), options_of(type), model=source.model.copy(), exists=True)
        table.write(Operation.UPSERT, simple_rows(range(2, 6), 3))
        return table

    def _aged(self, type: str) -> ModelledTable:
        """The same after so many commits that the past of the metadata table can be cleaned and archived as well."""
        return self._later("aged", type, range(3, 25))

    def _later(self, name: str, type: str, stamps: Iterable[int]) -> ModelledTable:
        source = self.young(type)
        path = self.home / f"{name} {type}"
        shutil.copytree(source.path, path, symlinks=True)
        kept = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
        given = {**options_of(type), **kept, "hoodie.metadata.compact.max.delta.commits": "4"}
        table = ModelledTable(str(path), given, model=source.model.copy(), exists=True)
        for ts in stamps:
            table.write(Operation.UPSERT, simple_rows([ts % 6], ts))
        if type == "MERGE_ON_READ":
            Table(str(path), given).compact()
            table.write(Operation.UPSERT, simple_rows([0, 1], 30))
        return table

    def _dead(self, type: str) -> tuple[Path, ModelTable]:
        """A table with an upsert that died as late as possible, so that the metadata table has to be taken back as well."""
        scene = self.scene("upsert", type)
        done = (".commit", ".deltacommit")
        calls = self.calls("upsert", type)
        last = max(n for n, c in enumerate(calls) if c.startswith("put_if_absent .hoodie/timeline/") and c.endswith(done))
        copy = scene.fresh(self.home / f"dead {type}")
        assert killed_at(scene, last, copy)
        return copy, scene.before

    def _captured(self, type: str) -> ModelledTable:
        """A table that captures changes, altered once so that its commits carry a history."""
        table = self._new(f"captured {type}", {**options_of(type), "hoodie.table.cdc.enabled": "true"})
        table.write(Operation.INSERT, simple_rows(range(12), 1))
        alter(table.session(), alteration({"y": pa.int64()}, {}, (), {}, {}))
        return table

    def _empty(self, type: str) -> ModelledTable:
        """A table without a commit."""
        return self._new(f"empty {type}", options_of(type))

    def _bare(self, type: str) -> ModelledTable:
        """A table without a metadata table."""
        table = self._new(f"bare {type}", {**options_of(type), "hoodie.metadata.enable": "false"})
        table.write(Operation.INSERT, simple_rows(range(12), 1))
        return table


def options_of(type: str, *more: Mapping[str, str]) -> dict[str, str]:
    given = {**INDEXED, "hoodie.datasource.write.table.type": type}
    if type == "MERGE_ON_READ":
        given["hoodie.parquet.small.file.limit"] = "0"  # else inserts would rewrite base files, and nothing went to logs
    for options in more:
        given |= options
    return given


def session(storage: Storage, type: str, *more: Mapping[str, str]) -> WriteSession:
    return WriteSession(storage, OPTIONS.read(options_of(type, *more)), engine=LocalEngine(1))


Make = Callable[[Starts, str], Scene]


def _unchanged(model: ModelTable) -> None:
    """What reads the same before and after: a service, an index, a column without values."""


def _on(
    start: Callable[[Starts, str], tuple[str | Path, ModelTable]],
    do: Callable[[WriteSession], object],
    expect: Callable[[ModelTable], None] = _unchanged,
    given: Mapping[str, str] | None = None,
    *,
    again: Callable[[WriteSession], object] | None = None,
    kept: int = 2,
) -> Make:
    """A scene.

    Args:
        start: The table before, and its model.
        do: The act.
        expect: What it makes of the model.
        given: Options of the act.
        again: What must succeed after the next write, and does what is left to do.
        kept: How many moments are read again.
    """

    def make(starts: Starts, type: str) -> Scene:
        path, model = start(starts, type)
        more = given or {}
        before = model.copy()
        before.past = {time: before.past[time] for time in sorted(before.past)[-kept:]}
        after = before.copy()
        expect(after)

        def act(_: Path, storage: Storage) -> None:
            do(session(storage, type, more))

        def repeat(_: Path, storage: Storage) -> None:
            if again is not None:
                again(session(storage, type, more))

        return Scene(Path(path), act, before, after, again=repeat if again is not None else None)

    return make


def young(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.young(type)
    return table.path, table.model


def worn(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.worn(type)
    return table.path, table.model


def logged(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.logged(type)
    return table.path, table.model


def empty(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.empty(type)
    return table.path, table.model


def captured(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.captured(type)
    return table.path, table.model


def aged(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.aged(type)
    return table.path, table.model


def bare(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.bare(type)
    return table.path, table.model


def dead(starts: Starts, type: str) -> tuple[Path, ModelTable]:
    return starts.dead(type)


def _write(operation: Operation, rows: pa.Table, **more: str) -> Make:
    return _on(
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

    return _on(young, make, again=make)


def _index_beside(session: WriteSession) -> None:
    if "secondary_index_part" not in session.properties.metadata_partitions:
        create_beside(session, kind="secondary_index", name="part", columns=["part"])


def _drop(session: WriteSession) -> None:
    if "secondary_index_ts" in session.properties.metadata_partitions:
        drop_index(session.storage, session.options, "secondary_index_ts")


def _clustered(starts: Starts, type: str) -> Scene:
    """A clustering that is planned and run; while it is pending nobody changes the rows that it names, but rows may come."""
    sorting = {"hoodie.clustering.plan.strategy.sort.columns": "x"}
    scene = _on(young, clustering.cluster, given=sorting, again=clustering.cluster)(starts, type)
    return replace(scene, comes=simple_rows([900, 901], 900))


def _compacted(starts: Starts, type: str) -> Scene:
    """A compaction that is planned and run; the next write plans none, so another run finishes what was begun."""
    return _on(young, compaction.compact, again=compaction.compact)(starts, type)


def _logs_merged(starts: Starts, type: str) -> Scene:
    """The same of a log compaction."""
    return _on(logged, log_compaction.log_compact, given=MERGED_SOON, again=log_compaction.log_compact)(starts, type)


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
    "first write": _on(
        empty, lambda session: write_rows(session, Operation.INSERT, ROWS), lambda model: model.write(Operation.INSERT, ROWS)
    ),
    "bulk_insert": _write(Operation.BULK_INSERT, simple_rows(range(20, 26), 5)),
    "upsert": _write(Operation.UPSERT, ROWS),
    "delete": _write(Operation.DELETE, simple_rows(range(4), 5)),
    "insert_overwrite": _write(Operation.INSERT_OVERWRITE, FEW),
    "insert_overwrite_table": _write(Operation.INSERT_OVERWRITE_TABLE, FEW),
    "delete_partition": _on(
        young,
        lambda session: delete_partitions(session, ["p1"]),
        lambda model: model.write(Operation.DELETE_PARTITION, simple_rows([1], 0)),
    ),
    "update": _on(
        young,
        lambda session: update_where(session, {"x": "x + 1"}, "ts = 2"),
        lambda model: model.change(lambda row: {**row, "x": row["x"] + 1} if row["ts"] == 2 else row),
    ),
    "merge": _on(young, _merge, _merged),
    "stream": _on(young, _stream, lambda model: model.write(Operation.UPSERT, ROWS), {"hudimeta.write.portion.bytes": "400"}),
    "plain write of two tasks": _plain,
    "upsert whose changes are captured": _on(
        captured, lambda session: write_rows(session, Operation.UPSERT, ROWS), lambda model: model.write(Operation.UPSERT, ROWS)
    ),
    "alter": _on(young, lambda session: alter(session, alteration({"z": pa.int64()}, {}, (), {}, {}))),
    "upkeep of the metadata table": _on(
        aged,
        lambda session: write_rows(session, Operation.UPSERT, FEW),
        lambda model: model.write(Operation.UPSERT, FEW),
        {"hoodie.metadata.compact.max.delta.commits": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"},
        again=lambda session: write_rows(session, Operation.UPSERT, FEW),
    ),
    "compaction": _compacted,
    "log compaction": _logs_merged,
    "clustering": _clustered,
    "clean": _on(worn, clean.clean, given=SHORT, again=clean.clean, kept=1),
    "archive": _on(worn, archival.archive, given=SHORT, again=archival.archive),
    "rollback": _on(dead, lambda session: session.coordinator.recover()),
    "savepoint": _on(young, savepoints.save, again=savepoints.save),
    "restore": _on(worn, _restore, _restored),
    "restore over an index": _on(young, _restore, _restored),
    "rollback of a completed write": _on(worn, _roll_back, _restored),
    "create": _created,
    "bootstrap of the metadata table": _on(
        bare, lambda session: write_rows(session, Operation.UPSERT, ROWS), lambda model: model.write(Operation.UPSERT, ROWS)
    ),
    "make an index of values": _index("secondary_index_part", kind="secondary_index", name="part", columns=["part"]),
    "make an index of bounds": _index("expr_index_far", kind="column_stats", name="far", columns=["x"], expression="identity"),
    "make an index beside writers": _on(young, _index_beside, again=_index_beside),
    "drop an index": _on(young, _drop, again=_drop),
    "rebuild": _on(young, rebuild, again=rebuild),
    "resize an index": _on(young, lambda session: resize(session, 3), again=lambda session: resize(session, 3)),
}
LOGS_ALONE = ("compaction", "log compaction")
"""Scenes of merge-on-read tables alone."""
