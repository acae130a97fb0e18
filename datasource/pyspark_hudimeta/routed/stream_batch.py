"""`foreachBatch` in an attached session: each batch comes with a session object of its own, which is attached while it runs.

What a batch writes with that session says which batch of which stream it is, so that a batch which is repeated after a failure
is not written twice (see `hudimeta.commit.stream_batches`). A batch may write several times, to several tables: its n-th write
to a table differs from the others by its number, so a repeated batch has to write in the same order.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

from hudimeta.config import Options
from hudimeta.config.options import STREAM_BATCH, STREAM_IDENTIFIER
from pyspark_hudimeta.plain.stream_writer import QUERY

__all__ = ["AttachedStreamWriter", "of_its_batch"]


@dataclass
class _Batch:
    """A batch that is running. Attributes: query: Id of its query. number: Of the batch. writes: So far, by location."""

    query: str
    number: int
    writes: Counter[str] = field(default_factory=Counter)


_running: weakref.WeakKeyDictionary[SparkSession, _Batch] = weakref.WeakKeyDictionary()


class AttachedStreamWriter(DataStreamWriter):  # type: ignore[misc]  # Spark's own classes are not typed here
    """Spark's writer of streams, whose batches have attached sessions.

    Args:
        frame: The stream.
        adopt: Attaches the session of a batch, and returns what undoes it.
    """

    def __init__(self, frame: DataFrame, adopt: Callable[[SparkSession], Callable[[], None]]) -> None:
        super().__init__(frame)
        self._adopt = adopt

    def foreachBatch(self, func: Callable[[DataFrame, int], None]) -> AttachedStreamWriter:  # noqa: N802 - Spark's name
        super().foreachBatch(partial(_run, self._adopt, func))
        return self


def _run(
    adopt: Callable[[SparkSession], Callable[[], None]], func: Callable[[DataFrame, int], None], rows: DataFrame, number: int
) -> None:
    spark = rows.sparkSession
    release = adopt(spark)
    query = spark.sparkContext.getLocalProperty(QUERY)
    if query is not None:
        _running[spark] = _Batch(query, number)
    try:
        func(rows, number)
    finally:
        _running.pop(spark, None)
        release()


def of_its_batch(spark: SparkSession, location: str, options: Options) -> Options:
    """The options of a write, with the batch of a stream that it belongs to; as they are where it belongs to none.

    Args:
        spark: The session that writes.
        location: Of the table.
        options: Of the write; what they say of a batch counts.
    """
    batch = _running.get(spark)
    if batch is None or options.is_set(STREAM_BATCH):
        return options
    turn = batch.writes[location]
    batch.writes[location] += 1
    stream = options.get(STREAM_IDENTIFIER) if options.is_set(STREAM_IDENTIFIER) else batch.query
    return options.having({STREAM_IDENTIFIER.key: f"{stream}/{turn}" if turn else stream, STREAM_BATCH.key: str(batch.number)})
