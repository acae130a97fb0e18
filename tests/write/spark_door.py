"""The third door of writes: what `HudiTable`'s verbs do with DataFrames, done by Spark's own executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import Options
from hudimeta.config.options import ROUTED_NEARBY_BYTES
from hudimeta.storage import Storage
from hudimeta.types import META_COLUMNS, Operation
from hudimeta.write.carried_keys import CARRYING_COLUMNS
from hudimeta.write.merge_builder import MergeBuilder
from hudimeta.write.routed.driver import write_routed
from hudimeta.write.routed.sources import GivenRows
from hudimeta.write.rows_in import as_stream, as_table
from tests.concurrency.side_by_side import interruptible
from tests.write.doors import through

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark_hudimeta import HudiTable

__all__ = ["by_spark", "frame_of"]


def by_spark(monkeypatch: pytest.MonkeyPatch, test: ModuleType, spark: SparkSession) -> None:
    """From now on `HudiTable` does what the verbs of all tables are asked to do; `write_rows` is routed in the test as well."""
    through(monkeypatch, test, _verbs(spark), _writer(spark))


def _verbs(spark: SparkSession) -> Mapping[str, Callable[..., Any]]:
    """The functions of `hudimeta.api.verbs` that bring or change rows, by a session."""

    def write(storage: Storage, options: Options, operation: Operation, data: Any) -> CommitReport:
        verb: Callable[[DataFrame], CommitReport] = getattr(_table(spark, storage, options), operation.value.lower())
        return verb(frame_of(spark, data))

    def delete_where(storage: Storage, options: Options, where: Any) -> CommitReport:
        return _table(spark, storage, options).delete(where)

    def update(storage: Storage, options: Options, assignments: Mapping[str, Any], where: Any) -> CommitReport:
        return _table(spark, storage, options).update(assignments, where)

    def merge(storage: Storage, options: Options, source: Any, on: Any, aliases: tuple[str, str]) -> MergeBuilder:
        table, (target, other) = _table(spark, storage, options), aliases
        return table.merge(frame_of(spark, source), on, target_alias=target, source_alias=other)

    return {"write": write, "delete_where": delete_where, "update": update, "merge": merge}


def _table(spark: SparkSession, storage: Storage, options: Options) -> HudiTable:
    from pyspark_hudimeta import HudiTable

    return HudiTable(spark, storage.root, {ROUTED_NEARBY_BYTES.key: "0", **options.given})


def frame_of(spark: SparkSession, data: Any) -> DataFrame:
    """Rows of any kind as a DataFrame; Spark hands several partitions of them to its tasks."""
    from pyspark_hudimeta.arrow_types import spark_schema

    stream = as_stream(data)
    rows = as_table(data) if stream is None else stream.read_all()
    dropped = set(META_COLUMNS) - set(CARRYING_COLUMNS)
    rows = rows.drop_columns([name for name in rows.column_names if name in dropped])
    if not rows.num_rows:  # of which a Connect session finds out no columns by itself
        return spark.createDataFrame([], spark_schema(rows.schema))
    return spark.createDataFrame(rows)


def _writer(spark: SparkSession) -> Callable[[WriteSession, Operation, pa.Table], CommitReport]:
    """`write_rows` by a session; unlike a `HudiTable` it leaves the services to the test."""
    from pyspark_hudimeta.routed.executors import SparkExecutors
    from pyspark_hudimeta.routed.write import data_schema

    def write_rows(session: WriteSession, operation: Operation, rows: pa.Table) -> CommitReport:
        frame = frame_of(spark, rows)
        schema = data_schema(frame)
        return write_routed(session, GivenRows(operation, schema), interruptible(session, SparkExecutors(spark, frame, schema)))

    return write_rows
