"""Upgrades of two processes at once: one makes the step, the other one finds it made."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.commit.locks.fence import FencedLock
from hudimeta.errors import TableError
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.conftest import Unpack
from tests.services.test_versions import INDEXED, answers, written


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let another process do something right before the next call of this one gets the table lock."""
    left, plain = [act], FencedLock.held

    def held(lock: FencedLock) -> AbstractContextManager[None]:
        while left:
            left.pop()()
        return plain(lock)

    monkeypatch.setattr(FencedLock, "held", held)


@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_two_processes_upgrade_at_once(tmp_path: Path, type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(tmp_path / "t", 8, type, INDEXED)
    before, indexes = answers(tmp_path / "t"), Table(table.path).properties.metadata_partitions
    meanwhile(monkeypatch, lambda: Table(table.path).upgrade())
    assert "another process" in str(Table(table.path).upgrade())
    assert Table(table.path).version == 9
    assert Table(table.path).properties.metadata_partitions == indexes
    assert answers(tmp_path / "t")["now"] == before["now"]
    check_all(table.storage)


@pytest.mark.parametrize("others", [8, 9])
def test_two_processes_upgrade_version_6_at_once(recorded_table: Unpack, monkeypatch: pytest.MonkeyPatch, others: int) -> None:
    path = recorded_table("v6_mor_written_by_12", fresh=True)
    before = answers(path)["now"]
    meanwhile(monkeypatch, lambda: Table(path).upgrade(others))
    assert "another process" in str(Table(path).upgrade())
    assert Table(path).version == 9
    assert answers(path)["now"] == before
    check_all(open_storage(str(path)))


def test_an_upgrade_to_8_says_that_another_one_went_on_to_9(recorded_table: Unpack, monkeypatch: pytest.MonkeyPatch) -> None:
    path = recorded_table("v6_mor_written_by_12", fresh=True)
    meanwhile(monkeypatch, lambda: Table(path).upgrade())
    with pytest.raises(TableError, match="moved the table to version 9 meanwhile"):
        Table(path).upgrade(8)
    check_all(open_storage(str(path)))
