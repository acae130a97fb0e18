"""The record's schema in both layouts, against what Apache Hudi embeds, and what a text says of a layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hudimeta.errors import CorruptFileError, UnsupportedFeature
from hudimeta.formats.hfile import HFileReader
from hudimeta.metadata.record import BoundKind, layout_of, schema_text
from tests.conftest import Unpack


def without_docs(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: without_docs(value) for key, value in schema.items() if key != "doc"}
    return [without_docs(item) for item in schema] if isinstance(schema, list) else schema


def embedded(table: Path) -> dict[str, str]:
    """Schema texts of the base files of a table's metadata table, by path."""
    found = {}
    for path in sorted((table / ".hoodie" / "metadata").rglob("*.hfile")):
        text = HFileReader(path.read_bytes(), str(path)).schema_text
        assert text is not None
        found[str(path)] = text
    return found


@pytest.mark.parametrize(("name", "version"), [("trips__mor__avro__v8_trips_8i3u1d", 8), ("cow__v9_txns_simple_meta", 9)])
def test_schema_is_hudis_without_the_documentation(name: str, version: int, conformance_table: Unpack) -> None:
    texts = set(embedded(conformance_table(name)).values())
    assert texts
    for text in texts:
        assert without_docs(json.loads(text)) == json.loads(schema_text(version))


def test_schema_of_commits_lacks_the_meta_fields() -> None:
    full, short = (json.loads(schema_text(9, meta_fields=flag)) for flag in (True, False))
    assert [f["name"] for f in full["fields"][5:]] == [f["name"] for f in short["fields"]]
    assert full["fields"][5:] == short["fields"]
    assert (len(schema_text(8)), len(schema_text(9))) == (4078, 4684)


def test_layouts_differ_in_arrays_and_value_types() -> None:
    old, new = layout_of(schema_text(8)), layout_of(schema_text(9))
    assert (old.meta_fields, new.meta_fields) == (5, 5)
    assert list(new.branches) == list(BoundKind)
    assert new.branches[:-1] == old.branches
    assert set(new.statistics) - set(old.statistics) == {"valueType"}
    assert layout_of(schema_text(8, meta_fields=False)).meta_fields == 0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"fields": 3}', '{"fields": [{"name": "key", "type": "string"}]}'])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises((CorruptFileError, UnsupportedFeature)):
        layout_of(text, "files/x.hfile")


def test_unknown_fields_are_refused_by_name() -> None:
    schema = json.loads(schema_text(9))
    schema["fields"].append({"name": "VectorMetadata", "type": ["null", "string"]})
    with pytest.raises(UnsupportedFeature, match="VectorMetadata"):
        layout_of(json.dumps(schema), "files/x.hfile")
