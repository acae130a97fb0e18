"""`HudiTable.merge`: the engine's builder over a DataFrame, run by Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hudimeta.commit.report import CommitReport
from hudimeta.config import OPTIONS
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.write.merge_builder import MergeBuilder
from hudimeta.write.merge_clauses import Sides
from hudimeta.write.routed.driver import merge_routed
from hudimeta.write.routed.merging import MergePlan
from hudimeta.write.session import WriteSession
from pyspark_hudimeta.routed.executors import SparkExecutors
from pyspark_hudimeta.routed.spark_engine import SparkEngine
from pyspark_hudimeta.routed.write import data_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FrameMerge", "merge_frame"]


@dataclass(frozen=True)
class FrameMerge(MergeBuilder):
    """A merge of a DataFrame; see `MergeBuilder`. `source` has its schema and no rows. Attributes: start: Runs it."""

    start: Callable[[MergePlan], CommitReport] | None = None

    def _run(self) -> CommitReport:
        assert self.start is not None
        return self.start(MergePlan(self.on, Sides(self.target_alias, self.source_alias), self.clauses))


def merge_frame(
    spark: SparkSession,
    location: str,
    given: Mapping[str, Any],
    source: DataFrame,
    on: str | Sequence[str] | Mapping[str, str],
    aliases: tuple[str, str],
) -> MergeBuilder:
    """Begin a merge.

    Args:
        spark: The session.
        location: The table's absolute path or URI.
        given: Options of the write.
        source: Rows to merge.
        on: See `hudimeta.Table.merge`.
        aliases: Names of the table and of the source in expressions.
    """
    schema = data_schema(source)

    def start(plan: MergePlan) -> CommitReport:
        from hudimeta.services.after_write import tend

        options = OPTIONS.read(given)
        session = WriteSession(CountingStorage(open_storage(location, options.texts)), options, engine=SparkEngine(spark))
        executors = SparkExecutors(spark, source, schema, options)
        return tend(session, merge_routed(session, plan, executors, schema))

    return FrameMerge(schema.empty_table(), on, *aliases, _never, start=start)


def _never(changes: Any) -> CommitReport:
    raise AssertionError("a merge of a DataFrame does not run on the driver")
