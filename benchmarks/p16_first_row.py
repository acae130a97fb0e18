"""P16: a new interpreter, a small table, its first row; no Spark. Start of Python and imports included."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks import lineitem, ours
from benchmarks.case import OURS, Case, Settings, at_most
from benchmarks.job import Job

SMALL = 0.01
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
    ours.upsert(path, rows.slice(0, 1000))


def first_row(kind: str) -> Callable[[Job], None]:
    """Of a table after a bulk insert and an upsert."""

    def run(job: Job) -> None:
        # Modules are compiled once, as those of an installed package are; the first round may have to do it.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        with job.folder() as folder:
            _make(folder / "t", job.settings, kind)
            command = [sys.executable, "-c", PROGRAM, str(folder / "t")]
            for _ in range(job.rounds):
                with job.timed():
                    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        job.fact("rows", int(answer))

    return run


GOALS = (at_most("warm.wall", 0.6, "<= 0.6 s"),)

CASES = [
    Case("P16-cow", "first row from process start, copy-on-write", {OURS: first_row("COPY_ON_WRITE")}, GOALS, prepare=prepare),
    Case("P16-mor", "first row from process start, merge-on-read", {OURS: first_row("MERGE_ON_READ")}, GOALS, prepare=prepare),
]
