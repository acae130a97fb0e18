"""Record and secondary indexes of tables that we write: what they know after each operation, and when they are proven."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import HudiError, UnsupportedEvolution, UnsupportedFeature
from hudimeta.indexes.planned import store_definitions
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from tests.edited_properties import edit_properties
from tests.write.indexed_keys import BOTH, INDEXED, KINDS, proven


@pytest.mark.rotation(3)
@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_both_follow_every_operation(tmp_path: Path, kind: str, version: str) -> None:
    options = {
        **INDEXED,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": version,
        "hoodie.metadata.compact.max.delta.commits": "3",
        "hoodie.clean.commits.retained": "1",
    }
    table = ModelledTable(str(tmp_path / "t"), options)
    marked = simple_rows(range(8), 4).append_column("_hoodie_is_deleted", pa.array([n % 2 == 0 for n in range(8)]))
    steps = [
        (Operation.INSERT, simple_rows(range(20), 1)),
        (Operation.UPSERT, simple_rows(range(10, 30), 2)),
        (Operation.DELETE, simple_rows([3, 11, 12, 99], 0)),
        (Operation.UPSERT, simple_rows([3, 11], 3)),
        (Operation.UPSERT, marked),
        (Operation.BULK_INSERT, simple_rows(range(40, 60), 5)),
        (Operation.INSERT_OVERWRITE, simple_rows([2, 44, 80], 6)),
        (Operation.UPSERT, simple_rows([2, 80, 81], 7)),
        (Operation.INSERT_OVERWRITE_TABLE, simple_rows([1, 2, 3, 80], 8)),
        (Operation.UPSERT, simple_rows([2, 3, 4, 5], 9)),
    ]
    for operation, rows in steps:
        table.write(operation, rows)
        check_all(table.storage)
        assert proven(table.path) == frozenset(BOTH), operation
    opened = hudimeta.Table(table.path, options)
    for service in (opened.clean, *([opened.compact] if kind == "MERGE_ON_READ" else []), opened.clean):
        service()
        check_all(table.storage)
        assert proven(table.path) == frozenset(BOTH)
    table.model.check(table.read())
    opened.delete_partition("p0")
    check_all(table.storage)
    assert opened.metadata.records("record_index").num_rows == opened.scan().to_table().num_rows
    assert opened.metadata.validate(list(BOTH)).proven == BOTH


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_key_moves_between_partitions(tmp_path: Path, kind: str) -> None:
    """With a global index: the old row is deleted, the new one inserted, the index knows one place."""
    path = str(tmp_path / "t")
    options = {
        **INDEXED,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.record.index.update.partition.path": "true",
    }
    ModelledTable(path, options)
    table = hudimeta.Table(path, options)
    table.insert(simple_rows(range(10), 1))
    moved = simple_rows(range(4), 2).set_column(1, "part", pa.array(["elsewhere"] * 4))
    table.upsert(moved)
    found = table.metadata.record_index(["k0000", "k0003", "k0004"]).to_pylist()
    assert {r["record_key"]: r["partition_path"] for r in found} == {"k0000": "elsewhere", "k0003": "elsewhere", "k0004": "p0"}
    assert proven(path) == frozenset(BOTH)
    check_all(open_storage(path))


def test_a_failed_write_leaves_no_trace(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**INDEXED, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    reached = 0
    for at in range(4, 30, 3):
        storage = FaultyStorage(open_storage(table.path), FaultPlan(at, Fault.ERROR_BEFORE))
        try:
            table.write(Operation.UPSERT, simple_rows(range(10, 25), 2), storage)
        except HudiError:
            reached += 1
        hudimeta.Table(table.path).recover()
        check_all(table.storage)
        assert proven(table.path) == frozenset(BOTH)
    assert reached >= 4


# By partition

BY_PARTITION = {
    **SIMPLE_OPTIONS,
    "hoodie.write.table.version": "9",
    "hoodie.metadata.record.level.index.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "3",
}


@pytest.mark.rotation(3)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_record_index_by_partition(tmp_path: Path, kind: str) -> None:
    """The same key in two partitions is two rows; a partition's file groups begin with its first row."""
    table = ModelledTable(str(tmp_path / "t"), {**BY_PARTITION, "hoodie.datasource.write.table.type": kind})
    check_all(table.storage)
    same = simple_rows([1, 2, 3], 1).set_column(1, "part", pa.array(["q"] * 3))
    steps = [
        (Operation.INSERT, simple_rows(range(20), 1)),
        (Operation.UPSERT, simple_rows(range(15, 25), 2)),
        (Operation.UPSERT, same),
        (Operation.DELETE, simple_rows([1, 5], 0)),
        (Operation.UPSERT, simple_rows([1], 3)),
        (Operation.INSERT_OVERWRITE, simple_rows([1, 7], 4)),
        (Operation.UPSERT, simple_rows([1, 7, 2], 5)),
    ]
    for operation, rows in steps:
        table.write(operation, rows)
        check_all(table.storage)
        assert proven(table.path) == {"record_index"}, operation
    opened = hudimeta.Table(table.path)
    table.model.check(table.read())
    groups = [group.file_id for group in opened.metadata.file_groups("record_index")]
    assert groups == ["record-index-p0-0000-0", "record-index-p1-0000-0", "record-index-q-0000-0"]
    assert sorted(r["partition_path"] for r in opened.metadata.record_index(["k0001"]).to_pylist()) == ["p1", "q"]
    assert opened.scan("id = 'k0001'").to_table().num_rows == 2


SPELLINGS = {
    "2026-01-02": "2026%2D01%2D02",
    "day=2026-01-02/hour=7": "day%3D2026%2D01%2D02%2Fhour%3D7",
    "a_b": "a%5Fb",
    "x%20y z": "x%2520y z",
    "ü+'": "ü+%27",
}
"""As Apache Hudi 1.2.0 spells partitions in the file groups of its record index."""


def test_partitions_are_spelt_in_file_groups_as_apache_hudi_does(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), BY_PARTITION)
    for turn in (1, 2):
        for path in SPELLINGS:
            table.write(Operation.UPSERT, simple_rows([1, turn + 1], turn).set_column(1, "part", pa.array([path] * 2)))
    check_all(table.storage)
    table.check()
    opened = hudimeta.Table(table.path)
    groups = {group.file_id for group in opened.metadata.file_groups("record_index")}
    assert groups == {f"record-index-{spelling}-0000-0" for spelling in SPELLINGS.values()}
    found = opened.metadata.record_index(["k0001"]).to_pylist()
    assert sorted(row["partition_path"] for row in found) == sorted(SPELLINGS)


def test_file_groups_of_plain_dashes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As hudimeta named them before."""
    table = ModelledTable(str(tmp_path / "t"), BY_PARTITION)
    rows = simple_rows([1, 2], 1).set_column(1, "part", pa.array(["2026-01-02"] * 2))
    with monkeypatch.context() as before:
        before.setattr("hudimeta.indexes.record_index.keep.spelt_in_ids", str)
        table.write(Operation.INSERT, rows)
    table.write(Operation.DELETE, rows.slice(0, 1))
    check_all(table.storage)
    opened = hudimeta.Table(table.path)
    assert [group.file_id for group in opened.metadata.file_groups("record_index")] == ["record-index-2026-01-02-0000-0"]
    assert opened.metadata.record_index(["k0001", "k0002"])["record_key"].to_pylist() == ["k0002"]


def test_an_index_by_partition_of_a_table_without_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apache Hudi makes such tables, which we do not, and calls their one partition nothing."""
    path, rows = str(tmp_path / "t"), simple_rows(range(4), 1).drop_columns(["part"])
    with monkeypatch.context() as as_apache_hudi:
        as_apache_hudi.setattr("hudimeta.indexes.planned.is_by_partition", lambda *_: True)
        options = {"hoodie.metadata.record.level.index.enable": "true", "hoodie.write.table.version": "9"}
        table = hudimeta.Table.create(path, rows.schema, "id", options=options)
    table.insert(rows.slice(0, 3))
    table.upsert(rows.slice(2))
    table.delete(keys=rows.slice(0, 1))
    check_all(open_storage(path))
    assert [group.file_id for group in table.metadata.file_groups("record_index")] == ["record-index--0000-0"]
    assert table.scan().count() == table.metadata.records("record_index").num_rows == 3


def test_a_partition_that_no_file_name_can_spell_is_refused(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), BY_PARTITION)
    odd = simple_rows([1], 1).set_column(1, "part", pa.array(["-" * 80]))
    with pytest.raises(UnsupportedFeature, match="---"):
        table.write(Operation.INSERT, odd)
    check_all(table.storage)
    table.write(Operation.INSERT, simple_rows([1], 1))
    table.check()


# Doubled keys


@pytest.mark.parametrize("operation", [Operation.INSERT, Operation.BULK_INSERT])
def test_a_doubled_key_ends_the_proof_and_hides_no_row(tmp_path: Path, operation: Operation) -> None:
    options = {**INDEXED, "hoodie.parquet.small.file.limit": "0"}
    table = ModelledTable(str(tmp_path / "t"), options)
    table.write(Operation.INSERT, simple_rows(range(10), 1))
    report = table.write(operation, simple_rows([5, 20], 2))
    assert any("record_index is not proven any more" in note for note in report.notes)
    assert "record_index" not in proven(table.path)
    assert hudimeta.Table(table.path).scan("id = 'k0005'").to_table().num_rows == 2
    table.write(Operation.UPSERT, simple_rows([30], 3))
    assert "record_index" not in proven(table.path), "a later write does not bring it back"
    table.check()


def test_a_key_twice_in_one_batch_ends_the_proof(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), INDEXED | {"hoodie.parquet.max.file.size": "1"})
    table.write(Operation.BULK_INSERT, simple_rows([1, 2, 1, 3], 1))
    assert "record_index" not in proven(table.path)
    assert hudimeta.Table(table.path).scan("id = 'k0001'").to_table().num_rows == 2


def test_a_key_in_two_partitions_ends_the_proof(tmp_path: Path) -> None:
    """An index that looks in the row's own partition cannot know of the other."""
    options = {**INDEXED, "hoodie.index.type": "SIMPLE", "hudimeta.index.allow.fallback": "true"}
    table = ModelledTable(str(tmp_path / "t"), options)
    table.write(Operation.UPSERT, simple_rows([1], 1))
    elsewhere = simple_rows([1], 1).set_column(1, "part", pa.array(["other"]))
    table.write(Operation.UPSERT, elsewhere)
    assert "record_index" not in proven(table.path)
    assert hudimeta.Table(table.path).scan("id = 'k0001'").to_table().num_rows == 2


def test_too_many_inserted_keys_are_not_looked_up(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**INDEXED, "hudimeta.index.proof.max.keys": "15"})
    table.write(Operation.BULK_INSERT, simple_rows(range(100), 1))
    assert proven(table.path) == frozenset(BOTH), "an empty index knows none of them"
    table.write(Operation.BULK_INSERT, simple_rows(range(100, 110), 1))
    assert proven(table.path) == frozenset(BOTH)
    report = table.write(Operation.BULK_INSERT, simple_rows(range(200, 220), 1))
    assert "record_index" not in proven(table.path)
    assert any("hudimeta.index.proof.max.keys" in note for note in report.notes)


# What it costs


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_upsert_asks_for_no_more_than_its_shards(tmp_path: Path, kind: str) -> None:
    """At most 3 LIST, 12 HEAD, 12 PUT, 20 GET besides data, markers, and (1 PUT, 1 GET and one a log) a shard that it touches.

    A HEAD each finds out whether another action has the instant; they are asked at once.
    """
    options = {**INDEXED, "hoodie.datasource.write.table.type": kind, "hoodie.index.type": "RECORD_INDEX"}
    del options["hoodie.metadata.index.secondary.column"]
    table = ModelledTable(str(tmp_path / "t"), options)
    for turn in range(2):
        table.write(Operation.BULK_INSERT, simple_rows(range(60 * turn, 60 * turn + 60), 1))
    storage = CountingStorage(open_storage(table.path))
    table.write(Operation.UPSERT, simple_rows(range(40, 140), 2), storage)
    shards, logs = 3, 2
    spent: dict[str, int] = {}
    for (request, purpose), n in storage.log.by_purpose().items():
        if purpose not in ("data", "markers"):
            spent[request] = spent.get(request, 0) + n
    allowed = {"LIST": 3, "HEAD": 12, "PUT": 12 + shards, "GET": 20 + shards * (1 + logs)}
    over = {request: n for request, n in spent.items() if n > allowed.get(request, 10)}
    assert not over, f"{over} of {dict(storage.log.by_purpose())}"


def test_floats_are_spelled_as_java_spells_them(tmp_path: Path) -> None:
    """Apache Hudi indexes them, too, and looks up `2.0` and `1.0E10`: rows under another text would be lost to it."""
    table = ModelledTable(str(tmp_path / "t"), INDEXED)
    definitions = hudimeta.Table(table.path).snapshot().metadata.index_definitions
    ours = definitions["secondary_index_ts"]
    of_hudi = {**definitions, ours.name: replace(ours, source_fields=("x",))}
    store_definitions(table.storage, of_hudi)
    values = {"k0000": 2.0, "k0002": 1e10, "k0004": 1e-5, "k0006": float("nan"), "k0008": -0.0, "k0010": 0.1}
    for number, value in enumerate(values.values()):
        table.write(Operation.INSERT, simple_rows([2 * number], 1, value))
    table.write(Operation.UPSERT, simple_rows([10], 2, 123456789.0))
    entries = hudimeta.Table(table.path).metadata.records("secondary_index_ts").to_pylist()
    expected = {"k0000": "2.0", "k0002": "1.0E10", "k0004": "1.0E-5", "k0006": "NaN", "k0008": "-0.0", "k0010": "1.23456789E8"}
    assert {row["record_key"]: row["secondary"] for row in entries} == expected


def test_an_indexed_column_is_not_widened_to_other_texts(tmp_path: Path) -> None:
    """`1` would stay in the index for a row that readers then look up as `1.0`; Apache Hudi refuses such writes, too."""
    table = hudimeta.Table.create(tmp_path / "t", simple_rows([1], 1).schema, options=INDEXED)
    table.insert(simple_rows([1], 1))
    rows = simple_rows([2], 2)
    with pytest.raises(UnsupportedEvolution, match="secondary_index_ts finds rows by that text"):
        table.insert(rows.set_column(2, "ts", rows["ts"].cast(pa.float64())))
    table.metadata.drop_index("secondary_index_ts")
    table = hudimeta.Table(tmp_path / "t")  # without the option that asks for the index
    table.insert(rows.set_column(2, "ts", rows["ts"].cast(pa.float64())))
    assert table.scan("ts = 1").to_table().num_rows == 1


def test_moments_in_milliseconds_are_indexed_by_microseconds(tmp_path: Path) -> None:
    """By which Apache Hudi looks them up, since Spark has no others in memory. Its streamer and Flink make such columns."""
    path, schema = tmp_path / "t", pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC"))])
    options = {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.index.secondary.column": "at"}
    hudimeta.Table.create(path, schema, key="id", options=options)
    edit_properties(path, lambda text: text.replace("timestamp-micros", "timestamp-millis"))
    table = hudimeta.Table(path)
    table.insert(pa.table([pa.array(["a"]), pa.array([1_704_067_200_000_000]).cast(schema.field("at").type)], schema=schema))
    assert table.snapshot().schema.stored.field("at").type.unit == "ms"
    (entry,) = table.metadata.records("secondary_index_at").to_pylist()
    assert (entry["secondary"], entry["record_key"]) == ("1704067200000000", "a")
    assert table.metadata.validate(["secondary_index_at"]).proven == ("secondary_index_at",)
