"""`HudiTable`: a table as an object of a Spark session, with DataFrames in and out; for classic sessions and for Connect."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta import Table
from hudimeta.api.row_verbs import RowVerbs
from hudimeta.api.service_verbs import ServiceVerbs
from hudimeta.api.services import TableServices
from hudimeta.config import OPTIONS, checked
from hudimeta.config.options import AS_OF, FILTER, INCREMENTAL_BEGIN, INCREMENTAL_END, QUERY_TYPE, SESSION_TIMEZONE
from hudimeta.errors import ConfigError
from hudimeta.types import Operation, QueryType
from pyspark_hudimeta.arrow_types import written_schema
from pyspark_hudimeta.native.frame_scan import Asked, FrameScan
from pyspark_hudimeta.plain.location import resolve
from pyspark_hudimeta.plain.registration import carriers
from pyspark_hudimeta.spark_engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from hudimeta.api.indexes import TableIndexes
    from hudimeta.api.metadata import TableMetadata
    from hudimeta.commit.report import CommitReport
    from hudimeta.predicate import Where
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.table.properties import TableProperties
    from hudimeta.timeline import Timeline
    from hudimeta.write.merge_builder import MergeBuilder

__all__ = ["HudiTable"]

_RANGES = (QueryType.INCREMENTAL, QueryType.CDC)


@checked
class HudiTable(RowVerbs, ServiceVerbs):
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
        zone = {SESSION_TIMEZONE.key: spark.conf.get("spark.sql.session.timeZone")}
        self.table = Table(resolve(os.fspath(path)), {**zone, **self._options}, engine=SparkEngine(spark))
        """The same table; it reads and writes without Spark, and its services run on Spark's executors."""

    @classmethod
    def create(
        cls,
        spark: SparkSession,
        path: str | os.PathLike[str],
        schema: StructType | pa.Schema,
        key: str | Sequence[str] | None = None,
        partition_by: str | Sequence[str] = (),
        ordering: str | Sequence[str] = (),
        type: str | None = None,
        indexes: Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
    ) -> HudiTable:
        """Create an empty table; see `hudimeta.Table.create`.

        >>> trips = HudiTable.create(spark, "/data/trips", df.schema, key="id", partition_by="month")  # doctest: +SKIP

        Args:
            spark: The session, classic or Connect.
            path: Its folder, which may exist but must not hold a table.
            schema: Of its rows: Spark's, or Arrow's.
            key: Columns that identify a row; None generates keys.
            partition_by: Columns whose values name the partitions.
            ordering: Columns that decide which version of a row wins.
            type: `COPY_ON_WRITE`, which None stands for, or `MERGE_ON_READ`.
            indexes: Which of `column_stats`, `partition_stats` … to keep; None for the defaults.
            options: Further options, which later verbs of the table use too.
            name: Of the table; the last part of the path when None.

        Raises:
            ConfigError, SchemaError: Bad input; nothing was written.
            TableError: One is there already.
        """
        arrow = schema if isinstance(schema, pa.Schema) else written_schema(schema)
        where = resolve(os.fspath(path))
        Table.create(where, arrow, key, partition_by, ordering, type, indexes, options, name=name)
        return cls(spark, where, options)

    @classmethod
    def bootstrap(
        cls,
        spark: SparkSession,
        source: str | os.PathLike[str],
        path: str | os.PathLike[str],
        key: str | Sequence[str] | None = None,
        **named: Any,
    ) -> HudiTable:
        """Make a table of a dataset of Parquet or ORC files that is there already; executors describe its files.

        >>> trips = HudiTable.bootstrap(spark, "/data/raw", "/data/trips", key="id")   # doctest: +SKIP

        Args:
            spark: The session, classic or Connect.
            source: Folder of the dataset.
            path: Where the table shall be.
            key: Columns that identify a row.
            named: Everything else that `hudimeta.Table.bootstrap` takes.

        Raises:
            ConfigError, SchemaError, UnsupportedFeature: Source or options do not fit; nothing was written.
            TableError: There is a table already.
        """
        where = resolve(os.fspath(path))
        Table.bootstrap(resolve(os.fspath(source)), where, key, **{"engine": SparkEngine(spark), **named})
        return cls(spark, where, named.get("options"))

    @classmethod
    def for_name(cls, spark: SparkSession, name: str, options: Mapping[str, Any] | None = None) -> HudiTable:
        """The table that a name of the session's catalog stands for.

        >>> HudiTable.for_name(spark, "sales.trips").services.compact()        # doctest: +SKIP

        Args:
            spark: The session, classic or Connect.
            name: As SQL takes it, such as `trips` or `sales.trips`.
            options: As of `hudimeta.Table`, beside those that the table was registered with.

        Raises:
            ConfigError: The name stands for something else.
        """
        carrier = next(carriers(spark.table(name).schema), None)
        if carrier is None:
            hint = "Give the table's folder: HudiTable(spark, path)."
            raise ConfigError("name", name, "a table that was registered USING hudimeta", hint)
        found = carrier.registration
        return cls(spark, found.location, {**found.options, **(options or {})})

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
    def metadata(self) -> TableMetadata:
        """The metadata table of now; see `hudimeta.Table.metadata`."""
        return self.table.metadata

    @property
    def indexes(self) -> TableIndexes:
        """Its indexes, built and validated on Spark's executors; see `hudimeta.Table.indexes`."""
        return self.table.indexes

    @property
    def services(self) -> TableServices:
        """What keeps it small and quick, on Spark's executors; see `hudimeta.Table.services`."""
        return self.table.services

    def snapshot(self, as_of: str | None = None) -> Snapshot:
        """The table at one moment; see `hudimeta.Table.snapshot`."""
        return self.table.snapshot(as_of)

    def file_slices(self, as_of: str | None = None) -> pa.Table:
        """The visible file slices; see `hudimeta.Table.file_slices`."""
        return self.table.file_slices(as_of)

    def call(self, procedure: str, **arguments: Any) -> DataFrame:
        """Run a procedure of Hudi's SQL by its name; services run on Spark's executors. See `hudimeta.Table.call`.

        >>> trips.call("run_clustering", order="fare").show()                  # doctest: +SKIP

        Args:
            procedure: Its name, such as `show_commits`; docs/procedures.md lists them.
            arguments: Its own parameters, but those that name the table.
        """
        from pyspark_hudimeta.procedures import call_on_table

        return call_on_table(self._spark, self.table, procedure, arguments)

    def history(self, limit: int | None = None, *, archived: bool = False) -> pa.Table:
        """What happened to the table, one row an instant; see `hudimeta.Table.history`."""
        return self.table.history(limit, archived=archived)

    def report(self, instant: str | None = None) -> CommitReport:
        """What a commit did, the newest when None; see `hudimeta.Table.report`."""
        return self.table.report(instant)

    # Reading

    def scan(
        self,
        where: Where | None = None,
        columns: str | Sequence[str] | None = None,
        *,
        as_of: str | None = None,
        query_type: str | QueryType | None = None,
        begin: str | None = None,
        end: str | None = None,
        limit: int | None = None,
        timezone: str | None = None,
    ) -> FrameScan:
        """A read of the table, planned through its indexes; `.to_df()` gives the rows, `.plan()` the files, `.report` the rest.

        >>> trips.scan("fare > 60", ["id", "fare"]).to_df().show()             # doctest: +SKIP

        Args:
            where: SQL text in Spark's dialect, tuples such as `[("fare", ">", 60)]`, or a JSON tree; it skips files
                and drops rows. Texts of times without a zone are in the session's.
            columns: What to return; all when None.
            as_of: Time travel: an instant, or a date or time in the timeline's zone.
            query_type: `snapshot`, `read_optimized`, `incremental` or `cdc`.
            begin: When the changes of incremental and CDC reads begin, itself left out: a completion time, a date or time, or
                `earliest`.
            end: When they end, itself included; now when None.
            limit: Rows after which reading stops; all when None.
            timezone: Zone of texts in `where` that name none; the session's when None.

        Raises:
            ConfigError: A predicate, column or moment that does not fit.
            UnsupportedFeature: A read that hudimeta does not do.
        """
        zone = timezone if timezone is not None else str(self._spark.conf.get("spark.sql.session.timeZone"))
        scan = self.table.scan(
            where, columns, as_of=as_of, query_type=query_type, begin=begin, end=end, limit=limit, timezone=zone
        )
        given = self._given
        conditions = [one for one in (where, given.get(FILTER)) if one is not None]
        texts = [one for one in conditions if isinstance(one, str)]
        words = texts if timezone is None and len(texts) == len(conditions) else None
        kind = QueryType(given.get(QUERY_TYPE)) if query_type is None else QueryType(query_type)
        if kind not in _RANGES:
            moment = scan.task.as_of or max(scan.task.instants.completed, default=None)
            pinned = {QUERY_TYPE.key: kind.value, **({AS_OF.key: moment} if moment else {})}
            return FrameScan(self._spark, scan, self._options, Asked(words, pinned, True, limit))
        last = end if end is not None else given.get(INCREMENTAL_END) or _newest(scan.snapshot)
        first = begin if begin is not None else given.get(INCREMENTAL_BEGIN)
        bounds = {QUERY_TYPE.key: kind.value, INCREMENTAL_BEGIN.key: str(first)}
        bounds |= {INCREMENTAL_END.key: last} if last else {}
        return FrameScan(self._spark, scan, self._options, Asked(words, bounds, False, limit))

    # Writing

    def update(self, set: Mapping[str, Any], where: Where | None = None) -> CommitReport:
        """Change columns of rows, on Spark's executors; see `hudimeta.Table.update`.

        Args:
            set: New values by column: text is a SQL expression over the row (such as `"fare * 2"`), anything else a constant.
            where: Which rows, as `scan` takes it; all when None.
        """
        if not set:
            raise ConfigError("set", set, "at least one column and its new value")
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
        return merge_frame(self._spark, self.path, self._given, source, on, (target_alias, source_alias))

    def alter(
        self,
        *,
        add: Mapping[str, pa.DataType] | pa.Schema | Sequence[pa.Field] = (),
        rename: Mapping[str, str] | None = None,
        drop: str | Sequence[str] = (),
        retype: Mapping[str, pa.DataType] | None = None,
        nullable: str | Sequence[str] = (),
        move: Mapping[str, str | None] | None = None,
    ) -> CommitReport:
        """Change the table's columns in one commit; types are Arrow's. See `hudimeta.Table.alter`."""
        return self.table.alter(add=add, rename=rename, drop=drop, retype=retype, nullable=nullable, move=move)

    def _delete_where(self, where: Where) -> CommitReport:
        return self._change(None, where)

    def _is_where(self, value: Any) -> bool:
        return not _is_frame(value)

    def _change(self, assignments: Mapping[str, Any] | None, where: Where | None) -> CommitReport:
        from hudimeta.write.row_changes import RowChange
        from pyspark_hudimeta.routed.write import change_frame

        self._look_again()
        return change_frame(self._spark, self.path, self._given, RowChange(assignments), where)

    def _look_again(self) -> None:
        """Whoever asks after a write must not be shown what the table was when it was opened."""
        self.table.snapshot()

    def delete_partition(self, partitions: str | Sequence[str]) -> CommitReport:
        """Drop whole partitions, by their paths; see `hudimeta.Table.delete_partition`."""
        return self.table.delete_partition(partitions)

    def _write(self, operation: Operation, data: DataFrame) -> CommitReport:
        from pyspark_hudimeta.routed.write import write_frame

        self._look_again()
        return write_frame(self._spark, self.path, self._given, operation, data)


def _newest(snapshot: Snapshot) -> str | None:
    """The completion time that ends a range which has no end, so that it does not grow while a DataFrame is used."""
    return max((instant.completed_at for instant in snapshot.timeline.writes), default=None)


def _is_frame(value: object) -> bool:
    return type(value).__name__ == "DataFrame"
