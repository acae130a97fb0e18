"""Partitions that have outlived their time leave the table by a `delete_partition`, and no other does."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.engine.machine import ThisMachine, running_on
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.services import ttl
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline.transitions import TimelineWriter
from hudimeta.types import Action, Operation
from hudimeta.write.table_writer import write_rows

DAY = 86_400_000
BEGIN = 1_790_000_000_000
DAYS = "hoodie.partition.ttl.strategy.days.retain"
BY_CREATION = {"hoodie.partition.ttl.management.strategy.type": "KEEP_BY_CREATION_TIME"}


class At(ThisMachine):
    """This machine on some day of the table's life.

    Args:
        day: From its first.
    """

    threads = False  # others would be on this machine today

    def __init__(self, day: float) -> None:
        self._now = BEGIN + int(day * DAY)

    def now_ms(self) -> int:
        return self._now


def rows(partition: int, ts: int) -> pa.Table:
    """Four rows of one partition."""
    return simple_rows([partition + 4 * n for n in range(4)], ts, partitions=4)


def write(table: ModelledTable, day: float, rows: pa.Table) -> None:
    with running_on(At(day)):
        write_rows(table.session(), Operation.UPSERT, rows)


def expired(table: ModelledTable, day: float, dry_run: bool = False, **more: str) -> ttl.TtlReport:
    """An expiry on some day."""
    with running_on(At(day)):
        return ttl.expire(table.session(options=table.options.having(more)), dry_run=dry_run)


def aged(path: Path, **more: str) -> ModelledTable:
    """Partitions p0 to p3, each written on the day of its number; p0 once more on day 3."""
    with running_on(At(-1)):
        table = ModelledTable(str(path), {**SIMPLE_OPTIONS, "hoodie.parquet.small.file.limit": "0", **more})
    for day in range(4):
        write(table, day, rows(day, 1))
    write(table, 3.5, rows(0, 2))
    return table


def partitions(table: ModelledTable) -> list[str]:
    return sorted(set(Table(table.path).scan().to_table()["part"].to_pylist()))


@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_by_the_last_write(tmp_path: Path, type: str) -> None:
    """On a merge-on-read table the last write to p0 is a log file."""
    table = aged(tmp_path / "t", **{"hoodie.datasource.write.table.type": type})
    shown = expired(table, 5.25, dry_run=True, **{DAYS: "3"})
    assert list(shown.plan.expired) == ["p1", "p2"]
    assert str(shown).startswith("2 partitions have expired (KEEP_BY_TIME, 3 days)\n  p1: since ")
    assert partitions(table) == ["p0", "p1", "p2", "p3"]
    report = expired(table, 5.25, **{DAYS: "3"})
    assert report.commit is not None
    assert report.commit.operation == "DELETE_PARTITION"
    assert str(report) == f"EXPIRED at {report.commit.instant}: 2 partitions are taken out"
    assert partitions(table) == ["p0", "p3"]
    check_all(table.storage)
    Table(table.path).metadata.validate().raise_if_differs()
    again = expired(table, 5.25, **{DAYS: "3"})
    assert (again.commit, str(again)) == (None, "no partition has expired (KEEP_BY_TIME, 3 days)")


def test_by_creation(tmp_path: Path) -> None:
    table = aged(tmp_path / "t")
    found = expired(table, 5.25, dry_run=True, **{DAYS: "3"}, **BY_CREATION)
    assert list(found.plan.expired) == ["p0", "p1", "p2"], "whatever was written to p0 later"
    (Path(table.path) / "p1/.hoodie_partition_metadata").write_text("#nothing\n")
    report = expired(table, 5.25, **{DAYS: "3"}, **BY_CREATION)
    assert "1 do not tell when they were made, and stay" in str(report.plan)
    assert partitions(table) == ["p1", "p3"], "of p1 nobody knows"


def test_only_those_selected_and_not_too_many(tmp_path: Path) -> None:
    table = aged(tmp_path / "t")
    selected = {"hoodie.partition.ttl.strategy.partition.selected": "p2,p3,p9", DAYS: "1"}
    assert list(expired(table, 9, dry_run=True, **selected).plan.expired) == ["p2", "p3"]
    most = {"hoodie.partition.ttl.strategy.max.delete.partitions": "1", DAYS: "1"}
    report = expired(table, 9, **most)
    assert (list(report.plan.expired), report.plan.left) == (["p1"], 3)
    assert partitions(table) == ["p0", "p2", "p3"]


RULES = "hudimeta.partition.ttl.rules"


def test_partitions_with_days_of_their_own(tmp_path: Path) -> None:
    table = aged(tmp_path / "t")
    told = expired(table, 5.25, dry_run=True, **{RULES: "p[02],1;p3,2", DAYS: "90"})
    assert list(told.plan.expired) == ["p2", "p3", "p0"]
    rule = "KEEP_BY_TIME, 1 days where p[02] is found; KEEP_BY_TIME, 2 days where p3 is found; KEEP_BY_TIME, 90 days"
    assert str(told).startswith(f"3 partitions have expired ({rule})")
    kept = expired(table, 5.25, dry_run=True, **{RULES: "p2,0; ^p[0-2]$,1", DAYS: "1"})
    assert list(kept.plan.expired) == ["p1", "p3", "p0"], "the first rule counts, and 0 days are for ever"
    report = expired(table, 5.25, **{RULES: "p[01],3,KEEP_BY_CREATION_TIME;p2,2"})
    assert sorted(report.plan.expired) == ["p0", "p1", "p2"], "without days for the others"
    assert partitions(table) == ["p3"]
    check_all(table.storage)


def test_rules_work_inline_and_in_maintenance(tmp_path: Path) -> None:
    table = aged(tmp_path / "t")
    with running_on(At(5)):
        due = Table(table.path, {RULES: "p1,1", "hoodie.partition.ttl.inline": "true"}).maintain(dry_run=True)
    assert "1 partitions have expired" in str(due)
    given = {**table.options.given, RULES: "p1,1", "hoodie.partition.ttl.inline": "true"}
    Table(table.path, given).upsert(rows(0, 9))
    assert partitions(table) == ["p0", "p2", "p3"]


@pytest.mark.parametrize("rules", ["p1", "p1,", "p1,-3", ",3", "p1,3,KEEP_FOREVER", "p1,3,KEEP_BY_TIME,x", "p1;3"])
def test_rules_of_another_form_are_refused(tmp_path: Path, rules: str) -> None:
    with pytest.raises(ConfigError, match=r"hudimeta.partition.ttl.rules.*<regular expression>,<days>"):
        expired(aged(tmp_path / "t"), 5, **{RULES: rules})


def test_a_rule_whose_pattern_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="regular expression"):
        expired(aged(tmp_path / "t"), 5, **{RULES: "p(,3"})


@pytest.mark.parametrize("days", ["-1", "0"])
def test_without_days_nothing_expires(tmp_path: Path, days: str) -> None:
    table = aged(tmp_path / "t")
    assert not expired(table, 900, **{DAYS: days}).plan.expired
    face = Table(table.path, {DAYS: "36500"})
    assert not face.expire_partitions().plan.expired


def test_a_table_without_partitions_keeps_its_rows(tmp_path: Path) -> None:
    with running_on(At(0)):
        face = Table.create(tmp_path / "t", simple_rows([], 0).schema, key="id", ordering="ts", name="t")
        face.insert(simple_rows(range(3), 1))
    report = Table(face.path, {DAYS: "1"}).expire_partitions()
    assert (report.commit, dict(report.plan.expired)) == (None, {})


def test_inline_after_a_write(tmp_path: Path) -> None:
    """The table was written weeks ago, by the clock of this machine."""
    table = aged(tmp_path / "t")
    face = Table(table.path, {**table.options.given, "hoodie.partition.ttl.inline": "true", DAYS: "1"})
    report = face.upsert(rows(3, 9))
    assert any(note.startswith("EXPIRED at ") and "3 partitions" in note for note in report.notes)
    assert partitions(table) == ["p3"]


def test_a_write_that_revives_a_partition_meanwhile_keeps_it(tmp_path: Path) -> None:
    """The expiry has chosen when the write comes; its conflict makes it choose again."""
    table = aged(tmp_path / "t")
    plan, plans = ttl.plan, []

    def interrupted(session: WriteSession, snapshot: Snapshot) -> ttl.TtlPlan:
        plans.append(plan(session, snapshot))
        if len(plans) == 1:
            write(table, 9, rows(1, 9))
        return plans[-1]

    with mock.patch("hudimeta.services.ttl.plan", interrupted):
        report = expired(table, 9.1, **{DAYS: "5"})
    assert list(plans[0].expired) == ["p1", "p2", "p3", "p0"]
    assert list(report.plan.expired) == ["p2", "p3", "p0"]
    assert partitions(table) == ["p1"]
    check_all(table.storage)


def test_a_partition_waits_for_what_is_planned_in_it(tmp_path: Path) -> None:
    """Whoever runs the compaction needs the files, which a clean would take once the partition is gone."""
    table = aged(tmp_path / "t", **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    with running_on(At(4)):
        planned = Table(table.path).schedule_compaction()
    assert planned is not None
    report = expired(table, 9, **{DAYS: "3"}, **BY_CREATION)
    assert list(report.plan.expired) == ["p1", "p2", "p3"]
    assert "1 wait until a planned service has run" in str(report.plan)
    assert partitions(table) == ["p0"]
    requested = next(tmp_path.glob("t/.hoodie/timeline/*.compaction.requested"))
    content = requested.read_bytes()
    requested.write_bytes(b"")  # as a crash of the store leaves it: it may take any partition
    waiting = expired(table, 9.2, **{DAYS: "3"}).plan
    assert not waiting.expired
    assert f"wait, since the plan {planned} is empty: t.rollback('{planned}')" in str(waiting)
    requested.write_bytes(content)
    with running_on(At(9.5)):
        Table(table.path).compact()
    assert list(expired(table, 10, **{DAYS: "3"}, **BY_CREATION).plan.expired) == ["p0"]


def test_what_another_expiry_took_out_meanwhile_is_not_taken_out_again(tmp_path: Path) -> None:
    """A writer died before: the later expiry rolls that back, and looks at the table anew."""
    table = aged(tmp_path / "t")
    TimelineWriter(table.storage, ".hoodie/timeline").create_requested("20240101000000000", Action.COMMIT)
    plan, plans = ttl.plan, []

    def interrupted(session: WriteSession, snapshot: Snapshot) -> ttl.TtlPlan:
        plans.append(plan(session, snapshot))
        if len(plans) == 1:
            expired(table, 9, **{DAYS: "5", "hoodie.clean.failed.writes.policy": "LAZY"})
        return plans[-1]

    with mock.patch("hudimeta.services.ttl.plan", interrupted):
        assert expired(table, 9.1, **{DAYS: "5"}).commit is None
    assert (len(plans) > 2, partitions(table)) == (True, [])
    removals = Table(table.path).history()["operation"].to_pylist()
    assert removals.count("DELETE_PARTITION") == 1
    check_all(table.storage)


def test_a_strategy_of_ones_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises((UnsupportedFeature, ConfigError), match="strategy"):
        Table(aged(tmp_path / "t").path, {"hoodie.partition.ttl.strategy.class": "org.example.Mine"})


@pytest.mark.parametrize("strategy", [{}, BY_CREATION])
def test_a_writer_whose_clock_is_fast_makes_nothing_old(tmp_path: Path, strategy: dict[str, str]) -> None:
    """Its instant is the last one; ages count from the clock of whoever lets partitions expire, as in Apache Hudi."""
    table = aged(tmp_path / "t")
    write(table, 400, rows(3, 9))
    assert not expired(table, 3.75, **{DAYS: "5"}, **strategy).plan.expired
    assert partitions(table) == ["p0", "p1", "p2", "p3"]
