"""Two writers at once: both succeed, or one sees that it lost; never is a row lost or a key doubled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta.api.plain_write import PlainWrite
from hudimeta.api.table import Table
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import CommitConflict, FileRemoved
from hudimeta.storage import FileInfo, LocalStorage, Storage, open_storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import ALWAYS, check_all
from hudimeta.types import Action, Operation
from hudimeta.write.creation import create_table
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Clock, Interrupted, WithoutGuards, finish, together

ANY_GROUP = {**SIMPLE_OPTIONS, "hoodie.parquet.small.file.limit": "0"}


def write_while(
    table: ModelledTable,
    operation: Operation,
    rows: pa.Table,
    meanwhile: Callable[[], object],
    *,
    times: int = 1,
    storage: Storage | None = None,
) -> CommitReport:
    """Write, and let something happen when the write has begun and planned but not written its files."""
    session = WriteSession(storage or table.storage, table.options, engine=Interrupted(meanwhile, times))
    report = write_rows(session, operation, rows)
    table.model.write(operation, rows)
    table.model.remember(report.instant)
    return report


def test_inserts_to_different_partitions_both_succeed(table: ModelledTable) -> None:
    ours = write_while(
        table,
        Operation.INSERT,
        simple_rows(range(20, 30, 2), 2),
        lambda: table.write(Operation.INSERT, simple_rows(range(21, 31, 2), 2)),
    )
    assert ours.attempts == 1
    finish(table)


def test_upserts_of_one_file_group_are_tried_again(table: ModelledTable) -> None:
    ours = write_while(
        table,
        Operation.UPSERT,
        simple_rows([2, 4], 3),
        lambda: table.write(Operation.UPSERT, simple_rows([2, 6], 4)),
    )
    assert ours.attempts == 2
    assert "attempts  2" in str(ours)
    finish(table)


def test_the_loser_is_told_after_the_last_attempt(table: ModelledTable) -> None:
    stamps = iter(range(10, 20))
    with pytest.raises(CommitConflict) as caught:
        write_while(
            table,
            Operation.UPSERT,
            simple_rows([2], 3),
            lambda: table.write(Operation.UPSERT, simple_rows([4], next(stamps))),
            times=9,
        )
    timeline = Table(table.path).timeline
    assert caught.value.winner == timeline.writes[-1].time
    assert [p for p, _ in caught.value.file_groups] == ["p0"]
    assert not timeline.pending
    finish(table)


@pytest.mark.parametrize("theirs", [SIMPLE_OPTIONS, ANY_GROUP], ids=["into a small file", "into a new file group"])
@pytest.mark.parametrize("mine", [SIMPLE_OPTIONS, ANY_GROUP], ids=["into a small file", "into a new file group"])
def test_a_key_that_both_insert_is_not_doubled(table: ModelledTable, mine: dict[str, str], theirs: dict[str, str]) -> None:
    def other() -> None:
        write_rows(table.session(options=OPTIONS.read(theirs)), Operation.UPSERT, simple_rows([40, 42], 5))
        table.model.write(Operation.UPSERT, simple_rows([40, 42], 5))

    table.options = OPTIONS.read(mine)
    write_while(table, Operation.UPSERT, simple_rows([40, 44], 6), other)
    finish(table)


def test_a_column_that_another_writer_adds_stays(table: ModelledTable) -> None:
    wider = simple_rows([3], 7).append_column("note", pa.array(["new"]))
    write_while(table, Operation.INSERT, simple_rows([50], 7), lambda: table.write(Operation.INSERT, wider))
    assert "note" in Table(table.path).schema.names
    finish(table)


def test_of_two_overwrites_one_is_left(table: ModelledTable) -> None:
    write_while(
        table,
        Operation.INSERT_OVERWRITE,
        simple_rows([2, 4], 8),
        lambda: table.write(Operation.INSERT_OVERWRITE, simple_rows([6], 9)),
    )
    finish(table)


def test_of_two_overwrites_of_an_empty_partition_one_is_left(table: ModelledTable) -> None:
    def rows(n: int) -> pa.Table:
        return simple_rows([n], 8).set_column(1, "part", pa.array(["new"]))

    write_while(table, Operation.INSERT_OVERWRITE, rows(2), lambda: table.write(Operation.INSERT_OVERWRITE, rows(6)))
    finish(table)


def test_an_overwritten_table_keeps_nothing_of_a_second_overwrite(table: ModelledTable) -> None:
    write_while(
        table,
        Operation.INSERT_OVERWRITE_TABLE,
        simple_rows([2], 8),
        lambda: table.write(Operation.INSERT_OVERWRITE_TABLE, simple_rows([3], 9)),
    )
    finish(table)


def test_a_metadata_table_built_meanwhile_learns_of_the_write(tmp_path: Path) -> None:
    bare = {**SIMPLE_OPTIONS, "hoodie.metadata.enable": "false"}
    table = ModelledTable(str(tmp_path / "t"), bare)
    table.write(Operation.INSERT, simple_rows(range(4), 1))

    def build() -> None:
        write_rows(table.session(options=OPTIONS.read(SIMPLE_OPTIONS)), Operation.INSERT, simple_rows([7], 2))
        table.model.write(Operation.INSERT, simple_rows([7], 2))

    write_while(table, Operation.INSERT, simple_rows([6], 2), build)
    assert Table(table.path).properties.has_metadata_table
    finish(table)


# Who is alive


@pytest.mark.parametrize("kind", [LocalStorage, WithoutGuards])
def test_a_living_writer_is_not_rolled_back(table: ModelledTable, kind: type[LocalStorage]) -> None:
    storage = kind(table.path)

    def other_process() -> None:
        def write() -> None:
            write_rows(WriteSession(kind(table.path), table.options), Operation.INSERT, simple_rows([21], 2))

        assert together([write]) == [0]
        table.model.write(Operation.INSERT, simple_rows([21], 2))
        check_all(table.storage, ALWAYS)

    report = write_while(table, Operation.INSERT, simple_rows([20], 2), other_process, storage=storage)
    assert report.attempts == 1
    assert not [i for i in Table(table.path).timeline if i.action is Action.ROLLBACK]
    finish(table)


def test_statistics_of_a_partition_hold_when_writes_end_in_another_order(table: ModelledTable) -> None:
    """The metadata table merges by instant; the write that began first ends last, with values beyond all others."""
    write_while(
        table,
        Operation.INSERT,
        simple_rows([90], 3000),
        lambda: write_while(
            table,
            Operation.BULK_INSERT,
            simple_rows([92], 2000),
            lambda: table.write(Operation.BULK_INSERT, simple_rows([94], 3)),
        ),
    )
    finish(table)
    for n in range(3):
        table.write(Operation.BULK_INSERT, simple_rows([200 + n], n))
        check_all(table.storage)


# Instants


@pytest.mark.parametrize("kind", [LocalStorage, WithoutGuards])
@pytest.mark.parametrize("other", [Operation.INSERT, Operation.INSERT_OVERWRITE])
def test_no_two_writers_share_an_instant(table: ModelledTable, kind: type[LocalStorage], other: Operation) -> None:
    """Both look at the same clock, at the same moment, and at the same timeline."""
    clock = Clock(4_000_000_000_000)

    def begin(operation: Operation) -> WriteSession:
        return WriteSession(kind(table.path), table.options, clock)

    one, two = begin(Operation.INSERT), begin(other)
    timeline = one.properties.load_timeline(one.storage)
    first, _ = one.coordinator.begin(Operation.INSERT, timeline)
    second, _ = two.coordinator.begin(other, timeline)
    assert first.instant < second.instant
    one.coordinator.abort(first)
    two.coordinator.abort(second)
    finish(table)


# Real processes


def test_many_processes_at_once(table: ModelledTable) -> None:
    """Each writes some rows of its own and some that all write; the highest `ts` of a key wins whatever the order."""
    batches = [
        [simple_rows([*range(4), 100 + 10 * process + turn], 10 + 3 * turn + process) for turn in range(3)]
        for process in range(3)
    ]

    def writer(rows: list[pa.Table]) -> Callable[[], None]:
        def write() -> None:
            for batch in rows:
                for attempt in range(20):
                    try:
                        write_rows(WriteSession(open_storage(table.path), table.options), Operation.UPSERT, batch)
                        break
                    except CommitConflict:
                        assert attempt < 19

        return write

    assert together([writer(rows) for rows in batches]) == [0, 0, 0]
    for rows in batches:
        for batch in rows:
            table.model.write(Operation.UPSERT, batch)
    finish(table)


def test_of_two_creations_one_succeeds(tmp_path: Path) -> None:
    path = str(tmp_path / "t")

    def create() -> None:
        create_table(open_storage(path), simple_rows([], 0).schema, OPTIONS.read(SIMPLE_OPTIONS))

    assert sorted(together([create, create])) == [0, 1]
    table = ModelledTable(path, exists=True)
    table.write(Operation.INSERT, simple_rows(range(3), 1))
    finish(table)


def test_spark_jobs_may_create_a_table_together(tmp_path: Path) -> None:
    path = str(tmp_path / "t")

    def job(number: int) -> Callable[[], None]:
        def run() -> None:
            rows = simple_rows([number], 1)
            write = PlainWrite.begin(path, SIMPLE_OPTIONS, rows.schema, overwrite=False)
            write.commit([write.write(iter(rows.to_batches()), 0, 0)])

        return run

    assert together([job(n) for n in range(3)]) == [0, 0, 0]
    table = ModelledTable(path, exists=True)
    for n in range(3):
        table.model.write(Operation.UPSERT, simple_rows([n], 1))
    finish(table)


class SlowToBegin(LocalStorage):
    """Lets something happen after a write has looked at the table, and before it shows that it has begun."""

    def __init__(self, root: str, meanwhile: Callable[[], object]) -> None:
        super().__init__(root)
        self._meanwhile: Callable[[], object] | None = meanwhile

    def list(self, path: str) -> list[FileInfo]:
        # Markers of the last write are looked for in between.
        if self._meanwhile is not None and path.startswith(".hoodie/.temp/"):
            meanwhile, self._meanwhile = self._meanwhile, None
            meanwhile()
        return super().list(path)


def test_a_write_whose_files_are_replaced_and_cleaned_meanwhile_looks_again(tmp_path: Path) -> None:
    """The file that it planned to rewrite is gone before it reads it."""
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.UPSERT, simple_rows(range(6), 1))

    def meanwhile() -> None:
        for ts in (2, 3, 4):
            table.write(Operation.UPSERT, simple_rows([0, 1], ts))
        assert Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean().deleted

    rows = simple_rows([2, 3], 9)
    session = WriteSession(SlowToBegin(table.path, meanwhile), table.options)
    assert write_rows(session, Operation.UPSERT, rows).attempts == 2
    table.model.write(Operation.UPSERT, rows)
    table.model.check(table.read())
    check_all(table.storage)


@pytest.mark.parametrize("where", [None, "x >= 1"])
def test_a_scan_that_waited_until_its_files_were_cleaned_does_not_come_back_with_fewer_rows(
    tmp_path: Path, where: str | None
) -> None:
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.UPSERT, simple_rows(range(6), 1))
    planned = Table(table.path).timeline.writes[-1].time
    scans = [Table(table.path).scan(where) for _ in range(2)]
    assert {scan.snapshot.latest_write for scan in scans} == {planned}, "both have settled their moment, however long they wait"
    for ts in (2, 3, 4):
        table.write(Operation.UPSERT, simple_rows([0, 2], ts))
    assert Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean().deleted
    if where is None:
        assert scans[1].count() == 6, "the commit tells, and no file is opened"
    for read in (scans[0].to_table, *([scans[1].count] if where else [])):
        with pytest.raises(FileRemoved, match=r"open the table again.*raise hoodie\.clean\.commits\.retained") as caught:
            read()
        assert caught.value.path.endswith(".parquet")
        assert caught.value.instant == planned
    assert Table(table.path).scan(where).to_table().num_rows == 6
