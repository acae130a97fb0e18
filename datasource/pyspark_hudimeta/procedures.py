"""Procedures in a session: `CALL system.run_clustering(table => 't', …)`, and `HudiTable.call`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta import Table, bootstrap
from hudimeta.errors import ConfigError
from hudimeta.procedures import Procedure, RunPlace, bind, bootstrap_arguments, find, refuse_unless_runs
from hudimeta.types import QueryType
from pyspark_hudimeta.arrow_types import spark_schema
from pyspark_hudimeta.plain.registration import carriers
from pyspark_hudimeta.spark_engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["call_on_table", "frame_of", "run_bootstrap"]

_KINDS = [kind.value for kind in QueryType]
_QUERY, _BEGIN, _END, _AS_OF = (
    "hoodie.datasource.query.type",
    "hoodie.datasource.read.begin.instanttime",
    "hoodie.datasource.read.end.instanttime",
    "as.of.instant",
)


def call_on_table(spark: SparkSession, table: Table, name: str, arguments: Mapping[str, Any]) -> DataFrame:
    """Run a procedure on a table; see `hudimeta.Table.call`.

    Args:
        spark: The session.
        table: Whose services run on that session.
        name: Of the procedure.
        arguments: By parameter, without those that name the table.
    """
    procedure = find(name)
    if procedure.place is not RunPlace.SPARK:
        return frame_of(spark, procedure, table.call(name, **arguments))
    bound = bind(procedure, (), arguments, on_table=True)
    return _run_in_session(spark, procedure, table.path, bound)


def _run_in_session(spark: SparkSession, procedure: Procedure, path: str, arguments: Mapping[str, Any]) -> DataFrame:
    refuse_unless_runs(procedure, session=True)
    _IN_SESSION[procedure.name](spark, path, arguments)
    return frame_of(spark, procedure, procedure.table([(0,)]))


def frame_of(spark: SparkSession, procedure: Procedure, rows: pa.Table) -> DataFrame:
    """What a procedure gives, in Spark's types."""
    schema = spark_schema(procedure.schema)
    return spark.createDataFrame([tuple(row.values()) for row in rows.to_pylist()], schema)


def _queried(spark: SparkSession, path: str, arguments: Mapping[str, Any]) -> DataFrame:
    """The rows of the query that a copy is asked of."""
    kind = arguments["query_type"]
    if kind not in _KINDS:  # said here: within a read Spark wraps the error in a trace
        raise ConfigError("query_type", kind, ", ".join(_KINDS))
    given = {_BEGIN: arguments["begin_instance_time"], _END: arguments["end_instance_time"], _AS_OF: arguments["as_of_instant"]}
    if kind == "incremental" and not (given[_BEGIN] and given[_END]):
        raise ConfigError("begin_instance_time", given[_BEGIN], "both ends of the range of an incremental query")
    options = {_QUERY: kind, **{key: text for key, text in given.items() if text}}
    return spark.read.format("hudimeta").options(**options).load(path)


def _copy_to_table(spark: SparkSession, path: str, arguments: Mapping[str, Any]) -> None:
    mode = arguments["save_mode"].strip().lower()
    if mode not in ("overwrite", "append"):
        raise ConfigError("save_mode", arguments["save_mode"], "overwrite or append")
    rows, target = _queried(spark, path, arguments), arguments["new_table"]
    if spark.catalog.tableExists(target):
        if mode == "overwrite" and next(carriers(spark.table(target).schema), None) is not None:
            hint = "INSERT OVERWRITE … SELECT writes into a hudimeta table; Spark would drop this one's entry, and then fail."
            raise ConfigError("new_table", target, "a new name, or a table of another format", hint)
        rows = rows.select(*spark.table(target).columns)
    elif arguments["columns"]:
        rows = rows.select(*[name.strip() for name in arguments["columns"].split(",")])
    rows.write.mode(mode).saveAsTable(target)


def _copy_to_temp_view(spark: SparkSession, path: str, arguments: Mapping[str, Any]) -> None:
    rows, name = _queried(spark, path, arguments), arguments["view_name"]
    makers: dict[tuple[bool, bool], Callable[[str], None]] = {
        (False, False): rows.createTempView,
        (False, True): rows.createOrReplaceTempView,
        (True, False): rows.createGlobalTempView,
        (True, True): rows.createOrReplaceGlobalTempView,
    }
    makers[arguments["global"], arguments["replace"]](name)


def run_bootstrap(spark: SparkSession, arguments: Mapping[str, Any], place: Callable[[str], str]) -> DataFrame:
    """Make a table of files that are there already, by the session's executors.

    Args:
        spark: The session.
        arguments: Of the procedure.
        place: A folder that the call names, in its one spelling.
    """
    given = bootstrap_arguments(arguments)
    source, path = place(given.pop("source")), place(given.pop("path"))
    bootstrap(source, path, **given, engine=SparkEngine(spark))
    procedure = find("run_bootstrap")
    return frame_of(spark, procedure, procedure.table([(0,)]))


def _refuse_bootstrap(spark: SparkSession, path: str, arguments: Mapping[str, Any]) -> None:
    raise ConfigError(
        "run_bootstrap", path, "a table that is not there yet", "CALL run_bootstrap(…), or hudimeta.bootstrap(…)."
    )


_IN_SESSION: Mapping[str, Callable[[SparkSession, str, Mapping[str, Any]], None]] = {
    "copy_to_table": _copy_to_table,
    "copy_to_temp_view": _copy_to_temp_view,
    "run_bootstrap": _refuse_bootstrap,
}
