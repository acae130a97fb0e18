"""P1: which partitions does a table have? 2.27 million files in 497 partitions."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks import ours, rivals, synthetic
from benchmarks.case import OURS, Case, Settings, at_most, versions_of_apache
from benchmarks.job import Job

PROGRAM = "import sys, hudimeta; print(len(hudimeta.Table(sys.argv[1]).metadata.partitions()))"


def prepare(settings: Settings) -> None:
    """Make the table."""
    synthetic.make(settings, synthetic.large(settings))


def same_object(job: Job) -> None:
    """Asked again of a table that is open."""
    table, count = ours.open_table(synthetic.make(job.settings, synthetic.large(job.settings))), 0
    for _ in range(job.rounds):
        with job.timed():
            count = ours.count_partitions(table)
    job.fact("partitions", count)


def new_object(job: Job) -> None:
    """The table is opened for each question."""
    path, count = synthetic.make(job.settings, synthetic.large(job.settings)), 0
    for _ in range(job.rounds):
        with job.timed():
            count = ours.count_partitions(ours.open_table(path))
    job.fact("partitions", count)


def new_process(job: Job) -> None:
    """A new interpreter for each question, its start and the imports included."""
    path, answer = synthetic.make(job.settings, synthetic.large(job.settings)), "0"
    command = [sys.executable, "-c", PROGRAM, str(path)]
    # Modules are compiled once, as those of an installed package are; the first round may have to do it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(job.rounds):
        with job.timed():
            answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    job.fact("partitions", int(answer))


def apache_same(job: Job) -> None:
    """Hudi's reader with its file readers kept open."""
    path = synthetic.make(job.settings, synthetic.large(job.settings))
    job.fact("partitions", rivals.planning(job, path, "partitions", reuse=True))


def apache_new(job: Job) -> None:
    """Hudi's reader, table and reader opened for each question."""
    path = synthetic.make(job.settings, synthetic.large(job.settings))
    job.fact("partitions", rivals.planning(job, path, "partitions"))


CASES = [
    Case(
        "P1-same",
        "all partitions, same table object",
        {OURS: same_object, **versions_of_apache(apache_same)},
        (at_most("warm.wall", 0.003, "<= 3 ms"),),
        rounds=20,
        prepare=prepare,
    ),
    Case(
        "P1-new",
        "all partitions, new table object",
        {OURS: new_object, **versions_of_apache(apache_new)},
        (at_most("warm.wall", 0.020, "<= 20 ms"),),
        rounds=20,
        prepare=prepare,
    ),
    Case(
        "P1-start",
        "all partitions, from process start",
        {OURS: new_process},
        (at_most("warm.wall", 0.4, "<= 0.4 s"),),
        prepare=prepare,
    ),
]
