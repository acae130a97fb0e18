"""Writes begin without the table lock: who tidies up under it must not take one that has just begun for an old leftover."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta.commit.markers import MARKERS, Marker, MarkerKind, write_marker
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import CommitError
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.storage import FileInfo, join
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.timeline import TimelineWriter
from hudimeta.types import Action, Operation, State
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted, WithoutGuards

LATER = "20990101000000000"
FILE = f"p0/4139eb52-690b-4ff7-b5c5-16b7623e499a-0_0-0-0_{LATER}.parquet"


class Meanwhile(WithoutGuards):
    """Lets something happen before a folder is listed for the first time."""

    def __init__(self, root: str, folder: str = "", act: Callable[[], None] = lambda: None) -> None:
        super().__init__(root)
        self._folder, self._act = folder, act

    def list(self, path: str) -> list[FileInfo]:
        """See `Storage.list`."""
        if path == self._folder:
            self._folder = "-"
            self._act()
        return super().list(path)

    def sub(self, path: str) -> Meanwhile:
        """See `Storage.sub`."""
        below = self._folder.removeprefix(path + "/")
        return Meanwhile(join(self.root, path), below if below != self._folder else "-", self._act)


@pytest.fixture
def table(tmp_path: Path) -> ModelledTable:
    made = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    made.write(Operation.INSERT, simple_rows(range(4), 1))
    return made


@pytest.mark.parametrize("root", ["", METADATA_ROOT], ids=["data", "metadata"])
def test_recovery_spares_the_files_of_a_write_that_began_meanwhile(table: ModelledTable, root: str) -> None:
    there = WithoutGuards(table.path)
    file = join(root, FILE)

    def begin() -> None:
        writer = TimelineWriter(there)
        writer.create_requested(LATER, Action.COMMIT)
        writer.create_inflight(LATER, Action.COMMIT)
        write_marker(there.sub(root), LATER, Marker(FILE, MarkerKind.CREATE))
        there.put(file, b"rows")

    storage = Meanwhile(table.path, join(root, MARKERS), begin)
    WriteSession(storage, OPTIONS.read({})).coordinator.recover()
    assert there.read(file) == b"rows"


def test_a_write_that_lost_its_requested_file_is_over(table: ModelledTable) -> None:
    def taken_for_dead() -> None:
        writer = TimelineWriter(table.storage)
        for instant in table.session().properties.load_timeline(table.storage).pending:
            assert writer.delete_pending(instant.time, instant.action, State.REQUESTED)

    session = WriteSession(WithoutGuards(table.path), table.options, engine=Interrupted(taken_for_dead))
    with pytest.raises(CommitError, match="is not in flight any more"):
        write_rows(session, Operation.UPSERT, simple_rows([1], 2))
    table.model.check(table.read())
