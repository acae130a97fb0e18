"""Spark's own answers: the values of many expressions over the rows of one table, in few queries.

Spark in ANSI mode raises where a value cannot be computed, which would end the whole query. Catalyst's `TryEval`, which its
`try_` functions are made of, around each expression makes such a row null, and a struct inside tells that from a null value.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.predicate.all_types import plain

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

RAISED = object()
"""Stands for a row for which Spark raises."""
AT_ONCE = 200
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantFolding",
}
"""Many short columns are not worth compiling, and constants that raise must raise in their row."""


class SparkRows:
    """One table in Spark.

    Args:
        spark: A classic session.
        table: The rows.
        path: Where to write them for Spark to load.
    """

    def __init__(self, spark: SparkSession, table: pa.Table, path: Path) -> None:
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # refusals are answers
        pq.write_table(table, path)
        self.spark = spark
        self.frame: DataFrame = spark.read.parquet(str(path)).coalesce(1)

    def answers(self, texts: list[str], zone: str = "UTC") -> list[list[Any] | str]:
        """The values of each expression, RAISED for rows that raise; the class of the error where Spark refuses it all."""
        before = {name: self.spark.conf.get(name, None) for name in (*_INTERPRETED, "spark.sql.session.timeZone")}
        try:
            for name, value in {**_INTERPRETED, "spark.sql.session.timeZone": zone}.items():
                self.spark.conf.set(name, value)
            return [answer for at in range(0, len(texts), AT_ONCE) for answer in self._some(texts[at : at + AT_ONCE])]
        finally:
            for name, earlier in before.items():
                if earlier is None:
                    self.spark.conf.unset(name)
                else:
                    self.spark.conf.set(name, earlier)

    def _some(self, texts: list[str]) -> list[list[Any] | str]:
        refused: dict[int, str] = {}
        tried: list[tuple[int, Column]] = []
        for number, text in enumerate(texts):
            try:
                column = self._tried(text).alias(f"a{number}")
                self.frame.select(column)
            except Exception as error:  # whatever Spark says is an answer
                refused[number] = str(error).splitlines()[0][:120]
                continue
            tried.append((number, column))
        found = self._computed(tried)
        return [refused[number] if number in refused else found[number] for number in range(len(texts))]

    def _computed(self, tried: list[tuple[int, Column]]) -> dict[int, list[Any] | str]:
        """Answers by number; a constant that raises while Spark plans spoils the query, which is asked in halves then."""
        if not tried:
            return {}
        try:
            table = self.frame.select(*[column for _, column in tried]).toArrow()
        except Exception as error:
            if len(tried) == 1:
                return {tried[0][0]: f"raised: {str(error).splitlines()[0][:120]}"}
            half = len(tried) // 2
            return self._computed(tried[:half]) | self._computed(tried[half:])
        found: dict[int, list[Any] | str] = {}
        for number, _ in tried:
            column = table[f"a{number}"].combine_chunks()
            computed, values = column.is_valid().to_pylist(), plain(column.field(0))
            found[number] = [value if valid else RAISED for valid, value in zip(computed, values, strict=True)]
        return found

    def _tried(self, text: str) -> Column:
        from pyspark.sql import Column
        from pyspark.sql.functions import expr

        jvm: Any = self.spark._jvm
        utils = jvm.org.apache.spark.sql.classic.ExpressionUtils
        inner = utils.expression(expr(f"named_struct('v', try_element_at(array({text}), 1))")._jc)
        return Column(utils.column(jvm.org.apache.spark.sql.catalyst.expressions.TryEval(inner)))
