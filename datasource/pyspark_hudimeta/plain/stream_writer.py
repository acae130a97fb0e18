"""`writeStream`: each batch is a write of its own, of which the commit says which batch of which query it is.

For each batch Spark makes a writer and sends it to the tasks, and makes another one, in another process, that gets the tasks'
messages, to commit or to abort. Only the first is pickled, so being pickled is what begins the write; the second learns from
the messages which write that was. A batch that is repeated, because the query died before its checkpoint knew of it, finds
itself in the table and is taken back (see `hudimeta.commit.stream_batches`).
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from hudimeta.config import OPTIONS
from hudimeta.config.options import (
    COMPACT_INLINE,
    COMPACT_SCHEDULE,
    CONFLICT_RETRIES,
    CONFLICT_WAIT_MS,
    LOG_COMPACT_INLINE,
    STREAM_BATCH,
    STREAM_COMPACTS_NOT,
    STREAM_IDENTIFIER,
    STREAM_TRIES,
    STREAM_WAIT_MS,
)
from pyspark_hudimeta.plain.worker_heap import settle
from pyspark_hudimeta.plain.writer import begin_write

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from hudimeta.api.plain_write import PlainWrite
    from pyspark_hudimeta.plain.target import Target
    from pyspark_hudimeta.plain.writer import HudiWriter

__all__ = ["QUERY", "HudiStreamWriter", "stream_options"]

LOG = logging.getLogger("pyspark_hudimeta")
QUERY = "sql.streaming.queryId"
"""Local property in which Spark tells the id of the query whose batch a thread runs; it stays the same after a restart."""
_OF_SPARK = ("checkpointlocation", "queryname")


@dataclass(frozen=True)
class BatchMessage(WriterCommitMessage):  # type: ignore[misc]  # Spark's own classes are not typed here
    """What a task tells the commit: what it wrote, the write that it belongs to, and the query."""

    payload: bytes
    write: bytes
    query: str | None


class HudiStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]  # Spark's own classes are not typed here
    """A writer of one batch.

    Args:
        target: The table.
        schema: Of the rows.
        overwrite: The rows are all that the table shall hold.
    """

    def __init__(self, target: Target, schema: StructType, overwrite: bool) -> None:
        self._target, self._schema, self._overwrite = target, schema, overwrite
        self._begun: HudiWriter | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self._begun is None:
            self._begun = begin_write(self._target, self._schema, self._overwrite)
        return self.__dict__

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchMessage:
        """Write the rows of one task."""
        context, begun = TaskContext.get(), self._begun
        if begun is None or context is None:
            raise RuntimeError("rows are written by Spark's tasks only")
        message = begun.write(iterator)
        return BatchMessage(message.payload, pickle.dumps(begun.engine_write), context.getLocalProperty(QUERY))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Publish, unless the batch is in the table already."""
        ours = [message for message in messages if isinstance(message, BatchMessage)]
        if ours:
            write: PlainWrite = pickle.loads(ours[0].write)
            options = write.options.having(_batch(write.options.given, ours[0].query, batchId))
            LOG.info("%s", replace(write, options=options).commit([message.payload for message in ours]))
        settle()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Take the batch's write back unless it is published. Where no task got to its end, the next write does it."""
        for message in messages:
            if isinstance(message, BatchMessage):
                pickle.loads(message.write).abort()
                return


def _batch(given: Mapping[str, str], query: str | None, number: int) -> dict[str, str]:
    """Options that say which batch of which stream a write is; a name that the user gave goes before the query's id."""
    named = {} if query is None or OPTIONS.read(given).is_set(STREAM_IDENTIFIER) else {STREAM_IDENTIFIER.key: query}
    return {**named, STREAM_BATCH.key: str(number)}


def stream_options(given: Mapping[str, str]) -> dict[str, str]:
    """The options of a stream as those of the writes of its batches.

    Args:
        given: Of the stream.

    Raises:
        ConfigError, UnsupportedFeature: Options that do not fit.
    """
    made = {key: value for key, value in given.items() if key.lower() not in _OF_SPARK}
    options = OPTIONS.read(made)
    if options.is_set(STREAM_TRIES) and not options.is_set(CONFLICT_RETRIES):
        made[CONFLICT_RETRIES.key] = str(options.get(STREAM_TRIES) - 1)
    if options.is_set(STREAM_WAIT_MS) and not options.is_set(CONFLICT_WAIT_MS):
        made[CONFLICT_WAIT_MS.key] = str(options.get(STREAM_WAIT_MS))
    if options.get(STREAM_COMPACTS_NOT):
        made |= dict.fromkeys((COMPACT_INLINE.key, COMPACT_SCHEDULE.key, LOG_COMPACT_INLINE.key), "false")
    return made
