"""Rows that Python has to make before Spark's own Parquet reader can read a slice, kept in files of their own.

A slice with log files is read as its base file without the rows that its log replaces, and a small file of what the log says
now. A slice whose base file Spark cannot bring to the table's columns is written anew as a whole. Both are made once, when the
first scan needs the slice, and serve every later scan of the same files; a file goes when nothing refers to its slice any more.
"""

from __future__ import annotations

import os
import uuid
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from tempfile import mkdtemp
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.engine import LocalEngine
from hudimeta.errors import TableError
from hudimeta.redaction import redacted
from hudimeta.slices.overlay import OverlayReader
from hudimeta.storage import Storage, join, open_storage
from pyspark_hudimeta.arrow_types import arrow_schema, fitted
from pyspark_hudimeta.native.manifest import file_uri
from pyspark_hudimeta.native.replaced_rows import replaced_bits
from pyspark_hudimeta.spark_engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from hudimeta.slices.read_task import ReadTask
    from hudimeta.snapshot.file_slice import FileSlice

__all__ = ["SliceJob", "StagedSlice", "Staging"]

_FEW_BYTES = 256 << 20
"""Up to so many bytes of slices, the driver makes their files itself: a job of Spark's would take longer to begin."""


@dataclass(frozen=True)
class Made:
    """What a job made.

    Attributes:
        name, size, rows: Of the file; "" and 0 without rows.
        replaced: Which rows of the base file do not count, see `replaced_rows`; None for none.
        replaced_rows: How many.
        instead: The file holds all rows of the slice, and the base file is not read at all.
    """

    name: str
    size: int
    rows: int
    replaced: bytes | None
    replaced_rows: int
    instead: bool


@redacted
@dataclass(frozen=True)
class SliceJob:
    """What makes the files of one slice; goes to executors.

    Attributes:
        task: Reads the slice, without a predicate.
        schema: Of the table, in Spark's types.
        file_slice: The slice.
        whole: Write all rows of it, instead of what its log says.
        folder: Where files go, and `options` that open it.
    """

    task: ReadTask
    schema: StructType
    file_slice: FileSlice
    whole: bool
    folder: str
    options: Mapping[str, str] = field(default_factory=dict)

    def run(self) -> Made:
        """Make the file."""
        with self.task.telling_removals():
            return self._made()

    def _made(self) -> Made:
        task = self.task
        reader = OverlayReader(task, open_storage(task.location, task.storage_options))
        overlay = None if self.whole else reader.overlay(self.file_slice)
        if overlay is None:
            return Made(*self._written(reader.tables(self.file_slice)), None, 0, True)
        bits = replaced_bits(overlay.replaced)
        return Made(*self._written([overlay.rows]), bits, len(overlay.replaced), False)

    def _written(self, tables: Iterable[pa.Table]) -> tuple[str, int, int]:
        import pyarrow.parquet as pq

        expected, rows, name = arrow_schema(self.schema), 0, f"{uuid.uuid4()}.parquet"
        storage, writer, out = open_storage(self.folder, self.options), None, pa.BufferOutputStream()
        for table in tables:
            for batch in table.to_batches():
                if batch.num_rows:
                    writer = writer or pq.ParquetWriter(
                        out, expected, compression="zstd", store_schema=False, write_statistics=_without_nan(expected)
                    )
                    writer.write_batch(fitted(batch, expected))
                    rows += batch.num_rows
        if writer is None:
            return "", 0, 0
        writer.close()
        data = out.getvalue().to_pybytes()
        storage.put(name, data)
        return name, len(data), rows


def _without_nan(schema: pa.Schema) -> list[str]:
    """Columns to write statistics of: Arrow leaves NaN out of them, by which Spark would pass over rows with `x > 5`."""
    return [f.name for f in schema if not (pa.types.is_floating(f.type) or pa.types.is_nested(f.type))]


@dataclass(eq=False)
class StagedSlice:
    """What Spark reads for one slice, besides its base file or instead of it.

    Attributes:
        uri: Of the file that was made; None without rows.
        made: The file, and what of the base file does not count.
        directory: Spark's object for the base file and the rows that do not count, once it is made.
    """

    uri: str | None
    made: Made
    directory: Any = None


class Staging:
    """The staged slices of one attached session, and the folder that they lie in.

    Args:
        spark: The session.
        folder: Where executors can read and write; None for a temporary folder of this machine.
    """

    def __init__(self, spark: SparkSession, folder: str | None = None) -> None:
        self._spark, self._given = spark, folder
        self._folder: str | None = None
        self._storage: Storage | None = None
        self._forget: Any = None
        self._lock = Lock()
        self._slices: weakref.WeakValueDictionary[Any, StagedSlice] = weakref.WeakValueDictionary()
        self._closed = False

    @property
    def can_stage(self) -> bool:
        """False on a cluster without a folder that all of it reaches."""
        return self._given is not None or str(self._spark.sparkContext.master).startswith("local")

    def storage(self) -> Storage:
        """The folder, made when it is first needed.

        Raises:
            TableError: The session was detached.
        """
        self.check_open()
        with self._lock:
            if self._storage is None:
                parent = self._given
                self._folder = mkdtemp(prefix="hudimeta-") if parent is None else join(parent, f"hudimeta-{uuid.uuid4()}")
                self._storage = open_storage(self._folder)
                self._forget = weakref.finalize(self, self._storage.delete_folder, "")  # also when the process ends
            return self._storage

    def check_open(self) -> None:
        """Refuse scans that need files which `close` has deleted. Raises TableError."""
        if self._closed:
            raise TableError(
                "this DataFrame was made by a session that pyspark_hudimeta.detach has detached since", "Load the table again."
            )

    def close(self) -> None:
        """Delete the folder and all that lies in it."""
        with self._lock:
            self._closed = True
            self._storage = None
        if self._forget is not None:
            self._forget()

    def staged(self, jobs: Sequence[tuple[Any, SliceJob]], held: Mapping[Any, StagedSlice]) -> dict[Any, StagedSlice]:
        """The staged slices of some keys; what is not there yet is made.

        Args:
            jobs: What makes each, by key; `folder` is filled in here.
            held: Slices that the caller holds already.
        """
        found = {key: held.get(key) or self._slices.get(key) for key, _ in jobs}
        missing = [(key, job) for key, job in jobs if found[key] is None]
        if missing:
            storage = self.storage()
            made = self._make([job for _, job in missing])
            for (key, _), file in zip(missing, made, strict=True):
                staged = StagedSlice(file_uri(storage.root, file.name) if file.name else None, file)
                if file.name:
                    weakref.finalize(staged, _delete, weakref.ref(self), file.name)
                found[key] = self._slices[key] = staged
        return {key: staged for key, staged in found.items() if staged is not None}

    def _make(self, jobs: list[SliceJob]) -> list[Made]:
        """Run jobs here, or as a job of Spark's where they are large."""
        from dataclasses import replace

        jobs = [replace(job, folder=self.storage().root) for job in jobs]
        cores = os.cpu_count() or 1
        if sum(job.file_slice.size for job in jobs) > _FEW_BYTES and len(jobs) > cores:
            return SparkEngine(self._spark).map(SliceJob.run, jobs)
        return LocalEngine(cores).map(SliceJob.run, jobs)


def _delete(staging: weakref.ref[Staging], name: str) -> None:
    """Delete a file whose slice nobody reads any more, while there is a folder."""
    owner = staging()
    storage = owner._storage if owner is not None else None
    if storage is not None:
        storage.delete(name)
