"""P28: a restore to a savepoint over a hundred commits of a thousand rows each, and one upsert after it.

We wrote the table that each side takes back, with column statistics and a record index. Its metadata table was compacted since
the savepoint, so the indexes are made anew. The upsert counts because Apache Hudi leaves that to it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks import ours, rivals, written
from benchmarks.case import OURS, Case, Settings, faster_than_apache, versions_of_apache
from benchmarks.job import Job
from benchmarks.written import COW, MOR, Written

COMMITS, ROWS = 100, 1_000
INDEXES = ("column_stats", "record_index")


def prepared(settings: Settings, kind: str) -> Path:
    """The table, written by us once."""
    commits, start = settings.scaled(COMMITS, least=5), Written(kind, share=0.1, indexes=INDEXES)
    source = written.by_us(settings, start)
    path = source.with_name(f"{source.name}-then-{commits}")
    if not path.is_dir():
        with tempfile.TemporaryDirectory(dir=settings.data) as folder:
            unfinished = written.copied(source, Path(folder))
            ours.open_table(unfinished).savepoint()
            for number in range(commits):
                ours.upsert(unfinished, pq.read_table(batch(settings, kind, number)))
            unfinished.rename(path)
    return path


def batch(settings: Settings, kind: str, number: int) -> Path:
    """The rows of one commit, at random, with another comment."""
    return written.batch_file(Written(kind, share=0.1).settings(settings), ROWS, written.RANDOM, number)


def hudimeta(kind: str) -> Callable[[Job], None]:
    """`Table.restore` of a copy, then one upsert."""

    def run(job: Job) -> None:
        source, rows = prepared(job.settings, kind), pq.read_table(batch(job.settings, kind, 0))
        for _ in range(job.rounds):
            with job.folder() as folder:
                path = written.copied(source, folder)
                (saved,) = ours.open_table(path).savepoints()
                with job.timed():
                    ours.open_table(path).restore(saved.instant)
                    ours.upsert(path, rows)
                job.fact("rows", ours.open_table(path).scan().count())

    return run


def apache_hudi(kind: str) -> Callable[[Job], None]:
    """The same through its write client."""

    def run(job: Job) -> None:
        source, rows = prepared(job.settings, kind), str(batch(job.settings, kind, 0))
        kept = {
            "hoodie.write.table.version": "8",
            "hoodie.write.auto.upgrade": "false",
            "hoodie.table.name": ours.open_table(source).properties.name,
        }
        options = {**written.hudi_options(Written(kind, indexes=INDEXES), "upsert"), **kept}
        with rivals.apache_hudi(job) as process:
            for _ in range(job.rounds):
                with job.folder() as folder:
                    path = written.copied(source, folder)
                    (saved,) = ours.open_table(path).savepoints()
                    asked = {"path": str(path), "name": "restore", "options": options, "instant": saved.instant}
                    restored = process.call("service", timeout=1200, **asked)["timings"]
                    wrote = process.call("write", timeout=1200, path=str(path), rows=rows, options=options)["timings"]
                    job.add({key: one[key] + two[key] for key in one} for one, two in zip(restored, wrote, strict=True))
                    job.fact("rows", ours.open_table(path).scan().count())

    return run


def _case(name: str, title: str, kind: str) -> Case:
    sides = {OURS: hudimeta(kind), **versions_of_apache(apache_hudi(kind))}
    prepare = partial(prepared, kind=kind)
    return Case(name, f"restore over 100 commits, {title}", sides, faster_than_apache(4), rounds=3, prepare=prepare)


CASES = [_case("P28-cow", "copy-on-write", COW), _case("P28-mor", "merge-on-read", MOR)]
