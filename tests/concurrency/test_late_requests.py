"""Requests that take effect when their writer has lost the lock: what they were to replace is not there any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta.commit.index_build import create_index
from hudimeta.commit.session import WriteSession
from hudimeta.errors import StorageError
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.storage import LocalStorage
from hudimeta.table.properties_file import PROPERTIES_PATH
from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation

INDEX = "record_index"


class HeldUp(LocalStorage):
    """A store that holds up the request which names the index in the table's properties; its writer hears of a time-out."""

    held: tuple[str, bytes, bytes]

    def put_if_unchanged(self, path: str, data: bytes, expected: bytes) -> bool:
        """See `Storage.put_if_unchanged`."""
        if path == PROPERTIES_PATH and INDEX.encode() in data:
            self.held = path, data, expected
            raise StorageError(path, "no answer within 60 s")
        return super().put_if_unchanged(path, data, expected)

    def arrive(self) -> bool:
        """The request takes effect."""
        return super().put_if_unchanged(*self.held)


class Dying(LocalStorage):
    """The store of a writer that dies when it has removed the files of the index."""

    def delete_folder(self, path: str) -> None:
        """See `Storage.delete_folder`."""
        super().delete_folder(path)
        if path == f"{METADATA_ROOT}/{INDEX}":
            raise KeyboardInterrupt


def test_an_index_is_not_named_by_who_lost_the_lock_when_its_files_are_gone(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    table.write(Operation.INSERT, simple_rows(range(10), 1))
    slow = HeldUp(table.path)
    with pytest.raises(StorageError):
        create_index(WriteSession(slow, table.options), kind=INDEX)
    with pytest.raises(KeyboardInterrupt):
        create_index(WriteSession(Dying(table.path), table.options), kind=INDEX)
    assert not slow.arrive()
    table.write(Operation.UPSERT, simple_rows([2, 20], 2))
    assert INDEX not in table.session().properties.metadata_partitions
    check_all(table.storage)
    table.check()
