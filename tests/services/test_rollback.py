"""Rollback of a completed write: the newest alone, out of every index, and the table goes on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.restoring import files_of_instants, refuse_undone
from hudimeta.config import OPTIONS
from hudimeta.errors import CommitConflict, HudiError, UndoError
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.services.rollback import roll_back
from hudimeta.storage import LocalStorage
from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.testing.invariants import ALWAYS, check_all
from hudimeta.timeline import TimelineWriter
from hudimeta.timeline.rollback_record import encode_rollback_plan
from hudimeta.types import Action, Operation
from hudimeta.write.table_writer import write_rows
from tests.services.test_restore import TYPES, a_table, go_on, is_sound

OPTIMISTIC = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
KEPT = {"hoodie.metadata.compact.max.delta.commits": "50"}


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("operation", [Operation.UPSERT, Operation.INSERT_OVERWRITE_TABLE, Operation.DELETE_PARTITION])
def test_the_newest_write_goes(tmp_path: Path, type: str, operation: Operation) -> None:
    table = a_table(tmp_path / "t", **{"hoodie.datasource.write.table.type": type}, **KEPT)
    face = Table(table.path, table.options.given)
    kept, proven = table.model.copy(), proven_indexes(face.snapshot().metadata)
    last = table.write(operation, simple_rows([1, 3, 30], 7))
    planned = face.rollback(last.instant, dry_run=True)
    assert planned.instant is None
    assert str(planned) == f"would roll {planned.plan.action.value} {last.instant} back: {planned.plan.n_files} files go"
    table.model.check(table.read())
    report = face.rollback(last.instant)
    assert report.deleted == planned.plan.n_files
    table.model = kept.copy()
    is_sound(table)
    assert proven_indexes(Table(table.path).snapshot().metadata) == proven
    go_on(table)
    is_sound(table)


def test_files_go_before_the_write_is_in_flight_no_more(tmp_path: Path) -> None:
    """Apache Hudi, should it have to finish the rollback, deletes no file of a write that is only requested."""
    table = a_table(tmp_path / "t", **KEPT)
    last = table.write(Operation.UPSERT, simple_rows([1, 3, 30], 7)).instant
    left: list[int] = []

    class Watched(LocalStorage):
        def delete(self, path: str) -> bool:
            if path.startswith(f".hoodie/timeline/{last}") and path.endswith(".inflight"):
                left.append(len(list(Path(table.path).glob(f"*/*{last}*"))))
            return super().delete(path)

    assert list(Path(table.path).glob(f"*/*{last}*"))
    roll_back(table.session(Watched(table.path)), last)
    assert left == [0]


def test_one_after_the_other_down_to_the_empty_table(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", **KEPT)
    face = Table(table.path, table.options.given)
    first, second = (i.time for i in face.timeline.writes)
    with pytest.raises(UndoError, match=f"commit {second} came after it") as caught:
        face.rollback(first)
    assert caught.value.instant == first
    face.rollback(second)
    face.rollback(first)
    assert face.scan().count() == 0
    table.model.rows, table.model.past = {}, {}
    is_sound(table)
    table.write(Operation.UPSERT, simple_rows(range(5), 8))
    is_sound(table)


def test_what_cannot_come_back_is_refused(tmp_path: Path) -> None:
    versions = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    table = a_table(tmp_path / "t", **versions, **KEPT)
    face = Table(table.path, table.options.given)
    newest = face.timeline.writes[-1].time
    with pytest.raises(UndoError, match="no such write"):
        face.rollback("20200101000000000")
    face.savepoint(newest)
    with pytest.raises(UndoError, match="it is savepointed"):
        face.rollback(newest)
    face.delete_savepoint(newest)
    assert face.clean().deleted
    with pytest.raises(UndoError, match="cleaning removed"):
        face.rollback(newest)
    table.model.check(table.read())


def test_what_the_metadata_table_has_merged_goes_by_a_restore(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", **{"hoodie.metadata.compact.max.delta.commits": "1"})
    face = Table(table.path, table.options.given)
    first, second = (i.time for i in face.timeline.writes)
    with pytest.raises(UndoError, match=f"merged what goes.*restore.'{first}'"):
        face.rollback(second)
    is_sound(table)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("recovers", [True, False])
def test_a_rollback_that_was_begun_although_the_metadata_table_has_merged_its_write_is_finished(
    tmp_path: Path, type: str, recovers: bool
) -> None:
    """As Apache Hudi 1.2 leaves it, which refuses after it has deleted the files: the metadata table listed them for good."""
    table = a_table(
        tmp_path / "t", **{"hoodie.datasource.write.table.type": type, "hoodie.metadata.compact.max.delta.commits": "1"}
    )
    kept = table.model.copy()
    last = table.write(Operation.UPSERT, simple_rows([1, 3, 30], 7))
    timeline = Table(table.path).timeline
    write = timeline.writes[-1]
    files: dict[str, list[str]] = {}
    for row in files_of_instants(table.storage, [last.instant]).to_pylist():
        files.setdefault(row["partition_path"], []).append(row["name"])
        table.storage.delete(f"{row['partition_path']}/{row['name']}")
    writer, later = TimelineWriter(table.storage, timeline.folder), f"{int(timeline.last_time) + 1}"
    writer.create_requested(later, Action.ROLLBACK, encode_rollback_plan(table.path, last.instant, write.action, files))
    writer.create_inflight(later, Action.ROLLBACK)
    writer.delete_completed(write)
    table.model = kept
    if recovers:
        assert Table(table.path).recover() == (last.instant,)
    else:
        table.write(Operation.UPSERT, simple_rows([2, 31], 8))
    assert not Table(table.path).timeline.pending
    is_sound(table)
    go_on(table)
    is_sound(table)


def test_a_planned_compaction_goes(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"}, **KEPT)
    face = Table(table.path, table.options.given)
    instant = face.schedule_compaction()
    assert instant is not None
    newest = face.timeline.writes[-1].time
    with pytest.raises(UndoError, match=f"compaction {instant} came after it"):
        face.rollback(newest)
    assert face.rollback(instant).plan.action is Action.COMPACTION
    assert not face.timeline.pending
    is_sound(table)
    face.rollback(newest)
    check: ModelledTable = table
    check.model.past.pop(newest)
    check.model.rows = {}
    for row in check.model.past[min(check.model.past)]:
        check.model.rows[check.model.place_of(row)] = [row]
    is_sound(table)


class Dying(LocalStorage):
    """The store of a process that dies just before it takes a completed write off the timeline."""

    def delete(self, path: str) -> bool:
        """See `Storage.delete`."""
        if path.endswith("commit") and "_" in path:
            raise KeyboardInterrupt
        return super().delete(path)


@pytest.mark.parametrize("type", TYPES)
def test_a_rollback_that_died_is_seen_by_all_and_finished_by_the_next_write(tmp_path: Path, type: str) -> None:
    """Also where failed writes wait for a clean: what builds on a write that goes would be deleted with it."""
    table = a_table(tmp_path / "t", **{"hoodie.datasource.write.table.type": type}, **KEPT)
    kept = table.model.copy()
    last = table.write(Operation.UPSERT, simple_rows([1, 3, 30], 7))
    beside = table.session(options=OPTIONS.read({**table.options.given, **OPTIMISTIC}))
    stale = beside.snapshot_now().timeline
    with pytest.raises(KeyboardInterrupt):
        roll_back(table.session(Dying(table.path)), last.instant)
    table.model = kept
    table.model.check(table.read())
    with (
        pytest.raises(CommitConflict, match="which a restore or rollback has taken back"),
        beside.coordinator.writing(Operation.UPSERT, stale) as (write, _),
    ):
        refuse_undone(beside.properties.load_timeline(beside.storage), write)
    write_rows(beside, Operation.UPSERT, simple_rows([1, 40], 8))
    table.model.write(Operation.UPSERT, simple_rows([1, 40], 8))
    is_sound(table)


@pytest.mark.parametrize("type", TYPES)
def test_no_index_speaks_of_a_write_whose_rollback_died(tmp_path: Path, type: str) -> None:
    """It has taken the old values of its rows out of the indexes: who looks these up must find the rows all the same."""
    table = a_table(tmp_path / "t", **{"hoodie.datasource.write.table.type": type}, **KEPT)
    kept = table.model.copy()
    last = table.write(Operation.UPSERT, simple_rows([1, 3, 5, 30], 7))
    with pytest.raises(KeyboardInterrupt):
        roll_back(table.session(Dying(table.path)), last.instant)
    face = Table(table.path)
    assert {"record_index", "secondary_index_ts"} <= set(proven_indexes(face.snapshot().metadata))
    for ts in (1, 2, 7):
        scan = face.scan(f"ts = {ts}")
        wanted = sorted(row["id"] for rows in kept.rows.values() for row in rows if row["ts"] == ts)
        assert sorted(scan.to_table()["id"].to_pylist()) == wanted
        assert "secondary" in str(scan.report)
    known = face.metadata.record_index(pa.array(["k0001", "k0030"]))
    assert known["record_key"].to_pylist() == ["k0001"]
    check_all(table.storage, ALWAYS)


def test_a_plan_that_was_torn_as_it_was_written_hides_no_write(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", **KEPT)
    later = f"{int(table.session().snapshot_now().timeline.last_time) + 1}"
    table.storage.put(f".hoodie/timeline/{later}.rollback.requested", b"Obj\x01\x04")
    table.model.check(table.read())
    with pytest.raises(HudiError, match=f"{later}.rollback.requested"):
        table.write(Operation.UPSERT, simple_rows([1], 8))
