"""Changes by a condition whose rows another write takes away between the look at the rows and the look at the index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.storage import FileInfo, LocalStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.row_changes import delete_where, update_where

INDEXED = {
    **SIMPLE_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}


class _Looks(LocalStorage):
    """Lets something happen before the second look at the metadata table: the first one is for the rows."""

    def __init__(self, root: str, meanwhile: Callable[[], object], seen: list[str] | None = None) -> None:
        super().__init__(root)
        self._meanwhile, self._seen = meanwhile, seen if seen is not None else []

    def list(self, path: str) -> list[FileInfo]:
        if f"{self.root}/{path}".endswith(".hoodie/metadata/.hoodie/timeline"):
            self._seen.append(path)
            if len(self._seen) == 2:
                self._meanwhile()
        return super().list(path)

    def sub(self, path: str) -> LocalStorage:
        return _Looks(f"{self.root}/{path}", self._meanwhile, self._seen)


def _updates(session: WriteSession) -> CommitReport:
    return update_where(session, {"x": "x + 1"}, "id in ('k0000', 'k0003')")


def _deletes(session: WriteSession) -> CommitReport:
    return delete_where(session, "id in ('k0000', 'k0003')")


@pytest.mark.parametrize("change", [_updates, _deletes])
def test_a_row_that_was_deleted_meanwhile_does_not_come_back(
    tmp_path: Path, change: Callable[[WriteSession], CommitReport]
) -> None:
    table = ModelledTable(str(tmp_path / "t"), INDEXED)
    table.write(Operation.INSERT, simple_rows(range(6), 1))
    table.write(Operation.UPSERT, simple_rows([2], 2))  # no new rows go to a file group with logs
    storage = _Looks(table.path, lambda: table.write(Operation.DELETE, simple_rows([0], 1)))
    report = change(WriteSession(storage, table.options))
    assert report.attempts == 2, "another look, at a table without the row"
    table.model.change(lambda row: row if row["id"] != "k0003" else None if change is _deletes else {**row, "x": row["x"] + 1})
    table.model.check(table.read())
    check_all(table.storage)
