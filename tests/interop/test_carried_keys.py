"""Rows of a table without key columns: both makers change and delete them by the meta columns with which they were read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.interop.apache_hudi import ApacheHudi

TRIPS = pa.table({"rider": ["A", "B", "C", "D"], "fare": [1.0, 2.0, 3.0, 4.0], "city": ["sf", "sf", "paris", "paris"]})


def doubled(rows: pa.Table) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index("fare"), "fare", pc.multiply(rows["fare"], 2.0))


def fares(rows: pa.Table) -> dict[str, float]:
    return dict(sorted(zip(rows["rider"].to_pylist(), rows["fare"].to_pylist(), strict=True)))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("maker", ["ours", "theirs"])
def test_both_change_rows_that_were_read(hudi: ApacheHudi, tmp_path: Path, kind: str, maker: str) -> None:
    path = tmp_path / "t"
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.table.type": kind,
    }
    if maker == "ours":
        hudimeta.Table.create(path, TRIPS.schema, partition_by=["city"], type=kind).insert(TRIPS)
    else:
        hudi.write(path, TRIPS, options, operation="bulk_insert", mode="overwrite")

    def read(condition: str | None = None) -> pa.Table:
        return hudimeta.Table(path).scan(where=condition).to_table()

    keys = set(read()["_hoodie_record_key"].to_pylist())
    hudimeta.Table(path).upsert(doubled(read("rider = 'A'")))
    hudi.write(path, doubled(read("rider = 'C'")), options)
    expected = {"A": 2.0, "B": 2.0, "C": 6.0, "D": 4.0}
    assert fares(read()) == fares(hudi.read(path).table) == expected
    assert set(read()["_hoodie_record_key"].to_pylist()) == keys
    hudimeta.Table(path).delete(read("rider = 'C'"))
    hudi.write(path, read("rider = 'A'"), options, operation="delete")
    assert fares(read()) == fares(hudi.read(path).table) == {"B": 2.0, "D": 4.0}
    check_all(open_storage(path))
