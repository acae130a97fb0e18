"""Table functions of SQL that look for the vectors nearest to others, as Apache Hudi 1.2 has them.

    SELECT id, _hudi_distance FROM hudi_vector_search('/data/notes', 'emb', array(0.1, 0.9, 0.3), 10, 'cosine')

What is looked at are all rows of the table, by the engine in one task, which hands Spark the nearest alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType
from pyspark.sql.udtf import AnalyzeArgument

from hudimeta import Table
from hudimeta.errors import ConfigError
from hudimeta.read.nearest import QUERY_INDEX, Metric, answer_schema, nearest_of, vector_field
from hudimeta.schema.hudi_types import vector_of
from pyspark_hudimeta.arrow_types import spark_schema
from pyspark_hudimeta.function_calls import BoundCall, called_as, constant, located, newest_instant, optional, spark_rows, text
from pyspark_hudimeta.nearest_rows import NearestRows, RowSearch

if TYPE_CHECKING:
    from hudimeta.read.scan import Scan

__all__ = ["HudiVectorSearch", "HudiVectorSearchBatch"]

_ALGORITHMS = ("brute_force",)
_QUERY_PREFIX = "_hudi_query_"


class HudiVectorSearch:
    """`hudi_vector_search(path, column, vector, k[, metric[, algorithm]])`: the k rows whose vectors lie nearest to one.

    `TABLE(…)` in the place of the path are the rows of any query, which Spark hands over one by one.
    """

    def __init__(self, bound: BoundCall) -> None:
        self._bound = bound
        self._rows = None if bound.path else NearestRows(**bound.arguments)

    @staticmethod
    @called_as("hudi_vector_search(path, column, array(…), k[, 'cosine' | 'l2' | 'dot_product'[, 'brute_force']])")
    def analyze(
        path: AnalyzeArgument,
        column: AnalyzeArgument,
        vector: AnalyzeArgument,
        k: AnalyzeArgument,
        metric: AnalyzeArgument | None = None,
        algorithm: AnalyzeArgument | None = None,
    ) -> BoundCall:
        """The columns of the table without the vectors, and `_hudi_distance`; the rows are those of now.

        Raises:
            HudiError: No table, or arguments that do not fit it.
        """
        _refuse_others(algorithm)
        wanted: dict[str, Any] = {
            "column": text("column", column),
            "vectors": _numbers(constant("vector", vector)),
            "k": _count(constant("k", k)),
            "metric": _metric(metric),
        }
        if path.isTable:
            assert isinstance(path.dataType, StructType)
            search = RowSearch.of(path.dataType, **wanted)
            return BoundCall(search.answer, withSinglePartition=True, arguments={"search": search})
        location = located(path)
        moment = newest_instant(location)
        found = nearest_of(_scan(location, moment).schema, **wanted)
        return BoundCall(spark_schema(found.schema), path=location, arguments={"as_of": moment, "wanted": wanted})

    def eval(self, *arguments: object, **named: object) -> Iterator[tuple[Any, ...]]:
        """The rows, the nearest first. `analyze` has read the arguments."""
        bound = self._bound
        if self._rows is not None:
            self._rows.add(named["path"] if "path" in named else arguments[0])
            return iter(())
        return spark_rows(_scan(bound.path, bound.arguments["as_of"]).nearest(**bound.arguments["wanted"]).to_batches(), bound)

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        """The same of rows that were handed over."""
        return self._rows.best() if self._rows is not None else iter(())


class HudiVectorSearchBatch:
    """`hudi_vector_search_batch(path, column, query_path, query_column, k[, metric[, algorithm]])`: the same for each row of
    another table, whose columns stand beside those of the rows that were found, and `_hudi_query_index`."""

    def __init__(self, bound: BoundCall) -> None:
        self._bound = bound

    @staticmethod
    @called_as("hudi_vector_search_batch(path, column, query_path, query_column, k[, metric[, 'brute_force']])")
    def analyze(
        path: AnalyzeArgument,
        column: AnalyzeArgument,
        query_path: AnalyzeArgument,
        query_column: AnalyzeArgument,
        k: AnalyzeArgument,
        metric: AnalyzeArgument | None = None,
        algorithm: AnalyzeArgument | None = None,
    ) -> BoundCall:
        """The columns of both tables without their vectors, `_hudi_query_index` and `_hudi_distance`.

        Columns of the queries that the other table has too begin with `_hudi_query_`.

        Raises:
            HudiError: No table, or arguments that do not fit it.
        """
        _refuse_others(algorithm)
        location, queries = located(path), located(query_path, "query_path")
        moments = {"as_of": newest_instant(location), "queries_as_of": newest_instant(queries)}
        rows, asked = _scan(location, moments["as_of"]).schema, _scan(queries, moments["queries_as_of"]).schema
        field, query = vector_field(rows, text("column", column)), vector_field(asked, text("query_column", query_column))
        kinds = vector_of(field), vector_of(query)
        if None not in kinds and len({kind.dimension for kind in kinds if kind is not None}) > 1:
            raise ConfigError(
                "query_column", f"{query.name} ({kinds[1]})", f"vectors as long as those of {field.name} ({kinds[0]})"
            )
        wanted = {"column": field.name, "k": _count(constant("k", k)), "metric": _metric(metric)}
        beside = _renamed(asked.remove(asked.get_field_index(query.name)), rows)
        *own, index, distance = answer_schema(rows, field, several=True)
        arguments = {**moments, "queries": queries, "query_column": query.name, "wanted": wanted}
        return BoundCall(spark_schema(pa.schema([*own, *beside, index, distance])), path=location, arguments=arguments)

    def eval(self, *arguments: object, **named: object) -> Iterator[tuple[Any, ...]]:
        """The rows, query by query, the nearest first. `analyze` has read the arguments."""
        bound, given = self._bound, self._bound.arguments
        asked, name = _scan(given["queries"], given["queries_as_of"]).to_table(), given["query_column"]
        asked = asked.filter(pc.is_valid(asked.column(name)))
        if not len(asked):
            return iter(())
        vectors = asked.column(name)
        found = _scan(bound.path, given["as_of"]).nearest(vectors=vectors, **given["wanted"])
        *own, index, distance = found.columns
        beside = asked.drop_columns([name]).take(index).columns
        table = pa.Table.from_arrays([*own, *beside, index, distance], bound.schema.names)
        return spark_rows(table.to_batches(), bound)


def _renamed(queries: pa.Schema, rows: pa.Schema) -> Iterator[pa.Field]:
    """Columns of the queries, by names that the other table does not have."""
    taken = {name.lower() for name in rows.names}
    for field in queries:
        name = f"{_QUERY_PREFIX}{field.name}" if field.name.lower() in taken else field.name
        yield field.with_name(f"{_QUERY_PREFIX}user_{field.name}" if name.lower() == QUERY_INDEX else name)


def _scan(location: str, as_of: str | None) -> Scan:
    return Table(location).scan(as_of=as_of)


def _numbers(value: Any) -> list[float]:
    """A vector of SQL: the numbers of an array are decimals where they are written with a point."""
    if not isinstance(value, list) or not all(isinstance(number, (int, float, Decimal)) for number in value):
        raise ConfigError("vector", value, "an array of numbers", "Write array(0.1, 0.9).")
    return [float(number) for number in value]


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError("k", value, "a number of rows, 1 or more")
    return value


def _metric(argument: AnalyzeArgument | None) -> str:
    return Metric.named(optional("metric", argument) or Metric.COSINE.value).value


def _refuse_others(algorithm: AnalyzeArgument | None) -> None:
    word = optional("algorithm", algorithm)
    if word is not None and word.lower() not in _ALGORITHMS:
        raise ConfigError("algorithm", word, " or ".join(_ALGORITHMS))
