"""Deduplication keeps the newest row of each key, in one commit that every index and every later write goes by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import HudiError, TableError
from hudimeta.services.repair import deduplicate
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from tests.rotation import in_turn

INDEXED = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.secondary.column": "ts",
}
UNINDEXED = {"hoodie.metadata.enable": "false"}
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
PARTS = 18
LOST_LOCK = pytest.mark.filterwarnings("ignore:the upkeep of the metadata table is left to a later write")


def doubled(path: Path, **options: str) -> ModelledTable:
    """Keys 4 to 7 twice; the row of later time and earlier commit is the newer one, but for key 4, which was updated since."""
    table = ModelledTable(str(path), {**SIMPLE_OPTIONS, **options})
    face = Table(table.path)
    face.upsert(simple_rows(range(8), 5))
    face.bulk_insert(simple_rows(range(4, 12), 1))
    face.upsert(simple_rows(range(2), 6))
    return table


def rows_of(table: ModelledTable) -> list[tuple[str, int]]:
    rows = Table(table.path).scan(columns=["id", "ts"]).to_table().to_pylist()
    return sorted((row["id"], row["ts"]) for row in rows)


NEWEST = [(f"k{n:04d}", 6 if n < 2 else 5 if n < 8 else 1) for n in range(12)]


@pytest.mark.rotation(2)
@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("options", [INDEXED, UNINDEXED])
@pytest.mark.parametrize("type", TYPES)
def test_the_newest_row_of_each_key_stays(tmp_path: Path, type: str, options: dict[str, str], version: str) -> None:
    given = {"hoodie.datasource.write.table.type": type, "hoodie.write.table.version": version, **options}
    table = doubled(tmp_path / "t", **given)
    face = Table(table.path)
    before, instants = rows_of(table), len(face.timeline)
    times = {(r["id"], r["ts"]): r["_hoodie_commit_time"] for r in face.scan().to_table().to_pylist()}
    assert len(before) == 16
    shown = face.repair.deduplicate(dry_run=True)
    assert str(shown).startswith("drop 4 rows of 4 keys: 4 file groups anew")
    assert shown.plan.rows.num_rows == 8
    assert len(Table(table.path).timeline) == instants
    report = face.repair.deduplicate()
    assert report.commit is not None
    assert str(report).startswith(f"DEDUPLICATED at {report.commit.instant}: drop 4 rows of 4 keys")
    assert rows_of(table) == NEWEST
    assert len(face.scan(as_of=face.timeline.writes[-2].time).to_table()) == 16, "time travel still shows them"
    now = face.scan().to_table().to_pylist()
    assert {(r["id"], r["ts"]): r["_hoodie_commit_time"] for r in now}.items() <= times.items()
    assert face.scan(query_type="incremental", begin=face.timeline.writes[-2].completion).count() == 0
    for where, count in (("id = 'k0005'", 1), ("ts = 1", 4), ("ts = 5", 6)):
        assert face.scan(where).count() == count
    if face.properties.has_metadata_table:
        face.metadata.validate(deep=True).raise_if_differs()
    face.upsert(simple_rows(range(4, 8), 9))
    assert rows_of(table) == [(key, 9 if "k0004" <= key <= "k0007" else ts) for key, ts in NEWEST]
    check_all(table.storage)
    assert str(face.repair.deduplicate()) == "no key is there twice"


@pytest.mark.parametrize("populate", ["true", "false"])
def test_keys_doubled_in_one_file(tmp_path: Path, populate: str) -> None:
    given = {"hoodie.populate.meta.fields": populate, "hoodie.write.table.version": "9"}
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **given})
    face = Table(table.path)
    face.bulk_insert(simple_rows([0, 1, 0, 0, 1, 2], 3))
    report = face.repair.deduplicate("p0")
    assert report.plan.dropped == 2
    assert rows_of(table) == [("k0000", 3), ("k0001", 3), ("k0001", 3), ("k0002", 3)]
    face.repair.deduplicate()
    assert rows_of(table) == [("k0000", 3), ("k0001", 3), ("k0002", 3)]
    check_all(table.storage)


def test_in_buckets_of_a_hash_ring(tmp_path: Path) -> None:
    """The ring names the file groups that rows go to: those of the deduplication as well."""
    engine = {"hoodie.index.bucket.engine": "CONSISTENT_HASHING", "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **buckets, **engine})
    face = Table(table.path)
    face.insert_overwrite(pa.concat_tables([simple_rows(range(8), 5), simple_rows(range(4), 6)]))
    assert face.scan().count() == 12
    assert face.repair.deduplicate().plan.dropped == 4
    assert rows_of(table) == [(f"k{n:04d}", 6 if n < 4 else 5) for n in range(8)]
    face.upsert(simple_rows(range(10), 7))
    assert rows_of(table) == [(f"k{n:04d}", 7) for n in range(10)]
    check_all(table.storage)


def test_in_a_table_of_buckets(tmp_path: Path) -> None:
    given = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = doubled(tmp_path / "t", **given)
    face = Table(table.path)
    face.repair.deduplicate()
    assert rows_of(table) == NEWEST
    face.upsert(simple_rows(range(12), 9))
    assert rows_of(table) == [(key, 9) for key, _ in NEWEST]
    check_all(table.storage)


def test_what_a_service_is_planned_for_is_refused(tmp_path: Path) -> None:
    table = doubled(tmp_path / "t", **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    face = Table(table.path, {"hoodie.clustering.plan.strategy.small.file.limit": "1000000000"})
    instant = face.services.clustering.schedule()
    assert instant is not None
    with pytest.raises(TableError, match="a service is planned"):
        face.repair.deduplicate()
    assert len(rows_of(table)) == 16
    face.services.clustering.execute(instant)
    face.repair.deduplicate()
    assert rows_of(table) == NEWEST


@LOST_LOCK
@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.ERROR_AFTER])
@pytest.mark.parametrize("number", in_turn(range(72), PARTS))
def test_one_that_fails_is_done_by_the_next(tmp_path: Path, number: int, fault: Fault) -> None:
    table = doubled(tmp_path / "t", **{"hoodie.datasource.write.table.type": TYPES[number // PARTS % 2]}, **INDEXED)
    before = rows_of(table)
    faulty = FaultyStorage(table.storage, FaultPlan(number, fault))
    try:
        deduplicate(WriteSession(faulty, OPTIONS.read({}), engine=table.engine))
    except HudiError:
        assert rows_of(table) in (before, NEWEST)
        deduplicate(table.session())
    assert rows_of(table) == NEWEST
    Table(table.path).recover()
    Table(table.path).metadata.validate().raise_if_differs()
    check_all(table.storage)


def test_others_who_write_meanwhile_lose_nothing(tmp_path: Path) -> None:
    """A writer that changes one of the file groups while it is written anew makes the deduplication begin again."""
    table = doubled(tmp_path / "t")

    class Meanwhile(FaultPlan):
        def around(self, name: str, act: Callable[[], Any]) -> Any:
            if name.endswith(".inflight") and not self.calls:
                self.calls.append(name)
                table.write(Operation.UPSERT, simple_rows([5], 7))
            return act()

    faulty = FaultyStorage(table.storage, Meanwhile(None, Fault.ERROR_BEFORE))
    report = deduplicate(WriteSession(faulty, OPTIONS.read({}), engine=table.engine))
    assert report.commit is not None
    assert dict(rows_of(table))["k0005"] == 7
    assert len(rows_of(table)) == 12
