"""What is done while everybody waits: the table lock is held for what depends on others, and for nothing else."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hudimeta
from hudimeta.commit.locks.fence import FencedLock
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.indexes.column_stats.keep import PartitionStatsKeep
from hudimeta.indexes.protocol import CommitChange, IndexDelta
from hudimeta.metadata import column_stats, files, partition_stats, record_index
from hudimeta.services import clean
from hudimeta.services.compaction import compact
from hudimeta.storage import CountingStorage, RequestKind, open_storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline import SystemClock, Timeline
from hudimeta.types import Action, Instant, Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted

INDEXED = {**SIMPLE_OPTIONS, "hoodie.metadata.record.index.enable": "true"}
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
NO_SMALL = {"hoodie.parquet.small.file.limit": "0"}
HURRIED = {"hoodie.write.lock.wait_time_ms": "100"}
OFTEN = {"hoodie.metadata.compact.max.delta.commits": "3"}


class Noted(FencedLock):
    """A lock that knows what was asked of the storage each time that it was held.

    Args:
        session: Whose lock it takes the place of.
        before: Happens before the lock is taken for the n-th time, n being its argument.
    """

    def __init__(self, session: WriteSession, before: Callable[[int], object] = lambda turn: None) -> None:
        super().__init__(session.lock, SystemClock())
        assert isinstance(session.storage, CountingStorage)
        self._log, self._before, self.turns = session.storage.log, before, list[tuple[int, int]]()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        self._before(len(self.turns))
        with super().held():
            begun = len(self._log)
            try:
                yield
            finally:
                self.turns.append((begun, len(self._log)))

    def asked(self, turn: int, kind: RequestKind) -> list[str]:
        """Paths of the requests of one kind while the lock was held for the n-th time."""
        begun, ended = self.turns[turn]
        return [request.path for request in self._log.since(0)[begun:ended] if request.kind is kind]


def session_of(table: ModelledTable, engine: Interrupted | None = None) -> WriteSession:
    return WriteSession(CountingStorage(open_storage(table.path)), table.options, engine=engine)


def of_metadata(paths: list[str]) -> set[str]:
    """The metadata partitions of some files."""
    return {path.split("/")[2] for path in paths if path.startswith(".hoodie/metadata/") and "/.hoodie/" not in path}


@pytest.mark.parametrize("kind", KINDS)
def test_beside_others_only_what_they_may_have_changed_is_read_again(tmp_path: Path, kind: str) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**INDEXED, "hoodie.datasource.write.table.type": kind})
    table.write(Operation.UPSERT, simple_rows(range(8), 1))

    mine, theirs = simple_rows(range(0, 4, 2), 2), simple_rows(range(1, 5, 2), 2)
    session = session_of(table, Interrupted(lambda: table.write(Operation.UPSERT, theirs)))
    session.lock = lock = Noted(session)
    write_rows(session, Operation.UPSERT, mine)
    table.model.write(Operation.UPSERT, mine)

    (turn,) = range(len(lock.turns))
    assert of_metadata(lock.asked(turn, RequestKind.GET)) <= {record_index.PARTITION}
    assert {files.PARTITION, column_stats.PARTITION, partition_stats.PARTITION} <= of_metadata(
        lock.asked(turn, RequestKind.PUT)
    )
    table.model.check(table.read())
    check_all(table.storage)


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_of_a_partition_that_others_widened_are_made_again(tmp_path: Path, kind: str) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**INDEXED, "hoodie.datasource.write.table.type": kind})
    table.write(Operation.INSERT, simple_rows(range(8), 1))
    session = session_of(table, Interrupted(lambda: table.write(Operation.UPSERT, simple_rows([8, 10], 2, 900.0))))
    mine = simple_rows([12], 2, -900.0)
    write_rows(session, Operation.UPSERT, mine)
    table.model.write(Operation.UPSERT, mine)
    table.model.check(table.read())
    check_all(table.storage)
    for where in ("x > 800", "x < -800"):
        assert hudimeta.Table(table.path).scan(where=where).count()


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_beside_writers_at_work_are_kept_and_united_with_theirs(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **NO_SMALL, "hoodie.datasource.write.table.type": kind})
    table.write(Operation.INSERT, simple_rows(range(8), 1))
    at_work = session_of(table)
    pending, _ = at_work.coordinator.begin(Operation.UPSERT)
    made, delta = list[str](), PartitionStatsKeep.delta

    def noted(keep: PartitionStatsKeep, partition: str, change: CommitChange) -> IndexDelta:
        made.append(change.instant)
        return delta(keep, partition, change)

    monkeypatch.setattr(PartitionStatsKeep, "delta", noted)
    others = table.session(options=OPTIONS.read({**table.options.given, **HURRIED}))
    theirs, mine = simple_rows([8, 10], 2, 900.0), simple_rows([12], 2, -900.0)

    session = session_of(table)
    session.lock = lock = Noted(session, lambda turn: write_rows(others, Operation.UPSERT, theirs))
    report = write_rows(session, Operation.UPSERT, mine)

    assert made.count(report.instant) == 1
    assert of_metadata(lock.asked(0, RequestKind.GET)) <= {partition_stats.PARTITION}
    at_work.coordinator.withdraw(pending)
    for rows in (theirs, mine):
        table.model.write(Operation.UPSERT, rows)
    table.model.check(table.read())
    check_all(table.storage)
    for where, count in (("x > 800", 2), ("x < -800", 1)):
        assert hudimeta.Table(table.path).scan(where=where).count() == count


def test_who_is_next_keeps_nobody_from_the_lock(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **HURRIED})
    next_one = session_of(table)
    with next_one.lock.next_here():  # and stands still there
        report = table.write(Operation.UPSERT, simple_rows(range(4), 1))
    assert [note for note in report.notes if "out of line" in note] == [
        "waited 0.1 s in vain to be the next of this machine at the table lock, and went on to it out of line"
    ]
    assert "out of line" in str(report)
    assert not any("out of line" in note for note in table.write(Operation.UPSERT, simple_rows(range(4), 2)).notes)
    table.model.check(table.read())
    check_all(table.storage)


def test_a_service_that_went_past_who_is_next_says_so_once(tmp_path: Path) -> None:
    table = ModelledTable(
        str(tmp_path / "t"), {**SIMPLE_OPTIONS, **HURRIED, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    )
    for ts in (1, 2):
        table.write(Operation.UPSERT, simple_rows(range(4), ts))
    session = table.session()
    with session_of(table).lock.next_here():
        write = write_rows(session, Operation.UPSERT, simple_rows(range(4), 3))
        (compaction,) = compact(session)
    for report in (write, compaction):
        assert sum("out of line" in note for note in report.notes) == 1
    assert any("log files merged" in note for note in compaction.notes)


def compacting(tmp_path: Path) -> ModelledTable:
    """A table whose next write compacts the metadata table."""
    table = ModelledTable(str(tmp_path / "t"), {**INDEXED, **OFTEN})
    while not table.write(Operation.UPSERT, simple_rows(range(4), 1)).compacted_metadata:
        pass
    for _ in range(2):
        table.write(Operation.UPSERT, simple_rows(range(4), 2))
    return table


def test_the_metadata_table_is_merged_before_the_lock_is_taken(tmp_path: Path) -> None:
    table = compacting(tmp_path)
    session = session_of(table)
    session.lock = lock = Noted(session)
    rows = simple_rows(range(4), 3)
    assert write_rows(session, Operation.UPSERT, rows).compacted_metadata
    table.model.write(Operation.UPSERT, rows)

    published, compacted, tidied = range(3)
    assert not any(path.endswith(".hfile") for path in lock.asked(published, RequestKind.PUT))
    bases = [path for path in lock.asked(compacted, RequestKind.PUT) if path.endswith(".hfile")]
    assert of_metadata(bases) >= {files.PARTITION, column_stats.PARTITION}
    assert not of_metadata(lock.asked(compacted, RequestKind.GET))
    assert len(lock.turns) == tidied + 1
    table.model.check(table.read())
    check_all(table.storage)


def test_a_merge_is_used_though_others_wrote_meanwhile(tmp_path: Path) -> None:
    table = compacting(tmp_path)
    others = table.session(options=OPTIONS.read(SIMPLE_OPTIONS))  # compacts after ten commits

    def meanwhile(turn: int) -> None:
        if turn == compacted:
            write_rows(others, Operation.UPSERT, simple_rows(range(4, 8), 3))
            table.model.write(Operation.UPSERT, simple_rows(range(4, 8), 3))

    _, compacted = range(2)  # turns of the lock
    session = session_of(table)
    session.lock = lock = Noted(session, meanwhile)
    assert write_rows(session, Operation.UPSERT, simple_rows(range(4), 3)).compacted_metadata
    assert not of_metadata(lock.asked(compacted, RequestKind.GET)), "nothing is merged again under the lock"
    table.model.write(Operation.UPSERT, simple_rows(range(4), 3))
    table.model.check(table.read())
    check_all(table.storage)


def test_a_merge_is_made_again_after_what_it_holds_was_taken_back(tmp_path: Path) -> None:
    table = compacting(tmp_path)
    session = session_of(table)

    def meanwhile(turn: int) -> None:
        if turn == compacted:
            others = hudimeta.Table(table.path, SIMPLE_OPTIONS)  # compacts after ten commits
            others.rollback(others.timeline.writes[-1].time)
            others.upsert(simple_rows(range(4, 8), 3))
            table.model.write(Operation.UPSERT, simple_rows(range(4, 8), 3))

    _, compacted = range(2)  # turns of the lock
    session.lock = Noted(session, meanwhile)
    assert write_rows(session, Operation.UPSERT, simple_rows(range(20, 24), 3)).compacted_metadata
    table.model.check(table.read())
    check_all(table.storage)


def test_a_write_that_was_published_meanwhile_is_not_taken_for_dead(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    seen: list[Timeline] = []
    session = session_of(table, Interrupted(lambda: seen.append(session.properties.load_timeline(session.storage))))
    write_rows(session, Operation.INSERT, simple_rows(range(4), 1))
    assert [len(timeline.pending_writes) for timeline in seen] == [1]

    later = session_of(table)
    later.lock = lock = Noted(later)
    write, _ = later.coordinator.begin(Operation.UPSERT, seen[0])
    assert not lock.turns, "nobody had to wait for a look at what is left of others"
    later.coordinator.withdraw(write)
    check_all(table.storage)


def test_writers_leave_a_clean_to_whoever_planned_it(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.clean.commits.retained": "2"})
    for ts in range(1, 5):
        table.write(Operation.UPSERT, simple_rows(range(10), ts))

    def writes(turn: int) -> None:
        if turn == 2:  # recovery took it once, the plan once; now the clean ends
            table.write(Operation.UPSERT, simple_rows(range(4), 5))

    session = session_of(table)
    session.lock = lock = Noted(session, writes)
    report = clean.clean(session)
    assert (report.deleted, len(lock.turns)) == (2, 3)
    timeline = hudimeta.Table(table.path).timeline
    assert [i.time for i in timeline.completed if i.action is Action.CLEAN] == [report.instant]
    table.model.check(table.read())
    check_all(table.storage)


@pytest.mark.parametrize("kind", KINDS)
def test_who_holds_the_lock_waits_for_the_bytes_of_two_files_alone(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**INDEXED, "hoodie.datasource.write.table.type": kind})
    table.write(Operation.UPSERT, simple_rows(range(8), 1))
    session, rows, synced, fsync = session_of(table), simple_rows(range(4, 12), 2), list[tuple[str, bool]](), os.fsync
    lock, writer = session.lock, threading.get_ident()

    def noted(fd: int) -> None:
        at = os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), table.path)
        synced.append((at, lock.is_held and threading.get_ident() == writer))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", noted)
    write_rows(session, Operation.UPSERT, rows)
    table.model.write(Operation.UPSERT, rows)
    waited_for = [path for path, waits in synced if waits]
    assert len(waited_for) == 2
    assert all("timeline/#" in path for path in waited_for), waited_for
    folders = {".hoodie/timeline", ".hoodie/metadata/.hoodie/timeline", ".hoodie/metadata/files"}
    assert folders <= {path for path, waits in synced if not waits}
    table.model.check(table.read())


def test_what_a_clean_of_the_metadata_table_leaves_is_deleted_by_the_next(tmp_path: Path) -> None:
    options = {**INDEXED, **OFTEN, "hoodie.clean.commits.retained": "1"}
    table, inner = ModelledTable(str(tmp_path / "t"), options), tmp_path / "t/.hoodie/metadata"

    def cleans() -> list[Instant]:
        timeline = Timeline.load(open_storage(inner))
        return [i for i in timeline.completed if i.action is Action.CLEAN]

    while not cleans():
        table.write(Operation.UPSERT, simple_rows(range(4), 1))
    (last,) = cleans()
    partitions = Timeline.load(open_storage(inner)).metadata(last)["partitionMetadata"]
    gone = sorted(inner / name / file for name, one in partitions.items() for file in one["successDeleteFiles"])
    assert gone
    assert not any(path.exists() for path in gone)
    for path in gone[len(gone) // 2 :]:  # as if its process had died half-way
        path.write_bytes(b"left")
    while len(cleans()) == 1:
        table.write(Operation.UPSERT, simple_rows(range(4), 2))
    assert not any(path.exists() for path in gone)
    table.check()
    check_all(table.storage)
