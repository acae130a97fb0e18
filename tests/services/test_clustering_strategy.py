"""What a plan of a clustering takes, by Hudi's strategies and limits."""

from __future__ import annotations

import pytest

from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError
from hudimeta.services.clustering_strategy import choose
from hudimeta.snapshot.file_slice import FileSlice

PLAN = "hoodie.clustering.plan."
DAYS = ("2026/01/01", "2026/01/02", "2026/01/03", "2026/01/04")


def one(partition: str, name: str, size: int = 100) -> FileSlice:
    return FileSlice(partition, name, "1", f"{name}_0_1.parquet" if size else None, size)


SLICES = [one(day, f"f{at}", 100 + at) for day in DAYS for at in range(3)]


def taken(hour: int = 0, slices: list[FileSlice] = SLICES, **given: str) -> list[tuple[str, str, int]]:
    """Partition, file ids and outputs of each group."""
    options = OPTIONS.read({f"{PLAN}{name.replace('__', '.')}": text for name, text in given.items()})
    return [(group[0].partition_path, " ".join(s.file_id for s in group), n) for group, n in choose(slices, options, hour)]


def days(**given: str) -> list[str]:
    return [partition for partition, _, _ in taken(**given)]


def test_all_small_files_of_a_partition_go_together_the_largest_first() -> None:
    assert taken() == [(day, "f2 f1 f0", 1) for day in DAYS]
    assert taken(strategy__small__file__limit="102")[0] == (DAYS[0], "f1 f0", 1)
    assert taken(strategy__small__file__limit="1") == []


def test_groups_have_their_bytes_and_files_theirs() -> None:
    limits = {"strategy__max__bytes__per__group": "205", "strategy__target__file__max__bytes": "70"}
    assert taken(**limits)[:2] == [(DAYS[0], "f2 f1", 3), (DAYS[0], "f0", 2)]
    assert len(taken(**limits, strategy__max__num__groups="3")) == 3


def test_files_that_are_alone() -> None:
    alone = {"strategy__single__group__clustering__enabled": "false"}
    only = [one("p", "f")]
    assert taken(slices=only) == [("p", "f", 1)]
    assert taken(slices=only, **alone) == []
    assert taken(slices=only, **alone, strategy__sort__columns="x") == [("p", "f", 1)]
    each = "org.apache.hudi.client.clustering.plan.strategy.SparkSingleFileSortPlanStrategy"
    assert [ids for _, ids, _ in taken(strategy__class=each)[:3]] == ["f0", "f1", "f2"]


def test_slices_come_into_groups_in_the_order_that_is_asked_for() -> None:
    def aged(name: str, instant: str, size: int) -> FileSlice:
        return FileSlice("p", name, instant, f"{name}_0_{instant}.parquet", size)

    slices = [aged("a", "3", 10), aged("b", "1", 10), aged("c", "2", 30), aged("d", "1", 20), one("p", "logs", 0)]
    by = "strategy__file__slices__sort__by"
    assert taken(slices=slices) == taken(slices=slices, **{by: "SIZE"}) == [("p", "logs c d a b", 1)]
    assert taken(slices=slices, **{by: "instant_time"}) == [("p", "logs b d c a", 1)]
    assert taken(slices=slices, **{by: "INSTANT_TIME, SIZE"}) == [("p", "logs d b c a", 1)]
    assert taken(slices=slices, **{by: "SIZE,INSTANT_TIME"}) == [("p", "logs c d b a", 1)]
    with pytest.raises(ConfigError, match=r"file.slices.sort.by.*'AGE'.*SIZE, INSTANT_TIME or both"):
        taken(slices=slices, **{by: "age"})


def test_slices_of_other_columns_are_taken_apart() -> None:
    slices = [one("p", f"{'xy'[at % 2]}{at}", 100 + at) for at in range(5)]
    options = OPTIONS.read({f"{PLAN}strategy.max.bytes.per.group": "210"})
    found = choose(slices, options, 0, lambda found: [slice_.file_id[0] for slice_ in found])
    assert [[one.file_id for one in group] for group, _ in found] == [["x4", "x2"], ["x0"], ["y3", "y1"]]


def test_a_slice_of_logs_counts_as_a_whole_file() -> None:
    logs = [one("p", "logs", 0), one("p", "f")]
    assert taken(slices=logs) == [("p", "logs f", 1)]
    assert taken(slices=logs, strategy__max__bytes__per__group="1000") == [("p", "logs", 1), ("p", "f", 1)]


def test_partitions() -> None:
    recent = {"partition__filter__mode": "RECENT_DAYS"}
    assert days(**recent) == [DAYS[3], DAYS[2]]
    assert days(**recent, strategy__daybased__skipfromlatest__partitions="1") == [DAYS[2], DAYS[1]]
    assert days(strategy__class="SparkRecentDaysClusteringPlanStrategy") == [DAYS[3], DAYS[2]]
    chosen = {"strategy__cluster__begin__partition": DAYS[1], "strategy__cluster__end__partition": DAYS[2]}
    assert days(partition__filter__mode="SELECTED_PARTITIONS", **chosen) == [DAYS[1], DAYS[2]]
    assert days(**chosen) == list(DAYS)
    assert days(strategy__partition__regex__pattern=".*0[24]") == [DAYS[1], DAYS[3]]
    assert days(strategy__partition__selected=f"{DAYS[3]},{DAYS[0]}") == [DAYS[0], DAYS[3]]
    assert [p for p, _, _ in taken(hour=2, partition__filter__mode="DAY_ROLLING")] == [DAYS[2]]
    with pytest.raises(ConfigError, match="regular expression"):
        days(strategy__partition__regex__pattern="(")
