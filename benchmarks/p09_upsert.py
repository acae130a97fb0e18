"""P9: updating one row in a hundred of lineitem, keys at random or keys that lie together; a fixed batch in growing tables.

Each side updates a table that it wrote itself, with column statistics and a record index, which Apache Hudi is told to use.
At random, one row in a hundred touches every file: copy-on-write then rewrites the table, in every system.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pyarrow.parquet as pq

from benchmarks import lineitem, ours, rivals, routed, written
from benchmarks.case import (
    GZIP,
    OURS,
    PLAIN,
    ROUTED,
    ROUTED_ONE,
    Case,
    Goal,
    Settings,
    Side,
    at_most,
    faster_than_apache,
    versions_of_apache,
)
from benchmarks.job import Job
from benchmarks.written import COW, LOCAL, MOR, RANDOM, Written

ROUNDS = 4
BY_DEFAULT = ("cow-random", "cow-local", "mor-random", "mor-local")
"""Cases in which Apache Hudi also runs with its default codec."""
FIXED = 1_500
LARGE_BATCH = 1_000
SHARE = 0.01

Count = Callable[[Settings, Written], int]


def hundredth(settings: Settings, table: Written) -> int:
    """One row in a hundred of the table."""
    rows = pq.read_metadata(lineitem.rows_file(table.settings(settings))).num_rows
    return max(10, round(int(rows) * SHARE))


def fixed(settings: Settings, table: Written) -> int:
    """The same number whatever the size of the table."""
    return settings.scaled(FIXED, least=10)


def make_ready(settings: Settings, table: Written, count: Count, how: str) -> None:
    """Write the batches and our table."""
    own = table.settings(settings)
    written.batches(own, count(settings, table), how, settings.rounds or ROUNDS)
    written.by_us(settings, table)


def _hudimeta(table: Written, count: Count, how: str) -> Side:
    def run(job: Job) -> None:
        own = table.settings(job.settings)
        source = written.by_us(job.settings, table)
        with job.folder() as folder:
            path = written.copied(source, folder)
            for file in written.batches(own, count(job.settings, table), how, job.rounds):
                batch = pq.read_table(file)
                with job.timed():
                    report = ours.upsert(path, batch)
                job.note("updated", report.updated)
                job.note("files", report.files_written)
                job.note("MB", report.bytes_written / 1e6)

    return run


def through_spark(
    table: Written,
    count: Count,
    how: str,
    cores: int = 2,
    write: routed.Write = routed.by_tasks,
    frame: routed.Frames = routed.as_stored,
) -> Side:
    """Our table updated through Spark, with rows that `frame` makes of each batch."""
    return routed.upserts(
        lambda job, folder: written.copied(written.by_us(job.settings, table), folder),
        lambda job: written.batches(table.settings(job.settings), count(job.settings, table), how, job.rounds),
        cores,
        write,
        frame,
    )


def by_hudi(table: Written, count: Count, how: str, query: str | None = None) -> Side:
    """Apache Hudi's table updated by it; rows of a query if there is one, which finds the batch under the name `stored`."""

    def run(job: Job) -> None:
        own = table.settings(job.settings)
        with rivals.apache_hudi(job) as process, job.folder() as folder:
            path = written.copied(written.by_hudi(job, process, table), folder)
            options = written.hudi_options(table, "upsert")
            for file in written.batches(own, count(job.settings, table), how, job.rounds):
                asked = {"path": str(path), "rows": str(file), "options": options}
                job.add(process.call("write", timeout=1200, query=query, **asked)["timings"])

    return run


def _case(name: str, title: str, table: Written, count: Count, how: str, goals: tuple[Goal, ...]) -> Case:
    everyone = {
        OURS: _hudimeta(table, count, how),
        ROUTED: through_spark(table, count, how),
        PLAIN: through_spark(table, count, how, write=routed.saved),
        **({ROUTED_ONE: through_spark(table, count, how, cores=1)} if name == "cow-random" else {}),
        **versions_of_apache(by_hudi(table, count, how)),
        **({GZIP: by_hudi(replace(table, codec="gzip"), count, how)} if name in BY_DEFAULT else {}),
    }
    prepare = partial(make_ready, table=table, count=count, how=how)
    return Case(f"P9-{name}", title, everyone, goals, ROUNDS, prepare, not_in_smoke=(PLAIN,))


def _large(kind: str) -> Side:
    def run(job: Job) -> None:
        files = written.large_batches(job.settings, LARGE_BATCH, job.rounds)
        with job.folder() as folder:
            path = written.copied(written.large(job.settings, kind), folder)
            for file in files:
                batch = pq.read_table(file)
                with job.timed():
                    report = ours.upsert(path, batch)
                job.note("updated", report.updated)
                job.note("files", report.files_written)

    return run


def _prepare_large(settings: Settings, kind: str) -> None:
    written.large_batches(settings, LARGE_BATCH, settings.rounds or ROUNDS)
    written.large(settings, kind)


def _large_case(name: str, title: str, kind: str, goals: tuple[Goal, ...]) -> Case:
    memory = at_most("rss", 1 << 30, "<= 1 GiB")
    return Case(f"P9-{name}", title, {OURS: _large(kind)}, (memory, *goals), ROUNDS, partial(_prepare_large, kind=kind))


def faster(times: float) -> tuple[Goal, ...]:
    """Than Apache Hudi, without Spark, by its executors and through its plain door."""
    return tuple(goal for side in (OURS, ROUTED, PLAIN) for goal in faster_than_apache(times, side=side))


COW_TABLE, MOR_TABLE = Written(COW), Written(MOR)
FIXED_COST = at_most("warm.cpu", 3, "<= 3 CPU s")

CASES = [
    _case("cow-random", "upsert of 1 %, random keys", COW_TABLE, hundredth, RANDOM, faster(5)),
    _case("cow-local", "upsert of 1 %, keys that lie together", COW_TABLE, hundredth, LOCAL, faster(3)),
    _case("mor-random", "the same, merge-on-read, random", MOR_TABLE, hundredth, RANDOM, (*faster(3), FIXED_COST)),
    _case("mor-local", "the same, merge-on-read, together", MOR_TABLE, hundredth, LOCAL, (*faster(3), FIXED_COST)),
    _case("cow-150k", "1,500 rows into 150,000, random", Written(COW, 0.1), fixed, RANDOM, faster(5)),
    _case("cow-1.5m", "1,500 rows into 1.5 million, together", COW_TABLE, fixed, LOCAL, faster(3)),
    _case("mor-150k", "1,500 rows into 150,000, merge-on-read", Written(MOR, 0.1), fixed, RANDOM, faster(3)),
    _case("mor-1.5m", "1,500 rows into 1.5 million, merge-on-read", MOR_TABLE, fixed, RANDOM, faster(3)),
    _large_case("cow-10m", "1,000 rows into 10.5 million, random", COW, ()),
    _large_case("mor-10m", "1,000 rows into 10.5 million, merge-on-read", MOR, (FIXED_COST,)),
]
