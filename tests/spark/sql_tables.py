"""Tables of SQL under names of a test's own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hudimeta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


NUMBER = count()
Name = Callable[[], str]
TRIPS = "(id int, month string, fare double, ts bigint) using hudimeta partitioned by (month)"


def rows(spark: SparkSession, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
    """All rows of a table, in the order of their texts."""
    return sorted(map(tuple, spark.sql(f"select {columns} from {table}").collect()), key=repr)


def table_of(spark: SparkSession, name: str) -> hudimeta.Table:
    """Of a table without LOCATION."""
    warehouse = spark.conf.get("spark.sql.warehouse.dir")
    assert warehouse is not None
    return hudimeta.Table(Path(warehouse.removeprefix("file:")) / name)
