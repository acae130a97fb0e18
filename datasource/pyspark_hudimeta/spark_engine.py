"""Tasks on Spark's executors: the engine that services and scans run on, and the jobs of routed writes.

`run_job` is the one place that starts a job of ours. Tasks and their items travel as cloudpickle bytes, in the function of a
`mapInArrow` or where they are many in the rows of a DataFrame, and results come back in rows, so it works in classic sessions
and through Connect. A task of `SparkEngine.map` that Spark runs twice must do the same twice: those of services do, since they
write files under names that their plan fixed. Tasks of routed writes know which attempt they are (`routed/executors.py`).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from hudimeta.engine import LocalEngine
from hudimeta.errors import CommitError
from pyspark_hudimeta.plain.worker_heap import settle
from pyspark_hudimeta.spark_version import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkEngine", "SparkTask", "JobResult", "packed", "parallelism", "result_batch", "run_job"]

T = TypeVar("T")
R = TypeVar("R")

_FALLBACK_PARALLELISM = 8
ITEMS_A_TASK = 64
"""Most items of one Spark task: how many may have to be done again when it fails."""
WAVES = 3
"""Tasks for each place that runs them: enough to level what is unequal, and each costs its 50 to 100 ms of CPU."""
_SHIPPED_BYTES = 1 << 20
"""Up to here items travel with the task, which every one of its copies carries; beyond, as rows of a DataFrame."""

_PARCELS = "parcel bigint, items binary"
_RESULTS = "number bigint, failed boolean, result binary"

SparkTask = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What one task of Spark's does with its share of the rows: gives batches that `result_batch` made."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """What came of one item or one share of the rows.

    Attributes:
        number: Of the item or share.
        failed: `packed` is the error that it ended in.
        packed: As bytes.
    """

    number: int
    failed: bool
    packed: bytes

    def unpacked(self) -> Any:
        """The result, or the error."""
        return pickle.loads(self.packed)


def run_job(rows: DataFrame, task: SparkTask) -> list[JobResult]:
    """Run a task on the shares of a DataFrame, as one job, so that Spark computes the rows once; in no particular order."""
    return [JobResult(row.number, row.failed, row.result) for row in rows.mapInArrow(task, _RESULTS).collect()]


def result_batch(number: int, failed: bool, result: bytes) -> pa.RecordBatch:
    """One result on its way to the driver; see `JobResult`."""
    columns = [pa.array([number], pa.int64()), pa.array([failed]), pa.array([result], pa.binary())]
    return pa.record_batch(columns, names=["number", "failed", "result"])


def packed(value: Any) -> bytes:
    """A task or an item as bytes; functions and classes of notebooks travel with it."""
    from pyspark import cloudpickle

    as_bytes: bytes = cloudpickle.dumps(value)
    return as_bytes


class SparkEngine:
    """Runs tasks as Spark tasks; a single one runs here.

    Args:
        spark: The session, classic or Connect.
    """

    worth_bytes = 8 << 20
    """Files of fewer bytes are rewritten while a job is still being planned and its tasks begin; see `nearby_if_small`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __reduce__(self) -> tuple[type[LocalEngine], tuple[int]]:
        """On an executor there is no session: what a task itself hands to the engine runs in the task."""
        return LocalEngine, (1,)

    def map(self, task: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """See `Engine.map`.

        Raises:
            CommitError: A task cannot travel. Whatever a task raised, by the order of the items.
        """
        work = list(items)
        if len(work) < 2:
            return LocalEngine(1).map(task, work)
        count = min(len(work), max(parallelism(self._spark) * WAVES, -(-len(work) // ITEMS_A_TASK)))
        # Dealt like cards: neighbours are often alike, all large or all small.
        parcels = [packed(work[number::count]) for number in range(count)]
        found = {result.number: result for result in self._sent(packed(task), parcels)}
        results: list[R] = []
        for number in range(len(work)):
            value = found[number].unpacked()
            if found[number].failed:
                raise value
            results.append(value)
        return results

    def _sent(self, task: bytes, parcels: Sequence[bytes]) -> list[JobResult]:
        """The results of a task on every item of the parcels, each parcel a task of Spark's."""
        count = len(parcels)
        if sum(len(parcel) for parcel in parcels) <= _SHIPPED_BYTES:
            numbers = self._spark.range(0, count, 1, count)
            return run_job(numbers, _in_worker(task, count, parcels))
        rows = self._spark.createDataFrame([(n, bytearray(parcel)) for n, parcel in enumerate(parcels)], _PARCELS)
        return run_job(rows.repartition(count, "parcel"), _in_worker(task, count))


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at a time, about."""
    if is_connect(spark):
        return int(spark.conf.get("spark.default.parallelism", str(_FALLBACK_PARALLELISM)) or _FALLBACK_PARALLELISM)
    own = int(spark.sparkContext.defaultParallelism)
    # An application that grows with its work begins with few executors.
    grows = spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true"
    return max(own, _FALLBACK_PARALLELISM) if grows else own


def _in_worker(task: bytes, count: int, parcels: Sequence[bytes] | None = None) -> SparkTask:
    """What a Spark task does with its parcels: run each item, and return each result or error by the item's number.

    Args:
        task: As bytes.
        count: Of all parcels.
        parcels: All of them; None where each stands in its own row.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work: Any = pickle.loads(task)
        for batch in batches:
            for place, first in enumerate(batch.column(0).to_pylist()):
                held = batch.column(1)[place].as_py() if parcels is None else parcels[first]
                for offset, item in enumerate(pickle.loads(held)):
                    failed, result = _outcome(work, item)
                    yield result_batch(first + offset * count, failed, result)
        settle()

    return run


def _outcome(task: Callable[[Any], Any], item: Any) -> tuple[bool, bytes]:
    """Whether a task failed, and its result or error as bytes."""
    try:
        return False, packed(task(item))
    except Exception as error:
        try:
            return True, pickle.dumps(_checked(error))
        except Exception:
            hint = "The task failed on an executor; its log tells more."
            return True, pickle.dumps(CommitError(f"{type(error).__name__}: {error}", hint))


def _checked(error: Exception) -> Exception:
    """The error, when it survives the journey: many exceptions cannot be made again from what they keep."""
    pickle.loads(pickle.dumps(error))
    return error
