"""P12: compaction of a merge-on-read table of 1.5 million rows of which a tenth was updated: every slice has a log."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import ours, rivals, routed, written
from benchmarks.case import GZIP, OURS, ROUTED, Case, Settings, Side, faster_than_apache, versions_of_apache
from benchmarks.job import Job
from benchmarks.written import MOR, Written

TABLE = Written(MOR, updated=0.1)
AT_ONCE = {"hoodie.compact.inline.max.delta.commits": "1"}


def prepare(settings: Settings) -> None:
    """Make our table, and the batch with which Apache Hudi updates its own."""
    written.by_us(settings, TABLE)


def hudimeta(job: Job) -> None:
    """`Table.compact` of a copy, once a round."""
    source = written.by_us(job.settings, TABLE)
    for _ in range(job.rounds):
        with job.folder() as folder:
            path = written.copied(source, folder)
            with job.timed():
                reports = ours.open_table(path).compact()
            job.note("files", sum(report.files_written for report in reports))


def apache_hudi(table: Written) -> Side:
    """Schedule and run, with the options of the table's indexes: a run without them drops the indexes."""

    def run(job: Job) -> None:
        with rivals.apache_hudi(job) as process:
            source = written.by_hudi(job, process, table)
            options = {**written.hudi_options(table, "upsert"), **AT_ONCE}
            for _ in range(job.rounds):
                with job.folder() as folder:
                    path = written.copied(source, folder)
                    done = process.call("service", timeout=1200, path=str(path), name="compact", options=options)
                    if done["instant"] is None:
                        raise RuntimeError("there was nothing to compact")
                    job.add(done["timings"])

    return run


CASES = [
    Case(
        "P12",
        "compaction, 10 % of 1.5M rows in logs",
        {
            OURS: hudimeta,
            ROUTED: routed.compactions(lambda job: written.by_us(job.settings, TABLE)),
            **versions_of_apache(apache_hudi(TABLE)),
            GZIP: apache_hudi(replace(TABLE, codec="gzip")),
        },
        (*faster_than_apache(4), *faster_than_apache(4, side=ROUTED)),
        rounds=3,
        prepare=prepare,
    )
]
