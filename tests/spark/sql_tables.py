"""Tables of SQL under names of a test's own."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hudimeta
from tests.elsewhere import REMOTE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


NUMBER = count()
Name = Callable[[], str]
TRIPS = "(id int, month string, fare double, ts bigint) using hudimeta partitioned by (month)"


SCAN = "BatchScan hudimeta" if REMOTE else "FileScan parquet"
"""How plans show that a table of ours is read."""


def is_said(says: str, error: BaseException) -> bool:
    """Whether an error says something; through Connect values that do not fit are refused in other words, by Spark or by us."""
    pattern = f"{says}|INVALID_COLUMN_OR_FIELD_DATA_TYPE|HUDIMETA_[A-Z]+: " if REMOTE else says
    return re.search(pattern, str(error), re.DOTALL) is not None


def rows(spark: SparkSession, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
    """All rows of a table, in the order of their texts."""
    return sorted(map(tuple, spark.sql(f"select {columns} from {table}").collect()), key=repr)


def table_of(spark: SparkSession, name: str) -> hudimeta.Table:
    """Of a table without LOCATION."""
    warehouse = spark.conf.get("spark.sql.warehouse.dir")
    assert warehouse is not None
    return hudimeta.Table(Path(warehouse.removeprefix("file:")) / name)


def drop_views(spark: SparkSession) -> None:
    """Drop what temporary views of earlier moments read."""
    for view in spark.catalog.listTables():
        if view.name.startswith("_hudimeta_read"):
            spark.catalog.dropTempView(view.name)
