"""After kill -9 while partitions are deleted, rows changed, streams written, changes captured or columns altered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta.config import OPTIONS
from hudimeta.engine import LocalEngine
from hudimeta.storage import Storage
from hudimeta.storage.faults import Fault
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.model import ModelTable
from hudimeta.types import Operation
from hudimeta.write.altering import alter, alteration
from hudimeta.write.row_changes import update_where
from hudimeta.write.session import WriteSession
from hudimeta.write.streaming import write_stream
from hudimeta.write.table_writer import delete_partitions, write_rows
from tests.crash.killing import Scene, survive_errors, survive_kills

TYPE, CAPTURE = "hoodie.datasource.write.table.type", "hoodie.table.cdc.enabled"
ROWS = simple_rows(range(10, 30), 5)
Doing = Callable[[WriteSession], object]


def _stream(session: WriteSession) -> object:
    reader = pa.RecordBatchReader.from_batches(ROWS.schema, iter(ROWS.to_batches(max_chunksize=4)))
    return write_stream(session, Operation.UPSERT, reader)


def _added(model: ModelTable) -> None:
    """A new column is null everywhere, which a row says by not having it."""


WAYS: dict[str, tuple[Doing, Callable[[ModelTable], None]]] = {
    "delete_partition": (
        lambda session: delete_partitions(session, ["p1"]),
        lambda model: model.write(Operation.DELETE_PARTITION, simple_rows([1], 0)),
    ),
    "update": (
        lambda session: update_where(session, {"x": "x + 1"}, "ts = 2"),
        lambda model: model.change(lambda row: {**row, "x": row["x"] + 1} if row["ts"] == 2 else row),
    ),
    "upsert": (
        lambda session: write_rows(session, Operation.UPSERT, ROWS),
        lambda model: model.write(Operation.UPSERT, ROWS),
    ),
    "stream": (_stream, lambda model: model.write(Operation.UPSERT, ROWS)),
    "alter": (lambda session: alter(session, alteration({"z": pa.int64()}, {}, (), {})), _added),
}


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def started(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModelledTable:
    """A table that captures changes, altered once so that its commits carry a history."""
    options = {**SIMPLE_OPTIONS, TYPE: request.param, CAPTURE: "true"}
    table = ModelledTable(str(tmp_path_factory.mktemp("crash") / "t"), options)
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    alter(table.session(), alteration({"y": pa.int64()}, {}, (), {}))
    table.write(Operation.UPSERT, simple_rows(range(15, 25), 2))
    return table


def scene_of(table: ModelledTable, way: str) -> Scene:
    do, expect = WAYS[way]
    options = OPTIONS.read({**table.options.given, "hudimeta.write.portion.bytes": "400"})

    def act(path: Path, storage: Storage) -> None:
        do(WriteSession(storage, options, engine=LocalEngine(1)))

    after = table.model.copy()
    expect(after)
    return Scene(Path(table.path), act, table.model, after)


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_change_is_taken_back_or_whole(started: ModelledTable, tmp_path: Path, way: str) -> None:
    survive_kills(scene_of(started, way), tmp_path)


@pytest.mark.parametrize("way", ["delete_partition", "stream"])
@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.ERROR_AFTER])
def test_errors_of_storage(started: ModelledTable, tmp_path: Path, way: str, fault: Fault) -> None:
    survive_errors(scene_of(started, way), fault, tmp_path)
