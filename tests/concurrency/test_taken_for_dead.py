"""A write lives by its heartbeat; one that was taken for dead publishes nothing, and what it left is swept."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from hudimeta.api import plain_write
from hudimeta.api.plain_write import PlainWrite
from hudimeta.api.table import Table
from hudimeta.commit.liveness import CLOCK_PATH, Heartbeat, is_alive
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.engine import machine
from hudimeta.errors import CommitError, StorageError, UndoError
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import WithoutGuards, finish


def test_a_heartbeat_counts_for_two_intervals(tmp_path: Path) -> None:
    storage = WithoutGuards(str(tmp_path))
    for age, alive in ((0, True), (115_000, True), (125_000, False)):  # disks date files by coarser clocks
        silent_for(storage, age)
        assert is_alive(storage, "20260101000000000", "x.requested") is alive
    assert not is_alive(storage, "20260101000000001", "x.requested")


@pytest.mark.parametrize("hours", [-24, -1, 1, 24])
@pytest.mark.parametrize(("age", "alive"), [(0, True), (115_000, True), (125_000, False)])
def test_a_heartbeat_is_as_old_as_the_store_says(tmp_path: Path, hours: int, age: int, alive: bool) -> None:
    """Whatever the clock of this machine says: a fast one would take everybody for dead, a slow one nobody."""
    storage = WithoutGuards(str(tmp_path))
    silent_for(storage, age)
    wrong = machine.now_ms() + hours * 3_600_000
    assert is_alive(storage, "20260101000000000", "x.requested", lambda: wrong) is alive
    assert [entry.name for entry in storage.list(".hoodie/.heartbeat")] == ["20260101000000000"]


class OfUnknownTime(WithoutGuards):
    """Takes no file that would show its clock."""

    def put(self, path: str, data: bytes) -> None:
        if path == CLOCK_PATH:
            raise StorageError(path, "no answer")
        super().put(path, data)


def test_a_writer_of_whom_nobody_can_tell_may_live(tmp_path: Path) -> None:
    storage = OfUnknownTime(str(tmp_path))
    silent_for(storage, 3_600_000)
    assert is_alive(storage, "20260101000000000", "x.requested")


def silent_for(storage: WithoutGuards, age_ms: int) -> None:
    """Make a heartbeat that stopped so long ago."""
    beat = Heartbeat(storage, "20260101000000000")
    beat.beat()
    os.utime(Path(storage.root, beat.path), ns=(0, (machine.now_ms() - age_ms) * 10**6))


def begun(table: ModelledTable) -> PlainWrite:
    return PlainWrite.begin(table.path, SIMPLE_OPTIONS, simple_rows([], 0).schema, overwrite=False)


def silence(table: ModelledTable, write: PlainWrite) -> None:
    """As if its heartbeat had stopped long ago."""
    os.utime(f"{table.path}/.hoodie/.heartbeat/{write.open_write.instant}", (1, 1))


def test_a_write_of_many_processes_lives_by_its_heartbeat(table: ModelledTable) -> None:
    write = begun(table)
    message = write.write(iter(simple_rows([30, 2], 3).to_batches()), 0, 0)
    table.write(Operation.INSERT, simple_rows([31], 3))
    report = write.commit([message])
    table.model.write(Operation.UPSERT, simple_rows([30, 2], 3))
    assert report.rolled_back == ()
    finish(table)


INTERVAL, MISSES = "hoodie.client.heartbeat.interval_in_ms", "hoodie.client.heartbeat.tolerable.misses"


@pytest.mark.parametrize(
    ("given", "silent_s", "lives"),
    [
        ({}, 100, True),
        ({}, 200, False),
        ({INTERVAL: "300000"}, 500, True),
        ({INTERVAL: "300000"}, 700, False),
        ({MISSES: "5"}, 200, True),
        ({INTERVAL: "1000"}, 100, True),
        ({INTERVAL: "1000"}, 200, False),
    ],
    ids=str,
)
def test_a_writer_may_be_silent_for_as_long_as_options_say(
    table: ModelledTable, given: dict[str, str], silent_s: int, lives: bool
) -> None:
    write = begun(table)
    seen = machine.now_ms() / 1000 - silent_s
    os.utime(f"{table.path}/.hoodie/.heartbeat/{write.open_write.instant}", (seen, seen))
    report = Table(table.path, {**SIMPLE_OPTIONS, **given}).insert(simple_rows([31], 3))
    assert report.rolled_back == (() if lives else (write.open_write.instant,))
    write.abort()


@pytest.mark.parametrize(("silent_s", "lives"), [(500, True), (700, False)])
def test_whoever_runs_a_plan_may_be_silent_for_as_long(table: ModelledTable, silent_s: int, lives: bool) -> None:
    options = {**SIMPLE_OPTIONS, INTERVAL: "300000"}
    before = Table(table.path).timeline.writes[-1].time
    instant = Table(table.path, options).services.clustering.schedule()
    assert instant is not None
    seen = machine.now_ms() / 1000 - silent_s
    Heartbeat(table.storage, instant).beat()
    os.utime(f"{table.path}/.hoodie/.heartbeat/{instant}", (seen, seen))
    if lives:
        with pytest.raises(CommitError, match="is being run by another process"):
            Table(table.path, options).services.clustering.execute(instant)
        with pytest.raises(CommitError, match="is being run by another process"):
            Table(table.path, options).services.clustering.cancel(instant)
        with pytest.raises(UndoError, match="a process is at work"):
            Table(table.path, options).restore(before)
    else:
        Table(table.path, options).services.clustering.execute(instant)
    table.check()


@pytest.mark.parametrize(("given", "expected"), [({}, 60.0), ({INTERVAL: "2000"}, 2.0)], ids=str)
def test_a_write_says_that_it_lives_as_often_as_options_say(
    table: ModelledTable, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], expected: float
) -> None:
    asked, kind = list[float](), type(machine.machine())
    plain = kind.every

    def every(self: Any, seconds: float, act: Any, name: str) -> Any:
        asked.extend([seconds] if "heartbeat" in name else [])
        return plain(self, seconds, act, name)

    monkeypatch.setattr(kind, "every", every)
    options = {**SIMPLE_OPTIONS, **given}
    write = PlainWrite.begin(table.path, options, simple_rows([], 0).schema, overwrite=False)
    write.commit([write.write(iter(simple_rows([30], 3).to_batches()), 0, 0)])
    write_rows(
        WriteSession(WithoutGuards(table.path), OPTIONS.read(SIMPLE_OPTIONS | given)), Operation.INSERT, simple_rows([31], 3)
    )
    assert asked == [expected] * 3, "a task, the commit, and a write of one process where no lock of the system tells"


BULK = SIMPLE_OPTIONS | {"hoodie.datasource.write.operation": "bulk_insert"}


def test_who_was_taken_for_dead_publishes_nothing(table: ModelledTable) -> None:
    """Neither the files that the rollback removed nor those that a late task wrote."""
    write = PlainWrite.begin(table.path, BULK, simple_rows([], 0).schema, overwrite=False)
    messages = [write.write(iter(simple_rows([30], 3).to_batches()), 0, 0)]
    silence(table, write)
    assert table.write(Operation.INSERT, simple_rows([31], 3)).rolled_back == (write.open_write.instant,)
    with pytest.raises(CommitError, match="taken back"):
        write.write(iter(simple_rows([32], 3).to_batches()), 1, 0)
    with pytest.raises(CommitError, match="rolled it back"):
        write.commit(messages)
    write.abort()
    finish(table)


def test_rows_staged_by_a_write_taken_for_dead_are_gone(table: ModelledTable) -> None:
    write = begun(table)
    message = write.write(iter(simple_rows([30], 3).to_batches()), 0, 0)
    silence(table, write)
    Table(table.path).recover()
    with pytest.raises(CommitError, match=r"its staged rows .* are gone"):
        write.commit([message])
    write.abort()
    finish(table)


def test_what_a_late_task_wrote_is_swept_by_recovery(table: ModelledTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was killed before it saw that its instant is gone."""
    monkeypatch.setattr(plain_write, "refuse_when_over", lambda *_: None)
    rows = simple_rows([32], 3)
    write = PlainWrite.begin(table.path, BULK, rows.schema, overwrite=False)
    silence(table, write)
    Table(table.path).recover()
    write.write(iter(rows.to_batches()), 0, 0)
    silence(table, write)
    Table(table.path).recover()
    finish(table)


def test_abort_after_a_commit_keeps_the_files(table: ModelledTable) -> None:
    write = begun(table)
    write.commit([write.write(iter(simple_rows([30], 3).to_batches()), 0, 0)])
    table.model.write(Operation.UPSERT, simple_rows([30], 3))
    write.abort()
    finish(table)


def test_a_plain_commit_that_loses_settles_again(table: ModelledTable, monkeypatch: pytest.MonkeyPatch) -> None:
    write = begun(table)
    message = write.write(iter(simple_rows([2, 60], 3).to_batches()), 0, 0)
    others = iter([[4, 60], [6]])
    plain = PlainWrite._settle

    def settle_late(*args: object) -> object:
        outcome = plain(*args)  # type: ignore[arg-type]
        for ids in itertools.islice(others, 1):
            table.write(Operation.UPSERT, simple_rows(ids, 4))
        return outcome

    monkeypatch.setattr(PlainWrite, "_settle", settle_late)
    assert write.commit([message]).attempts == 3
    table.model.write(Operation.UPSERT, simple_rows([2, 60], 3))
    finish(table)


def test_a_plain_write_is_seen_above_a_younger_one(table: ModelledTable) -> None:
    """It began first and ends last, and both change the same file group: with its own instant it would be hidden."""
    write = begun(table)
    message = write.write(iter(simple_rows([2, 60], 3).to_batches()), 0, 0)
    table.write(Operation.UPSERT, simple_rows([2, 4], 2))
    report = write.commit([message])
    assert report.instant > table.session().properties.load_timeline(table.storage).writes[-2].time
    table.model.write(Operation.UPSERT, simple_rows([2, 60], 3))
    finish(table)
