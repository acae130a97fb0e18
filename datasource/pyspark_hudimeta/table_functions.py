"""Tables of SQL that are functions: a Hudi table by the type of query, its changes, its metadata table and its timeline.

Those that look for vectors are in `vector_functions`.

    pyspark_hudimeta.register_functions(spark)
    spark.sql("SELECT * FROM hudi_timeline('/data/trips')")

They run where Spark's Python runs: `analyze` tells Spark the columns before a query, `eval` gives the rows in *one* task, again
for each action of a DataFrame. What `analyze` found out travels to `eval` in its result, so that both see the same commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.functions import arrow_udf, udtf
from pyspark.sql.types import BinaryType
from pyspark.sql.udtf import AnalyzeArgument

from hudimeta import Table, read_blobs
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError
from hudimeta.metadata.whole_records import WHOLE_RECORD
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.types import QueryType
from pyspark_hudimeta.arrow_types import spark_schema
from pyspark_hudimeta.function_calls import ROWS, BoundCall, called_as, located, newest_instant, optional, spark_rows, text
from pyspark_hudimeta.vector_functions import HudiVectorSearch, HudiVectorSearchBatch

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
    "OF_ROWS",
    "TABLE_PARAMETERS",
    "register_functions",
]

_KINDS = {"latest_state": QueryType.INCREMENTAL, "cdc": QueryType.CDC}
"""How Hudi's function names the two kinds of changes."""

_READS = (QueryType.SNAPSHOT.value, QueryType.READ_OPTIMIZED.value)
"""What `hudi_query` takes, as Hudi's does."""


class HudiQuery:
    """`hudi_query(path, 'snapshot' | 'read_optimized')`: the rows of a table, or those of its base files alone."""

    def __init__(self, bound: BoundCall) -> None:
        self._bound = bound

    @staticmethod
    @called_as("hudi_query(path, 'snapshot' | 'read_optimized')")
    def analyze(path: AnalyzeArgument, query_type: AnalyzeArgument) -> BoundCall:
        """The columns of the table; the rows are those of now.

        Raises:
            HudiError: No table, or another type of query.
        """
        word = text("query_type", query_type).lower()
        if word not in _READS:
            hint = "hudi_table_changes gives rows that changed; a reader with options does all else."
            raise ConfigError("query_type", word, " or ".join(_READS), hint)
        location = located(path)
        arguments = {"query_type": word, "as_of": newest_instant(location)}
        return BoundCall(spark_schema(_scanned(location, arguments).schema), path=location, arguments=arguments)

    def eval(self, *arguments: object, **named: object) -> Iterator[tuple[Any, ...]]:
        """The rows. `analyze` has read the arguments."""
        return spark_rows(_scanned(self._bound.path, self._bound.arguments).to_batches(), self._bound)


class HudiTableChanges:
    """`hudi_table_changes(path, 'latest_state' | 'cdc', begin[, end])`: what the commits between two completion times left.

    `begin` is excluded, `end` included, as in an incremental read; 'earliest' is before everything. `latest_state` gives the
    rows that were inserted or updated as they are at the end, `cdc` each change with the row before and after.
    """

    def __init__(self, bound: BoundCall) -> None:
        self._bound = bound

    @staticmethod
    @called_as("hudi_table_changes(path, 'latest_state' | 'cdc', begin[, end])")
    def analyze(
        path: AnalyzeArgument, query_type: AnalyzeArgument, begin: AnalyzeArgument, end: AnalyzeArgument | None = None
    ) -> BoundCall:
        """The columns of the changes; without an end they end with the newest commit of now.

        Raises:
            HudiError: No table, or bounds that do not fit.
        """
        word = text("query_type", query_type).lower()
        if word not in _KINDS:
            raise ConfigError("query_type", word, " or ".join(_KINDS))
        location = located(path)
        last = optional("end", end)
        if last is None:
            last = max((i.completed_at for i in _table(location).timeline.writes), default=None)
        arguments = {"query_type": _KINDS[word].value, "begin": text("begin", begin), "end": last}
        scan = _scanned(location, arguments)
        return BoundCall(spark_schema(scan.schema), path=location, arguments=arguments)

    def eval(self, *arguments: object, **named: object) -> Iterator[tuple[Any, ...]]:
        """The rows. `analyze` has read the arguments."""
        return spark_rows(_scanned(self._bound.path, self._bound.arguments).to_batches(), self._bound)


class HudiMetadata:
    """`hudi_metadata(path[, partition])`: the live records of the metadata table.

    Without a partition those of all, with the columns of Hudi's own function, else of one, with the columns of its kind.
    """

    def __init__(self, bound: BoundCall) -> None:
        self._bound = bound

    @staticmethod
    @called_as("hudi_metadata(path[, partition])")
    def analyze(path: AnalyzeArgument, partition: AnalyzeArgument | None = None) -> BoundCall:
        """The columns of the records.

        Raises:
            HudiError: No table, no metadata table, or no such partition.
        """
        location, name = located(path), optional("partition", partition)
        metadata = _table(location).metadata
        schema = WHOLE_RECORD if name is None and metadata.ready else metadata.record_schema(name or "files")
        return BoundCall(spark_schema(schema), path=location, arguments={"partition": name})

    def eval(self, *arguments: object, **named: object) -> Iterator[tuple[Any, ...]]:
        """The rows. `analyze` has read the arguments."""
        metadata, name = _table(self._bound.path).metadata, self._bound.arguments["partition"]
        for records in metadata.whole_records() if name is None else [metadata.records(name)]:
            yield from spark_rows(_plain(records).to_batches(max_chunksize=ROWS), self._bound)


class HudiTimeline:
    """`hudi_timeline(path[, archived])`: the instants of a table, oldest first, with what they wrote.

    With `archived` true those of the archive as well. The columns are those of Hudi's `hudi_query_timeline`.
    """

    def __init__(self, bound: BoundCall) -> None:
        self._bound = bound

    @staticmethod
    @called_as("hudi_timeline(path[, archived])")
    def analyze(path: AnalyzeArgument, archived: AnalyzeArgument | None = None) -> BoundCall:
        """The columns of a timeline.

        Raises:
            HudiError: No table, or an argument that is neither true nor false.
        """
        from hudimeta.timeline.summary import SCHEMA

        location, word = located(path), (optional("archived", archived) or "false").lower()
        if word not in ("true", "false"):
            raise ConfigError("archived", word, "true or false")
        _table(location)  # a path without a table is refused here, where the user reads the reason
        return BoundCall(spark_schema(SCHEMA), path=location, arguments={"archived": word == "true"})

    def eval(self, *arguments: object, **named: object) -> Iterator[tuple[Any, ...]]:
        """The rows. `analyze` has read the arguments."""
        from hudimeta.timeline.summary import summarise

        instants = summarise(_table(self._bound.path).timeline, self._bound.arguments["archived"])
        return spark_rows(instants.to_batches(max_chunksize=ROWS), self._bound)


class HudiFilesystemView:
    """`hudi_filesystem_view(path[, partitions])`: every committed file slice, with the columns of Hudi's function."""

    def __init__(self, bound: BoundCall) -> None:
        self._bound = bound

    @staticmethod
    @called_as("hudi_filesystem_view(path[, partitions])")
    def analyze(path: AnalyzeArgument, partitions: AnalyzeArgument | None = None) -> BoundCall:
        """The columns of file slices.

        Raises:
            HudiError: No table.
        """
        from hudimeta.procedures import FILESYSTEM_VIEW

        pattern = optional("partitions", partitions)
        return BoundCall(spark_schema(FILESYSTEM_VIEW), path=located(path), arguments={"pattern": pattern})

    def eval(self, *arguments: object, **named: object) -> Iterator[tuple[Any, ...]]:
        """The rows. `analyze` has read the arguments."""
        from hudimeta.procedures import filesystem_view

        pattern = self._bound.arguments["pattern"]
        given = (pattern,) if pattern else ()
        slices = filesystem_view(CountingStorage(open_storage(self._bound.path)), OPTIONS.read({}), *given)
        return spark_rows(slices.to_batches(max_chunksize=ROWS), self._bound)


FUNCTIONS: Mapping[str, type] = {
    "hudi_query": HudiQuery,
    "hudi_table_changes": HudiTableChanges,
    "hudi_metadata": HudiMetadata,
    "hudi_timeline": HudiTimeline,
    "hudi_query_timeline": HudiTimeline,
    "hudi_filesystem_view": HudiFilesystemView,
    "hudi_vector_search": HudiVectorSearch,
    "hudi_vector_search_batch": HudiVectorSearchBatch,
}
"""The functions by their names in SQL; `hudi_query_timeline` is Hudi's own name of `hudi_timeline`."""

TABLE_PARAMETERS: Mapping[str, Mapping[str, int]] = {
    **{name: {"path": 0} for name in FUNCTIONS},
    "hudi_vector_search_batch": {"path": 0, "query_path": 2},
}
"""Their parameters that name tables, with their places among the arguments."""

OF_ROWS: Mapping[str, Mapping[str, int]] = {"hudi_vector_search": {"path": 0}}
"""Of these what also takes the rows of `TABLE(…)`."""


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


def _table(location: str) -> Table:
    return Table(location)


def _scanned(location: str, arguments: Mapping[str, Any]) -> Scan:
    return _table(location).scan(**arguments)


def _plain(table: pa.Table) -> pa.Table:
    """Dictionaries as what they stand for."""
    types = pa.types
    fields = [f.with_type(f.type.value_type) if types.is_dictionary(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))
