"""Tables whose structs have fields that are `not null`, while structs are null: everything that rewrites rows keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.errors import SchemaMismatch
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from hudimeta.types import META_COLUMNS

REQUIRED = pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string())])
LOOSE = pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string())])
"""As rows come from Spark or Python."""


def schema_of(pair: pa.DataType) -> pa.Schema:
    inner = pa.field("x", pair, nullable=pair == LOOSE)
    return pa.schema(
        [
            ("id", pa.string()),
            ("ts", pa.int64()),
            ("pair", pair),
            ("deep", pa.struct([inner, pa.field("y", pa.list_(pa.field("element", pair)))])),
            ("named", pa.map_(pa.string(), pair)),
        ]
    )


ONE = {"a": 1, "b": "x"}
FULL = {"pair": ONE, "deep": {"x": ONE, "y": [ONE, None]}, "named": [("k", ONE), ("none", None)]}
NONE = dict.fromkeys(FULL)
KINDS = {
    "copy-on-write": {"type": "COPY_ON_WRITE"},
    "logs of Avro": {"type": "MERGE_ON_READ"},
    "logs of Parquet": {"type": "MERGE_ON_READ", "options": {"hoodie.logfile.data.block.format": "parquet"}},
}


def rows(*given: dict[str, Any], ts: int = 1) -> pa.Table:
    return pa.Table.from_pylist([{"ts": ts, **row} for row in given], schema=schema_of(LOOSE))


def contents(table: Table) -> dict[str, dict[str, Any]]:
    found = table.scan().to_table()
    found = found.drop_columns([name for name in META_COLUMNS if name in found.column_names])
    return {row.pop("id"): {name: row[name] for name in FULL} for row in found.to_pylist()}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_and_without_the_structs_are_written_and_rewritten(tmp_path: Path, kind: str) -> None:
    table = Table.create(tmp_path / "t", schema_of(REQUIRED), key="id", ordering="ts", **KINDS[kind])
    table.upsert(rows({"id": "k1", **FULL}, {"id": "k2"}, {"id": "k3", **FULL}))
    table.upsert(rows({"id": "k4"}, ts=2))
    table.upsert(pa.table({"id": ["k5"], "ts": [2]}))
    expected = {"k1": FULL, "k2": NONE, "k3": FULL, "k4": NONE, "k5": NONE}
    assert contents(table) == expected
    table.upsert(rows({"id": "k1"}, {"id": "k2", **FULL}, ts=3))
    table.update({"pair": "null"}, "id = 'k3'")
    expected |= {"k1": NONE, "k2": FULL, "k3": {**FULL, "pair": None}}
    assert contents(table) == expected
    merge = table.merge(rows({"id": "k2"}, {"id": "k4", **FULL}, ts=4), "id")
    merge.when_matched_update({"pair": "source.pair", "ts": "source.ts"}).execute()
    expected |= {"k2": {**FULL, "pair": None}, "k4": {**NONE, "pair": ONE}}
    table.delete(keys=["k5"])
    del expected["k5"]
    assert contents(table) == expected
    if kind != "copy-on-write":
        table.compact()
    table.cluster("id")
    table.indexes.create("by_key", "record_index")
    table.indexes.create("by_b", "secondary_index", "pair.b")
    table.upsert(rows({"id": "k1", **FULL}, {"id": "k6"}, ts=5))
    expected |= {"k1": FULL, "k6": NONE}
    assert contents(table) == expected
    assert table.metadata.validate().holds
    check_all(open_storage(tmp_path / "t"))


@pytest.mark.parametrize(
    ("row", "path"),
    [
        ({"pair": {"a": None}}, "pair.a"),
        ({"deep": {"x": None}}, "deep.x"),
        ({"deep": {"x": {"a": None}}}, "deep.x.a"),
        ({"deep": {"x": ONE, "y": [None, {"a": None}]}}, "deep.y.element.a"),
        ({"named": [("k", {"a": None}), ("none", None)]}, "named.value.a"),
    ],
)
def test_a_null_in_a_struct_that_is_there_is_refused(tmp_path: Path, row: dict[str, Any], path: str) -> None:
    """Beside a struct that is null: there Arrow does not tell the two apart."""
    table = Table.create(tmp_path / "t", schema_of(REQUIRED), key="id", ordering="ts")
    with pytest.raises(SchemaMismatch, match=f"column '{path}' is null in 1 rows"):
        table.insert(rows({"id": "k1"}, {"id": "k2", **row}))
    assert not table.timeline.writes
