"""`HudiTable.merge`: the engine's builder over a DataFrame, run by Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hudimeta.commit.report import CommitReport
from hudimeta.config import Options
from hudimeta.write.merge_builder import MergeBuilder
from hudimeta.write.merge_clauses import Sides
from hudimeta.write.routed.merging import MergePlan
from hudimeta.write.routed.sources import MergedRows
from pyspark_hudimeta.routed.executors import SparkExecutors
from pyspark_hudimeta.routed.stream_batch import of_its_batch
from pyspark_hudimeta.routed.write import data_schema, run_routed, session_of

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
    options: Options,
    source: DataFrame,
    on: str | Sequence[str] | Mapping[str, str],
    aliases: tuple[str, str],
) -> MergeBuilder:
    """Begin a merge.

    Args:
        spark: The session.
        location: The table's absolute path or URI.
        options: Of the write.
        source: Rows to merge.
        on: See `hudimeta.Table.merge`.
        aliases: Names of the table and of the source in expressions.
    """
    schema = data_schema(source)

    def start(plan: MergePlan) -> CommitReport:
        session = session_of(spark, location, of_its_batch(spark, location, options))
        return run_routed(session, MergedRows(plan, schema), SparkExecutors(spark, source, schema, session.options))

    return FrameMerge(schema.empty_table(), on, *aliases, _never, start=start)


def _never(changes: Any) -> CommitReport:
    raise AssertionError("a merge of a DataFrame does not run on the driver")
