"""Random histories of a table with every index: a machine that writes, serves and breaks, with a model beside it."""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import HealthCheck, Phase, event, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from hudimeta.api import verbs
from hudimeta.api.plain_write import PlainWrite
from hudimeta.api.table import Table
from hudimeta.commit.report import CommitReport
from hudimeta.config import OPTIONS, HudiWarning
from hudimeta.errors import HudiError
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.services.indexing import create_index, drop_index, rebuild
from hudimeta.storage import open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import ALWAYS, AT_REST, check_all, the_history_names_its_files
from hudimeta.testing.model import Row
from hudimeta.types import Action, Operation

__all__ = ["History", "Tally", "run_histories"]

INDEXED = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.index.secondary.column": "ts",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.bloom.filter.file.group.count": "1",
    "hoodie.metadata.index.column.stats.file.group.count": "1",
    "hoodie.metadata.index.expression.file.group.count": "1",
}
KEYED = ["record_index", "secondary_index_ts"]
MADE: dict[str, dict[str, Any]] = {
    "bloom_filters": {"kind": "bloom_filters"},
    "expr_index_up": {"kind": "column_stats", "name": "up", "columns": ["id"], "expression": "upper"},
    "expr_index_far": {"kind": "column_stats", "name": "far", "columns": ["x"], "expression": "identity"},
    "expr_index_low": {"kind": "bloom_filters", "name": "low", "columns": ["part"], "expression": "lower"},
}
"""Indexes that are made by a verb, and dropped and made again while the table lives."""
SHORT = {"hoodie.clean.commits.retained": "2", "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "5"}
"""So that cleaning and archival have something to do."""
CHANGING = {
    "hoodie.clean.automatic": "false",
    "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
}
"""Of writes by verbs: they clean nothing, and go before a planned clustering."""
ids = st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True)
stamps = st.integers(0, 9)


class Tally:
    """What ran: filled by every history of this process."""

    histories = 0
    steps = 0


class History(RuleBasedStateMachine):
    """Writes of every kind and services, some of which fail at some request; recovery; time travel; changes since a moment."""

    writes_fail = True
    """False leaves writes over bad storage out: what fails is in this process, and cannot go to Spark's workers."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="history"))
        self.table: ModelledTable | None = None
        self.failed = False
        """Something may be left that the next write removes."""
        self.left_in_history = False
        """An archival may have died before it named a file: writes do not look for that, `recover` and the next archival do."""
        self.latest = 0
        Tally.histories += 1

    @initialize(
        type=st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]),
        version=st.sampled_from(["8", "9"]),
        small=st.sampled_from(["0", "100000000"]),
        compact=st.sampled_from(["2", "4", "10"]),
        captures=st.booleans(),
        log_inserts=st.booleans(),
    )
    def create(self, type: str, version: str, small: str, compact: str, captures: bool, log_inserts: bool) -> None:
        options = {
            **SIMPLE_OPTIONS,
            **INDEXED,
            **{name: value for name, value in CHANGING.items() if "clustering" in name},
            "hoodie.datasource.write.table.type": type,
            "hoodie.write.table.version": version,
            "hoodie.parquet.small.file.limit": small,
            "hoodie.metadata.compact.max.delta.commits": compact,
            "hoodie.table.cdc.enabled": str(captures).lower(),
            "hudimeta.log.inserts": str(log_inserts).lower(),
        }
        self.given, self.is_mor = options, type == "MERGE_ON_READ"
        self.table = ModelledTable(str(self.home / "t"), options)
        for name in ("hoodie.write.table.version", "hoodie.datasource.write.table.type"):
            del options[name]  # which say what is created, and may become others
        self.table.options = OPTIONS.read(options)
        self.write(Operation.INSERT, simple_rows(range(0, 31, 5), 0))
        for name in MADE:
            self.make(name)

    def teardown(self) -> None:
        shutil.rmtree(self.home)

    @property
    def t(self) -> ModelledTable:
        assert self.table is not None
        return self.table

    def write(self, operation: Operation, rows: pa.Table) -> None:
        if self.t.write(operation, rows).completion is not None:  # without rows nothing is written, and nothing tidied up
            self.failed = False

    def stamp(self, ts: int) -> int:
        """In a log a delete bears the ordering value of the row that it deleted, and beats rows with smaller ones, as in Hudi.

        The model knows no such tombstones, so time only goes on in merge-on-read tables.
        """
        self.latest = max(self.latest, ts)
        return self.latest if self.is_mor else ts

    # Writes

    @rule(ids=ids, ts=stamps)
    def upsert(self, ids: list[int], ts: int) -> None:
        self.write(Operation.UPSERT, simple_rows(ids, self.stamp(ts)))

    @rule(ids=ids, ts=stamps)
    def upsert_with_deletes(self, ids: list[int], ts: int) -> None:
        rows = simple_rows(ids, self.stamp(ts))
        marks = pa.array([n % 3 == 0 for n in ids])
        self.write(Operation.UPSERT, rows.append_column("_hoodie_is_deleted", marks))

    @rule(ids=ids)
    def delete(self, ids: list[int]) -> None:
        self.write(Operation.DELETE, simple_rows(ids, 0))

    @rule(ids=ids, ts=stamps, bulk=st.booleans())
    def insert_fresh(self, ids: list[int], ts: int, bulk: bool) -> None:
        """Keys that the table does not have: doubled ones are another test's."""
        known = {row["id"] for row in self.t.model.all_rows()}
        fresh = [n for n in ids if f"k{n:04d}" not in known]
        self.write(Operation.BULK_INSERT if bulk else Operation.INSERT, simple_rows(fresh, self.stamp(ts)))

    @rule(ids=ids, ts=stamps, whole=st.booleans())
    def overwrite(self, ids: list[int], ts: int, whole: bool) -> None:
        operation = Operation.INSERT_OVERWRITE_TABLE if whole else Operation.INSERT_OVERWRITE
        self.write(operation, simple_rows(ids, self.stamp(ts)))

    @rule(part=st.sampled_from([0, 1]))
    def delete_partition(self, part: int) -> None:
        self.write(Operation.DELETE_PARTITION, simple_rows([part], 0))

    @rule(ids=ids)
    def update_where(self, ids: list[int]) -> None:
        keys = {f"k{n:04d}" for n in ids}
        listed = ", ".join(f"'{key}'" for key in sorted(keys))
        report = Table(self.t.path, CHANGING).update({"x": "x + 0.5"}, where=f"id in ({listed})")
        self.t.model.change(lambda row: {**row, "x": row["x"] + 0.5} if row["id"] in keys else row)
        self.changed(report)

    @rule(ids=ids, ts=stamps)
    def merge(self, ids: list[int], ts: int) -> None:
        """Rows in both are deleted when their number is even, the others changed; all others are inserted."""
        model, ts = self.t.model, self.stamp(ts)
        rows = simple_rows(ids, ts).append_column("even", pa.array([n % 2 == 0 for n in ids]))
        report = (
            Table(self.t.path, CHANGING)
            .merge(rows, "id")
            .when_matched_delete(condition="even")
            .when_matched_update({"x": "target.x + source.x"})
            .when_not_matched_insert({name: f"source.{name}" for name in ("id", "part", "ts", "x")})
            .execute()
        )
        given = {row["id"]: row for row in rows.to_pylist()}
        known = {row["id"] for row in model.all_rows()}

        def merged(row: Row) -> Row | None:
            mine = given.get(row["id"])
            return row if mine is None else None if mine["even"] else {**row, "x": row["x"] + mine["x"]}

        model.change(merged)
        fresh = pa.Table.from_pylist([r for key, r in given.items() if key not in known], schema=rows.schema)
        model.write(Operation.UPSERT, fresh.drop_columns(["even"]))
        self.changed(report)

    def changed(self, report: CommitReport) -> None:
        if report.completion is not None:
            self.t.model.remember(report.instant)
            self.failed = False

    @rule(ids=ids, ts=stamps)
    def plain_upsert(self, ids: list[int], ts: int) -> None:
        """Through two tasks, which have some keys in common."""
        rows = simple_rows([*ids, *ids[:2]], self.stamp(ts))
        write = PlainWrite.begin(self.t.path, self.given, rows.schema, overwrite=False)
        parts = rows.slice(0, len(ids)), rows.slice(len(ids))
        report = write.commit([write.write(iter(part.to_batches()), n, 0) for n, part in enumerate(parts)])
        self.t.model.write(Operation.UPSERT, rows)
        self.t.model.remember(report.instant)
        self.failed = False

    # Storage that fails

    def broken(self, at: int, fault: Fault) -> FaultyStorage:
        self.left_in_history = True
        return FaultyStorage(open_storage(self.t.path), FaultPlan(at, fault))

    @precondition(lambda self: self.writes_fail)
    @rule(ids=ids, ts=stamps, at=st.integers(0, 40), fault=st.sampled_from([Fault.ERROR_BEFORE, Fault.ERROR_AFTER]))
    def upsert_over_bad_storage(self, ids: list[int], ts: int, at: int, fault: Fault) -> None:
        try:
            self.t.write(Operation.UPSERT, simple_rows(ids, self.stamp(ts)), self.broken(at, fault))
        except HudiError:
            event("a write failed")
        # Also a write that succeeded may have left something to tidy up for the next one.
        self.failed = True

    @precondition(lambda self: self.failed or self.left_in_history)
    @rule()
    def recover(self) -> None:
        Table(self.t.path).recover()
        self.failed = self.left_in_history = False

    # Indexes

    def made(self) -> set[str]:
        return set(self.t.session().properties.metadata_partitions)

    def make(self, name: str) -> None:
        if name not in self.made():
            create_index(self.t.session(), **MADE[name])

    @rule(name=st.sampled_from(sorted(MADE)))
    def make_an_index_anew(self, name: str) -> None:
        if name in self.made():
            drop_index(self.t.storage, self.t.options, name)
        self.make(name)

    @rule(name=st.sampled_from(sorted(MADE)), at=st.integers(0, 20))
    def make_an_index_over_bad_storage(self, name: str, at: int) -> None:
        try:
            if name in self.made():
                drop_index(self.broken(at, Fault.ERROR_BEFORE), self.t.options, name)
            if name not in self.made():
                create_index(self.t.session(self.broken(at, Fault.ERROR_BEFORE)), **MADE[name])
        except HudiError:
            event("making an index failed")
        self.failed = True

    @rule()
    def rebuild_metadata(self) -> None:
        self.run_what_is_planned()  # which stands in the way of a rebuild
        rebuild(self.t.session())
        self.failed = self.left_in_history = False

    # Services

    def run_what_is_planned(self) -> None:
        if self.is_mor:
            Table(self.t.path).compact()

    @precondition(lambda self: self.table is not None and self.is_mor)
    @rule()
    def compact(self) -> None:
        Table(self.t.path).compact()

    @precondition(lambda self: self.table is not None and self.is_mor)
    @rule()
    def plan_a_compaction(self) -> None:
        Table(self.t.path).schedule_compaction()

    @rule()
    def clean(self) -> None:
        Table(self.t.path, SHORT).clean()
        self.failed = False

    @rule()
    def archive(self) -> None:
        Table(self.t.path, {**self.given, **SHORT}).archive()

    @precondition(lambda self: self.table is not None)
    @rule(service=st.sampled_from(["compact", "clean", "archive"]), at=st.integers(0, 25))
    def serve_over_bad_storage(self, service: str, at: int) -> None:
        if service != "compact" or self.is_mor:
            try:
                getattr(verbs, service)(self.broken(at, Fault.ERROR_BEFORE), OPTIONS.read({**self.given, **SHORT}))
            except HudiError:
                event("a service failed")
            self.failed = True

    def forget_what_was_cleaned(self) -> None:
        timeline = Table(self.t.path).timeline
        cleans = [i for i in timeline.instants if i.action is Action.CLEAN]
        if cleans:
            last = cleans[-1]
            found = timeline.metadata(last) if last.is_completed else None
            kept = (found or {}).get("earliestCommitToRetain") or max(self.t.model.past, default="")
            past = self.t.model.past
            self.t.model.past = {instant: rows for instant, rows in past.items() if instant >= kept}

    # Reading

    @precondition(lambda self: self.table is not None and self.table.model.past)
    @rule(data=st.data())
    def travel(self, data: st.DataObject) -> None:
        instant = data.draw(st.sampled_from(sorted(self.t.model.past)))
        self.t.model.check(self.t.read(instant), instant)

    @precondition(lambda self: self.table is not None and self.table.model.past)
    @rule(data=st.data())
    def changes_since(self, data: st.DataObject) -> None:
        """An incremental query gives the rows of today that were written since."""
        instant = data.draw(st.sampled_from(sorted(self.t.model.past)))
        table = Table(self.t.path)
        completions = {i.time: i.completion for i in table.timeline.writes}
        begin = completions.get(instant)
        if begin is None:
            return
        later = [time for time, completion in completions.items() if completion is not None and completion > begin]
        now = table.scan().to_table()
        wanted = now.filter(pc.is_in(now["_hoodie_commit_time"], pa.array(later, pa.string())))
        found = table.scan(query_type="incremental", begin=begin).to_table()
        keys = ("_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_time")
        rows = [sorted(zip(*(t[k].to_pylist() for k in keys), strict=True)) for t in (wanted, found)]
        assert rows[0] == rows[1], f"since {begin}: wanted {rows[0]}, found {rows[1]}"

    @invariant()
    def the_table_is_sound(self) -> None:
        if self.table is not None:
            Tally.steps += 1
            self.forget_what_was_cleaned()  # in a long history writes clean by themselves
            self.table.model.check(self.table.read())
            rest = () if self.failed else AT_REST
            left = [the_history_names_its_files] if self.left_in_history else []
            check_all(self.table.storage, [one for one in (*ALWAYS, *rest) if one not in left])
            proven = proven_indexes(Table(self.table.path).snapshot().metadata, KEYED)
            assert proven == frozenset(KEYED), "no key was doubled, so the indexes stay proven"


def run_histories(
    seed: int,
    histories: int,
    steps: int,
    *,
    shrink: bool = False,
    writes_fail: bool = True,
    kind: type[History] = History,
) -> None:
    """Run histories that follow from a seed; the first fault is raised, with the steps that lead to it.

    Args:
        seed: Of the generator.
        histories: How many.
        steps: Of each history.
        shrink: Look for a shorter way to a fault.
        writes_fail: See `History`.
        kind: The machine.
    """
    print(f"python -m {kind.__module__} {seed} {histories} {steps}")
    how = settings(
        max_examples=histories,
        stateful_step_count=steps,
        deadline=None,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        database=None,
        derandomize=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* injected fault", HudiWarning)
        run_state_machine_as_test(
            seeded(seed)(type("History", (kind,), {"writes_fail": writes_fail})),
            settings=how,
            _min_steps=steps,
        )


if __name__ == "__main__":
    first, count, length = (int(text) for text in sys.argv[1:4])
    run_histories(first, count, length, shrink="shrink" in sys.argv)
    print(f"seed {first}: {Tally.histories} histories, {Tally.steps} steps hold")
