"""Changes of rows whose key several rows have: each row that a commit wrote or took is told, with its own images."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.table import properties as table_properties

SCHEMA = pa.schema([("id", pa.string()), ("x", pa.int64())])
CAPTURE, MODE = "hoodie.table.cdc.enabled", "hoodie.table.cdc.supplemental.logging.mode"


def rows(*pairs: tuple[str, int]) -> pa.Table:
    return pa.table({"id": [key for key, _ in pairs], "x": [x for _, x in pairs]}, schema=SCHEMA)


def told(table: hudimeta.Table) -> list[list[tuple[str, int | None, int | None]]]:
    """Operation and values before and after, commit by commit."""
    found: dict[str, list[tuple[str, int | None, int | None]]] = {write.time: [] for write in table.timeline.writes}
    for change in table.scan(query_type="cdc", begin="earliest").to_table().to_pylist():
        before, after = (None if text is None else json.loads(text)["x"] for text in (change["before"], change["after"]))
        found[change["ts_ms"]].append((change["op"], before, after))
    return list(found.values())


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_row_of_a_known_key_that_an_insert_adds_is_inferred(tmp_path: Path, kind: str) -> None:
    """Apache Hudi adds such rows to small files without a change file, and then refuses to tell any change."""
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, key="id", type=kind)
    table.insert(rows(("a", 1), ("b", 2)))
    table.insert(rows(("b", 3)))
    table.upsert(rows(("b", 9)))
    left = sorted(table.scan(columns=["x"]).to_table().column("x").to_pylist())
    table_properties.update(open_storage(tmp_path / "t"), {CAPTURE: "true"})
    changes = told(hudimeta.Table(tmp_path / "t"))
    assert changes[1] == [("i", None, 3)]
    values = [1, 2, 3]
    for _, before, after in changes[2]:
        values[values.index(before or 0)] = after or 0
    assert sorted(values) == left, "an update of both rows, or of the first where it is logged"


@pytest.mark.parametrize("mode", ["OP_KEY_ONLY", "DATA_BEFORE"])
@pytest.mark.parametrize("stored", ["true", "false"])
def test_images_that_are_looked_up_by_key_are_those_of_the_row(tmp_path: Path, mode: str, stored: str) -> None:
    options = {CAPTURE: "true", MODE: mode, "hoodie.populate.meta.fields": stored, "hoodie.index.type": "SIMPLE"}
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, key="id", options=options)
    table.insert(rows(("a", 1), ("b", 2)))
    table.insert(rows(("b", 3)))
    table.insert(rows(("b", 4), ("b", 5)))
    table.delete(keys=["b"])
    assert told(table)[1:] == [
        [("i", None, 3)],
        [("i", None, 4), ("i", None, 5)],
        [("d", 2, None), ("d", 3, None), ("d", 4, None), ("d", 5, None)],
    ]
