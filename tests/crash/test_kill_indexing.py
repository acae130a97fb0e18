"""After kill -9 at any moment of making, dropping or rebuilding indexes the table is sound, and recovery tidies up."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta.config import OPTIONS
from hudimeta.engine import LocalEngine
from hudimeta.hudi_table import Table
from hudimeta.services.indexing import create_index, drop_index, rebuild
from hudimeta.storage import Storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.inspection import Inspection
from hudimeta.testing.model import ModelTable
from hudimeta.types import Operation
from hudimeta.write.session import WriteSession
from tests.crash.killing import Scene, calls_of, check_goes_on, killed_at, points, survive_kills

INDEXED = {
    **SIMPLE_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
Started = tuple[Path, ModelTable]


def session(storage: Storage) -> WriteSession:
    return WriteSession(storage, OPTIONS.read(INDEXED), engine=LocalEngine(1))


VERBS: dict[str, Callable[[Storage], object]] = {
    "make an index of bounds": lambda s: create_index(
        session(s), kind="column_stats", name="up", columns=["id"], expression="upper"
    ),
    "make a secondary index": lambda s: create_index(session(s), kind="secondary_index", name="ts", columns=["ts"]),
    "drop an index": lambda s: drop_index(s, OPTIONS.read({}), "bloom_filters"),
    "rebuild": lambda s: rebuild(session(s)),
}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Started:
    """A merge-on-read table with indexes, whose file groups have logs."""
    path = tmp_path_factory.mktemp("crash") / "t"
    table = ModelledTable(str(path), INDEXED)
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    table.write(Operation.UPSERT, simple_rows(range(15, 20), 2))
    return path, table.model


def _nobody_owns(storage: Storage) -> list[str]:
    """Folders of the metadata table that the properties do not name, and what is pending on its timeline."""
    table = Inspection(storage)
    folders = {entry.name for entry in storage.list(".hoodie/metadata") if entry.is_folder and entry.name != ".hoodie"}
    pending = [f"pending {i.time}" for i in (table.metadata.timeline.pending if table.metadata is not None else ())]
    return sorted(folders - set(table.properties.metadata_partitions)) + pending


@pytest.mark.parametrize("name", VERBS)
def test_a_killed_verb_leaves_a_sound_table(started: Started, tmp_path: Path, name: str) -> None:
    path, model = started
    scene = Scene(path, lambda _, storage: VERBS[name](storage) and None, model, model)
    calls = calls_of(scene, tmp_path / "calls")
    for at in points(len(calls), every=name == "drop an index"):
        copy = scene.fresh(tmp_path / str(at))
        if killed_at(scene, at, copy):
            where = f"a kill before call {at}, {calls[at]}"
            check_goes_on(scene, copy, where)
            Table(str(copy)).recover()
            assert not _nobody_owns(ModelledTable(str(copy), exists=True).storage), where
        shutil.rmtree(copy)


def test_a_killed_rebuild_of_what_was_lost(started: Started, tmp_path: Path) -> None:
    """Until it is done the properties name no metadata table, and the next write builds one."""
    source, model = started
    (tmp_path / "points").mkdir()
    path = shutil.copytree(source, tmp_path / "lost")
    shutil.rmtree(path / ".hoodie/metadata/record_index")

    def act(_: Path, storage: Storage) -> None:
        rebuild(session(storage))

    def hide(copy: Path) -> None:
        """The metadata table is broken until the rebuild has begun: only then anybody can go on."""
        if (copy / ".hoodie/metadata").is_dir() and not (copy / ".hoodie/metadata/record_index").is_dir():
            rebuild(session(ModelledTable(str(copy), exists=True).storage))

    survive_kills(Scene(path, act, model, model, hide), tmp_path / "points")
