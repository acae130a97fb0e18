"""`HudiTable`: a table as an object of a Spark session, with DataFrames in and out; for classic sessions and for Connect."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hudimeta import Table
from hudimeta.config import OPTIONS
from hudimeta.config.options import AS_OF, FILTER, INCREMENTAL_BEGIN, INCREMENTAL_END, QUERY_TYPE
from hudimeta.errors import ConfigError
from hudimeta.types import Operation, QueryType
from pyspark_hudimeta.native.frame_scan import Asked, FrameScan
from pyspark_hudimeta.plain.location import resolve
from pyspark_hudimeta.routed.spark_engine import SparkEngine

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from hudimeta.commit.report import CommitReport
    from hudimeta.predicate import Where
    from hudimeta.reports import Reports
    from hudimeta.services.clean import CleanReport
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.table.properties import TableProperties
    from hudimeta.timeline import Timeline
    from hudimeta.write.merge_builder import MergeBuilder

__all__ = ["HudiTable"]

_RANGES = (QueryType.INCREMENTAL, QueryType.CDC)


class HudiTable:
    """A Hudi table in a Spark session.

    Planning happens in this process, which therefore needs to reach the table's storage by the same path as Spark does; rows
    are read and written by Spark.

    Args:
        spark: The session, classic or Connect.
        path: The table's folder: a local path, or a URI of an object store.
        options: As of `hudimeta.Table`; those of a read are the defaults of `scan`.

    Raises:
        TableNotFound: There is no table.
        UnsupportedTableVersion, UnsupportedFeature: There is one that cannot be read.
        ConfigError: An option that does not exist or has a value that it cannot have.
    """

    def __init__(self, spark: SparkSession, path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> None:
        self._spark, self._options, self._given = spark, dict(options or {}), OPTIONS.read(options)
        self.table = Table(resolve(os.fspath(path)), self._options, engine=SparkEngine(spark))
        """The same table; it reads and writes without Spark, and its services run on Spark's executors."""

    def __repr__(self) -> str:
        return f"Hudi{self.table!r}"

    # What it is

    @property
    def path(self) -> str:
        """Where the table is: an absolute path or a URI."""
        return self.table.path

    @property
    def properties(self) -> TableProperties:
        """`hoodie.properties` as a mapping, with typed attributes."""
        return self.table.properties

    @property
    def version(self) -> int:
        """The table's version: 6, 8 or 9."""
        return self.table.version

    @property
    def schema(self) -> pa.Schema:
        """Columns of the newest write, the five meta columns first, in Arrow's types."""
        return self.table.schema

    @property
    def timeline(self) -> Timeline:
        """The instants of now; prints well."""
        return self.table.timeline

    @property
    def metadata(self) -> Any:
        """The metadata table of now; see `hudimeta.Table.metadata`."""
        return self.table.metadata

    def file_slices(self, as_of: str | None = None) -> pa.Table:
        """The visible file slices; see `hudimeta.Table.file_slices`."""
        return self.table.file_slices(as_of)

    # Reading

    def scan(
        self,
        where: Where | None = None,
        columns: str | Sequence[str] | None = None,
        as_of: str | None = None,
        query_type: str | QueryType | None = None,
        begin: str | None = None,
        end: str | None = None,
    ) -> FrameScan:
        """A read of the table, planned through its indexes; `.to_df()` gives the rows, `.plan()` the files, `.report` the rest.

        Args:
            where: SQL text in Spark's dialect, tuples such as `[("fare", ">", 60)]`, or a JSON tree; it skips files
                and drops rows. Texts of times without a zone are in the session's.
            columns: What to return; all when None.
            as_of: Time travel: an instant, or a date or time in the timeline's zone.
            query_type: `snapshot`, `read_optimized`, `incremental` or `cdc`.
            begin: When the changes of incremental and CDC reads begin, itself left out: a completion time, a date or time, or
                `earliest`.
            end: When they end, itself included; now when None.

        Raises:
            ConfigError: A predicate, column or moment that does not fit.
            UnsupportedFeature: A read that hudimeta does not do.
        """
        zone = str(self._spark.conf.get("spark.sql.session.timeZone"))
        scan = self.table.scan(where, columns, as_of=as_of, query_type=query_type, begin=begin, end=end, timezone=zone)
        given = self._given
        wanted = where if where is not None else given.get(FILTER)
        kind = QueryType(given.get(QUERY_TYPE)) if query_type is None else QueryType(query_type)
        if kind not in _RANGES:
            moment = scan.task.as_of or max(scan.task.instants.completed, default=None)
            pinned = {QUERY_TYPE.key: kind.value, **({AS_OF.key: moment} if moment else {})}
            return FrameScan(self._spark, scan, self._options, Asked(wanted, pinned, True))
        last = end if end is not None else given.get(INCREMENTAL_END) or _newest(scan.snapshot)
        first = begin if begin is not None else given.get(INCREMENTAL_BEGIN)
        bounds = {QUERY_TYPE.key: kind.value, INCREMENTAL_BEGIN.key: str(first)}
        bounds |= {INCREMENTAL_END.key: last} if last else {}
        return FrameScan(self._spark, scan, self._options, Asked(wanted, bounds, False))

    # Writing

    def upsert(self, data: DataFrame) -> CommitReport:
        """Update the rows whose key is in the table, in their own partition, and insert the others.

        Args:
            data: Rows with the table's columns; `_hoodie_*` columns are ignored.

        Returns:
            What the commit says that it did.

        Raises:
            SchemaError, ConfigError: Rows that do not fit; nothing was written.
            CommitConflict: Other writers were first, repeatedly.
            UnsupportedFeature: A table that hudimeta cannot write.
        """
        return self._write(Operation.UPSERT, data)

    def insert(self, data: DataFrame) -> CommitReport:
        """Add rows without looking for their keys: small files are filled first. See `upsert`."""
        return self._write(Operation.INSERT, data)

    def bulk_insert(self, data: DataFrame) -> CommitReport:
        """Add rows in new file groups only, the quickest way to load. See `upsert`."""
        return self._write(Operation.BULK_INSERT, data)

    def insert_overwrite(self, data: DataFrame) -> CommitReport:
        """Replace the partitions that the rows belong to. See `upsert`."""
        return self._write(Operation.INSERT_OVERWRITE, data)

    def insert_overwrite_table(self, data: DataFrame) -> CommitReport:
        """Replace all rows of the table. See `upsert`."""
        return self._write(Operation.INSERT_OVERWRITE_TABLE, data)

    def delete(self, rows_or_where: DataFrame | Where) -> CommitReport:
        """Delete rows. Args: rows_or_where: Rows with the key and partition columns, or a predicate as `scan` takes it."""
        if _is_frame(rows_or_where):
            return self._write(Operation.DELETE, rows_or_where)
        return self._change(None, rows_or_where)

    def update(self, set: Mapping[str, Any], where: Where | None = None) -> CommitReport:
        """Change columns of rows, on Spark's executors; see `hudimeta.Table.update`.

        Args:
            set: New values by column: text is a SQL expression over the row (such as `"fare * 2"`), anything else a constant.
            where: Which rows, as `scan` takes it; all when None.
        """
        if not set:
            raise ConfigError("set", "{}", "at least one column and its new value")
        return self._change(set, where)

    def merge(
        self,
        source: DataFrame,
        on: str | Sequence[str] | Mapping[str, str],
        *,
        target_alias: str = "target",
        source_alias: str = "source",
    ) -> MergeBuilder:
        """Begin to merge rows into the table, on Spark's executors; `execute()` on what comes back does it.

        Args:
            source: Rows.
            on: What makes a row of the source and one of the table the same, see `hudimeta.Table.merge`.
            target_alias: How expressions call a row of the table.
            source_alias: How they call a row of the source.
        """
        from pyspark_hudimeta.routed.merge import merge_frame

        self._look_again()
        return merge_frame(self._spark, self.path, self._options, source, on, (target_alias, source_alias))

    def _change(self, assignments: Mapping[str, Any] | None, where: Where | None) -> CommitReport:
        from hudimeta.write.row_changes import RowChange
        from pyspark_hudimeta.routed.write import change_frame

        self._look_again()
        return change_frame(self._spark, self.path, self._options, RowChange(assignments), where)

    def _look_again(self) -> None:
        """Whoever asks after a write must not be shown what the table was when it was opened."""
        self.table.snapshot()

    def delete_partition(self, partitions: str | Sequence[str]) -> CommitReport:
        """Drop whole partitions, by their paths; see `hudimeta.Table.delete_partition`."""
        return self.table.delete_partition(partitions)

    def _write(self, operation: Operation, data: DataFrame) -> CommitReport:
        from pyspark_hudimeta.routed.write import write_frame

        self._look_again()
        return write_frame(self._spark, self.path, self._options, operation, data)

    def report(self, instant: str | None = None) -> CommitReport:
        """What a commit did, the newest when None; see `hudimeta.Table.report`."""
        return self.table.report(instant)

    # Services

    def compact(self) -> Reports[CommitReport]:
        """Merge log files into new base files, on Spark's executors; see `hudimeta.Table.compact`."""
        return self.table.compact()

    def clean(self) -> CleanReport:
        """Delete the files that no retained moment needs; see `hudimeta.Table.clean`."""
        return self.table.clean()

    def recover(self) -> tuple[str, ...]:
        """Roll back what writers that died left behind; see `hudimeta.Table.recover`."""
        return self.table.recover()


def _newest(snapshot: Snapshot) -> str | None:
    """The completion time that ends a range which has no end, so that it does not grow while a DataFrame is used."""
    return max((instant.completed_at for instant in snapshot.timeline.writes), default=None)


def _is_frame(value: object) -> bool:
    return type(value).__name__ == "DataFrame"
