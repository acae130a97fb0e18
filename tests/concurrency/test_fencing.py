"""A writer that stands still for longer than its lock lasts, at any request of its publication, publishes nothing wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation
from tests.concurrency.side_by_side import Clock
from tests.concurrency.stopped import ACTS, Act, Stage, stop_at
from tests.rotation import TURN

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
LOCKS = ("storage", "file")
CASES = [(type, lock, act) for type in TYPES for lock in LOCKS for act in ACTS]
DEADLY = [(type, act) for type in TYPES for act in ACTS if ACTS[act].silent]


def begun(where: Path, type: str) -> ModelledTable:
    given = {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": type, "hoodie.metadata.record.index.enable": "true"}
    table = ModelledTable(str(where), {**given, "hoodie.metadata.record.index.min.filegroup.count": "1"})
    table.write(Operation.INSERT, simple_rows(range(10), 1))
    table.write(Operation.UPSERT, simple_rows(range(4), 2))
    return table


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModelledTable]:
    home = tmp_path_factory.mktemp("fencing")
    return {type: begun(home / type, type) for type in TYPES}


@pytest.mark.rotation(9)
@pytest.mark.parametrize(("type", "lock", "act"), CASES)
def test_stopped_at_any_request(starts: dict[str, ModelledTable], tmp_path: Path, type: str, lock: str, act: str) -> None:
    stop_at_each(starts[type], tmp_path, lock, ACTS[act], CASES.index((type, lock, act)))


@pytest.mark.rotation(6)
@pytest.mark.parametrize(("type", "act"), DEADLY)
def test_dead_after_a_late_request(starts: dict[str, ModelledTable], tmp_path: Path, type: str, act: str) -> None:
    stop_at_each(starts[type], tmp_path, "storage", ACTS[act], DEADLY.index((type, act)), dies=True)


def stop_at_each(start: ModelledTable, home: Path, lock: str, act: Act, turn: int, *, dies: bool = False) -> None:
    """Stop a writer at each request of its publication, or at one of them, another one for each case and turn."""

    def stage(name: str) -> Stage:
        return Stage(start.copy(str(home / name)), lock, Clock(4_000_000_000_000))

    total = len(stop_at(stage("counted"), None, act).calls)
    day = None if os.environ.get("HUDIMETA_FENCING_FULL") else TURN
    points = range(total) if day is None else [(day + 7 * turn) % total]
    refused = [stop_at(stage(str(at)), at, act, dies=dies).raised is not None for at in points]
    print(f"{len(refused)} of {total} requests, {sum(refused)} writes refused")
