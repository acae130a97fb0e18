"""Tables of SQL that are functions: a Hudi table by the type of query, its changes, its metadata table and its timeline.

    pyspark_hudimeta.register_functions(spark)
    spark.sql("SELECT * FROM hudi_timeline('/data/trips')")

They run where Spark's Python runs: `analyze` tells Spark the columns before a query, `eval` gives the rows in *one* task, again
for each action of a DataFrame. What `analyze` found out travels to `eval` in its result, so that both see the same commits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.functions import arrow_udf, udtf
from pyspark.sql.types import BinaryType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from hudimeta import Table, read_blobs
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError, TableNotFound
from hudimeta.metadata.whole_records import WHOLE_RECORD
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.types import QueryType
from pyspark_hudimeta.arrow_types import arrow_schema, fitted, spark_schema
from pyspark_hudimeta.plain.location import resolve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hudimeta.read.scan import Scan

__all__ = [
    "FUNCTIONS",
    "HudiFilesystemView",
    "HudiMetadata",
    "HudiQuery",
    "HudiTableChanges",
    "HudiTimeline",
    "READ_BLOB",
    "register_functions",
]

_KINDS = {"latest_state": QueryType.INCREMENTAL, "cdc": QueryType.CDC}
"""How Hudi's function names the two kinds of changes."""

_READS = (QueryType.SNAPSHOT.value, QueryType.READ_OPTIMIZED.value)
"""What `hudi_query` takes, as Hudi's does."""

_ROWS = 4096


@dataclass
class BoundCall(AnalyzeResult):  # type: ignore[misc]  # Spark's own classes are not typed here
    """The columns of a call, and its arguments as constants.

    Attributes:
        path: Where the table is.
        arguments: Whatever else the function was called with, checked.
    """

    path: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


def _called_as(usage: str) -> Callable[[Callable[..., BoundCall]], Callable[..., BoundCall]]:
    """Makes an `analyze` refuse calls with other arguments by how the function is called; Spark names its parameters alone."""

    def checking(analyze: Callable[..., BoundCall]) -> Callable[..., BoundCall]:
        signature = inspect.signature(analyze)

        def checked(*arguments: AnalyzeArgument, **named: AnalyzeArgument) -> BoundCall:
            try:
                signature.bind(*arguments, **named)
            except TypeError as error:
                name, given = usage.partition("(")[0], [*("?" for _ in arguments), *(f"{key} => ?" for key in named)]
                raise ConfigError(f"call of {name}", ", ".join(given), usage, f"Call it so ({error}).") from None
            return analyze(*arguments, **named)

        return checked  # not by `functools.wraps`: Spark would look through it, and refuse the call itself

    return checking


class HudiQuery:
    """`hudi_query(path, 'snapshot' | 'read_optimized')`: the rows of a table, or those of its base files alone."""

    def __init__(self, bound: BoundCall) -> None:
        self._bound = bound

    @staticmethod
    @_called_as("hudi_query(path, 'snapshot' | 'read_optimized')")
    def analyze(path: AnalyzeArgument, query_type: AnalyzeArgument) -> BoundCall:
        """The columns of the table; the rows are those of now.

        Raises:
            HudiError: No table, or another type of query.
        """
        word = _text("query_type", query_type).lower()
        if word not in _READS:
            hint = "hudi_table_changes gives rows that changed; a reader with options does all else."
            raise ConfigError("query_type", word, " or ".join(_READS), hint)
        location = _location(path)
        newest = max((instant.time for instant in _table(location).timeline.writes), default=None)
        arguments = {"query_type": word, "as_of": newest}
        return BoundCall(spark_schema(_scanned(location, arguments).schema), path=location, arguments=arguments)

    def eval(self, *arguments: object, **named: object) -> Iterator[tuple[Any, ...]]:
        """The rows. `analyze` has read the arguments."""
        return _rows(_scanned(self._bound.path, self._bound.arguments).to_batches(), self._bound)


class HudiTableChanges:
    """`hudi_table_changes(path, 'latest_state' | 'cdc', begin[, end])`: what the commits between two completion times left.

    `begin` is excluded, `end` included, as in an incremental read; 'earliest' is before everything. `latest_state` gives the
    rows that were inserted or updated as they are at the end, `cdc` each change with the row before and after.
    """

    def __init__(self, bound: BoundCall) -> None:
        self._bound = bound

    @staticmethod
    @_called_as("hudi_table_changes(path, 'latest_state' | 'cdc', begin[, end])")
    def analyze(
        path: AnalyzeArgument, query_type: AnalyzeArgument, begin: AnalyzeArgument, end: AnalyzeArgument | None = None
    ) -> BoundCall:
        """The columns of the changes; without an end they end with the newest commit of now.

        Raises:
            HudiError: No table, or bounds that do not fit.
        """
        word = _text("query_type", query_type).lower()
        if word not in _KINDS:
            raise ConfigError("query_type", word, " or ".join(_KINDS))
        location = _location(path)
        last = _optional("end", end)
        if last is None:
            last = max((i.completed_at for i in _table(location).timeline.writes), default=None)
        arguments = {"query_type": _KINDS[word].value, "begin": _text("begin", begin), "end": last}
        scan = _scanned(location, arguments)
        return BoundCall(spark_schema(scan.schema), path=location, arguments=arguments)

    def eval(self, *arguments: object, **named: object) -> Iterator[tuple[Any, ...]]:
        """The rows. `analyze` has read the arguments."""
        return _rows(_scanned(self._bound.path, self._bound.arguments).to_batches(), self._bound)


class HudiMetadata:
    """`hudi_metadata(path[, partition])`: the live records of the metadata table.

    Without a partition those of all, with the columns of Hudi's own function, else of one, with the columns of its kind.
    """

    def __init__(self, bound: BoundCall) -> None:
        self._bound = bound

    @staticmethod
    @_called_as("hudi_metadata(path[, partition])")
    def analyze(path: AnalyzeArgument, partition: AnalyzeArgument | None = None) -> BoundCall:
        """The columns of the records.

        Raises:
            HudiError: No table, no metadata table, or no such partition.
        """
        location, name = _location(path), _optional("partition", partition)
        metadata = _table(location).metadata
        schema = WHOLE_RECORD if name is None and metadata.ready else metadata.record_schema(name or "files")
        return BoundCall(spark_schema(schema), path=location, arguments={"partition": name})

    def eval(self, *arguments: object, **named: object) -> Iterator[tuple[Any, ...]]:
        """The rows. `analyze` has read the arguments."""
        metadata, name = _table(self._bound.path).metadata, self._bound.arguments["partition"]
        for records in metadata.whole_records() if name is None else [metadata.records(name)]:
            yield from _rows(_plain(records).to_batches(max_chunksize=_ROWS), self._bound)


class HudiTimeline:
    """`hudi_timeline(path[, archived])`: the instants of a table, oldest first, with what they wrote.

    With `archived` true those of the archive as well. The columns are those of Hudi's `hudi_query_timeline`.
    """

    def __init__(self, bound: BoundCall) -> None:
        self._bound = bound

    @staticmethod
    @_called_as("hudi_timeline(path[, archived])")
    def analyze(path: AnalyzeArgument, archived: AnalyzeArgument | None = None) -> BoundCall:
        """The columns of a timeline.

        Raises:
            HudiError: No table, or an argument that is neither true nor false.
        """
        from hudimeta.timeline.summary import SCHEMA

        location, word = _location(path), (_optional("archived", archived) or "false").lower()
        if word not in ("true", "false"):
            raise ConfigError("archived", word, "true or false")
        _table(location)  # a path without a table is refused here, where the user reads the reason
        return BoundCall(spark_schema(SCHEMA), path=location, arguments={"archived": word == "true"})

    def eval(self, *arguments: object, **named: object) -> Iterator[tuple[Any, ...]]:
        """The rows. `analyze` has read the arguments."""
        from hudimeta.timeline.summary import summarise

        instants = summarise(_table(self._bound.path).timeline, self._bound.arguments["archived"])
        return _rows(instants.to_batches(max_chunksize=_ROWS), self._bound)


class HudiFilesystemView:
    """`hudi_filesystem_view(path[, partitions])`: every committed file slice, with the columns of Hudi's function."""

    def __init__(self, bound: BoundCall) -> None:
        self._bound = bound

    @staticmethod
    @_called_as("hudi_filesystem_view(path[, partitions])")
    def analyze(path: AnalyzeArgument, partitions: AnalyzeArgument | None = None) -> BoundCall:
        """The columns of file slices.

        Raises:
            HudiError: No table.
        """
        from hudimeta.procedures import FILESYSTEM_VIEW

        pattern = _optional("partitions", partitions)
        return BoundCall(spark_schema(FILESYSTEM_VIEW), path=_location(path), arguments={"pattern": pattern})

    def eval(self, *arguments: object, **named: object) -> Iterator[tuple[Any, ...]]:
        """The rows. `analyze` has read the arguments."""
        from hudimeta.procedures import filesystem_view

        pattern = self._bound.arguments["pattern"]
        given = (pattern,) if pattern else ()
        slices = filesystem_view(CountingStorage(open_storage(self._bound.path)), OPTIONS.read({}), *given)
        return _rows(slices.to_batches(max_chunksize=_ROWS), self._bound)


FUNCTIONS: Mapping[str, type] = {
    "hudi_query": HudiQuery,
    "hudi_table_changes": HudiTableChanges,
    "hudi_metadata": HudiMetadata,
    "hudi_timeline": HudiTimeline,
    "hudi_query_timeline": HudiTimeline,
    "hudi_filesystem_view": HudiFilesystemView,
}
"""The functions by their names in SQL; `hudi_query_timeline` is Hudi's own name of `hudi_timeline`."""


READ_BLOB = "read_blob"
"""The function of a BLOB's bytes, by Apache Hudi's name."""


def register_functions(spark: SparkSession) -> None:
    """Make the table functions and `read_blob` known to a session, classic or Connect; others of its server do not see them.

    Doing it twice does no harm.
    """
    for name, function in FUNCTIONS.items():
        spark.udtf.register(name, udtf(function, useArrow=True))
    spark.udf.register(READ_BLOB, arrow_udf(_read_blob, BinaryType()))


def _read_blob(blobs: pa.Array) -> pa.Array:
    return read_blobs(blobs).cast(pa.binary())


# Arguments


def _location(argument: AnalyzeArgument) -> str:
    path = _text("path", argument)
    location = resolve(path)
    try:
        _table(location)
    except TableNotFound as error:
        if "/" in path:
            raise
        hint = "Attached sessions and pyspark_hudimeta.sql(spark, …) know names of the catalog, as SHOW TABLES lists them."
        raise ConfigError("path", path, "the path of a table", hint) from error
    return location


def _text(name: str, argument: AnalyzeArgument) -> str:
    if argument.isTable or not argument.isConstantExpression or argument.value is None:
        raise ConfigError(name, "an expression", "a constant that is not null", "A table function is planned once a query.")
    return str(argument.value).strip()


def _optional(name: str, argument: AnalyzeArgument | None) -> str | None:
    """Spark hands over an argument that was left out as None, or not at all."""
    if argument is None or (argument.isConstantExpression and argument.value is None):
        return None
    return _text(name, argument)


# Rows


def _table(location: str) -> Table:
    return Table(location)


def _scanned(location: str, arguments: Mapping[str, Any]) -> Scan:
    return _table(location).scan(**arguments)


def _rows(batches: Iterator[pa.RecordBatch] | list[pa.RecordBatch], bound: BoundCall) -> Iterator[tuple[Any, ...]]:
    """Rows as Spark takes them from a table function: tuples of Python values."""
    expected = arrow_schema(bound.schema)
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS):
            piece = fitted(batch.slice(start, _ROWS), expected)
            yield from zip(*(_values(column) for column in piece.columns), strict=True)


def _plain(table: pa.Table) -> pa.Table:
    """Dictionaries as what they stand for."""
    types = pa.types
    fields = [f.with_type(f.type.value_type) if types.is_dictionary(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def _values(column: pa.Array) -> list[Any]:
    convert = _converter(column.type)
    values: list[Any] = column.to_pylist()
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _converter(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """Arrow gives maps as lists of pairs, Spark wants dictionaries; None for a type without maps inside."""
    types = pa.types
    if types.is_map(kind):
        item = _converter(kind.item_type) or _same
        return lambda pairs: {key: None if value is None else item(value) for key, value in pairs}
    if types.is_list(kind):
        inner = _converter(kind.value_type)
        return inner and (lambda values: [None if value is None else inner(value) for value in values])
    if types.is_struct(kind):
        inside = {kind.field(n).name: _converter(kind.field(n).type) for n in range(kind.num_fields)}
        changed = {name: convert for name, convert in inside.items() if convert is not None}
        return _struct_converter(changed) if changed else None
    return None


def _struct_converter(changed: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def convert(value: dict[str, Any]) -> dict[str, Any]:
        held = {name: change(value[name]) for name, change in changed.items() if value.get(name) is not None}
        return {**value, **held}

    return convert


def _same(value: Any) -> Any:
    return value
