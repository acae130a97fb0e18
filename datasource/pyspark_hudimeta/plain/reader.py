"""Reading: the driver plans a scan and packs its file slices into tasks, the tasks yield Arrow batches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from hudimeta.config.options import SPLIT_BYTES
from hudimeta.errors import SchemaError, SchemaMismatch
from hudimeta.read.split import Split, pack_slices, read_split
from hudimeta.schema import conform
from hudimeta.snapshot.file_slice import slices_of
from pyspark_hudimeta.arrow_types import arrow_schema, fitted, spark_schema
from pyspark_hudimeta.plain.worker_heap import settle

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from hudimeta.read.scan import Scan
    from hudimeta.read.scan_plan import ScanPlan

__all__ = ["HudiReader", "split_bytes"]

MOST_TASKS = 10_000
SMALLEST_TASK = 8 << 20
"""Bytes: a Python task costs 50 to 150 ms whatever it does, so small tables are not cut finer than this."""
TASKS_PER_CORE = 2


class HudiReader(DataSourceReader):  # type: ignore[misc]  # Spark's own classes are not typed here
    """A planned read. A copy of it travels to every task, so that it leaves the plan behind.

    Args:
        scan: What to read, its columns in the order of `schema`.
        schema: What Spark has.
        slices: The file slices to read, where they are planned already; columns of `table.slices.slices_schema()`.

    Raises:
        SchemaError: A column whose declared type the table's does not promote to.
    """

    def __init__(self, scan: Scan, schema: StructType, slices: pa.Table | None = None) -> None:
        self._scan: Scan | None = scan
        self._slices = slices
        self._task = scan.task
        self._schema = arrow_schema(schema)
        refuse_misfits(spark_schema(scan.schema), schema)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_scan": None, "_slices": None}

    def partitions(self) -> list[InputPartition]:
        """The tasks, each with its file slices."""
        if self._scan is None:
            raise RuntimeError("a reader is planned where it was made")
        if self._slices is not None:
            listed = list(slices_of(self._slices))
            share = fitting_share(sum(s.size for s in listed))
            return [InputPartition(split) for split in pack_slices(listed, share, MOST_TASKS)]
        plan = self._scan.plan()
        return [InputPartition(split) for split in plan.splits(split_bytes(plan), MOST_TASKS)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The rows of one task, in batches with exactly the declared schema."""
        # Of no partitions Spark makes a task without one: None in 4.1, an empty one since.
        split = getattr(partition, "value", None) or Split(())
        for batch in read_split(self._task, split):
            yield fitted(batch, self._schema)
        settle()


def split_bytes(plan: ScanPlan) -> int:
    """The size of a task's share: as the option says, and smaller where cores would be left idle."""
    if plan.split_bytes != SPLIT_BYTES.default:
        return plan.split_bytes
    return fitting_share(plan.report.bytes_kept)


def fitting_share(size: int) -> int:
    """The size of a task's share that keeps all cores busy.

    Args:
        size: Bytes of all files.
    """
    cores = os.cpu_count() or 1
    return max(SMALLEST_TASK, min(SPLIT_BYTES.default, size // (cores * TASKS_PER_CORE)))


def refuse_misfits(table: StructType, declared: StructType) -> None:
    """A schema of the user's own can differ from the table's, or that of a catalog since another write made columns wider:
    better refused while planning than by a task.

    Args:
        table: The columns as the table has them.
        declared: The same columns in the same order, as the user wants them.

    Raises:
        SchemaError: A column that cannot be read as declared.
    """
    for ours, wanted in zip(table, declared, strict=True):
        kinds = [arrow_schema(type(declared)([column])) for column in (ours, wanted)]
        try:
            conform(kinds[0].empty_table().rename_columns([wanted.name]), kinds[1])
        except SchemaMismatch as error:
            types = [column.dataType.simpleString() for column in (ours, wanted)]
            raise SchemaError(
                f"column {wanted.name!r} is {types[0]} in the table and cannot be read as {types[1]}",
                "Declare the table's type, and cast in the query. ALTER TABLE … ALTER COLUMN … TYPE in an attached session "
                "tells the table's entry in a catalog of it.",
            ) from error
