"""After kill -9 while a metadata table is built anew that had lost a part of itself the table goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.engine import LocalEngine
from hudimeta.services.indexing import rebuild
from hudimeta.storage import Storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.model import ModelTable
from hudimeta.types import Operation
from tests.crash.killing import Scene, calls_of, survive_all, usual_points
from tests.rotation import in_turn

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


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Started:
    """A merge-on-read table with indexes, whose file groups have logs."""
    path = tmp_path_factory.mktemp("crash") / "t"
    table = ModelledTable(str(path), INDEXED)
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    table.write(Operation.UPSERT, simple_rows(range(15, 20), 2))
    return path, table.model


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

    scene = Scene(path, act, model, model, hide)
    calls = calls_of(scene, tmp_path / "calls")
    survive_all(scene, in_turn(usual_points(len(calls), 0), 3), calls, tmp_path / "points")
