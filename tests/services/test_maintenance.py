"""`maintain`: what is due is said with its reason and cost, is done in the right order, and stays within the budget."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.config import OPTIONS, HudiWarning
from hudimeta.errors import ConfigError
from hudimeta.services import maintenance
from hudimeta.services.maintenance import MaintenancePlan, MaintenanceReport
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline.transitions import TimelineWriter
from hudimeta.types import Action, Operation

QUIET = {**SIMPLE_OPTIONS, "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
DUE = {
    **QUIET,
    "hoodie.compact.inline.max.delta.commits": "3",
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "5",
}


def written(path: Path, type: str, writes: int) -> ModelledTable:
    table = ModelledTable(str(path), {**QUIET, "hoodie.table.type": type})
    for ts in range(1, writes + 1):
        table.write(Operation.UPSERT, simple_rows(range(ts % 3, ts % 3 + 6), ts))
    return table


def due(table: ModelledTable) -> list[str]:
    plan = Table(table.path, DUE).services.maintain(dry_run=True)
    assert isinstance(plan, MaintenancePlan)
    return [one.name for one in plan.due]


def test_a_table_that_needs_nothing_is_left_alone(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "MERGE_ON_READ", 1)
    before = Table(table.path).timeline.instants
    assert str(Table(table.path, DUE).maintain(dry_run=True)) == "nothing is due"
    assert str(Table(table.path, DUE).maintain()) == "nothing was due"
    assert Table(table.path).timeline.instants == before


@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_everything_that_is_due_is_done_in_order(tmp_path: Path, type: str) -> None:
    table = written(tmp_path / "t", type, 12)
    dead = table.session().times.next(Table(table.path).timeline.last_time)
    TimelineWriter(table.storage).create_requested(dead, Action.COMMIT if type == "COPY_ON_WRITE" else Action.DELTA_COMMIT)
    merged = ["compaction"] if type == "MERGE_ON_READ" else []
    assert due(table)[: 1 + len(merged)] == ["recover", *merged]
    report = Table(table.path, DUE).maintain()
    assert isinstance(report, MaintenanceReport)
    names = [service.name for service, _ in report.done]
    assert names[0] == "recover"
    assert names == [one for one in ("recover", *merged, "clean", "archival") if one in names]
    assert dead in str(report)
    assert report.left == ()
    assert len(Table(table.path).timeline.writes) < 12
    table.model.check(table.read())
    check_all(table.storage)
    assert due(table) == []


def test_reasons_name_the_option_and_the_bytes(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "MERGE_ON_READ", 5)
    compaction, _ = maintenance.plan(table.storage, OPTIONS.read(DUE)).due
    slices = Table(table.path).file_slices().to_pylist()
    assert compaction.reads == sum(one["base_size"] + sum(one["log_sizes"]) for one in slices if one["log_sizes"])
    assert "hoodie.compact.inline.max.delta.commits" in str(compaction)
    assert f"{compaction.reads:,} bytes to merge" in str(compaction)


def test_what_does_not_fit_is_left(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "MERGE_ON_READ", 5)
    report = Table(table.path, DUE).maintain(max_bytes=10)
    assert isinstance(report, MaintenanceReport)
    assert [service.name for service in report.left] == ["compaction"]
    assert "compaction" not in [service.name for service, _ in report.done]
    assert "left: compaction" in str(report)
    assert due(table) == ["compaction"]
    late = Table(table.path, DUE).maintain(max_seconds=1e-9)
    assert isinstance(late, MaintenanceReport)
    assert [service.name for service in late.left] == ["compaction"]


def test_a_planned_compaction_is_run(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "MERGE_ON_READ", 2)
    planned = Table(table.path, DUE).schedule_compaction()
    assert planned is not None
    report = Table(table.path, DUE).maintain()
    assert f"planned at {planned} and not run" in str(report)
    assert Table(table.path).timeline.get(planned, Action.COMMIT) is not None
    table.check()


def test_clustering_is_done_where_options_ask_for_it(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**QUIET, "hoodie.parquet.small.file.limit": "0"})
    for ts in range(1, 5):
        table.write(Operation.INSERT, simple_rows(range(10 * ts, 10 * ts + 4), ts))
    asked = {**DUE, "hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "2"}
    assert due(table) == []
    report = Table(table.path, asked).maintain()
    assert "8 file slices become 2 (hoodie.clustering.inline.max.commits)" in str(report)
    table.check()
    check_all(table.storage)


def test_a_service_that_does_not_fit_the_table_keeps_no_other_from_its_work(tmp_path: Path) -> None:
    """Clustering of fixed buckets, which there is not."""
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = ModelledTable(str(tmp_path / "t"), {**QUIET, **buckets})
    for ts in range(9):
        table.write(Operation.UPSERT, simple_rows(range(4), ts))
    clusters = {**DUE, "hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    handle = Table(table.path, clusters)
    with pytest.warns(HudiWarning, match="leaves out a service that does not fit the table.*rescale_buckets"):
        plan = handle.maintain(dry_run=True)
    with pytest.warns(HudiWarning, match="leaves out a service that does not fit the table.*rescale_buckets"):
        done = handle.maintain()
    assert isinstance(plan, MaintenancePlan)
    assert isinstance(done, MaintenanceReport)
    assert [one.name for one in plan.due] == [one.name for one, _ in done.done] == ["clean", "archival"]
    check_all(table.storage)
    table.model.check(table.read())


def test_a_watch_goes_on_until_it_is_told_to_stop(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "MERGE_ON_READ", 4)
    told: list[MaintenanceReport] = []

    def tell(report: MaintenanceReport) -> None:
        told.append(report)
        if len(told) == 2:
            raise KeyboardInterrupt
        for ts in range(5, 8):
            table.write(Operation.UPSERT, simple_rows(range(6), ts))

    with pytest.raises(KeyboardInterrupt):
        Table(table.path, DUE).services.watch(every=0.001, tell=tell)
    assert all("compaction" in str(report) for report in told)
    table.model.check(table.read())


def test_budgets_are_positive(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "MERGE_ON_READ", 4)
    with pytest.raises(ConfigError, match=r"max_bytes.*a positive number"):
        Table(table.path, DUE).maintain(max_bytes=0)
    with pytest.raises(ConfigError, match=r"max_seconds.*a positive number"):
        Table(table.path, DUE).maintain(max_seconds=-1.0)
    with pytest.raises(ConfigError, match="seconds"):
        Table(table.path, DUE).services.watch(every=0)


def test_dead_writes_are_left_alone_where_the_options_say_so(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "COPY_ON_WRITE", 1)
    dead = table.session().times.next(Table(table.path).timeline.last_time)
    TimelineWriter(table.storage).create_requested(dead, Action.COMMIT)
    never = {**DUE, "hoodie.clean.failed.writes.policy": "NEVER"}
    assert str(Table(table.path, never).maintain()) == "nothing was due"
    assert Table(table.path).timeline.get(dead) is not None


def test_a_watch_gives_way_to_others_and_says_so(tmp_path: Path) -> None:
    """Somebody holds the lock while it looks; what it says then ends the watch here."""
    table = written(tmp_path / "t", "MERGE_ON_READ", 5)
    asked = {**DUE, "hoodie.write.lock.wait_time_ms": "1"}
    with table.session().lock.held(), warnings.catch_warnings():
        warnings.simplefilter("error", HudiWarning)
        with pytest.raises(HudiWarning, match="gave way and looks again later: HUDIMETA_LOCK"):
            Table(table.path, asked).services.watch(every=0.001)


def test_what_a_later_service_refuses_is_told_before_anything_is_run(tmp_path: Path) -> None:
    """The compaction was done, and then the clustering refused."""
    table = written(tmp_path / "t", "MERGE_ON_READ", 8)
    sort = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    options = {**DUE, **sort, "hoodie.clustering.plan.strategy.sort.columns": "nope"}
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match=r"sort\.columns' has the value 'nope'"):
        Table(table.path, options).maintain()
    assert sorted(tmp_path.rglob("*")) == before
