"""`pyspark_hudimeta.sql(spark, text)` and `merge_into(frame, …)`: Hudi's statements in sessions of any kind, Connect's too."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from hudimeta.errors import ConfigError
from hudimeta.sql import BETWEEN_WORDS, split
from pyspark_hudimeta.native.jvm import Jvm
from pyspark_hudimeta.spark_version import is_connect
from pyspark_hudimeta.sql.merge_into import MergeInto
from pyspark_hudimeta.sql.session import SqlSession
from pyspark_hudimeta.sql.statements import run_statement
from pyspark_hudimeta.sql.traces import without_trace
from pyspark_hudimeta.table_functions import READ_BLOB, register_functions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.merge import MergeIntoWriter

__all__ = ["merge_into", "sql"]

_FUNCTION = re.compile(rf"\b(?:hudi_\w+|{READ_BLOB}){BETWEEN_WORDS}*\(", re.IGNORECASE)
_with_functions: WeakSet[SparkSession] = WeakSet()


def sql(spark: SparkSession, text: str, args: Any = None, **frames: Any) -> DataFrame:
    """Run a statement of SQL as an attached session's `spark.sql` does, in any session: attached, classic or Connect.

    Statements about hudimeta tables run in this process, which therefore has to reach their storage; their rows are read and
    written by Spark. All others are handed to Spark as they are. Queries of a session that is not attached read through the
    Python source, with the moments, folders and meta columns that they name.

    >>> pyspark_hudimeta.sql(spark, "DELETE FROM rides WHERE fare < :least", {"least": 0}).show()    # doctest: +SKIP

    Args:
        spark: The session.
        text: The statement, or several with semicolons between them; what the last one returns is returned.
        args: Values of its parameters, as of `spark.sql`.
        frames: DataFrames that it names between braces, as of `spark.sql`.

    Raises:
        HudiError, AnalysisException: The statement cannot be run; the table is as it was.
    """
    several = list(split(text)) if isinstance(text, str) and ";" in text else []
    if len(several) > 1:
        if isinstance(args, (list, tuple)):
            raise ConfigError("args", len(args), "parameters with names, for a text of several statements")
        return [sql(spark, one, args, **frames) for one in several][-1]
    if hasattr(spark, "is_attached"):
        return spark.sql(text, args, **frames)
    if isinstance(text, str) and _FUNCTION.search(text) and spark not in _with_functions:
        register_functions(spark)
        _with_functions.add(spark)
    done = run_statement(_session(spark), text, args, frames)
    if done is not None:
        return done
    with without_trace():  # of a server that alone reaches the table of a CREATE TABLE … LOCATION
        return spark.sql(text, args, **frames)


def merge_into(frame: DataFrame, table: str, condition: Column) -> MergeInto | MergeIntoWriter:
    """Merge rows into a table of the catalog, as Spark's `frame.mergeInto(table, condition)`: in any session, Connect too.

    In an attached session it is that method, which is its own for hudimeta tables.

    >>> changes = pyspark_hudimeta.merge_into(df, "trips", df.uuid == col("trips.uuid"))    # doctest: +SKIP
    >>> changes.whenMatched().updateAll().whenNotMatched().insertAll().merge()              # doctest: +SKIP

    Args:
        frame: The rows.
        table: Its name, as Spark takes it; conditions and values call its columns by the name's last part.
        condition: What makes a row of them one of the table.

    Raises:
        ConfigError: No hudimeta table of this name, in a session that is not attached.
    """
    spark = frame.sparkSession
    if hasattr(spark, "is_attached"):
        return frame.mergeInto(table, condition)
    session = _session(spark)
    entry = session.entry_named(table)
    if entry is None:
        hint = "Other tables have frame.mergeInto of Spark's own; SHOW TABLES lists the tables of a database."
        raise ConfigError("table", table, "a table of the catalog that was made or registered USING hudimeta", hint)
    return MergeInto(session, entry, frame, condition)


def _session(spark: SparkSession) -> SqlSession:
    jvm = None if is_connect(spark) else Jvm(spark)
    return SqlSession(spark, jvm, spark.sql, partial(sql, spark), None, {})
