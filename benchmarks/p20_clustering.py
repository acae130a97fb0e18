"""P20: clustering into files of 8 MB: by one column, by two along a z-order and along a Hilbert curve.

Of 1.5 million rows that is a file or two a partition; of 15 million so many that the files which filters read tell how well the
rows lie. They are counted by our plans on both sides, from the statistics that each side wrote. There both sides make places on
the curve alike, once in either way: from the values themselves, as is Hudi's default, and from ranks in a sample, as is ours.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import ours, rivals, routed, written
from benchmarks.case import (
    APACHE,
    OURS,
    ROUTED,
    Case,
    Goal,
    Measured,
    Settings,
    Side,
    faster_than_apache,
    versions_of_apache,
)
from benchmarks.job import Job
from benchmarks.written import COW, Written

TABLE, LARGE = Written(COW), Written(COW, pieces=10)
FILTERS = 50
"""Ranges of each column that are asked for, of two in a hundred rows each."""
BYTES = str(8 << 20)
TAKEN = {
    "hoodie.clustering.plan.strategy.target.file.max.bytes": BYTES,
    "hoodie.clustering.inline.max.commits": "1",
    "hoodie.clustering.async.max.commits": "1",
}
READ = "files read"
METHOD = "hoodie.layout.optimize.curve.build.method"
BOTH = "l_partkey,l_extendedprice"
LAYOUTS = {
    "linear": ("sorted by one column", "l_partkey", {}),
    "z-order": ("two columns along a z-order", BOTH, {}),
    "hilbert": ("two columns along a Hilbert curve", BOTH, {}),
    "z-order-direct": ("two columns along a z-order of values", BOTH, {METHOD: "direct"}),
    "z-order-sample": ("two columns along a z-order of ranks", BOTH, {METHOD: "sample"}),
}
"""By name, which begins with the strategy's."""


def options_of(layout: str) -> dict[str, str]:
    """The options of a clustering, which both sides take."""
    _, columns, others = LAYOUTS[layout]
    return {
        **TAKEN,
        "hoodie.clustering.plan.strategy.sort.columns": columns,
        "hoodie.layout.optimize.strategy": next(name for name in ("linear", "z-order", "hilbert") if layout.startswith(name)),
        **others,
    }


def files_read(path: Path, table: Written, settings: Settings, layout: str) -> dict[str, float]:
    """How many files a filter on each column reads, in the mean of ranges that together are all rows."""
    names, found = LAYOUTS[layout][1].split(","), ours.open_table(path)
    rows = pa.concat_tables(pq.read_table(source, columns=names) for source in table.sources(settings))
    answer = {}
    for name in names:
        values = rows[name].combine_chunks().sort()
        cuts = [values[len(values) * at // FILTERS].as_py() for at in range(FILTERS)]
        ranges = [f"{name} >= {low} AND {name} < {high}" for low, high in itertools.pairwise(cuts)]
        answer[name] = round(sum(ours.count_planned(found, where) for where in ranges) / len(ranges), 2)
    return answer


def prepare(settings: Settings, table: Written) -> None:
    """Make our table."""
    written.by_us(settings, table)


def hudimeta(layout: str, table: Written) -> Side:
    """`Table.cluster` of a copy, once a round."""

    def run(job: Job) -> None:
        source = written.by_us(job.settings, table)
        for _ in range(job.rounds):
            with job.folder() as folder:
                path = written.copied(source, folder)
                found = ours.open_table(path, options_of(layout))
                with job.timed():
                    (report,) = found.cluster()
                job.note("files", report.files_after)
                job.note(READ, files_read(path, table, job.settings, layout))

    return run


def apache_hudi(layout: str, table: Written) -> Side:
    """Schedule and run, with the options of the table's indexes: a run without them drops the indexes."""

    def run(job: Job) -> None:
        with rivals.apache_hudi(job) as process:
            source = written.by_hudi(job, process, table)
            options = {**written.hudi_options(table, "upsert"), **options_of(layout)}
            for _ in range(job.rounds):
                with job.folder() as folder:
                    path = written.copied(source, folder)
                    done = process.call("service", timeout=3600, path=str(path), name="cluster", options=options)
                    if done["instant"] is None:
                        raise RuntimeError("there was nothing to cluster")
                    job.add(done["timings"])
                    job.note("files", ours.count_planned(ours.open_table(path), None))
                    job.note(READ, files_read(path, table, job.settings, layout))

    return run


def _no_more_files(rival: str) -> Goal:
    def met(sides: Mapping[str, Measured]) -> bool | None:
        notes = [sides[side].notes.get(READ) if side in sides else None for side in (OURS, rival)]
        if notes[0] is None or notes[1] is None:
            return None
        return all(notes[0][name] <= notes[1][name] for name in notes[0])

    return Goal(f"filters read no more files than after {rival}'s", met, only_at_full_scale=True)


def _case(layout: str, table: Written, rounds: int) -> Case:
    large = table is LARGE
    goals = (*faster_than_apache(4), *faster_than_apache(4, side=ROUTED))
    return Case(
        f"P20-15m-{layout}" if large else f"P20-{layout}",
        f"clustering, {LAYOUTS[layout][0]}" + (", 15 million rows" if large else ""),
        {
            OURS: hudimeta(layout, table),
            ROUTED: routed.clusterings(lambda job: written.by_us(job.settings, table), options_of(layout)),
            **versions_of_apache(apache_hudi(layout, table)),
        },
        (*goals, *(_no_more_files(rival) for rival in APACHE if large)),
        rounds=rounds,
        prepare=partial(prepare, table=table),
        patience_s=3600,
    )


CASES = [
    *(_case(layout, TABLE, 3) for layout in ("linear", "z-order", "hilbert")),
    *(_case(layout, LARGE, 2) for layout in ("linear", "z-order-direct", "z-order-sample", "hilbert")),
]
