"""Cleans that fail or die and are finished by the next, and those that meet a write or each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.api import verbs
from hudimeta.commit.timings import Timings
from hudimeta.config import OPTIONS, HudiWarning
from hudimeta.errors import CommitError, CorruptFileError, StorageError
from hudimeta.formats.avro.container import decode_container, encode_container
from hudimeta.formats.avro.schemas import CLEANER_PLAN
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline.clean_record import being_cleaned
from hudimeta.types import Action, Operation
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import prepare, publish, write_batch
from tests.rotation import in_turn
from tests.services.many_versions import base_files, emptied_partition, written

LATER = (Operation.UPSERT, simple_rows([1, 2], 9))


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


def test_a_plan_of_apache_hudi_may_name_sources_of_a_bootstrap(tmp_path: Path) -> None:
    """With `hoodie.clean.delete.bootstrap.base.file` it deletes them; here they stay, and the rest of the plan is run."""
    table = written(tmp_path / "t", 4)
    planned = clean_that_dies(table, **{"hoodie.clean.commits.retained": "1"})
    source = tmp_path / "raw" / "part-0.parquet"
    source.parent.mkdir()
    source.touch()
    requested = tmp_path / "t" / ".hoodie" / "timeline" / f"{planned}.clean.requested"
    (plan,) = decode_container(requested.read_bytes(), str(requested))
    for entries in plan["filePathsToBeDeletedPerPartition"].values():
        entries.append({"filePath": str(source), "isBootstrapBaseFile": True})
    requested.write_bytes(encode_container(CLEANER_PLAN, [plan]))
    with pytest.warns(HudiWarning, match=f"clean {planned} leaves 2 files that a bootstrap describes"):
        Table(table.path).clean()
    assert not Table(table.path).timeline.pending
    assert len(base_files(tmp_path / "t")) == 4
    assert source.exists()
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


def test_who_runs_our_plan_deletes_no_folder(tmp_path: Path) -> None:
    """Apache Hudi deletes the folders of partitions that a plan lists with all that was written there since."""
    table = emptied_partition(tmp_path / "t")
    cleaning = Table(table.path, {"hoodie.clean.commits.retained": "1"}).services.cleaning
    planned = cleaning.schedule()
    assert planned is not None
    timeline = Table(table.path).timeline
    (waiting,) = (i for i in timeline.pending if i.time == planned)
    record = timeline.plan(waiting)
    assert set(record["filePathsToBeDeletedPerPartition"]) == {"p0", "p1"}
    assert record["partitionsToBeDeleted"] == []
    assert cleaning.execute(planned).plan.emptied == ("p1",), "by ourselves it is forgotten"
    table.model.check(table.read())
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
