"""Attempts of tasks: whatever becomes of single ones, rows, files and indexes are those of the write."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudimeta
from hudimeta.commit.markers import STAGING, Marker, MarkerKind, staging_folder, write_marker
from hudimeta.commit.strays import metadata_marker
from hudimeta.errors import CommitError, HudiError, NotFound, StorageError
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.routed.executors import LocalExecutors
from tests.write.routed.sides import INDEXED, KINDS, contents, contents_of, routed, rows, same_tables


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
    """Loses its machines at one of its jobs, after the tasks have done their work.

    Args:
        at: Which job, from 0.
    """

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


@pytest.mark.rotation(3)
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
