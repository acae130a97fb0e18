"""Cleaning: what goes, what stays readable, and what a clean that died leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.api import verbs
from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.config import OPTIONS, HudiWarning
from hudimeta.errors import CommitError, ConfigError, CorruptFileError, StorageError, TableError
from hudimeta.services import clean, compaction
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline import SystemClock
from hudimeta.timeline.clean_record import being_cleaned
from hudimeta.types import Action, Operation
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import prepare, publish, write_batch
from tests.rotation import in_turn

LATER = (Operation.UPSERT, simple_rows([1, 2], 9))


def written(path: Path, writes: int, **options: str) -> ModelledTable:
    """A table of two partitions whose every row was written `writes` times."""
    table = ModelledTable(str(path), {**SIMPLE_OPTIONS, **options})
    for ts in range(1, writes + 1):
        table.write(Operation.UPSERT, simple_rows(range(10), ts))
    return table


def base_files(path: Path) -> list[str]:
    return sorted(file.name for file in path.glob("p*/*.parquet"))


def test_moments_of_retained_commits_stay_readable(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 6)
    report = Table(table.path, {"hoodie.clean.commits.retained": 2}).clean()
    assert report.deleted == 6  # of six slices in each of two groups, two commits' and the one before stay
    assert len(base_files(tmp_path / "t")) == 6
    for instant in sorted(table.model.past)[-2:]:
        table.model.check(table.read(instant), instant)
    check_all(table.storage)


def test_reading_a_moment_that_was_cleaned_is_an_error(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 5)
    Table(table.path, {"hoodie.clean.commits.retained": 1}).clean()
    with pytest.raises(TableError, match="clean"):
        table.read(min(table.model.past))


def test_file_versions(tmp_path: Path) -> None:
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    table = written(tmp_path / "t", 4)
    assert Table(table.path, options).clean().deleted == 6
    assert len(base_files(tmp_path / "t")) == 2
    table.model.check(table.read())
    check_all(table.storage)


def test_replaced_file_groups_go(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 1)
    table.write(Operation.INSERT_OVERWRITE_TABLE, simple_rows(range(20, 24), 2))
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    assert Table(table.path, options).clean().deleted == 2
    table.model.check(table.read())
    check_all(table.storage)


def test_nothing_to_clean_leaves_the_timeline_as_it_was(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 2)
    before = sorted((tmp_path / "t" / ".hoodie" / "timeline").iterdir())
    report = Table(table.path).clean()  # ten commits are retained by default
    assert report.instant is None
    assert report.deleted == 0
    assert sorted((tmp_path / "t" / ".hoodie" / "timeline").iterdir()) == before


def test_log_files_go_with_their_slice(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 3, **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    Table(table.path).compact()
    table.write(Operation.UPSERT, simple_rows(range(10), 9))
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    report = Table(table.path, options).clean()
    assert report.deleted == 6  # in each of two groups a base file and the log files of two upserts
    table.model.check(table.read())
    check_all(table.storage)


@pytest.mark.parametrize("retained", ["2", "3"])
def test_compactions_among_writes_are_not_passed_over(tmp_path: Path, retained: str) -> None:
    """Each write adds a delta commit and a compaction, so it looks at every second instant only."""
    options = {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.clean.commits.retained": retained,
    }
    table = written(tmp_path / "t", 1, **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    for ts in range(2, 10):
        Table(table.path, options).upsert(simple_rows(range(10), ts))
    assert len(base_files(tmp_path / "t")) <= 2 * 4  # of nine in each of two groups
    check_all(table.storage)


@pytest.mark.filterwarnings("ignore:the upkeep of the metadata table is left:hudimeta.config.HudiWarning")
def test_a_clean_that_fails_at_any_call_is_finished_by_the_next(tmp_path: Path) -> None:
    options = {"hoodie.clean.commits.retained": "1"}
    source = written(tmp_path / "source", 4)
    whole = FaultyStorage(source.copy(str(tmp_path / "whole")).storage, FaultPlan(None, Fault.ERROR_BEFORE))
    verbs.clean(whole, OPTIONS.read(options))
    assert len(whole.plan.calls) > 5
    for call in in_turn(range(len(whole.plan.calls)), 4):
        path = tmp_path / f"t{call}"
        table = source.copy(str(path))
        broken = FaultyStorage(table.storage, FaultPlan(call, Fault.ERROR_BEFORE))
        try:
            verbs.clean(broken, OPTIONS.read(options))
        except StorageError:
            table.model.check(table.read())
            Table(str(path), options).clean()
        assert len(base_files(path)) == 4
        table.model.check(table.read())
        check_all(table.storage)
        assert len(broken.plan.calls) > call, "the fault was met"


class Undeletable(FaultyStorage):
    """A store that deletes no base file: a clean dies after its plan."""

    def __init__(self, table: ModelledTable) -> None:
        super().__init__(table.storage, FaultPlan(None, Fault.ERROR_BEFORE))

    def delete(self, path: str) -> bool:
        if path.endswith(".parquet"):
            raise StorageError(path, "cannot be deleted")
        return super().delete(path)


def clean_that_dies(table: ModelledTable, **options: str) -> str:
    """Plan a clean and go no further; returns its instant."""
    with pytest.raises(StorageError, match="cannot be deleted"):
        verbs.clean(Undeletable(table), OPTIONS.read(options))
    (planned,) = Table(table.path).timeline.pending
    return planned.time


@pytest.mark.parametrize("finish", [lambda table: Table(table.path).recover(), lambda table: table.write(*LATER)])
def test_a_clean_that_died_is_finished_by_whoever_comes_next(tmp_path: Path, finish: Callable[[ModelledTable], object]) -> None:
    """Some of its files are gone already, and the metadata table lists them still."""
    table = written(tmp_path / "t", 4)
    planned = clean_that_dies(table, **{"hoodie.clean.commits.retained": "1"})
    base_file = next(name for _, name in being_cleaned(Table(table.path).timeline) if name.endswith(".parquet"))
    next((tmp_path / "t").glob(f"p*/{base_file}")).unlink()
    finish(table)
    timeline = Table(table.path).timeline
    assert not timeline.pending
    assert [i.time for i in timeline.completed if i.action is Action.CLEAN] == [planned]
    Table(table.path).metadata.validate().raise_if_differs()
    table.model.check(table.read())
    check_all(table.storage)


def test_a_clean_that_cannot_be_finished_keeps_nobody_from_writing(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 4)
    planned = clean_that_dies(table, **{"hoodie.clean.commits.retained": "1"})
    with pytest.warns(HudiWarning, match=f"clean {planned} is left unfinished: .*cannot be deleted"):
        table.write(*LATER, storage=Undeletable(table))
    table.check()
    table.write(*LATER)
    check_all(table.storage)


def test_a_write_beside_a_clean_leaves_it_alone(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 4)
    planned = clean_that_dies(table, **{"hoodie.clean.commits.retained": "1"})
    with table.session().coordinator.running(planned, Action.CLEAN):
        table.write(*LATER)
        assert [i.time for i in Table(table.path).timeline.pending] == [planned]
    table.check()


def test_a_clean_is_run_by_one_process_at_a_time(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 4)
    options = {"hoodie.clean.commits.retained": "1"}
    planned = clean_that_dies(table, **options)
    with table.session().coordinator.running(planned, Action.CLEAN), pytest.raises(CommitError, match="another process"):
        Table(table.path, options).clean()
    Table(table.path, options).clean()
    assert [i.time for i in Table(table.path).timeline.completed if i.action is Action.CLEAN] == [planned]
    table.model.check(table.read())
    check_all(table.storage)


def test_an_index_can_be_made_after_a_clean_that_died(tmp_path: Path) -> None:
    """The listing still names the files that are gone."""
    table = written(tmp_path / "t", 4)
    clean_that_dies(table, **{"hoodie.clean.commits.retained": "1"})
    partition, name = next(being_cleaned(Table(table.path).timeline))
    (tmp_path / "t" / partition / name).unlink()
    Table(table.path).metadata.create_index(type="bloom_filters")
    table.write(Operation.UPSERT, simple_rows(range(10), 9))
    Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean()
    table.model.check(table.read())
    check_all(table.storage)


def emptied_partition(path: Path, **options: str) -> ModelledTable:
    """A table one of whose partitions lost all its rows to an overwrite, long enough ago to be cleaned."""
    table = written(path, 1, **options)
    table.write(Operation.INSERT_OVERWRITE_TABLE, simple_rows(range(0, 10, 2), 2))
    for ts in (3, 4, 5):
        table.write(Operation.UPSERT, simple_rows(range(0, 10, 2), ts))
    return table


def test_a_write_that_began_before_a_clean_keeps_its_partition(tmp_path: Path) -> None:
    table = emptied_partition(tmp_path / "t")
    rows = simple_rows(range(1, 10, 2), 6)
    session = table.session()
    files = TableFiles.at(session, session.properties.load_timeline(session.storage))
    with session.coordinator.writing(Operation.UPSERT, files.snapshot.timeline) as (write, begun):
        files = TableFiles.at(session, begun)
        prepared = prepare(files, session, Operation.UPSERT, rows)
        outcome = write_batch(session, files, write, prepared, Timings())
        assert Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean().plan.files["p1"]
        publish(session, files, write, prepared.schema, outcome, Timings())
    table.model.write(Operation.UPSERT, rows)
    table.model.check(table.read())
    check_all(table.storage)


def test_a_clean_that_is_finished_late_keeps_partitions_that_were_written_meanwhile(tmp_path: Path) -> None:
    table = emptied_partition(tmp_path / "t", **{"hoodie.metadata.compact.max.delta.commits": "1"})
    options = {"hoodie.clean.commits.retained": "1"}
    clean_that_dies(table, **options)
    table.write(Operation.UPSERT, simple_rows(range(1, 10, 2), 6))
    Table(table.path, options).clean()
    table.model.check(table.read())
    check_all(table.storage)


def test_a_partition_that_lost_its_last_file_is_forgotten(tmp_path: Path) -> None:
    table = emptied_partition(tmp_path / "t")
    Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean()
    session = table.session()
    known = session.snapshot_at(session.properties.load_timeline(session.storage)).metadata
    assert known is not None
    assert known.partitions().to_pylist() == ["p0"]
    table.model.check(table.read())
    check_all(table.storage)


def test_what_the_earliest_retained_commit_replaced_stays(tmp_path: Path) -> None:
    """Queries that began before that commit can finish, and its changes can be told."""
    table = written(tmp_path / "t", 2)
    shown = [f"{s['partition_path']}/{s['base_file']}" for s in Table(table.path).file_slices().to_pylist()]
    table.write(Operation.INSERT_OVERWRITE_TABLE, simple_rows(range(20, 24), 3))
    table.write(Operation.UPSERT, simple_rows(range(20, 24), 4))
    retained = Table(table.path, {"hoodie.clean.commits.retained": "2"})
    assert retained.clean().deleted == 2  # of the groups that were replaced only the older slices
    assert all((tmp_path / "t" / name).exists() for name in shown)
    table.write(Operation.UPSERT, simple_rows(range(20, 24), 5))
    assert retained.clean().deleted == 2  # now these as well
    assert not any((tmp_path / "t" / name).exists() for name in shown)
    table.model.check(table.read())
    check_all(table.storage)


def test_a_planned_compaction_holds_back_only_its_own_file_groups(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    table.write(Operation.INSERT, simple_rows(range(10), 1))
    table.write(Operation.UPSERT, simple_rows(range(0, 10, 2), 2))
    planned = compaction.schedule(table.session())  # of p0 alone
    assert planned is not None
    for ts in (3, 4):
        table.write(Operation.UPSERT, simple_rows(range(1, 10, 2), ts))
        with_logs = compaction.schedule(table.session())
        assert with_logs is not None
        compaction.execute(table.session(), with_logs)
    report = Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean()
    assert report.deleted
    assert set(report.plan.files) == {"p1"}
    compaction.execute(table.session(), planned)
    table.model.check(table.read())
    check_all(table.storage)
    # Nothing is written to its partition any more, and still what it superseded goes.
    table.write(Operation.UPSERT, simple_rows(range(1, 10, 2), 5))
    assert Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean().deleted
    assert [len(list((tmp_path / "t" / "p0").glob(kind))) for kind in ("*.parquet", ".*.log.*_*-*-*")] == [1, 0]
    check_all(table.storage)


def test_an_empty_plan_is_named(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 4)
    options = {"hoodie.clean.commits.retained": "1"}
    planned = clean_that_dies(table, **options)
    (tmp_path / "t" / ".hoodie" / "timeline" / f"{planned}.clean.requested").write_bytes(b"")
    unfinished = pytest.warns(HudiWarning, match=f"clean {planned} is left unfinished")
    with unfinished, pytest.raises(CorruptFileError, match="the plan of a clean, found an empty file") as caught:
        Table(table.path, options).clean()
    assert caught.value.path == f".hoodie/timeline/{planned}.clean.requested"
    table.model.check(table.read())


@pytest.mark.parametrize("member", ["successDeleteFiles", "deletePathPatterns", "partitionMetadata"])
def test_a_record_of_a_clean_that_lost_a_member_is_damage(tmp_path: Path, member: str) -> None:
    """A changed bit in a name of the schema in the head of a file that nobody sealed."""
    table = written(tmp_path / "t", 4)
    Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean()
    (file,) = (tmp_path / "t" / ".hoodie" / "timeline").glob("*.clean")
    record = Table(table.path).timeline.metadata(Table(table.path).timeline.completed[-1])
    text = json.dumps(record).replace(member, member.replace("e", "g", 1))
    file.write_text(text)
    with pytest.raises(CorruptFileError, match=member) as caught:
        Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean()
    assert caught.value.path.endswith(file.name)


# How much, where, and for nothing


def test_one_clean_takes_no_more_commits_than_it_may(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 8)
    options = {"hoodie.clean.commits.retained": 2, "hoodie.clean.max.commits.to.clean": 3}
    times = [i.time for i in Table(table.path).timeline.writes]
    kept = []
    for _ in range(3):
        found = Table(table.path, options).clean().plan.earliest
        kept.append(found and found.time)
    assert kept == [times[3], times[6], times[6]]
    for instant in times[6:]:
        table.model.check(table.read(instant), instant)
    check_all(table.storage)


@pytest.mark.parametrize("asked", [{"selected": "p1"}, {"regex": "p[1-9]"}])
def test_some_partitions_alone_and_the_others_by_the_next(tmp_path: Path, asked: dict[str, str]) -> None:
    table = written(tmp_path / "t", 5)
    (pair,) = asked.items()
    some = {f"hoodie.clean.partition.filter.{pair[0]}": pair[1], "hoodie.clean.commits.retained": "1"}
    with pytest.raises(ConfigError, match=r"hoodie\.clean\.incremental\.enabled"):
        Table(table.path, some).clean()
    report = Table(table.path, {**some, "hoodie.clean.incremental.enabled": "false"}).clean()
    assert set(report.plan.files) == {"p1"}
    left = Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean()
    assert set(left.plan.files) == {"p0"}
    check_all(table.storage)
    bad = {**some, "hoodie.clean.partition.filter.regex": "p(", "hoodie.clean.incremental.enabled": "false"}
    bad.pop("hoodie.clean.partition.filter.selected", None)
    with pytest.raises(ConfigError, match="regular expression"):
        Table(table.path, bad).clean()


class InHours(SystemClock):
    """

    Args:
        hours: By which it is fast.
    """

    def __init__(self, hours: int) -> None:
        self._more = hours * 3_600_000

    def now_ms(self) -> int:
        return super().now_ms() + self._more


def test_an_appended_table_records_a_clean_now_and_then(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.parquet.small.file.limit": "0"})
    for first in range(0, 60, 10):
        table.write(Operation.INSERT, simple_rows(range(first, first + 10), 1))
    asked = OPTIONS.read({"hoodie.clean.commits.retained": "2", "hoodie.write.empty.clean.interval.hours": "2"})
    assert clean.clean(WriteSession(table.storage, asked, InHours(1))).instant is None
    soon = WriteSession(table.storage, asked, InHours(3))
    assert clean.is_due(soon, soon.properties.load_timeline(table.storage))
    report = clean.clean(soon)
    assert report.instant is not None
    assert report.deleted == 0
    assert clean.clean(WriteSession(table.storage, asked, InHours(9))).instant is None, "nothing came since"
    check_all(table.storage)
    table.model.check(table.read())
    assert clean.plan(soon, soon.snapshot_now()).files == {}


def test_the_steps_of_a_clean_by_themselves(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 6)
    steps = Table(table.path, {"hoodie.clean.commits.retained": 2}).services.cleaning
    planned = steps.plan()
    assert (planned.n_files, len(base_files(tmp_path / "t"))) == (6, 12)
    instant = steps.schedule()
    assert steps.schedule() == instant, "it waits there already"
    assert instant is not None
    report = steps.execute(instant)
    assert (report.instant, report.deleted, report.plan.files) == (instant, 6, planned.files)
    with pytest.raises(CommitError, match=instant):
        steps.execute(instant)
    assert steps.schedule() is None
    check_all(table.storage)
