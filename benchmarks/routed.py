"""Routed writes: the same writes as those of the engine, by Spark's executors on two cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import lineitem, rivals
from benchmarks.case import Side
from benchmarks.job import Job

__all__ = ["bulk_inserts", "upserts"]


def bulk_inserts(indexes: list[str]) -> Side:
    """A new table of lineitem's rows each time, in files of a year each, as the engine makes them."""

    def run(job: Job) -> None:
        import pyarrow.parquet as pq
        from pyspark_hudimeta import HudiTable

        import hudimeta

        source = lineitem.rows_file(job.settings)
        schema = pq.read_schema(source).remove_metadata()
        with rivals.spark_session(job) as spark:
            for _ in range(job.rounds):
                with job.folder() as folder:
                    path = str(folder / "t")
                    hudimeta.Table.create(path, schema, "key", ["ship_year"], ["l_linenumber"], indexes=indexes)
                    with job.timed(tree=True):
                        rows = spark.read.parquet(str(source)).repartition("ship_year")
                        report = HudiTable(spark, path).bulk_insert(rows)
                    _note(job, report)
                    job.note("rows", report.inserted)

    return run


def upserts(path_of: Callable[[Job, Path], Path], batches: Callable[[Job], Sequence[Path]]) -> Side:
    """A table updated with one file of rows after the other.

    Args:
        path_of: Puts the table into a folder. batches: Files with rows.
    """

    def run(job: Job) -> None:
        from pyspark_hudimeta import HudiTable

        with rivals.spark_session(job) as spark, job.folder() as folder:
            path = path_of(job, folder)
            for file in batches(job):
                with job.timed(tree=True):
                    report = HudiTable(spark, str(path)).upsert(spark.read.parquet(str(file)))
                job.note("updated", report.updated)
                job.note("files", report.files_written)
                _note(job, report)

    return run


def _note(job: Job, report: Any) -> None:
    """The seconds of each step of the last write."""
    for step, seconds in report.seconds.items():
        job.note(f"{step} s", round(seconds, 2))
