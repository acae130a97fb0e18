"""What merge-on-read writes lay into log files: their size, the forms of blocks, and partial updates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.formats.log import BlockType, HeaderKey, LogBlock, decode_data_block, read_blocks
from hudimeta.storage import open_storage
from hudimeta.table.file_names import parse_log_file
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import META_COLUMNS, Operation
from tests.write.hudi_rs import read_with_hudi_rs

MOR = {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
FORM, FILE, BLOCK = "hoodie.logfile.data.block.format", "hoodie.logfile.max.size", "hoodie.logfile.data.block.max.size"
PARTIAL = {"hoodie.spark.sql.merge.into.partial.updates": "true"}


def logs_of(path: str | Path) -> dict[str, list[LogBlock]]:
    storage = open_storage(path)
    paths = [f.path for part in ("p0", "p1", "") for f in storage.list(part) if ".log." in f.name]
    return {path: read_blocks(storage.read(path), path).blocks for path in sorted(paths)}


@pytest.mark.rotation(3)
@pytest.mark.parametrize("form", ["parquet", "avro", "hfile"])
def test_much_to_write_goes_to_several_files_and_blocks(tmp_path: Path, form: str) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**MOR, FORM: form, FILE: "8000", BLOCK: "3000"})
    table.write(Operation.INSERT, simple_rows(range(400), 1))
    report = table.write(Operation.UPSERT, simple_rows(range(300), 2))
    assert (report.updated, report.inserted, report.file_groups_added) == (300, 0, 0)
    logs = logs_of(table.path)
    names = [parse_log_file(path.rpartition("/")[2]) for path in logs]
    versions = sorted(name.version for name in names if name is not None)
    assert len(versions) > 2, "of two file groups"
    assert versions[-1] == len(versions) // 2
    assert all(len(blocks) >= 1 for blocks in logs.values())
    assert max(len(blocks) for blocks in logs.values()) > 1
    kind = {"parquet": BlockType.PARQUET_DATA, "avro": BlockType.AVRO_DATA, "hfile": BlockType.HFILE_DATA}[form]
    kinds = {block.type for blocks in logs.values() for block in blocks if decode_data_block(block).num_rows}
    assert kinds == {kind}
    table.write(Operation.DELETE, simple_rows(range(0, 400, 3), 3))
    table.write(Operation.UPSERT, simple_rows(range(100, 420), 4))
    table.check()
    check_all(table.storage)
    if form != "hfile":
        assert read_with_hudi_rs(table.path).num_rows == len(table.model.all_rows())
    Table(table.path).compact()
    table.check()
    check_all(table.storage)


def test_a_file_for_each_block(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**MOR, FILE: "0", BLOCK: "500"})
    table.write(Operation.INSERT, simple_rows(range(40), 1))
    table.write(Operation.UPSERT, simple_rows(range(40), 2))
    logs = logs_of(table.path)
    assert len(logs) > 2
    assert all(len(blocks) == 1 for blocks in logs.values())
    table.check()


def test_hfile_blocks_are_sorted_by_key(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**MOR, FORM: "hfile"})
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    table.write(Operation.UPSERT, simple_rows(reversed(range(20)), 2))
    block, of_keys = next(iter(logs_of(table.path).values()))
    assert (of_keys.type, decode_data_block(of_keys).num_rows) == (BlockType.PARQUET_DATA, 0)
    keys = decode_data_block(block)["_hoodie_record_key"].to_pylist()
    assert keys == sorted(keys)
    assert len(keys) == 10


def contents(table: Table) -> list[tuple[Any, ...]]:
    found = table.scan(columns=["id", "ts", "x"]).to_table()
    return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.mark.parametrize("form", ["parquet", "avro"])
@pytest.mark.parametrize("ordering", ["ts", ()], ids=["event time", "commit time"])
def test_updates_log_only_what_they_set(tmp_path: Path, form: str, ordering: str) -> None:
    rows = simple_rows(range(6), 1)
    options = {**PARTIAL, FORM: form, "hoodie.write.table.version": "8" if ordering else "9"}
    table = Table.create(
        tmp_path / "t", rows.schema, key="id", partition_by="part", ordering=ordering, type="MERGE_ON_READ", options=options
    )
    table.insert(rows)
    assert table.update({"x": "x + 0.5"}, where="id < 'k0003'").updated == 3
    blocks = [block for blocks in logs_of(tmp_path / "t").values() for block in blocks]
    assert {block.header.get(HeaderKey.IS_PARTIAL) for block in blocks} == {"true"}
    ordered = ["ts"] if ordering else []
    assert {tuple(decode_data_block(block).column_names) for block in blocks} == {(*META_COLUMNS, *ordered, "x")}
    expected = [(f"k{n:04d}", 1, 1.5 if n < 3 else 1.0) for n in range(6)]
    assert contents(table) == expected
    rs = read_with_hudi_rs(str(tmp_path / "t")).select(["id", "ts", "x"]).to_pylist()
    assert sorted(tuple(row.values()) for row in rs) == expected
    source = pa.table({"id": ["k0001", "k0005"]})
    table.merge(source, "id").when_matched_update({"ts": "ts + 1"}, condition="x > 1").when_matched_delete().execute()
    expected[1] = ("k0001", 2, 1.5)
    assert contents(table) == expected[:-1]
    table.compact()
    assert contents(table) == expected[:-1]
    check_all(open_storage(tmp_path / "t"))


@pytest.mark.parametrize("options", [{}, {FORM: "avro"}, {"hudimeta.log.keys": "false"}], ids=["parquet", "avro", "no keys"])
@pytest.mark.parametrize("verb", ["update", "merge"])
def test_an_update_keeps_the_other_columns_of_rows_of_which_a_log_has_a_late_version(
    tmp_path: Path, options: dict[str, str], verb: str
) -> None:
    """Readers put the parts of a log together before they look at the base file: the late version would fill the rest."""

    def rows(ids: range, ts: int, note: str) -> pa.Table:
        return simple_rows(ids, ts, partitions=1).append_column("note", pa.array([note] * len(ids)))

    table = Table.create(
        tmp_path / "t", rows(range(1), 1, "").schema, key="id", ordering="ts", type="MERGE_ON_READ", options=PARTIAL | options
    )
    table.insert(rows(range(6), 3, "kept"))
    table.upsert(rows(range(2), 1, "late"))
    table.upsert(rows(range(2, 4), 3, "newer"))
    if verb == "update":
        table.update({"x": 9.0}, where="id <= 'k0001'")
    else:
        table.merge(pa.table({"id": ["k0000", "k0001"]}), "id").when_matched_update({"x": 9.0}).execute()
    changed = [(9.0, "kept")] * 2 + [(3.0, "newer")] * 2 + [(3.0, "kept")] * 2
    found = table.scan(columns=["id", "x", "note"]).to_table().sort_by("id").to_pylist()
    assert [(row["x"], row["note"]) for row in found] == changed
    table.compact()
    found = table.scan(columns=["id", "x", "note"]).to_table().sort_by("id").to_pylist()
    assert [(row["x"], row["note"]) for row in found] == changed


def test_updates_go_on_to_log_only_what_they_set(tmp_path: Path) -> None:
    """Of rows that won in the log, and of rows of the base file that no log touches, nothing is late."""
    table = Table.create(
        tmp_path / "t", simple_rows(range(1), 1).schema, key="id", ordering="ts", type="MERGE_ON_READ", options=PARTIAL
    )
    table.insert(simple_rows(range(8), 3, partitions=1))
    for first in (0, 0, 4):
        table.update({"x": f"x + {1 + first}"}, where=f"id >= 'k000{first}' and id < 'k000{first + 2}'")
    blocks = [block for blocks in logs_of(tmp_path / "t").values() for block in blocks]
    assert [block.header.get(HeaderKey.IS_PARTIAL) for block in blocks] == ["true"] * 3
    assert [x for _, _, x in contents(table)] == [5.0, 5.0, 3.0, 3.0, 8.0, 8.0, 3.0, 3.0]


def test_merges_that_insert_log_whole_rows(tmp_path: Path) -> None:
    rows = simple_rows(range(4), 1)
    table = Table.create(tmp_path / "t", rows.schema, key="id", ordering="ts", type="MERGE_ON_READ", options=PARTIAL)
    table.insert(rows)
    source = simple_rows(range(3, 6), 2)
    table.merge(source, "id").when_matched_update({"x": "source.x"}).when_not_matched_insert().execute()
    assert all(HeaderKey.IS_PARTIAL not in b.header for blocks in logs_of(tmp_path / "t").values() for b in blocks)
    assert contents(table)[3:] == [("k0003", 1, 2.0), ("k0004", 2, 2.0), ("k0005", 2, 2.0)]


@pytest.mark.parametrize(
    ("ordering", "more"),
    [((), {}), ("ts", {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.EventTimeAvroPayload"})],
    ids=["commit time", "payload"],
)
def test_updates_log_whole_rows_where_hudi_could_not_fill_them(tmp_path: Path, ordering: str, more: dict[str, str]) -> None:
    """In version 8 its readers fill rows by event time alone: others they fail to read."""
    rows, options = simple_rows(range(6), 1), {**PARTIAL, **more, "hoodie.write.table.version": "8"}
    table = Table.create(tmp_path / "t", rows.schema, key="id", ordering=ordering, type="MERGE_ON_READ", options=options)
    table.insert(rows)
    table.update({"x": "x + 0.5"}, where="id < 'k0003'")
    blocks = [block for blocks in logs_of(tmp_path / "t").values() for block in blocks]
    assert [decode_data_block(block).column_names for block in blocks] == [[*META_COLUMNS, *rows.column_names]]
    assert all(HeaderKey.IS_PARTIAL not in block.header for block in blocks)
    assert contents(table) == [(f"k{n:04d}", 1, 1.5 if n < 3 else 1.0) for n in range(6)]


@pytest.mark.parametrize("altered", [True, False])
def test_updates_log_whole_rows_where_columns_have_a_history_or_may_get_one(tmp_path: Path, altered: bool) -> None:
    """Apache Hudi's readers would take what was not logged for null, and the key, too."""
    rows = simple_rows(range(4), 1)
    options = {**PARTIAL, "hoodie.write.table.version": "9"}
    Table.create(tmp_path / "t", rows.schema, key="id", ordering="ts", type="MERGE_ON_READ", options=options)
    table = Table(tmp_path / "t", PARTIAL | ({} if altered else {"hoodie.schema.on.read.enable": "true"}))
    table.insert(rows)
    if altered:
        table.alter(add={"note": pa.string()})
    table.update({"x": "x + 0.5"}, where="id < 'k0002'")
    blocks = [block for blocks in logs_of(tmp_path / "t").values() for block in blocks]
    assert [decode_data_block(block).column_names for block in blocks] == [table.schema.names]
    assert all(HeaderKey.IS_PARTIAL not in block.header for block in blocks)
    assert contents(table) == [(f"k{n:04d}", 1, 1.5 if n < 2 else 1.0) for n in range(4)]


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        ({}, [BlockType.AVRO_DATA]),
        ({FORM: "avro"}, [BlockType.AVRO_DATA]),
        ({FORM: "hfile"}, [BlockType.HFILE_DATA]),
        ({FORM: "parquet"}, [BlockType.PARQUET_DATA]),
    ],
)
@pytest.mark.parametrize("altered", [True, False])
def test_logs_have_no_parquet_blocks_unasked_where_columns_have_a_history(
    tmp_path: Path, altered: bool, given: dict[str, str], kinds: list[BlockType]
) -> None:
    """Apache Hudi 1.2.0 finds no keys of a global index in slices with one; that which tells of keys is left out, too."""
    rows = simple_rows(range(4), 1)
    Table.create(tmp_path / "t", rows.schema, key="id", ordering="ts", type="MERGE_ON_READ")
    table = Table(tmp_path / "t", given if altered else given | {"hoodie.schema.on.read.enable": "true"})
    table.insert(rows)
    if altered:
        table.alter(add={"note": pa.string()})
    table.upsert(simple_rows(range(2), 2))
    (blocks,) = logs_of(tmp_path / "t").values()
    assert [block.type for block in blocks] == kinds
    table.delete("id = 'k0001'")
    assert contents(table) == [("k0000", 2, 2.0), ("k0002", 1, 1.0), ("k0003", 1, 1.0)]


@pytest.mark.parametrize("marker", ["_hoodie_is_deleted", "gone"])
def test_updates_log_whole_rows_where_a_column_marks_deletes(tmp_path: Path, marker: str) -> None:
    """Apache Hudi's readers would take another value of the block for the mark, and lose the row."""
    kind = pa.bool_() if marker == "_hoodie_is_deleted" else pa.string()
    rows = simple_rows(range(6), 1).append_column(marker, pa.nulls(6, kind))
    own = (
        {} if marker == "_hoodie_is_deleted" else {"hoodie.payload.delete.field": marker, "hoodie.payload.delete.marker": "yes"}
    )
    options = {**PARTIAL, **own, "hoodie.write.table.version": "8"}
    table = Table.create(tmp_path / "t", rows.schema, key="id", ordering="ts", type="MERGE_ON_READ", options=options)
    table.insert(rows)
    table.update({"x": "x + 0.5"}, where="id < 'k0003'")
    source = pa.table({"id": ["k0005"]})
    table.merge(source, "id").when_matched_update({"ts": "ts + 1"}).execute()
    blocks = [block for blocks in logs_of(tmp_path / "t").values() for block in blocks]
    assert [decode_data_block(block).column_names for block in blocks] == [[*META_COLUMNS, *rows.column_names]] * 2
    assert all(HeaderKey.IS_PARTIAL not in block.header for block in blocks)
    expected = [(f"k{n:04d}", 2 if n == 5 else 1, 1.5 if n < 3 else 1.0) for n in range(6)]
    assert contents(table) == expected
