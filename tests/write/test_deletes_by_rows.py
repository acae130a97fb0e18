"""Rows that delete: by `_hoodie_is_deleted`, by a marker that the user or the payload class defines; stored as real deletes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.errors import ConfigError
from hudimeta.formats.log import BlockType, LogBlock, decode_delete_block, read_blocks
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.write.hudi_rs import read_with_hudi_rs

BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
FIELD, MARKER = "hoodie.payload.delete.field", "hoodie.payload.delete.marker"
PAYLOAD = "hoodie.datasource.write.payload.class"


def rows(ids: range, ts: int, mark: dict[int, object] | None = None, column: str = "_hoodie_is_deleted") -> pa.Table:
    kind = pa.bool_() if column == "_hoodie_is_deleted" else pa.string()
    return pa.table(
        {
            "id": pa.array([f"k{n}" for n in ids], pa.string()),
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "x": pa.array([float(n) for n in ids], pa.float64()),
            column: pa.array([(mark or {}).get(n) for n in ids], kind),
        }
    )


def keys(path: Path, options: dict[str, str] | None = None) -> list[str]:
    return sorted(Table(path, options).scan(columns=["id"]).to_table()["id"].to_pylist())


def blocks_of_logs(path: Path) -> list[LogBlock]:
    storage = open_storage(path)
    logs = sorted((f.path for f in storage.list("") if ".log." in f.name), key=lambda log: log.rpartition("_")[0])
    return [block for log in logs for block in read_blocks(storage.read(log), log).blocks]


def orders_of_deletes(path: Path) -> list[tuple[str, int | None]]:
    """What the delete blocks of a table state of each key, where it is a long."""
    found = [decode_delete_block(block) for block in blocks_of_logs(path) if block.type is BlockType.DELETE]
    orders = [
        (key, order["long"])
        for t in found
        for key, order in zip(*(t[n].to_pylist() for n in ("record_key", "ordering")), strict=True)
    ]
    return orders


@BOTH
@pytest.mark.parametrize("column", ["_hoodie_is_deleted", "op"])
def test_updates_and_merges_that_mark_a_row_delete_it(tmp_path: Path, kind: str, column: str) -> None:
    own = {FIELD: "op", MARKER: "D"} if column == "op" else {}
    mark = dict.fromkeys(range(10), "D") if own else dict.fromkeys(range(10), True)
    schema = rows(range(0), 0, column=column).schema
    Table.create(tmp_path, schema, key="id", ordering="ts", type=kind, indexes=["record_index"], options=own)
    table = Table(tmp_path, own)
    table.upsert(rows(range(6), 1, column=column))
    assert table.update({column: "'D'" if own else True, "ts": 2}, "id = 'k0'").deleted == 1
    assert table.merge(rows(range(1, 3), 2, mark, column), "id").when_matched_update().execute().deleted == 2
    assert keys(tmp_path, own) == ["k3", "k4", "k5"]
    table.merge(rows(range(3, 5), 0, mark, column), "id").when_matched_update().execute()
    assert keys(tmp_path, own) == ["k3", "k4", "k5"], "they are older"
    check_all(open_storage(tmp_path))


@BOTH
@pytest.mark.parametrize("ordering", ["ts", ()], ids=["event time", "commit time"])
def test_marked_rows_delete_and_are_never_stored(tmp_path: Path, kind: str, ordering: str) -> None:
    path = tmp_path / "t"
    table = Table.create(path, rows(range(0), 0).schema, key="id", ordering=ordering, type=kind)
    report = table.upsert(rows(range(10), 1, {3: True, 4: False}))
    assert (report.inserted, report.deleted) == (9, 0)
    report = table.upsert(rows(range(8, 14), 2, {8: True, 9: False, 13: True}))
    assert report.deleted == 1
    assert report.unmatched_deletes == 1
    assert keys(path) == sorted(f"k{n}" for n in (0, 1, 2, 4, 5, 6, 7, 9, 10, 11, 12))
    if kind == "MERGE_ON_READ":
        table.upsert(rows(range(2), 3, {0: True}))
        table.insert(rows(range(20, 22), 3, {20: True}))
        assert BlockType.DELETE in [block.type for block in blocks_of_logs(path)]
        assert keys(path) == sorted(f"k{n}" for n in (1, 2, 4, 5, 6, 7, 9, 10, 11, 12, 21))
        assert sorted(read_with_hudi_rs(str(path))["id"].to_pylist()) == keys(path)
    check_all(open_storage(path))


@BOTH
def test_a_late_delete_loses_under_event_time(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    table = Table.create(path, rows(range(0), 0).schema, key="id", ordering="ts", type=kind)
    table.insert(rows(range(3), 5))
    table.upsert(rows(range(3), 4, {0: True, 1: True, 2: True}))
    assert keys(path) == ["k0", "k1", "k2"]
    table.upsert(rows(range(2), 5, {0: True}))
    assert keys(path) == ["k1", "k2"], "of equal ones the later wins"
    if kind == "MERGE_ON_READ":
        assert sorted(read_with_hudi_rs(str(path))["id"].to_pylist()) == keys(path)
        table.compact()
        assert keys(path) == ["k1", "k2"]


def test_late_deletes_stay_late_when_the_ordering_column_becomes_wider(tmp_path: Path) -> None:
    """A delete block states values of the type of its day, which are no reason to take it for one without order."""
    path, options = tmp_path / "t", {"hoodie.parquet.small.file.limit": "0"}

    def narrow(*given: tuple[int, int, bool]) -> pa.Table:
        pieces = [rows(range(n, n + 1), ts, {n: gone}) for n, ts, gone in given]
        return pa.concat_tables(pieces).set_column(1, "ts", pa.array([ts for _, ts, _ in given], pa.int32()))

    table = Table.create(path, narrow((0, 0, False)).schema, key="id", ordering="ts", type="MERGE_ON_READ", options=options)
    table.insert(narrow(*((n, 5, False) for n in range(5))))
    table.upsert(narrow((1, 6, True), (2, 4, True), (3, 9, False), (4, 0, True)))
    table.upsert(narrow((3, 7, True)))
    assert keys(path) == ["k0", "k2", "k3"], "0 is no order in a column of int"
    table.upsert(rows(range(1), 1 << 40))
    assert keys(path) == ["k0", "k2", "k3"]
    table.upsert(rows(range(1, 2), 7))
    assert keys(path) == ["k0", "k1", "k2", "k3"]
    table.compact()
    assert keys(path) == ["k0", "k1", "k2", "k3"]


@BOTH
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_late_delete_wins_by_the_class_that_fills_nulls(tmp_path: Path, kind: str, version: str) -> None:
    """Version 9 has a mode in the place of the class, by which it loses."""
    path = tmp_path / "t"
    options = {PAYLOAD: "org.apache.hudi.common.model.PartialUpdateAvroPayload", "hoodie.write.table.version": version}
    schema, indexes = rows(range(0), 0).schema, ["record_index", "column_stats"]
    table = Table.create(path, schema, key="id", ordering="ts", type=kind, indexes=indexes, options=options)
    table.insert(rows(range(3), 5))
    table.upsert(rows(range(2), 4, {0: True}))
    assert keys(path) == (["k1", "k2"] if version == "8" else ["k0", "k1", "k2"])
    check_all(open_storage(path))
    table.upsert(rows(range(1), 6))
    assert keys(path) == ["k0", "k1", "k2"]
    check_all(open_storage(path))


@pytest.mark.parametrize("name", ["AWSDmsAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload", "PartialUpdateAvroPayload"])
def test_deletes_state_the_order_of_stored_rows_where_a_class_merges(tmp_path: Path, name: str) -> None:
    """Apache Hudi 1.0.2 compares it, and fails to read the slice where there is none and a row of the key comes later."""
    path = tmp_path / "t"
    options = {PAYLOAD: f"org.apache.hudi.common.model.{name}"}
    schema = rows(range(0), 0).schema
    table = Table.create(path, schema, key="id", ordering="ts", type="MERGE_ON_READ", options=options)
    table.insert(rows(range(5), 5))
    table.upsert(rows(range(2), 9, {0: True}))
    table.upsert(rows(range(2, 3), 4, {2: True}))
    table.delete(pa.table({"id": ["k3"]}))
    stated = [("k0", 5), ("k2", 5), ("k3", 5)]
    assert orders_of_deletes(path) == stated
    table.upsert(rows(range(1), 6))
    assert keys(path) == ["k0", "k1", "k4"]
    Table(path, {"hoodie.log.compaction.blocks.threshold": "2"}).log_compact()
    assert sorted(set(orders_of_deletes(path))) == stated
    assert len(orders_of_deletes(path)) == 5, "k0 is a row now"
    assert keys(path) == ["k0", "k1", "k4"]


@BOTH
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_marker_of_the_users_own(tmp_path: Path, kind: str, version: str) -> None:
    path, marker = tmp_path / "t", {FIELD: "what", MARKER: "gone"}
    given = {**marker, "hoodie.write.table.version": version}
    schema = rows(range(0), 0, column="what").schema
    table = Table.create(path, schema, key="id", ordering="ts", type=kind, options=given)
    table.upsert(rows(range(5), 1, {1: "new", 2: "gone"}, column="what"))
    writer = Table(path, {} if version == "9" else marker)
    writer.upsert(rows(range(5), 2, {0: "gone", 3: "Gone"}, column="what"))
    assert keys(path) == ["k1", "k2", "k3", "k4"], "no reader needs the options"
    check_all(open_storage(path))
    if version == "9":
        assert Table(path).properties["hoodie.record.merge.property.hoodie.payload.delete.field"] == "what"


def test_a_reader_that_is_told_a_marker_goes_by_it(tmp_path: Path) -> None:
    """As Apache Hudi's do, of rows in logs that a writer stored who was not told."""
    path, marker = tmp_path / "t", {FIELD: "what", MARKER: "gone"}
    table = Table.create(path, rows(range(0), 0, column="what").schema, key="id", ordering="ts", type="MERGE_ON_READ")
    table.upsert(rows(range(4), 2, column="what"))
    table.upsert(rows(range(1, 3), 3, {1: "gone"}, column="what"))
    table.upsert(rows(range(3, 4), 1, {3: "gone"}, column="what"))
    assert keys(path) == ["k0", "k1", "k2", "k3"]
    assert keys(path, marker) == ["k0", "k2", "k3"]
    assert Table(path, {**marker, "hoodie.compact.inline.max.delta.commits": "1"}).compact()
    assert keys(path) == ["k0", "k2", "k3"]


def test_a_field_without_a_marker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="both options"):
        Table.create(tmp_path / "t", rows(range(0), 0).schema, key="id", options={FIELD: "x"})
    assert not (tmp_path / "t").exists()


@BOTH
@pytest.mark.parametrize("version", ["8", "9"])
def test_changes_of_aws_dms(tmp_path: Path, kind: str, version: str) -> None:
    path = tmp_path / "t"
    options = {PAYLOAD: "org.apache.hudi.common.model.AWSDmsAvroPayload", "hoodie.write.table.version": version}
    Table.create(path, rows(range(0), 0, column="Op").schema, key="id", ordering="ts", type=kind, options=options)
    table = Table(path)
    table.upsert(rows(range(4), 9, {0: "I", 1: "D"}, column="Op"))
    table.upsert(rows(range(4), 1, {0: "U", 3: "D"}, column="Op"))
    found = {row["id"]: row for row in table.scan().to_table().to_pylist()}
    assert set(found) == {"k0", "k1", "k2"}
    assert found["k0"]["ts"] == 1, "the later write wins, whatever its ordering value"
    check_all(open_storage(path))


@BOTH
def test_rows_of_one_batch_go_by_ordering_value_also_with_payloads_that_do_not_otherwise(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    options = {PAYLOAD: "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"}
    Table.create(path, rows(range(0), 0).schema, key="id", ordering="ts", type=kind, options=options)
    Table(path).upsert(pa.concat_tables([rows(range(1), 9), rows(range(1), 2)]))
    assert Table(path).scan().to_table()["ts"].to_pylist() == [9]
    Table(path).upsert(rows(range(1), 1))
    assert Table(path).scan().to_table()["ts"].to_pylist() == [1]
