"""Archival: the active timeline stays short, nothing that a reader sees changes, and a run that died is finished."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.config import OPTIONS
from hudimeta.errors import StorageError, UndoError, ValidationFailed
from hudimeta.services import archival
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage.counting import CountingStorage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import ALWAYS, AT_REST, check_all, the_history_names_its_files
from hudimeta.timeline.archiving import move_to_history
from hudimeta.timeline.transitions import TimelineWriter
from hudimeta.types import Action, Operation
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import prepare, publish, write_batch, write_rows
from tests.concurrency.side_by_side import Interrupted
from tests.storage.changing_folder import changes_behind

SHORT = {
    "hoodie.keep.max.commits": "6",
    "hoodie.keep.min.commits": "3",
    "hoodie.metadata.compact.max.delta.commits": "2",
    "hoodie.clean.automatic": "false",
}


def written(path: Path, writes: int, **options: str) -> ModelledTable:
    table = ModelledTable(str(path), {**SIMPLE_OPTIONS, **SHORT, **options})
    for ts in range(1, writes + 1):
        table.write(Operation.UPSERT, simple_rows(range(ts % 3, ts % 3 + 6), ts))
    return table


def test_archived_moments_stay_readable(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 9)
    before = Table(table.path).timeline
    report = archival.archive(table.session())
    after = Table(table.path).timeline
    assert report.by_action == {"commit": report.archived}
    assert report.archived == len(before.writes) - len(after.writes) > 0
    assert len(after.writes) >= 3
    assert [i.time for i in after.history.instants()] == [i.time for i in before.writes[: report.archived]]
    table.check()
    check_all(table.storage)


def test_a_plan_asks_the_history_of_no_log_that_is_newer_than_its_base(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 9, **{"hoodie.table.type": "MERGE_ON_READ"})
    assert archival.archive(table.session()).archived > 0
    storage = CountingStorage(table.storage)
    logs = Snapshot.open(storage, OPTIONS.read({})).slices()["log_files"]
    assert sum(len(names) for names in logs.to_pylist()) >= 8
    assert [r.path for r in storage.log.since(0) if "/history/" in r.path and r.path.endswith(".parquet")] == []
    table.check()


def test_the_history_keeps_completion_times_and_metadata(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 9)
    before = {i.time: (i.completion, Table(table.path).timeline.read(i)) for i in Table(table.path).timeline.writes}
    archival.archive(table.session())
    for row in Table(table.path).timeline.history.load().to_pylist():
        assert before[row["instant_time"]] == (row["completion_time"], row["metadata"])


def test_nothing_happens_before_it_is_due(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 6)
    report = Table(table.path, SHORT).archive()
    assert report.archived == 0
    assert "hoodie.keep.max.commits" in str(report)


@pytest.mark.parametrize("action", [Action.COMMIT, Action.CLEAN])
def test_a_pending_instant_and_all_behind_it_stay(tmp_path: Path, action: Action) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **SHORT})
    table.write(Operation.UPSERT, simple_rows(range(4), 1))
    times = table.session().times
    pending = times.next(Table(table.path).timeline.last_time)
    for ts in range(2, 9):
        table.write(Operation.UPSERT, simple_rows(range(4), ts))
    TimelineWriter(table.storage).create_requested(pending, action)
    snapshot = table.session().snapshot_at(Table(table.path).timeline)
    the_plan = archival.plan(table.session(), snapshot)
    assert all(i.time < pending for i in the_plan.instants)
    assert "is pending" in str(the_plan)


def test_replaced_file_groups_hold_their_commit_until_they_are_cleaned(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 1)
    table.write(Operation.INSERT_OVERWRITE_TABLE, simple_rows(range(20, 24), 2))
    for ts in range(3, 12):
        table.write(Operation.UPSERT, simple_rows(range(20, 24), ts))
    report = archival.archive(table.session())
    assert report.by_action == {"commit": 1}
    assert "not cleaned yet" in str(report.plan)
    table.model.check(table.read())
    assert Table(table.path, {"hoodie.clean.commits.retained": 2}).clean().deleted
    report = archival.archive(table.session())
    assert report.by_action["replacecommit"] == 1
    table.model.check(table.read())
    check_all(table.storage)


def test_automatic_services_keep_the_table_small(tmp_path: Path) -> None:
    """What a user sees who only ever writes. The index that is made early leaves an instant that never leaves the timeline."""
    options = {**SIMPLE_OPTIONS, **SHORT, "hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "2"}
    ModelledTable(str(tmp_path / "t"), options)
    notes: list[str] = []
    for ts in range(1, 31):
        notes += Table(tmp_path / "t", options).upsert(simple_rows(range(6), ts)).notes
        if ts == 1:
            Table(tmp_path / "t").metadata.create_index(type="bloom_filters")
    table = Table(tmp_path / "t")
    assert any(note.startswith("cleaned at") for note in notes)
    assert any(note.startswith("archived") for note in notes)
    assert len(table.timeline.writes) <= 8
    assert table.timeline.instants[0].action is Action.INDEXING
    assert len(table.metadata.timeline.writes) <= 30
    assert len(list((tmp_path / "t").glob("p*/*.parquet"))) <= 2 * 4
    assert table.scan().to_table()["ts"].to_pylist() == [30] * 6
    check_all(ModelledTable(str(tmp_path / "t"), options, exists=True).storage)


@pytest.mark.rotation(3)
@pytest.mark.parametrize("number", range(0, 22, 5))
def test_a_run_that_fails_anywhere_is_finished_by_the_next(tmp_path: Path, number: int) -> None:
    table = written(tmp_path / "t", 9)
    faulty = FaultyStorage(table.storage, FaultPlan(number, Fault.ERROR_BEFORE))
    try:
        archival.archive(table.session(faulty))
    except StorageError:
        table.check()
        check_all(table.storage)
        archival.archive(table.session())
    times = Table(table.path).timeline.history.times()["instant_time"].to_pylist()
    assert times == sorted(set(times))
    assert len(times) >= 3
    table.check()
    check_all(table.storage)


@pytest.mark.parametrize("tidy", [archival.archive, lambda session: session.coordinator.recover()], ids=["archive", "recover"])
def test_what_a_run_left_that_died_before_its_manifest_troubles_no_write(
    tmp_path: Path, tidy: Callable[[WriteSession], object]
) -> None:
    """A write looks for what the timeline shows of the dead, which takes no further request: this it does not show."""
    table = written(tmp_path / "t", 4, **{"hoodie.keep.max.commits": "2", "hoodie.keep.min.commits": "1"})
    plan = FaultPlan(2, Fault.ERROR_BEFORE)
    with pytest.raises(StorageError, match="injected fault"):
        archival.archive(table.session(FaultyStorage(table.storage, plan)))
    assert plan.calls[1].endswith(".parquet")
    assert plan.calls[2].endswith("manifest_1")
    table.write(Operation.UPSERT, simple_rows([1], 9))
    table.model.check(table.read())
    check_all(table.storage, [one for one in (*ALWAYS, *AT_REST) if one is not the_history_names_its_files])
    with pytest.raises(ValidationFailed, match="no manifest names"):
        check_all(table.storage, [the_history_names_its_files])
    tidy(table.session())
    table.model.check(table.read())
    check_all(table.storage)


@pytest.mark.parametrize(
    "policy",
    [
        {"hoodie.clean.commits.retained": "5"},
        {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "0"},
    ],
)
def test_a_table_that_retains_more_than_it_keeps_active_is_cleaned_all_the_same(tmp_path: Path, policy: dict[str, str]) -> None:
    options = {**SIMPLE_OPTIONS, **SHORT, "hoodie.clean.automatic": "true", "hoodie.keep.min.commits": "2", **policy}
    table = ModelledTable(str(tmp_path / "t"), {**options, "hoodie.keep.max.commits": "4"})
    for ts in range(16):
        rows = simple_rows(range(4), ts)
        Table(table.path, table.options.given).upsert(rows)
        table.model.write(Operation.UPSERT, rows)
    timeline = Table(table.path).timeline
    assert len(timeline.writes) <= 8
    assert timeline.history.times().num_rows
    assert len(list(Path(table.path).glob("p*/*.parquet"))) <= 2 * 8, "superseded files are deleted"
    table.model.check(table.read())
    check_all(table.storage)


def test_what_cleaning_by_hours_looks_at_stays_active(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 9, **{"hoodie.clean.automatic": "true", "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS"})
    report = archival.archive(table.session())
    assert report.archived == 0
    table.check()


def outlasted(table: ModelledTable) -> None:
    """Writes to one partition, so many that archival is due."""
    for ts in range(2, 11):
        table.write(Operation.UPSERT, simple_rows([1, 3, 5], ts))


def test_an_incremental_read_comes_to_a_write_that_outlasted_many_others(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **SHORT})
    table.write(Operation.INSERT, simple_rows(range(8), 1))
    read_until: list[str] = []

    def meanwhile() -> None:
        outlasted(table)
        read_until.append(Table(table.path).timeline.writes[-1].completion or "")

    rows = simple_rows([0, 2], 20)
    write_rows(WriteSession(table.storage, table.options, engine=Interrupted(meanwhile)), Operation.UPSERT, rows)
    table.model.write(Operation.UPSERT, rows)
    archival.archive(table.session())
    scan = Table(table.path).scan(query_type="incremental", begin=read_until[0], columns=["id"])
    assert sorted(scan.to_table()["id"].to_pylist()) == ["k0000", "k0002"]
    check_all(table.storage)


def test_a_conflict_with_a_write_that_outlasted_many_others_is_noticed(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **SHORT})
    table.write(Operation.INSERT, simple_rows(range(8), 1))
    first, session = simple_rows([0], 20), table.session()
    files = TableFiles.at(session, session.properties.load_timeline(session.storage))
    prepared = prepare(files, session, Operation.UPSERT, first)
    with session.coordinator.writing(Operation.UPSERT, files.snapshot.timeline) as (write, begun):
        outcome = write_batch(session, TableFiles.at(session, begun), write, prepared, Timings())
        outlasted(table)

        def meanwhile() -> None:
            publish(session, files, write, prepared.schema, outcome, Timings())
            table.model.write(Operation.UPSERT, first)
            archival.archive(table.session())

        second = simple_rows([0, 2], 30)
        other = WriteSession(table.storage, table.options, engine=Interrupted(meanwhile))
        assert write_rows(other, Operation.UPSERT, second).attempts == 2
    table.model.write(Operation.UPSERT, second)
    table.model.check(table.read())
    check_all(table.storage)


def test_what_a_restore_to_a_savepoint_takes_back_stays_active(tmp_path: Path) -> None:
    """Also a compaction that was planned before the savepointed write, and run after it."""
    more = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline.max.delta.commits": "1"}
    short = {"hoodie.keep.max.commits": "2", "hoodie.keep.min.commits": "1"}
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **SHORT, **short, **more})
    face = Table(table.path, table.options.given)
    for ts in (1, 2):
        table.write(Operation.UPSERT, simple_rows([0], ts))
    planned = face.schedule_compaction()
    pinned = table.write(Operation.UPSERT, simple_rows([0], 3)).instant
    face.compact()
    face.savepoint(pinned)
    for ts in (4, 5):
        table.write(Operation.UPSERT, simple_rows([0], ts))
    face.compact()
    table.write(Operation.UPSERT, simple_rows([0], 7))
    assert str(face.archive().plan.stopped_by) == f"{pinned} is savepointed"
    timeline = face.timeline
    assert planned == timeline.writes[0].time
    assert planned in {one.time for one in face.restore(pinned, dry_run=True).plan.instants}
    move_to_history(table.storage, timeline, timeline.writes[:1])  # as others may do
    with pytest.raises(UndoError, match=f"{planned} and other later writes are archived"):
        face.restore(pinned)
    check_all(table.storage)


def test_what_a_write_left_beside_its_files_goes_when_it_is_archived(tmp_path: Path) -> None:
    """Its process died right after publishing, and other writers were busy until it had left the active timeline."""
    table = written(tmp_path / "t", 2)
    gone = Table(table.path).timeline.writes[-1].time
    traces = [f".hoodie/.temp/{gone}/p0/late-0_9-9-9_{gone}.parquet.marker.CREATE", f".hoodie/.staged/{gone}/rows.arrows"]
    late = f"p0/late-0_9-9-9_{gone}.parquet"
    table.write(Operation.UPSERT, simple_rows([5], 3))
    for path in (*traces, late):
        table.storage.put(path, b"")
    for ts in range(4, 12):
        table.write(Operation.UPSERT, simple_rows([ts % 6], ts))
    archival.archive(table.session())
    assert gone not in {i.time for i in Table(table.path).timeline}, "it is not archived"
    assert [path for path in (*traces, late) if table.storage.stat(path) is not None] == []
    table.check()
    check_all(table.storage)


def test_recovery_finds_what_a_write_left_that_others_archived(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 10)
    archival.archive(table.session())
    gone = Table(table.path).timeline.history.instants()[0].time
    kept = next(path.name for path in (tmp_path / "t" / "p0").glob(f"*_{gone}.parquet"))
    late = f"p0/late-0_9-9-9_{gone}.parquet"
    for path in (f".hoodie/.temp/{gone}/{late}.marker.CREATE", f".hoodie/.heartbeat/{gone}", late):
        table.storage.put(path, b"")
        os.utime(tmp_path / "t" / path, (1, 1))
    table.storage.put(f".hoodie/.temp/{gone}/p0/{kept}.marker.MERGE", b"")
    Table(table.path).recover()
    assert table.storage.stat(late) is None
    table.check()
    check_all(table.storage)


def test_recovery_removes_what_an_archival_left_that_died(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 10)
    archival.archive(table.session())
    history = ".hoodie/timeline/history"
    left = [f"{history}/20200101000000000_20200101000000001_0.parquet", f"{history}/_version_.tmp"]
    for path in left:
        table.storage.put(path, b"{}")
    Table(table.path).recover()
    assert [path for path in left if table.storage.stat(path) is not None] == []
    table.check()
    check_all(table.storage)


def test_a_timeline_that_was_listed_before_an_archival_tells_all_the_same_what_its_instants_said(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 10, **{"hoodie.datasource.write.operation": "upsert"})
    table.write(Operation.INSERT_OVERWRITE, simple_rows([0], 20))
    table.write(Operation.UPSERT, simple_rows([1], 21))
    table.session().coordinator.recover()
    before, listed = Table(table.path).timeline, Table(table.path).timeline
    said = {i: (before.metadata(i), before.plan(i) if i.action is Action.CLEAN else None) for i in before.completed}
    for ts in range(22, 30):
        table.write(Operation.UPSERT, simple_rows([ts % 6], ts))
    archival.archive(table.session())
    gone = set(listed.completed) - set(Table(table.path).timeline.completed)
    assert len(gone) > 3
    for instant in listed.completed:
        assert (listed.metadata(instant), listed.plan(instant) if instant.action is Action.CLEAN else None) == said[instant]


def test_a_reader_that_lists_while_commits_are_archived_sees_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **SHORT})
    for ts in range(10):
        table.write(Operation.INSERT, simple_rows([ts], ts, partitions=10))
    first = Table(table.path).timeline.writes[0]
    changes_behind(monkeypatch, tmp_path / "t/.hoodie/timeline", first.file_name, lambda: archival.archive(table.session()))
    assert Table(table.path).scan(columns=["x"]).to_table().num_rows == 10
    assert first not in Table(table.path).timeline.writes


def test_a_write_goes_on_when_what_it_looked_at_is_archived_meanwhile(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 4)

    def meanwhile() -> None:
        for ts in range(5, 14):
            table.write(Operation.UPSERT, simple_rows([ts % 6 * 2], ts))
        archival.archive(table.session())

    session = WriteSession(table.storage, table.options, engine=Interrupted(meanwhile))
    write_rows(session, Operation.UPSERT, simple_rows([21, 23], 30, partitions=1))
    table.model.write(Operation.UPSERT, simple_rows([21, 23], 30, partitions=1))
    table.model.past.clear()  # it began before these moments, so that it belongs to them from now on
    table.check()
    check_all(table.storage)
