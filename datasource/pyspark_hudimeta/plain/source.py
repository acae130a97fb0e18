"""The data source that Spark finds by the name `hudimeta`: options in, a reader or a writer out."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter

from hudimeta.config.options import COLUMNS, INCREMENTAL_BEGIN, LISTED_SLICES, QUERY_TYPE
from hudimeta.errors import ConfigError, HudiError, SchemaError
from hudimeta.read.incremental import EARLIEST
from hudimeta.types import META_COLUMNS, QueryType
from pyspark_hudimeta.plain.given_paths import given_paths, opened_to_read, refuse_part_of_table
from pyspark_hudimeta.plain.target import Target, read_target, stream_target, write_target
from pyspark_hudimeta.plain.worker_heap import settle
from pyspark_hudimeta.spark_version import check_spark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from hudimeta.api.table import Table
    from hudimeta.read.scan import Scan
    from pyspark_hudimeta.plain.stream_reader import HudiStreamReader
    from pyspark_hudimeta.plain.stream_writer import HudiStreamWriter

__all__ = ["DefaultSource", "hides_meta_columns", "shown_columns"]

_BEFORE_ALL = "000"
_OF_ONE_MOMENT = (QueryType.SNAPSHOT.value, QueryType.READ_OPTIMIZED.value)


class DefaultSource(DataSource):  # type: ignore[misc]  # Spark's own classes are not typed here
    """Hudi tables as a Python data source.

    Spark makes one instance for each relation, calls `schema()` unless it has a schema, pickles the instance and calls
    `reader()` on copies. What is stored on the instance by then is the same for every scan of the relation, so the instant
    that `schema()` saw is kept here: a DataFrame shows one snapshot however often it is planned.

    Filters are never pushed into this source (`DataSourceReader.pushFilters`): Spark keeps one plan for all scans of a
    relation, and a filter of one query would hide rows from another. `hudimeta.filter` belongs to one relation and is safe.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        check_spark()
        super().__init__(options)
        self.pinned: str | None = None

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "hudimeta"

    def __getstate__(self) -> dict[str, Any]:
        """With a schema given by the user Spark calls only this before `reader()`: the last moment to pin the snapshot."""
        if self.pinned is None and given_paths(self.options):
            with suppress(HudiError):  # `reader()` meets the same error, and there it reaches the user as what it is
                self._pin(_opened(read_target(self.options)).scan())
        return self.__dict__

    def schema(self) -> StructType:
        """Columns of the table; of a table being registered with what `reader()` and `writer()` need to find it again.

        Raises:
            HudiError: No table, or one that cannot be read, or options that do not fit.
        """
        from hudimeta import Table
        from hudimeta.schema import strip_meta_columns
        from hudimeta.table.column_defaults import column_defaults
        from pyspark_hudimeta.arrow_types import spark_schema
        from pyspark_hudimeta.plain.registration import (
            is_registering,
            kept_options,
            refuse_contradictions,
            registered_schema,
            stated_options,
        )

        target = read_target(self.options)
        if not is_registering(self.options):
            scan = _scan_of_columns(_opened(target), target)
            self._pin(scan)
            found = spark_schema(strip_meta_columns(scan.schema) if hides_meta_columns(target.options) else scan.schema)
            settle()
            return found
        refuse_part_of_table(self.options)
        stated = stated_options(self.options)
        kept = kept_options(self.options)
        table = Table(target.location, kept)
        refuse_contradictions(table.properties, stated, target.location, table.schema.names)
        columns = shown_columns(table.schema.names, kept, table.properties.partition_fields)
        defaults = column_defaults(table.properties)
        return registered_schema(spark_schema(table.scan(columns=columns).schema), target.location, kept, defaults)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns in `schema`.

        Raises:
            HudiError: As `schema()`, and where a column of `schema` does not fit the table.
        """
        from pyspark_hudimeta.plain.reader import HudiReader

        target = read_target(self.options, schema)
        scan = _opened(target).scan(columns=schema.names, as_of=self.pinned)
        try:
            return HudiReader(scan, schema, _listed(target))
        except ConfigError as error:
            if error.key != COLUMNS.key:
                raise
            gone = f"the table has no column {error.value!r}, which the schema names with which it is read"
            again = "A table of the catalog is dropped, which keeps its files, and created again without columns."
            raise SchemaError(gone, f"{error.hint} Allowed are {error.allowed}. {again}") from error

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer of rows of `schema`; the write's instant is on the timeline when this returns.

        Raises:
            HudiError: Nothing says where to write, or rows or options do not fit the table. Nothing was written.
        """
        from pyspark_hudimeta.plain.writer import begin_write

        return begin_write(write_target(self.options, schema), schema, overwrite)

    def streamReader(self, schema: StructType) -> HudiStreamReader:  # noqa: N802 - Spark's name
        """A reader of the columns in `schema` of what commits bring.

        Raises:
            HudiError: Options that fit no stream, or no table.
        """
        from pyspark_hudimeta.plain.stream_reader import begin_stream

        return begin_stream(read_target(self.options, schema), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> HudiStreamWriter:  # noqa: N802 - Spark's name
        """A writer of one batch; its instant is on the timeline when Spark sends it to the tasks.

        Raises:
            HudiError: Nothing says where to write, or options do not fit.
        """
        from pyspark_hudimeta.plain.stream_writer import HudiStreamWriter, stream_options

        target = stream_target(self.options, schema)
        return HudiStreamWriter(Target(target.location, stream_options(target.options)), schema, overwrite)

    def _pin(self, scan: Scan) -> None:
        """Hold the newest instant that the scan sees, unless the user named a moment or a range."""
        from hudimeta.config import OPTIONS

        kind = OPTIONS.read(read_target(self.options).options).get(QUERY_TYPE)
        if scan.task.as_of is None and kind in _OF_ONE_MOMENT:
            self.pinned = max(scan.task.instants.completed, default=None)


def hides_meta_columns(options: Mapping[str, str]) -> bool:
    """True where the options of a read say that it shows no meta columns, and do not name its columns."""
    from hudimeta.config import OPTIONS
    from hudimeta.config.options import META_COLUMNS_SHOWN

    given = OPTIONS.read(options)
    return given.is_set(META_COLUMNS_SHOWN) and not given.get(META_COLUMNS_SHOWN) and not given.is_set(COLUMNS)


def _opened(target: Target) -> Table:
    return opened_to_read(target.location, target.options)


def _scan_of_columns(table: Table, target: Target) -> Scan:
    """A scan that has the columns of the relation.

    Nobody says whether the relation becomes a stream, which names no range: a batch that names none is refused by `reader`.
    """
    from hudimeta.config import OPTIONS

    options = OPTIONS.read(target.options)
    changes = QueryType(options.get(QUERY_TYPE)) in (QueryType.INCREMENTAL, QueryType.CDC)
    return table.scan(begin=EARLIEST, end=_BEFORE_ALL) if changes and not options.is_set(INCREMENTAL_BEGIN) else table.scan()


def _listed(target: Target) -> pa.Table | None:
    """The file slices that the read is limited to; None where it plans by itself."""
    from hudimeta.config import OPTIONS

    text = OPTIONS.read(target.options).get(LISTED_SLICES)
    if text is None:
        return None
    from pyspark_hudimeta.plain.listed_slices import decode_slices

    return decode_slices(text)


def shown_columns(names: Sequence[str], options: Mapping[str, str], last: Sequence[str]) -> list[str] | None:
    """What a registered table shows of the table's columns; None where the option `hudimeta.columns` says it.

    Spark refuses an INSERT without a list of columns that does not give all of them, so the meta columns are hidden. Partition
    columns come last, as Apache Hudi registers a table: such an INSERT goes by the places of columns.

    Args:
        names: Of the table's columns.
        options: Given when it is registered.
        last: The partition columns.
    """
    from hudimeta.config import OPTIONS
    from hudimeta.config.options import META_COLUMNS_SHOWN

    given = OPTIONS.read(options)
    if given.is_set(COLUMNS):
        return None
    shown = [name for name in names if given.get(META_COLUMNS_SHOWN) or name not in META_COLUMNS]
    return [*(name for name in shown if name not in last), *(name for name in last if name in shown)]
