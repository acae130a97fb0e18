"""Rows that come back by a write which took long are found by their keys, though a younger write removed the keys before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.commit.session import WriteSession
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.routed.driver import write_routed
from hudimeta.write.routed.executors import LocalExecutors, RowTask
from hudimeta.write.routed.sources import GivenRows
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted

INDEXED = {
    **SIMPLE_OPTIONS,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.secondary.column": "ts",
}
R = TypeVar("R")
BACK = simple_rows([2, 4], 1)


def _delete(table: hudimeta.Table) -> None:
    table.delete(BACK)


def _delete_partition(table: hudimeta.Table) -> None:
    table.delete_partition("p0")


class _Meanwhile(LocalExecutors):
    """Lets something happen once, when the tasks have taken the rows in."""

    def __init__(self, parts: Sequence[pa.Table], meanwhile: Callable[[], None]) -> None:
        super().__init__(parts)
        self._left = [meanwhile]

    def over_rows(self, task: RowTask[R]) -> list[R]:
        """See `Executors`."""
        found = super().over_rows(task)
        if self._left:
            self._left.pop()()
        return found


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("remove", [_delete, _delete_partition])
def test_rows_that_come_back_are_found(tmp_path: Path, kind: str, remove: Callable[[hudimeta.Table], None]) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**INDEXED, "hoodie.datasource.write.table.type": kind})
    table.write(Operation.INSERT, simple_rows(range(10), 1))
    engine = Interrupted(lambda: remove(hudimeta.Table(table.path)))
    write_rows(WriteSession(table.storage, table.options, engine=engine), Operation.BULK_INSERT, BACK)
    handle = hudimeta.Table(table.path)
    left = 10 if remove is _delete else 7
    assert handle.scan().count() == left
    assert handle.scan(where="id in ('k0002', 'k0004')").count() == 2
    assert handle.scan(where="ts = 1").count() == left
    report = handle.metadata.validate()
    assert report.holds, report
    check_all(table.storage)


def test_rows_that_come_back_by_tasks_are_found(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), INDEXED)
    table.write(Operation.INSERT, simple_rows(range(10), 1))
    tasks = _Meanwhile([BACK.slice(0, 1), BACK.slice(1)], lambda: _delete(hudimeta.Table(table.path)))
    report = write_routed(table.session(), GivenRows(Operation.BULK_INSERT, BACK.schema), tasks)
    assert report.attempts == 2
    handle = hudimeta.Table(table.path)
    assert handle.scan(where="id in ('k0002', 'k0004')").count() == 2
    assert handle.metadata.validate().holds
    check_all(table.storage)
