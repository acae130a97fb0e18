"""Arguments in the shapes that people have them in; what is none of them is an error of ours that says what to give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import ConfigError, SchemaMismatch
from hudimeta.types import TableType

ROWS = pa.table({"id": ["a", "b"], "part": ["x", "y"], "ts": [1, 1]})


def made(place: Path, schema: Any = ROWS.schema, **arguments: Any) -> hudimeta.Table:
    return hudimeta.Table.create(str(place / "t"), schema, **{"key": "id", **arguments})


@pytest.mark.parametrize("none", [None, (), [], ""])
def test_no_columns(tmp_path: Path, none: Any) -> None:
    properties = made(tmp_path, partition_by=none, ordering=none).properties
    assert (properties.record_keys, properties.partition_fields, properties.ordering_fields) == (("id",), (), ())


@pytest.mark.parametrize(
    ("written", "meant"),
    [("mor", TableType.MERGE_ON_READ), ("cow", TableType.COPY_ON_WRITE), ("merge_on_read", TableType.MERGE_ON_READ)],
)
def test_types_of_tables(tmp_path: Path, written: str, meant: TableType) -> None:
    assert made(tmp_path, type=written).properties.type is meant


@pytest.mark.parametrize(
    "schema",
    [
        ROWS,
        ROWS.to_batches()[0],
        [("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())],
        dict(zip(ROWS.schema.names, ROWS.schema.types, strict=True)),
    ],
)
def test_schemas(tmp_path: Path, schema: Any) -> None:
    table = made(tmp_path, schema)
    assert [field for field in table.schema if not field.name.startswith("_hoodie_")] == list(ROWS.schema)


@pytest.mark.parametrize("schema", [None, "id string", [], ["id"], {"id": "no type"}, 5])
def test_what_is_no_schema(tmp_path: Path, schema: Any) -> None:
    with pytest.raises(SchemaMismatch, match=r"an Arrow schema\. Give pyarrow\.schema"):
        made(tmp_path, schema)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("argument", ["key", "partition_by", "ordering", "indexes"])
def test_what_is_no_column(tmp_path: Path, argument: str) -> None:
    with pytest.raises(ConfigError, match=rf"'{argument}' has the value 5, allowed is a column's name"):
        made(tmp_path, **{argument: 5})
    assert not list(tmp_path.iterdir())


def test_no_path() -> None:
    with pytest.raises(ConfigError, match="'path' has the value None, allowed is text or a pathlib"):
        hudimeta.Table(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("asked", [{"columns": [1]}, {"columns": 5}, {"limit": "1"}, {"limit": 1.5}])
def test_what_scans_refuse(tmp_path: Path, asked: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        made(tmp_path).scan(**asked)


@pytest.mark.parametrize("given", ["ts = 0", 5, {}, None])
def test_what_is_no_assignment(tmp_path: Path, given: Any) -> None:
    table = made(tmp_path)
    table.upsert(ROWS)
    with pytest.raises(ConfigError, match="new value"):
        table.update(given)
    assert table.scan().count() == 2


def test_a_limit_beyond_all_rows(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(ROWS)
    assert table.scan(limit=1 << 63).to_table().num_rows == 2


@pytest.mark.parametrize("keys", [["a"], ("a",), pa.array(["a"]), pa.chunked_array([["a"]])])
def test_keys_alone(tmp_path: Path, keys: Any) -> None:
    table = made(tmp_path)
    table.upsert(ROWS)
    assert table.delete(keys=keys).deleted == 1
    assert table.scan(columns=["id"]).to_table()["id"].to_pylist() == ["b"]


@pytest.mark.parametrize("shape", [{"partition_by": "part"}, {"key": ["id", "ts"]}])
def test_keys_that_name_no_row(tmp_path: Path, shape: dict[str, Any]) -> None:
    table = made(tmp_path, **shape)
    table.upsert(ROWS)
    with pytest.raises(
        ConfigError, match=r"allowed is rows with the columns id, \w+\. Give such rows, or choose them by a predicate"
    ):
        table.delete(keys=["a"])
    assert table.scan().to_table().num_rows == 2


def test_an_array_is_no_rows(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatch):
        made(tmp_path).upsert(pa.array(["a"]))
