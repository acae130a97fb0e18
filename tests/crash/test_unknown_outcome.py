"""A store that falls silent while a commit is published: nobody can know, and nothing is guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudimeta.api.table import Table
from hudimeta.errors import CommitOutcomeUnknown, StorageError
from hudimeta.storage import LocalStorage
from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.testing.invariants import ALWAYS, check_all
from hudimeta.types import Operation

_ASKED = ("read", "list", "stat", "is_file", "put", "delete", "put_if_unchanged", "delete_folder")


class FallsSilent(LocalStorage):
    """Answers nothing from the moment on at which a commit of the table is completed; `done` says whether that was done."""

    silent = False

    def __init__(self, root: str, done: bool) -> None:
        super().__init__(root)
        self._done = done

    def put_if_absent(self, path: str, data: bytes) -> None:
        """See `Storage.put_if_absent`."""
        if path.startswith(".hoodie/timeline/") and path.endswith(".commit"):
            self.silent = True
            if self._done:
                super().put_if_absent(path, data)
            raise StorageError(path, "no answer")
        super().put_if_absent(path, data)

    def __getattribute__(self, name: str) -> Any:
        get = object.__getattribute__
        if get(self, "silent") and name in _ASKED:
            raise StorageError(name, "no answer")
        return get(self, name)


@pytest.mark.parametrize("done", [True, False])
def test_the_writer_says_so_and_the_table_tells_later(tmp_path: Path, done: bool) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    table.write(Operation.INSERT, simple_rows(range(10), 1))
    before = table.model.copy()
    with pytest.raises(CommitOutcomeUnknown, match="shows the instant as completed") as caught:
        table.write(Operation.UPSERT, simple_rows([1, 20], 2), FallsSilent(table.path, done))
    before.write(Operation.UPSERT, simple_rows([1, 20] if done else [], 2))
    table.model = before
    found = Table(table.path).timeline.get(caught.value.instant)
    assert found is not None
    assert found.is_completed is done
    table.check()
    check_all(table.storage, ALWAYS)
    report = table.write(Operation.UPSERT, simple_rows([2], 3))
    assert report.rolled_back == (() if done else (caught.value.instant,))
    table.check()
    check_all(table.storage)
