"""Rows of one key in several places, as inserts bring them about: a change of one of them reaches it alone, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import CommitError, ConfigError
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("v", pa.string())])
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
ORDERS = pytest.mark.parametrize("order", [(), ("n",)], ids=["unordered", "ordered"])
DROPS = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
FIRST, SECOND, OTHER = (1, 1, "a"), (1, 2, "b"), (2, 5, "c")


def batch(*rows: tuple[int, int, str]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def made(path: Path, kind: str, order: tuple[str, ...], *inserts: pa.Table, **more: Any) -> hudimeta.Table:
    hudimeta.Table.create(path, SCHEMA, key="id", ordering=list(order), type=kind, **more)
    table = hudimeta.Table(path, options={"hoodie.combine.before.insert": "false", "hoodie.parquet.small.file.limit": "0"})
    for rows in inserts:
        table.bulk_insert(rows)
    return table


def rows(table: hudimeta.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan(columns=SCHEMA.names).to_table().to_pylist())


@KINDS
@ORDERS
@pytest.mark.parametrize("indexes", [[], ["record_index"]], ids=["simple", "record_index"])
def test_of_rows_in_two_file_groups_each_is_changed_alone(
    tmp_path: Path, kind: str, order: tuple[str, ...], indexes: list[str]
) -> None:
    table = made(tmp_path / "t", kind, order, batch(FIRST, OTHER), batch(SECOND), indexes=indexes)
    assert table.update({"v": "'new'"}, where="v = 'b'").updated == 1
    assert rows(table) == [FIRST, (1, 2, "new"), OTHER]
    assert table.update({"v": "concat(v, '!')"}).updated == 3
    assert rows(table) == [(1, 1, "a!"), (1, 2, "new!"), (2, 5, "c!")]
    source = pa.table({"id": [1], "n": [3]}, pa.schema([("id", pa.int64()), ("n", pa.int64())]))
    matched = "target.id = source.id and target.v = 'a!'"
    table.merge(source, on=matched).when_matched_update({"n": "source.n"}).execute()
    assert rows(table) == [(1, 2, "new!"), (1, 3, "a!"), (2, 5, "c!")]
    assert table.delete(where="v = 'a!'").deleted == 1
    assert rows(table) == [(1, 2, "new!"), (2, 5, "c!")]


@KINDS
@ORDERS
@pytest.mark.parametrize("indexes", [[], ["record_index"]], ids=["simple", "record_index"])
def test_of_rows_in_one_file_group_all_are_changed_or_none(
    tmp_path: Path, kind: str, order: tuple[str, ...], indexes: list[str]
) -> None:
    table = made(tmp_path / "t", kind, order, batch(FIRST, SECOND, OTHER), indexes=indexes)
    for act in (
        lambda: table.update({"v": "'new'"}, where="v = 'a'"),
        lambda: table.update({"v": "'new'"}, where="v = 'b'"),
        lambda: table.delete(where="v = 'b'"),
    ):
        with pytest.raises(CommitError, match="a file group holds several rows of key '1'"):
            act()
    assert rows(table) == [FIRST, SECOND, OTHER]
    report = table.update({"v": "concat(v, '!')", "n": "n + 10"}, where="id = 1")
    assert (report.inserted, report.updated, report.deleted) == (0, 2, 0)
    assert rows(table) == [(1, 11, "a!"), (1, 12, "b!"), OTHER]
    check_all(open_storage(str(tmp_path / "t")))
    assert table.delete(where="id = 1").deleted == 2
    assert table.update({"v": "'new'"}, where="id = 2").updated == 1
    assert rows(table) == [(2, 5, "new")]


@pytest.mark.parametrize("indexes", [[], ["bloom_filters"], ["record_index"]], ids=["simple", "bloom", "record_index"])
@pytest.mark.parametrize("anew", ["insert", "bulk_insert"])
def test_a_key_that_was_inserted_anew_after_a_delete_in_a_log_is_one_row(tmp_path: Path, indexes: list[str], anew: str) -> None:
    """The base file where it was deleted has it still: an upsert would reach both places, and make two rows of one."""
    table = made(tmp_path / "t", "MERGE_ON_READ", ("n",), batch(FIRST, OTHER), indexes=indexes)
    table.delete(where="id = 1")
    getattr(table, anew)(batch((1, 3, "again")))
    table.upsert(batch((1, 4, "changed"), (2, 6, "d")))
    assert rows(table) == [(1, 4, "changed"), (2, 6, "d")]
    assert table.scan(query_type="incremental", begin=table.timeline.writes[-2].completed_at).count() == 2
    table.delete(where="id = 1")
    table.upsert(batch((1, 5, "back")))
    assert rows(table) == [(1, 5, "back"), (2, 6, "d")], "where no place is left to it, it goes to one"
    check_all(open_storage(table.path))


@pytest.mark.parametrize("indexes", [[], ["record_index"]], ids=["simple", "record_index"])
def test_a_key_that_a_log_has_deleted_is_no_duplicate(tmp_path: Path, indexes: list[str]) -> None:
    table = made(tmp_path / "t", "MERGE_ON_READ", ("n",), batch(FIRST, OTHER), indexes=indexes)
    table.delete(where="id = 1")
    report = hudimeta.Table(table.path, {"hoodie.datasource.insert.dup.policy": "drop"}).insert(batch((1, 3, "again"), OTHER))
    assert (report.inserted, report.dropped_duplicates, rows(table)) == (1, 1, [(1, 3, "again"), OTHER])


@KINDS
@pytest.mark.parametrize(
    "asked", [{"hoodie.datasource.insert.dup.policy": "drop"}, {"hoodie.datasource.insert.dup.policy": "fail"}, DROPS], ids=str
)
def test_no_bucket_is_asked_for_duplicates(tmp_path: Path, kind: str, asked: dict[str, str]) -> None:
    """It takes every key for one that is there: new rows would be left out, or begin a file group of no bucket."""
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, key="id", type=kind, options=buckets)
    table.upsert(batch(FIRST))
    with pytest.raises(ConfigError, match=r"for a table with a bucket index.*upsert the rows"):
        hudimeta.Table(table.path, {**buckets, **asked}).insert(batch(OTHER))
    assert (len(table.timeline.instants), rows(table)) == (1, [FIRST])


@KINDS
@ORDERS
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "RECORD_INDEX", "SIMPLE", "BUCKET"])
def test_a_merge_inserts_one_row_a_key(tmp_path: Path, kind: str, order: tuple[str, ...], index: str) -> None:
    asked = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"}
    indexes = ["record_index"] if index == "RECORD_INDEX" else []
    given: dict[str, Any] = {
        "key": "id",
        "partition_by": "v",
        "ordering": list(order),
        "type": kind,
        "indexes": indexes,
        "options": asked,
    }
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, **given)
    table.insert(batch(OTHER))
    source = batch((1, 1, "a"), (1, 2, "a"), (3, 1, "a"), (3, 2, "b"))
    merge = table.merge(source, on=["id", "v"])
    merge.when_not_matched_insert(condition="source.n = 1").when_not_matched_insert().execute()
    alone = [] if index in ("GLOBAL_SIMPLE", "RECORD_INDEX") else [(3, 1, "a")]
    assert rows(table) == sorted([(1, 2, "a"), OTHER, *alone, (3, 2, "b")])
    assert table.metadata.validate().holds
    check_all(open_storage(tmp_path / "t"))


@KINDS
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "RECORD_INDEX"])
@pytest.mark.parametrize("portion", ["1", "1000000"], ids=["portions", "whole"])
@pytest.mark.parametrize("asked", ["hoodie.datasource.write.insert.drop.duplicates", "hoodie.combine.before.insert"])
def test_an_insert_keeps_one_row_of_a_key_in_two_partitions(
    tmp_path: Path, kind: str, index: str, portion: str, asked: str
) -> None:
    options = {"hoodie.index.type": index, "hudimeta.write.portion.bytes": portion, asked: "true"}
    indexes = ["record_index"] if index == "RECORD_INDEX" else []
    given: dict[str, Any] = {
        "key": "id",
        "partition_by": "v",
        "ordering": "n",
        "type": kind,
        "indexes": indexes,
        "options": options,
    }
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, **given)
    source = batch((1, 1, "a"), (1, 3, "b"), (1, 2, "c"), OTHER)
    table.insert(pa.RecordBatchReader.from_batches(SCHEMA, source.to_batches(max_chunksize=1)))
    assert rows(table) == [(1, 3, "b"), OTHER]
    assert table.metadata.validate().holds
    check_all(open_storage(tmp_path / "t"))


@pytest.mark.parametrize("index", ["RECORD_INDEX", "BLOOM"])
def test_a_late_row_that_nobody_sees_is_no_duplicate(tmp_path: Path, index: str) -> None:
    options = {"hoodie.index.type": index, "hudimeta.log.inserts": "true"}
    given: dict[str, Any] = {"key": "id", "ordering": "n", "type": "MERGE_ON_READ", "options": options}
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, indexes=["record_index"] if index == "RECORD_INDEX" else [], **given)
    table.upsert(batch((1, 5, "a"), OTHER))
    table.delete(keys=batch((1, 0, "")))
    table.upsert(batch((1, 3, "late")))
    assert rows(table) == [OTHER]
    dropping = hudimeta.Table(tmp_path / "t", {"hoodie.datasource.insert.dup.policy": "drop"})
    assert dropping.insert(batch((1, 6, "new"), OTHER)).dropped_duplicates == 1
    assert rows(table) == [(1, 6, "new"), OTHER]
