"""Which base files read as the table's columns without knowing of Hudi is told for the commits that wrote them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudimeta
from hudimeta.read.native_files import foreign_instants


def table_of(path: Path, *types: pa.DataType, **options: Any) -> hudimeta.Table:
    """A table of one file group a partition, to which a column was written in one type after the other."""
    for number, kind in enumerate(types):
        rows = pa.table({"id": [number], "part": [f"p{number}"], "n": pa.array([number]).cast(kind)})
        if not number:
            hudimeta.Table.create(path, rows.schema, key="id", partition_by="part", options=options)
        hudimeta.Table(path, {"hudimeta.schema.widen": "any"}).insert(rows)
    return hudimeta.Table(path)


def foreign(table: hudimeta.Table, as_of: str | None = None) -> list[str]:
    """The partitions of the files that are foreign."""
    snapshot = table.snapshot(as_of)
    found = pa.array(sorted(foreign_instants(snapshot)), pa.string())
    slices = snapshot.slices()
    return sorted(slices.filter(pc.is_in(slices.column("base_instant"), value_set=found)).column("partition_path").to_pylist())


@pytest.mark.parametrize(
    ("types", "partitions"),
    [
        ([pa.int32(), pa.int32()], []),
        ([pa.int32(), pa.int64()], []),
        ([pa.int32(), pa.int64(), pa.float64()], ["p0", "p1"]),
        ([pa.int32(), pa.float64()], ["p0"]),
        ([pa.int64(), pa.float32(), pa.float64()], ["p0", "p1"]),
        ([pa.int32(), pa.int32(), pa.string(), pa.string()], ["p0", "p1"]),
        ([pa.float32(), pa.float64()], ["p0"]),
    ],
)
def test_files_of_types_that_parquet_readers_do_not_widen_are_foreign(
    tmp_path: Path, types: list[pa.DataType], partitions: list[str]
) -> None:
    assert foreign(table_of(tmp_path / "t", *types)) == partitions


def test_columns_that_came_later_make_no_file_foreign(tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]), key="id")
    table.insert({"id": [1]})
    table.insert({"id": [2], "more": ["x"]})
    assert foreign_instants(hudimeta.Table(tmp_path / "t").snapshot()) == frozenset()


def test_a_table_of_one_type_costs_no_request(tmp_path: Path) -> None:
    table_of(tmp_path / "t", pa.int32(), pa.int32())
    snapshot = hudimeta.Table(tmp_path / "t").snapshot()
    assert snapshot.schema
    asked = len(snapshot.storage.log)
    assert foreign_instants(snapshot) == frozenset()
    assert len(snapshot.storage.log) == asked


def test_renamed_columns_make_older_files_foreign(rich_table: Callable[[str], Path]) -> None:
    table = hudimeta.Table(rich_table("alter_rename_mor"))
    assert foreign(table) == [], "every file was written anew since"
    assert foreign(table, table.timeline.writes[0].time) == [], "as of then, under the names of then"
    assert not foreign(hudimeta.Table(rich_table("all_types_mor")))
