"""An altered table is planned by the statistics and indexes of all columns that have the same names in its older files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.read.native_files import foreign_instants

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("many", pa.int32()),
        ("note", pa.string()),
        ("deep", pa.struct([("a", pa.int32())])),
    ]
)


def table_of(path: Path) -> Table:
    """Four files, whose rows have `many` from 0 to 9, from 10 to 19, and so on."""
    options = {"hoodie.parquet.small.file.limit": "0", "hoodie.metadata.index.column.stats.column.list": "id,ts,many,note"}
    table = Table.create(path, SCHEMA, key="id", ordering="ts", indexes=["column_stats", "record_index"], options=options)
    for first in range(0, 40, 10):
        rows = [{"id": f"k{n}", "ts": 1, "many": n, "note": f"n{n}", "deep": {"a": n}} for n in range(first, first + 10)]
        table.insert(pa.Table.from_pylist(rows, schema=SCHEMA))
    return table


NAMES_LEAD: dict[str, dict[str, Any]] = {
    "added": {"add": {"tip": pa.float64(), "deep.b": pa.int32()}},
    "dropped": {"drop": "note"},
    "moved": {"move": {"note": None}},
    "widened": {"retype": {"many": pa.int64()}},
}


@pytest.mark.parametrize("change", NAMES_LEAD.values(), ids=NAMES_LEAD)
def test_statistics_and_keys_leave_files_out_after_an_alter(tmp_path: Path, change: dict[str, Any]) -> None:
    table = table_of(tmp_path / "t")
    table.alter(**change)
    scan = table.scan(where="many >= 25 and many < 28")
    assert sorted(scan.to_table()["id"].to_pylist()) == ["k25", "k26", "k27"]
    assert scan.report.files_kept == 1
    assert not any("altered" in note for note in scan.report.notes)
    keyed = table.scan(where="id = 'k7'")
    assert keyed.to_table()["id"].to_pylist() == ["k7"]
    assert keyed.report.files_kept == 1
    assert not foreign_instants(table.snapshot()), "Spark reads the files itself"


def test_only_what_was_renamed_is_looked_for_in_all_files(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.alter(rename={"note": "remark"}, retype={"many": pa.int64()})
    scan = table.scan(where="many >= 25 and many < 28")
    assert sorted(scan.to_table()["id"].to_pylist()) == ["k25", "k26", "k27"]
    assert scan.report.files_kept == 1
    scan = table.scan(where="remark = 'n26'")
    assert scan.to_table()["id"].to_pylist() == ["k26"]
    assert scan.report.files_kept == 4
    assert "column_stats not used: older files hold remark under another name or type" in scan.report.notes
    scan = table.scan(where="remark = 'n26' and many < 30")
    assert scan.to_table()["id"].to_pylist() == ["k26"]
    assert scan.report.files_kept == 3
    assert "column_stats: older files hold remark under another name or type" in scan.report.notes
    assert table.scan(where="id = 'k7'").report.files_kept == 1
    table.metadata.validate().raise_if_differs()


def test_a_struct_is_there_although_a_file_has_none_of_its_fields(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.alter(add={"deep.b": pa.int32()})
    table.alter(drop="deep.a")
    assert table.scan().to_table()["deep"].to_pylist() == [{"b": None}] * 40
    table.alter(add={"deep.a": pa.int32()})
    assert table.scan().to_table()["deep"].to_pylist() == [{"b": None, "a": None}] * 40
    assert table.scan(where="deep is not null").count() == 40


BEYOND = {
    "at < TIMESTAMP '0001-01-01 00:00:00Z'": "old",
    "at > TIMESTAMP '9999-12-31 23:59:59.999999Z'": "new",
    "day < DATE '0001-01-01'": "old",
    "day > DATE '9999-12-31'": "new",
    f"note > '{chr(0x10FFFF) * 9}'": "new",
    f"raw > X'{'ff' * 65}'": "new",
}


def test_partitions_of_which_nothing_is_known_may_hold_what_lies_beyond_the_years_of_python(tmp_path: Path) -> None:
    """The record of such a partition is as wide as Spark's types, which are not as wide as Arrow's."""
    types = {"id": pa.string(), "at": pa.timestamp("us", "UTC"), "day": pa.date32(), "note": pa.string(), "raw": pa.binary()}
    schema = pa.schema([*types.items(), ("part", pa.string())])
    table = Table.create(tmp_path / "t", schema, key="id", partition_by="part")
    for name, at, day, note, raw in [
        ("old", -(1 << 62), -(1 << 30), "", b""),
        ("new", 1 << 62, 1 << 30, chr(0x10FFFF) * 9 + "a", b"\xff" * 70),
    ]:
        values = zip([name, at, day, note, raw, "p"], schema.types, strict=True)
        table.insert(pa.table([pa.array([value], kind) for value, kind in values], schema=schema))
    table.alter(rename={name: f"{name}_now" for name in ("at", "day", "note", "raw")})
    table.insert([{"id": "now", "part": "p"}])
    for where, key in BEYOND.items():
        column, _, rest = where.partition(" ")
        assert table.scan(f"{column}_now {rest}").to_table()["id"].to_pylist() == [key], where
