"""P16: a new interpreter, a small table, its first row and its first upsert; start of Python and imports included.

The import alone is measured by the new interpreter itself. Through Spark it is the first write after `attach`; the session's
start does not count.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks import lineitem, ours, rivals
from benchmarks.case import OURS, ROUTED, Case, Settings, at_most
from benchmarks.job import Job

SMALL = 0.01
CHANGED = 1000
IMPORT = (
    "import time; wall, cpu = time.perf_counter(), time.process_time(); import hudimeta; "
    "print(time.perf_counter() - wall, time.process_time() - cpu)"
)
UPSERT = (
    "import sys, hudimeta, pyarrow.parquet; "
    "print(hudimeta.Table(sys.argv[1]).upsert(pyarrow.parquet.read_table(sys.argv[2])).updated)"
)
PROGRAM = "import sys, hudimeta; print(next(hudimeta.Table(sys.argv[1]).scan().to_batches()).slice(0, 1).num_rows)"


def small(settings: Settings) -> Settings:
    """15,000 rows of lineitem, at every scale."""
    return replace(settings, scale=SMALL)


def prepare(settings: Settings) -> None:
    """Make the rows."""
    lineitem.rows_file(small(settings))


def _make(path: Path, settings: Settings, kind: str) -> None:
    rows = lineitem.rows(small(settings))
    ours.bulk_insert(path, rows, ["column_stats"], kind)
    ours.upsert(path, rows.slice(0, CHANGED))


def _answer(program: str, *arguments: Path) -> str:
    """What a new interpreter prints."""
    # Modules are compiled once, as those of an installed package are; the first round may have to do it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def imported(job: Job) -> None:
    """`import hudimeta`, and nothing else."""
    for _ in range(job.rounds):
        wall, cpu = map(float, _answer(IMPORT).split())
        job.add([{"wall": wall, "cpu": cpu}])


def first_upsert(job: Job) -> None:
    """A thousand rows of a Parquet file."""
    with job.folder() as folder:
        _make(folder / "t", job.settings, "COPY_ON_WRITE")
        file = _changes(job.settings, folder)
        for _ in range(job.rounds):
            with job.timed():
                answer = _answer(UPSERT, folder / "t", file)
    job.fact("updated", int(answer))


def first_routed_upsert(job: Job) -> None:
    """The same through Spark, once: a session has only one first write."""
    import pyspark_hudimeta

    with job.folder() as folder, rivals.spark_session(job) as spark:
        _make(folder / "t", job.settings, "COPY_ON_WRITE")
        rows = spark.read.parquet(str(_changes(job.settings, folder)))
        with job.timed(descendants=True):
            pyspark_hudimeta.attach(spark)
            rows.write.format("hudimeta").mode("append").save(str(folder / "t"))
        job.fact("updated", ours.open_table(folder / "t").report().updated)


def _changes(settings: Settings, folder: Path) -> Path:
    file = folder / "rows.parquet"
    pq.write_table(lineitem.rows(small(settings)).slice(0, CHANGED), file)
    return file


def first_row(kind: str) -> Callable[[Job], None]:
    """Of a table after a bulk insert and an upsert."""

    def run(job: Job) -> None:
        with job.folder() as folder:
            _make(folder / "t", job.settings, kind)
            for _ in range(job.rounds):
                with job.timed():
                    answer = _answer(PROGRAM, folder / "t")
        job.fact("rows", int(answer))

    return run


GOALS = (at_most("warm.wall", 0.6, "<= 0.6 s"),)

CASES = [
    Case("P16-import", "import hudimeta", {OURS: imported}, (at_most("warm.wall", 0.06, "<= 60 ms"),)),
    Case(
        "P16-upsert",
        "first upsert of 1,000 rows, from process start; through Spark from attach",
        {OURS: first_upsert, ROUTED: first_routed_upsert},
        prepare=prepare,
    ),
    Case("P16-cow", "first row from process start, copy-on-write", {OURS: first_row("COPY_ON_WRITE")}, GOALS, prepare=prepare),
    Case("P16-mor", "first row from process start, merge-on-read", {OURS: first_row("MERGE_ON_READ")}, GOALS, prepare=prepare),
]
