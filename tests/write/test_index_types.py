"""Tables written with each of Hudi's indexes: which rows are updates, where rows go, and what the report says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.api.plain_write import PlainWrite
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError, IndexNotReady, UnsupportedFeature
from hudimeta.indexes.bucket.look_up import bucket_of_file_id
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.streaming import write_stream
from tests.edited_properties import edit_properties

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
GLOBAL = pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])


def rows(*given: tuple[str, str, int, int]) -> pa.Table:
    """(id, part, v, ts) as a table."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, one, strict=True)) for one in given], SCHEMA)


def create(path: Path, kind: str, *, ordering: str | tuple[()] = "ts", **options: Any) -> hudimeta.Table:
    given = {key.replace("_", "."): value for key, value in options.items()}
    return hudimeta.Table.create(path, SCHEMA, key="id", partition_by="part", ordering=ordering, type=kind, options=given)


def contents(path: Path) -> list[tuple[str, str, str, int]]:
    """(id, partition path, part, v), sorted."""
    found = hudimeta.Table(path).scan().to_table()
    return sorted(zip(*(found[c].to_pylist() for c in ("id", "_hoodie_partition_path", "part", "v")), strict=True))


@BOTH
@GLOBAL
def test_rows_follow_their_partition(tmp_path: Path, kind: str, index: str) -> None:
    table = create(tmp_path, kind, hoodie_index_type=index)
    table.insert(rows(("a", "x", 1, 1), ("b", "x", 1, 1), ("c", "y", 1, 5)))
    report = table.upsert(rows(("a", "y", 2, 2), ("b", "x", 2, 2), ("c", "x", 2, 2), ("d", "z", 2, 2)))
    assert contents(tmp_path) == [("a", "y", "y", 2), ("b", "x", "x", 2), ("c", "y", "y", 1), ("d", "z", "z", 2)]
    assert (report.looked_up, report.found, report.moved) == (4, 3, 1)
    assert "1 rows move to another partition; 1 rows left out, because the row in another partition is newer" in report.index
    check_all(open_storage(tmp_path))
    table.upsert(rows(("a", "x", 3, 3)))
    table.upsert(rows(("a", "y", 4, 4)))
    assert contents(tmp_path)[0] == ("a", "y", "y", 4)
    check_all(open_storage(tmp_path))


@BOTH
@GLOBAL
def test_rows_stay_where_they_are_without_moves(tmp_path: Path, kind: str, index: str) -> None:
    off = {f"hoodie_{index.partition('_')[2].lower()}_index_update_partition_path": "false"}
    table = create(tmp_path, kind, hoodie_index_type=index, **off)
    table.insert(rows(("a", "x", 1, 1), ("b", "x", 1, 1)))
    report = table.upsert(rows(("a", "y", 2, 2), ("b", "x", 2, 0), ("c", "y", 2, 2)))
    # The row keeps its own value of the column, as Hudi's do; its folder is that of the row that was there.
    found = hudimeta.Table(tmp_path).scan().to_table()
    assert sorted(zip(*(found[c].to_pylist() for c in ("id", "_hoodie_partition_path", "v")), strict=True)) == [
        ("a", "x", 2),
        ("b", "x", 1),
        ("c", "y", 2),
    ]
    assert report.moved == 0
    check_all(open_storage(tmp_path))


@BOTH
@GLOBAL
def test_deletes_find_their_key_in_any_partition(tmp_path: Path, kind: str, index: str) -> None:
    table = create(tmp_path, kind, hoodie_index_type=index)
    table.insert(rows(("a", "x", 1, 1), ("b", "y", 1, 1), ("c", "z", 1, 1)))
    report = table.delete(pa.table({"id": ["a", "b", "no such"]}))
    assert [key for key, *_ in contents(tmp_path)] == ["c"]
    assert (report.deleted, report.unmatched_deletes) == (2, 1)
    table.delete(rows(("c", "elsewhere", 0, 9)))
    assert contents(tmp_path) == []
    check_all(open_storage(tmp_path))


@BOTH
def test_one_row_a_key_stays_of_a_batch_whose_rows_are_in_different_partitions(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path, kind, hoodie_index_type="GLOBAL_SIMPLE")
    table.upsert(rows(("a", "x", 1, 1), ("a", "y", 3, 3), ("a", "z", 2, 2)))
    assert contents(tmp_path) == [("a", "y", "y", 3)]


@BOTH
def test_a_key_in_several_partitions_becomes_one_row(tmp_path: Path, kind: str) -> None:
    create(tmp_path, kind).insert(rows(("a", "x", 1, 1), ("a", "y", 1, 1), ("a", "z", 1, 1)))
    table = hudimeta.Table(tmp_path, options={"hoodie.index.type": "GLOBAL_SIMPLE"})
    table.upsert(rows(("a", "y", 2, 2)))
    assert contents(tmp_path) == [("a", "y", "y", 2)]
    check_all(open_storage(tmp_path))


@BOTH
def test_moves_by_commit_time(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path, kind, ordering=(), hoodie_index_type="GLOBAL_SIMPLE")
    table.insert(rows(("a", "x", 1, 9)))
    table.upsert(rows(("a", "y", 2, 1)))
    table.delete(pa.table({"id": ["a"]}))
    table.upsert(rows(("a", "x", 3, 0)))
    assert contents(tmp_path) == [("a", "x", "x", 3)]
    check_all(open_storage(tmp_path))


BUCKETS = {"hoodie_index_type": "BUCKET", "hoodie_bucket_index_num_buckets": "3"}


@pytest.mark.rotation(3)
@BOTH
def test_rows_live_in_their_bucket(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path, kind, **BUCKETS)
    first = [(f"k{n}", "xy"[n % 2], 1, 1) for n in range(30)]
    table.bulk_insert(rows(*first[:20]))
    groups = {(s["partition_path"], s["file_id"]) for s in table.file_slices().to_pylist()}
    assert sorted((p, bucket_of_file_id(f)) for p, f in groups) == [(p, n) for p in "xy" for n in range(3)]
    table.insert(rows(*first[10:]))  # known keys are updates: their bucket is known
    report = table.upsert(rows(("k0", "x", 2, 2), ("k1", "y", 2, 0), ("new", "x", 2, 2)))
    assert {(s["partition_path"], s["file_id"]) for s in table.file_slices().to_pylist()} == groups
    assert "bucket index, 3 buckets a partition" in report.index
    table.delete(rows(("k2", "x", 0, 3), ("no such", "x", 0, 3), ("k3", "elsewhere", 0, 3)))
    found = {key: v for key, _, _, v in contents(tmp_path)}
    expected = {f"k{n}": 1 for n in range(30) if n != 2} | {"k0": 2, "new": 2}
    assert found == expected
    check_all(open_storage(tmp_path))
    table.insert_overwrite(rows(*first[:2]))
    assert {key for key, *_ in contents(tmp_path)} == {"k0", "k1"}
    assert all(bucket_of_file_id(s["file_id"]) in range(3) for s in table.file_slices().to_pylist())
    table.upsert(rows(*first))
    assert len(contents(tmp_path)) == 30
    check_all(open_storage(tmp_path))


def test_updates_and_inserts_of_buckets_go_to_logs(tmp_path: Path) -> None:
    table = create(tmp_path, "MERGE_ON_READ", **BUCKETS)
    table.insert(rows(*((f"k{n}", "x", 1, 1) for n in range(9))))
    bases = set(table.file_slices()["base_file"].to_pylist())
    table.upsert(rows(*((f"k{n}", "x", 2, 2) for n in range(18))))
    slices = table.file_slices()
    assert set(slices["base_file"].to_pylist()) == bases, "no base file is written again"
    assert all(slices["log_files"].to_pylist())
    table.compact()
    assert [v for *_, v in contents(tmp_path)] == [2] * 18


def test_what_apache_hudi_logs_under_the_name_of_our_commit_comes_after_it(tmp_path: Path) -> None:
    """Its SQL deletes a row of a ring in a log that bears the instant of the row's commit, with a token such as 0-244-941."""
    table = create(tmp_path, "MERGE_ON_READ", **BUCKETS, hoodie_index_bucket_engine="CONSISTENT_HASHING")
    for ts in (1, 2):
        table.upsert(rows(*((f"k{n}", "xyz"[n % 3], ts, ts) for n in range(40))))
    names = [name for one in table.file_slices().to_pylist() for name in one["log_files"]]
    assert len(names) == 18
    for name in names:
        ours, _, _ = name.rpartition("_")
        assert sorted([f"{ours}_0-1-1", name]) == [name, f"{ours}_0-1-1"]


def test_consistent_buckets_begin_with_logs_in_the_stretches_that_hudi_gives_them(tmp_path: Path) -> None:
    options = {**BUCKETS, "hoodie_index_bucket_engine": "CONSISTENT_HASHING"}
    table = create(tmp_path, "MERGE_ON_READ", **options)
    table.insert(rows(*((f"k{n}", "north", 1, 1) for n in range(40))))
    slices = table.file_slices().to_pylist()
    assert len(slices) == 3
    assert all(s["base_file"] is None and len(s["log_files"]) == 1 for s in slices)
    assert (tmp_path / "north" / ".hoodie_partition_metadata").is_file()
    ring = tmp_path / ".hoodie/.bucket_index/consistent_hashing_metadata/north/00000000000000.hashing_meta"
    assert ring.is_file()
    table.upsert(rows(*((f"k{n}", "north", 2, 2) for n in range(20, 50))))
    table.compact()
    table.delete(rows(("k0", "north", 0, 0)))
    assert [v for *_, v in contents(tmp_path)] == [1 if int(k[1:]) < 20 else 2 for k, *_ in contents(tmp_path)]
    assert len(contents(tmp_path)) == 49
    assert {s["file_id"] for s in table.file_slices().to_pylist()} == {s["file_id"] for s in slices}
    check_all(open_storage(tmp_path))


def test_the_number_of_buckets_stays(tmp_path: Path) -> None:
    table = create(tmp_path, "COPY_ON_WRITE", **BUCKETS)
    table.insert(rows(*((f"k{n}", "x", 1, 1) for n in range(9))))
    with pytest.raises(ConfigError, match="created with"):
        hudimeta.Table(tmp_path, options={"hoodie.bucket.index.num.buckets": "4"}).upsert(rows(("k0", "x", 2, 2)))
    # A table of Apache Hudi says nothing of buckets but by the names of its file groups.
    stated = ("hoodie.bucket.", "hoodie.index.")
    edit_properties(tmp_path, lambda text: "".join(x for x in text.splitlines(True) if not x.startswith(stated)))
    with pytest.raises(ConfigError, match="look like buckets"):
        hudimeta.Table(tmp_path).upsert(rows(("k0", "x", 2, 2)))
    wrong = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    with pytest.raises(ConfigError, match="is of bucket 2"):
        hudimeta.Table(tmp_path, options=wrong).upsert(rows(("k0", "x", 2, 2)))
    right = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
    hudimeta.Table(tmp_path, options=right).upsert(rows(("k0", "x", 2, 2)))
    assert ("k0", "x", "x", 2) in contents(tmp_path)


def test_an_index_that_is_not_there_is_an_error_unless_falling_back_is_allowed(tmp_path: Path) -> None:
    create(tmp_path, "COPY_ON_WRITE").insert(rows(("a", "x", 1, 1)))
    asked = {"hoodie.index.type": "RECORD_INDEX"}
    with pytest.raises(IndexNotReady, match=r"hudimeta\.index\.allow\.fallback"):
        hudimeta.Table(tmp_path, options=asked).upsert(rows(("a", "x", 2, 2)))
    allowed = {**asked, "hudimeta.index.allow.fallback": "true"}
    report = hudimeta.Table(tmp_path, options=allowed).upsert(rows(("a", "y", 2, 2)))
    assert "global simple index" in report.index
    assert "instead of the record index, which the table does not have" in report.index
    assert [(key, path, v) for key, path, _, v in contents(tmp_path)] == [("a", "x", 2)]


def test_fields_of_buckets_are_key_fields(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="columns of the record key"):
        create(tmp_path, "COPY_ON_WRITE", **BUCKETS, hoodie_bucket_index_hash_field="part")
    with pytest.raises(UnsupportedFeature, match="copy-on-write"):
        create(tmp_path, "COPY_ON_WRITE", **BUCKETS, hoodie_index_bucket_engine="CONSISTENT_HASHING")
    assert not (tmp_path / ".hoodie").exists()


@pytest.mark.rotation(3)
@BOTH
@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "upsert"])
def test_tasks_of_spark_begin_one_file_group_for_a_bucket(tmp_path: Path, kind: str, operation: str) -> None:
    create(tmp_path, kind, **BUCKETS)
    options = {"hoodie.datasource.write.operation": operation, "hoodie.table.name": tmp_path.name}
    for ts in (1, 2):
        write = PlainWrite.begin(str(tmp_path), options, SCHEMA, overwrite=False)
        shares = (rows(*((f"k{n}", "x", ts, ts) for n in range(start, 30, 3))) for start in range(3))
        write.commit([write.write(share.to_batches(), task, 0) for task, share in enumerate(shares)])
        assert sorted(bucket_of_file_id(s["file_id"]) for s in hudimeta.Table(tmp_path).file_slices().to_pylist()) == [0, 1, 2]
        assert [v for *_, v in contents(tmp_path)] == [ts] * 30
    check_all(open_storage(tmp_path))


@BOTH
def test_streams_know_keys_of_the_whole_table(tmp_path: Path, kind: str) -> None:
    create(tmp_path, kind, hoodie_index_type="GLOBAL_SIMPLE").insert(rows(*((f"k{n}", "x", 1, 1) for n in range(20))))
    given = OPTIONS.read({"hoodie.index.type": "GLOBAL_SIMPLE", "hudimeta.write.portion.bytes": "500"})
    batch = rows(*((f"k{n}", "y", 2, 2) for n in range(10, 30)), *((f"k{n}", "z", 3, 3) for n in range(25, 35)))
    storage = open_storage(tmp_path)

    def stream(table: pa.Table) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=4)))

    report = write_stream(WriteSession(storage, given), Operation.UPSERT, stream(batch))
    expected = {f"k{n}": "x" if n < 10 else "y" if n < 25 else "z" for n in range(35)}
    assert {key: path for key, path, *_ in contents(tmp_path)} == expected
    assert len(contents(tmp_path)) == 35
    assert (report.looked_up, report.found, report.moved) == (25, 10, 10)
    gone = pa.table({"id": [f"k{n}" for n in range(0, 40, 2)]})
    report = write_stream(WriteSession(storage, given), Operation.DELETE, stream(gone))
    assert (report.deleted, report.unmatched_deletes) == (18, 2)
    check_all(storage)


@BOTH
@pytest.mark.parametrize("moves", ["true", "false"])
def test_deleted_keys_hold_no_place(tmp_path: Path, kind: str, moves: str) -> None:
    options = {"hoodie_index_type": "GLOBAL_SIMPLE", "hoodie_simple_index_update_partition_path": moves}
    table = create(tmp_path, kind, **options)
    table.insert(rows(("a", "x", 1, 1), ("b", "x", 1, 1)))
    table.delete(pa.table({"id": ["a"]}))
    report = table.upsert(rows(("a", "y", 2, 2)))
    assert (report.found, report.moved) == (0, 0)
    table.upsert(rows(("a", "y", 3, 3)))
    assert contents(tmp_path) == [("a", "y", "y", 3), ("b", "x", "x", 1)]
    check_all(open_storage(tmp_path))


@pytest.mark.rotation(3)
@pytest.mark.parametrize(
    ("kind", "consistent"),
    [("COPY_ON_WRITE", False), ("MERGE_ON_READ", False), ("MERGE_ON_READ", True)],
    ids=["copy on write", "merge on read", "consistent"],
)
def test_streams_begin_each_bucket_once(tmp_path: Path, kind: str, consistent: bool) -> None:
    more = {"hoodie_index_bucket_engine": "CONSISTENT_HASHING"} if consistent else {}
    create(tmp_path, kind, **BUCKETS, **more).insert(rows(*((f"k{n}", "x", 1, 1) for n in range(5))))
    given = OPTIONS.read({"hudimeta.write.portion.bytes": "500"})
    storage = open_storage(tmp_path)

    def stream(operation: Operation, numbers: range, v: int) -> None:
        table = rows(*((f"k{n}", "xyz"[n // 7 % 3], v, v) for n in numbers))
        reader = pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=4)))
        write_stream(WriteSession(storage, given), operation, reader)

    first = {(f"k{n}", "x") for n in range(5)}
    stream(Operation.INSERT, range(60), 2)
    expected = dict.fromkeys(first, 1) | {(f"k{n}", "xyz"[n // 7 % 3]): 2 for n in range(60)}
    assert {(key, path): v for key, path, _, v in contents(tmp_path)} == expected
    slices = hudimeta.Table(tmp_path).file_slices().to_pylist()
    assert len(slices) == len({(s["partition_path"], s["file_id"][:8]) for s in slices}) == 9
    stream(Operation.UPSERT, range(30, 90), 3)
    stream(Operation.DELETE, range(0, 90, 2), 4)
    expected |= {(f"k{n}", "xyz"[n // 7 % 3]): 3 for n in range(30, 90)}
    for n in range(0, 90, 2):
        expected.pop((f"k{n}", "xyz"[n // 7 % 3]))
    assert {(key, path): v for key, path, _, v in contents(tmp_path)} == expected
    stream(Operation.INSERT_OVERWRITE, range(60), 5)
    slices = hudimeta.Table(tmp_path).file_slices().to_pylist()
    assert len(contents(tmp_path)) == 60
    assert len(slices) == len({(s["partition_path"], s["file_id"][:8]) for s in slices}) == 9
    stream(Operation.UPSERT, range(60), 6)
    assert [v for *_, v in contents(tmp_path)] == [6] * 60
    check_all(storage)


@pytest.mark.parametrize("renewed", [True, False], ids=["hudimeta", "apache hudi"])
def test_rows_that_come_to_a_ring_after_a_delete_of_its_partition_are_seen(tmp_path: Path, renewed: bool) -> None:
    table = create(tmp_path, "MERGE_ON_READ", **BUCKETS, hoodie_index_bucket_engine="CONSISTENT_HASHING")
    table.upsert(rows(*((f"k{n}", "xy"[n % 2], 1, 1) for n in range(20))))
    table.savepoint(before := table.timeline.writes[-1].time)
    for ts in (2, 3):
        deleted = table.delete_partition("x").instant
        if not renewed:  # Apache Hudi leaves the ring as it is
            (tmp_path / f".hoodie/.bucket_index/consistent_hashing_metadata/x/{deleted}.hashing_meta").unlink()
        assert {part for _, part, *_ in contents(tmp_path)} == {"y"}
        for _ in range(2):
            table.upsert(rows(*((f"k{n}", "x", ts, ts) for n in range(0, 20, 2))))
        found = {key: v for key, part, *_, v in contents(tmp_path) if part == "x"}
        assert found == {f"k{n}": ts for n in range(0, 20, 2)}
    table.restore(before)
    table.upsert(rows(*((f"k{n}", "xy"[n % 2], 4, 4) for n in range(24))))
    assert len(contents(tmp_path)) == 24


def test_rows_that_come_to_a_ring_after_an_overwrite_are_seen(tmp_path: Path) -> None:
    table = create(tmp_path, "MERGE_ON_READ", **BUCKETS, hoodie_index_bucket_engine="CONSISTENT_HASHING")
    table.upsert(rows(*((f"k{n}", "xy"[n % 2], 1, 1) for n in range(20))))
    table.savepoint(before := table.timeline.writes[-1].time)
    for ts in (2, 4):
        table.insert_overwrite(rows(*((f"k{n}", "xz"[n // 9], ts, ts) for n in range(0, 18, 2))))
        assert {(part, v) for _, part, *_, v in contents(tmp_path)} == {("x", ts), ("z", ts), ("y", 1)}
        slices = [one for one in table.file_slices().to_pylist() if one["partition_path"] != "y"]
        assert all(one["base_file"] and not one["log_files"] for one in slices)
        table.upsert(rows(*((f"k{n}", "xz"[n // 9], ts + 1, ts + 1) for n in range(18))))
        found = [(key, v) for key, part, *_, v in contents(tmp_path) if part != "y"]
        assert sorted(found) == sorted((f"k{n}", ts + 1) for n in range(18))
    table.restore(before)
    table.upsert(rows(*((f"k{n}", "xy"[n % 2], 6, 6) for n in range(24))))
    assert len(contents(tmp_path)) == 24
    assert table.metadata.validate().holds


def test_rows_that_come_to_a_ring_after_its_table_was_emptied_are_seen(tmp_path: Path) -> None:
    table = create(tmp_path, "MERGE_ON_READ", **BUCKETS, hoodie_index_bucket_engine="CONSISTENT_HASHING")
    given = rows(*((f"k{n}", "x", 1, 1) for n in range(9)))
    table.upsert(given)
    table.insert_overwrite_table(given.slice(0, 0))
    assert contents(tmp_path) == []
    table.upsert(given)
    assert len(contents(tmp_path)) == 9


@pytest.mark.parametrize("overwrites", [False, True], ids=["delete", "overwrite"])
def test_rows_of_writers_that_do_not_block_are_seen_after_an_overwrite_of_their_partition(
    tmp_path: Path, overwrites: bool
) -> None:
    together = {"hoodie_write_concurrency_mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
    table = create(tmp_path, "MERGE_ON_READ", **BUCKETS, **together)
    table = hudimeta.Table(tmp_path, {"hoodie.write.concurrency.mode": together["hoodie_write_concurrency_mode"]})
    for ts in (1, 2, 3):
        for _ in range(2):
            table.upsert(rows(*((f"k{n}", "x", ts, ts) for n in range(20))))
        assert [v for *_, v in contents(tmp_path)] == [ts] * 20
        if overwrites:
            table.insert_overwrite(rows(("k0", "x", 9, 0)))
        else:
            table.delete_partition("x")
        assert len(contents(tmp_path)) == overwrites
