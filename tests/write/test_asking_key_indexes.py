"""What the indexes of keys answer: files without trust, values of odd letters, values as in Java."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import SchemaMismatch
from hudimeta.storage import open_storage
from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.testing.inspection import Inspection
from hudimeta.testing.invariants import check_all, record_index_is_live_keys, secondary_answers_as_scan
from hudimeta.types import Operation
from tests.write.indexed_keys import INDEXED

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
