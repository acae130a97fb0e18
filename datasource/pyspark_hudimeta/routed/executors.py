"""Spark's executors for routed writes: the tasks of `hudimeta.write.routed` as tasks of Spark jobs.

Jobs are those of `spark_engine`; a row of the input leaves its task only into files on the table's storage. An error that says
what is wrong with the rows comes back like a result: running the task again would not change it. All others are left to Spark,
which tries the task again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext

from hudimeta.config.options import ROUTED_NEARBY_BYTES, ROUTED_READ_FILES
from hudimeta.errors import HudiError, StorageError
from hudimeta.types import META_COLUMNS
from hudimeta.write.routed.executors import RowTask
from pyspark_hudimeta.arrow_types import fitted
from pyspark_hudimeta.plain.worker_heap import settle
from pyspark_hudimeta.routed.file_parts import PartTask
from pyspark_hudimeta.routed.scanned_files import ScannedFiles, scanned_files
from pyspark_hudimeta.spark_engine import SparkTask, packed, parallelism, result_batch, run_job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hudimeta.config import Options

__all__ = ["SparkExecutors"]

T = TypeVar("T")
R = TypeVar("R")


class SparkExecutors:
    """Runs the tasks of one routed write; see `Executors`.

    Args:
        spark: The session, classic or Connect.
        rows: What is written; None for a write that brings no rows.
        schema: Of the rows without meta columns, in Arrow's types.
        options: Of the write; None does all work in tasks, on rows that come through Spark.
    """

    def __init__(
        self,
        spark: SparkSession,
        rows: DataFrame | None = None,
        schema: pa.Schema | None = None,
        options: Options | None = None,
    ) -> None:
        self._spark, self._options = spark, options
        self.hold(rows if rows is not None else spark.range(0), schema or pa.schema([]))
        self.parallelism = parallelism(spark)
        self.collected = self.tasks = self.nearby = 0
        # Work on less is done in this process: a job costs more.
        self._small = 0 if options is None else options.get(ROUTED_NEARBY_BYTES)

    def hold(self, rows: DataFrame, schema: pa.Schema) -> None:
        """From now on the input is these rows.

        Args:
            rows: Of the write.
            schema: Of the rows, in Arrow's types.
        """
        self._rows, self._schema = rows.drop(*(name for name in META_COLUMNS if name not in schema.names)), schema
        self._files: ScannedFiles | str | None = None

    @property
    def way(self) -> str:
        """See `Executors`."""
        if isinstance(self._files, ScannedFiles):
            return f"rows read from {self._files.files:,} Parquet file{'s'[: self._files.files > 1]} by the tasks"
        return f"rows of Parquet files came through Spark: {self._files}" if self._files else ""

    def over_rows(self, task: RowTask[R]) -> list[R]:
        """See `Executors`."""
        if self._files is None and self._options is not None and self._options.get(ROUTED_READ_FILES):
            self._files = scanned_files(self._spark, self._rows, self._schema, self._options.texts)
        if isinstance(self._files, ScannedFiles):
            return self.map(PartTask(self._files.reading, task), self._files.parts)
        found = self._run(self._rows, _over_rows(packed(task), self._schema))
        return [found[number] for number in sorted(found)]

    def map(self, task: Callable[[T, int], R], items: Sequence[T], size: int | None = None) -> list[R]:
        """See `Executors`."""
        if not items:
            return []
        if size is not None and size < self._small:
            return self._nearby(task, items)
        parcels = [packed(item) for item in items]
        numbers = self._spark.range(0, len(items), 1, len(items))
        found = self._run(numbers, _over_items(packed(task), parcels))
        return [found[number] for number in range(len(items))]

    def _nearby(self, task: Callable[[T, int], R], items: Sequence[T]) -> list[R]:
        """The items one after the other, here. No step of a write runs partly here and partly there, so any numbers do."""
        found = []
        for item in items:
            self.nearby += 1
            found.append(task(item, self.nearby))
        return found

    def _run(self, frame: DataFrame, run: SparkTask) -> dict[int, Any]:
        """Run one job; results by their number."""
        found: dict[int, Any] = {}
        errors: dict[int, Exception] = {}
        for result in run_job(frame, run):
            self.collected += len(result.packed)
            self.tasks += 1
            (errors if result.failed else found)[result.number] = result.unpacked()
        for number in sorted(errors):
            raise errors[number]
        return found


def _over_rows(task: bytes, schema: pa.Schema) -> SparkTask:
    """What a Spark task does with its share of the rows."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work = pickle.loads(task)
        number, attempt = _task_numbers()
        rows: Iterable[pa.RecordBatch] = (fitted(batch, schema) for batch in batches)
        yield _result(number, lambda: work(rows, number, attempt))
        settle()

    return run


def _over_items(task: bytes, parcels: Sequence[bytes]) -> SparkTask:
    """What a Spark task does with the numbers of its items."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work = pickle.loads(task)
        _, attempt = _task_numbers()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _result(number, lambda n=number: work(pickle.loads(parcels[n]), attempt))  # type: ignore[misc]
        settle()

    return run


def _task_numbers() -> tuple[int, int]:
    """The number of the task, and one that no other attempt at any task of the application has."""
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("rows are written by Spark's tasks only")
    return context.partitionId(), context.taskAttemptId()


def _result(number: int, work: Callable[[], Any]) -> pa.RecordBatch:
    try:
        failed, result = False, packed(work())
    except StorageError:
        raise
    except HudiError as error:
        failed, result = True, pickle.dumps(error)
    return result_batch(number, failed, result)
