"""Cleaning: what goes, what stays readable, how much at once and when."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import CommitError, ConfigError, CorruptFileError, TableError
from hudimeta.services import clean, compaction
from hudimeta.storage.at_once import PARALLEL_REQUESTS
from hudimeta.storage.local import LocalStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline import SystemClock
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.services.many_versions import base_files, emptied_partition, written


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


def test_files_are_deleted_at_once_and_not_one_for_each_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delete waits for the store: as many are under way as requests of other kinds are."""
    table, lock = written(tmp_path / "t", 12), threading.Lock()
    asked, together, plain = [], threading.Event(), LocalStorage.delete

    def delete(storage: LocalStorage, path: str) -> bool:
        if path.endswith(".parquet") and not path.startswith(".hoodie"):
            with lock:
                asked.append(path)
                if len(asked) == PARALLEL_REQUESTS:
                    together.set()
            assert together.wait(20), f"only {len(asked)} at once"
        return plain(storage, path)

    monkeypatch.setattr(LocalStorage, "delete", delete)
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    assert Table(table.path, options).clean().deleted == len(asked) == 22
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


def test_by_hours_a_writer_whose_clock_is_fast_makes_nothing_old(tmp_path: Path) -> None:
    """Its instant is the last one; hours count from the cleaner's clock, as in Apache Hudi."""
    table = written(tmp_path / "t", 3)
    kept = OPTIONS.read({"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "24"})
    write_rows(WriteSession(table.storage, table.options, InHours(100)), Operation.UPSERT, simple_rows([0, 1], 9))
    assert clean.clean(WriteSession(table.storage, kept)).deleted == 0
    for instant in sorted(table.model.past):
        table.model.check(table.read(instant), instant)
    assert clean.clean(WriteSession(table.storage, kept, InHours(30))).deleted == 4, "by then the first two are old"


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
