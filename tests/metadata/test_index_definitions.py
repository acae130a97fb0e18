"""The file of index definitions: what Apache Hudi finds in that of a table of ours."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.config import HudiWarning
from hudimeta.errors import CorruptFileError
from hudimeta.metadata.index_definitions import DEFAULT_PATH, decode_definitions, encode_definitions
from hudimeta.table.properties import load, update
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


BY_PARTITION = {"hoodie.metadata.record.level.index.enable": "true", "hoodie.metadata.index.column.stats.enable": "false"}


NINE = {**BY_PARTITION, "hoodie.write.table.version": "9"}
OVER = [("upgrade", {}), *((verb, more) for verb in ("upsert", "delete", "create_index", "schedule") for more in ({}, NINE))]


@pytest.mark.parametrize(("verb", "more"), OVER)
def test_nothing_goes_on_over_lost_definitions(tmp_path: Path, verb: str, more: dict[str, str]) -> None:
    made = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **more})
    made.write(Operation.INSERT, simple_rows(range(6), 1))
    lost = "record_index" if more else "column_stats"
    definitions = Path(made.path, DEFAULT_PATH)
    text = definitions.read_bytes()
    definitions.unlink()
    verbs: dict[str, Callable[[hudimeta.Table], object]] = {
        "upsert": lambda table: table.upsert(simple_rows(range(2), 2)),
        "delete": lambda table: table.delete(simple_rows(range(2), 2)),
        "create_index": lambda table: table.metadata.create_index("low", "column_stats", "part", expression="lower"),
        "schedule": lambda table: table.services.indexing.schedule("column_stats", "low", "part", expression="lower"),
        "upgrade": lambda table: table.upgrade(),
    }
    with pytest.raises(CorruptFileError, match=f"expected the definition of {lost}, found none. Restore the file from a copy"):
        verbs[verb](hudimeta.Table(made.path))
    made.check()
    assert not definitions.exists(), "half of them would be taken for all"
    definitions.write_bytes(text)
    made.write(Operation.UPSERT, simple_rows(range(2), 2))
    made.check()


@pytest.mark.parametrize("left", [None, b""], ids=["no file", "an empty file, as a killed Apache Hudi leaves it"])
def test_what_lost_its_definition_can_be_dropped(tmp_path: Path, left: bytes | None) -> None:
    made = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.record.index.enable": "true"})
    made.write(Operation.INSERT, simple_rows(range(6), 1))
    again: tuple[tuple[str, ...], ...] = (("column_stats", "column_stats"), ("ts", "secondary_index", "ts"))
    hudimeta.Table(made.path).metadata.create_index(*again[1])
    Path(made.path, DEFAULT_PATH).unlink()
    if left is not None:
        Path(made.path, DEFAULT_PATH).write_bytes(left)
    expected = r"the definition of column_stats, secondary_index_ts, found none.* t\.metadata\.rebuild\(\) builds"
    with pytest.raises(CorruptFileError, match=expected) as caught:
        hudimeta.Table(made.path).upsert(simple_rows(range(2), 2))
    told = re.findall(r"drop_index\('(\w+)'\)", str(caught.value))
    assert told == ["partition_stats", "column_stats", "secondary_index_ts"]
    for name in told:
        hudimeta.Table(made.path).metadata.drop_index(name)
    made.write(Operation.UPSERT, simple_rows(range(2), 2))
    for arguments in again:
        hudimeta.Table(made.path).metadata.create_index(*arguments)
    made.write(Operation.UPSERT, simple_rows(range(3), 3))
    made.check()
    hudimeta.Table(made.path).metadata.validate().raise_if_differs()


@pytest.mark.parametrize("asked", [True, False])
def test_statistics_of_partitions_come_back_only_with_those_of_files(tmp_path: Path, asked: bool) -> None:
    """Apache Hudi takes both away, one after the other, and may die in between."""
    made = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    made.write(Operation.INSERT, simple_rows(range(6), 1))
    Path(made.path, DEFAULT_PATH).unlink()
    update(made.storage, {"hoodie.table.metadata.partitions": "files,partition_stats"})
    made.storage.delete_folder(".hoodie/metadata/column_stats")
    options = {**SIMPLE_OPTIONS, "hoodie.metadata.index.column.stats.enable": str(asked).lower()}
    with pytest.raises(CorruptFileError, match="expected the definition of partition_stats, found none"):
        hudimeta.Table(made.path, options).upsert(simple_rows(range(2), 2))
    told = contextlib.nullcontext() if asked else pytest.warns(HudiWarning, match="partition_stats is not built again")
    with told:
        hudimeta.Table(made.path, options).metadata.rebuild()
    kept = load(made.storage).metadata_partitions
    assert sorted(kept) == (["column_stats", "files", "partition_stats"] if asked else ["files"])
    made.write(Operation.UPSERT, simple_rows(range(2), 2))
    made.check()
