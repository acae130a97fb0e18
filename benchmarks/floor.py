"""What Spark itself takes for the rows of a Python data source: one that has its batches ready and only hands them over.

The batches lie in files of Arrow's own format, mapped into memory, in exactly the schema that Spark wants, so that no byte is
decoded or converted in Python. What remains is Spark's: planning, tasks, the way of the bytes into the JVM, and a row made of
each there. No source of that kind can be faster, whatever format it reads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

__all__ = ["ReadyBatches", "register", "write_batches"]

BATCH_ROWS = 1 << 16
TASKS_PER_CORE = 2


def write_batches(table: pa.Table, folder: Path) -> None:
    """Write rows as the files that `ReadyBatches` reads, one for each task."""
    from pyspark_hudimeta.arrow_types import arrow_schema, fitted, spark_schema

    schema = arrow_schema(spark_schema(table.schema))
    rows = -(-len(table) // ((os.cpu_count() or 1) * TASKS_PER_CORE))
    for start in range(0, len(table), rows):
        share = table.slice(start, rows).combine_chunks()
        with pa.ipc.new_file(folder / f"{start:010d}.arrow", schema) as out:
            for batch in share.to_batches(max_chunksize=BATCH_ROWS):
                out.write_batch(fitted(batch, schema))


def register(spark: Any) -> None:
    """Let a session read the format `ready_batches`, wherever Spark's workers look for modules."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    spark.dataSource.register(ReadyBatches)


class ReadyBatches(DataSource):  # type: ignore[misc]  # Spark's own classes are not typed here
    """The rows of a folder of `write_batches`."""

    @classmethod
    def name(cls) -> str:
        return "ready_batches"

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        with pa.memory_map(_files(self.options["path"])[0]) as file:
            return from_arrow_schema(pa.ipc.open_file(file).schema)

    def reader(self, schema: Any) -> DataSourceReader:
        return _Reader(self.options["path"])


class _Reader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(path) for path in _files(self._folder)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        file = pa.ipc.open_file(pa.memory_map(partition.value))
        return (file.get_batch(number) for number in range(file.num_record_batches))


def _files(folder: str) -> list[str]:
    return sorted(glob(f"{folder}/*.arrow"))
