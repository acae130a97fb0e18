"""Which slices a compaction takes, and when one is due."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError
from hudimeta.services import compaction
from hudimeta.services.compaction_strategy import choose
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Action, Operation
from tests.services.test_compaction import MERGE_ON_READ, log_files, updated

MB = 1 << 20


def file_slice(name: str, partition: str, base_mb: int, *log_mb: int) -> FileSlice:
    logs = tuple(f"{name}.log.{n}" for n in range(len(log_mb)))
    return FileSlice(partition, name, "1", name, base_mb * MB, logs, tuple(mb * MB for mb in log_mb))


SLICES = [
    file_slice("a", "2026/01/01", 10, 1, 1, 1),
    file_slice("b", "2026/01/03", 100, 50),
    file_slice("c", "2026/01/02", 10, 4, 4),
]


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        ({}, "bca"),
        ({"hoodie.compaction.logfile.size.threshold": 5 * MB}, "bc"),
        ({"hoodie.compaction.target.io": 278}, "bc"),
        ({"hoodie.compaction.target.io": 1}, "b"),
        ({"hoodie.compaction.strategy": "LogFileNumBasedCompactionStrategy"}, "acb"),
        (
            {
                "hoodie.compaction.strategy": "org.apache.hudi.table.action.compact.strategy.LogFileNumBasedCompactionStrategy",
                "hoodie.compaction.logfile.num.threshold": 2,
            },
            "ac",
        ),
        ({"hoodie.compaction.strategy": "UnBoundedCompactionStrategy", "hoodie.compaction.target.io": 1}, "abc"),
        ({"hoodie.compaction.strategy": "BoundedIOCompactionStrategy", "hoodie.compaction.target.io": 30}, "a"),
        ({"hoodie.compaction.strategy": "DayBasedCompactionStrategy"}, "bca"),
        (
            {
                "hoodie.compaction.strategy": "DayBasedCompactionStrategy",
                "hoodie.compaction.daybased.target.partitions": 2,
            },
            "bc",
        ),
    ],
)
def test_strategies(options: dict[str, object], taken: str) -> None:
    assert "".join(s.file_id for s in choose(SLICES, OPTIONS.read(options))) == taken


def test_an_unknown_strategy_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="UnBoundedCompactionStrategy"):
        choose(SLICES, OPTIONS.read({"hoodie.compaction.strategy": "FastestCompactionStrategy"}))


def test_a_bounded_compaction_leaves_the_rest_to_the_next(tmp_path: Path) -> None:
    table = updated(tmp_path / "t")
    bounded = Table(table.path, {"hoodie.compaction.target.io": 0})
    assert len(bounded.compact()) == 1
    assert sorted(bool(n) for n in log_files(table)) == [False, True]
    assert len(bounded.compact()) == 1
    assert log_files(table) == [0, 0]
    table.check()
    check_all(table.storage)


def test_a_planned_compaction_is_left_to_be_run(tmp_path: Path) -> None:
    options = {
        **MERGE_ON_READ,
        "hoodie.compact.schedule.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "2",
    }
    ModelledTable(str(tmp_path / "t"), options)
    table = Table(tmp_path / "t", options)
    table.insert(simple_rows(range(4), 1))
    *_, note = table.upsert(simple_rows(range(4), 2)).notes  # behind that of routed writes
    (planned,) = [i for i in table.timeline.pending if i.action is Action.COMPACTION]
    assert note == f"planned a compaction at {planned.time}"
    (report,) = table.compact()
    assert report.instant == planned.time
    assert table.scan().to_table()["ts"].to_pylist() == [2] * 4


def test_when_a_compaction_is_due(tmp_path: Path) -> None:
    table = updated(tmp_path / "t")  # four delta commits

    def due(**options: object) -> bool:
        given = {"hoodie.compact.inline." + key.replace("_", "."): value for key, value in options.items()}
        session = table.session(options=OPTIONS.read({**MERGE_ON_READ, **given}))
        return compaction.is_due(session, Table(table.path).timeline)

    assert not due()
    assert due(max_delta_commits=4)
    assert due(trigger_strategy="TIME_ELAPSED", max_delta_seconds=0)
    assert not due(trigger_strategy="TIME_ELAPSED")
    assert not due(trigger_strategy="NUM_AND_TIME", max_delta_commits=4)
    assert due(trigger_strategy="NUM_OR_TIME", max_delta_commits=4)
    Table(table.path).schedule_compaction()
    assert not due(trigger_strategy="NUM_COMMITS_AFTER_LAST_REQUEST", max_delta_commits=4)
    Table(table.path).compact()
    assert not due(trigger_strategy="TIME_ELAPSED", max_delta_seconds=0)
    table.write(Operation.UPSERT, simple_rows(range(3), 30))
    assert due(max_delta_commits=1)
