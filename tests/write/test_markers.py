"""Markers: each file that comes to be has one, also when the write ends while a task is about to write."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta.commit.markers import Marker, MarkerKind, marked, marked_output, read_markers, remove_markers, write_marker
from hudimeta.commit.strays import delete_late_files
from hudimeta.storage import LocalStorage, Storage
from hudimeta.storage.fsspec_store import FsspecStorage

INSTANT = "20260101000000000"
MARKER = Marker("p0/file.parquet", MarkerKind.CREATE)
_NUMBERS = itertools.count()


@pytest.fixture(params=["local", "object store"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """One empty store of each kind: in place from the beginning, and there from the end of the upload on."""
    if request.param == "local":
        return LocalStorage(str(tmp_path / "table"))
    return FsspecStorage.open(f"memory://markers{next(_NUMBERS)}/table", {})


def written(storage: Storage, *, in_task: bool, meanwhile: Callable[[], None]) -> None:
    with marked_output(storage, INSTANT, MARKER, in_task=in_task) as stream:
        stream.write(b"rows")
        meanwhile()


def test_a_file_has_its_marker_before_it_is_written(storage: Storage) -> None:
    seen = []
    written(storage, in_task=False, meanwhile=lambda: seen.append(read_markers(storage, INSTANT)))
    assert seen == [[MARKER]]
    assert storage.read(MARKER.path) == b"rows"


def test_a_file_of_a_task_gets_its_marker_again(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = type(storage).open_output

    def after_the_end(self: Storage, path: str) -> object:
        remove_markers(self, INSTANT)
        return opened(self, path)

    monkeypatch.setattr(type(storage), "open_output", after_the_end)
    written(storage, in_task=True, meanwhile=lambda: None)
    assert storage.stat(MARKER.path) is not None
    assert read_markers(storage, INSTANT) == [MARKER]


def test_an_upload_that_ends_after_the_write_gets_its_marker_again() -> None:
    storage = FsspecStorage.open(f"memory://markers{next(_NUMBERS)}/table", {})
    written(storage, in_task=True, meanwhile=lambda: remove_markers(storage, INSTANT))
    assert read_markers(storage, INSTANT) == [MARKER]


def test_a_file_that_was_deleted_while_it_was_written_does_not_come_back(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path / "table"))

    def roll_back() -> None:
        storage.delete(MARKER.path)
        remove_markers(storage, INSTANT)

    written(storage, in_task=True, meanwhile=roll_back)
    assert storage.stat(MARKER.path) is None
    assert read_markers(storage, INSTANT) is None


def test_a_file_put_at_once_gets_its_marker_again(storage: Storage) -> None:
    with marked(storage, INSTANT, MARKER):
        remove_markers(storage, INSTANT)
        storage.put(MARKER.path, b"log")
    assert read_markers(storage, INSTANT) == [MARKER]


def test_marking_twice_changes_nothing(storage: Storage) -> None:
    for _ in range(2):
        write_marker(storage, INSTANT, MARKER)
    assert read_markers(storage, INSTANT) == [MARKER]


LATE = Marker("p0/11111111-1111-1111-1111-111111111111-0_0-0-0_20260101000000000.parquet", MarkerKind.CREATE)
NEW = Marker("p1/22222222-2222-2222-2222-222222222222-0_0-0-0_20260101000000000.parquet", MarkerKind.CREATE)


@pytest.mark.parametrize("work", ["its file appears", "another begins"])
def test_a_task_that_dies_while_markers_are_taken_leaves_nothing(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    """It is killed right after its file has come to be and its marker was seen to be there."""

    def a_task_works() -> None:
        monkeypatch.undo()
        marker = LATE if work == "its file appears" else NEW
        with marked_output(storage, INSTANT, marker, in_task=True) as stream:
            stream.write(b"rows")

    def deleting(self: Storage, path: str) -> bool:
        if ".marker." in path:
            a_task_works()
        return deleted(self, path)

    deleted = type(storage).delete
    write_marker(storage, INSTANT, LATE)
    monkeypatch.setattr(type(storage), "delete", deleting)
    delete_late_files(storage, INSTANT)
    remove_markers(storage, INSTANT)
    assert [storage.stat(marker.path) for marker in (LATE, NEW)] == [None, None]
    assert read_markers(storage, INSTANT) is None
