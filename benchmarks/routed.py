"""Writes through Spark: those of the engine, by its executors on two cores, and through the plain door beside them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import lineitem, rivals, written
from benchmarks.case import Side
from benchmarks.job import Job

__all__ = ["bulk_inserts", "clusterings", "compactions", "handed_over", "saved", "small_commits", "small_saves", "upserts"]

Options = Mapping[str, str]
Frames = Callable[[Any, Path], Any]
"""The rows of a Parquet file as a DataFrame: session, file."""
Write = Callable[[Any, Path, str], None]
"""Writes a DataFrame to a table: rows, table, operation."""


def as_stored(spark: Any, source: Path) -> Any:
    """The rows as they stand in the file."""
    return spark.read.parquet(str(source))


def by_query(query: str) -> Frames:
    """Rows that Spark computes: those of a statement that finds the stored ones under the name `stored`."""

    def frame(spark: Any, source: Path) -> Any:
        return spark.sql(query, stored=as_stored(spark, source))

    return frame


def by_tasks(rows: Any, path: Path, operation: str) -> None:
    """A routed write."""
    from pyspark_hudimeta import HudiTable

    getattr(HudiTable(rows.sparkSession, str(path)), operation)(rows)


def saved(rows: Any, path: Path, operation: str) -> None:
    """The plain door's: `write.format("hudimeta")` in a session that was not attached."""
    writer = rows.write.format("hudimeta").mode("append")
    writer.option("hoodie.datasource.write.operation", operation).save(str(path))


def bulk_inserts(indexes: list[str], cores: int = 2, write: Write = by_tasks, frame: Frames = as_stored) -> Side:
    """A new table of lineitem's rows each time, from the tasks that read them, as Apache Hudi does it; `cores` at a time."""

    def run(job: Job) -> None:
        import hudimeta

        source = lineitem.rows_file(job.settings)
        schema = pq.read_schema(source).remove_metadata()
        with rivals.spark_session(job, cores) as spark:
            for _ in range(job.rounds):
                with job.folder() as folder:
                    path = folder / "t"
                    hudimeta.Table.create(path, schema, "key", ["ship_year"], ["l_linenumber"], indexes=indexes)
                    with job.timed(descendants=True):
                        write(frame(spark, source), path, "bulk_insert")
                    report = hudimeta.Table(path).report()
                    _note(job, report)
                    job.note("rows", report.inserted)

    return run


def handed_over(frame: Frames = as_stored) -> Side:
    """Lineitem's rows on the way that `bulk_inserts` sends them, into tasks that do nothing with them."""

    def dropped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([sum(batch.num_rows for batch in batches)])], names=["rows"])

    def run(job: Job) -> None:
        source = lineitem.rows_file(job.settings)
        with rivals.spark_session(job) as spark:
            for _ in range(job.rounds):
                with job.timed(descendants=True):
                    found = frame(spark, source).mapInArrow(dropped, "rows bigint").collect()
                job.note("rows", sum(row.rows for row in found))

    return run


def upserts(
    path_of: Callable[[Job, Path], Path],
    batches: Callable[[Job], Sequence[Path]],
    cores: int = 2,
    write: Write = by_tasks,
    frame: Frames = as_stored,
) -> Side:
    """A table updated with one file of rows after the other.

    Args:
        path_of: Puts the table into a folder.
        batches: Files with rows.
        cores: Tasks at a time.
        write: By which door.
        frame: Makes the rows of a file.
    """

    def run(job: Job) -> None:
        import hudimeta

        with rivals.spark_session(job, cores) as spark, job.folder() as folder:
            path = path_of(job, folder)
            for file in batches(job):
                with job.timed(descendants=True):
                    write(frame(spark, file), path, "upsert")
                report = hudimeta.Table(path).report()
                job.note("updated", report.updated)
                _note(job, report)

    return run


def compactions(source_of: Callable[[Job], Path]) -> Side:
    """Compaction of a copy of a table, once a round."""

    def run(job: Job) -> None:
        from pyspark_hudimeta import HudiTable

        source = source_of(job)
        with rivals.spark_session(job) as spark:
            for _ in range(job.rounds):
                with job.folder() as folder:
                    path = written.copied(source, folder)
                    with job.timed(descendants=True):
                        reports = HudiTable(spark, str(path)).compact()
                    job.note("files", sum(report.files_written for report in reports))

    return run


def clusterings(source_of: Callable[[Job], Path], options: Options) -> Side:
    """Clustering of a copy of a table, once a round."""

    def run(job: Job) -> None:
        from pyspark_hudimeta import HudiTable

        source = source_of(job)
        with rivals.spark_session(job) as spark:
            for _ in range(job.rounds):
                with job.folder() as folder:
                    table: Any = HudiTable(spark, str(written.copied(source, folder)), options)
                    with job.timed(descendants=True):
                        (report,) = table.cluster()
                    job.note("files", report.files_after)

    return run


def small_commits(make: Callable[[Path], object], batches: Callable[[Job], Sequence[pa.Table]], options: Options) -> Side:
    """Many small upserts, each of a DataFrame that Spark reads from a file, by `HudiTable`.

    Args:
        make: Writes the table to a path.
        batches: Rows of each commit.
        options: Of the writes.
    """

    def write(spark: Any, path: Path, file: Path) -> Mapping[str, float]:
        from pyspark_hudimeta import HudiTable

        seconds: Mapping[str, float] = HudiTable(spark, str(path), dict(options)).upsert(spark.read.parquet(str(file))).seconds
        return seconds

    return _small_commits(make, batches, write)


def small_saves(make: Callable[[Path], object], batches: Callable[[Job], Sequence[pa.Table]], options: Options) -> Side:
    """The same through Spark's Python data source alone: `write.format("hudimeta")` in a session that was not attached."""

    def write(spark: Any, path: Path, file: Path) -> Mapping[str, float]:
        spark.read.parquet(str(file)).write.format("hudimeta").mode("append").options(**options).save(str(path))
        return {}

    return _small_commits(make, batches, write)


def _small_commits(
    make: Callable[[Path], object],
    batches: Callable[[Job], Sequence[pa.Table]],
    write: Callable[[Any, Path, Path], Mapping[str, float]],
) -> Side:
    def run(job: Job) -> None:
        took: dict[str, list[float]] = {}
        with rivals.spark_session(job) as spark, job.folder() as folder:
            make(folder / "t")
            for number, batch in enumerate(batches(job)):
                file = folder / f"rows-{number}.parquet"
                pq.write_table(batch, file)
                with job.timed(descendants=True):
                    seconds = write(spark, folder / "t", file)
                for step, spent in seconds.items():
                    took.setdefault(step, []).append(spent)
        for step, spents in took.items():
            job.note(f"{step} s", round(statistics.median(spents), 3))

    return run


def _note(job: Job, report: Any) -> None:
    """The files of a write, and the seconds of each step."""
    job.note("files", report.files_written)
    for step, seconds in report.seconds.items():
        job.note(f"{step} s", round(seconds, 2))
