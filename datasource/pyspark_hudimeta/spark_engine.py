"""Tasks on Spark's executors: the engine that services run on when they are given a session.

Tasks and their items travel as cloudpickle bytes in the rows of a DataFrame and come back the same way, so the engine works in
classic sessions and through Connect. A task that Spark runs twice must do the same twice: those of services do, since they
write files under names that their plan fixed.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from hudimeta.engine import LocalEngine
from hudimeta.errors import CommitError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkEngine"]

T = TypeVar("T")
R = TypeVar("R")

ITEMS_A_TASK = 64
"""Most items of one Spark task, so that small items (a file to delete) do not cost a task each."""

LEAST_TASKS = 32
_RESULTS = "number bigint, failed boolean, result binary"


class SparkEngine:
    """Runs tasks as Spark tasks; a single one runs here.

    Args:
        spark: The session, classic or Connect.
    """

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
        from pyspark import cloudpickle

        size = min(ITEMS_A_TASK, -(-len(work) // LEAST_TASKS))
        starts = range(0, len(work), size)
        parcels = [(start, bytearray(cloudpickle.dumps(work[start : start + size]))) for start in starts]
        run = _in_worker(cloudpickle.dumps(task))
        sent = self._spark.createDataFrame(parcels, "number bigint, parcel binary").repartition(len(parcels), "number")
        found = {row.number: (row.failed, row.result) for row in sent.mapInArrow(run, _RESULTS).collect()}
        results: list[R] = []
        for number in range(len(work)):
            failed, result = found[number]
            value = pickle.loads(result)
            if failed:
                raise value
            results.append(value)
        return results


def _in_worker(task: bytes) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Spark task does with its parcels: run each item, and return each result or error by the item's number."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work: Any = pickle.loads(task)
        for batch in batches:
            for row in batch.to_pylist():
                for offset, item in enumerate(pickle.loads(row["parcel"])):
                    failed, result = _outcome(work, item)
                    yield pa.record_batch(
                        [
                            pa.array([row["number"] + offset], pa.int64()),
                            pa.array([failed]),
                            pa.array([result], pa.binary()),
                        ],
                        names=["number", "failed", "result"],
                    )

    return run


def _outcome(task: Callable[[Any], Any], item: Any) -> tuple[bool, bytes]:
    """Whether a task failed, and its result or error as bytes."""
    from pyspark import cloudpickle

    try:
        return False, cloudpickle.dumps(task(item))
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
