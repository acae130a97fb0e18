"""The file of index definitions: what Apache Hudi finds in that of a table of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
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


RECORD_INDEX = ("record_index", "record_index", "", [], {"isPartitioned": "false"}, "V1")
WHO = ("secondary_index_by_who", "secondary_index", "identity", ["note"], {})
DAY_OPTIONS = {"expr": "from_unixtime", "format": "yyyy-MM-dd HH:mm"}
DAY = ("expr_index_ex_day", "column_stats", "from_unixtime", ["seconds"], DAY_OPTIONS)
FIELDS = ("indexName", "indexType", "indexFunction", "sourceFields", "indexOptions", "version")


@pytest.mark.parametrize(
    ("version", "expected"),
    [("8", [(*WHO, "V1"), (*DAY, "V1")]), ("9", [RECORD_INDEX, (*WHO, "V2"), (*DAY, "V2")])],
)
def test_definitions_are_field_by_field_those_of_apache_hudi(tmp_path: Path, version: str, expected: list[Any]) -> None:
    """What 1.1.1 wrote into tables of version 9, and 1.0.2, which leaves out the version (V1), into those of version 8."""
    types = {"id": pa.string(), "note": pa.string(), "seconds": pa.int64()}
    options = {"hoodie.write.table.version": version, "hoodie.metadata.record.index.enable": "true"}
    table = hudimeta.Table.create(tmp_path / "t", pa.schema(list(types.items())), key="id", name="t", options=options)
    table.insert(pa.table({"id": ["a"], "note": ["b"], "seconds": [7]}))
    table.metadata.create_index("by_who", "secondary_index", "note")
    given = {"format": "yyyy-MM-dd HH:mm"}
    table.metadata.create_index("ex_day", "column_stats", "seconds", expression="from_unixtime", options=given)
    found = json.loads((tmp_path / "t" / DEFAULT_PATH).read_bytes())["indexDefinitions"]
    assert found.pop("column_stats")["indexFunction"] == "column_stats"
    assert list(found.values()) == [dict(zip(FIELDS, one, strict=True)) for one in expected]
    assert [one["indexName"] for one in found.values()] == list(found)
