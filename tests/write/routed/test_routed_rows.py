"""Rows by tasks: a routed write does to a table what the engine's own does, rows, reports and indexes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import DuplicateKeys, SchemaMismatch
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from tests.write.routed.sides import KINDS, both, contents, contents_of, routed, rows, same_tables


@pytest.mark.rotation(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "indexes", [["record_index", "column_stats", "secondary_index_ts", "bloom_filters"], ["column_stats"]], ids=str
)
def test_every_operation_does_what_the_engine_does(tmp_path: Path, kind: str, indexes: list[str]) -> None:
    paths = same_tables(tmp_path, type=kind, indexes=indexes)
    both(paths, Operation.BULK_INSERT, [rows(0, 100), rows(100, 150)])
    # Ids 90 to 109 come twice: the newer ones, of the second task, win.
    report = both(paths, Operation.UPSERT, [rows(80, 110, 2), rows(90, 170, 3)])
    assert report.inserted == 20
    assert report.updated == 70
    both(paths, Operation.INSERT, [rows(200, 210), rows(210, 230)])
    both(paths, Operation.DELETE, [rows(0, 10).select(["id", "part"]), rows(500, 505).select(["id", "part"])])
    # Other partitions: with a global index the rows move, without one they are new.
    both(paths, Operation.UPSERT, [rows(20, 40, 5, parts=2)])
    both(paths, Operation.INSERT_OVERWRITE, [rows(7, 8, 9), rows(10, 11, 9)])
    check_all(open_storage(paths[0]))
    both(paths, Operation.INSERT_OVERWRITE_TABLE, [rows(0, 5, 9)])
    check_all(open_storage(paths[0]))


SETTINGS = {
    "buckets": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"},
    "rings": {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "4",
    },
    "bloom": {"hoodie.index.type": "BLOOM"},
    "global simple": {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"},
    "global bloom, nothing moves": {
        "hoodie.index.type": "GLOBAL_BLOOM",
        "hoodie.bloom.index.update.partition.path": "false",
    },
    "record window": {"hudimeta.record.window.days": "3", "hoodie.record.index.update.partition.path": "true"},
    "change capture": {"hoodie.table.cdc.enabled": "true"},
    "avro logs": {"hoodie.logfile.data.block.format": "avro"},
}


@pytest.mark.rotation(3)
@pytest.mark.parametrize("name", SETTINGS)
def test_every_index_and_form_of_table(tmp_path: Path, name: str) -> None:
    options = SETTINGS[name]
    kind = "COPY_ON_WRITE" if name in ("bloom", "change capture") else "MERGE_ON_READ"
    paths = same_tables(tmp_path, type=kind, indexes=["column_stats"], options=options)
    both(paths, Operation.UPSERT, [rows(0, 40), rows(40, 60)], options)
    both(paths, Operation.UPSERT, [rows(30, 50, 2), rows(45, 80, 3, parts=2)], options)
    both(paths, Operation.DELETE, [rows(0, 9).select(["id", "part"])], options)
    both(paths, Operation.INSERT, [rows(90, 95), rows(95, 99)], options)
    both(paths, Operation.BULK_INSERT, [rows(190, 195), rows(195, 199)], options)
    if name != "rings":  # a ring names its file groups, so that an overwrite cannot begin others
        both(paths, Operation.INSERT_OVERWRITE, [rows(3, 4, 7), rows(6, 7, 7)], options)
    check_all(open_storage(paths[0]))


@pytest.mark.rotation(3)
@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.combine.before.insert": "true"},
        {"hoodie.datasource.insert.dup.policy": "drop"},
        {"hoodie.datasource.write.insert.drop.duplicates": "true"},
        {"hoodie.combine.before.upsert": "false"},
    ],
    ids=str,
)
def test_duplicates_are_treated_alike(tmp_path: Path, options: dict[str, str]) -> None:
    paths = same_tables(tmp_path, indexes=["record_index", "column_stats"])
    both(paths, Operation.INSERT, [rows(0, 20)], options)
    both(paths, Operation.INSERT, [rows(10, 30, 2)], options)
    both(paths, Operation.UPSERT, [rows(25, 35, 3)], options)
    check_all(open_storage(paths[0]))


def test_a_key_that_must_not_be_there_fails_the_write(tmp_path: Path) -> None:
    paths = same_tables(tmp_path)
    routed(paths[0], Operation.INSERT, [rows(0, 5)])
    with pytest.raises(DuplicateKeys):
        routed(paths[0], Operation.INSERT, [rows(6, 8), rows(4, 6)], {"hoodie.datasource.insert.dup.policy": "fail"})
    assert contents(paths[0]) == contents_of(rows(0, 5))
    check_all(open_storage(paths[0]))


def test_generated_keys_are_each_others_like(tmp_path: Path) -> None:
    path = tmp_path / "t"
    hudimeta.Table.create(path, rows(0, 0).schema, partition_by="part")
    for operation in (Operation.INSERT, Operation.BULK_INSERT, Operation.UPSERT):
        routed(path, operation, [rows(0, 30), rows(0, 30)])
    found = hudimeta.Table(path).scan(columns=["_hoodie_record_key", "id"]).to_table()
    assert found.num_rows == 180
    assert len(found["_hoodie_record_key"].unique()) == 180
    check_all(open_storage(path))


def test_rows_that_do_not_fit_leave_nothing(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path)
    with pytest.raises(SchemaMismatch, match="part"):
        routed(path, Operation.UPSERT, [rows(0, 5).drop_columns(["part"])])
    bad = rows(0, 2).set_column(0, "id", pa.array([None, 1], pa.int64()))
    with pytest.raises(SchemaMismatch, match="record key"):
        routed(path, Operation.UPSERT, [rows(5, 9), bad])
    assert contents(path) == []
    check_all(open_storage(path))


def test_new_columns_come_with_the_rows(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path, indexes=["record_index", "column_stats"])
    routed(path, Operation.UPSERT, [rows(0, 5)])
    routed(path, Operation.UPSERT, [rows(3, 8, 2).append_column("y", pa.array(["new"] * 5))])
    found = hudimeta.Table(path).scan(columns=["id", "y"]).to_table().sort_by("id")
    assert found["y"].to_pylist() == [None] * 3 + ["new"] * 5
    check_all(open_storage(path))
