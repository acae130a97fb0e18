"""Writers that meet are routed ones too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.types import Operation
from hudimeta.write.merge_builder import MergeBuilder
from hudimeta.write.routed.driver import write_routed
from hudimeta.write.routed.executors import Executors, LocalExecutors
from hudimeta.write.routed.sources import FoundRows, MergedRows
from hudimeta.write.row_changes import RowChange, delete_where, update_where
from tests.concurrency.side_by_side import interruptible
from tests.write.door_choice import door, through_doors
from tests.write.doors import RoutedMerge, parts_of
from tests.write.spark_door import frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["door"]

ALL_DOORS = ("test_two_writers", "test_taken_for_dead", "test_changes_beside_others")
ENGINE_ONLY = {
    **dict.fromkeys(
        (
            "test_a_heartbeat_counts_for_two_intervals",
            "test_no_two_writers_share_an_instant",
            "test_of_two_creations_one_succeeds",
            "test_spark_jobs_may_create_a_table_together",
            "test_what_a_late_task_wrote_is_swept_by_recovery",
            "test_rows_staged_by_a_write_taken_for_dead_are_gone",
            "test_abort_after_a_commit_keeps_the_files",
        ),
        "writes no rows by a verb",
    ),
}
"""Their tests that hold for the engine's own door alone, and why."""
FORKS = ("test_a_living_writer_is_not_rolled_back", "test_many_processes_at_once")
"""Through Spark they do not go: a process with a JVM beside it cannot be forked into writers."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of some modules once for each door."""
    through_doors(metafunc, ALL_DOORS, ENGINE_ONLY, not_through_spark=FORKS)


@pytest.fixture
def table(tmp_path: Path) -> ModelledTable:
    """Ten rows in two partitions."""
    made = ModelledTable(str(tmp_path / "t"))
    made.write(Operation.INSERT, simple_rows(range(10), 1))
    return made


@dataclass(frozen=True)
class Changes:
    """The verbs that rest on what they read, of a session of the test's own.

    Attributes:
        by: Executors of a routed write, given the rows that it brings; None for the engine's own verbs.
    """

    by: Callable[[pa.Table], Executors] | None

    def update(self, session: WriteSession, assignments: dict[str, str], where: str) -> CommitReport:
        """Update rows."""
        if self.by is None:
            return update_where(session, assignments, where)
        return write_routed(session, FoundRows(RowChange(assignments), where), interruptible(session, self.by(pa.table({}))))

    def delete(self, session: WriteSession, where: str) -> CommitReport:
        """Delete rows."""
        if self.by is None:
            return delete_where(session, where)
        return write_routed(session, FoundRows(RowChange(), where), interruptible(session, self.by(pa.table({}))))

    def merge(self, session: WriteSession, source: pa.Table, on: str) -> MergeBuilder:
        """Begin a merge."""
        if self.by is None:
            return MergeBuilder(source, on, "target", "source", lambda run: run(session))
        executors = interruptible(session, self.by(source))
        return RoutedMerge.of(source.schema, on, lambda plan: write_routed(session, MergedRows(plan, source.schema), executors))


@pytest.fixture
def changes(request: pytest.FixtureRequest, door: str) -> Changes:
    """The verbs of the test's door."""
    if door == "engine":
        return Changes(None)
    if door == "routed":
        return Changes(lambda rows: LocalExecutors(parts_of(rows) if rows.num_columns else []))
    spark: SparkSession = request.getfixturevalue("spark")

    def by_spark(rows: pa.Table) -> Executors:
        from pyspark_hudimeta.routed.executors import SparkExecutors

        return SparkExecutors(spark, frame_of(spark, rows), rows.schema) if rows.num_columns else SparkExecutors(spark)

    return Changes(by_spark)
