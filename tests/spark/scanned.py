"""The same rows of Parquet files written twice: read by the tasks where they may, and brought by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_hudimeta import HudiTable
from pyspark_hudimeta.arrow_types import written_schema

import hudimeta
from hudimeta.config.options import ROUTED_READ_FILES

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from hudimeta.commit.report import CommitReport

THROUGH_SPARK = {ROUTED_READ_FILES.key: "false"}


def written(frame: DataFrame, path: Path, **options: str) -> str:
    """The path of a folder of Parquet files with some rows, the times in microseconds."""
    session = frame.sparkSession
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    try:
        frame.write.options(**options).parquet(str(path))
    finally:
        session.conf.unset("spark.sql.parquet.outputTimestampType")
    return str(path)


def some(spark: SparkSession, first: int, last: int, ts: int, parts: int = 3) -> DataFrame:
    """Rows of some ids."""
    return spark.range(first, last, 1, parts).selectExpr("id", "concat('p', id % 5) part", f"{ts}L ts", f"id * {ts}.0D x")


def way(report: CommitReport) -> str:
    """How the rows came, as the note tells; empty where it does not."""
    (note,) = (note for note in report.notes if "summaries collected" in note)
    return (
        note.partition("summaries collected")[2].removeprefix("; the driver did the rest, which was little").removeprefix("; ")
    )


def stored(path: Path) -> list[dict[str, Any]]:
    """All rows, each with the task that wrote it and its place there, in order."""
    found = hudimeta.Table(path).scan().to_table().to_pylist()
    for row in found:
        row["_hoodie_commit_seqno"] = row["_hoodie_commit_seqno"].partition("_")[2]
        row["_hoodie_file_name"] = None
        row["_hoodie_commit_time"] = None
    return sorted(found, key=lambda row: (row["id"], row["_hoodie_commit_seqno"]))


def loaded(spark: SparkSession, frame: DataFrame, folder: Path) -> str:
    """Load rows into two tables, one of them through Spark; the tables are the same. How the rows of the other came."""
    schema = written_schema(frame.schema)
    ways = []
    for name, options in (("direct", {}), ("through", THROUGH_SPARK)):
        hudimeta.Table.create(folder / name, schema, key="id")
        ways.append(way(HudiTable(spark, folder / name, options).bulk_insert(frame)))
    assert stored(folder / "direct") == stored(folder / "through")
    assert len(stored(folder / "direct")) == frame.count()
    assert not ways[1]
    return ways[0]
