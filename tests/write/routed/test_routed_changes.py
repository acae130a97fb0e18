"""Updates, deletes and merges by tasks do to rows of the table what the engine's own verbs do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import CommitError, ConfigError
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.merge_clauses import Clause, ClauseKind, Sides
from hudimeta.write.routed.driver import write_routed
from hudimeta.write.routed.executors import LocalExecutors
from hudimeta.write.routed.merging import MergePlan
from hudimeta.write.routed.sources import FoundRows, MergedRows
from hudimeta.write.row_changes import RowChange
from tests.write.routed.sides import KINDS, both, contents, routed, rows, same_tables


def changed(
    path: Path, assignments: Mapping[str, Any] | None, where: Any, options: Mapping[str, str] | None = None
) -> CommitReport:
    """An update, or a delete without assignments, by tasks."""
    session = WriteSession(CountingStorage(open_storage(path)), OPTIONS.read(options))
    return write_routed(session, FoundRows(RowChange(assignments), where), LocalExecutors([]))


@pytest.mark.rotation(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("indexes", [["record_index", "column_stats"], ["column_stats"]], ids=str)
def test_rows_of_the_table_are_changed_and_deleted_alike(tmp_path: Path, kind: str, indexes: list[str]) -> None:
    paths = same_tables(tmp_path, type=kind, indexes=indexes)
    both(paths, Operation.INSERT, [rows(0, 60)])
    both(paths, Operation.UPSERT, [rows(20, 30, 2)])
    engine = hudimeta.Table(paths[1])
    some, formula = "id > 14 AND id < 40", {"x": "x * 2 + ts"}
    for run, expected in (
        (changed(paths[0], formula, some), engine.update(formula, some)),
        (changed(paths[0], {"x": 7.5}, None), engine.update({"x": 7.5})),
        (changed(paths[0], None, "part = 'p1' AND id < 30"), engine.delete("part = 'p1' AND id < 30")),
    ):
        assert (run.updated, run.deleted, run.inserted) == (expected.updated, expected.deleted, expected.inserted)
        assert run.log_files_written == expected.log_files_written
    assert contents(paths[0]) == contents(paths[1])
    check_all(open_storage(paths[0]))


def test_what_changes_nothing_is_no_commit(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path)
    routed(path, Operation.INSERT, [rows(0, 5)])
    before = [str(instant) for instant in hudimeta.Table(path).timeline]
    assert changed(path, {"x": 1.0}, "id = 77").completion is None
    assert changed(path, None, "part = 'none'").completion is None
    assert routed(path, Operation.UPSERT, [rows(0, 0)]).completion is None
    assert [str(instant) for instant in hudimeta.Table(path).timeline] == before
    with pytest.raises(ConfigError, match="key"):
        changed(path, {"id": 1}, None)
    with pytest.raises(ConfigError, match="nothere"):
        changed(path, {"x": "nothere + 1"}, None)
    check_all(open_storage(path))


def merges(builder: Any) -> Any:
    """Every kind of clause."""
    return (
        builder.when_matched_delete(condition="source.x < 0")
        .when_matched_update({"x": "source.x + target.x", "ts": "source.ts"}, condition="source.ts > target.ts")
        .when_not_matched_insert(condition="source.x >= 0")
        .when_not_matched_by_source_update({"x": -1.0, "ts": "target.ts + 1"}, condition="target.id > 55")
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_source", [False, True])
def test_a_merge_does_what_the_engines_does(tmp_path: Path, kind: str, by_source: bool) -> None:
    paths = same_tables(tmp_path, type=kind, indexes=["record_index", "column_stats"])
    both(paths, Operation.INSERT, [rows(0, 60)])
    source = pa.concat_tables([rows(5, 25, 3), rows(100, 110, 2), rows(30, 33, 0)])
    source = source.set_column(3, "x", pa.array([-1.0 if i % 7 == 0 else float(i) for i in source["id"].to_pylist()]))
    builder = hudimeta.Table(paths[1]).merge(source, "id")
    builder = merges(builder) if by_source else builder.when_matched_update().when_not_matched_insert()
    expected = builder.execute()
    session = WriteSession(CountingStorage(open_storage(paths[0])), OPTIONS.read({}))
    plan = MergePlan("id", Sides(), builder.clauses)
    parts = [source.slice(0, 10), source.slice(10)]
    report = write_routed(session, MergedRows(plan, source.schema), LocalExecutors(parts))
    assert (report.updated, report.deleted, report.inserted) == (expected.updated, expected.deleted, expected.inserted)
    assert contents(paths[0]) == contents(paths[1])
    check_all(open_storage(paths[0]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_merge_moves_rows_as_the_engines_does(tmp_path: Path, kind: str) -> None:
    paths, options = same_tables(tmp_path, type=kind), {"hoodie.index.type": "GLOBAL_SIMPLE"}
    both(paths, Operation.INSERT, [rows(0, 30)])
    source = pa.concat_tables([rows(5, 15, 3), rows(15, 20, 0), rows(40, 44, 2)])
    source = source.set_column(1, "part", pa.array([f"moved{i % 2}" for i in source["id"].to_pylist()]))
    builder = hudimeta.Table(paths[1], options).merge(source, "id").when_matched_update().when_not_matched_insert()
    expected = builder.execute()
    session = WriteSession(CountingStorage(open_storage(paths[0])), OPTIONS.read(options))
    plan = MergePlan("id", Sides(), builder.clauses)
    report = write_routed(session, MergedRows(plan, source.schema), LocalExecutors([source.slice(0, 9), source.slice(9)]))
    assert (report.moved, report.inserted, report.deleted) == (expected.moved, expected.inserted, expected.deleted)
    assert report.moved == 10
    assert contents(paths[0]) == contents(paths[1])
    check_all(open_storage(paths[0]))


def test_the_newest_row_of_a_key_is_the_one_that_counts(tmp_path: Path) -> None:
    """Its rows come in several parts, and not in the order of their age."""
    path, _ = same_tables(tmp_path)
    routed(path, Operation.INSERT, [rows(0, 9)])
    parts = [rows(3, 12, 7), rows(0, 12, 5), rows(8, 10, 9)]
    builder = hudimeta.Table(path).merge(parts[0], "id")
    clauses = (
        builder.when_matched_update(condition="source.ts <> 9").when_not_matched_insert(condition="source.ts <> 9").clauses
    )
    session = WriteSession(CountingStorage(open_storage(path)), OPTIONS.read({}))
    report = write_routed(session, MergedRows(MergePlan("id", Sides(), clauses), parts[0].schema), LocalExecutors(parts))
    assert (report.updated, report.inserted, report.deleted) == (8, 2, 0)
    ages = {row[0]: row[2] for row in contents(path)}
    assert ages == {**dict.fromkeys(range(3), 5), **dict.fromkeys(range(3, 8), 7), 8: 1, 10: 7, 11: 7}
    check_all(open_storage(path))


def test_a_row_that_several_rows_match_fails_the_merge(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path, ordering=None)
    routed(path, Operation.INSERT, [rows(0, 9)])
    session = WriteSession(CountingStorage(open_storage(path)), OPTIONS.read({}))
    clauses = (Clause(ClauseKind.MATCHED, True),)
    with pytest.raises(CommitError, match="more than one"):
        write_routed(
            session, MergedRows(MergePlan("id", Sides(), clauses), rows(0, 0).schema), LocalExecutors([rows(3, 5), rows(4, 6)])
        )
    assert len(contents(path)) == 9
    check_all(open_storage(path))
