"""Tasks of a Spark write that still run when the write is taken back: nothing that they write stays."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta.api.plain_write import PlainWrite
from hudimeta.api.table import Table
from hudimeta.commit import markers
from hudimeta.commit.liveness import HEARTBEAT_FOLDER
from hudimeta.commit.markers import Marker, write_marker
from hudimeta.errors import CommitError, StorageError
from hudimeta.storage import Storage, open_storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.write import base_files

BULK = {**SIMPLE_OPTIONS, "hoodie.datasource.write.operation": "bulk_insert"}


@pytest.fixture
def write(tmp_path: Path) -> PlainWrite:
    """A bulk insert that has begun on a table of ten rows."""
    rows = simple_rows(range(10), 1)
    path = str(tmp_path / "t")
    Table.create(path, rows.schema, key="id", partition_by="part", ordering="ts").bulk_insert(rows)
    return PlainWrite.begin(path, BULK, rows.schema, overwrite=False)


def settled(path: str) -> None:
    """The table is as before the write, to the last file."""
    Table(path).recover()
    check_all(open_storage(path))
    assert Table(path).scan().count() == 10


def test_a_task_that_writes_after_the_abort_takes_its_files_back(write: PlainWrite) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from simple_rows(range(10, 20), 2).to_batches()
        write.abort()

    with pytest.raises(CommitError, match="was taken back while a task wrote for it"):
        write.write(batches(), 0, 0)
    settled(write.location)


@pytest.mark.parametrize("moment", ["marker, abort, file", "abort, marker, file"])
def test_an_abort_between_a_marker_and_its_file(write: PlainWrite, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    aborted = []

    def noting(storage: Storage, instant: str, marker: Marker) -> None:
        if moment.startswith("marker"):
            write_marker(storage, instant, marker)
        if not aborted:
            aborted.append(marker.path)
            write.abort()
        if moment.startswith("abort"):
            write_marker(storage, instant, marker)

    monkeypatch.setattr(markers, "write_marker", noting)
    with pytest.raises(CommitError, match="was taken back"):
        write.write(simple_rows(range(10, 20), 2).to_batches(), 0, 0)
    assert aborted
    settled(write.location)


def test_a_task_that_fails_after_the_abort_leaves_its_file_to_the_next_write(
    write: PlainWrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noting(storage: Storage, instant: str, marker: Marker) -> None:
        write_marker(storage, instant, marker)
        monkeypatch.undo()
        write.abort()  # with the marker, and before there is a file
        monkeypatch.setattr(base_files, "mark_partition", failing)

    def failing(*_: object) -> None:
        raise StorageError("the disk is full", "Make room.")

    monkeypatch.setattr(markers, "write_marker", noting)
    with pytest.raises(StorageError, match="disk is full"):
        # of one partition: files of several are written side by side, and one could be there already
        write.write(simple_rows(range(10, 20), 2, partitions=1).to_batches(), 0, 0)
    folder = Path(write.location)
    assert len([file for file in folder.rglob("*.parquet") if write.open_write.instant in file.name]) == 1
    PlainWrite.begin(write.location, BULK, simple_rows(range(1), 1).schema, overwrite=False).abort()
    check_all(open_storage(write.location))
    settled(write.location)


def test_the_heartbeat_of_a_task_that_begins_after_the_abort_goes_with_the_next_write(write: PlainWrite) -> None:
    write.abort()
    write.write(iter(()), 0, 0)
    (beat,) = (Path(write.location) / HEARTBEAT_FOLDER).iterdir()
    long_ago = time.time() - 3600
    os.utime(beat, (long_ago, long_ago))
    PlainWrite.begin(write.location, BULK, simple_rows(range(1), 1).schema, overwrite=False).abort()
    check_all(open_storage(write.location))
    settled(write.location)


def test_a_file_finished_while_the_rollback_runs_is_deleted_by_it(write: PlainWrite, monkeypatch: pytest.MonkeyPatch) -> None:
    from hudimeta.commit import rollback

    def rolling(*arguments: object) -> None:
        write.write(simple_rows(range(10, 20), 2).to_batches(), 0, 0)  # after the plan, before the instant is gone
        before(*arguments)

    before = rollback.refuse_files_of_others
    monkeypatch.setattr(rollback, "refuse_files_of_others", rolling)
    write.abort()
    monkeypatch.undo()
    settled(write.location)


def test_a_task_finds_that_its_write_is_being_taken_back(write: PlainWrite, monkeypatch: pytest.MonkeyPatch) -> None:
    from hudimeta.commit import rollback

    def rolling(*arguments: object) -> None:
        with pytest.raises(CommitError, match="was taken back while a task wrote for it"):
            write.write(simple_rows(range(10, 20), 2).to_batches(), 0, 0)  # the inflight file is gone
        before(*arguments)

    before = rollback.roll_back_metadata
    monkeypatch.setattr(rollback, "roll_back_metadata", rolling)
    write.abort()
    monkeypatch.undo()
    settled(write.location)
