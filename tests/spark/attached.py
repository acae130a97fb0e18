"""What tests of the attached door ask of plans and scans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark_hudimeta
from pyspark_hudimeta.native.report import AttachedScan

import hudimeta
from tests.spark.tables import create, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PYTHON_SCAN = "BatchScan"
NATIVE_SCAN = "FileScan parquet"


def plan(frame: DataFrame) -> str:
    """The physical plan, as `explain` prints it."""
    return str(frame._jdf.queryExecution().executedPlan().toString())


def reports_of(spark: SparkSession, query: Callable[[], object]) -> list[AttachedScan]:
    """The reports of the scans of one query."""
    before = pyspark_hudimeta.last_reports(spark)
    query()
    after = pyspark_hudimeta.last_reports(spark)
    known = set(map(id, before))
    return [report for report in after if id(report) not in known]


def shown(frame: DataFrame) -> list[str]:
    """All rows, in an order that does not matter."""
    return sorted(repr(tuple(row)) for row in frame.collect())


def mor(path: Path) -> hudimeta.Table:
    """Ids 0 to 39 in five partitions, of which 5 and 6 were updated and 7 was deleted, in log files."""
    table = create(path, rows(range(40)), type="MERGE_ON_READ")
    table.upsert(rows([5, 6], ts=2, x=-1.0))
    table.delete(rows([7], ts=3))
    return table


def files_read(frame: DataFrame) -> int:
    """Spark's own count of the files of all scans of a query."""
    frame = frame.select("*")  # Spark counts when it first runs a plan
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    leaves = plan.collectLeaves() if "Adaptive" not in plan.getClass().getSimpleName() else plan.executedPlan().collectLeaves()
    return sum(int(leaves.apply(n).metrics().apply("numFiles").value()) for n in range(leaves.size()))


def staging(spark: SparkSession) -> str:
    """Where the session keeps its files."""
    from pyspark_hudimeta.attached.attachment import _attachments

    return _attachments[spark]._staging.storage().root
