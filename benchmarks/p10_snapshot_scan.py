"""P10: reading a copy-on-write table of 1.5 million rows: all of it, one column, one row in a hundred.

Rivals read the same files: Spark's own Parquet scan of them, and Apache Hudi's reader of the same table.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import lineitem, ours, rivals
from benchmarks.case import OURS, SPARK, Case, Goal, Settings, faster_than_apache, versions_of_apache
from benchmarks.job import Job


@dataclass(frozen=True)
class Query:
    """What is read: rows that meet `where` (lineitem's narrow condition when True), and `columns`, None for all."""

    narrow: bool = False
    columns: tuple[str, ...] | None = None

    def where(self, settings: Settings) -> str | None:
        """As SQL."""
        return lineitem.narrow(settings) if self.narrow else None


FULL, COLUMN, NARROW = Query(), Query(columns=("l_extendedprice",)), Query(narrow=True)


def table(settings: Settings) -> Path:
    """The table, written by hudimeta; kept between runs."""
    path = settings.data / f"{lineitem.rows_file(settings).stem}-table"
    if not path.is_dir():
        unfinished = path.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        ours.bulk_insert(unfinished, lineitem.rows(settings), ["column_stats"])
        unfinished.rename(path)
    return path


def _engine(query: Query) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        path, where, count = table(job.settings), query.where(job.settings), 0
        for _ in range(job.rounds):
            with job.timed():
                count = ours.scan(path, where, list(query.columns) if query.columns else None)
        job.note("rows", count)

    return run


def _read_plain(spark: Any, path: Path, query: Query, where: str | None) -> Any:
    """Our source in Spark, with nothing but options."""
    reader = spark.read.format("hudimeta")
    if where:
        reader = reader.option("hudimeta.filter", where)
    if query.columns:
        reader = reader.option("hudimeta.columns", ", ".join(query.columns))
    return reader.load(str(path))


def _read_parquet(spark: Any, path: Path, query: Query, where: str | None) -> Any:
    """Spark's vectorised scan of the same files, given by name."""
    files = sorted(str(f) for f in path.rglob("*.parquet") if ".hoodie" not in f.parts)
    frame = spark.read.parquet(*files)
    frame = frame.where(where) if where else frame
    return frame.select(*query.columns) if query.columns else frame


def _in_spark(query: Query, read: Callable[..., Any]) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        path, where = table(job.settings), query.where(job.settings)
        with rivals.spark_session(job) as spark:
            for _ in range(job.rounds):
                with job.timed(tree=True):
                    read(spark, path, query, where).write.format("noop").mode("overwrite").save()

    return run


def _apache(query: Query) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        asked: dict[str, Any] = {"path": str(table(job.settings)), "options": rivals.READ_OPTIONS, "repeat": job.rounds}
        asked |= {"where": query.where(job.settings), "columns": list(query.columns) if query.columns else None}
        with rivals.apache_hudi(job) as process:
            job.add(process.call("read", timeout=1200, **asked)["timings"])

    return run


def _cases(name: str, title: str, query: Query, plain_goals: tuple[Goal, ...]) -> list[Case]:
    parquet, apache = _in_spark(query, _read_parquet), _apache(query)
    return [
        Case(
            f"P10-{name}",
            f"snapshot scan, {title}, without Spark",
            {OURS: _engine(query), SPARK: parquet, **versions_of_apache(apache)},
            faster_than_apache(1),
            prepare=table,
        ),
        Case(
            f"P10-plain-{name}",
            f"snapshot scan, {title}, through Spark's plain door",
            {OURS: _in_spark(query, _read_plain), SPARK: parquet, **versions_of_apache(apache)},
            plain_goals,
            prepare=table,
        ),
    ]


CASES = [
    *_cases("full", "all rows and columns", FULL, faster_than_apache(0.8)),
    *_cases("column", "one column", COLUMN, ()),
    *_cases("narrow", "1 % of the rows", NARROW, faster_than_apache(3)),
]
