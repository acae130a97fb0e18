"""P4: planning through column statistics, 100,000 files and ten columns: which files can hold a matching row?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from benchmarks import ours, rivals, synthetic
from benchmarks.case import OURS, Case, Goal, Measured, Settings, at_most, faster_than_apache, versions_of_apache
from benchmarks.job import Job

Range = tuple[int, int | None]
Condition = Callable[[Settings], dict[str, Range]]
"""Smallest and greatest wanted value by column; None leaves the range open."""

OPEN = synthetic.DOMAIN * 8 // 100


def prepare(settings: Settings) -> None:
    """Make the table."""
    synthetic.make(settings, synthetic.small(settings))


def clustered(settings: Settings, shape: Callable[[Settings], synthetic.Shape] = synthetic.small) -> dict[str, Range]:
    """A hundredth of the range of c0, in the middle."""
    rows = shape(settings).total * synthetic.ROWS_PER_FILE
    return {"c0": (rows // 2, rows // 2 + rows // 100)}


def random(settings: Settings) -> dict[str, Range]:
    """A hundredth of the domain of c1, which every file covers a random hundredth of."""
    middle = synthetic.DOMAIN // 2
    return {"c1": (middle, middle + synthetic.DOMAIN // 100)}


def every(settings: Settings, shape: Callable[[Settings], synthetic.Shape] = synthetic.small) -> dict[str, Range]:
    """The range of c0, and an open range on each other column."""
    return {**clustered(settings, shape), **dict.fromkeys(synthetic.COLUMNS[1:], (OPEN, None))}


def sql(condition: dict[str, Range]) -> str:
    """The condition as a user writes it."""
    least = [f"{name} >= {low}" for name, (low, _) in condition.items()]
    most = [f"{name} <= {high}" for name, (_, high) in condition.items() if high is not None]
    return " AND ".join(least + most)


def matching(settings: Settings, condition: dict[str, Range]) -> set[str]:
    """File ids of the files whose bounds meet the condition, computed from what the generator wrote."""
    shape = synthetic.small(settings)
    low = synthetic.bounds(shape)
    kept = np.ones(shape.total, np.bool_)
    for name, (least, most) in condition.items():
        kept &= low[name] + synthetic.bounds_width(name) >= least
        if most is not None:
            kept &= low[name] <= most
    return {file_id.decode() for file_id in synthetic.file_ids(shape)[kept]}


def _hudimeta(condition: Condition) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        path, wanted, count = synthetic.make(job.settings, synthetic.small(job.settings)), condition(job.settings), 0
        for _ in range(job.rounds):
            with job.timed():
                count = ours.count_planned(ours.open_table(path), sql(wanted))
        job.note("files kept", count)
        job.note("wrongly kept or left out", len(ours.planned_ids(path, sql(wanted)) ^ matching(job.settings, wanted)))

    return run


def _apache(condition: Condition) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        path, text = synthetic.make(job.settings, synthetic.small(job.settings)), sql(condition(job.settings))
        with rivals.apache_hudi(job) as process:
            asked = {"path": str(path), "where": text, "options": rivals.READ_OPTIONS, "repeat": job.rounds}
            answer = process.call("plan_scan", timeout=1200, **asked)
        job.add(answer["timings"])
        job.note("files kept", answer["files"])

    return run


def exact(sides: Mapping[str, Measured]) -> bool | None:
    """We keep exactly the files whose statistics match."""
    found = sides[OURS]
    return None if found.error else found.notes["wrongly kept or left out"] == 0


def _case(name: str, title: str, condition: Condition, limit: float) -> Case:
    return Case(
        name,
        title,
        {OURS: _hudimeta(condition), **versions_of_apache(_apache(condition))},
        (
            at_most("warm.wall", limit, f"<= {limit:g} s"),
            *faster_than_apache(8),
            Goal("exactly the files that match", exact),
        ),
        rounds=4,
        prepare=prepare,
    )


CASES = [
    _case("P4-clustered", "column statistics, 1 % of a clustered column", clustered, 0.8),
    _case("P4-random", "column statistics, 1 % of a random column", random, 0.8),
    _case("P4-ten", "column statistics, all ten columns", every, 3),
]
