"""P14: what a plan and an upsert ask of the store. Counts, the same on every machine: a run with one too many fails.

A table of 150,000 rows of lineitem in 7 partitions after two commits. Apache Hudi 1.2.0 on such a table, counted with strace
(its HEAD-like calls left out): plan without a filter 5 LIST and 20 GET, with a filter 14 and 53; upsert copy-on-write 90 LIST,
363 GET and 70 PUT (28 of data); merge-on-read 91, 225 and 68 (28 of data).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import lineitem, ours
from benchmarks.case import OURS, Case, Settings, Side, counted
from benchmarks.job import Job

SMALLER = 0.1
"""Of lineitem as the other benchmarks take it."""

UPDATED = 1_451
INDEXES = ("column_stats",)
NOT_COUNTED = ("data", "markers")
LISTED = ("files", "column_stats", "partition_stats")


def smaller(settings: Settings) -> Settings:
    """The same with a tenth of the rows."""
    return replace(settings, scale=settings.scale * SMALLER)


def prepare(settings: Settings) -> None:
    """Make the rows."""
    lineitem.rows_file(smaller(settings))


def some(rows: pa.Table, count: int, seed: int) -> pa.Table:
    """Random rows."""
    chosen = np.random.default_rng(seed).choice(len(rows), min(count, len(rows) // 2), replace=False)
    return rows.take(pa.array(np.sort(chosen)))


def _make(path: Path, job: Job, kind: str, indexes: tuple[str, ...] = INDEXES) -> pa.Table:
    rows = lineitem.rows(smaller(job.settings))
    ours.bulk_insert(path, rows, list(indexes), kind)
    ours.upsert(path, some(rows, UPDATED, seed=1))
    return rows


def _counted(path: Path, act: Callable[[Any], object], opening: bool) -> Mapping[tuple[str, str], int]:
    """Requests by (kind, purpose) of an act on a table that is opened for it, with those of opening it or without."""
    from hudimeta.storage import CountingStorage

    opened: list[CountingStorage] = []

    def wrap(storage: Any) -> CountingStorage:
        opened.append(CountingStorage(storage))
        return opened[-1]

    with ours.storage_wrapped(wrap):
        table = ours.open_table(path)
        (storage,) = opened
        mark = 0 if opening else len(storage.log)
        act(table)
    return storage.log.by_purpose(mark)


def _sum(requests: Mapping[tuple[str, str], int], kind: str) -> int:
    return sum(n for (what, purpose), n in requests.items() if what == kind and purpose not in NOT_COUNTED)


def plan(where: str | None) -> Callable[[Job], None]:
    """Requests of a cold plan, beyond one GET for each log of the metadata table and each completed replacecommit."""

    def run(job: Job) -> None:
        with job.folder() as folder:
            path = folder / "t"
            _make(path, job, "COPY_ON_WRITE")
            table = ours.open_table(path)
            partitions = LISTED if where else LISTED[:1]
            allowed = sum(len(g.logs) for p in partitions for g in _groups(table, p))
            for _ in range(job.rounds):
                with job.timed():
                    requests = _counted(path, lambda table: ours.count_planned(table, where), opening=True)
            job.note("LIST", _sum(requests, "LIST"))
            job.note("GET", _sum(requests, "GET"))
            job.note("GET beyond logs", _sum(requests, "GET") - allowed)
            job.note("PUT", _sum(requests, "PUT"))

    return run


def _groups(table: Any, partition: str) -> tuple[Any, ...]:
    return table.metadata.file_groups(partition) if partition in table.metadata.ready else ()


def upsert(kind: str) -> Callable[[Job], None]:
    """Requests of an upsert of 1,451 random rows into a table that is open, besides data files and markers."""

    def run(job: Job) -> None:
        with job.folder() as folder:
            path = folder / "t"
            rows = _make(path, job, kind)
            for number in range(job.rounds):
                batch = some(rows, UPDATED, seed=2 + number)
                with job.timed():
                    requests = _counted(path, partial(ours.upsert_into, rows=batch), opening=False)
                for name in ("LIST", "GET", "PUT", "DELETE", "HEAD"):
                    job.note(name, max(_sum(requests, name), job.measured.notes.get(name, 0)))
            job.note("data files", requests.get(("PUT", "data"), 0))

    return run


def keyed(kind: str) -> Side:
    """The same by record index: besides one LIST and, for each shard asked, one GET and one for each of its logs."""

    def run(job: Job) -> None:
        with job.folder() as folder:
            path = folder / "t"
            rows = _make(path, job, kind, (*INDEXES, "record_index"))
            for number in range(job.rounds):
                batch, shards = some(rows, UPDATED, seed=2 + number), _groups(ours.open_table(path), "record_index")
                with job.timed():
                    requests = _counted(path, partial(ours.upsert_into, rows=batch), opening=False)
                asked = sum(bool(group.base) + len(group.logs) for group in shards)
                found = {"LIST": _sum(requests, "LIST") - 1, "GET": _sum(requests, "GET") - asked, "PUT": _sum(requests, "PUT")}
                for name, count in found.items():
                    job.note(name, max(count, job.measured.notes.get(name, 0)))
            job.note("GET of shards", asked)
            job.note("data files", requests.get(("PUT", "data"), 0))

    return run


PLAN_GOALS = (counted("LIST", 2), counted("GET beyond logs", 6), counted("PUT", 0))
UPSERT_GOALS = (counted("LIST", 3), counted("PUT", 12), counted("GET", 20))

CASES = [
    Case("P14-plan", "requests of a plan", {OURS: plan(None)}, PLAN_GOALS, prepare=prepare),
    Case("P14-plan-stats", "requests of a plan by statistics", {OURS: plan("l_orderkey < 100")}, PLAN_GOALS, prepare=prepare),
    Case("P14-upsert-cow", "requests of an upsert, copy-on-write", {OURS: upsert("COPY_ON_WRITE")}, UPSERT_GOALS, 3, prepare),
    Case("P14-upsert-mor", "requests of an upsert, merge-on-read", {OURS: upsert("MERGE_ON_READ")}, UPSERT_GOALS, 3, prepare),
    Case("P14-upsert-keys", "requests of an upsert by record index", {OURS: keyed("MERGE_ON_READ")}, UPSERT_GOALS, 3, prepare),
]
