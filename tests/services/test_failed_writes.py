"""Who rolls back what dead writers left: the policy `hoodie.clean.failed.writes.policy`."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline.transitions import TimelineWriter
from hudimeta.types import Action, Operation

POLICY = "hoodie.clean.failed.writes.policy"


def with_a_dead_write(path: Path) -> tuple[ModelledTable, str]:
    table = ModelledTable(str(path), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    dead = table.session().times.next(Table(table.path).timeline.last_time)
    TimelineWriter(table.storage).create_requested(dead, Action.COMMIT)
    return table, dead


def pending(table: ModelledTable) -> list[str]:
    return [i.time for i in Table(table.path).timeline.pending]


def test_the_next_write_rolls_back(tmp_path: Path) -> None:
    table, dead = with_a_dead_write(tmp_path / "t")
    report = Table(table.path).upsert(simple_rows(range(2), 2))
    assert report.rolled_back == (dead,)
    assert pending(table) == []


@pytest.mark.parametrize(("policy", "after_a_clean"), [("LAZY", 0), ("NEVER", 1)])
def test_a_write_leaves_it_to_others(tmp_path: Path, policy: str, after_a_clean: int) -> None:
    table, dead = with_a_dead_write(tmp_path / "t")
    options = {POLICY: policy}
    assert Table(table.path, options).upsert(simple_rows(range(2), 2)).rolled_back == ()
    table.model.write(Operation.UPSERT, simple_rows(range(2), 2))
    assert pending(table) == [dead]
    table.model.check(table.read())
    Table(table.path, options).clean()
    assert len(pending(table)) == after_a_clean
    Table(table.path, options).recover()
    assert pending(table) == []
    table.model.check(table.read())
    check_all(table.storage)
