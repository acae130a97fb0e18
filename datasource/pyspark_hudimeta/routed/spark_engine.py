"""Tasks on Spark's executors: the engine that services run on when they are given a session.

Tasks and their items travel as cloudpickle bytes, in the function of a `mapInArrow` or where they are many in the rows of a
DataFrame, and results come back in rows, so the engine works in classic sessions and through Connect. A task that Spark runs
twice must do the same twice: those of services do, since they write files under names that their plan fixed.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from hudimeta.engine import LocalEngine
from hudimeta.errors import CommitError
from pyspark_hudimeta.native.scan_folders import is_connect
from pyspark_hudimeta.plain.worker_heap import settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkEngine", "parallelism"]

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
        from pyspark import cloudpickle

        count = min(len(work), max(parallelism(self._spark) * WAVES, -(-len(work) // ITEMS_A_TASK)))
        # Dealt like cards: neighbours are often alike, all large or all small.
        parcels = [cloudpickle.dumps(work[number::count]) for number in range(count)]
        found = {row.number: (row.failed, row.result) for row in self._sent(cloudpickle.dumps(task), parcels).collect()}
        results: list[R] = []
        for number in range(len(work)):
            failed, result = found[number]
            value = pickle.loads(result)
            if failed:
                raise value
            results.append(value)
        return results

    def _sent(self, task: bytes, parcels: Sequence[bytes]) -> DataFrame:
        """The results of a task on every item of the parcels, each parcel a task of Spark's."""
        count = len(parcels)
        if sum(len(parcel) for parcel in parcels) <= _SHIPPED_BYTES:
            numbers = self._spark.range(0, count, 1, count)
            return numbers.mapInArrow(_in_worker(task, count, parcels), _RESULTS)
        rows = self._spark.createDataFrame([(n, bytearray(parcel)) for n, parcel in enumerate(parcels)], _PARCELS)
        return rows.repartition(count, "parcel").mapInArrow(_in_worker(task, count), _RESULTS)


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at a time, about."""
    if is_connect(spark):
        return int(spark.conf.get("spark.default.parallelism", str(_FALLBACK_PARALLELISM)) or _FALLBACK_PARALLELISM)
    own = int(spark.sparkContext.defaultParallelism)
    # An application that grows with its work begins with few executors.
    grows = spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true"
    return max(own, _FALLBACK_PARALLELISM) if grows else own


def _in_worker(
    task: bytes, count: int, parcels: Sequence[bytes] | None = None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
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
                    yield pa.record_batch(
                        [
                            pa.array([first + offset * count], pa.int64()),
                            pa.array([failed]),
                            pa.array([result], pa.binary()),
                        ],
                        names=["number", "failed", "result"],
                    )
        settle()

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
