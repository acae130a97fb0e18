"""Columns and fields of structs that are `not null`, of both makers, while structs around them are null."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from hudimeta.types import META_COLUMNS
from tests.elsewhere import only_when
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL

pytestmark = only_when(FULL, "make interop-full")

PAIR = pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string())])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("n", pa.int32(), nullable=False),
        pa.field("pair", PAIR),
        pa.field("pairs", pa.list_(pa.field("element", PAIR))),
    ]
)
ONE = {"a": 1, "b": "x"}
KEYS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
}


def row(key: str, ts: int, pair: dict[str, Any] | None, pairs: list[Any] | None = None) -> dict[str, Any]:
    return {"id": key, "ts": ts, "n": ts, "pair": pair, "pairs": pairs}


def rows(*given: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(given), schema=SCHEMA)


def plain(found: pa.Table) -> list[dict[str, Any]]:
    data = found.drop_columns([name for name in META_COLUMNS if name in found.column_names])
    return sorted(data.to_pylist(), key=lambda one: str(one["id"]))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("maker", ["ours", "theirs"])
def test_both_write_and_read_rows_without_the_structs(hudi: ApacheHudi, tmp_path: Path, kind: str, maker: str) -> None:
    path = tmp_path / "t"
    first = [row("k1", 1, ONE, [ONE]), row("k2", 1, None), row("k3", 1, ONE, [])]
    if maker == "ours":
        hudimeta.Table.create(path, SCHEMA, key="id", ordering="ts", type=kind).insert(rows(*first))
    else:
        hudi.write(
            path, rows(*first), {**KEYS, "hoodie.datasource.write.table.type": kind}, operation="insert", mode="overwrite"
        )
    table = hudimeta.Table(path)
    assert plain(table.scan().to_table()) == plain(hudi.read(path).table) == first
    table.upsert(rows(row("k1", 2, None), row("k4", 2, ONE, [ONE])))
    assert plain(hudi.read(path).table) == plain(table.scan().to_table())
    hudi.write(path, rows(row("k2", 3, ONE), row("k5", 3, None)), {**KEYS, "hoodie.datasource.write.table.type": kind})
    table.delete(keys=["k3"])
    if kind == "MERGE_ON_READ":
        table.compact()
    expected = [row("k1", 2, None), row("k2", 3, ONE), row("k4", 2, ONE, [ONE]), row("k5", 3, None)]
    assert plain(table.scan().to_table()) == plain(hudi.read(path).table) == expected
    check_all(open_storage(path))
