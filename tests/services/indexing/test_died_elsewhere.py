"""Apache Hudi is killed while it builds an index: no answer comes from what it left, and whoever writes next takes it back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.errors import CommitError, IndexNotReady, StorageError, UnsupportedFeature
from hudimeta.services.indexing import beside_writers
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.table.properties import load, update
from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation, State
from tests.services.indexing.test_beside_writers import written

NAMED, UNDER_WAY = "hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight"
STAGES = ("begun", "under way", "written", "named", "named when it had been taken back")
"""How far the build came."""
INDEX = "expr_index_low"


def left_by_hudi(path: Path, stage: str, type: str = "COPY_ON_WRITE") -> tuple[ModelledTable, str]:
    """A table on which Apache Hudi was killed at its work, and the instant of that: made of a build of ours."""
    table = written(path, type)
    before = table.storage.read(".hoodie/hoodie.properties")
    planned = Table(table.path).services.indexing.schedule("column_stats", "low", "id", expression="upper")
    plan = (path / f".hoodie/timeline/{planned}.indexing.requested").read_bytes()
    Table(table.path).services.indexing.execute(planned)
    for file in path.glob(".hoodie/timeline/*.indexing*"):
        file.unlink()  # also of the second one, which lets it not be the newest
    (path / f".hoodie/timeline/{planned}.indexing.requested").write_bytes(plan)
    inner = path / ".hoodie/metadata"
    table.storage.put(".hoodie/hoodie.properties", before)
    update(table.storage, {"hoodie.table.index.defs.path": ".hoodie/.index_defs/index.json"})
    if not stage.startswith("named when"):
        (path / f".hoodie/timeline/{planned}.indexing.inflight").write_bytes(b"")
    if stage in ("under way", "written"):
        update(table.storage, {UNDER_WAY: INDEX})
    if stage.startswith("named"):
        update(table.storage, {NAMED: f"{load(table.storage).get(NAMED)},{INDEX}", UNDER_WAY: ""})
    if stage in ("begun", "named when it had been taken back"):
        shutil.rmtree(inner / INDEX)
    if stage != "written" and stage != "named":
        for file in inner.glob(f".hoodie/timeline/{planned}*"):
            if stage != "under way" or "_" in file.name:
                file.unlink()
    return table, planned


def is_as_if_planned(table: ModelledTable, planned: str) -> None:
    """Nothing of the build is left but its plan, which can be run."""
    here = Table(table.path)
    assert [(i.time, i.state) for i in here.timeline.pending] == [(planned, State.REQUESTED)]
    properties = load(table.storage)
    assert INDEX not in (*properties.metadata_partitions, *properties.metadata_partitions_inflight)
    assert not list(Path(table.path).glob(f".hoodie/metadata/{INDEX}/*"))
    assert not list(Path(table.path).glob(f".hoodie/metadata/.hoodie/**/{planned}*"))
    assert here.metadata.validate().holds
    table.check()
    check_all(table.storage)


@pytest.mark.parametrize("stage", STAGES)
def test_the_next_write_takes_it_back(tmp_path: Path, stage: str) -> None:
    table, planned = left_by_hudi(tmp_path / "t", stage)
    scan = Table(table.path).scan("upper(id) = 'K0003'")
    assert scan.to_table()["id"].to_pylist() == ["k0003"]
    with pytest.raises(IndexNotReady, match="still being built" if stage != "begun" else "not built"):
        Table(table.path).metadata.records(INDEX)
    report = Table(table.path).upsert(simple_rows([3, 41], 50))
    assert report.rolled_back == (planned,) or f"died were taken back: {planned}" in str(report.notes)
    table.model.write(Operation.UPSERT, simple_rows([3, 41], 50))
    is_as_if_planned(table, planned)
    Table(table.path).services.indexing.execute(planned)
    scan = Table(table.path).scan("upper(id) = 'K0041'")
    assert scan.to_table()["id"].to_pylist() == ["k0041"]
    assert INDEX in str(scan.report)
    assert Table(table.path).metadata.validate().holds


def test_what_is_not_finished_is_not_asked_and_the_report_says_so(tmp_path: Path) -> None:
    table, planned = left_by_hudi(tmp_path / "t", "named")
    for base in Path(table.path).glob(f".hoodie/metadata/{INDEX}/*.hfile"):
        base.unlink()
    scan = Table(table.path).scan("upper(id) = 'K0003'")
    assert scan.to_table()["id"].to_pylist() == ["k0003"]
    assert f"its building, begun at {planned}, was not finished" in str(scan.report)
    assert INDEX not in Table(table.path).metadata.ready


@pytest.mark.parametrize("stage", STAGES)
def test_recovery_dropping_cancelling_and_running_take_it_back(tmp_path: Path, stage: str) -> None:
    source, planned = left_by_hudi(tmp_path / "t", stage, "MERGE_ON_READ")
    table = source.copy(str(tmp_path / "recovered"))
    assert Table(table.path).recover() == (planned,)
    is_as_if_planned(table, planned)
    assert Table(table.path).recover() == ()
    for verb in ("drop", "cancel", "execute"):
        table = source.copy(str(tmp_path / verb))
        if verb == "drop":
            Table(table.path).metadata.drop_index("low")
        elif verb == "cancel":
            Table(table.path).services.indexing.cancel(planned)
        else:
            Table(table.path).services.indexing.execute(planned)
        here = Table(table.path)
        assert not here.timeline.pending
        assert (INDEX in here.metadata.ready) is (INDEX in here.metadata.index_definitions) is (verb == "execute")
        assert here.metadata.validate().holds
        table.write(Operation.UPSERT, simple_rows([2, 30], 40))
        table.check()
        check_all(table.storage)


@pytest.mark.parametrize("verb", ["recover", "upsert", "execute"])
def test_a_late_word_of_a_build_that_was_taken_back_goes(tmp_path: Path, verb: str) -> None:
    """Found by simulated histories: its maker stood still before it said that all is written, was taken back, and died then."""
    table, planned = left_by_hudi(tmp_path / "t", "written")
    own = tmp_path / "t/.hoodie/metadata/.hoodie/timeline"
    (word,) = own.glob(f"{planned}_*.deltacommit")
    late = word.read_bytes()
    Table(table.path).recover()
    word.write_bytes(late)
    if verb == "upsert":
        table.write(Operation.UPSERT, simple_rows([3, 41], 50))
    elif verb == "recover":
        Table(table.path).recover()
    else:
        Table(table.path).services.indexing.execute(planned)
    assert not word.exists()
    assert Table(table.path).scan("upper(id) = 'K0003'").to_table()["id"].to_pylist() == ["k0003"]
    table.check()
    check_all(table.storage)


def test_a_build_that_beats_goes_on(tmp_path: Path) -> None:
    """Its heartbeat lies in the metadata table until all of the index is written."""
    table, planned = left_by_hudi(tmp_path / "t", "under way")
    beat = tmp_path / f"t/.hoodie/metadata/.hoodie/.heartbeat/{planned}"
    beat.parent.mkdir(exist_ok=True)
    beat.write_bytes(b"")
    with pytest.raises(UnsupportedFeature, match=f"writing while Apache Hudi builds the index {INDEX}"):
        Table(table.path).upsert(simple_rows([3], 50))
    for verb in (
        lambda: Table(table.path).metadata.drop_index("low"),
        lambda: Table(table.path).services.indexing.cancel(planned),
    ):
        with pytest.raises(CommitError, match=f"{planned} is being run by another process"):
            verb()
    table.check()
    assert f"{planned}.indexing.inflight" in os.listdir(tmp_path / "t/.hoodie/timeline")
    os.utime(beat, (1, 1))
    table.write(Operation.UPSERT, simple_rows([3], 50))
    is_as_if_planned(table, planned)


def test_a_plan_whose_index_came_another_way_goes(tmp_path: Path) -> None:
    """A write of Apache Hudi whose options ask for the index makes it, and leaves the plan."""
    table = written(tmp_path / "t", "COPY_ON_WRITE")
    planned = Table(table.path).services.indexing.schedule("bloom_filters")
    aside = tmp_path / "plan"
    shutil.move(tmp_path / f"t/.hoodie/timeline/{planned}.indexing.requested", aside)
    Table(table.path).metadata.create_index(type="bloom_filters")
    shutil.move(aside, tmp_path / f"t/.hoodie/timeline/{planned}.indexing.requested")
    assert "bloom_filters" in Table(table.path).metadata.ready
    assert Table(table.path).recover() == (planned,)
    assert not beside_writers.pending(Table(table.path).timeline)
    assert "bloom_filters" in Table(table.path).metadata.ready
    table.check()
    check_all(table.storage)


def test_taking_it_back_may_fail_at_any_call(tmp_path: Path) -> None:
    source, planned = left_by_hudi(tmp_path / "t", "named")
    whole = source.copy(str(tmp_path / "whole"))
    counted = FaultyStorage(whole.storage, FaultPlan(None, Fault.ERROR_BEFORE))
    whole.session(counted).coordinator.recover()
    points = [n for n, call in enumerate(counted.plan.calls) if "lock" not in call]
    assert len(points) > 5
    failed = 0
    for point in points:
        table = source.copy(str(tmp_path / f"t{point}"))
        try:
            table.session(FaultyStorage(table.storage, FaultPlan(point, Fault.ERROR_BEFORE))).coordinator.recover()
        except StorageError:
            failed += 1
        table.check()
        assert INDEX not in Table(table.path).metadata.ready
        Table(table.path).recover()
        is_as_if_planned(table, planned)
    assert failed > 4
