"""Restore: the table as it was, in every query and every index, and it goes on from there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.restoring import refuse_undone
from hudimeta.config import HudiWarning
from hudimeta.errors import CommitConflict, CommitError, CorruptFileError, IndexNotReady, StorageError, UndoError
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.metadata.rollback import METADATA_ROOT, take_back_delta
from hudimeta.services import restore as service
from hudimeta.storage import LocalStorage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline import Timeline, TimelineWriter
from hudimeta.timeline.restore_record import RestoreRecord, encode_restore_plan
from hudimeta.timeline.rollback_record import encode_rollback_plan
from hudimeta.types import Action, Operation
from tests.concurrency.side_by_side import Interrupted

TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
OPTIONS = {
    **SIMPLE_OPTIONS,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.secondary.column": "ts",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.table.services.enabled": "false",
}


def a_table(path: Path, **more: str) -> ModelledTable:
    table = ModelledTable(str(path), {**OPTIONS, **more})
    table.write(Operation.INSERT, simple_rows(range(12), 1))
    table.write(Operation.UPSERT, simple_rows(range(4, 10), 2))
    return table


def go_on(table: ModelledTable) -> None:
    """Three more writes of different kinds."""
    table.write(Operation.UPSERT, simple_rows(range(8, 20), 3))
    table.write(Operation.DELETE, simple_rows(range(2), 4))
    table.write(Operation.INSERT_OVERWRITE, simple_rows([1, 3], 5))


def is_sound(table: ModelledTable) -> None:
    """Reads as the model says, now and as of each moment that is left; every index agrees, and nothing lies about."""
    there = {i.time for i in Table(table.path).timeline.writes}
    table.model.past = {time: rows for time, rows in table.model.past.items() if time in there}
    table.check()
    check_all(table.storage)
    Table(table.path).metadata.validate(deep=True).raise_if_differs()


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("type", TYPES)
def test_back_and_on_again(tmp_path: Path, type: str, version: str) -> None:
    more = {"hoodie.datasource.write.table.type": type, "hoodie.write.table.version": version}
    table = a_table(tmp_path / "t", **more, **{"hoodie.metadata.compact.max.delta.commits": "50"})
    face = Table(table.path, table.options.given)
    proven = proven_indexes(face.snapshot().metadata)
    point, kept = face.savepoint().instant, table.model.copy()
    go_on(table)
    if type == "MERGE_ON_READ":
        face.compact()
        face.schedule_compaction()
    planned = face.restore(point, dry_run=True)
    assert planned.instant is None
    assert planned.plan.metadata == "taken back"
    assert Table(table.path).scan().count() == table.read().num_rows, "nothing was done"
    report = face.restore(point)
    assert (report.plan, report.deleted) == (planned.plan, planned.plan.files)
    assert report.deleted >= 5
    table.model = kept.copy()
    is_sound(table)
    assert proven_indexes(Table(table.path).snapshot().metadata) == proven, "each index is as it was"
    go_on(table)
    is_sound(table)
    assert face.restore(point).deleted
    table.model = kept.copy()
    is_sound(table)


@pytest.mark.parametrize("type", TYPES)
def test_a_metadata_table_that_merged_what_goes_is_built_anew(tmp_path: Path, type: str) -> None:
    more = {"hoodie.datasource.write.table.type": type, "hoodie.metadata.compact.max.delta.commits": "2"}
    table = a_table(tmp_path / "t", **more)
    face = Table(table.path, table.options.given)
    names, kept = face.metadata.ready, table.model.copy()
    point = face.timeline.writes[-1].time
    go_on(table)
    assert face.restore(point, dry_run=True).plan.metadata.startswith("built anew: its compaction at ")
    face.restore(point)
    assert face.metadata.ready == names
    table.model = kept.copy()
    is_sound(table)
    go_on(table)
    is_sound(table)


def test_a_metadata_table_that_lost_what_a_restore_told_it_is_built_anew(tmp_path: Path) -> None:
    """Apache Hudi's restores add a delta commit of their own, whose completed file is empty if they are killed just then."""
    table = a_table(tmp_path / "t", **{"hoodie.metadata.compact.max.delta.commits": "50"})
    face, session, kept = Table(table.path, table.options.given), table.session(), table.model.copy()
    point = face.timeline.writes[-1].time
    go_on(table)
    _, planned = service.schedule(session, point)
    take_back_delta(table.storage, *planned.record.times)
    for gone in (file for time in planned.record.times for file in (tmp_path / "t/.hoodie/timeline").glob(f"{time}*")):
        gone.unlink()
    inner = TimelineWriter(table.storage.sub(METADATA_ROOT))
    own = session.times.next(face.timeline.last_time)
    inner.create_requested(own, Action.DELTA_COMMIT)
    inner.create_inflight(own, Action.DELTA_COMMIT)
    table.storage.put(f"{METADATA_ROOT}/.hoodie/timeline/{own}_{session.times.next(own)}.deltacommit", b"")
    with pytest.warns(HudiWarning, match="is empty: the write counts as completed"):
        face.recover()
    assert own not in {i.time for i in Timeline.load(table.storage.sub(METADATA_ROOT))}
    table.model = kept
    is_sound(table)
    go_on(table)
    is_sound(table)


@pytest.mark.parametrize("action", [Action.RESTORE, Action.ROLLBACK])
def test_a_metadata_table_that_another_writer_left_half_restored_is_built_anew(tmp_path: Path, action: Action) -> None:
    """Apache Hudi restores the metadata table by a restore of its own, with rollbacks, which nobody would ever finish."""
    table = a_table(tmp_path / "t", **{"hoodie.metadata.compact.max.delta.commits": "50"})
    face, session, kept = Table(table.path, table.options.given), table.session(), table.model.copy()
    point = face.timeline.writes[-1].time
    go_on(table)
    _, planned = service.schedule(session, point)
    for gone in (file for time in planned.record.times for file in (tmp_path / "t/.hoodie/timeline").glob(f"{time}*")):
        gone.unlink()
    inner, own = table.storage.sub(METADATA_ROOT), session.times.next(face.timeline.last_time)
    if action is Action.RESTORE:
        deltas = tuple((time, Action.DELTA_COMMIT) for time in planned.record.times)
        plan = encode_restore_plan(RestoreRecord(point, deltas))
    else:
        plan = encode_rollback_plan(inner.root, planned.record.times[0], Action.DELTA_COMMIT, {})
        take_back_delta(table.storage, *planned.record.times)
    TimelineWriter(inner).create_requested(own, action, plan)
    TimelineWriter(inner).create_inflight(own, action)
    # A first attempt had begun before that, with nothing to build anew.
    begun = TimelineWriter(table.storage).create_inflight(Table(table.path).timeline.pending[-1].time, Action.RESTORE)
    calls = FaultPlan(None, Fault.KILL)
    table.session(FaultyStorage(table.storage, calls)).coordinator.recover()
    # Late, from who stood still, a put would name what is long built: it replaces the file only while it says nothing.
    assert [call.split()[0] for call in calls.calls if call.endswith(begun.file_name)][:1] == ["put_if_unchanged"]
    assert not Timeline.load(inner).pending
    table.model = kept
    is_sound(table)
    go_on(table)
    is_sound(table)


class _NoMetadata(FaultPlan):
    """No metadata table can be begun."""

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        if name.startswith("put_if_absent .hoodie/metadata/"):
            raise StorageError(name, "injected fault")
        return super().around(name, act)


def test_what_is_built_anew_is_not_taken_from_damage(tmp_path: Path) -> None:
    """It failed after it had said which partitions these are, and that file was damaged."""
    plain = {**SIMPLE_OPTIONS, "hoodie.table.services.enabled": "false", "hoodie.metadata.compact.max.delta.commits": "1"}
    table = ModelledTable(str(tmp_path / "t"), plain)
    point = table.write(Operation.INSERT, simple_rows([0, 1], 1)).instant
    face, kept = Table(table.path, plain), table.model.copy()
    names = face.metadata.ready
    for ts in (2, 3):
        table.write(Operation.UPSERT, simple_rows([0], ts))
    with pytest.raises(CommitError, match="is not finished"):
        service.restore(table.session(FaultyStorage(table.storage, _NoMetadata(None, Fault.ERROR_BEFORE))), point)
    (inflight,) = (tmp_path / "t/.hoodie/timeline").glob("*.restore.inflight")
    assert inflight.read_text() == ",".join(names)
    for damaged in (b"files,\xff", b"filet"):
        inflight.write_bytes(damaged)
        with pytest.raises(CorruptFileError, match=r"restore\.inflight .* or delete it: the restore goes on"):
            table.write(Operation.UPSERT, simple_rows([1], 9))
    inflight.unlink()
    face.recover()
    kept.check(table.read())
    face.metadata.rebuild()
    assert face.metadata.ready == names
    table.model = kept
    is_sound(table)


def test_a_plan_that_outlives_the_metadata_table_is_run_in_the_new_one(tmp_path: Path) -> None:
    """Its delta commit bears an instant from before writes that the new metadata table was laid out with."""
    plain = {**SIMPLE_OPTIONS, "hoodie.table.services.enabled": "false", "hoodie.metadata.compact.max.delta.commits": "1"}
    table = ModelledTable(str(tmp_path / "t"), {**plain, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    face = Table(table.path, table.options.given)
    table.write(Operation.INSERT, simple_rows([0, 1], 1))
    table.write(Operation.UPSERT, simple_rows([0, 1], 2))
    planned = face.schedule_compaction()
    point = table.write(Operation.UPSERT, simple_rows([0, 1], 3)).instant
    for ts in (4, 5):
        table.write(Operation.UPSERT, simple_rows([0], ts))
    assert face.restore(point).plan.metadata.startswith("built anew")
    table.model.restore(point)
    assert face.compact()[0].instant == planned
    table.write(Operation.UPSERT, simple_rows([1, 2], 6))
    is_sound(table)


@pytest.mark.parametrize("type", TYPES)
def test_files_that_a_service_replaced_which_was_planned_before_and_run_after_are_missed(tmp_path: Path, type: str) -> None:
    """Cleaning goes by request, and a restore takes the service back, with the only files that have its rows by then."""
    more = {"hoodie.datasource.write.table.type": type, "hoodie.table.services.enabled": "false"}
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **more})
    face = Table(table.path, table.options.given)
    table.write(Operation.INSERT, simple_rows([0, 2], 1))
    if type == "MERGE_ON_READ":
        table.write(Operation.UPSERT, simple_rows([0], 2))
        face.schedule_compaction()
        point = table.write(Operation.UPSERT, simple_rows([0], 3)).instant
        face.compact()
    else:
        planned = face.services.clustering.schedule()
        point = table.write(Operation.INSERT, simple_rows([1, 3], 3)).instant
        face.services.clustering.execute(planned)
    table.write(Operation.INSERT, simple_rows([5], 4))
    assert face.restore(point, dry_run=True).plan.instants
    since = [i.time for i in face.timeline.writes if i.time >= point]
    assert Table(table.path, {"hoodie.clean.commits.retained": str(len(since))}).clean().deleted
    table.model.check(table.read(point), point)
    for go_back in (face.restore, face.savepoint):
        with pytest.raises(UndoError, match="cleaning removed the files that file group"):
            go_back(point)
    table.model.check(table.read())


def test_an_index_made_since_is_built_anew(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", **{"hoodie.metadata.compact.max.delta.commits": "50"})
    face = Table(table.path, table.options.given)
    point, kept = face.timeline.writes[-1].time, table.model.copy()
    go_on(table)
    face.indexes.create("up", "column_stats", "id", expression="upper")
    assert "an index was built" in face.restore(point).plan.metadata
    assert "expr_index_up" in face.metadata.ready
    table.model = kept.copy()
    is_sound(table)


def test_columns_added_since_are_gone(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", **{"hoodie.metadata.compact.max.delta.commits": "50"})
    face = Table(table.path, table.options.given)
    point, names = face.timeline.writes[-1].time, face.schema.names
    face.alter(add={"note": pa.string()}, rename={"x": "y"})
    assert face.schema.names != names
    face.restore(point)
    assert face.schema.names == names
    assert not list((Path(table.path) / ".hoodie/.schema").glob("*.schemacommit"))
    is_sound(table)
    go_on(table)
    is_sound(table)


def test_from_its_plan_on_the_table_reads_as_restored(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", **{"hoodie.metadata.compact.max.delta.commits": "50"})
    face = Table(table.path, table.options.given)
    point, kept = face.timeline.writes[-1].time, table.model.copy()
    go_on(table)
    instant, the_plan = service.schedule(table.session(), point)
    assert instant is not None
    kept.check(table.read())
    with pytest.raises(IndexNotReady, match=rf"the restore at {instant} is not finished.*t\.recover\(\) finishes it"):
        Table(table.path).metadata.validate()
    table.model = kept.copy()
    assert set(table.write(Operation.UPSERT, simple_rows(range(30, 33), 6)).rolled_back) >= set(the_plan.record.times)
    assert not Table(table.path).timeline.pending
    is_sound(table)
    with pytest.raises(CommitError, match="no pending restore"):
        service.execute(table.session(), instant)
    assert the_plan.rows > 0


def test_files_go_before_their_writes_are_in_flight_no_more(tmp_path: Path) -> None:
    """Apache Hudi, should it come to a restore that died, deletes no file of a write that is only requested."""
    table = a_table(tmp_path / "t")
    point = Table(table.path).timeline.writes[-1].time
    before = sorted(map(str, Table(table.path).scan(columns=["id", "ts"]).to_table().to_pylist()))
    go_on(table)
    gone = [i.time for i in Table(table.path).timeline.writes[2:]]
    left: list[int] = []

    class Watched(LocalStorage):
        def delete(self, path: str) -> bool:
            if path.startswith(".hoodie/timeline/") and path.endswith(".inflight"):
                left.append(sum(len(list(Path(table.path).glob(f"p*/*{time}*"))) for time in gone))
            return super().delete(path)

    assert all(list(Path(table.path).glob(f"p*/*{time}*")) for time in gone)
    service.restore(table.session(Watched(table.path)), point)
    assert left == [0] * len(gone)
    assert sorted(map(str, Table(table.path).scan(columns=["id", "ts"]).to_table().to_pylist())) == before
    check_all(table.storage)


def test_a_write_at_work_is_not_taken_back(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    face = Table(table.path, table.options.given)
    point = face.timeline.writes[0].time
    refused = []

    def meanwhile() -> None:
        with pytest.raises(UndoError, match="a process is at work on the commit") as caught:
            service.restore(table.session(), point)
        refused.append(caught.value.instant)

    table.engine = Interrupted(meanwhile)
    table.write(Operation.UPSERT, simple_rows(range(3), 9))
    assert refused == [point]
    is_sound(table)


def test_a_write_that_rests_on_what_is_gone_is_refused(tmp_path: Path) -> None:
    """It looked at the table before the restore, and was announced after it."""
    table = a_table(tmp_path / "t")
    face = Table(table.path, table.options.given)
    session = table.session()
    seen = session.properties.load_timeline(session.storage)
    first, second = (i.time for i in seen.writes)
    face.restore(first)
    with (
        pytest.raises(CommitConflict, match=f"what instant {second} wrote"),
        session.coordinator.writing(Operation.UPSERT, seen) as (write, _),
    ):
        refuse_undone(session.properties.load_timeline(session.storage), write)
    check_all(table.storage)


def test_what_cannot_be_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", **{"hoodie.clean.commits.retained": "1"})
    face = Table(table.path, table.options.given)
    first, second = (i.time for i in face.timeline.writes)
    before = sorted(path for path in Path(table.path).rglob("*"))
    with pytest.raises(UndoError, match="no such completed write"):
        face.restore("20200101000000000")
    with pytest.raises(UndoError, match="archived"):
        Table(table.path, {"hoodie.archive.beyond.savepoint": "true"}).restore(first)
    assert str(face.restore(second)) == f"restore to {second}: nothing came after it"
    assert sorted(path for path in Path(table.path).rglob("*")) == before
    face.savepoint(second)
    with pytest.raises(UndoError, match=f"{second} would go, which is savepointed"):
        face.restore(first)
    face.delete_savepoint(second)
    go_on(table)
    assert face.clean().deleted
    with pytest.raises(UndoError, match="lookup window"):
        face.restore(first)
    table.model.check(table.read())


def test_a_savepoint_that_lost_a_file_is_refused(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    face = Table(table.path, table.options.given)
    made = face.savepoint()
    go_on(table)
    partition, names = next(iter(made.files.items()))
    (Path(table.path) / partition / names[0]).unlink()
    with pytest.raises(UndoError, match="1 files that its savepoint keeps are gone"):
        face.restore(made.instant)


def test_over_what_was_cleaned_to_a_savepoint(tmp_path: Path) -> None:
    more = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    table = ModelledTable(str(tmp_path / "t"), {**OPTIONS, **more})
    for ts in range(1, 6):
        table.write(Operation.UPSERT, simple_rows(range(8), ts))
    face = Table(table.path, table.options.given)
    point, kept = face.savepoint(comment="here").instant, table.model.copy()
    for ts in range(6, 14):
        table.write(Operation.UPSERT, simple_rows(range(ts % 2, 8), ts))
        face.clean()
        face.archive()
    assert point == face.timeline.writes[0].time, "what came before is archived"
    face.restore(point)
    table.model = kept.copy()
    table.model.past = {point: table.model.past[point]}
    is_sound(table)
    assert [i.time for i in face.timeline.writes] == [point]
    assert [i.action for i in face.timeline if i.action is Action.RESTORE] == [Action.RESTORE]
    for ts in range(14, 20):
        table.write(Operation.UPSERT, simple_rows(range(8), ts))
        face.clean()
    table.model.past = {point: table.model.past[point]}
    is_sound(table)
