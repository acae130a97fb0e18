"""P31: plans through kept plans, on tables of the size of the three data sets of RFC-15's first draft (C, M and E).

Each side opens the table for each question. The first call of "kept plans" plans from the metadata table and keeps the
plan; the later ones find it. Notes are medians of the same side. In P31-commit the table gets one more commit before each call.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from benchmarks import ours, p04_column_stats, synthetic
from benchmarks.case import KEPT, KEPT_START, OURS, Case, Goal, Settings, at_most
from benchmarks.job import Job

EACH_COLUMN = [f"{name} >= 0" for name in (synthetic.COLUMNS[0], *synthetic.COLUMNS)]
"""The first plan keeps slices, each later one the bounds of a column."""
Shaped = Callable[[Settings], synthetic.Shape]
PROGRAM = "import sys, hudimeta; print(hudimeta.Table(sys.argv[1], eval(sys.argv[2])).file_slices().num_rows)"


def _questions(job: Job, path: Path, options: dict[str, str], shape: synthetic.Shape) -> None:
    middle = synthetic.partition_names(shape)[shape.partitions // 2]
    asked: dict[str, Callable[[], object]] = {
        "all partitions": lambda: ours.open_table(path, options).snapshot().partitions(),
        "slices of one partition": lambda: ours.open_table(path, options).snapshot().slices([middle]),
    }
    for name, ask in asked.items():
        taken = []
        for _ in range(5):
            begin = time.perf_counter()
            ask()
            taken.append(time.perf_counter() - begin)
        job.note(f"{name} (ms)", round(statistics.median(taken) * 1000, 1))


def _without(shape: Shaped) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        made = shape(job.settings)
        path, count = synthetic.make(job.settings, made), 0
        for _ in range(job.rounds):
            with job.timed():
                count = ours.count_slices(ours.open_table(path))
        job.fact("slices", count)
        _questions(job, path, {}, made)

    return run


def _with(shape: Shaped) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        made = shape(job.settings)
        path, count = synthetic.make(job.settings, made), 0
        with job.folder() as folder:
            options = ours.keeping_plans(folder / "plans")
            for _ in range(job.rounds):
                with job.timed():
                    count = ours.count_slices(ours.open_table(path, options))
            job.fact("slices", count)
            _questions(job, path, options, made)
            for part in ("slices", "partitions"):
                size = sum(file.stat().st_size for file in folder.rglob(f"*.{part}.arrow"))
                job.note(f"bytes of {part}", size)

    return run


def _in_new_processes(shape: Shaped) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        path, answer = synthetic.make(job.settings, shape(job.settings)), "0"
        with job.folder() as folder:
            command = [sys.executable, "-c", PROGRAM, str(path), repr(ours.keeping_plans(folder / "plans"))]
            subprocess.run(command, capture_output=True, check=True)
            for _ in range(job.rounds):
                with job.timed():
                    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        job.fact("slices", int(answer))

    return run


def _planned(shape: Shaped, where: Callable[[Settings], str], keeps: bool, first: Sequence[str] = ()) -> Callable[[Job], None]:
    """Plans by statistics; the first two of kept plans read the metadata table, and keep the slices, then the bounds.

    Args:
        shape: The table.
        where: What is asked.
        keeps: Plans are kept.
        first: What is asked before, so that bounds are kept column by column.
    """

    def run(job: Job) -> None:
        path, text, count = synthetic.make(job.settings, shape(job.settings)), where(job.settings), 0
        with job.folder() as folder:
            options = ours.keeping_plans(folder / "plans") if keeps else {}
            for one in (first or [text]) if keeps else ():
                ours.count_planned(ours.open_table(path, options), one)
            for _ in range(job.rounds):
                with job.timed():
                    count = ours.count_planned(ours.open_table(path, options), text)
            size = sum(file.stat().st_size for file in folder.rglob("*.bounds.arrow"))
        job.fact("slices kept", count)
        job.note("bytes of bounds", size)

    return run


def _clustered(settings: Settings) -> str:
    rows = synthetic.large_with_bounds(settings).total * synthetic.ROWS_PER_FILE
    return f"c0 >= {rows // 2} AND c0 <= {rows // 2 + rows // 100}"


def _ten(settings: Settings) -> str:
    return p04_column_stats.sql(p04_column_stats.every(settings))


def _ten_of_large(settings: Settings) -> str:
    return p04_column_stats.sql(p04_column_stats.every(settings, synthetic.large_with_ten))


def _bounds_case(name: str, title: str, shape: Shaped, where: Callable[[Settings], str], goals: tuple[Goal, ...] = ()) -> Case:
    sides = {OURS: _planned(shape, where, False), KEPT: _planned(shape, where, True)}
    return Case(name, title, sides, goals, 4, lambda settings: synthetic.make(settings, shape(settings)))


def _after_a_commit(job: Job) -> None:
    """The plan of a moment is mapped; then one commit comes, which each round's first plan has to apply."""
    source, count = synthetic.make(job.settings, synthetic.large(job.settings)), 0
    with job.folder() as folder:
        path, options = folder / "t", ours.keeping_plans(folder / "plans")
        shutil.copytree(source, path)
        ours.count_slices(ours.open_table(path, options))
        for number in range(job.rounds):
            ours.open_table(path).bulk_insert(_row(number))
            with job.timed():
                count = ours.count_slices(ours.open_table(path, options))
        job.note("slices that came", count - synthetic.large(job.settings).total)


def _row(number: int) -> pa.Table:
    longs = {name: pa.array([number], pa.int64()) for name in synthetic.COLUMNS}
    return pa.table({"id": [str(number)], "day": ["2015-01-01"], **longs})


def _case(name: str, title: str, shape: Shaped, goals: tuple[Goal, ...] = (), rounds: int = 5) -> Case:
    sides = {OURS: _without(shape), KEPT: _with(shape), KEPT_START: _in_new_processes(shape)}
    return Case(name, title, sides, goals, rounds, lambda settings: synthetic.make(settings, shape(settings)))


CASES = [
    _case("P31-C", "kept plans, 1,438 files in 719 partitions", synthetic.tiny),
    _case("P31-M", "kept plans, 285,743 files in 3,617 partitions", synthetic.middle),
    _case(
        "P31-E",
        "kept plans, 2,275,266 files in 497 partitions",
        synthetic.large,
        (
            at_most("warm.wall", 0.05, "kept plans <= 50 ms", KEPT),
            at_most("rss", 150e6, "a new process <= 150 MB", KEPT_START),
        ),
    ),
    Case(
        "P31-commit",
        "kept plans, 2,275,266 files and one commit more",
        {OURS: _after_a_commit},
        (at_most("warm.wall", 0.06, "<= 50 ms and 10 ms for the commit"),),
        rounds=6,
        prepare=lambda settings: synthetic.make(settings, synthetic.large(settings)),
    ),
    _bounds_case("P31-ten", "kept plans, statistics of 100,000 files and ten columns", synthetic.small, _ten),
    _bounds_case(
        "P31-bounds",
        "kept plans, statistics of 2,275,266 files and one column",
        synthetic.large_with_bounds,
        _clustered,
        (at_most("warm.wall", 0.1, "kept plans <= 100 ms", KEPT),),
    ),
    Case(
        "P31-ten-large",
        "kept plans, statistics of 2,275,266 files and ten columns, which were kept one by one",
        {OURS: _planned(synthetic.large_with_ten, _ten_of_large, True, EACH_COLUMN)},
        (at_most("warm.wall", 0.5, "<= 500 ms"),),
        4,
        lambda settings: synthetic.make(settings, synthetic.large_with_ten(settings)),
    ),
]
