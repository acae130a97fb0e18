"""Requests that take effect when their writer has lost the lock: what they were to replace is not there any more."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from hudimeta.commit.index_build import create_index
from hudimeta.commit.session import WriteSession
from hudimeta.errors import StorageError
from hudimeta.metadata.indexing import remove_index_files
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.storage import LocalStorage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.storage.fsspec_store import FsspecStorage
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


class _BuiltMeanwhile(FaultPlan):
    """Whoever deletes first is stopped before it, and somebody else builds the index."""

    def __init__(self, build: Callable[[], None]) -> None:
        super().__init__(None, Fault.KILL)
        self._build: Callable[[], None] | None = build

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        build, self._build = (self._build, None) if name.startswith("delete") else (None, self._build)
        if build is not None:
            build()
        return super().around(name, act)


def test_a_late_removal_of_an_index_leaves_what_was_built_meanwhile() -> None:
    """Found by simulated histories: it removed the folder, with all files of the index that is there now."""
    prefix = f"/bucket-{uuid.uuid4().hex}/table"
    store = FsspecStorage(MemoryFileSystem(), prefix, f"memory:/{prefix}")
    folder = ".hoodie/metadata/bloom_filters"
    store.put(f"{folder}/old", b"1")
    late = FaultyStorage(store, _BuiltMeanwhile(lambda: store.put(f"{folder}/new", b"2")))
    remove_index_files(late, "bloom_filters")
    assert [one.name for one in store.list(folder)] == ["new"]
