"""Vectors and BLOBs of ours, read and changed by Apache Hudi since release 1.2; older releases show vectors as bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudimeta
from hudimeta.testing.blobs import BLOB_STRUCT, inline, typed
from tests.interop.apache_hudi import ApacheHudi, Installation

FOUND = Installation.find()
HAS_VECTORS = FOUND is not None and FOUND.release >= "1.2"
COLUMNS = ["id", "emb", "small", "doc", "more"]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.int64()),
        typed("emb", pa.list_(pa.float32()), "VECTOR(3)"),
        typed("small", pa.list_(pa.int8()), "VECTOR(2, INT8)"),
        typed("doc", BLOB_STRUCT, "BLOB"),
        typed("more", BLOB_STRUCT, "BLOB"),
    ]
)


def row(key: int, ts: int, emb: list[float] | None) -> dict[str, Any]:
    return {"id": key, "ts": ts, "emb": emb, "small": [key, -1], "doc": inline(b"%d" % ts), "more": None}


def by_hudi(one: dict[str, Any]) -> dict[str, Any]:
    """A row as the release at hand shows it."""
    if HAS_VECTORS:
        return {name: one[name] for name in COLUMNS}
    shown = {"emb": np.array(one["emb"], "<f4").tobytes(), "small": np.array(one["small"], "i1").tobytes()}
    return {name: (shown if one[name] is not None else {}).get(name, one[name]) for name in COLUMNS}


def in_order(rows: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.select(COLUMNS).sort_by("id").to_pylist()
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_apache_hudi_reads_them_and_goes_on(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "table"
    options = {"hoodie.datasource.write.table.type": kind}
    table = hudimeta.Table.create(path, SCHEMA, key="id", ordering="ts", options=options)
    plain = pa.schema([pa.field(field.name, field.type) for field in SCHEMA])
    table.insert(pa.Table.from_pylist([row(1, 1, [1, 2, 3]), row(2, 1, None)], plain))
    table.upsert(pa.Table.from_pylist([row(2, 2, None), row(3, 2, [0.5, 0, -1])], plain))
    right = [row(1, 1, [1, 2, 3]), row(2, 2, None), row(3, 2, [0.5, 0, -1])]
    assert in_order(hudi.read(path).table) == [by_hudi(one) for one in right]
    if not HAS_VECTORS:
        return
    name = f"vectors_{kind.lower()}"
    keeps = {"hoodie.write.auto.upgrade": "false", "hoodie.write.table.version": "8"}
    hudi.sql(f"create table {name} using hudi location '{path}'")
    hudi.sql(f"update {name} set ts = 3, emb = array(float(7), float(8), float(9)) where id = 1", keeps)
    right[0] = {**row(1, 3, [7, 8, 9]), "doc": inline(b"1")}
    assert in_order(hudimeta.Table(path).scan().to_table()) == [by_hudi(one) for one in right]
    found = hudimeta.Table(path).upsert(pa.Table.from_pylist([row(1, 4, [1, 1, 1])], plain))
    assert (found.updated, found.inserted) == (1, 0)
    right[0] = row(1, 4, [1, 1, 1])
    assert in_order(hudi.read(path).table) == [by_hudi(one) for one in right]
    assert bytes(hudi.sql(f"select read_blob(doc) as content from {name} where id = 1")["content"][0].as_py()) == b"4"
    compare_searches(hudi, name, path)
    report = hudimeta.Table(path).metadata.validate()
    assert report.holds, str(report)


def compare_searches(hudi: ApacheHudi, name: str, path: Path) -> None:
    """Both find the same vectors, at the same distances, and tell of them in the same columns."""
    for column, near, word in (("emb", "float", "cosine"), ("emb", "float", "l2"), ("small", "int", "dot_product")):
        size = 3 if column == "emb" else 2
        vector = ", ".join(f"cast({n + 1} as {near})" for n in range(size))
        theirs = hudi.sql(f"select * from hudi_vector_search('{name}', '{column}', array({vector}), 2, '{word}')")
        ours = hudimeta.Table(path).scan().nearest(column, list(range(1, size + 1)), 2, word)
        assert theirs.column_names == ours.column_names
        assert theirs["id"].to_pylist() == ours["id"].to_pylist()
        assert theirs["_hudi_distance"].to_pylist() == pytest.approx(ours["_hudi_distance"].to_pylist(), abs=1e-6)
