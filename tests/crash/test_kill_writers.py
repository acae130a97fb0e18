"""After kill -9 at any moment the next write brings the table to before or after, by itself."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta.config import OPTIONS
from hudimeta.engine import LocalEngine
from hudimeta.errors import HudiError
from hudimeta.storage import Storage, open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_place, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.testing.model import ModelTable
from hudimeta.types import Operation
from hudimeta.write.creation import create_table
from hudimeta.write.plain import PlainWrite
from hudimeta.write.session import WriteSession
from hudimeta.write.table_writer import write_rows
from tests.crash.killing import Scene, calls_of, killed_at, survive_errors, survive_kills, survive_recoveries

BATCHES: Mapping[str, tuple[Operation, pa.Table]] = {
    "insert": (Operation.INSERT, simple_rows(range(40, 52), 5)),
    "bulk_insert": (Operation.BULK_INSERT, simple_rows(range(40, 44), 5)),
    "upsert": (Operation.UPSERT, simple_rows(range(10, 30), 5)),
    "delete": (Operation.DELETE, simple_rows(range(4), 5)),
    "insert_overwrite": (Operation.INSERT_OVERWRITE, simple_rows([1, 3, 60], 5)),
    "insert_overwrite_table": (Operation.INSERT_OVERWRITE_TABLE, simple_rows([1, 3], 5)),
}
LOGS = {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
COMPACT_NOW = {**SIMPLE_OPTIONS, "hoodie.metadata.compact.max.delta.commits": "2"}


def scene_of(table: Path | None, before: ModelTable, operation: Operation, rows: pa.Table, given: Mapping[str, str]) -> Scene:
    options = OPTIONS.read(given)

    def act(path: Path, storage: Storage) -> None:
        write_rows(WriteSession(storage, options, engine=LocalEngine(1)), operation, rows)

    after = before.copy()
    after.write(operation, rows)
    return Scene(table, act, before, after)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ModelTable]:
    """A table with a few commits."""
    path = tmp_path_factory.mktemp("crash") / "t"
    table = ModelledTable(str(path))
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    table.write(Operation.UPSERT, simple_rows(range(15, 25), 2))
    return path, table.model


@pytest.fixture(scope="module")
def started_logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ModelTable]:
    """A merge-on-read table whose file groups have logs."""
    path = tmp_path_factory.mktemp("crash") / "t"
    table = ModelledTable(str(path), LOGS)
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    table.write(Operation.UPSERT, simple_rows(range(15, 20), 2))
    return path, table.model


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ModelTable]:
    """A table without a metadata table, as older writers leave them."""
    path = tmp_path_factory.mktemp("crash") / "t"
    table = ModelledTable(str(path), {**SIMPLE_OPTIONS, "hoodie.metadata.enable": "false"})
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    return path, table.model


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table without a commit."""
    path = tmp_path_factory.mktemp("crash") / "t"
    ModelledTable(str(path))
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


Started = tuple[Path, ModelTable]


@pytest.mark.parametrize("name", BATCHES)
def test_a_killed_write_is_taken_back_by_the_next_one(started: Started, home: Path, name: str) -> None:
    survive_kills(scene_of(*started, *BATCHES[name], SIMPLE_OPTIONS), home, every=name in ("insert", "upsert"))


@pytest.mark.parametrize("name", ["upsert", "delete", "insert"])
def test_a_killed_write_of_logs_is_taken_back(started_logs: Started, home: Path, name: str) -> None:
    survive_kills(scene_of(*started_logs, *BATCHES[name], LOGS), home)


def test_a_write_killed_while_it_builds_the_metadata_table(bare: Started, home: Path) -> None:
    survive_kills(scene_of(*bare, *BATCHES["upsert"], SIMPLE_OPTIONS), home)


def test_a_killed_first_write_leaves_an_empty_table(empty: Path, home: Path) -> None:
    survive_kills(scene_of(empty, ModelTable(simple_place, "ts"), *BATCHES["insert"], SIMPLE_OPTIONS), home)


def test_a_write_killed_while_it_compacts_the_metadata_table(started: Started, home: Path) -> None:
    survive_kills(scene_of(*started, *BATCHES["upsert"], COMPACT_NOW), home)


def test_recovery_alone_does_what_the_next_write_does(started: Started, home: Path) -> None:
    survive_recoveries(scene_of(*started, *BATCHES["upsert"], COMPACT_NOW), home)


def test_a_killed_rollback_is_finished(started: Started, home: Path) -> None:
    """Of a write that died as late as possible, so that the metadata table has to be taken back as well."""
    write = scene_of(*started, *BATCHES["upsert"], SIMPLE_OPTIONS)
    calls = calls_of(write, home / "calls")
    (last,) = [
        n for n, call in enumerate(calls) if call.startswith("put_if_absent .hoodie/timeline/") and call.endswith(".commit")
    ]
    dead = write.fresh(home / "dead")
    assert killed_at(write, last, dead)

    def recover(path: Path, storage: Storage) -> None:
        assert WriteSession(storage, OPTIONS.read(SIMPLE_OPTIONS)).coordinator.recover()

    rollback = Scene(dead, recover, write.before, write.before)
    (home / "points").mkdir()
    survive_kills(rollback, home / "points")


@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.ERROR_AFTER])
@pytest.mark.parametrize("name", ["upsert", "insert_overwrite"])
def test_an_error_of_storage_is_survived_or_raised(started: Started, home: Path, name: str, fault: Fault) -> None:
    survive_errors(scene_of(*started, *BATCHES[name], COMPACT_NOW), fault, home)


# Writes that pass through many processes


def plain_scene(started: Started, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Two tasks and a commit, all of them in the process that dies."""
    parts = [simple_rows(range(10, 22), 5), simple_rows(range(18, 30), 6)]

    def act(path: Path, storage: Storage) -> None:
        # Every step opens the table by its path; this makes each of them meet the same faults.
        monkeypatch.setattr("hudimeta.write.plain.open_storage", lambda location, options=None: storage)
        try:
            write = PlainWrite.begin(str(path), SIMPLE_OPTIONS, parts[0].schema, overwrite=False)
            write = pickle.loads(pickle.dumps(write))
            try:
                messages = [write.write(iter(rows.to_batches()), task, 0) for task, rows in enumerate(parts)]
                write.commit(messages)
            except Exception:
                write.abort()
                raise
        finally:
            monkeypatch.undo()

    after = started[1].copy()
    after.write(Operation.UPSERT, pa.concat_tables(parts))
    return Scene(started[0], act, started[1], after, age_heartbeats)


def age_heartbeats(path: Path) -> None:
    """As if minutes had passed since the writer died."""
    for beat in (path / ".hoodie/.heartbeat").glob("*"):
        os.utime(beat, (1, 1))


def test_a_killed_plain_write_is_taken_back(started: Started, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    survive_kills(plain_scene(started, monkeypatch), home)


@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.ERROR_AFTER])
def test_an_error_in_a_plain_write(started: Started, home: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    survive_errors(plain_scene(started, monkeypatch), fault, home)


# Creation


def create(path: Path, storage: Storage) -> None:
    create_table(storage, simple_rows([], 0).schema, OPTIONS.read(SIMPLE_OPTIONS))


CREATION = Scene(None, create, ModelTable(simple_place, "ts"), ModelTable(simple_place, "ts"))


def check_table_can_be_made(path: Path) -> None:
    """Unless the creation got as far as making the table, another one succeeds; either way the table is sound and empty."""
    if not (path / ".hoodie/hoodie.properties").exists():
        create(path, open_storage(path))
    table = ModelledTable(str(path), exists=True)
    check_all(table.storage)
    table.write(Operation.UPSERT, simple_rows(range(4), 1))
    table.check()
    check_all(table.storage)


def test_a_killed_creation_leaves_a_place_where_creation_succeeds(home: Path) -> None:
    for at, call in enumerate(calls_of(CREATION, home / "calls")):
        copy = CREATION.fresh(home / str(at))
        assert killed_at(CREATION, at, copy), call
        check_table_can_be_made(copy)


@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.ERROR_AFTER])
def test_after_a_failed_creation_another_one_succeeds(home: Path, fault: Fault) -> None:
    for at, call in enumerate(calls_of(CREATION, home / "calls")):
        copy = CREATION.fresh(home / str(at))
        raised = ""
        try:
            create(copy, FaultyStorage(open_storage(copy), FaultPlan(at, fault)))
        except HudiError as error:
            raised = str(error)
        made = (copy / ".hoodie/hoodie.properties").exists()
        assert made == (not raised), f"{call}: {raised or 'no error'}, and the table is {'there' if made else 'not there'}"
        check_table_can_be_made(copy)
