"""The second door of writes: everything that `hudimeta.Table`'s verbs do, done by tasks as Spark's executors do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from hudimeta.api import verbs
from hudimeta.api.verbs import run_write
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import Options
from hudimeta.errors import ConfigError
from hudimeta.storage import Storage
from hudimeta.testing import builders
from hudimeta.types import META_COLUMNS, Operation
from hudimeta.write import table_writer
from hudimeta.write.carried_keys import CARRYING_COLUMNS
from hudimeta.write.merge_builder import MergeBuilder
from hudimeta.write.merge_clauses import Sides
from hudimeta.write.routed.driver import ROUTED, write_routed
from hudimeta.write.routed.executors import LocalExecutors
from hudimeta.write.routed.merging import MergePlan
from hudimeta.write.routed.sources import FoundRows, GivenRows, MergedRows
from hudimeta.write.row_changes import RowChange
from hudimeta.write.rows_in import as_stream, as_table
from tests.concurrency.side_by_side import interruptible

__all__ = ["RoutedMerge", "by_tasks", "parts_of", "through"]

TASKS = 3


def by_tasks(monkeypatch: pytest.MonkeyPatch, test: ModuleType) -> None:
    """From now on the verbs of all tables are routed, each input in three parts; `write_rows` of the test as well."""
    through(monkeypatch, test, {"write": _write, "delete_where": _delete, "update": _update, "merge": _merge}, _write_rows)


def through(
    monkeypatch: pytest.MonkeyPatch,
    test: ModuleType,
    by_verb: Mapping[str, Callable[..., Any]],
    write: Callable[[WriteSession, Operation, pa.Table], CommitReport],
) -> None:
    """Let other functions than the engine's own do what is asked for.

    Args:
        monkeypatch: Of the test; it takes the functions back.
        test: The module of the test.
        by_verb: In place of functions of `hudimeta.api.verbs`.
        write: In place of `write_rows` and `write_stream`, for the operations that are routed.
    """
    for name, other in by_verb.items():
        monkeypatch.setattr(verbs, name, other)

    def write_rows(session: WriteSession, operation: Operation, rows: pa.Table) -> CommitReport:
        return (write if operation in ROUTED else table_writer.write_rows)(session, operation, rows)

    monkeypatch.setattr(builders, "write_rows", write_rows)
    if hasattr(test, "write_rows"):
        monkeypatch.setattr(test, "write_rows", write_rows)
    if hasattr(test, "write_stream"):
        monkeypatch.setattr(
            test, "write_stream", lambda session, operation, rows: write_rows(session, operation, rows.read_all())
        )


def parts_of(rows: pa.Table) -> list[pa.Table]:
    """Rows as the three parts of a routed write's input."""
    dropped = set(META_COLUMNS) - set(CARRYING_COLUMNS)
    rows = rows.drop_columns([name for name in rows.column_names if name in dropped])
    ends = [rows.num_rows * number // TASKS for number in range(TASKS + 1)]
    return [rows.slice(first, last - first) for first, last in pairwise(ends)]


def _write_rows(session: WriteSession, operation: Operation, rows: pa.Table) -> CommitReport:
    parts = parts_of(rows)
    return write_routed(session, GivenRows(operation, parts[0].schema), interruptible(session, LocalExecutors(parts)))


def _write(storage: Storage, options: Options, operation: Operation, data: Any) -> CommitReport:
    stream = as_stream(data)
    rows = as_table(data) if stream is None else stream.read_all()
    return run_write(WriteSession(storage, options), lambda session: _write_rows(session, operation, rows))


def _delete(storage: Storage, options: Options, where: Any) -> CommitReport:
    return run_write(
        WriteSession(storage, options), lambda session: write_routed(session, FoundRows(RowChange(), where), LocalExecutors([]))
    )


def _update(storage: Storage, options: Options, assignments: Mapping[str, Any], where: Any) -> CommitReport:
    if not assignments:
        raise ConfigError("set", "{}", "at least one column and its new value")
    return run_write(
        WriteSession(storage, options),
        lambda session: write_routed(session, FoundRows(RowChange(assignments), where), LocalExecutors([])),
    )


@dataclass(frozen=True)
class RoutedMerge(MergeBuilder):
    """A merge by tasks; see `MergeBuilder`. Attributes: start: Runs it."""

    start: Callable[[MergePlan], CommitReport] | None = None

    @staticmethod
    def of(
        schema: pa.Schema, on: Any, start: Callable[[MergePlan], CommitReport], aliases: tuple[str, str] = ("target", "source")
    ) -> RoutedMerge:
        """A merge of rows that tasks hold.

        Args:
            schema: Of the rows.
            on: The join's condition or columns.
            start: Runs a plan.
            aliases: Names of both sides.
        """
        return RoutedMerge(schema.empty_table(), on, *aliases, _never, start=start)

    def _run(self) -> CommitReport:
        assert self.start is not None
        return self.start(MergePlan(self.on, Sides(self.target_alias, self.source_alias), self.clauses))


def _merge(storage: Storage, options: Options, source: Any, on: Any, aliases: tuple[str, str]) -> MergeBuilder:
    parts = parts_of(as_table(source))

    def start(plan: MergePlan) -> CommitReport:
        return run_write(
            WriteSession(storage, options),
            lambda session: write_routed(session, MergedRows(plan, parts[0].schema), LocalExecutors(parts)),
        )

    return RoutedMerge.of(parts[0].schema, on, start, aliases)


def _never(changes: Any) -> CommitReport:
    raise AssertionError("a routed merge does not run on the driver")
