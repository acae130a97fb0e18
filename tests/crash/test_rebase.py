"""A write that is killed while its files are written again over those of another one leaves both writes' promises whole."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from hudimeta.api.table import Table
from hudimeta.commit.session import WriteSession
from hudimeta.storage import Storage, open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted
from tests.rotation import in_turn

TURNS = 8
MINE, THEIRS = simple_rows([20, 22], 3), simple_rows([24, 4], 2)
CASES = {
    "new rows of a small file": {},
    "with a record index": {"hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"},
}


def new_table(path: Path, options: dict[str, str]) -> ModelledTable:
    table = ModelledTable(str(path), {**SIMPLE_OPTIONS, **options})
    table.write(Operation.UPSERT, simple_rows(range(10), 1))
    return table


def cross(table: ModelledTable, storage: Storage) -> None:
    """Write new rows through a storage while another writer fills the same small file."""
    other = Interrupted(lambda: write_rows(WriteSession(table.storage, table.options), Operation.UPSERT, THEIRS))
    report = write_rows(WriteSession(storage, table.options, engine=other), Operation.UPSERT, MINE)
    assert report.attempts == 1
    assert any("written again" in note for note in report.notes)


@pytest.mark.parametrize("name", CASES)
def test_a_kill_at_any_request_leaves_the_other_write_and_all_or_nothing_of_ours(tmp_path: Path, name: str) -> None:
    source = new_table(tmp_path / "source", CASES[name])
    plan = FaultPlan(None, Fault.KILL)
    counted = source.copy(str(tmp_path / "counted"))
    cross(counted, FaultyStorage(counted.storage, plan))
    # What comes before its files is the same for every write.
    first = next(n for n, call in enumerate(plan.calls) if "/.temp/" in call)
    for at in in_turn(list(range(first, len(plan.calls))), TURNS):
        table = source.copy(str(tmp_path / str(at)))
        child = os.fork()
        if child == 0:
            try:
                cross(table, FaultyStorage(open_storage(table.path), FaultPlan(at, Fault.KILL)))
            finally:
                os._exit(1)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        table.model.write(Operation.UPSERT, THEIRS)
        if "k0020" in Table(table.path).scan().to_table()["id"].to_pylist():
            table.model.write(Operation.UPSERT, MINE)
        table.model.past.clear()
        table.check()
        table.write(Operation.UPSERT, simple_rows([0, 5, 901], 900))
        table.check()
        check_all(table.storage)
        shutil.rmtree(table.path)
