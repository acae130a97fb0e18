"""Early detection: a writer that meets another one at its file group stops before it writes its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.commit.concurrency import EarlyDetection
from hudimeta.commit.coordinator import OpenWrite
from hudimeta.commit.early_conflicts import EarlyLook
from hudimeta.commit.markers import MARKERS, Marker, MarkerKind, marker_folder, write_marker
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.engine.machine import ThisMachine, running_on
from hudimeta.errors import CommitConflict
from hudimeta.storage import CountingStorage, LocalStorage, join
from hudimeta.table.file_names import BaseFileName
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import FileGroupId, Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted

ENABLE = "hoodie.write.concurrency.early.conflict.detection.enable"
EARLY = {**SIMPLE_OPTIONS, "hoodie.write.concurrency.mode": "optimistic_concurrency_control", ENABLE: "true"}
COMMITS = "hoodie.write.concurrency.early.conflict.check.commit.conflict"


@pytest.fixture
def table(tmp_path: Path) -> ModelledTable:
    made = ModelledTable(str(tmp_path / "t"), EARLY)
    made.write(Operation.INSERT, simple_rows(range(10), 1))
    return made


def group_of(table: ModelledTable, partition: str = "p0") -> FileGroupId:
    slices = Table(table.path).file_slices().to_pylist()
    return next(FileGroupId(s["partition_path"], s["file_id"]) for s in slices if s["partition_path"] == partition)


def mark(table: ModelledTable, instant: str, group: FileGroupId) -> None:
    """As a task does before it writes the next base file of a file group."""
    path = join(group.partition_path, str(BaseFileName(group.file_id, "0-0-0", instant)))
    write_marker(table.storage, instant, Marker(path, MarkerKind.MERGE))


@contextmanager
def writer_at(table: ModelledTable, *groups: FileGroupId) -> Iterator[OpenWrite]:
    """Another writer, which lives and has marked some file groups."""
    coordinator = table.session().coordinator
    write, _ = coordinator.begin(Operation.UPSERT)
    for group in groups:
        mark(table, write.instant, group)
    yield write
    coordinator.abort(write)


def files_of(table: ModelledTable) -> set[str]:
    return {path.name for path in Path(table.path).glob("p*/*.parquet")}


def test_whoever_is_later_stops_before_it_writes_its_file(table: ModelledTable) -> None:
    group, before = group_of(table), files_of(table)
    with writer_at(table, group) as other:
        with pytest.raises(CommitConflict, match=rf"instant {other.instant} is changing: .*{group.file_id}") as caught:
            Table(table.path, EARLY).upsert(simple_rows([2], 2))
        assert caught.value.file_groups == ((group.partition_path, group.file_id),)
        assert files_of(table) == before
        assert table.write(Operation.UPSERT, simple_rows([3], 3)).attempts == 1, "another file group"
    table.write(Operation.UPSERT, simple_rows([2], 4))
    table.check()
    check_all(table.storage)


def test_whoever_is_earlier_goes_on(table: ModelledTable) -> None:
    """So that of two that meet one gets through."""
    began: list[str] = []

    def another_begins() -> None:
        other, _ = table.session().coordinator.begin(Operation.UPSERT)
        mark(table, other.instant, group_of(table))
        began.append(other.instant)

    session = WriteSession(table.storage, OPTIONS.read(EARLY), engine=Interrupted(another_begins))
    report = write_rows(session, Operation.UPSERT, simple_rows([2], 2))
    assert report.attempts == 1
    assert report.instant < began[0]


def test_it_is_tried_again_as_after_other_conflicts(table: ModelledTable) -> None:
    other = table.session().coordinator
    write, _ = other.begin(Operation.UPSERT)
    mark(table, write.instant, group_of(table))

    class DoneAfterTheFirst(LocalStorage):
        """The other writer is done when the first attempt lists the timeline for the last time: it is rolled back."""

        attempts = 0

        def put_if_absent(self, path: str, data: bytes) -> None:
            if path.endswith(".commit.requested"):
                self.attempts += 1
                if self.attempts == 2:
                    other._held.close()
            super().put_if_absent(path, data)

    session = WriteSession(DoneAfterTheFirst(table.path), OPTIONS.read(EARLY))
    assert write_rows(session, Operation.UPSERT, simple_rows([2], 2)).attempts == 2


def test_a_marker_of_a_dead_writer_does_not_count(table: ModelledTable) -> None:
    coordinator = table.session().coordinator
    dead, _ = coordinator.begin(Operation.UPSERT)
    mark(table, dead.instant, group_of(table))
    coordinator._held.close()
    assert table.write(Operation.UPSERT, simple_rows([2], 2)).attempts == 1


def test_a_marker_that_was_left_behind_does_not_count(table: ModelledTable) -> None:
    (done,) = Table(table.path).timeline.writes
    mark(table, done.time, group_of(table))
    mark(table, "20200101000000000", group_of(table))
    assert table.write(Operation.UPSERT, simple_rows([2], 2)).attempts == 1


def test_markers_in_lists_count_too(table: ModelledTable) -> None:
    """Those of Apache Hudi's timeline server."""
    group = group_of(table)
    with writer_at(table) as other:
        folder = marker_folder(other.instant)
        table.storage.put(join(folder, "MARKERS.type"), b"TIMELINE_SERVER_BASED")
        name = BaseFileName(group.file_id, "0-0-0", other.instant)
        table.storage.put(join(folder, "MARKERS0"), f"{group.partition_path}/{name}.marker.MERGE\n".encode())
        with pytest.raises(CommitConflict, match="is changing"):
            Table(table.path, EARLY).upsert(simple_rows([2], 2))


def test_commits_that_were_completed_meanwhile_count_when_asked_for(table: ModelledTable) -> None:
    times = 0

    def other_commits() -> None:
        nonlocal times
        times += 1
        table.write(Operation.UPSERT, simple_rows([4], 5 + times))

    before = files_of(table)
    session = WriteSession(table.storage, OPTIONS.read(EARLY | {COMMITS: "true"}), engine=Interrupted(other_commits, 3))
    with pytest.raises(CommitConflict):
        write_rows(session, Operation.UPSERT, simple_rows([2], 2))
    assert len(files_of(table) - before) == 3, "those of the others alone"


def requests(table: ModelledTable, options: dict[str, str], number: int) -> Counter[str]:
    storage = CountingStorage(table.storage)
    session = WriteSession(storage, OPTIONS.read(options))
    write_rows(session, Operation.UPSERT, simple_rows([number], 10 + number))
    return Counter(f"{request.kind.value} {request.path}" for request in storage.log.since(0) if request.path == MARKERS)


def test_it_costs_a_request_a_file_where_nobody_else_writes(table: ModelledTable) -> None:
    off = requests(table, {**EARLY, ENABLE: "false"}, 2)
    on = requests(table, EARLY, 4)
    assert sum((on - off).values()) == 1, (on, off)


def test_from_time_to_time_means_after_the_delay_and_each_period(table: ModelledTable) -> None:
    """What `AsyncTimelineServerBasedDetectionStrategy` stands for."""
    group, storage = group_of(table), CountingStorage(table.storage)

    began, _ = table.session().coordinator.begin(Operation.UPSERT)
    write = replace(began, instant="29990101000000000")
    look = EarlyLook(storage, table.session().properties, EarlyDetection(False, delay_s=5, period_s=30), write)
    machine, looked = Machine(), []
    with running_on(machine):
        for second in range(50):
            before = len(storage.log)
            look.check(group)
            if len(storage.log) > before:
                looked.append(second)
            machine.now += 1
    assert looked == [5, 35]


class Machine(ThisMachine):
    """A machine whose clock moves when it is told to."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now
