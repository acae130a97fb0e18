"""P13: many commits of 100 rows into four partitions, what runs by itself left on: does the thousandth cost more?

Each updates random rows of 10,000, so that the table stays as large as it is: new rows would make copy-on-write rewrite larger
files from commit to commit, which is not the question. Merge-on-read is compacted inline, as often as is the default: nobody
does it unasked, and with log files that only grow in number nothing can stay as fast. We write 1,000 commits, Apache Hudi 100:
it needs seconds for each. Beside our last tenth, commit by commit, a new table gets its first ones, so that both are measured
under the same load.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import ours, rivals, routed
from benchmarks.case import (
    OURS,
    PLAIN,
    ROUTED,
    Call,
    Case,
    Goal,
    Measured,
    Settings,
    Side,
    at_most,
    faster_than_apache,
    versions_of_apache,
)
from benchmarks.job import Job
from benchmarks.written import COW, MOR

UPKEEP = {COW: {}, MOR: {"hoodie.compact.inline": "true"}}
OUR_COMMITS, THEIR_COMMITS, ROWS, PARTITIONS = 1_000, 100, 100, 4
KEYS = 10_000


def rows(number: int) -> pa.Table:
    """The rows of one commit, random ones; of number 0 all rows of the table."""
    ids = range(KEYS) if number == 0 else np.sort(np.random.default_rng(number).choice(KEYS, ROWS, replace=False)).tolist()
    return pa.table(
        {
            "id": [f"{i:010d}" for i in ids],
            "part": [f"p{i % PARTITIONS}" for i in ids],
            "ts": [number] * len(ids),
            "value": [i / 7 for i in ids],
            "note": [f"row {i} of commit {number}" for i in ids],
        }
    )


def commits(settings: Settings, most: int) -> int:
    """How many commits a side writes."""
    return settings.scaled(most, least=12)


def _hudimeta(kind: str) -> Side:
    def run(job: Job) -> None:
        with job.folder() as folder:
            beside = Job(job.settings, job.rounds, job.side)
            _new(folder / "t", kind)
            _new(folder / "beside", kind)
            count = commits(job.settings, OUR_COMMITS)
            for number in range(1, 1 + count):
                batch = rows(number)
                with job.timed():
                    ours.upsert(folder / "t", batch, UPKEEP[kind])
                if number > count - _tenth(count):
                    with beside.timed():
                        ours.upsert(folder / "beside", batch, UPKEEP[kind])
            job.note("rows", ours.count(folder / "t"))
        _trend(job)
        _note_p95(job, "beside the last", beside.measured.calls)

    return run


def _new(path: Path, kind: str) -> None:
    ours.create(path, rows(0).schema, "id", "part", "ts", kind).bulk_insert(rows(0))


def _tenth(count: int) -> int:
    return max(2, count // 10)


def _trend(job: Job) -> None:
    """95th percentile of the first and of the last tenth of the commits."""
    tenth = _tenth(len(job.measured.calls))
    _note_p95(job, "first", job.measured.calls[:tenth])
    _note_p95(job, "last", job.measured.calls[-tenth:])


def _note_p95(job: Job, name: str, calls: Sequence[Call]) -> None:
    """By CPU and by wall, which feels other programs."""
    job.note(f"{name} p95 cpu", statistics.quantiles([c.cpu for c in calls], n=20)[-1])
    job.note(f"{name} p95 wall", statistics.quantiles([c.wall for c in calls], n=20)[-1])


def _through_spark(kind: str) -> dict[str, Side]:
    """As many commits as Apache Hudi's: `HudiTable`, and Spark's Python data source alone."""

    def batches(job: Job) -> list[pa.Table]:
        return [rows(number) for number in range(1, 1 + commits(job.settings, THEIR_COMMITS))]

    def then_trend(side: Side) -> Side:
        def run(job: Job) -> None:
            side(job)
            _trend(job)

        return run

    make = partial(_new, kind=kind)
    return {
        ROUTED: then_trend(routed.small_commits(make, batches, UPKEEP[kind])),
        PLAIN: then_trend(routed.small_saves(make, batches, UPKEEP[kind])),
    }


def _apache(kind: str) -> Side:
    def run(job: Job) -> None:
        options = {
            "hoodie.table.name": "small",
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "ts",
            **UPKEEP[kind],
        }
        with rivals.apache_hudi(job) as process, job.folder() as folder:
            for number in range(1 + commits(job.settings, THEIR_COMMITS)):
                pq.write_table(rows(number), folder / "rows.parquet")
                asked = {"path": str(folder / "t"), "rows": str(folder / "rows.parquet"), "options": options}
                done = process.call("write", timeout=1200, **asked)
                job.add(done["timings"] if number else [])
        _trend(job)

    return run


def _flat(sides: Mapping[str, Measured]) -> bool | None:
    """The last commits cost little more than the first ones of another table at the same time."""
    found = sides[OURS]
    return None if found.error else found.notes["last p95 cpu"] <= 1.2 * found.notes["beside the last p95 cpu"]


def _case(name: str, title: str, kind: str) -> Case:
    return Case(
        f"P13-{name}",
        title,
        {OURS: _hudimeta(kind), **_through_spark(kind), **versions_of_apache(_apache(kind))},
        (
            at_most("warm.wall", 0.5, "<= 0.5 s"),
            at_most("warm.wall", 1.5, "routed <= 1.5 s", ROUTED),
            at_most("warm.wall", 1.5, "plain door <= 1.5 s", PLAIN),
            Goal("p95 of the last tenth <= 1.2x of the first", _flat, only_at_full_scale=True),
            *faster_than_apache(1),
        ),
        rounds=1,
        not_in_smoke=(PLAIN,),
    )


CASES = [
    _case("cow", "commits of 100 rows, copy-on-write", COW),
    _case("mor", "commits of 100 rows, merge-on-read", MOR),
]
