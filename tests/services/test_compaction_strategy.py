"""Which slices a compaction takes, and when one is due."""

from __future__ import annotations

from datetime import date
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
TODAY = date(2026, 1, 3)
ONE_DAY = {"hoodie.compaction.daybased.target.partitions": 1}


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
        ({"hoodie.compaction.strategy": "BoundedPartitionAwareCompactionStrategy", **ONE_DAY}, "bc"),
        ({"hoodie.compaction.strategy": "UnBoundedPartitionAwareCompactionStrategy", **ONE_DAY}, "a"),
        ({"hoodie.compaction.strategy": "PartitionRegexBasedCompactionStrategy"}, "abc"),
        (
            {
                "hoodie.compaction.strategy": "PartitionRegexBasedCompactionStrategy",
                "hoodie.compaction.partition.path.regex": "/0[13]$",
            },
            "ab",
        ),
        (
            {
                "hoodie.compaction.strategy": "PartitionRegexBasedCompactionStrategy, LogFileNumBasedCompactionStrategy",
                "hoodie.compaction.partition.path.regex": "/0[12]",
                "hoodie.compaction.target.io": 30,
            },
            "a",
        ),
    ],
)
def test_strategies(options: dict[str, object], taken: str) -> None:
    assert "".join(s.file_id for s in choose(SLICES, OPTIONS.read(options), TODAY)) == taken


def test_an_unknown_strategy_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="UnBoundedCompactionStrategy"):
        choose(SLICES, OPTIONS.read({"hoodie.compaction.strategy": "FastestCompactionStrategy"}), TODAY)


AWARE = {"hoodie.compaction.strategy": "BoundedPartitionAwareCompactionStrategy", **ONE_DAY}


@pytest.mark.parametrize("path", ["2026-01-02", "2026/1/2/05", "year=2026/month=01/day=02", "day=2026-01-03/hour=1"])
def test_partitions_that_are_days_however_they_are_spelled(path: str) -> None:
    assert choose([file_slice("a", path, 1, 1)], OPTIONS.read(AWARE), TODAY)
    assert not choose([file_slice("a", path, 1, 1)], OPTIONS.read(AWARE), date(2026, 2, 1))


@pytest.mark.parametrize("path", ["", "europe", "2026/13/01", "2026/01"])
def test_partitions_that_are_no_days_are_refused_by_strategies_of_days(path: str) -> None:
    with pytest.raises(ConfigError, match=rf"Partition '{path}' is none.*PartitionRegexBasedCompactionStrategy"):
        choose([file_slice("a", path, 1, 1)], OPTIONS.read(AWARE), TODAY)


def test_a_pattern_that_is_none_is_refused() -> None:
    asked = {
        "hoodie.compaction.strategy": "PartitionRegexBasedCompactionStrategy",
        "hoodie.compaction.partition.path.regex": "(",
    }
    with pytest.raises(ConfigError, match=r"partition.path.regex.*a regular expression"):
        choose(SLICES, OPTIONS.read(asked), TODAY)


def test_a_compaction_of_some_partitions_leaves_the_others(tmp_path: Path) -> None:
    table = updated(tmp_path / "t")
    first = str(Table(table.path).file_slices()["partition_path"][0])
    options = {
        "hoodie.compaction.strategy": "PartitionRegexBasedCompactionStrategy",
        "hoodie.compaction.partition.path.regex": f"^{first}$",
    }
    assert len(Table(table.path, options).compact()) == 1
    left = Table(table.path).file_slices().to_pylist()
    assert {one["partition_path"]: bool(one["log_files"]) for one in left} == {
        one["partition_path"]: one["partition_path"] != first for one in left
    }
    table.check()


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
