"""Statements of SQL about hudimeta tables; the package itself is called to run one: `pyspark_hudimeta.sql(spark, text)`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "altering",  # ALTER TABLE of columns
    "definition",  # CREATE and DROP TABLE
    "described",  # what SHOW CREATE TABLE and its kin say, and columns as statements declare them
    "door",  # `pyspark_hudimeta.sql`, for sessions of any kind
    "insertion",  # INSERT
    "merge_into",  # MERGE of a DataFrame
    "session",  # the session, its catalog, its own `sql`
    "statements",  # what runs here, and what in Spark
]


class _Called(ModuleType):
    """The function has the name of its package, and importing any module of that puts the package in the function's place."""

    def __call__(self, spark: SparkSession, text: str, args: Any = None, **frames: Any) -> DataFrame:
        from pyspark_hudimeta.sql.door import sql

        return sql(spark, text, args, **frames)


sys.modules[__name__].__class__ = _Called
