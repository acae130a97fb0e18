"""Writing: the driver begins the write, tasks write files or stage rows, the driver commits or aborts.

Spark calls these in three kinds of processes that share nothing but what is pickled: `begin_write` on the driver, `write` in
every task, `commit` or `abort` in another process of the driver. Attributes set on the way are lost; tasks speak through
their messages only. `abort` is called also after a `commit` that raised, so it must look before it deletes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from hudimeta.api.plain_write import PlainWrite
from hudimeta.config.options import OVERWRITE_MODE, PATH
from hudimeta.types import META_COLUMNS
from hudimeta.write.carried_keys import CARRYING_COLUMNS
from pyspark_hudimeta.arrow_types import written_schema
from pyspark_hudimeta.plain.worker_heap import settle

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from pyspark_hudimeta.plain.target import Target

__all__ = ["HudiWriter", "TaskMessage", "begin_write", "writer_options"]

LOG = logging.getLogger("pyspark_hudimeta")

_SPARK_OVERWRITE_MODE = "partitionoverwritemode"
"""Spark's own writer option; ignoring `dynamic` would replace the whole table."""


@dataclass(frozen=True)
class TaskMessage(WriterCommitMessage):  # type: ignore[misc]  # Spark's own classes are not typed here
    """What a task tells the commit."""

    payload: bytes


class HudiWriter(DataSourceArrowWriter):  # type: ignore[misc]  # Spark's own classes are not typed here
    """A write that has begun.

    Args:
        write: The engine's side of it.
    """

    def __init__(self, write: PlainWrite) -> None:
        self._write = write

    @property
    def engine_write(self) -> PlainWrite:
        """The engine's side."""
        return self._write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write the rows of one task; called with no batch at all for an empty one."""
        context = TaskContext.get()
        if context is None:
            raise RuntimeError("rows are written by Spark's tasks only")
        rows = (without_meta_columns(batch, self._write.carried) for batch in iterator)
        # The attempt's number starts again when a stage is repeated; its id never does.
        message = TaskMessage(self._write.write(rows, context.partitionId(), context.taskAttemptId()))
        settle()
        return message

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish. Nothing that can fail comes after that, because Spark would call `abort`."""
        report = self._write.commit([message.payload for message in messages if isinstance(message, TaskMessage)])
        LOG.info("%s", report)
        settle()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Take the write back unless it is published. Messages of failed tasks are None; the engine needs none of them."""
        self._write.abort()


def begin_write(target: Target, schema: StructType, overwrite: bool) -> HudiWriter:
    """Check what can be checked, create the table if there is none, and put the write on the timeline.

    Raises:
        HudiError: Rows or options do not fit; nothing was written.
    """
    data = type(schema)([column for column in schema if column.name not in META_COLUMNS or column.name in CARRYING_COLUMNS])
    write = PlainWrite.begin(target.location, writer_options(target.options), written_schema(data), overwrite=overwrite)
    settle()
    return HudiWriter(write)


def writer_options(given: Mapping[str, str]) -> dict[str, str]:
    """The options of `df.write` as the engine knows them, without the path."""
    options = {key.lower(): value for key, value in given.items() if key.lower() != PATH.key}
    mode = options.pop(_SPARK_OVERWRITE_MODE, None)
    if mode is not None:
        options.setdefault(OVERWRITE_MODE.key, mode)
    return options


def without_meta_columns(batch: pa.RecordBatch, but: Collection[str]) -> pa.RecordBatch:
    """The data columns: a row's meta columns are of the table that it was read from. `but`: Those that count all the same."""
    import pyarrow as pa

    kept = [number for number, name in enumerate(batch.schema.names) if name not in META_COLUMNS or name in but]
    return pa.RecordBatch.from_arrays([batch.column(number) for number in kept], [batch.schema.names[n] for n in kept])
