"""A conflict is a conflict of rows: writers that bring different rows land both, wherever these rows go."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.api import plain_write
from hudimeta.api.plain_write import PlainWrite
from hudimeta.commit.locks.fence import FencedLock
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import NotFound
from hudimeta.services import compaction
from hudimeta.storage import CountingStorage, LocalStorage, Storage
from hudimeta.table import stated_keys
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline import SystemClock
from hudimeta.types import Operation
from hudimeta.write import settling
from hudimeta.write.routed.driver import write_routed
from hudimeta.write.routed.executors import LocalExecutors
from hudimeta.write.routed.sources import GivenRows
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted, Paused, finish, interruptible
from tests.write.doors import parts_of
from tests.write.routed.test_attempts import Unruly

INDEXES: dict[str, dict[str, str]] = {
    "simple": {"hoodie.index.type": "SIMPLE"},
    "bloom": {"hoodie.index.type": "BLOOM", "hoodie.metadata.index.bloom.filter.enable": "true"},
    "global bloom": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "records": {"hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"},
    "buckets": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
}
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
NO_SMALL = {"hoodie.parquet.small.file.limit": "0"}
UNSTORED = {"hoodie.populate.meta.fields": "false"}


def table_of(path: Path, kind: str = "COPY_ON_WRITE", **options: str) -> ModelledTable:
    """Ten rows in two partitions."""
    given = {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": kind, **options}
    made = ModelledTable(str(path / "t"), given)
    made.write(Operation.UPSERT, simple_rows(range(10), 1))
    return made


def begun(
    table: ModelledTable,
    rows: pa.Table,
    operation: Operation = Operation.UPSERT,
    storage: Storage | None = None,
    **options: str,
) -> Paused:
    """A write that has planned its files."""
    chosen = OPTIONS.read({**table.options.given, **options})
    return Paused(lambda engine: write_rows(WriteSession(storage or table.storage, chosen, engine=engine), operation, rows))


def finished(table: ModelledTable, *writes: tuple[Paused, pa.Table]) -> list[int]:
    """Finish writes, hold the table to having the rows of all, and say how often each was tried."""
    attempts = [write.finish().attempts for write, _ in writes]
    for _, rows in writes:
        table.model.write(Operation.UPSERT, rows)
    table.model.check(table.read())
    check_all(table.storage)
    return attempts


def files_of(table: ModelledTable, partition: str) -> set[str]:
    """Data files on storage."""
    return {name for name in os.listdir(f"{table.path}/{partition}") if "parquet" in name and not name.endswith(".crc")}


def on_storage(table: ModelledTable, instant: str) -> set[str]:
    """Files of rows that bear an instant."""
    names = (name for partition in ("p0", "p1") for name in os.listdir(f"{table.path}/{partition}"))
    return {name for name in names if instant in name and not name.endswith(".crc")}


def stated(table: ModelledTable, instant: str) -> set[str]:
    """Those of them that readers read."""
    slices = Table(table.path).file_slices().to_pylist()
    return {name for one in slices for name in (one["base_file"], *one["log_files"]) if name and instant in name}


@pytest.mark.rotation(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", ["simple", "bloom", "global bloom", "records"])
@pytest.mark.parametrize("small", [{}, NO_SMALL], ids=["into one small file", "into file groups of their own"])
def test_new_rows_of_one_partition_land_both(tmp_path: Path, kind: str, index: str, small: dict[str, str]) -> None:
    table = table_of(tmp_path, kind, **INDEXES[index], **small)
    mine, theirs = simple_rows([20, 22], 2), simple_rows([24, 26], 2)
    one, two = begun(table, mine), begun(table, theirs)
    assert finished(table, (one, mine), (two, theirs)) == [1, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_keys_that_are_not_stored_are_compared_as_well(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path, kind, **UNSTORED, **NO_SMALL)
    batches = [simple_rows(ids, 2) for ids in ([20, 22], [24], [24, 26])]
    one, two, three = (begun(table, rows) for rows in batches)
    assert finished(table, (one, batches[0]), (two, batches[1]), (three, batches[2])) == [1, 1, 2]


def test_a_small_file_that_two_fill_leaves_no_file_behind(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    mine, theirs = simple_rows([20, 21], 2), simple_rows([24], 2)
    one, two = begun(table, theirs), begun(table, mine)
    one.finish()
    report = two.finish()
    assert (report.inserted, report.file_groups_added, report.files_written) == (2, 1, 2)
    assert any("1 of them written again" in note for note in report.notes)
    assert on_storage(table, report.instant) == stated(table, report.instant)
    assert len(files_of(table, "p0")) == 3, "the first file, the other writer's over it, and ours"
    table.model.write(Operation.UPSERT, mine)
    table.model.write(Operation.UPSERT, theirs)
    table.model.check(table.read())
    check_all(table.storage)


@pytest.mark.parametrize("index", ["simple", "records"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_both_insert_is_written_once(tmp_path: Path, kind: str, index: str) -> None:
    table = table_of(tmp_path, kind, **INDEXES[index])
    mine, theirs = simple_rows([20, 22], 2), simple_rows([22, 24], 3)
    one, two = begun(table, mine), begun(table, theirs)
    assert finished(table, (one, mine), (two, theirs)) == [1, 2]


def test_an_insert_that_must_not_repeat_keys_looks_in_every_partition(tmp_path: Path) -> None:
    table = table_of(tmp_path, **INDEXES["records"], **{"hoodie.datasource.insert.dup.policy": "drop"})
    mine = simple_rows([22, 24], 3)
    theirs = simple_rows([22], 2).set_column(1, "part", pa.array(["elsewhere"]))
    insert = begun(table, mine, Operation.INSERT)
    begun(table, theirs).finish()
    assert insert.finish().dropped_duplicates == 1
    table.model.write(Operation.UPSERT, theirs)
    table.model.write(Operation.UPSERT, simple_rows([24], 3))
    table.model.check(table.read())
    check_all(table.storage)


@pytest.mark.parametrize(("later", "attempts"), [(True, 1), (False, 2)], ids=["began last", "began first"])
def test_rows_of_one_base_file_are_changed_over_the_other_ones_file(tmp_path: Path, later: bool, attempts: int) -> None:
    """Readers take the base file of the latest instant: only who began last can write its own over the other's."""
    table = table_of(tmp_path)
    mine, theirs = simple_rows([2, 4, 30], 5), simple_rows([6], 6)
    writes = [(begun(table, rows), rows) for rows in ((theirs, mine) if later else (mine, theirs))]
    other, own = writes if later else writes[::-1]
    assert finished(table, other, own) == [1, attempts]


def test_rows_that_the_other_changed_or_deleted_are_a_conflict(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    deletes, updates, mine, again = (simple_rows(*of) for of in (([2], 5), ([4], 7), ([2, 4], 6), ([4, 6], 8)))
    one = begun(table, deletes, Operation.DELETE)
    two = begun(table, mine)
    one.finish()
    table.model.write(Operation.DELETE, deletes)
    assert finished(table, (two, mine)) == [2]
    three, four = begun(table, updates), begun(table, again)
    assert finished(table, (three, updates), (four, again)) == [1, 2]


def test_a_write_that_began_long_ago_is_noticed_when_it_ends(tmp_path: Path) -> None:
    """It is older than a commit that the other one has seen, and new to it all the same."""
    table = table_of(tmp_path)
    slow, between, mine = (simple_rows(*of) for of in (([2, 4], 5), ([1], 6), ([4, 6], 7)))
    first = begun(table, slow)
    table.write(Operation.UPSERT, between)
    second = begun(table, mine)
    assert finished(table, (first, slow), (second, mine)) == [1, 2]


@pytest.mark.rotation(3)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("index", ["simple", "records", "buckets"])
def test_log_files_of_different_rows_lie_side_by_side(tmp_path: Path, index: str, first: int) -> None:
    table = table_of(tmp_path, "MERGE_ON_READ", **INDEXES[index])
    batches = simple_rows([2], 5), simple_rows([4, 6], 6)
    writes = [(begun(table, rows), rows) for rows in batches]
    assert finished(table, writes[first], writes[1 - first]) == [1, 1]
    assert sum(len(one["log_files"]) for one in Table(table.path).file_slices().to_pylist()) == 2
    shared = simple_rows([4], 7), simple_rows([4, 8], 8)
    writes = [(begun(table, rows), rows) for rows in shared]
    assert finished(table, writes[first], writes[1 - first]) == [1, 2]


@pytest.mark.parametrize("planned_first", [True, False])
@pytest.mark.parametrize(("cdc", "attempts"), [("false", 1), ("true", 2)], ids=["", "capturing changes"])
def test_log_files_lie_on_what_a_compaction_wrote_meanwhile(
    tmp_path: Path, planned_first: bool, cdc: str, attempts: int
) -> None:
    table = table_of(tmp_path, "MERGE_ON_READ", **INDEXES["records"], **{"hoodie.table.cdc.enabled": cdc})
    table.write(Operation.UPSERT, simple_rows([0, 2], 2))
    mine, theirs = simple_rows([2, 4], 5), simple_rows([0, 6], 4)
    planned = Table(table.path).schedule_compaction() if planned_first else None
    one, other = begun(table, mine), begun(table, theirs)
    assert finished(table, (other, theirs)) == [1]
    compaction.execute(table.session(), planned) if planned else Table(table.path).compact()
    assert finished(table, (one, mine)) == [attempts]
    on_top = [row for row in Table(table.path).file_slices().to_pylist() if row["log_files"]]
    assert [len(row["log_files"]) for row in on_top] == [2 if planned_first else 1]
    assert all(row["base_file"].endswith(f"{row['base_instant']}.parquet") for row in on_top)
    Table(table.path).compact()
    table.check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_bucket_is_begun_once(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path, kind, **INDEXES["buckets"])

    def rows(*ids: int) -> pa.Table:
        return simple_rows(ids, 2).set_column(1, "part", pa.array(["new"] * len(ids)))

    mine, theirs = rows(1, 2, 5), rows(3, 4, 6)
    one, two = begun(table, mine), begun(table, theirs)
    assert finished(table, (one, mine), (two, theirs)) == [1, 2]


def test_what_tasks_wrote_stands_or_is_tried_again_as_a_whole(tmp_path: Path) -> None:
    table = table_of(tmp_path, **NO_SMALL)

    def by_tasks(rows: pa.Table) -> tuple[Paused, pa.Table]:
        def write(engine: Interrupted) -> CommitReport:
            session = WriteSession(table.storage, table.options, engine=engine)
            executors = interruptible(session, LocalExecutors(parts_of(rows)))
            return write_routed(session, GivenRows(Operation.UPSERT, rows.schema), executors)

        return Paused(write), rows

    one, two, three = (by_tasks(simple_rows(ids, 2)) for ids in ([20, 22], [24, 26], [26, 28]))
    assert finished(table, one, two, three) == [1, 1, 2]
    four, five = (by_tasks(simple_rows(ids, 5)) for ids in ([2], [4]))
    four[0].finish()
    report = five[0].finish()
    assert report.attempts == 2
    assert any("the whole write was tried again" in note for note in report.notes)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_second_attempt_wrote_is_written_again_once(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both attempts and the pieces written again bear one instant: their files must neither meet nor stay side by side."""
    table = table_of(tmp_path, kind)
    shared, grown, mine = simple_rows([2], 2), simple_rows([21, 23], 3), simple_rows([2, 4, 1, 3, 30], 4)
    one, two = begun(table, shared), begun(table, grown)
    write = PlainWrite.begin(table.path, table.options.given, mine.schema, overwrite=False)
    lost, counted = (write.write(mine.to_batches(), 0, attempt) for attempt in (7, 8))
    others = iter((one, two))
    engine = Interrupted(lambda: next(others).finish(), times=2)
    monkeypatch.setattr(plain_write, "WriteSession", partial(WriteSession, engine=engine))
    report = write.commit([counted])
    assert lost != counted
    assert (report.instant, report.attempts) == (write.open_write.instant, 2)
    assert any("1 of them written again" in note for note in report.notes)
    for rows in (shared, grown, mine):
        table.model.write(Operation.UPSERT, rows)
    table.model.check(table.read())
    check_all(table.storage)
    assert on_storage(table, report.instant) == stated(table, report.instant)


def test_logs_of_attempts_at_tasks_are_told_apart_when_the_write_is_tried_again(tmp_path: Path) -> None:
    """Of each task two or three attempts end, one of which counts; then others changed the same file groups."""
    table = table_of(tmp_path, "MERGE_ON_READ", **INDEXES["buckets"])
    theirs, mine = simple_rows([2, 3], 2), simple_rows([*range(6), 40, 41], 3)
    others = Interrupted(lambda: table.write(Operation.UPSERT, theirs))
    session = WriteSession(table.storage, table.options, engine=others)
    executors = interruptible(session, Unruly(parts_of(mine), 1))
    report = write_routed(session, GivenRows(Operation.UPSERT, mine.schema), executors)
    table.model.write(Operation.UPSERT, mine)
    assert report.attempts == 2
    finish(table)
    logs = stated(table, report.instant)
    assert len(logs) == len({name.rpartition(".log.")[0] for name in logs}) > 1
    assert on_storage(table, report.instant) == logs


def test_an_overwrite_takes_no_row_away_that_came_meanwhile(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    rows, other = simple_rows([2], 5), simple_rows([20], 5)
    overwrite = begun(table, rows, Operation.INSERT_OVERWRITE)
    begun(table, other).finish()
    assert overwrite.finish().attempts == 2
    table.model.write(Operation.UPSERT, other)
    table.model.write(Operation.INSERT_OVERWRITE, rows)
    table.model.check(table.read())


def test_rows_left_out_because_of_others_that_were_overwritten_are_written_after_all(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    rows, other = simple_rows([2, 20], 5), simple_rows([4], 5)
    insert = begun(table, rows, Operation.INSERT, **{"hoodie.datasource.insert.dup.policy": "drop"})
    begun(table, other, Operation.INSERT_OVERWRITE).finish()
    assert insert.finish().dropped_duplicates == 0
    table.model.write(Operation.INSERT_OVERWRITE, other)
    table.model.write(Operation.INSERT, rows)
    table.model.check(table.read())


class Forgetful(LocalStorage):
    """Does not find a file of a write the first time that it is asked for, as if a cleaner had been there."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.lost = "\0"

    def open_input(self, path: str, size: int = 0) -> Any:
        """See `Storage`."""
        if self.lost in path:
            self.lost = "\0"
            raise NotFound(path)
        return super().open_input(path, size)


def test_keys_that_cannot_be_told_are_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stated_keys, "_MOST", 0)
    table = table_of(tmp_path, **NO_SMALL)
    mine, theirs = simple_rows([22], 9), simple_rows([20], 9)
    storage = Forgetful(table.path)
    one, two = begun(table, mine, storage=storage), begun(table, theirs)
    storage.lost = two.finish().instant
    table.model.write(Operation.UPSERT, theirs)
    assert finished(table, (one, mine)) == [2]


# What it costs


class CountedLock(FencedLock):
    """A table lock that counts how often it is taken."""

    def __init__(self, inner: FencedLock) -> None:
        super().__init__(inner, SystemClock())
        self.taken = 0

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """See `TableLock`."""
        self.taken += 1
        with super().held():
            yield


@pytest.mark.parametrize(("others", "taken"), [(0, 1), (1, 1), (5, 2)])
def test_many_commits_are_looked_at_before_the_lock_is_taken_again(
    tmp_path: Path, others: int, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "_FEW", 2)
    monkeypatch.setattr(stated_keys, "_MOST", 0)
    table, locks = table_of(tmp_path, **NO_SMALL, **{"hoodie.metadata.compact.max.delta.commits": "100"}), []

    def write(engine: object) -> CommitReport:
        session = WriteSession(table.storage, table.options, engine=engine)  # type: ignore[arg-type]
        locks.append(CountedLock(session.lock))
        session.lock = locks[-1]
        return write_rows(session, Operation.UPSERT, simple_rows([50], 2))

    paused = Paused(write)
    for number in range(others):
        table.write(Operation.UPSERT, simple_rows([20 + 2 * number], 2))
    assert paused.finish().attempts == 1
    assert locks[0].taken == taken


@pytest.mark.parametrize(("stated", "read"), [(1000, 0), (0, 1)])
def test_who_is_alone_pays_for_nobody_else(stated: int, read: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stated_keys, "_MOST", stated)
    table = table_of(tmp_path, **NO_SMALL)
    alone = table.write(Operation.UPSERT, simple_rows([20], 2), CountingStorage(table.storage))
    assert alone.requests["LIST", "timeline"] == 2
    one = begun(table, simple_rows([22], 2), storage=CountingStorage(table.storage))
    table.write(Operation.UPSERT, simple_rows([24], 2))
    beside = one.finish()
    assert beside.requests["LIST", "timeline"] == 2
    assert ("GET", "data") not in alone.requests
    key_columns = beside.requests.get(("GET", "data"), 0)
    assert key_columns == read, "the key column of the other writer's file, unless its commit states the keys"
