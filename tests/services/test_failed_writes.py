"""Who rolls back what dead writers left: the policy `hoodie.clean.failed.writes.policy`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.commit.liveness import Heartbeat
from hudimeta.commit.locks.fence import FencedLock
from hudimeta.commit.markers import Marker, MarkerKind, marker_folder, write_marker
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS, HudiWarning
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.table.properties import update
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline import SystemClock, Timeline
from hudimeta.timeline.transitions import TimelineWriter
from hudimeta.types import Action, Operation
from hudimeta.write.row_changes import delete_where, update_where
from hudimeta.write.table_writer import delete_partitions

POLICY = "hoodie.clean.failed.writes.policy"


def with_a_dead_write(path: Path) -> tuple[ModelledTable, str]:
    table = ModelledTable(str(path), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    dead = table.session().times.next(Table(table.path).timeline.last_time)
    TimelineWriter(table.storage).create_requested(dead, Action.COMMIT)
    return table, dead


def pending(table: ModelledTable) -> list[str]:
    return [i.time for i in Table(table.path).timeline.pending]


def test_the_next_write_rolls_back(tmp_path: Path) -> None:
    table, dead = with_a_dead_write(tmp_path / "t")
    report = Table(table.path).upsert(simple_rows(range(2), 2))
    assert report.rolled_back == (dead,)
    assert pending(table) == []


@pytest.mark.parametrize(("policy", "after_a_clean"), [("LAZY", 0), ("NEVER", 1)])
def test_a_write_leaves_it_to_others(tmp_path: Path, policy: str, after_a_clean: int) -> None:
    table, dead = with_a_dead_write(tmp_path / "t")
    options = {POLICY: policy}
    assert Table(table.path, options).upsert(simple_rows(range(2), 2)).rolled_back == ()
    table.model.write(Operation.UPSERT, simple_rows(range(2), 2))
    assert pending(table) == [dead]
    table.model.check(table.read())
    Table(table.path, options).clean()
    assert len(pending(table)) == after_a_clean
    Table(table.path, options).recover()
    assert pending(table) == []
    table.model.check(table.read())
    check_all(table.storage)


@pytest.mark.parametrize(("policy", "beats", "left"), [("LAZY", True, 1), ("LAZY", False, 0), ("NEVER", False, 1)])
def test_a_clean_goes_by_the_heartbeat(tmp_path: Path, policy: str, beats: bool, left: int) -> None:
    """Where no OS lock tells who is alive: one that still beats is left alone, one that is over two intervals old is dead."""
    table, writing = with_a_dead_write(tmp_path / "t")
    heartbeat = Heartbeat(table.storage, writing)
    heartbeat.beat()
    if not beats:
        os.utime(Path(table.path, heartbeat.path), (1, 1))
    options = {POLICY: policy}
    Table(table.path, options).upsert(simple_rows(range(2), 2))
    assert pending(table) == [writing]
    Table(table.path, options).clean()
    assert len(pending(table)) == left
    table.model.write(Operation.UPSERT, simple_rows(range(2), 2))
    table.model.check(table.read())


class _LetsFirst(FencedLock):
    """Somebody else has the lock first."""

    def __init__(self, session: WriteSession, others: Callable[[], object]) -> None:
        super().__init__(session.lock, SystemClock())
        self._others = [others]

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        while self._others:
            self._others.pop()()
        with super().held():
            yield


@pytest.mark.parametrize(
    "change",
    [
        lambda session: delete_where(session, "id in ('k0000', 'k0002')"),
        lambda session: update_where(session, {"x": "0.0"}, "id in ('k0000', 'k0002')"),
        lambda session: delete_partitions(session, ["p0"]),
    ],
    ids=["delete", "update", "delete_partitions"],
)
def test_a_write_to_which_others_left_nothing_was_never_there(
    tmp_path: Path, change: Callable[[WriteSession], CommitReport]
) -> None:
    """It takes the rows' last moment for the newest one, waits to roll a dead write back, and finds them gone."""
    table, dead = with_a_dead_write(tmp_path / "t")
    others = table.session(options=OPTIONS.read({**SIMPLE_OPTIONS, POLICY: "LAZY"}))
    session = table.session()
    session.lock = _LetsFirst(session, lambda: delete_partitions(others, ["p0"]))

    report = change(session)

    assert (report.completion, report.rolled_back) == (None, (dead,))
    table.model.change(lambda row: row if row["part"] != "p0" else None)
    table.model.check(table.read())
    timeline = Table(table.path).timeline
    assert [i.action for i in timeline.instants] == [Action.COMMIT, Action.REPLACE_COMMIT, Action.ROLLBACK]
    check_all(table.storage)


def torn_markers(table: ModelledTable, instant: str) -> None:
    """As the timeline server of Apache Hudi leaves them that is killed while it writes its list anew."""
    table.storage.put(f"{marker_folder(instant)}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    table.storage.put(f"{marker_folder(instant)}/MARKERS0", b"")


def test_files_that_a_torn_list_of_markers_does_not_name_go(tmp_path: Path) -> None:
    """Left behind, they would count as committed once all that is older is archived."""
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    before = table.model.copy()
    dead = table.write(Operation.UPSERT, simple_rows(range(2, 6), 2)).instant
    table.model = before
    TimelineWriter(table.storage).delete_completed(next(i for i in Table(table.path).timeline.writes if i.time == dead))
    torn_markers(table, dead)
    assert table.write(Operation.UPSERT, simple_rows([1], 3)).rolled_back == (dead,)
    assert not list(Path(table.path).rglob(f"*{dead}*.parquet"))
    table.check()
    check_all(table.storage)


def test_a_compaction_is_run_anew_over_what_a_torn_list_does_not_name(tmp_path: Path) -> None:
    """Two base files of a slice would be there, and readers that list storage take either."""
    options = {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    table = ModelledTable(str(tmp_path / "t"), options)
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    table.write(Operation.UPSERT, simple_rows(range(4), 2))
    instant = Table(table.path, options).schedule_compaction()
    assert instant is not None
    TimelineWriter(table.storage).begin_planned(instant, Action.COMPACTION)
    group = Table(table.path).file_slices().to_pylist()[0]
    half = Path(table.path, group["partition_path"], f"{group['file_id']}_7-7-7_{instant}.parquet")
    half.write_bytes(b"half a file")
    torn_markers(table, instant)
    Table(table.path, options).services.compaction.execute(instant)
    assert not half.exists()
    table.check()
    check_all(table.storage)


def test_base_files_of_a_compacted_metadata_table_outlast_their_markers(tmp_path: Path) -> None:
    """Apache Hudi marks them too, and may be killed after it has completed a compaction, before it removes its markers."""
    options = {**SIMPLE_OPTIONS, "hoodie.metadata.compact.max.delta.commits": "2"}
    table = ModelledTable(str(tmp_path / "t"), options)
    for ts in range(3):
        table.write(Operation.UPSERT, simple_rows(range(4), ts))
    inner = table.storage.sub(METADATA_ROOT)
    compacted = next(i for i in Timeline.load(inner).completed if i.action is Action.COMMIT)
    base_files = [name.relative_to(inner.root) for name in Path(inner.root).glob(f"*/*_{compacted.time}.hfile")]
    for path in base_files:
        write_marker(inner, compacted.time, Marker(str(path), MarkerKind.MERGE))
    Table(table.path).recover()
    assert base_files
    assert all(Path(inner.root, path).exists() for path in base_files)
    table.write(Operation.UPSERT, simple_rows(range(2, 6), 9))
    table.check()
    check_all(table.storage)


@pytest.mark.parametrize("verb", ["recover", "upsert"])
def test_an_index_that_a_dead_write_was_laying_out_goes(tmp_path: Path, verb: str) -> None:
    """Apache Hudi lays indexes out within writes. Beyond what was pending nothing of the timeline was archived any more."""
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    inner, instant = table.storage.sub(METADATA_ROOT), "00000000000000009"
    TimelineWriter(inner).create_requested(instant, Action.DELTA_COMMIT)
    TimelineWriter(inner).create_inflight(instant, Action.DELTA_COMMIT)
    base_file = f"bloom_filters/bloom-filters-0000-0_0-1-2_{instant}.hfile"
    write_marker(inner, instant, Marker(base_file, MarkerKind.CREATE))
    for path in (base_file, "bloom_filters/.hoodie_partition_metadata", "bloom_filters/..hoodie_partition_metadata.crc"):
        inner.put(path, b"half")
    if verb == "recover":
        Table(table.path).recover()
    table.write(Operation.UPSERT, simple_rows(range(2, 6), 2))
    assert instant not in {i.time for i in Timeline.load(inner)}
    assert not inner.list("bloom_filters")
    Table(table.path).recover()
    table.check()
    check_all(table.storage)


def test_an_index_that_is_laid_out_beside_writers_stays(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    assert Table(table.path).services.indexing.schedule("bloom_filters")
    inner, instant = TimelineWriter(table.storage.sub(METADATA_ROOT)), "00000000000000009"
    inner.create_requested(instant, Action.DELTA_COMMIT)
    inner.create_inflight(instant, Action.DELTA_COMMIT)
    table.write(Operation.UPSERT, simple_rows(range(2, 6), 2))
    assert [i.time for i in Timeline.load(table.storage.sub(METADATA_ROOT)).pending] == [instant]


def test_what_apache_hudi_was_about_to_rename_goes_an_hour_later(tmp_path: Path) -> None:
    """It fails when such a file is gone, so one that may be a living writer's stays."""
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    ends = [
        f"{kind}/{{}}.0b3c9a4e-1111-4222-8333-0123456789ab"
        for kind in ("timeline", "timeline/history", "metadata/.hoodie/timeline")
    ]
    for end in ends:
        for name in ("20260101000000000.commit.requested", "manifest_9"):
            table.storage.put(".hoodie/" + end.format(f"old_{name}"), b"")
            table.storage.put(".hoodie/" + end.format(f"new_{name}"), b"")
            os.utime(Path(table.path, ".hoodie", end.format(f"old_{name}")), (1, 1))
    Table(table.path).recover()
    left = [path.name for path in Path(table.path).rglob("*-0123456789ab")]
    assert len(left) == 2 * len(ends)
    assert all(name.startswith("new_") for name in left)
    table.check()


@pytest.mark.parametrize("dropping", [False, True])
def test_an_index_that_only_the_properties_call_under_way_is_given_up(tmp_path: Path, dropping: bool) -> None:
    """Whoever builds one begins an action on the timeline before."""
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    update(table.storage, {"hoodie.table.metadata.partitions.inflight": "bloom_filters"})
    table.storage.put(f"{METADATA_ROOT}/bloom_filters/.hoodie_partition_metadata", b"half")
    if dropping:
        with pytest.warns(HudiWarning, match="the build of bloom_filters died, and was taken back"):
            Table(table.path).metadata.drop_index("bloom_filters")
        table.write(Operation.UPSERT, simple_rows(range(2, 6), 2))
    else:
        with pytest.warns(HudiWarning, match="the build of bloom_filters died, and was taken back"):
            table.write(Operation.UPSERT, simple_rows(range(2, 6), 2))
    assert not (tmp_path / "t" / METADATA_ROOT / "bloom_filters").exists()
    table.check()
    check_all(table.storage)


@pytest.mark.parametrize("word", ["rollback", "clean", "compaction", "logcompaction", "clustering", "indexing"])
def test_a_plan_that_was_never_written_goes(tmp_path: Path, word: str) -> None:
    """Apache Hudi 1.0 makes the file of a plan before it writes it."""
    table, dead = with_a_dead_write(tmp_path / "t")
    planned = table.session().times.next(Table(table.path).timeline.last_time)
    table.storage.put(f".hoodie/timeline/{planned}.{word}.requested", b"")
    assert pending(table) == [dead, planned]
    assert Table(table.path).upsert(simple_rows(range(2), 2)).rolled_back == (dead,)
    assert pending(table) == []
    planned = table.session().times.next(Table(table.path).timeline.last_time)
    table.storage.put(f".hoodie/timeline/{planned}.{word}.requested", b"")
    assert "recover" in str(Table(table.path).maintain())
    assert pending(table) == []
    table.model.write(Operation.UPSERT, simple_rows(range(2), 2))
    table.check()
    check_all(table.storage)
