"""Reading one table in every way: through the engine, through Spark's two doors, as plain Parquet, by Apache Hudi."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import lineitem, ours, rivals, written
from benchmarks.case import ATTACHED, FLOOR, OURS, OWN_TABLES, PLAIN, SPARK, Settings, Side, apache_of, versions_of_apache
from benchmarks.job import Absent, Job
from benchmarks.written import Written

Made = Callable[[Settings], Path]


@dataclass(frozen=True)
class Query:
    """What is read: rows that meet `where` (lineitem's narrow condition when True), and `columns`, None for all.

    Attributes:
        count: Only the number of rows is asked for.
    """

    narrow: bool = False
    columns: tuple[str, ...] | None = None
    count: bool = False

    def where(self, settings: Settings) -> str | None:
        """As SQL."""
        return lineitem.narrow(settings) if self.narrow else None


FULL, COLUMN = Query(), Query(columns=("l_extendedprice",))
NARROW, COUNT = Query(narrow=True), Query(count=True)


def sides(table: Made, query: Query, parquet: bool, own: Written | None = None) -> dict[str, Side]:
    """Everyone who reads the table.

    Args:
        table: Ours.
        query: What is read.
        parquet: Its base files alone hold the rows.
        own: A table of the same rows that each version of Apache Hudi writes and reads; None for none.
    """
    plain = {SPARK: _in_spark(table, query, _read_parquet)} if parquet else {}
    if parquet and query == FULL:
        plain |= {FLOOR: _ready_batches(table)}
    return {
        OURS: _engine(table, query),
        PLAIN: _in_spark(table, query, _read_plain),
        ATTACHED: _in_spark(table, query, _read_attached),
        **plain,
        **versions_of_apache(_apache(lambda job: table(job.settings), query)),
        **(versions_of_apache(_apache(partial(_by_hudi, own), query), OWN_TABLES) if own is not None else {}),
    }


def _engine(table: Made, query: Query) -> Side:
    def run(job: Job) -> None:
        path, where, count = table(job.settings), query.where(job.settings), 0
        columns = list(query.columns) if query.columns else None
        for _ in range(job.rounds):
            with job.timed():
                count = ours.count(path, where) if query.count else ours.scan(path, where, columns)
        job.fact("rows", count) if query.count else job.note("rows", count)

    return run


def _read_plain(spark: Any, path: Path, query: Query, where: str | None) -> Any:
    """Our source in Spark, with nothing but options."""
    reader = spark.read.format("hudimeta")
    if where:
        reader = reader.option("hudimeta.filter", where)
    # Spark tells a Python source nothing of the columns that a query needs, not even that a count needs none.
    columns = (lineitem.KEY,) if query.count else query.columns
    if columns:
        reader = reader.option("hudimeta.columns", ", ".join(columns))
    return reader.load(str(path))


def _read_attached(spark: Any, path: Path, query: Query, where: str | None) -> Any:
    """The same format in a session that was attached: Spark's own words for filters and columns."""
    import pyspark_hudimeta

    if not hasattr(pyspark_hudimeta, "attach"):
        raise Absent("pyspark_hudimeta.attach is not there")
    pyspark_hudimeta.attach(spark)
    return _narrowed(spark.read.format("hudimeta").load(str(path)), query, where)


def _read_parquet(spark: Any, path: Path, query: Query, where: str | None) -> Any:
    """Spark's vectorised scan of the same files, given by name."""
    files = sorted(str(f) for f in path.rglob("*.parquet") if ".hoodie" not in f.parts)
    return _narrowed(spark.read.parquet(*files), query, where)


def _narrowed(frame: Any, query: Query, where: str | None) -> Any:
    frame = frame.where(where) if where else frame
    return frame.select(*query.columns) if query.columns else frame


def _in_spark(table: Made, query: Query, read: Callable[..., Any]) -> Side:
    def run(job: Job) -> None:
        path, where = table(job.settings), query.where(job.settings)
        with rivals.spark_session(job) as spark:
            for _ in range(job.rounds):
                with job.timed(descendants=True):
                    frame = read(spark, path, query, where)
                    if query.count:
                        job.fact("rows", frame.count())
                    else:
                        frame.write.format("noop").mode("overwrite").save()

    return run


def _ready_batches(table: Made) -> Side:
    def run(job: Job) -> None:
        from benchmarks.floor import register, write_batches

        with job.folder() as folder, rivals.spark_session(job) as spark:
            write_batches(ours.open_table(table(job.settings)).scan().to_table(), folder)
            register(spark)
            for _ in range(job.rounds):
                with job.timed(descendants=True):
                    spark.read.format("ready_batches").load(str(folder)).write.format("noop").mode("overwrite").save()

    return run


def _by_hudi(table: Written, job: Job) -> Path:
    """The table, written in a process of its own: the one that reads is cold, and its memory is that of reading."""
    writer = Job(job.settings, 1, job.side)
    if not table.folder(job.settings, apache_of(job.side)).is_dir():
        with rivals.apache_hudi(writer) as process:
            written.by_hudi(writer, process, table)
    return table.folder(job.settings, apache_of(job.side))


def _apache(table: Callable[[Job], Path], query: Query) -> Side:
    def run(job: Job) -> None:
        asked: dict[str, Any] = {"path": str(table(job)), "options": rivals.READ_OPTIONS, "repeat": job.rounds}
        asked |= {"where": query.where(job.settings), "columns": list(query.columns) if query.columns else None}
        with rivals.apache_hudi(job) as process:
            answer = process.call("read", timeout=1200, count=query.count, **asked)
        job.add(answer["timings"])
        if query.count:
            job.fact("rows", answer["rows"])

    return run
