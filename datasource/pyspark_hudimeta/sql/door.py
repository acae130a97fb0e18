"""`pyspark_hudimeta.sql(spark, text)`: Hudi's statements in a session of any kind, through Spark Connect too."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pyspark_hudimeta.native.jvm import Jvm
from pyspark_hudimeta.native.scan_folders import is_connect
from pyspark_hudimeta.sql.session import SqlSession
from pyspark_hudimeta.sql.statements import run_statement
from pyspark_hudimeta.table_functions import register_functions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["sql"]

_FUNCTION = re.compile(r"\bhudi_\w+\s*\(", re.IGNORECASE)
_with_functions: WeakSet[SparkSession] = WeakSet()


def sql(spark: SparkSession, text: str, args: Any = None, **frames: Any) -> DataFrame:
    """Run a statement of SQL as an attached session's `spark.sql` does, in any session: attached, classic or Connect.

    Statements about hudimeta tables run in this process, which therefore has to reach their storage; their rows are read and
    written by Spark. All others are handed to Spark as they are. Queries of a session that is not attached read through the
    Python source, with the moments, folders and meta columns that they name.

    >>> pyspark_hudimeta.sql(spark, "DELETE FROM rides WHERE fare < :least", {"least": 0}).show()    # doctest: +SKIP

    Args:
        spark: The session.
        text: The statement.
        args: Values of its parameters, as of `spark.sql`.
        frames: DataFrames that it names between braces, as of `spark.sql`.

    Raises:
        HudiError, AnalysisException: The statement cannot be run; the table is as it was.
    """
    if hasattr(spark, "is_attached"):
        return spark.sql(text, args, **frames)
    if isinstance(text, str) and _FUNCTION.search(text) and spark not in _with_functions:
        register_functions(spark)
        _with_functions.add(spark)
    jvm = None if is_connect(spark) else Jvm(spark)
    done = run_statement(SqlSession(spark, jvm, spark.sql, partial(sql, spark), None, {}), text, args, frames)
    return done if done is not None else spark.sql(text, args, **frames)
