"""How writers share a table: modes, who rolls dead writes back, who gives way; contradictions as Apache Hudi refuses them."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.commit.locks.storage_lock import LOCK_PATH, Lease
from hudimeta.commit.markers import Marker, MarkerKind, write_marker
from hudimeta.commit.session import WriteSession
from hudimeta.errors import CommitConflict, ConfigError
from hudimeta.storage import LocalStorage
from hudimeta.table.file_names import LogFileName
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows

MODE, POLICY = "hoodie.write.concurrency.mode", "hoodie.clean.failed.writes.policy"
STRATEGY = "hoodie.write.lock.conflict.resolution.strategy"
EARLY = "hoodie.write.concurrency.early.conflict.detection.enable"
PACKAGE = "org.apache.hudi.client.transaction."
OCC, NBCC = "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"
MOR = {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        ({}, "EAGER"),
        ({MODE: "single_writer"}, "EAGER"),
        ({MODE: "single_writer", POLICY: "LAZY"}, "LAZY"),
        ({MODE: "optimistic_concurrency_control"}, "LAZY"),
        ({MODE: OCC, POLICY: "EAGER"}, "LAZY"),
        ({MODE: OCC, POLICY: "NEVER"}, "LAZY"),
    ],
)
def test_a_mode_for_several_writers_sets_the_policy_of_failed_writes(
    tmp_path: Path, given: dict[str, str], policy: str
) -> None:
    """As `HoodieWriteConfig` of 1.0.2 and 1.2.0 does, whatever is given."""
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **given})
    assert table.session().concurrency.failed_writes == policy
    dead, _ = table.session().coordinator.begin(Operation.UPSERT)
    del dead
    gc.collect()  # its heartbeat ends with it, which from Python 3.13 on is in a cycle
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    assert bool(Table(table.path).timeline.pending) is (policy != "EAGER")


@pytest.mark.parametrize(
    ("made_with", "given", "told"),
    [
        (SIMPLE_OPTIONS, {MODE: NBCC}, r"with a COPY_ON_WRITE table(?s:.*)a MERGE_ON_READ table"),
        (MOR, {MODE: NBCC}, r"with index SIMPLE(?s:.*)a simple bucket index or a record index"),
        (MOR, {MODE: NBCC, "hoodie.index.type": "BLOOM"}, "with index BLOOM"),
        ({**MOR, **BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, {MODE: NBCC}, "with consistent hashing"),
        ({**MOR, **BUCKETS}, {MODE: NBCC, EARLY: "true"}, f"allowed is {OCC}"),
        (
            {
                **MOR,
                "hoodie.metadata.record.index.enable": "true",
                "hoodie.metadata.index.secondary.column": "ts",
            },
            {MODE: NBCC},
            r"with secondary_index_ts(?s:.*)drop the index",
        ),
        (SIMPLE_OPTIONS, {EARLY: "true"}, f"allowed is {OCC}"),
        (SIMPLE_OPTIONS, {MODE: "single_writer", EARLY: "true"}, f"allowed is {OCC}"),
        (SIMPLE_OPTIONS, {MODE: "many"}, "allowed is SINGLE_WRITER, OPTIMISTIC"),
        (
            SIMPLE_OPTIONS,
            {STRATEGY: PACKAGE + "BucketIndexConcurrentFileWritesConflictResolutionStrategy"},
            "the table has no bucket index",
        ),
        (SIMPLE_OPTIONS, {STRATEGY: "com.shop.Ours"}, "allowed is SimpleConcurrent(?s:.*)PreferWriter"),
    ],
)
def test_contradictions_are_refused_before_anything_is_written(
    tmp_path: Path, made_with: dict[str, str], given: dict[str, str], told: str
) -> None:
    table = ModelledTable(str(tmp_path / "t"), made_with)
    before = sorted(Path(table.path).rglob("*"))
    with pytest.raises(ConfigError, match=told):
        Table(table.path, {**made_with, **given}).insert(simple_rows(range(4), 1))
    assert sorted(Path(table.path).rglob("*")) == before


@pytest.mark.parametrize("given", [{}, {MODE: OCC}])
def test_instants_are_chosen_under_the_lock_where_others_choose_theirs_so(tmp_path: Path, given: dict[str, str]) -> None:
    """Apache Hudi does; two that chose one instant would be an error of the one that is later to write it down."""
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **given})
    held: list[bool] = []

    class Watched(LocalStorage):
        def put_if_absent(self, path: str, data: bytes) -> None:
            if path.endswith(".requested") and "metadata" not in path:
                held.append(self.stat(LOCK_PATH) is not None and not Lease.decode(self.read(LOCK_PATH)).expired)
            super().put_if_absent(path, data)

    session = WriteSession(Watched(table.path), table.options)
    write_rows(session, Operation.INSERT, simple_rows(range(4), 1))
    assert held == [bool(given)]


@pytest.mark.parametrize("index", [BUCKETS, {"hoodie.metadata.record.index.enable": "true"}], ids=["buckets", "record index"])
def test_tables_that_do_not_block_are_taken(tmp_path: Path, index: dict[str, str]) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**MOR, **index, MODE: NBCC})
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    table.write(Operation.UPSERT, simple_rows(range(2, 6), 2))
    table.check()
    check_all(table.storage)


@pytest.mark.parametrize("name", ["SimpleConcurrentFileWrites", "PreferWriter"])
def test_strategies_go_by_the_names_of_hudi(tmp_path: Path, name: str) -> None:
    given = {STRATEGY: f"{PACKAGE}{name}ConflictResolutionStrategy"}
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **given})
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    table.check()


def test_a_compaction_gives_way_to_a_writer(tmp_path: Path) -> None:
    options = {**MOR, STRATEGY: PACKAGE + "PreferWriterConflictResolutionStrategy"}
    table = ModelledTable(str(tmp_path / "t"), options)
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    table.write(Operation.UPSERT, simple_rows(range(4), 2))
    coordinator = table.session().coordinator
    write, _ = coordinator.begin(Operation.UPSERT)
    group = Table(table.path).file_slices().to_pylist()[0]
    path = f"{group['partition_path']}/{LogFileName(group['file_id'], write.instant, 1, '0-0-0')}"
    write_marker(table.storage, write.instant, Marker(path, MarkerKind.CREATE))
    bases = set(Path(table.path).glob("p*/*.parquet"))
    with pytest.raises(CommitConflict, match=rf"instant {write.instant} is changing: .*{group['file_id']}"):
        Table(table.path, options).compact()
    assert set(Path(table.path).glob("p*/*.parquet")) == bases
    assert len(Table(table.path, MOR).compact()) == 1, "with another strategy it is no conflict: the log lies on top"
    coordinator.abort(write)
    table.check()
    check_all(table.storage)
