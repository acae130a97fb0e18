"""A store may answer a LIST as it was some moments ago: the commit that it lacks is not overwritten, and none is taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta.commit.locks import fence
from hudimeta.commit.locks.storage_lock import LOCK_PATH, Lease
from hudimeta.commit.session import WriteSession
from hudimeta.config import HudiWarning
from hudimeta.errors import StaleList
from hudimeta.storage import FileInfo
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted, WithoutGuards

TIMELINE = ".hoodie/timeline"
THEIRS, OURS = simple_rows([0, 4, 8], 2), simple_rows([2, 6, 20], 3)
"""Rows of one base file."""


class LateLists(WithoutGuards):
    """A store whose lists of the timeline lack one file, so many times."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.missing, self.times = "", 0

    def list(self, path: str) -> list[FileInfo]:
        found = super().list(path)
        if path != TIMELINE or not self.times:
            return found
        self.times -= 1
        return [entry for entry in found if entry.path != self.missing]


@pytest.fixture
def table(tmp_path: Path) -> ModelledTable:
    made = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    made.write(Operation.UPSERT, simple_rows(range(10), 1))
    return made


def overtaken(table: ModelledTable, storage: LateLists, late: int) -> WriteSession:
    """A session in whose write another one publishes, which that many lists of the timeline do not show then."""

    def meanwhile() -> None:
        table.write(Operation.UPSERT, THEIRS)
        storage.missing, storage.times = Lease.decode(storage.read(LOCK_PATH)).published, late
        assert storage.missing.startswith(TIMELINE)

    return WriteSession(storage, table.options, engine=Interrupted(meanwhile))


def test_a_commit_that_one_list_lacks_is_seen_by_the_next(table: ModelledTable) -> None:
    storage = LateLists(table.path)
    write_rows(overtaken(table, storage, late=1), Operation.UPSERT, OURS)
    assert storage.times == 0
    table.model.write(Operation.UPSERT, OURS)
    table.model.check(table.read())
    check_all(table.storage)


def test_a_commit_that_no_list_shows_stops_the_write(table: ModelledTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fence, "RELIST_PAUSES_S", (0.0, 0.0))
    storage = LateLists(table.path)
    with pytest.warns(HudiWarning, match="left to the next writer"), pytest.raises(StaleList, match="which is there") as told:
        write_rows(overtaken(table, storage, late=1000), Operation.UPSERT, OURS)
    assert told.value.missing == storage.missing
    table.model.check(table.read())
    table.write(Operation.UPSERT, simple_rows([3], 4))  # which takes back what was left
    table.model.check(table.read())
    check_all(table.storage)


def test_a_commit_that_is_gone_is_not_waited_for(table: ModelledTable) -> None:
    """Somebody took it back who leaves no word in the lock."""
    lease = Lease.decode(table.storage.read(LOCK_PATH))
    table.storage.put(LOCK_PATH, Lease(True, lease.valid_until, lease.owner, f"{TIMELINE}/20200101000000000_1.commit").encode())
    table.write(Operation.UPSERT, simple_rows([3], 4))
    table.model.check(table.read())
    assert Lease.decode(table.storage.read(LOCK_PATH)).published != lease.published
