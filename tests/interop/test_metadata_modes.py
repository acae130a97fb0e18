"""A table's word on its metadata table, and one that went and came: Apache Hudi keeps the former and uses the latter."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import hudimeta
from hudimeta.table.modes import ENABLE, VALIDATE
from tests.interop.apache_hudi import ApacheHudi

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
OF_HUDI = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.timeline.timezone": "UTC",
}


def rows(numbers: range, ts: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": f"k{n}", "part": f"p{n % 2}", "ts": ts} for n in numbers], SCHEMA)


def test_hudi_keeps_the_tables_word_and_uses_a_metadata_table_made_anew(hudi: ApacheHudi, tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, key="id", partition_by="part", ordering="ts", name="t")
    table.upsert(rows(range(6), 1))
    table.metadata.set(enable=True, validate=True)
    hudi.write(tmp_path / "t", rows(range(2, 4), 2), OF_HUDI)
    now = hudimeta.Table(tmp_path / "t")
    assert (now.properties[ENABLE], now.properties[VALIDATE]) == ("true", "true")
    assert any(note.startswith("validated: ") for note in now.scan().report.notes)

    now.metadata.delete()
    now.metadata.create()
    hudi.write(tmp_path / "t", rows(range(4, 8), 3), OF_HUDI)
    expected = {f"k{n}": 3 if n >= 4 else 2 if n >= 2 else 1 for n in range(8)}
    found = hudi.read(tmp_path / "t").table
    assert dict(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True)) == expected
    now = hudimeta.Table(tmp_path / "t", {"hoodie.metadata.validate": "false"})
    assert now.metadata.stats().in_sync
    assert now.metadata.validate().holds
    mine = now.scan(columns=["id", "ts"]).to_table()
    assert dict(zip(mine["id"].to_pylist(), mine["ts"].to_pylist(), strict=True)) == expected
