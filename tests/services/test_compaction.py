"""Compaction of merge-on-read tables: rows stay, log files are merged, what died is run again."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from hudimeta import Table
from hudimeta.api import verbs
from hudimeta.commit.markers import MARKERS
from hudimeta.config import OPTIONS, HudiWarning
from hudimeta.errors import CommitError, CorruptFileError, StorageError
from hudimeta.indexes.column_stats import keep as index_statistics
from hudimeta.services import compaction
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.storage.local import LocalStorage
from hudimeta.storage.protocol import OutputStream
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Action, Operation
from tests.rotation import in_turn
from tests.write.test_conflicts import plan_clustering

MERGE_ON_READ = {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def updated(path: Path, **options: str) -> ModelledTable:
    """Two partitions with a base file and log files each: updates, late events and deletes."""
    table = ModelledTable(str(path), {**MERGE_ON_READ, **options})
    table.write(Operation.INSERT, simple_rows(range(10), 5))
    table.write(Operation.UPSERT, simple_rows(range(6), 7))
    table.write(Operation.UPSERT, simple_rows(range(4, 8), 3, 99.0))
    table.write(Operation.DELETE, simple_rows([0, 1], 8))
    return table


def log_files(table: ModelledTable) -> list[int]:
    return [len(names) for names in Table(table.path).file_slices()["log_files"].to_pylist()]


def test_rows_stay_and_logs_are_gone(tmp_path: Path) -> None:
    table = updated(tmp_path / "t")
    assert sum(log_files(table)) == 6
    (report,) = Table(table.path).compact()
    assert report.files_written == 2
    assert log_files(table) == [0, 0]
    table.check()
    check_all(table.storage)
    optimised = Table(table.path).scan(query_type="read_optimized").to_table()
    table.model.check(optimised)


@pytest.mark.parametrize("memory", ["268435456", "600"])
def test_a_compaction_tells_what_it_merged(tmp_path: Path, memory: str) -> None:
    """Under the names and by the rules of Apache Hudi; in memory or on disk."""
    table = updated(tmp_path / "t")
    (report,) = Table(table.path, {"hudimeta.merge.memory.bytes": memory}).compact()
    assert told(table, report.instant) == {
        "num_writes": 8,
        "num_inserts": 0,
        "num_update_writes": 4,
        "num_deletes": 2,
        "total_log_records": 12,
        "total_updated_records_compacted": 8,
        "total_log_blocks": 6,
    }


def test_rows_of_blocks_that_are_not_unpacked_are_told(tmp_path: Path) -> None:
    table = updated(tmp_path / "t")
    table.write(Operation.UPSERT, simple_rows(range(10), 20))
    (report,) = Table(table.path).compact()
    found = told(table, report.instant)
    assert (found["total_log_records"], found["num_update_writes"], found["num_inserts"]) == (22, 10, 0)


def told(table: ModelledTable, instant: str) -> dict[str, int]:
    """What a procedure shows of a write, over all files."""
    shown = Table(table.path).call("show_commits_metadata")
    shown = shown.filter(pc.equal(shown["commit_time"], instant))
    names = ("num_writes", "num_inserts", "num_update_writes", "num_deletes", "total_log_records")
    names += ("total_updated_records_compacted", "total_log_blocks")
    return {name: sum(shown[name].to_pylist()) for name in names}


def test_a_table_without_logs_is_left_alone(tmp_path: Path) -> None:
    table = updated(tmp_path / "t")
    Table(table.path).compact()
    instants = [i.time for i in Table(table.path).timeline.completed]
    assert Table(table.path).compact() == []
    assert [i.time for i in Table(table.path).timeline.completed] == instants


def test_updates_after_a_plan_go_to_the_new_slice(tmp_path: Path) -> None:
    table = updated(tmp_path / "t")
    instant = compaction.schedule(table.session())
    assert instant is not None
    table.write(Operation.UPSERT, simple_rows(range(5, 10), 11))
    table.check()
    compaction.execute(table.session(), instant)
    assert log_files(table) == [1, 1]
    table.check()
    check_all(table.storage)


def test_a_plan_takes_no_slice_of_a_pending_plan(tmp_path: Path) -> None:
    table = updated(tmp_path / "t")
    first = compaction.schedule(table.session())
    assert first is not None
    assert compaction.schedule(table.session()) is None
    with pytest.raises(CommitError, match="no pending compaction at 2020"):
        compaction.execute(table.session(), "20200101000000000")


def test_a_plan_takes_no_slice_that_a_clustering_will_replace(tmp_path: Path) -> None:
    """As in Hudi: the clustering, planned over the slice of before, would be refused or hide the new base file."""
    table = updated(tmp_path / "t")
    plan_clustering(table, "p0")
    session = table.session()
    snapshot = session.snapshot_at(session.properties.load_timeline(session.storage))
    assert {s.partition_path for s in compaction.plan(table.session(), snapshot).slices} == {"p1"}


def test_inline_compaction(tmp_path: Path) -> None:
    more = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    table = updated(tmp_path / "t")
    rows = simple_rows(range(3), 20)
    Table(table.path, more).upsert(rows)
    table.model.write(Operation.UPSERT, rows)
    assert [i.action for i in Table(table.path).timeline.writes].count(Action.COMMIT) == 1
    assert log_files(table) == [0, 0]
    table.model.check(table.read())
    check_all(table.storage)


@pytest.mark.filterwarnings("ignore:the upkeep of the metadata table is left:hudimeta.config.HudiWarning")
def test_a_compaction_that_fails_at_any_call_is_run_again(tmp_path: Path) -> None:
    source = updated(tmp_path / "source")
    whole = FaultyStorage(source.copy(str(tmp_path / "whole")).storage, FaultPlan(None, Fault.ERROR_BEFORE))
    verbs.compact(whole, OPTIONS.read({}))
    assert len(whole.plan.calls) > 8
    for call in in_turn(range(len(whole.plan.calls)), 4):
        table = source.copy(str(tmp_path / f"t{call}"))
        broken = FaultyStorage(table.storage, FaultPlan(call, Fault.ERROR_BEFORE))
        try:
            verbs.compact(broken, OPTIONS.read({}))
        except StorageError:
            table.check()
            Table(table.path).compact()
        assert log_files(table) == [0, 0]
        table.check()
        Table(table.path).recover()  # markers that could not be deleted after the end
        check_all(table.storage)
        assert len(broken.plan.calls) > call, "the fault was met"


class SecondCompactor(FaultyStorage):
    """Lets another process try the same plan at the moment when the first base file of the first run is to be written."""

    def __init__(self, table: ModelledTable) -> None:
        super().__init__(table.storage, FaultPlan(None, Fault.ERROR_BEFORE))
        self.table, self.refused = table, ""

    def open_output(self, path: str) -> OutputStream:
        if not self.refused and path.endswith(".parquet"):
            with pytest.raises(CommitError) as caught:
                Table(self.table.path).compact()
            self.refused = str(caught.value)
        return super().open_output(path)


@pytest.mark.parametrize("local", [True, False], ids=["OS lock", "heartbeat"])
def test_a_plan_is_run_by_one_process_at_a_time(tmp_path: Path, local: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one would take the base files of the first for leftovers of the dead and delete them."""
    if not local:
        monkeypatch.setattr(LocalStorage, "guard", lambda self, path: None)
    table = updated(tmp_path / "t")
    storage = SecondCompactor(table)
    verbs.compact(storage, OPTIONS.read({}))
    assert "is being run by another process" in storage.refused
    table.check()
    check_all(table.storage)


class Upserting(FaultyStorage):
    """Writes an update when the first base file is to be written, by a writer that compacts after it."""

    def __init__(self, table: ModelledTable) -> None:
        super().__init__(table.storage, FaultPlan(None, Fault.ERROR_BEFORE))
        self.table, self.written = table, False

    def open_output(self, path: str) -> OutputStream:
        if not self.written and path.endswith(".parquet"):
            self.written = True
            own = Table(self.table.path, {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"})
            own.upsert(simple_rows([1], 9))
            self.table.model.write(Operation.UPSERT, simple_rows([1], 9))
        return super().open_output(path)


def test_a_writer_that_compacts_leaves_what_another_process_runs_alone(tmp_path: Path) -> None:
    table = updated(tmp_path / "t")
    storage = Upserting(table)
    verbs.compact(storage, OPTIONS.read({}))
    assert storage.written
    assert not Table(table.path).timeline.pending
    table.check()
    check_all(table.storage)


def test_a_published_write_is_no_error_when_compacting_after_it_fails(tmp_path: Path) -> None:
    table = updated(tmp_path / "t")
    instant = compaction.schedule(table.session())
    assert instant is not None
    rows = simple_rows(range(3), 20)
    more = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    requested = tmp_path / "t" / Table(table.path).timeline.folder / f"{instant}.compaction.requested"
    the_plan = requested.read_bytes()
    requested.write_bytes(b"")
    requested.with_suffix(".inflight").write_bytes(b"")
    with pytest.warns(HudiWarning, match="is published.* an empty file"):
        report = Table(table.path, more).upsert(rows)
    requested.write_bytes(the_plan)
    table.model.write(Operation.UPSERT, rows)
    table.model.remember(report.instant)
    table.check()
    Table(table.path).compact()
    table.check()
    check_all(table.storage)


def test_statistics_of_later_writes_do_not_block_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apache Hudi marks statistics of partitions as replacing the older ones, whatever is pending."""
    statistics = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.index.partition.stats.enable": "true"}
    table = updated(tmp_path / "t", **statistics)
    instant = compaction.schedule(table.session())
    assert instant is not None
    union = index_statistics.widened_partition_statistics
    with monkeypatch.context() as patched:
        patched.setattr(index_statistics, "widened_partition_statistics", lambda *a, **k: union(*a, **{**k, "tight": True}))
        table.write(Operation.UPSERT, simple_rows(range(5, 10), 11))
    compaction.execute(table.session(), instant)
    table.check()
    check_all(table.storage)
    assert Table(table.path).scan(where="ts = 11").to_table().num_rows == 5


def test_an_empty_plan_is_not_published_as_a_compaction_of_nothing(tmp_path: Path) -> None:
    table = updated(tmp_path / "t")
    instant = compaction.schedule(table.session())
    requested = tmp_path / "t" / ".hoodie" / "timeline" / f"{instant}.compaction.requested"
    requested.write_bytes(b"")
    requested.with_suffix(".inflight").write_bytes(b"")
    with pytest.raises(CorruptFileError, match="the plan of a compaction, found an empty file"):
        Table(table.path).compact()
    assert [i.time for i in Table(table.path).timeline.pending] == [instant]
    table.check()
    requested.with_suffix(".inflight").unlink()  # nothing was begun: it is planned anew
    Table(table.path, {"hoodie.compact.inline.max.delta.commits": "1"}).compact()
    assert not Table(table.path).timeline.pending
    table.check()
    check_all(table.storage)


class KeepsMarkersOnce(LocalStorage):
    """Refuses once to remove markers: a write has published by then, and leaves them to whoever comes next."""

    refused = False

    def delete_folder(self, path: str) -> None:
        if path.startswith(MARKERS) and not self.refused:
            self.refused = True
            raise StorageError("the store is busy", "Try again.")
        super().delete_folder(path)


def test_what_the_write_before_an_inline_compaction_left_is_removed(tmp_path: Path) -> None:
    """It is the compaction's to remove: after its instant, no later writer would look for what the write left."""
    more = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    table = updated(tmp_path / "t")
    storage, rows = KeepsMarkersOnce(table.path), simple_rows(range(3), 20)
    verbs.write(storage, OPTIONS.read(more), Operation.UPSERT, rows)
    table.model.write(Operation.UPSERT, rows)
    assert storage.refused
    assert log_files(table) == [0, 0]
    assert [f.path for f in table.storage.list(MARKERS)] == []
    table.check()
    check_all(table.storage)


def test_what_a_compaction_before_another_left_is_removed(tmp_path: Path) -> None:
    table = updated(tmp_path / "t")
    assert Table(table.path).schedule_compaction() is not None
    table.write(Operation.UPSERT, simple_rows(range(3), 20))
    storage = KeepsMarkersOnce(table.path)
    assert len(verbs.compact(storage, OPTIONS.read({}))) == 2
    assert storage.refused
    assert [f.path for f in table.storage.list(MARKERS)] == []
    table.check()
    check_all(table.storage)
