"""Savepoints: a write that is pinned stays readable whatever cleaning and archival do, until the savepoint is given up."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudimeta import Table
from hudimeta.errors import StorageError, UndoError
from hudimeta.services import archival, clean, savepoints
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline.archiving import move_to_history
from hudimeta.timeline.savepoint_record import encode_savepoint
from hudimeta.types import Action, Operation
from tests.conftest import Unpack

KEPT = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.metadata.compact.max.delta.commits": "2",
}
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


class FailingAt(FaultPlan):
    """Strikes before the first request that a pattern names."""

    def __init__(self, pattern: str) -> None:
        super().__init__(None, Fault.ERROR_BEFORE)
        self._pattern = re.compile(pattern)

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        """See `FaultPlan.around`."""
        if self.at is None and self._pattern.match(name):
            self.at = len(self.calls)
        return super().around(name, act)


def written(path: Path, writes: int, **more: str) -> ModelledTable:
    table = ModelledTable(str(path), {**SIMPLE_OPTIONS, **KEPT, **more})
    for ts in range(1, writes + 1):
        table.write(Operation.UPSERT, simple_rows(range(8), ts))
    return table


def times(table: ModelledTable) -> list[str]:
    return [i.time for i in Table(table.path).timeline.writes]


@pytest.mark.parametrize("type", TYPES)
def test_what_it_pins_survives_cleaning_and_archival(tmp_path: Path, type: str) -> None:
    table = written(tmp_path / "t", 3, **{"hoodie.datasource.write.table.type": type})
    face = Table(table.path, table.options.given)
    pinned = times(table)[1]
    made = face.savepoint(pinned, comment="before the migration", user="ann")
    assert made.n_files == face.file_slices(pinned).num_rows if type == "COPY_ON_WRITE" else made.n_files >= 2
    assert str(made) == f"savepoint {pinned}: {made.n_files} files in 2 partitions, by ann, 'before the migration'"
    for ts in range(10, 16):
        table.write(Operation.UPSERT, simple_rows(range(8), ts))
        if type == "MERGE_ON_READ":
            face.compact()
    cleaned, archived = face.clean(), face.archive()
    assert cleaned.deleted
    assert pinned in times(table), "archival stops there"
    assert str(archived.plan.stopped_by) == f"{pinned} is savepointed"
    table.model.check(table.read(pinned), pinned)
    (found,) = face.savepoints()
    assert (found.instant, found.user, found.comment, found.files) == (pinned, "ann", "before the migration", made.files)
    check_all(table.storage)


def test_given_up_it_keeps_nothing(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 2)
    face = Table(table.path, table.options.given)
    pinned = face.savepoint().instant
    assert pinned == times(table)[-1], "the newest write"
    for ts in range(10, 16):
        table.write(Operation.UPSERT, simple_rows(range(8), ts))
    face.clean()
    there = {path.name for path in Path(table.path).rglob("*.parquet")}
    kept = {name for names in face.savepoints()[0].files.values() for name in names}
    assert kept <= there
    shown = face.delete_savepoint(pinned, dry_run=True)
    assert face.savepoints() == [shown]
    assert face.delete_savepoint(pinned) == shown
    assert not face.savepoints()
    face.clean()
    face.archive()
    assert not kept & {path.name for path in Path(table.path).rglob("*.parquet")}
    assert pinned not in times(table)
    assert not list(Path(table.path).rglob("*.savepoint*"))
    check_all(table.storage)


def test_with_the_option_archival_steps_over_it(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 3)
    face = Table(table.path, {**table.options.given, "hoodie.archive.beyond.savepoint": "true"})
    pinned = face.savepoint(times(table)[1]).instant
    for ts in range(10, 17):
        table.write(Operation.UPSERT, simple_rows(range(8), ts))
        face.clean()
    before = times(table)
    assert face.archive().archived
    left = times(table)
    assert pinned in left
    assert before[before.index(pinned) + 1] not in left, "what came right after it is archived"
    table.model.check(table.read())
    table.model.check(table.read(pinned), pinned)
    check_all(table.storage)
    face.delete_savepoint(pinned)
    assert pinned not in times(table), "else it would be the oldest write, and files of archived ones after it would not count"
    table.model.check(table.read())
    check_all(table.storage)


def test_a_replacing_write_that_archival_stepped_over_is_cleaned_before_its_savepoint_goes(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 2)
    face = Table(table.path, {**table.options.given, "hoodie.archive.beyond.savepoint": "true"})
    table.write(Operation.INSERT_OVERWRITE_TABLE, simple_rows(range(8), 5))
    pinned = face.savepoint().instant
    for ts in range(10, 16):
        table.write(Operation.UPSERT, simple_rows(range(8), ts))
    timeline = Table(table.path).timeline
    move_to_history(table.storage, timeline, [i for i in timeline.writes if i.time != pinned][:5])  # as others may do
    with pytest.raises(UndoError, match=r"file groups that it replaced are not cleaned yet.*t\.clean\(\)"):
        face.delete_savepoint(pinned)
    assert [savepoint.instant for savepoint in face.savepoints()] == [pinned]
    table.model.check(table.read())


def left_by_a_dead_archival(path: Path) -> tuple[ModelledTable, list[str]]:
    """A table whose oldest writes an archival has brought to the history and not yet deleted, and its active writes."""
    table = ModelledTable(str(path), {**SIMPLE_OPTIONS, **KEPT, "hoodie.parquet.small.file.limit": "0"})
    for n in range(5):
        table.write(Operation.INSERT, simple_rows([n], n))
    active = times(table)
    dying = FaultyStorage(table.storage, FailingAt(rf"delete .*/{active[0]}_\d+\.commit"))
    with pytest.raises(StorageError, match="injected fault"):
        archival.archive(table.session(dying))
    assert Table(table.path).timeline.history.times()["instant_time"].to_pylist()[:2] == active[:2] == times(table)[:2]
    return table, active


def test_given_up_its_write_stays_between_those_that_a_dead_archival_left(tmp_path: Path) -> None:
    """Archived alone it would be missing between active writes, and the rows of its files with it."""
    table, active = left_by_a_dead_archival(tmp_path / "t")
    face = Table(table.path, table.options.given)
    face.savepoint(active[1])
    face.delete_savepoint(active[1])
    table.model.check(table.read())
    face.archive()
    assert not {*active[:2]} & {*times(table)}, "the next run finishes what was begun"
    table.model.check(table.read())
    check_all(table.storage)


def test_the_oldest_write_that_a_dead_archival_left_can_be_restored_again_and_again(tmp_path: Path) -> None:
    table, active = left_by_a_dead_archival(tmp_path / "t")
    face = Table(table.path, table.options.given)
    face.savepoint(active[0])
    for n in (8, 9):
        face.restore(active[0])
        table.model.restore(active[0])
        table.check()
        table.write(Operation.INSERT, simple_rows([n], n))
    table.check()
    check_all(table.storage)


@pytest.mark.parametrize("policy", ["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"])
def test_a_cleaned_write_cannot_be_pinned(tmp_path: Path, policy: str) -> None:
    given = {"hoodie.clean.policy": policy, "hoodie.clean.fileversions.retained": "1"}
    table = written(tmp_path / "t", 6, **given)
    face = Table(table.path, table.options.given)
    first, newest = times(table)[0], times(table)[-1]
    assert face.clean().deleted
    with pytest.raises(UndoError, match=r"lookup window|cleaning removed") as caught:
        face.savepoint(first)
    assert caught.value.instant == first
    assert not face.savepoints()
    assert face.savepoint(newest).instant == newest


def test_what_cannot_be_pinned_is_refused(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 1)
    face = Table(table.path)
    with pytest.raises(UndoError, match="no such completed write"):
        face.savepoint("20200101000000000")
    with pytest.raises(UndoError, match="there is none"):
        face.delete_savepoint(times(table)[0])
    planned = face.savepoint(dry_run=True)
    assert str(planned).startswith("would savepoint ")
    assert not face.savepoints()
    face.savepoint()
    with pytest.raises(UndoError, match="already"):
        face.savepoint()
    empty = ModelledTable(str(tmp_path / "empty"))
    with pytest.raises(UndoError, match="the newest write is refused"):
        savepoints.save(empty.session())


@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.ERROR_AFTER])
def test_half_a_savepoint_is_nobodys(tmp_path: Path, fault: Fault) -> None:
    """Whatever request fails, making or giving up, the next one does it, and recovery leaves nothing half."""
    table = written(tmp_path / "t", 1)
    for give_up in (False, True):
        for at in range(2):
            copy = table.copy(str(tmp_path / f"{give_up} {at}"))
            (instant,) = times(copy)
            if give_up:
                savepoints.save(copy.session())
            broken = copy.session(FaultyStorage(copy.storage, FaultPlan(at + 1, fault)))  # the first call is the lock's
            with pytest.raises(StorageError):
                savepoints.delete(broken, instant) if give_up else savepoints.save(broken)
            Table(copy.path).recover()
            timeline = Table(copy.path).timeline
            assert not [i for i in timeline.pending if i.action is Action.SAVEPOINT]
            if not timeline.savepoints:
                savepoints.save(copy.session())
            savepoints.delete(copy.session(), instant)
            check_all(copy.storage)


def test_files_are_those_of_apache_hudi(tmp_path: Path) -> None:
    """`<instant>.savepoint.inflight`, empty, and `<instant>_<completion>.savepoint` beside it, with its record."""
    table = written(tmp_path / "t", 1)
    made = savepoints.save(table.session(), comment="why")
    folder = Path(table.path) / ".hoodie/timeline"
    assert (folder / f"{made.instant}.savepoint.inflight").read_bytes() == b""
    assert (folder / f"{made.instant}_{made.completion}.savepoint").exists()
    timeline = Table(table.path).timeline
    (instant,) = [i for i in timeline if i.action is Action.SAVEPOINT]
    record = timeline.metadata(instant)
    assert record["version"] == 1
    assert record["comments"] == "why"
    assert {p: tuple(part["savepointDataFile"]) for p, part in record["partitionMetadata"].items()} == made.files
    assert clean.plan(table.session(), table.session().snapshot_now()).savepoints == (made.instant,)
    assert archival.plan(table.session(), table.session().snapshot_now()).instants == ()


def test_savepoints_of_version_6_are_listed_and_survive_the_upgrade(recorded_table: Unpack) -> None:
    path = recorded_table("v6_mor_written_by_12", fresh=True)
    assert not Table(path).savepoints()
    write = Table(path).timeline.writes[-1].time
    (path / ".hoodie" / f"{write}.savepoint").write_bytes(encode_savepoint("ann", 1, "before the upgrade", {}))
    for version in (6, 8):
        (found,) = Table(path).savepoints()
        assert (found.instant, found.comment, found.user) == (write, "before the upgrade", "ann")
        assert Table(path).version == version
        Table(path).upgrade(8)
