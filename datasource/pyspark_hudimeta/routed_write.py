"""Writing a DataFrame by Spark's executors: from a verb and a DataFrame to a `CommitReport`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hudimeta.config import OPTIONS
from hudimeta.config.options import INSERT_DROP_DUPLICATES
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.types import META_COLUMNS, Operation
from hudimeta.write.routed.driver import write_routed
from hudimeta.write.session import WriteSession
from pyspark_hudimeta.arrow_types import written_schema
from pyspark_hudimeta.routed_executors import SparkExecutors
from pyspark_hudimeta.spark_engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hudimeta.write.report import CommitReport

__all__ = ["write_frame"]


def write_frame(
    spark: SparkSession, location: str, given: Mapping[str, Any], operation: Operation, rows: DataFrame
) -> CommitReport:
    """Write a DataFrame to a table that is there.

    Args:
        spark: The session of the DataFrame. location: The table's absolute path or URI. given: Options of the write.
        operation: One of `hudimeta.write.routed.driver.ROUTED`. rows: Data; its `_hoodie_*` columns are ignored.

    Raises:
        HudiError: The write was not published.
    """
    from hudimeta.services.after_write import tend

    options = OPTIONS.read(given)
    if operation is Operation.UPSERT and options.get(INSERT_DROP_DUPLICATES):
        operation = Operation.INSERT
    schema = written_schema(type(rows.schema)([column for column in rows.schema if column.name not in META_COLUMNS]))
    session = WriteSession(CountingStorage(open_storage(location, options.given)), options, engine=SparkEngine(spark))
    return tend(session, write_routed(session, operation, SparkExecutors(spark, rows, schema), schema))
