"""Record and secondary indexes of tables that we write: what they know after each operation, and when they are proven."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError, HudiError, SchemaMismatch, UnsupportedFeature
from hudimeta.indexes.record_index.keep import estimated_groups
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.inspection import Inspection
from hudimeta.testing.invariants import check_all, record_index_is_live_keys, secondary_answers_as_scan
from hudimeta.types import Operation

BOTH = ("record_index", "secondary_index_ts")
INDEXED = {
    **SIMPLE_OPTIONS,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
    "hoodie.metadata.index.secondary.column": "ts",
}
KINDS = [(kind, version) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ") for version in ("8", "9")]


def proven(path: str) -> frozenset[str]:
    return proven_indexes(hudimeta.Table(path).snapshot().metadata) - {
        "partition_stats"
    }  # which is proven like the indexes of keys


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


def test_a_partition_path_of_unknown_spelling_is_refused(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), BY_PARTITION)
    odd = simple_rows([1], 1).set_column(1, "part", pa.array(["a/b"]))
    with pytest.raises(UnsupportedFeature, match="a/b"):
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


# Reading


@pytest.mark.parametrize("version", ["8", "9"])
def test_look_ups_skip_files_without_trust(tmp_path: Path, version: str) -> None:
    options = {**INDEXED, "hoodie.write.table.version": version, "hoodie.metadata.index.column.stats.enable": "false"}
    table = ModelledTable(str(tmp_path / "t"), {**options, "hoodie.parquet.small.file.limit": "0"})
    for turn in range(4):
        table.write(Operation.INSERT, simple_rows(range(10 * turn, 10 * turn + 10), turn))
    for where, rows in (("id = 'k0013'", 1), ("ts = 2", 10), ("id IN ('k0001', 'absent')", 1), ("ts = 77", 0)):
        scan = hudimeta.Table(table.path).scan(where)
        assert scan.to_table().num_rows == rows
        assert len(scan.plan().slices) <= 2, where
        assert any("index" in one for one in str(scan.report).splitlines() if one.startswith("skipped")), scan.report


TEXTS = ["a", "$", "a$b", "\\", "\\$", "a\\", "", "\x00", "é$", "😀", None, None]


@pytest.mark.parametrize("version", ["8", "9"])
def test_values_of_odd_letters_are_found(tmp_path: Path, version: str) -> None:
    rows = pa.table({"id": [f"{n}$\\{n}" for n in range(len(TEXTS))], "v": pa.array(TEXTS, pa.string())})
    options = {"hoodie.write.table.version": version, "hoodie.metadata.record.index.min.filegroup.count": "4"}
    indexes = ["record_index", "secondary_index_v"]
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id", indexes=indexes, options=options)
    table.insert(rows)
    storage = open_storage(str(tmp_path / "t"))
    secondary_answers_as_scan(Inspection(storage))
    found = table.metadata.secondary_index("secondary_index_v", [*TEXTS[:-2], None]).num_rows
    assert found == (len(TEXTS) if version == "9" else len(TEXTS) - 2), "version 8 does not index nulls"
    table.upsert(pa.table({"id": rows["id"], "v": pa.array([*TEXTS[1:], "a"], pa.string())}))
    table.delete("v = '$'")
    secondary_answers_as_scan(Inspection(storage))
    record_index_is_live_keys(Inspection(storage))


LONG = "$" * 16_384
"""An entry has two bytes for each of these."""


def test_values_that_no_entry_can_hold_are_refused(tmp_path: Path, door: str) -> None:
    rows = pa.table({"id": ["a", "b"], "v": ["short", "x" * 32_700]})
    indexes = ["record_index", "secondary_index_v"]
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id", indexes=indexes)
    table.insert(rows)
    instants = table.timeline.instants
    says = r"column 'v' is a value that makes an entry of 32,770 bytes .* with the key 'b'.* at most 32,767 bytes"
    for verb in (table.insert, table.upsert, table.bulk_insert):
        with pytest.raises(SchemaMismatch, match=says):
            verb(rows.set_column(1, "v", pa.array(["short", LONG])))
    timeline = hudimeta.Table(table.path).timeline
    if door == "engine":
        assert timeline.instants == instants, "nothing was begun"
    assert (timeline.writes, timeline.pending) == (instants, ())  # tasks see the rows when the write has begun
    with pytest.raises(SchemaMismatch, match=says):
        table.update({"v": f"'{LONG}'"}, "id = 'b'")
    assert table.scan().to_table().sort_by("id")["v"].to_pylist() == rows["v"].to_pylist()
    check_all(open_storage(str(tmp_path / "t")))


def test_an_index_over_values_that_no_entry_can_hold_is_not_made(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "v": ["short", LONG]})
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id", indexes=["record_index"])
    table.insert(rows)
    with pytest.raises(SchemaMismatch, match="an entry of 32,770 bytes in its secondary index"):
        table.metadata.create_index("v", "secondary_index", "v")
    table.upsert(rows.slice(1))
    assert "secondary_index_v" not in hudimeta.Table(table.path).metadata.ready
    check_all(open_storage(str(tmp_path / "t")))


VALUES: dict[str, tuple[pa.DataType, list[Any], str, Any]] = {
    "int": (pa.int32(), [5, -3, None], "-3", "v = -3"),
    "long": (pa.int64(), [1 << 40, 0, None], "1099511627776", "v = 1099511627776"),
    "date": (pa.date32(), [datetime.date(2024, 1, 15), None, datetime.date(1960, 1, 1)], "19737", "v = DATE '2024-01-15'"),
    "moment": (pa.timestamp("us", "UTC"), [datetime.datetime(2024, 1, 15), None, None], "1705276800000000", None),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_spelled_as_in_java(tmp_path: Path, name: str) -> None:
    kind, values, text, where = VALUES[name]
    rows = pa.table({"id": [f"k{n}" for n in range(len(values))], "v": pa.array(values, kind)})
    table = hudimeta.Table.create(
        tmp_path / "t", rows.schema, key="id", indexes=["record_index", "secondary_index_v"], type="MERGE_ON_READ"
    )
    table.insert(rows)
    table.upsert(rows.slice(0, 1))
    assert table.metadata.secondary_index("secondary_index_v", [text]).num_rows == 1
    if where is not None:
        assert table.scan(where).to_table().num_rows == 1
    check_all(open_storage(str(tmp_path / "t")))


# Making


def test_record_keys_are_estimated_as_hudi_does() -> None:
    def groups(records: int, **options: str) -> int:
        prefix = "hoodie.metadata.record.index."
        return estimated_groups(records, OPTIONS.read({prefix + k.replace("_", "."): v for k, v in options.items()}))

    assert groups(0) == groups(1_000_000) == 10
    assert groups(1_000_000_000) == 2_000_000_000 // ((1 << 30) // 48) == 89
    assert groups(1_000_000_000, growth_factor="0.5") == 22
    assert groups(1 << 40) == 10_000
    assert groups(5, min_filegroup_count="7", max_filegroup_count="7") == 7
    assert groups(1_000_000, min_filegroup_count="1", max_filegroup_size="4800000") == 20


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"hoodie.metadata.index.secondary.column": "ts"}, "record index"),
        ({"hoodie.metadata.index.secondary.column": "x"}, "x is double"),
        ({"hoodie.metadata.index.secondary.column": "nope"}, "nope is not there"),
        ({"hoodie.metadata.index.secondary.column": "ts", "hoodie.index.name": "a/b"}, "letters"),
        ({"hoodie.metadata.record.level.index.enable": "true"}, "one kind of record index"),
        ({"hoodie.metadata.index.secondary.column": "ts,id", "hoodie.index.name": "one"}, "one column"),
    ],
)
def test_indexes_that_cannot_be_made(tmp_path: Path, options: dict[str, str], what: str) -> None:
    record = {} if what == "record index" else {"hoodie.metadata.record.index.enable": "true"}
    with pytest.raises(ConfigError, match=what):
        ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **record, **options})
    assert not (tmp_path / "t" / ".hoodie" / "hoodie.properties").exists()


def test_an_index_may_have_a_name_of_its_own(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**INDEXED, "hoodie.index.name": "by_time"})
    table.write(Operation.INSERT, simple_rows(range(5), 1))
    assert hudimeta.Table(table.path).metadata.secondary_index("secondary_index_by_time", ["1"]).num_rows == 5


@pytest.mark.parametrize("doubled", [False, True])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_both_are_built_with_the_metadata_table(tmp_path: Path, kind: str, doubled: bool) -> None:
    """Of a table that has rows and log files, and never had one: proven, unless a key is there twice."""
    bare = {**SIMPLE_OPTIONS, "hoodie.metadata.enable": "false", "hoodie.datasource.write.table.type": kind}
    table = ModelledTable(str(tmp_path / "t"), {**bare, "hoodie.parquet.small.file.limit": "0"})
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    table.write(Operation.UPSERT, simple_rows(range(15, 30), 2))
    table.write(Operation.DELETE, simple_rows([3, 16], 0))
    if doubled:
        table.write(Operation.INSERT, simple_rows([5], 3))
    indexed = hudimeta.Table(table.path, {k: v for k, v in INDEXED.items() if k.startswith("hoodie.metadata")})
    fresh = simple_rows([40], 4)
    indexed.upsert(fresh)
    table.model.write(Operation.UPSERT, fresh)
    table.model.check(table.read())
    check_all(table.storage)
    assert proven(table.path) == (frozenset(BOTH) - {"record_index"} if doubled else frozenset(BOTH))
    assert indexed.scan("id = 'k0005'").to_table().num_rows == (2 if doubled else 1)


def test_a_write_builds_the_indexes_that_it_asks_for(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    asking = hudimeta.Table(table.path, {k: v for k, v in INDEXED.items() if k.startswith("hoodie.metadata")})
    fresh = simple_rows([7, 40], 4)
    report = asking.upsert(fresh)
    assert sum("which the table did not have" in note for note in report.notes) == 2
    table.model.write(Operation.UPSERT, fresh)
    table.model.check(table.read())
    check_all(table.storage)
    assert proven(table.path) == frozenset(BOTH)
    again = asking.upsert(fresh)
    assert not [note for note in again.notes if not note.startswith("routed")]
    assert again.index.startswith("record index"), "what was built is used to find rows"


# What it costs


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_upsert_asks_for_no_more_than_its_shards(tmp_path: Path, kind: str) -> None:
    """At most 3 LIST, 12 PUT and 20 GET besides data, markers, and (1 PUT, 1 GET and one a log) a shard that it touches."""
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
    allowed = {"LIST": 3, "PUT": 12 + shards, "GET": 20 + shards * (1 + logs)}
    over = {request: n for request, n in spent.items() if n > allowed.get(request, 10)}
    assert not over, f"{over} of {dict(storage.log.by_purpose())}"
