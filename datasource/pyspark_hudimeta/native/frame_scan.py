"""A read of a table as a DataFrame: Spark's own Parquet reader for the files that it can read, our source for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.config import quoted_name
from hudimeta.config.options import (
    AS_OF,
    COLUMNS,
    FILTER,
    INCREMENTAL_BEGIN,
    INCREMENTAL_END,
    LISTED_SLICES,
    PATH,
    QUERY_TYPE,
)
from hudimeta.errors import UnsupportedFeature
from hudimeta.predicate import to_sql
from hudimeta.read.cdc_reader import ChangeTask
from hudimeta.read.cdc_scan import ChangeScan
from hudimeta.read.native_slices import NativeSlices, native_slices
from hudimeta.redaction import redacted
from hudimeta.slices.projection import path_of
from pyspark_hudimeta.arrow_types import spark_schema
from pyspark_hudimeta.native.manifest import base_files
from pyspark_hudimeta.native.parquet_options import NO_SKIPPING, PARQUET_OPTIONS, SPARKS_PARQUET
from pyspark_hudimeta.native.path_columns import PathColumns
from pyspark_hudimeta.native.scan_folders import private_folder, shared_folder
from pyspark_hudimeta.native.spark_places import why_spark_cannot_open
from pyspark_hudimeta.plain.listed_slices import encode_slices
from pyspark_hudimeta.spark_version import is_connect

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from hudimeta.indexes.scan_report import ScanReport
    from hudimeta.predicate import Bound
    from hudimeta.read.scan import Scan
    from hudimeta.read.scan_plan import ScanPlan

__all__ = ["Asked", "FrameScan"]

_OF_A_READ = (AS_OF, COLUMNS, FILTER, INCREMENTAL_BEGIN, INCREMENTAL_END, LISTED_SLICES, PATH, QUERY_TYPE)


@redacted
@dataclass(frozen=True)
class Asked:
    """A read in the words of its user.

    Attributes:
        conditions: What rows have to satisfy, as SQL; None where it is no SQL, or Spark would read its words otherwise.
        options: The moment or range, as options of Spark's reader.
        is_of_one_moment: False for a range of commits.
        limit: Most rows; None for all.
    """

    conditions: Sequence[str] | None
    options: Mapping[str, str]
    is_of_one_moment: bool
    limit: int | None = None


class FrameScan:
    """A read of a table at one moment; nothing is read yet. Make one with `HudiTable.scan`.

    Args:
        spark: The session.
        scan: The same read in the engine.
        options: Of the table.
        asked: What the user asked for.
    """

    def __init__(self, spark: SparkSession, scan: Scan, options: Mapping[str, Any], asked: Asked) -> None:
        if scan.task.beside is not None:
            names = ", ".join(scan.task.beside.unknown)
            raise UnsupportedFeature(f"a predicate with functions of PyArrow, {names}, in Spark", "Write it as SQL.")
        self._spark, self._scan, self._options, self._asked = spark, scan, options, asked

    def __repr__(self) -> str:
        return f"Frame{self._scan!r}"

    def plan(self) -> ScanPlan:
        """The files that will be read; reads metadata only.

        >>> print(trips.scan("fare > 60").plan())                              # doctest: +SKIP
        """
        return self._scan.plan()

    @property
    def report(self) -> ScanReport:
        """What planning found and skipped. Spark reads the rows, so their number is not counted here."""
        return self._scan.report

    @cached_property
    def parts(self) -> NativeSlices:
        """The file slices that Spark reads by itself, the others, and why those."""
        if isinstance(self._scan, ChangeScan):
            slices = self._scan.plan().slices
            return NativeSlices(slices.slice(0, 0), slices, ("changes are found by comparing files",))
        if self._why_python:
            slices = self._scan.plan().slices
            return NativeSlices(slices.slice(0, 0), slices, (self._why_python,))
        return native_slices(self._scan.snapshot, self._scan.plan().slices, self._needed.names)

    @cached_property
    def _why_python(self) -> str:
        """Why Spark's own reader cannot read any file of the table; "" when it can."""
        root = self._scan.snapshot.storage.root
        return NO_SKIPPING if self._scan.task.skip_damage else why_spark_cannot_open(self._spark, root)

    def to_df(self) -> DataFrame:
        """The rows. The DataFrame shows the moment of the scan whenever it is used.

        >>> trips.scan("fare > 60", limit=10).to_df().show()                   # doctest: +SKIP
        """
        frame = self._all_rows()
        return frame if self._asked.limit is None else frame.limit(self._asked.limit)

    def _all_rows(self) -> DataFrame:
        if isinstance(self._scan, ChangeScan):
            return self._from_python(None)
        frames = []
        if self.parts.native.num_rows or not (self.parts.others.num_rows or self._why_python):
            frames.append(self._from_files(self.parts.native))
        if self.parts.others.num_rows or not frames:
            frames.append(self._from_python(self.parts.others))
        return frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])

    # Spark's own reader

    @property
    def _needed(self) -> pa.Schema:
        """What is returned and what the predicate looks at."""
        return self._scan.task.needed

    def _from_files(self, slices: pa.Table) -> DataFrame:
        snapshot = self._scan.snapshot
        paths = PathColumns.of(snapshot, slices.column("partition_path"), self._needed.names)
        files = paths.numbered(base_files(slices, snapshot.storage.root))
        if is_connect(self._spark):
            folder = shared_folder(snapshot.storage, files)
        else:
            folder = private_folder(snapshot.properties.name, files)
        reader = self._spark.read.options(recursiveFileLookup="true", **PARQUET_OPTIONS)
        frame = paths.shown(reader.schema(spark_schema(self._needed)).format(SPARKS_PARQUET).load(folder))
        for condition in self._conditions():
            frame = frame.where(condition)
        return frame.select(*[self._shown(frame, name) for name in self._scan.schema.names])

    def _shown(self, frame: DataFrame, name: str) -> Column | str:
        """A column, or a field of a struct under its dotted name."""
        path = path_of(name, self._needed)
        return quoted_name(name) if len(path) == 1 else frame[quoted_name(*path)].alias(name)

    def _conditions(self) -> list[str]:
        """What rows have to satisfy: the user's own words where Spark knows them too, else the engine's rendering."""
        bound, words = self._bound, self._asked.conditions
        if bound is None:
            return []
        if words is not None and self._asked.is_of_one_moment:
            return list(words)
        return [to_sql(bound.expr, exact=True)]

    @property
    def _bound(self) -> Bound | None:
        task = self._scan.task
        return task.condition if isinstance(task, ChangeTask) else task.predicate

    # The Python source

    @property
    def _written_names(self) -> list[str]:
        """What is returned, as the option takes it."""
        return [quoted_name(*path_of(name, self._scan.task.table_schema)) for name in self._scan.schema.names]

    def _from_python(self, slices: pa.Table | None) -> DataFrame:
        """Rows through the Python source.

        Args:
            slices: What to read; None where it plans by itself.
        """
        options = {key: str(value) for key, value in self._options.items() if not _is_any(key)}
        options |= {**self._asked.options, COLUMNS.key: ",".join(self._written_names)}
        bound = self._bound
        if bound is not None:
            options[FILTER.key] = to_sql(bound.expr, exact=True)
        if slices is not None:
            options[LISTED_SLICES.key] = encode_slices(slices)
        return self._spark.read.format("hudimeta").options(**options).load(self._scan.snapshot.storage.root)


def _is_any(key: str) -> bool:
    return any(key.lower() in (option.key, *option.aliases) for option in _OF_A_READ)
