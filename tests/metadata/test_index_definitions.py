"""The file of index definitions: what Apache Hudi finds in that of a table of ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hudimeta
from hudimeta.metadata.index_definitions import DEFAULT_PATH, decode_definitions, encode_definitions
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation


@pytest.mark.parametrize(("version", "forms"), [("8", {"V1"}), ("9", {"V1", "V2"})])
def test_every_definition_says_its_version(tmp_path: Path, version: str, forms: set[str]) -> None:
    more = {"hoodie.write.table.version": version, "hoodie.metadata.record.index.enable": "true"}
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **more})
    table.write(Operation.INSERT, simple_rows(range(6), 1))
    hudimeta.Table(table.path).metadata.create_index("by_part", "secondary_index", "part")
    hudimeta.Table(table.path).metadata.create_index("low", "column_stats", "part", expression="lower")
    text = Path(table.path, DEFAULT_PATH).read_bytes()
    stated = {name: one.get("version") for name, one in json.loads(text)["indexDefinitions"].items()}
    assert {"column_stats", "secondary_index_by_part", "expr_index_low"} <= stated.keys()
    assert set(stated.values()) == forms
    assert encode_definitions(decode_definitions(text)) == text
    table.check()
