"""Random histories of a table against its model, every invariant after every step."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hudimeta.errors import HudiError
from hudimeta.hudi_table import Table
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.services.indexing import create_index, drop_index, rebuild
from hudimeta.storage import open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.testing.model import Row
from hudimeta.types import Operation
from hudimeta.write.plain import PlainWrite
from hudimeta.write.report import CommitReport

FULL = bool(os.environ.get("CRASH_FULL"))
KEY_INDEXES = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.index.secondary.column": "ts",
}
LATER_INDEXES: dict[str, dict[str, Any]] = {
    "bloom_filters": {"kind": "bloom_filters"},
    "expr_index_up": {"kind": "column_stats", "name": "up", "columns": ["id"], "expression": "upper"},
    "expr_index_far": {"kind": "column_stats", "name": "far", "columns": ["x"], "expression": "identity"},
    "expr_index_low": {"kind": "bloom_filters", "name": "low", "columns": ["part"], "expression": "lower"},
}
"""Indexes that come and go while the table lives."""
ids = st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True)
stamps = st.integers(0, 9)


class History(RuleBasedStateMachine):
    """Writes of every kind, some of which fail at some request; recovery; time travel."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="history"))
        self.table: ModelledTable | None = None
        self.failed = False
        self.latest = 0

    @initialize(
        type=st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]),
        version=st.sampled_from(["8", "9"]),
        small=st.sampled_from(["0", "100000000"]),
        compact=st.sampled_from(["2", "10"]),
        indexed=st.booleans(),
        captures=st.booleans(),
    )
    def create(self, type: str, version: str, small: str, compact: str, indexed: bool, captures: bool) -> None:
        options = {
            **SIMPLE_OPTIONS,
            "hoodie.datasource.write.table.type": type,
            "hoodie.write.table.version": version,
            "hoodie.parquet.small.file.limit": small,
            "hoodie.metadata.compact.max.delta.commits": compact,
            "hoodie.table.cdc.enabled": str(captures).lower(),
        }
        if indexed:
            options |= KEY_INDEXES
        self.given, self.is_mor = options, type == "MERGE_ON_READ"
        self.indexes = ["record_index", "secondary_index_ts"] if indexed else []
        self.table = ModelledTable(str(self.home / "t"), options)

    def teardown(self) -> None:
        shutil.rmtree(self.home)

    def write(self, operation: Operation, rows: pa.Table) -> None:
        assert self.table is not None
        self.table.write(operation, rows)
        self.failed = False

    def stamp(self, ts: int) -> int:
        """In a log a delete bears the ordering value of the row that it deleted, and beats rows with smaller ones, as in Hudi.

        The model knows no such tombstones, so time only goes on in merge-on-read tables.
        """
        self.latest = max(self.latest, ts)
        return self.latest if self.is_mor else ts

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
        assert self.table is not None
        known = {row["id"] for row in self.table.model.all_rows()}
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
        assert self.table is not None
        keys = {f"k{n:04d}" for n in ids}
        listed = ", ".join(f"'{key}'" for key in sorted(keys))
        report = Table(self.table.path).update({"x": "x + 0.5"}, where=f"id in ({listed})")
        self.table.model.change(lambda row: {**row, "x": row["x"] + 0.5} if row["id"] in keys else row)
        self.changed(report)

    @rule(ids=ids, ts=stamps)
    def merge(self, ids: list[int], ts: int) -> None:
        """Rows in both are deleted when their number is even, the others changed; all others are inserted."""
        assert self.table is not None
        model, ts = self.table.model, self.stamp(ts)
        rows = simple_rows(ids, ts).append_column("even", pa.array([n % 2 == 0 for n in ids]))
        report = (
            Table(self.table.path)
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
        assert self.table is not None
        if report.completion is not None:
            self.table.model.remember(report.instant)
        self.failed = False

    @rule(ids=ids, ts=stamps)
    def plain_upsert(self, ids: list[int], ts: int) -> None:
        """Through two tasks, which have some keys in common."""
        assert self.table is not None
        rows = simple_rows([*ids, *ids[:2]], self.stamp(ts))
        write = PlainWrite.begin(self.table.path, self.given, rows.schema, overwrite=False)
        parts = rows.slice(0, len(ids)), rows.slice(len(ids))
        report = write.commit([write.write(iter(part.to_batches()), n, 0) for n, part in enumerate(parts)])
        self.table.model.write(Operation.UPSERT, rows)
        self.table.model.remember(report.instant)
        self.failed = False

    @rule(ids=ids, ts=stamps, at=st.integers(0, 30), fault=st.sampled_from([Fault.ERROR_BEFORE, Fault.ERROR_AFTER]))
    def upsert_over_bad_storage(self, ids: list[int], ts: int, at: int, fault: Fault) -> None:
        assert self.table is not None
        storage = FaultyStorage(open_storage(self.table.path), FaultPlan(at, fault))
        try:
            self.table.write(Operation.UPSERT, simple_rows(ids, self.stamp(ts)), storage)
        except HudiError:
            event("a write failed")
        # Also a write that succeeded may have left something to tidy up for the next one.
        self.failed = True

    @rule(name=st.sampled_from(sorted(LATER_INDEXES)))
    def make_or_drop_index(self, name: str) -> None:
        assert self.table is not None
        if name in self.table.session().properties.metadata_partitions:
            drop_index(self.table.storage, self.table.options, name)
        else:
            create_index(self.table.session(), **LATER_INDEXES[name])

    @rule(name=st.sampled_from(sorted(LATER_INDEXES)), at=st.integers(0, 20))
    def make_index_over_bad_storage(self, name: str, at: int) -> None:
        assert self.table is not None
        if name not in self.table.session().properties.metadata_partitions:
            storage = FaultyStorage(open_storage(self.table.path), FaultPlan(at, Fault.ERROR_BEFORE))
            try:
                create_index(self.table.session(storage), **LATER_INDEXES[name])
            except HudiError:
                event("making an index failed")
                self.failed = True

    @rule()
    def rebuild_metadata(self) -> None:
        assert self.table is not None
        rebuild(self.table.session())
        self.failed = False

    @precondition(lambda self: self.failed)
    @rule()
    def recover(self) -> None:
        assert self.table is not None
        Table(self.table.path).recover()
        self.failed = False

    @precondition(lambda self: self.table is not None and self.table.model.past)
    @rule(data=st.data())
    def travel(self, data: st.DataObject) -> None:
        assert self.table is not None
        instant = data.draw(st.sampled_from(sorted(self.table.model.past)))
        self.table.model.check(self.table.read(instant), instant)

    @invariant()
    def the_table_is_sound(self) -> None:
        if self.table is not None:
            self.table.model.check(self.table.read())
            if not self.failed:
                check_all(self.table.storage)
            proven = proven_indexes(self.table.session().properties.load_timeline(self.table.storage), self.indexes)
            assert proven == frozenset(self.indexes), "no key was doubled, so the indexes stay proven"


History.TestCase.settings = settings(
    max_examples=150 if FULL else 8,
    stateful_step_count=25 if FULL else 14,
    deadline=None,
    phases=[Phase.explicit, Phase.generate] + ([Phase.shrink] if FULL else []),
    derandomize=not FULL,
    suppress_health_check=list(HealthCheck),
)
TestHistory = History.TestCase
