"""Writers that do not block each other: they add to the same file groups at once, nothing is lost and nothing doubled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.routed.driver import write_routed
from hudimeta.write.routed.executors import LocalExecutors
from hudimeta.write.routed.sources import GivenRows
from hudimeta.write.row_changes import update_where
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted, interruptible
from tests.write.doors import parts_of

NON_BLOCKING = {
    **SIMPLE_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
}
BUCKETS = {**NON_BLOCKING, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
RECORD_INDEX = {**NON_BLOCKING, "hoodie.metadata.record.index.enable": "true"}
BY_COMMIT_TIME = {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}


@pytest.fixture(params=[BUCKETS, RECORD_INDEX], ids=["buckets", "record index"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> ModelledTable:
    made = ModelledTable(str(tmp_path / "t"), request.param)
    made.write(Operation.INSERT, simple_rows(range(10), 1))
    return made


@pytest.fixture
def buckets(tmp_path: Path) -> ModelledTable:
    return ModelledTable(str(tmp_path / "t"), BUCKETS)


def write_while(
    table: ModelledTable, operation: Operation, rows: pa.Table, meanwhile: Callable[[], object], times: int = 1
) -> CommitReport:
    """Write, and let something happen when the write has begun and planned but not written its files."""
    session = WriteSession(table.storage, table.options, engine=Interrupted(meanwhile, times))
    report = write_rows(session, operation, rows)
    table.model.write(operation, rows)
    table.model.remember(report.instant)
    return report


def finish(table: ModelledTable) -> None:
    """The table is what the model says, and sound, before and after a compaction."""
    table.model.past.clear()  # as of an instant that overlapped others the table is none that ever was
    for _ in range(2):
        table.check()
        check_all(table.storage)
        Table(table.path, dict(table.options.given)).compact()


def test_two_writers_begin_a_bucket_at_once(buckets: ModelledTable) -> None:
    theirs: list[CommitReport] = []
    ours = write_while(
        buckets,
        Operation.UPSERT,
        simple_rows(range(12), 2),
        lambda: theirs.append(buckets.write(Operation.UPSERT, simple_rows(range(6, 18), 1))),
    )
    assert (ours.attempts, theirs[0].attempts) == (1, 1)
    slices = Table(buckets.path).file_slices().to_pylist()
    assert sorted({s["file_id"] for s in slices}) == [f"{n:08d}-0000-0000-0000-000000000000-0" for n in range(2)]
    assert all(s["base_file"] is None and len(s["log_files"]) == 2 for s in slices)
    finish(buckets)


def test_writers_of_one_file_group_both_succeed(table: ModelledTable) -> None:
    theirs: list[CommitReport] = []
    ours = write_while(
        table,
        Operation.UPSERT,
        simple_rows([0, 2, 4], 3),
        lambda: theirs.append(table.write(Operation.UPSERT, simple_rows([6, 8], 3))),
    )
    assert (ours.attempts, theirs[0].attempts) == (1, 1)
    finish(table)


def test_of_one_row_the_greater_ordering_value_wins_whoever_is_first(table: ModelledTable) -> None:
    ours = write_while(
        table,
        Operation.UPSERT,
        simple_rows([2, 4], 5),
        lambda: table.write(Operation.UPSERT, simple_rows([2, 4], 9)),
    )
    assert ours.attempts == 1
    assert {r["ts"] for r in Table(table.path).scan(where="id in ('k0002', 'k0004')").to_table().to_pylist()} == {9}
    finish(table)


def test_where_the_last_commit_wins_it_also_comes_last(tmp_path: Path) -> None:
    """Readers order log files by requested time: one that was overtaken begins again."""
    table = ModelledTable(str(tmp_path / "t"), {**BUCKETS, **BY_COMMIT_TIME})
    table.write(Operation.INSERT, simple_rows(range(10), 1))
    ours = write_while(
        table,
        Operation.UPSERT,
        simple_rows([2], 2, value=20.0),
        lambda: table.write(Operation.UPSERT, simple_rows([2], 2, value=10.0)),
    )
    assert ours.attempts == 2
    assert Table(table.path).scan(where="id = 'k0002'").to_table()["x"].to_pylist() == [20.0]
    finish(table)


def test_a_compaction_meanwhile_is_no_conflict(table: ModelledTable) -> None:
    table.write(Operation.UPSERT, simple_rows([0, 2], 2))
    ours = write_while(
        table, Operation.UPSERT, simple_rows([2, 4], 3), lambda: Table(table.path, dict(table.options.given)).compact()
    )
    assert ours.attempts == 1
    finish(table)


def test_a_row_that_one_deletes_and_the_other_updates(table: ModelledTable) -> None:
    """The second one is tried again: a record index would lose a row that is there, or statistics widen too late."""
    ours = write_while(
        table,
        Operation.UPSERT,
        simple_rows([2, 4], 5),
        lambda: table.write(Operation.DELETE, simple_rows([2], 1).select(["id", "part", "ts"])),
    )
    assert ours.attempts == 2
    finish(table)


def test_a_key_that_both_insert_is_not_doubled(table: ModelledTable) -> None:
    write_while(
        table,
        Operation.UPSERT,
        simple_rows([40, 44], 6),
        lambda: table.write(Operation.UPSERT, simple_rows([40, 42], 5)),
    )
    finish(table)


def test_rows_that_are_computed_from_the_table_are_computed_again(table: ModelledTable) -> None:
    """Else one of two that count up would be lost."""

    def count_up(session: WriteSession) -> CommitReport:
        return update_where(session, {"x": "x + 1"}, "id = 'k0002'")

    session = WriteSession(table.storage, table.options, engine=Interrupted(lambda: count_up(table.session())))
    assert count_up(session).attempts == 2
    assert Table(table.path).scan(where="id = 'k0002'").to_table()["x"].to_pylist() == [3.0]


def test_an_overwrite_is_a_conflict(table: ModelledTable) -> None:
    ours = write_while(
        table,
        Operation.UPSERT,
        simple_rows([2, 4], 5),
        lambda: table.write(Operation.INSERT_OVERWRITE, simple_rows([6], 4)),
    )
    assert ours.attempts == 2
    finish(table)


@pytest.mark.parametrize("captures", ["false", "true"])
def test_whoever_polls_gets_each_change_once(tmp_path: Path, captures: str) -> None:
    """Changes are polled in the middle of writes that overlap, and after them."""
    table = ModelledTable(str(tmp_path / "t"), {**BUCKETS, "hoodie.table.cdc.enabled": captures})
    query, seen, upto = "cdc" if captures == "true" else "incremental", Counter[tuple[str, int]](), "0"

    def poll() -> None:
        nonlocal upto
        now = Table(table.path)
        completed = [i.completed_at for i in now.timeline.writes]
        if not completed or max(completed) == upto:
            return
        rows = now.scan(query_type=query, begin=upto, end=max(completed)).to_table().to_pylist()
        upto = max(completed)
        for row in rows:
            after = row["after"] if query == "cdc" else row
            seen[_version(after)] += 1

    def in_the_middle(step: int) -> None:
        table.write(Operation.UPSERT, simple_rows(range(40 * step + 20, 40 * step + 30), step))
        poll()

    for step in range(1, 5):
        write_while(
            table,
            Operation.UPSERT,
            simple_rows(range(40 * step, 40 * step + 10), step),
            lambda step=step: in_the_middle(step),  # type: ignore[misc]
        )
        poll()
    wanted = {(f"k{n:04d}", step) for step in range(1, 5) for m in (0, 20) for n in range(40 * step + m, 40 * step + m + 10)}
    assert seen == Counter(dict.fromkeys(wanted, 1))
    finish(table)


def _version(row: object) -> tuple[str, int]:
    import json

    fields = json.loads(row) if isinstance(row, str) else row
    assert isinstance(fields, dict)
    return fields["id"], fields["ts"]


def test_writers_and_a_reader_in_threads(buckets: ModelledTable) -> None:
    """Four writers of their own keys in the same buckets; a reader and a consumer beside them see nothing twice."""
    writers, commits = 4, 4
    polled, upto = Counter[tuple[str, int]](), "0"

    def write(writer: int) -> list[int]:
        table = Table(buckets.path, dict(buckets.options.given))
        return [
            table.upsert(simple_rows(range(100 * writer, 100 * writer + 10 + turn), turn)).attempts for turn in range(commits)
        ]

    def read() -> int:
        rows = Table(buckets.path).scan(columns=["id"]).to_table()["id"].to_pylist()
        assert len(rows) == len(set(rows))
        return len(rows)

    def poll() -> None:
        nonlocal upto
        now = Table(buckets.path)
        newest = max((i.completed_at for i in now.timeline.writes), default=upto)
        if newest > upto:
            polled.update(map(_version, now.scan(query_type="incremental", begin=upto, end=newest).to_table().to_pylist()))
            upto = newest

    with ThreadPoolExecutor(writers + 1) as pool:
        began = [pool.submit(write, number) for number in range(writers)]
        while not all(one.done() for one in began):
            read()
            poll()
        assert [len(one.result()) for one in began] == [commits] * writers
    poll()
    assert set(polled.values()) == {1}
    last = {(f"k{100 * w + n:04d}", commits - 1) for w in range(writers) for n in range(10 + commits - 1)}
    assert last <= set(polled), "whatever else was changed again between two polls"
    Table(buckets.path, dict(buckets.options.given)).compact()
    assert read() == writers * (10 + commits - 1)
    check_all(buckets.storage)


def test_tasks_do_not_block_each_other_either(buckets: ModelledTable) -> None:
    """Writes that are routed through tasks, of Spark for one."""
    rows = simple_rows(range(12), 2)
    others = Interrupted(lambda: buckets.write(Operation.UPSERT, simple_rows(range(6, 18), 1)))
    session = WriteSession(buckets.storage, buckets.options, engine=others)
    executors = interruptible(session, LocalExecutors(parts_of(rows)))
    report = write_routed(session, GivenRows(Operation.UPSERT, rows.schema), executors)
    buckets.model.write(Operation.UPSERT, rows)
    assert report.attempts == 1
    finish(buckets)
