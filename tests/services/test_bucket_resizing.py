"""Buckets of a consistent hash ring are split and merged by clustering, and every key is found in its new bucket."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.errors import ConfigError, CorruptFileError, HudiError, UnsupportedFeature
from hudimeta.indexes.bucket.consistent_hashing import FOLDER, HashRing, RingNode, first_ring
from hudimeta.indexes.bucket.ring_changes import RingChange, changed_ring, decode_change, encode_change, merge_nodes, split_node
from hudimeta.services import clustering
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Action, Operation
from hudimeta.write.table_writer import delete_partitions

RINGS = {
    **SIMPLE_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.max.num.buckets": "3",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.record.index.enable": "true",
}
SPLITS = {**RINGS, "hoodie.parquet.max.file.size": "500"}
"""Every bucket is larger than two files of so many bytes."""
MERGES = {**RINGS, "hoodie.parquet.max.file.size": str(1 << 30)}


def written(path: Path) -> ModelledTable:
    table = ModelledTable(str(path), RINGS)
    table.write(Operation.UPSERT, simple_rows(range(40), 1))
    table.write(Operation.UPSERT, simple_rows(range(20, 50), 2))
    return table


def rings(table: ModelledTable, partition: str = "p0") -> list[str]:
    return sorted(entry.name for entry in (Path(table.path) / FOLDER / partition).iterdir())


def nodes(table: ModelledTable, instant: str, partition: str = "p0") -> list[dict[str, object]]:
    said = json.loads((Path(table.path) / FOLDER / partition / f"{instant}.hashing_meta").read_text())
    assert said["numBuckets"] == len(said["nodes"])
    assert {node["tag"] for node in said["nodes"]} == {"NORMAL"}
    return list(said["nodes"])


def go_on(table: ModelledTable, ts: int) -> None:
    """Every key is in one bucket only, the one in which writers look for it."""
    table.write(Operation.UPSERT, simple_rows(range(10, 60), ts))
    table.write(Operation.DELETE, simple_rows([ts, ts + 20], ts + 1))
    table.check()
    check_all(table.storage)
    Table(table.path).metadata.validate(deep=True).raise_if_differs()


@pytest.mark.rotation(2)
def test_buckets_are_split_and_merged_again(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    before = Table(table.path).scan().to_table().sort_by("id")
    printed = str(Table(table.path, SPLITS).services.clustering.plan())
    assert "p0: 1 slices" in printed
    assert "to 2 files" in printed
    (report,) = Table(table.path, SPLITS).cluster()
    assert (report.commit.file_groups_replaced, report.commit.file_groups_added) == (2, 4)  # one in each partition: 3 at most
    after = Table(table.path).scan().to_table().sort_by("id")
    assert after.drop(["_hoodie_file_name"]).equals(before.drop(["_hoodie_file_name"]))
    split = report.commit.instant
    assert rings(table) == ["00000000000000.hashing_meta", f"{split}.commit", f"{split}.hashing_meta"]
    assert len(nodes(table, split)) == 3
    go_on(table, 3)
    (report,) = Table(table.path, MERGES).cluster()
    assert (report.commit.file_groups_replaced, report.commit.file_groups_added) == (6, 2)
    assert len(nodes(table, report.commit.instant)) == 1
    go_on(table, 5)
    assert not Table(table.path, MERGES).cluster()
    Table(table.path, RINGS).restore(split)
    assert f"{report.commit.instant}.hashing_meta" not in rings(table)
    Table(table.path, RINGS).upsert(simple_rows(range(60), 9))
    assert Table(table.path).scan().count() == 60
    check_all(table.storage)


def test_with_columns_to_sort_by_every_bucket_is_sorted(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    whole = {**RINGS, "hoodie.bucket.index.merge.threshold": "0.0000001"}
    assert not Table(table.path, whole).cluster()
    (report,) = Table(table.path, whole).cluster(["ts", "id"])
    assert report.commit.file_groups_replaced == report.commit.file_groups_added == 4
    go_on(table, 3)


def test_a_plan_keeps_writers_out_and_waits_for_them(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    steps = Table(table.path, SPLITS).services.clustering
    planned = steps.schedule()
    assert planned is not None
    with pytest.raises(HudiError, match="pending clustering"):
        table.write(Operation.UPSERT, simple_rows(range(10), 3))
    with pytest.raises(ConfigError, match="CONSISTENT_HASHING"):
        Table(table.path, {"hoodie.index.bucket.engine": "SIMPLE"}).services.clustering.execute(planned)
    steps.execute(planned)
    go_on(table, 4)
    slow = table.session()
    slow.coordinator.begin(Operation.UPSERT)
    assert Table(table.path, MERGES).services.clustering.schedule() is None


def test_a_run_that_fails_anywhere_is_run_again(tmp_path: Path) -> None:
    source = written(tmp_path / "source")
    session = source.session(options=source.options.having({"hoodie.parquet.max.file.size": "500"}))
    planned = clustering.schedule(session)
    assert planned is not None
    whole = source.copy(str(tmp_path / "whole"))
    counted = FaultyStorage(whole.storage, FaultPlan(None, Fault.ERROR_BEFORE))
    clustering.execute(whole.session(counted), planned)
    calls = [number for number, call in enumerate(counted.plan.calls) if "hashing" in str(call) or "clustering" in str(call)]
    assert calls
    for call in calls:
        table = source.copy(str(tmp_path / f"t{call}"))
        try:
            clustering.execute(table.session(FaultyStorage(table.storage, FaultPlan(call, Fault.ERROR_BEFORE))), planned)
        except HudiError:
            table.check()
        if any(i.action is Action.CLUSTERING for i in Table(table.path).timeline.pending):
            clustering.execute(table.session(), planned)
        go_on(table, 3)


def test_a_delete_of_partitions_that_fails_leaves_no_ring(tmp_path: Path) -> None:
    """It writes no file and has no markers, but the ring of one partition is there when that of the other fails."""
    source = written(tmp_path / "source")
    whole = source.copy(str(tmp_path / "whole"))
    counted = FaultyStorage(whole.storage, FaultPlan(None, Fault.ERROR_BEFORE))
    delete_partitions(whole.session(counted), ["p0", "p1"])
    calls = [number for number, call in enumerate(counted.plan.calls) if FOLDER in str(call)]
    assert len(calls) >= 2
    for call in calls:
        table = source.copy(str(tmp_path / f"t{call}"))
        before = [rings(table, partition) for partition in ("p0", "p1")]
        with pytest.raises(HudiError):
            delete_partitions(table.session(FaultyStorage(table.storage, FaultPlan(call, Fault.ERROR_BEFORE))), ["p0", "p1"])
        assert [rings(table, partition) for partition in ("p0", "p1")] == before
        go_on(table, 3)


@pytest.mark.parametrize("change", ["cluster", "overwrite"])
def test_rings_that_a_restore_of_apache_hudi_left_count_no_more(tmp_path: Path, change: str) -> None:
    """It leaves them, marked as committed; where savepoints keep all older writes, their time looks archived."""
    table = ModelledTable(str(tmp_path / "t"), RINGS)
    table.write(Operation.UPSERT, simple_rows(range(40), 1))
    services = Table(table.path).services
    point = services.savepoint().instant
    if change == "cluster":
        Table(table.path, SPLITS).cluster()
    else:
        Table(table.path, RINGS).insert_overwrite(simple_rows(range(40), 2))
    Table(table.path, RINGS).upsert(simple_rows(range(40), 3))
    folder = Path(table.path) / FOLDER
    left = {one: one.read_bytes() for one in folder.rglob("*.*") if not one.name.startswith("0000")}
    assert any(one.suffix == ".commit" for one in left)
    services.restore(point)
    for one, data in left.items():
        one.write_bytes(data)
    table.write(Operation.UPSERT, simple_rows(range(1, 40, 2), 3))
    go_on(table, 4)
    assert not any(one.exists() for one in left)


def test_simple_buckets_stay_as_many_as_they_are(tmp_path: Path) -> None:
    simple = {**RINGS, "hoodie.index.bucket.engine": "SIMPLE"}
    table = ModelledTable(str(tmp_path / "t"), simple)
    table.write(Operation.UPSERT, simple_rows(range(4), 1))
    with pytest.raises(UnsupportedFeature, match="buckets"):
        Table(table.path, simple).cluster()


@pytest.mark.parametrize("has_rows", [False, True])
def test_a_first_ring_that_apache_hudi_did_not_come_to_write_is_written(tmp_path: Path, has_rows: bool) -> None:
    """Killed in between, on a local disk, it leaves an empty file; what would be in it follows from the number of buckets."""
    table = written(tmp_path / "t")
    before, path = nodes(table, "0" * 14), tmp_path / "t" / FOLDER / ("p0" if has_rows else "p7")
    path.mkdir(exist_ok=True)
    ring = path / f"{'0' * 14}.hashing_meta"
    ring.write_bytes(b"")
    if has_rows:
        (log,) = list((tmp_path / "t/p0").glob(f".{before[0]['fileIdPrefix']}*.log.*"))[:1]
        other = log.with_name(log.name.replace(str(before[0]["fileIdPrefix"]), "11111111-2222-3333-4444-555555555555"))
        other.touch()
        with pytest.raises(CorruptFileError, match="the nodes of a hash ring"):
            Table(table.path).upsert(simple_rows([2], 3))
        assert ring.read_bytes() == b""
        other.unlink()
        go_on(table, 4)
        assert nodes(table, "0" * 14) == before
    else:
        rows = pa.Table.from_pylist([{"id": "k0900", "part": "p7", "ts": 4, "x": 1.0}], simple_rows([], 0).schema)
        table.write(Operation.UPSERT, rows)
        table.check()
        assert len(nodes(table, "0" * 14, "p7")) == 2
    Table(table.path).metadata.validate(deep=True).raise_if_differs()


def test_nodes_of_a_ring() -> None:
    ring = first_ring("p", 4)
    first, second = split_node(ring, 0, ("a", "b"))
    assert (first.value, second.value) == ((1 << 28) - 1, ring.nodes[0].value)  # from the end of the ring on
    narrow = HashRing("p", "0", 0, (RingNode(5, "x"), RingNode(6, "y")))
    assert split_node(narrow, 1, ("a", "b")) == ()
    around = merge_nodes(ring, [3, 0], "c")  # over the end of the ring
    change = RingChange("p", 0, around)
    assert decode_change(encode_change(change)) == change
    after = changed_ring(ring, [change], "1")
    assert [node.value for node in after.nodes] == [node.value for node in ring.nodes[:3]]
    assert after.nodes[0].prefix == "c"
    assert after.sequence == 1
    hashes = pa.array([0, ring.nodes[0].value, ring.nodes[3].value]).to_numpy()
    assert after.numbers(hashes).tolist() == [0, 0, 0]
