"""Services that run in a thread of the writer's process, while it goes on writing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.api import verbs
from hudimeta.config import HudiWarning
from hudimeta.errors import CommitConflict
from hudimeta.services import in_thread
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Action, Operation

BESIDE = {
    **SIMPLE_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.datasource.compaction.async.enable": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clustering.async.enabled": "true",
    "hoodie.clustering.async.max.commits": "4",
    "hoodie.clean.async.enabled": "true",
    "hoodie.clean.commits.retained": "2",
    "hoodie.archive.async": "true",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
    "hoodie.write.num.retries.on.conflict.failures": "5",
}


@pytest.mark.rotation(3)
def test_a_writer_goes_on_while_everything_that_is_due_runs_beside_it(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), BESIDE)
    services = Table(table.path).services
    notes, waited = [], 0
    for ts in range(16):
        rows = simple_rows(range(ts, ts + 8), ts + 1)
        try:
            report = verbs.write(table.storage, table.options, Operation.UPSERT, rows)
        except CommitConflict:  # with a clustering that has not come to its end
            services.wait()
            waited += 1
            report = verbs.write(table.storage, table.options, Operation.UPSERT, rows)
        notes += report.notes
        table.model.write(Operation.UPSERT, rows)
    services.wait()
    services.wait()
    assert any("services go on in a thread" in note for note in notes)
    assert not any("compacted at" in note or "clustered at" in note or "cleaned at" in note for note in notes)
    timeline = Table(table.path).timeline
    done = {i.action for i in timeline.completed} | {Action(a) for a in timeline.history.times()["action"].to_pylist()}
    assert {Action.COMMIT, Action.REPLACE_COMMIT, Action.CLEAN} <= done
    assert timeline.history.times().num_rows
    assert not timeline.pending
    table.model.check(table.read())
    check_all(table.storage)


def test_what_fails_in_the_thread_is_a_warning_and_the_next_write_begins_again() -> None:
    ran: list[int] = []

    def fails() -> None:
        ran.append(1)
        raise ValueError("no room")

    def begins() -> None:
        in_thread.run_beside("/a/table", fails)
        in_thread.wait("/a/table")

    with pytest.warns(HudiWarning, match="writer's thread failed: ValueError: no room"):
        begins()
    in_thread.run_beside("/a/table", lambda: ran.append(2))
    in_thread.wait("/a/table")
    assert ran == [1, 2]


def test_a_process_that_ends_waits_for_its_services(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    table.write(Operation.INSERT, simple_rows(range(10), 1))
    code = f"""
import hudimeta
from hudimeta.testing.builders import simple_rows
options = {{"hoodie.datasource.compaction.async.enable": "true", "hoodie.compact.inline.max.delta.commits": "1"}}
hudimeta.Table({table.path!r}, options).upsert(simple_rows(range(4), 2))
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    table.model.write(Operation.UPSERT, simple_rows(range(4), 2))
    assert Table(table.path).timeline.writes[-1].action is Action.COMMIT
    table.model.check(table.read())
    check_all(table.storage)
