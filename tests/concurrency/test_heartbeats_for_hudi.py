"""Heartbeats for Apache Hudi's writers, which know nothing of locks of the operating system; ours are not misled by them."""

from __future__ import annotations

import gc
from pathlib import Path

from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted, finish

BESIDE_HUDI = {**SIMPLE_OPTIONS, "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}


def heartbeats(table: ModelledTable) -> list[str]:
    return sorted(entry.name for entry in Path(table.path, ".hoodie/.heartbeat").glob("*"))


def test_a_write_beats_though_a_lock_shows_that_it_lives(tmp_path: Path) -> None:
    """Cleans of Apache Hudi that share a table roll back whatever does not."""
    table, seen = ModelledTable(str(tmp_path / "t"), BESIDE_HUDI), list[str]()
    session = WriteSession(table.storage, table.options, engine=Interrupted(lambda: seen.extend(heartbeats(table))))
    report = write_rows(session, Operation.INSERT, rows := simple_rows(range(4), 1))
    table.model.write(Operation.INSERT, rows)
    assert seen == [report.instant]
    assert not heartbeats(table)
    finish(table)


def test_who_died_is_dead_at_once_whatever_it_left_for_others(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), BESIDE_HUDI)
    session = table.session()
    instant = session.coordinator.begin(Operation.UPSERT)[0].instant
    assert not Table(table.path, BESIDE_HUDI).recover(), "it lives"
    del session
    gc.collect()
    assert heartbeats(table) == [instant]
    assert Table(table.path, BESIDE_HUDI).recover() == (instant,)
    assert not heartbeats(table)


def test_who_is_published_leaves_a_heartbeat_for_a_write_that_it_outlasts(table: ModelledTable) -> None:
    """Should that one die, Apache Hudi, unless it shares the table, would neither roll it back nor write any more."""
    seen: list[str] = []

    def meanwhile() -> None:
        table.write(Operation.INSERT, simple_rows([21], 2))
        seen.extend(heartbeats(table))

    session = WriteSession(table.storage, table.options, engine=Interrupted(meanwhile))
    report = write_rows(session, Operation.INSERT, rows := simple_rows([20], 2))
    table.model.write(Operation.INSERT, rows)
    assert seen == [report.instant]
    assert not heartbeats(table)
    finish(table)


def test_who_died_outlasted_is_rolled_back_by_the_next_write(table: ModelledTable) -> None:
    session = table.session()
    instant = session.coordinator.begin(Operation.UPSERT)[0].instant
    table.write(Operation.INSERT, simple_rows([21], 2))
    del session
    gc.collect()
    assert heartbeats(table) == [instant]
    assert table.write(Operation.INSERT, simple_rows([22], 3)).rolled_back == (instant,)
    assert not heartbeats(table)
    finish(table)
