"""P20: clustering of 1.5 million rows into files of 8 MB: by one column, by two along a z-order and along a Hilbert curve."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import ours, rivals, routed, written
from benchmarks.case import OURS, ROUTED, Case, Settings, faster_than_apache, versions_of_apache
from benchmarks.job import Job
from benchmarks.written import COW, Written

TABLE = Written(COW)
BYTES = str(8 << 20)
TAKEN = {
    "hoodie.clustering.plan.strategy.target.file.max.bytes": BYTES,
    "hoodie.clustering.inline.max.commits": "1",
    "hoodie.clustering.async.max.commits": "1",
}
LAYOUTS = {
    "linear": ("sorted by one column", "l_partkey"),
    "z-order": ("two columns along a z-order", "l_partkey,l_extendedprice"),
    "hilbert": ("two columns along a Hilbert curve", "l_partkey,l_extendedprice"),
}


def options_of(layout: str) -> dict[str, str]:
    """The options of a clustering, which both sides take."""
    columns = LAYOUTS[layout][1]
    return {
        **TAKEN,
        "hoodie.clustering.plan.strategy.sort.columns": columns,
        "hoodie.layout.optimize.strategy": layout,
    }


def prepare(settings: Settings) -> None:
    """Make our table."""
    written.by_us(settings, TABLE)


def hudimeta(layout: str) -> Callable[[Job], None]:
    """`Table.cluster` of a copy, once a round."""

    def run(job: Job) -> None:
        source = written.by_us(job.settings, TABLE)
        for _ in range(job.rounds):
            with job.folder() as folder:
                table = ours.open_table(written.copied(source, folder), options_of(layout))
                with job.timed():
                    (report,) = table.cluster()
                job.note("files", report.files_after)
                job.note("skipped", {name: round(after, 3) for name, (_, after) in report.skipped.items()})

    return run


def apache_hudi(layout: str) -> Callable[[Job], None]:
    """Schedule and run, with the options of the table's indexes: a run without them drops the indexes."""

    def run(job: Job) -> None:
        with rivals.apache_hudi(job) as process:
            source = written.by_hudi(job, process, TABLE)
            options = {**written.hudi_options(TABLE, "upsert"), **options_of(layout)}
            for _ in range(job.rounds):
                with job.folder() as folder:
                    path = written.copied(source, folder)
                    done = process.call("service", timeout=1200, path=str(path), name="cluster", options=options)
                    if done["instant"] is None:
                        raise RuntimeError("there was nothing to cluster")
                    job.add(done["timings"])

    return run


def _case(layout: str) -> Case:
    return Case(
        f"P20-{layout}",
        f"clustering, {LAYOUTS[layout][0]}",
        {
            OURS: hudimeta(layout),
            ROUTED: routed.clusterings(lambda job: written.by_us(job.settings, TABLE), options_of(layout)),
            **versions_of_apache(apache_hudi(layout)),
        },
        (*faster_than_apache(4), *faster_than_apache(4, side=ROUTED)),
        rounds=3,
        prepare=prepare,
    )


CASES = [_case(layout) for layout in LAYOUTS]
