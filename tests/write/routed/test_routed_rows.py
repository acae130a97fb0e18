"""A routed write does to a table what the engine's own does: rows, reports, indexes; whatever becomes of single attempts."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudimeta
from hudimeta.commit.markers import STAGING, Marker, MarkerKind, staging_folder, write_marker
from hudimeta.commit.report import CommitReport
from hudimeta.commit.strays import metadata_marker
from hudimeta.config import OPTIONS
from hudimeta.errors import CommitError, ConfigError, DuplicateKeys, HudiError, NotFound, SchemaMismatch, StorageError
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.merge_clauses import Clause, ClauseKind, Sides
from hudimeta.write.routed.driver import change_routed, merge_routed, write_routed
from hudimeta.write.routed.executors import LocalExecutors
from hudimeta.write.routed.merging import MergePlan
from hudimeta.write.row_changes import RowChange
from hudimeta.write.session import WriteSession

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
SAME = ("inserted", "updated", "deleted", "unmatched_deletes", "dropped_duplicates", "looked_up", "found", "moved")
"""What a report says alike; into how many files tasks write is their own affair."""


def rows(first: int, last: int, ts: int = 1, parts: int = 3) -> pa.Table:
    """Rows of some ids in a few partitions."""
    ids = np.arange(first, last)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "part": pa.array([f"p{i % parts}" for i in ids], pa.string()),
            "ts": pa.array(np.full(len(ids), ts), pa.int64()),
            "x": pa.array(ids * float(ts)),
        }
    )


def routed(
    path: Path, operation: Operation, parts: Sequence[pa.Table], options: Mapping[str, str] | None = None, run: Any = None
) -> CommitReport:
    """Write the parts, each by a task."""
    session = WriteSession(CountingStorage(open_storage(path)), OPTIONS.read(options))
    return write_routed(session, operation, run or LocalExecutors(parts), parts[0].schema)


def same_tables(tmp_path: Path, **more: Any) -> tuple[Path, Path]:
    """Two empty tables alike: one for routed writes, one for the engine's."""
    paths = tmp_path / "routed", tmp_path / "engine"
    for path in paths:
        arguments = {"key": "id", "partition_by": "part", "ordering": "ts", **more}
        hudimeta.Table.create(path, rows(0, 0).schema, name="t", **arguments)
    return paths


def contents(path: Path) -> list[tuple[Any, ...]]:
    """All rows, sorted."""
    table = hudimeta.Table(path).scan(columns=["id", "part", "ts", "x"]).to_table()
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def both(
    paths: tuple[Path, Path], operation: Operation, parts: Sequence[pa.Table], options: Mapping[str, str] | None = None
) -> CommitReport:
    """Do the same to both tables, and compare what came of it."""
    report = routed(paths[0], operation, parts, options)
    expected = getattr(hudimeta.Table(paths[1], options), operation.value.lower())(pa.concat_tables(parts))
    for name in SAME:
        assert getattr(report, name) == getattr(expected, name), (operation, name)
    assert contents(paths[0]) == contents(paths[1])
    return report


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "indexes", [["record_index", "column_stats", "secondary_index_ts", "bloom_filters"], ["column_stats"]], ids=str
)
def test_every_operation_does_what_the_engine_does(tmp_path: Path, kind: str, indexes: list[str]) -> None:
    paths = same_tables(tmp_path, type=kind, indexes=indexes)
    both(paths, Operation.BULK_INSERT, [rows(0, 100), rows(100, 150)])
    # Ids 90 to 109 come twice: the newer ones, of the second task, win.
    report = both(paths, Operation.UPSERT, [rows(80, 110, 2), rows(90, 170, 3)])
    assert report.inserted == 20
    assert report.updated == 70
    both(paths, Operation.INSERT, [rows(200, 210), rows(210, 230)])
    both(paths, Operation.DELETE, [rows(0, 10).select(["id", "part"]), rows(500, 505).select(["id", "part"])])
    # Other partitions: with a global index the rows move, without one they are new.
    both(paths, Operation.UPSERT, [rows(20, 40, 5, parts=2)])
    both(paths, Operation.INSERT_OVERWRITE, [rows(7, 8, 9), rows(10, 11, 9)])
    check_all(open_storage(paths[0]))
    both(paths, Operation.INSERT_OVERWRITE_TABLE, [rows(0, 5, 9)])
    check_all(open_storage(paths[0]))


SETTINGS = {
    "buckets": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"},
    "rings": {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "4",
    },
    "bloom": {"hoodie.index.type": "BLOOM"},
    "global simple": {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"},
    "global bloom, nothing moves": {
        "hoodie.index.type": "GLOBAL_BLOOM",
        "hoodie.bloom.index.update.partition.path": "false",
    },
    "change capture": {"hoodie.table.cdc.enabled": "true"},
    "avro logs": {"hoodie.logfile.data.block.format": "avro"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_index_and_form_of_table(tmp_path: Path, name: str) -> None:
    options = SETTINGS[name]
    kind = "COPY_ON_WRITE" if name in ("bloom", "change capture") else "MERGE_ON_READ"
    paths = same_tables(tmp_path, type=kind, indexes=["column_stats"], options=options)
    both(paths, Operation.UPSERT, [rows(0, 40), rows(40, 60)], options)
    both(paths, Operation.UPSERT, [rows(30, 50, 2), rows(45, 80, 3, parts=2)], options)
    both(paths, Operation.DELETE, [rows(0, 9).select(["id", "part"])], options)
    both(paths, Operation.INSERT, [rows(90, 95), rows(95, 99)], options)
    both(paths, Operation.BULK_INSERT, [rows(190, 195), rows(195, 199)], options)
    if name != "rings":  # a ring names its file groups, so that an overwrite cannot begin others
        both(paths, Operation.INSERT_OVERWRITE, [rows(3, 4, 7), rows(6, 7, 7)], options)
    check_all(open_storage(paths[0]))


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.combine.before.insert": "true"},
        {"hoodie.datasource.insert.dup.policy": "drop"},
        {"hoodie.datasource.write.insert.drop.duplicates": "true"},
        {"hoodie.combine.before.upsert": "false"},
    ],
    ids=str,
)
def test_duplicates_are_treated_alike(tmp_path: Path, options: dict[str, str]) -> None:
    paths = same_tables(tmp_path, indexes=["record_index", "column_stats"])
    both(paths, Operation.INSERT, [rows(0, 20)], options)
    both(paths, Operation.INSERT, [rows(10, 30, 2)], options)
    both(paths, Operation.UPSERT, [rows(25, 35, 3)], options)
    check_all(open_storage(paths[0]))


def test_a_key_that_must_not_be_there_fails_the_write(tmp_path: Path) -> None:
    paths = same_tables(tmp_path)
    routed(paths[0], Operation.INSERT, [rows(0, 5)])
    with pytest.raises(DuplicateKeys):
        routed(paths[0], Operation.INSERT, [rows(6, 8), rows(4, 6)], {"hoodie.datasource.insert.dup.policy": "fail"})
    assert contents(paths[0]) == contents_of(rows(0, 5))
    check_all(open_storage(paths[0]))


def contents_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table in memory, sorted."""
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_generated_keys_are_each_others_like(tmp_path: Path) -> None:
    path = tmp_path / "t"
    hudimeta.Table.create(path, rows(0, 0).schema, partition_by="part")
    for operation in (Operation.INSERT, Operation.BULK_INSERT, Operation.UPSERT):
        routed(path, operation, [rows(0, 30), rows(0, 30)])
    found = hudimeta.Table(path).scan(columns=["_hoodie_record_key", "id"]).to_table()
    assert found.num_rows == 180
    assert len(found["_hoodie_record_key"].unique()) == 180
    check_all(open_storage(path))


def test_rows_that_do_not_fit_leave_nothing(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path)
    with pytest.raises(SchemaMismatch, match="part"):
        routed(path, Operation.UPSERT, [rows(0, 5).drop_columns(["part"])])
    bad = rows(0, 2).set_column(0, "id", pa.array([None, 1], pa.int64()))
    with pytest.raises(SchemaMismatch, match="record key"):
        routed(path, Operation.UPSERT, [rows(5, 9), bad])
    assert contents(path) == []
    check_all(open_storage(path))


def test_new_columns_come_with_the_rows(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path, indexes=["record_index", "column_stats"])
    routed(path, Operation.UPSERT, [rows(0, 5)])
    routed(path, Operation.UPSERT, [rows(3, 8, 2).append_column("y", pa.array(["new"] * 5))])
    found = hudimeta.Table(path).scan(columns=["id", "y"]).to_table().sort_by("id")
    assert found["y"].to_pylist() == [None] * 3 + ["new"] * 5
    check_all(open_storage(path))


# Rows of the table


def changed(
    path: Path, assignments: Mapping[str, Any] | None, where: Any, options: Mapping[str, str] | None = None
) -> CommitReport:
    """An update, or a delete without assignments, by tasks."""
    session = WriteSession(CountingStorage(open_storage(path)), OPTIONS.read(options))
    return change_routed(session, RowChange(assignments), where, LocalExecutors([]))


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
    report = merge_routed(session, plan, LocalExecutors(parts), source.schema)
    assert (report.updated, report.deleted, report.inserted) == (expected.updated, expected.deleted, expected.inserted)
    assert contents(paths[0]) == contents(paths[1])
    check_all(open_storage(paths[0]))


def test_a_row_that_several_rows_match_fails_the_merge(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path)
    routed(path, Operation.INSERT, [rows(0, 9)])
    session = WriteSession(CountingStorage(open_storage(path)), OPTIONS.read({}))
    clauses = (Clause(ClauseKind.MATCHED, True),)
    with pytest.raises(CommitError, match="more than one"):
        merge_routed(session, MergePlan("id", Sides(), clauses), LocalExecutors([rows(3, 5), rows(4, 6)]), rows(0, 0).schema)
    assert len(contents(path)) == 9
    check_all(open_storage(path))


# How much each step is about


class Weighed(LocalExecutors):
    """Notes what each job is said to be about; None where nobody knows."""

    def __init__(self, parts: Sequence[pa.Table]) -> None:
        super().__init__(parts)
        self.sizes: dict[str, int | None] = {}

    def map(self, task: Any, items: Any, size: int | None = None) -> list[Any]:
        self.sizes[type(task.task).__name__] = size
        return super().map(task, items, size)


def sizes(path: Path, parts: Sequence[pa.Table], options: Mapping[str, str] | None = None) -> dict[str, int | None]:
    """What the jobs of an upsert are about."""
    run = Weighed(parts)
    routed(path, Operation.UPSERT, parts, options, run)
    return run.sizes


def base_bytes(path: Path) -> int:
    """Of the base files of the newest slices."""
    return sum(hudimeta.Table(path).file_slices()["base_size"].to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_is_as_large_as_the_rows_and_files_that_it_passes_through_memory(tmp_path: Path, kind: str) -> None:
    path, _ = same_tables(tmp_path, type=kind, indexes=["record_index"])
    routed(path, Operation.BULK_INSERT, [rows(0, 30_000)])
    base, batch = base_bytes(path), rows(0, 60, 2)
    found = sizes(path, [batch])
    assert 0 < (found["LookUp"] or 0) < 20_000, "a record index reads no file of the table"
    low, high = (base, base + 20_000) if kind == "COPY_ON_WRITE" else (0, 20_000)
    assert low < (found["PieceWriter"] or 0) < high


def test_a_look_up_in_files_is_as_large_as_their_keys_where_they_are_few(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path, indexes=["column_stats"])
    routed(path, Operation.BULK_INSERT, [rows(0, 30_000)])
    alone, base = rows(0, 60, 2, parts=1), base_bytes(path)
    found = sizes(path, [alone])["LookUp"] or 0
    assert base / 3 / 20 < found < base / 3 / 16 + 20_000, "one partition of three"
    assert sizes(path, [alone], {"hoodie.index.type": "GLOBAL_SIMPLE"})["LookUp"] is None
    assert sizes(path, [rows(0, 200, 3, parts=100)])["LookUp"] is None, "many partitions"


# Attempts


class Unruly(LocalExecutors):
    """Runs every task twice or thrice: some attempts fail at the end of their work, and any one of the others counts.

    Args:
        parts: The input.
        seed: Of chance.
    """

    def __init__(self, parts: Sequence[pa.Table], seed: int) -> None:
        super().__init__(parts)
        self._chance = np.random.default_rng(seed)

    def over_rows(self, task: Any) -> list[Any]:
        return super().over_rows(lambda batches, number, _: self._one(lambda at: task(iter(list(batches)), number, at)))

    def map(self, task: Any, items: Any, size: int | None = None) -> list[Any]:
        return super().map(lambda item, _: self._one(lambda at: task(pickle.loads(pickle.dumps(item)), at)), items)

    def _one(self, run: Callable[[int], Any]) -> Any:
        results = [run(self._attempt()) for _ in range(int(self._chance.integers(2, 4)))]
        return results[int(self._chance.integers(len(results)))]


@pytest.mark.parametrize("kind", KINDS)
def test_attempts_that_do_not_count_leave_no_row_and_no_file(tmp_path: Path, kind: str) -> None:
    paths = same_tables(tmp_path, type=kind, indexes=["record_index", "column_stats", "secondary_index_ts"])
    for seed, (operation, parts) in enumerate(
        [
            (Operation.BULK_INSERT, [rows(0, 60), rows(60, 90)]),
            (Operation.UPSERT, [rows(50, 70, 2), rows(65, 120, 3)]),
            (Operation.DELETE, [rows(0, 20).select(["id", "part"])]),
            (Operation.INSERT_OVERWRITE, [rows(1, 2, 9), rows(4, 5, 9)]),
        ]
    ):
        routed(paths[0], operation, parts, run=Unruly(parts, seed))
        getattr(hudimeta.Table(paths[1]), operation.value.lower())(pa.concat_tables(parts))
        assert contents(paths[0]) == contents(paths[1])
        check_all(open_storage(paths[0]))


class Broken(LocalExecutors):
    """Loses its machines at one of its jobs, after the tasks have done their work. Args: at: Which job, from 0."""

    def __init__(self, parts: Sequence[pa.Table], at: int) -> None:
        super().__init__(parts)
        self._left = at

    def over_rows(self, task: Any) -> list[Any]:
        return self._checked(super().over_rows(task))

    def map(self, task: Any, items: Any, size: int | None = None) -> list[Any]:
        return self._checked(super().map(task, items))

    def _checked(self, results: list[Any]) -> list[Any]:
        self._left -= 1
        if self._left < 0:
            raise StorageError("the job was cancelled", "Run it again.")
        return results


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_job_that_is_cancelled_leaves_the_table_as_it_was(tmp_path: Path, at: int) -> None:
    path, _ = same_tables(tmp_path, indexes=["record_index", "column_stats"])
    routed(path, Operation.UPSERT, [rows(0, 20)])
    with pytest.raises(HudiError, match="cancelled"):
        routed(path, Operation.UPSERT, [rows(10, 30, 2)], run=Broken([rows(10, 30, 2)], at))
    assert contents(path) == contents_of(rows(0, 20))
    check_all(open_storage(path))
    routed(path, Operation.UPSERT, [rows(10, 30, 2)])
    assert contents(path) == contents_of(pa.concat_tables([rows(0, 10), rows(10, 30, 2)]))
    check_all(open_storage(path))


class Straggling(LocalExecutors):
    """Keeps its tasks, and the rows that they read, to run each once more when the write is long over."""

    def __init__(self, path: Path, parts: Sequence[pa.Table]) -> None:
        super().__init__(parts)
        self.late: list[Callable[[], Any]] = []
        self._staged, self._kept = path / STAGING, path.parent / "kept"

    def map(self, task: Any, items: Any, size: int | None = None) -> list[Any]:
        self.late += [lambda item=item: task(item, 1000 + len(self.late)) for item in items]
        found = super().map(task, items)
        shutil.copytree(self._staged, self._kept, dirs_exist_ok=True)
        return found

    def end_late(self) -> None:
        """Run them now: each finds that the write is over, or that the files are gone whose bloom filters it was to read."""
        shutil.copytree(self._kept, self._staged, dirs_exist_ok=True)
        for late in self.late:
            with pytest.raises((CommitError, NotFound), match=r"while a task wrote for it|no such file"):
                late()


INDEXED = ["column_stats", "record_index", "bloom_filters", "secondary_index_ts"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fails", [None, 0, 1, 2])
def test_attempts_that_end_after_the_write_take_their_files_back(tmp_path: Path, kind: str, fails: int | None) -> None:
    path, _ = same_tables(tmp_path, type=kind, indexes=INDEXED)
    routed(path, Operation.UPSERT, [rows(0, 20)])
    run: Any = Straggling(path, [rows(10, 30, 2)])
    if fails is not None:
        original = run.map
        jobs = iter(range(3))

        def cancelled(task: Any, items: Any, size: int | None = None) -> list[Any]:
            found: list[Any] = original(task, items, size)
            if next(jobs) == fails:
                raise StorageError("the job was cancelled", "Run it again.")
            return found

        run.map = cancelled
        with pytest.raises(HudiError, match="cancelled"):
            routed(path, Operation.UPSERT, [rows(10, 30, 2)], run=run)
    else:
        routed(path, Operation.UPSERT, [rows(10, 30, 2)], run=run)
    before = contents(path)
    run.end_late()
    assert contents(path) == before
    routed(path, Operation.INSERT, [rows(100, 101)])
    check_all(open_storage(path))
    assert not list((path / ".hoodie/metadata/.hoodie/.temp").glob("*"))


def test_a_file_of_a_task_that_died_after_its_write_goes_with_the_next_write(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path, indexes=["column_stats"])
    for rolled_back in (False, True):
        report = routed(path, Operation.UPSERT, [rows(0, 20)])
        instant = str(int(report.instant) - 1) if rolled_back else report.instant
        name = f"p0/11111111-2222-3333-4444-555555555555-0_0-0-9_{instant}.parquet"
        write_marker(open_storage(path), instant, Marker(name, MarkerKind.CREATE))
        (path / name).write_bytes(b"half a file")
        routed(path, Operation.INSERT, [rows(100, 101)])
        assert not (path / name).exists()
        check_all(open_storage(path))


def test_an_index_log_of_a_task_that_died_after_its_write_goes_with_the_next_write(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path, indexes=INDEXED)
    for rolled_back in (False, True):
        report = routed(path, Operation.UPSERT, [rows(0, 20)])
        instant = str(int(report.instant) - 1) if rolled_back else report.instant
        log = f"record_index/.record-index-0000-0_{instant}.log.1_1-0-999"
        write_marker(open_storage(path).sub(METADATA_ROOT), instant, metadata_marker(log))
        (path / ".hoodie/metadata" / log).write_bytes(b"half a file")
        routed(path, Operation.INSERT, [rows(100, 101)])
        check_all(open_storage(path))
        assert not (path / ".hoodie/metadata" / log).exists()
        assert not list((path / ".hoodie/metadata/.hoodie/.temp").glob("*"))


def test_rows_that_a_task_laid_aside_after_its_write_go_with_the_next_write(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path, indexes=["column_stats"])
    report = routed(path, Operation.UPSERT, [rows(0, 20)])
    rolled_back = staging_folder(str(int(report.instant) - 1))
    open_storage(path).put(f"{rolled_back}/rows.arrow", b"rows")
    routed(path, Operation.INSERT, [rows(100, 101)])
    check_all(open_storage(path))


def test_requests_of_tasks_are_in_the_report(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path, indexes=["column_stats"])
    report = routed(path, Operation.UPSERT, [rows(0, 20), rows(20, 30)])
    files = [file for part in path.iterdir() if part.name.startswith("p") for file in part.glob("*.parquet")]
    assert report.requests["PUT", "data"] >= len(files) == 3
    found = hudimeta.Table(path).report()
    assert found.requests["PUT", "data"] == report.requests["PUT", "data"]


def test_what_is_handed_back_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path, indexes=["record_index", "column_stats", "secondary_index_ts"])
    collected = []
    for first, last in ((0, 300), (1000, 31_000)):
        run = LocalExecutors([rows(first, last)])
        routed(path, Operation.UPSERT, [rows(first, last)], run=run)
        collected.append(run.collected)
    assert collected[1] < 2 * collected[0] + 50_000
