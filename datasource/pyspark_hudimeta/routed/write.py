"""Writing a DataFrame by Spark's executors: from a verb and a DataFrame to a `CommitReport`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from hudimeta.api.plain_write import operation_of, without_deleting_payload
from hudimeta.api.verbs import run_write
from hudimeta.commit.session import WriteSession
from hudimeta.config import Options
from hudimeta.config.options import SESSION_TIMEZONE
from hudimeta.keys import KeyGenerator
from hudimeta.observability import metered
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.types import META_COLUMNS, Operation
from hudimeta.write.carried_keys import CARRYING_COLUMNS, carries_keys
from hudimeta.write.duplicates import of_a_frame
from hudimeta.write.first_schema import with_first_schema
from hudimeta.write.opening import open_or_create
from hudimeta.write.routed.driver import ROUTED, write_routed
from hudimeta.write.routed.sources import ComputedRows, FoundRows, GivenRows, RowSource
from hudimeta.write.row_changes import RowChange
from pyspark_hudimeta.arrow_types import written_schema
from pyspark_hudimeta.routed.executors import SparkExecutors
from pyspark_hudimeta.routed.stream_batch import of_its_batch
from pyspark_hudimeta.spark_engine import SparkEngine

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from hudimeta.commit.report import CommitReport
    from hudimeta.predicate import Where

__all__ = ["change_frame", "compute_frame", "data_schema", "run_routed", "save_frame", "session_of", "write_frame"]


def write_frame(spark: SparkSession, location: str, options: Options, operation: Operation, rows: DataFrame) -> CommitReport:
    """Write a DataFrame to a table that is there.

    Args:
        spark: The session of the DataFrame.
        location: The table's absolute path or URI.
        options: Of the write.
        operation: One of `hudimeta.write.routed.driver.ROUTED`.
        rows: Data; of its `_hoodie_*` columns those count that say which rows of a table without key columns these are.

    Raises:
        HudiError: The write was not published.
    """
    options = of_its_batch(spark, location, options)
    session = session_of(spark, location, options)
    return _written(spark, session, of_a_frame(options, operation), rows)


def save_frame(
    spark: SparkSession, location: str, options: Options, rows: DataFrame, *, overwrite: bool
) -> CommitReport | None:
    """Write a DataFrame as `df.write.save` does: options say what is done, and a table that is not there is created.

    Args:
        spark: The session of the DataFrame.
        location: The table's absolute path or URI.
        options: Of the write, see `writer_options`.
        rows: Data; see `write_frame`.
        overwrite: The save mode, else it is append.

    Returns:
        What was done; None where the operation is none of those that are routed, and nothing was done.

    Raises:
        HudiError: The write was not published.
    """
    operation = operation_of(options, overwrite)
    if operation not in ROUTED:
        return None
    if operation is Operation.DELETE:
        options = without_deleting_payload(options)
    options = of_its_batch(spark, location, options)
    options = in_session_zone(spark, options)
    storage = metered(CountingStorage(open_storage(location, options.texts)), options)
    session = open_or_create(storage, options, data_schema(rows), operation)
    session.engine = SparkEngine(spark)
    return _written(spark, session, operation, rows)


def change_frame(spark: SparkSession, location: str, options: Options, change: RowChange, where: Where | None) -> CommitReport:
    """Change or delete rows of a table by a predicate; tasks read them.

    Args:
        spark: The session in which tasks run.
        location: The table's absolute path or URI.
        options: Of the write.
        change: What becomes of the rows.
        where: Which rows; all when None. Texts of times without a zone are in the session's.

    Raises:
        HudiError: The write was not published.
    """
    options = of_its_batch(spark, location, options)
    session = session_of(spark, location, options)
    rows = FoundRows(change, where, str(spark.conf.get("spark.sql.session.timeZone")))
    return run_routed(session, rows, SparkExecutors(spark, options=options))


def compute_frame(
    spark: SparkSession,
    location: str,
    options: Options,
    operation: Operation,
    compute: Callable[[str | None, pa.Schema], DataFrame],
) -> CommitReport:
    """Write changes of a table's rows that Spark computes from them.

    Args:
        spark: The session in which tasks run.
        location: The table's absolute path or URI.
        options: Of the write.
        operation: UPSERT, or DELETE for deletes alone.
        compute: Makes the changes; what it is given and which columns they have stands at
            `hudimeta.write.routed.computed.Compute`.

    Raises:
        HudiError, AnalysisException: The write was not published.
    """
    options = of_its_batch(spark, location, options)
    session = session_of(spark, location, options)
    executors = SparkExecutors(spark, options=options)

    def hold(moment: str | None, schema: pa.Schema) -> None:
        rows = compute(moment, schema)
        executors.hold(rows, written_schema(rows.schema))

    return run_routed(session, ComputedRows(operation, hold), executors)


def session_of(spark: SparkSession, location: str, options: Options) -> WriteSession:
    """A session of a write that Spark's tasks do."""
    options = in_session_zone(spark, options)
    storage = metered(CountingStorage(open_storage(location, options.texts)), options)
    return WriteSession(storage, options, engine=SparkEngine(spark))


def in_session_zone(spark: SparkSession, options: Options) -> Options:
    """Options that say in which time zone expression indexes look at moments where nothing else does: in the session's."""
    if options.is_set(SESSION_TIMEZONE):
        return options
    return options.having({SESSION_TIMEZONE.key: str(spark.conf.get("spark.sql.session.timeZone"))})


def run_routed(session: WriteSession, rows: RowSource, executors: SparkExecutors) -> CommitReport:
    """Write rows by tasks, then run the services that are due."""
    return run_write(session, partial(write_routed, source=rows, executors=executors))


def _written(spark: SparkSession, session: WriteSession, operation: Operation, rows: DataFrame) -> CommitReport:
    schema = data_schema(rows, carrying=_carries_keys(session, operation, rows.columns))
    executors = SparkExecutors(spark, rows, schema, session.options)
    run = partial(run_routed, session, GivenRows(operation, schema), executors)
    return with_first_schema(session, operation, schema, run)


def _carries_keys(session: WriteSession, operation: Operation, names: Sequence[str]) -> bool:
    return carries_keys(KeyGenerator.from_properties(session.properties), operation, names)


def data_schema(rows: DataFrame, *, carrying: bool = False) -> pa.Schema:
    """The Arrow schema of a DataFrame without meta columns.

    Args:
        rows: The DataFrame.
        carrying: Keep the meta columns that say which rows of the table these are.

    Raises:
        UnsupportedFeature: Types that a Hudi table has not.
    """
    dropped = set(META_COLUMNS) - (set(CARRYING_COLUMNS) if carrying else set())
    return written_schema(type(rows.schema)([column for column in rows.schema if column.name not in dropped]))
