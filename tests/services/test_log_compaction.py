"""Log compaction: one block stands for many, and no answer changes; what is at work or has ended is left out."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.commit.coordinator import OpenWrite, Publication
from hudimeta.commit.markers import MARKERS
from hudimeta.config import OPTIONS
from hudimeta.errors import CommitConflict, CommitError, StorageError, UnsupportedFeature
from hudimeta.services import compaction, log_compaction
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_place, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.testing.model import ModelTable
from hudimeta.types import Action, Operation
from hudimeta.write.table_writer import write_rows
from tests.rotation import in_turn
from tests.services.test_clustering import INDEXES, answers

MOR = {
    **SIMPLE_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
AT_ONCE = {"hoodie.log.compaction.blocks.threshold": "2"}
BY_COMMIT = {name: value for name, value in MOR.items() if "precombine" not in name}
SEEDS = int(os.environ.get("HUDIMETA_LOG_COMPACTION_SEEDS", "4"))


def written(path: Path, given: Mapping[str, str] = MOR, ordering: str | None = "ts", **options: str) -> ModelledTable:
    """Two partitions with a base file and three log files each: updates, late events and deletes."""
    table = ModelledTable(str(path), {**given, **options}, model=ModelTable(simple_place, ordering))
    table.write(Operation.INSERT, simple_rows(range(12), 5))
    table.write(Operation.UPSERT, simple_rows(range(6), 7))
    table.write(Operation.UPSERT, simple_rows(range(4, 8), 3, 99.0))
    table.write(Operation.DELETE, simple_rows([0, 1], 8))
    return table


def blocks_read(path: str) -> int:
    scan = Table(path).scan()
    scan.to_table()
    return scan.report.log_blocks


def sound(table: ModelledTable) -> None:
    table.check()
    check_all(table.storage)


def told(path: str, instant: str) -> int:
    """How many log records a write says that it merged."""
    shown = Table(path).call("show_commits_metadata").to_pylist()
    return sum(row["total_log_records"] for row in shown if row["commit_time"] == instant)


def logged(path: str, instant: str) -> int:
    """How many records other writes say that they put into logs."""
    shown = Table(path).call("show_commits_metadata").to_pylist()
    logs = [row for row in shown if row["commit_time"] != instant and row["previous_commit"] != "null"]
    return sum(row["num_writes"] + row["num_deletes"] for row in logs)


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("indexes", INDEXES)
def test_no_answer_changes(tmp_path: Path, indexes: str, version: str) -> None:
    table = written(tmp_path / "t", **INDEXES[indexes], **{"hoodie.write.table.version": version})
    begin = Table(table.path).timeline.writes[1].completed_at
    before = answers(table.path, begin)
    (report,) = Table(table.path, AT_ONCE).log_compact()
    assert report.files_written == 2
    assert answers(table.path, begin) == before
    assert told(table.path, report.instant) == logged(table.path, report.instant)
    sound(table)
    done = Table(table.path).timeline.by_completion[-1]
    assert (done.action, done.pending_action) == (Action.DELTA_COMMIT, Action.LOG_COMPACTION)
    assert Table(table.path).scan(query_type="incremental", begin=report.completion).to_table().num_rows == 0
    assert Table(table.path, AT_ONCE).log_compact() == [], "one block alone is merged already"
    table.write(Operation.UPSERT, simple_rows(range(3, 9), 12, 1.0))
    table.write(Operation.DELETE, simple_rows([9], 13))
    before = answers(table.path, begin)
    Table(table.path, AT_ONCE).log_compact()
    assert answers(table.path, begin) == before
    sound(table)
    Table(table.path).compact()
    assert answers(table.path, begin) == before
    sound(table)


def test_readers_open_one_block_instead_of_many(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    assert blocks_read(table.path) == 6
    plan = Table(table.path, AT_ONCE).log_compact(dry_run=True)
    assert "3 logs" in str(plan)
    assert Table(table.path, AT_ONCE).timeline.pending == ()
    Table(table.path, AT_ONCE).log_compact()
    assert blocks_read(table.path) == 4, "rows and deletes of two slices"


def test_logs_of_few_blocks_are_left_alone(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    assert Table(table.path).services.log_compaction.schedule() is None
    assert Table(table.path).log_compact() == []
    plain = ModelledTable(str(tmp_path / "cow"))
    with pytest.raises(UnsupportedFeature, match="copy-on-write"):
        Table(plain.path).log_compact()


def test_captured_changes_are_those_of_before(tmp_path: Path) -> None:
    table = written(tmp_path / "t", **{"hoodie.table.cdc.enabled": "true"})

    def changes() -> list[str]:
        return sorted(map(repr, Table(table.path).scan(query_type="cdc", begin="earliest").to_table().to_pylist()))

    before = changes()
    Table(table.path, AT_ONCE).log_compact()
    assert changes() == before
    table.write(Operation.UPSERT, simple_rows([2, 3, 9], 12))
    assert len(changes()) == len(before) + 3


def test_inline_and_by_maintenance(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    rows = simple_rows(range(3), 20)
    report = Table(table.path, {**AT_ONCE, "hoodie.log.compaction.inline": "true"}).upsert(rows)
    table.model.write(Operation.UPSERT, rows)
    assert "logs merged at" in str(report)
    table.model.check(table.read())
    rows = simple_rows([5, 6], 21)
    Table(table.path).upsert(rows)
    table.model.write(Operation.UPSERT, rows)
    wanted = {**AT_ONCE, "hoodie.log.compaction.enable": "true", "hoodie.compact.inline.max.delta.commits": "90"}
    asking = Table(table.path, wanted)
    assert str(asking.maintain(dry_run=True)).startswith("logs")
    asking.maintain()
    assert blocks_read(table.path) == 2
    table.model.check(table.read())
    check_all(table.storage)


# What lies between


def test_nothing_is_merged_behind_a_write_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows sort after all that is older: a block of older and newer rows must not come to lie above them."""
    table = written(tmp_path / "t", BY_COMMIT, None)
    slow = table.session()
    publish = slow.coordinator.publish

    def meanwhile(write: OpenWrite, publication: Publication) -> str:
        for ts in (30, 31):
            table.write(Operation.UPSERT, simple_rows([8], ts))
        plan = Table(table.path, AT_ONCE).services.log_compaction.plan()
        assert [len(one.log_files) for one in plan.slices] == [3, 3]
        Table(table.path, AT_ONCE).log_compact()
        return publish(write, publication)

    monkeypatch.setattr(slow.coordinator, "publish", meanwhile)
    write_rows(slow, Operation.UPSERT, simple_rows([6], 29))
    table.model.write(Operation.UPSERT, simple_rows([6], 29))
    table.model.past.clear()
    sound(table)
    Table(table.path, AT_ONCE).log_compact()
    sound(table)


def test_slices_that_ended_are_left_out(tmp_path: Path) -> None:
    """Whoever planned a compaction over a planned log compaction, as Apache Hudi may, goes before it."""
    table = written(tmp_path / "t")
    planned = Table(table.path, AT_ONCE).services.log_compaction.schedule()
    assert planned is not None
    assert Table(table.path).compact() == [], "we do not"
    session = table.session()
    snapshot = session.snapshot_now()
    only = log_compaction.plan(table.session(options=OPTIONS.read({**table.options.given, **AT_ONCE})), snapshot)
    assert only.slices == ()
    slices = compaction.CompactionPlan.of(snapshot.timeline.plan(snapshot.timeline.pending[0])).slices
    with session.lock.held():
        late = session.coordinator.plan(snapshot.timeline, Action.COMPACTION, compaction.CompactionPlan(slices[:1]).encode())
    table.write(Operation.UPSERT, simple_rows(range(4, 9), 40))
    report = Table(table.path, AT_ONCE).services.log_compaction.execute(planned)
    assert "1 file slices left out" in str(report)
    assert report.files_written == 1
    sound(table)
    compaction.execute(table.session(), late)
    sound(table)


def test_a_slice_that_ends_meanwhile_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(tmp_path / "t", **{"hoodie.parquet.small.file.limit": "100000000"})
    planned = Table(table.path, AT_ONCE).services.log_compaction.schedule()
    assert planned is not None
    works = log_compaction._works

    def meanwhile(*asked: object) -> object:
        found = works(*asked)
        snapshot = table.session().snapshot_now()
        content = snapshot.timeline.plan(snapshot.timeline.get(planned, Action.LOG_COMPACTION))
        slices = compaction.CompactionPlan.of(content).slices
        with table.session().lock.held():
            table.session().coordinator.plan(snapshot.timeline, Action.COMPACTION, compaction.CompactionPlan(slices).encode())
        return found

    monkeypatch.setattr(log_compaction, "_works", meanwhile)
    with pytest.raises(CommitConflict, match="that a pending service is going to change"):
        Table(table.path, AT_ONCE).services.log_compaction.execute(planned)
    monkeypatch.undo()
    sound(table)
    Table(table.path, AT_ONCE).services.log_compaction.execute(planned)
    Table(table.path).compact()
    sound(table)


# Random histories

PARTIAL = {"hoodie.spark.sql.merge.into.partial.updates": "true"}
KINDS: dict[str, tuple[Mapping[str, str], Mapping[str, str]]] = {
    "event time": (MOR, {}),
    "commit time": (BY_COMMIT, {}),
    "partial": (MOR, PARTIAL),
    "partial by commit, spilled": (BY_COMMIT, {**PARTIAL, "hudimeta.merge.memory.bytes": "600"}),
    "spilled": (MOR, {"hudimeta.merge.memory.bytes": "600"}),
    "filled": (MOR, {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}),
    "computed keys": ({**MOR, "hoodie.populate.meta.fields": "false"}, {}),
    "avro": (MOR, {"hoodie.logfile.data.block.format": "avro", "hoodie.write.table.version": "8"}),
}


def step(table: Table, dice: random.Random, ts: int) -> str:
    """One change, the same for the same dice."""
    ids = sorted(dice.sample(range(16), dice.randint(1, 6)))
    stamp = max(1, ts - dice.randint(0, 4))
    act = dice.choice(["upsert", "upsert", "delete", "update", "marked", "void"])
    rows = simple_rows(ids, stamp, None if act != "void" else float("nan"))
    if act == "update":
        table.update({"x": f"x + {ts}"}, f"id < 'k{ids[-1]:04d}'")
    elif act == "delete":
        table.delete(rows)
    elif act == "marked":
        table.delete(f"id = 'k{ids[0]:04d}'")
    else:
        table.upsert(rows)
    return act


def state(path: Path) -> list[str]:
    found = Table(path).scan().to_table()
    return sorted(map(repr, found.select(["id", "part", "ts", "x"]).to_pylist()))


@pytest.mark.rotation(4)
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_reads_as_its_twin_without_log_compactions(tmp_path: Path, kind: str) -> None:
    given, more = KINDS[kind]
    seeds = range(SEEDS) if SEEDS > 4 else in_turn(range(SEEDS), SEEDS)
    for seed in seeds:
        paths = [tmp_path / f"{seed} {name}" for name in ("merged", "plain")]
        dice = random.Random(f"{kind} {seed}")
        for path in paths:
            ModelledTable(str(path), {**given, **more})
            Table(path, {**given, **more}).insert(simple_rows(range(12), 3))
        for ts in range(4, 12):
            drawn = dice.random()
            said = [step(Table(path, {**given, **more}), random.Random(drawn), ts) for path in paths]
            if dice.random() < 0.4:
                Table(paths[0], {**more, **AT_ONCE}).log_compact()
            if dice.random() < 0.1:
                for path in paths:
                    Table(path, more).compact()
            assert state(paths[0]) == state(paths[1]), (seed, ts, said)
        check_all(ModelledTable(str(paths[0]), given, exists=True).storage)


# Undone, and died


def test_a_log_compaction_is_taken_back(tmp_path: Path) -> None:
    table = written(tmp_path / "t", **INDEXES["all"])
    newest = Table(table.path).timeline.writes[-1].time
    (report,) = Table(table.path, AT_ONCE).log_compact()
    Table(table.path).rollback(report.instant)
    assert blocks_read(table.path) == 6
    sound(table)
    Table(table.path, AT_ONCE).log_compact()
    table.write(Operation.UPSERT, simple_rows([2], 15))
    Table(table.path).restore(newest)
    assert blocks_read(table.path) == 6
    table.model.rows = {simple_place(row): [row] for row in table.model.past[newest]}
    table.model.past = {time: rows for time, rows in table.model.past.items() if time <= newest}
    sound(table)


def test_a_plan_is_cancelled(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    steps = Table(table.path, AT_ONCE).services.log_compaction
    planned = steps.schedule()
    assert planned is not None
    assert steps.plan().slices == ()
    steps.cancel(planned)
    with pytest.raises(CommitError, match=f"no pending logcompaction at {planned}"):
        steps.execute(planned)
    assert len(steps.plan().slices) == 2


@pytest.mark.filterwarnings("ignore:the upkeep of the metadata table is left:hudimeta.config.HudiWarning")
def test_a_log_compaction_that_fails_at_any_call_is_run_again(tmp_path: Path) -> None:
    source = written(tmp_path / "source")

    def run(storage: FaultyStorage | None, table: ModelledTable) -> None:
        log_compaction.log_compact(table.session(storage, OPTIONS.read({**table.options.given, **AT_ONCE})))

    whole = source.copy(str(tmp_path / "whole"))
    counted = FaultyStorage(whole.storage, FaultPlan(None, Fault.ERROR_BEFORE))
    run(counted, whole)
    assert len(counted.plan.calls) > 8
    for call in in_turn(range(len(counted.plan.calls)), 6):
        table = source.copy(str(tmp_path / f"t{call}"))
        try:
            run(FaultyStorage(table.storage, FaultPlan(call, Fault.ERROR_BEFORE)), table)
        except StorageError:
            table.check()
            run(None, table)
        assert blocks_read(table.path) == 4
        Table(table.path).recover()
        assert not table.storage.list(MARKERS)
        sound(table)
