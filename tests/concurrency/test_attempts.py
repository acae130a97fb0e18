"""Trying again after conflicts: how often, after which waits, and what the last error says."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta.commit.attempts import wait_before_retry
from hudimeta.commit.locks.file_lock import FILE_NAME
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.engine import machine
from hudimeta.errors import CommitConflict, LockLost
from hudimeta.storage import LocalStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.streaming import write_stream
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted

RETRIES = "hoodie.write.num.retries.on.conflict.failures"


class Watched(machine.ThisMachine):
    """A machine that notes how long it was to pause, and does not."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def pause(self, seconds: float) -> None:
        """See `Machine.pause`."""
        self.pauses.append(seconds)

    def new_id(self) -> uuid.UUID:
        """See `Machine.new_id`."""
        return uuid.UUID(int=2**127) if len(self.pauses) % 2 else uuid.uuid4()


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    with machine.running_on(made):
        yield made


@pytest.fixture
def table(tmp_path: Path) -> ModelledTable:
    made = ModelledTable(str(tmp_path / "t"))
    made.write(Operation.INSERT, simple_rows(range(10), 1))
    return made


def beside(table: ModelledTable, times: int, **options: str) -> WriteSession:
    """A session whose first so many attempts find that another writer changed the row that they change."""
    stamps = iter(range(10, 99))
    engine = Interrupted(lambda: table.write(Operation.UPSERT, simple_rows([2], next(stamps))), times)
    return WriteSession(table.storage, OPTIONS.read({**SIMPLE_OPTIONS, **options}), engine=engine)


class ClosedByHudi(LocalStorage):
    """A table whose lock file is deleted so many times just before a writer of ours looks whether it holds it."""

    def __init__(self, root: str, times: list[None]) -> None:
        super().__init__(root)
        self._times = times

    def sub(self, path: str) -> ClosedByHudi:
        """See `Storage.sub`."""
        return ClosedByHudi(f"{self.root}/{path}", self._times)

    def read(self, path: str) -> bytes:
        """See `Storage.read`."""
        if path == FILE_NAME and self._times and self.stat(path) is not None:
            self._times.pop()
            self.delete(path)
        return super().read(path)


def upserted(table: ModelledTable, session: WriteSession) -> CommitReport:
    rows = simple_rows([2, 4], 100)
    report = write_rows(session, Operation.UPSERT, rows)
    table.model.write(Operation.UPSERT, rows)
    table.model.check(table.read())
    check_all(table.storage)
    return report


def test_a_write_whose_lock_was_lost_is_tried_again(table: ModelledTable, watched: Watched) -> None:
    """Clients of Apache Hudi that close delete the file of its file-system lock, whoever holds it."""
    options = {**SIMPLE_OPTIONS, "hoodie.write.lock.provider": "FileSystemBasedLockProvider"}
    assert upserted(table, WriteSession(ClosedByHudi(table.path, [None]), OPTIONS.read(options))).attempts == 2
    with pytest.raises(LockLost):
        upserted(table, WriteSession(ClosedByHudi(table.path, [None] * 9), OPTIONS.read(options)))
    table.model.check(table.read())
    check_all(table.storage)


def test_three_attempts_unless_the_option_says_otherwise(table: ModelledTable, watched: Watched) -> None:
    assert upserted(table, beside(table, 2)).attempts == 3
    assert upserted(table, beside(table, 5, **{RETRIES: "5"})).attempts == 6
    assert len(watched.pauses) == 2 + 5
    with pytest.raises(CommitConflict):
        upserted(table, beside(table, 3))


def test_waits_grow_up_to_the_longest(table: ModelledTable, watched: Watched) -> None:
    waits = {"hudimeta.write.conflict.wait.ms": "100", "hudimeta.write.conflict.max.wait.ms": "300", RETRIES: "4"}
    upserted(table, beside(table, 4, **waits))
    assert all(low <= wait <= 2 * low for wait, low in zip(watched.pauses, (0.05, 0.1, 0.15, 0.15), strict=True))
    options = OPTIONS.read(waits)
    assert [wait_before_retry(options, n, 0.0) for n in (1, 2, 3, 10_000)] == [0.05, 0.1, 0.15, 0.15]
    assert wait_before_retry(options, 1, 0.5) == 0.075


def test_no_retries_tell_of_the_rows_at_once(table: ModelledTable, watched: Watched) -> None:
    session = beside(table, 1, **{RETRIES: "0"})
    session.engine = Interrupted(lambda: table.write(Operation.UPSERT, simple_rows([20, 22], 5)))
    with pytest.raises(CommitConflict, match="1 of its rows, such as the one with the key 'k0022'") as caught:
        write_rows(session, Operation.UPSERT, simple_rows([22, 24], 6))
    assert (caught.value.keys, caught.value.sample) == (1, "k0022")
    assert "run the write again" in str(caught.value)
    assert not watched.pauses
    table.model.check(table.read())
    check_all(table.storage)


def test_a_stream_that_was_read_is_not_tried_again_and_says_so(table: ModelledTable, watched: Watched) -> None:
    session = beside(table, 1, **{"hudimeta.write.portion.bytes": "1", RETRIES: "5"})
    rows = simple_rows([2, 4], 100)
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=1))
    with pytest.raises(CommitConflict, match="hand the rows over once more"):
        write_stream(session, Operation.UPSERT, reader)
    assert not watched.pauses
    table.model.check(table.read())
    check_all(table.storage)
    one_portion = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
    assert write_stream(beside(table, 1), Operation.UPSERT, one_portion).attempts == 2
