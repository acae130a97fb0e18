"""Arguments in the shapes that people have them in; what is none of them is an error of ours that says what to give."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import ConfigError, HudiError, SchemaMismatch
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
    with pytest.raises(ConfigError, match=rf"'{argument}' has the value 5, allowed is a name, or a list of names"):
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
    with pytest.raises(ConfigError, match=r"argument 'set' .* value"):
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


WRONG: dict[str, tuple[Any, ...]] = {
    "text": (5, True, b"id", ["id"], pd.NA, pd.Series(["id"]), "\ud800"),
    "flag": (None, 1, "false", pd.NA, np.array([1, 2])),
    "number": ("1", 1.5, math.nan, True, pd.NA, np.array([1, 2])),
    "names": (5, True, b"id", {"id": 1}, [None], [b"id"], np.array([1, 2]), pd.NA, ["\ud800"]),
    "dictionary": ("ts = 0", 5, {1: 2}, [("a", "b")], pd.NA, np.array([1, 2])),
}
"""What is none of them, by what a signature asks for."""
VERBS: dict[str, tuple[str, Callable[[hudimeta.Table, Any], object]]] = {
    "timezone": ("text", lambda t, odd: t.scan(timezone=odd)),
    "user": ("text", lambda t, odd: t.savepoint(user=odd)),
    "name": ("text", lambda t, odd: t.rename(odd)),
    "to": ("text", lambda t, odd: t.change_type(odd)),
    "type": ("text", lambda t, odd: t.indexes.create("n", odd, "ts")),
    "condition": ("text", lambda t, odd: t.merge(ROWS, "id").when_matched_delete(condition=odd)),
    "target_alias": ("text", lambda t, odd: t.merge(ROWS, "id", target_alias=odd)),
    "archived": ("flag", lambda t, odd: t.history(archived=odd)),
    "dry_run": ("flag", lambda t, odd: t.downgrade(dry_run=odd)),
    "unused_days": ("number", lambda t, odd: t.advise(unused_days=odd)),
    "groups": ("number", lambda t, odd: t.indexes.resize(odd)),
    "target_bytes": ("number", lambda t, odd: t.scan().plan().splits(odd)),
    "on": ("names", lambda t, odd: t.merge(ROWS, [odd])),
    "drop": ("names", lambda t, odd: t.alter(drop=odd)),
    "partitions": ("names", lambda t, odd: t.delete_partition(odd)),
    "columns": ("names", lambda t, odd: t.cluster(odd)),
    "rename": ("dictionary", lambda t, odd: t.alter(rename=odd)),
    "set": ("dictionary", lambda t, odd: t.update(odd)),
}


@pytest.mark.parametrize("argument", VERBS)
def test_what_no_argument_of_its_kind_is(tmp_path: Path, argument: str) -> None:
    table = made(tmp_path)
    table.upsert(ROWS)
    kind, verb = VERBS[argument]
    before = table.history()
    for odd in WRONG[kind]:
        with pytest.raises(ConfigError, match=rf"'{argument}' has the value "):
            verb(table, odd)
    assert table.history().equals(before)


@pytest.mark.parametrize("names", [["id"], ("id",), np.array(["id"]), pd.Index(["id"]), pd.Series(["id"]), iter(["id"])])
def test_names_in_any_list(tmp_path: Path, names: Any) -> None:
    table = made(tmp_path)
    table.upsert(ROWS)
    assert table.scan(columns=names).to_table().column_names == ["id"]


def test_no_names_are_an_empty_list(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.alter(drop=None, nullable=None, rename={"part": "place"})  # type: ignore[arg-type]
    assert "place" in table.schema.names


def test_names_without_an_order_are_refused_where_it_counts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a set has no order"):
        made(tmp_path, key={"id", "part"})


def test_one_name_where_several_may_stand(tmp_path: Path) -> None:
    table = made(tmp_path, partition_by="part")
    table.upsert(ROWS)
    files = table.metadata.files("x")
    assert files.num_rows
    assert files.equals(table.metadata.files(["x"]))


@pytest.mark.parametrize(
    "moment",
    [dt.datetime(2099, 1, 2, 3), pd.Timestamp("2099-01-02 03:00"), np.datetime64("2099-01-02"), 20990102030000000],
)
def test_moments_of_python(tmp_path: Path, moment: Any) -> None:
    table = made(tmp_path)
    table.upsert(ROWS)
    assert table.scan(as_of=moment).count() == 2


@pytest.mark.parametrize("moment", [pa.scalar(10_000_000, pa.date32()), pa.scalar(-400_000_000_000, pa.timestamp("s"))])
def test_moments_that_python_does_not_have(tmp_path: Path, moment: Any) -> None:
    table = made(tmp_path)
    for verb in (lambda: table.scan(as_of=moment), lambda: table.savepoint(moment), lambda: table.restore(moment)):
        with pytest.raises(ConfigError, match="a moment of the years 1 to 9999"):
            verb()


@pytest.mark.parametrize("numpys", [{"limit": np.int64(1)}, {"limit": np.uint8(1)}])
def test_numbers_of_numpy(tmp_path: Path, numpys: dict[str, Any]) -> None:
    table = made(tmp_path)
    table.upsert(ROWS)
    assert table.scan(**numpys).to_table().num_rows == 1
    assert table.history(**numpys, archived=np.bool_(True)).num_rows == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("types", [{"a": None}, {"a": "no type"}, {"a": 5}, "ab", [5], [None], ["a"], 5])
@pytest.mark.parametrize("argument", ["add", "retype"])
def test_what_is_no_type_of_a_column(tmp_path: Path, argument: str, types: Any) -> None:
    with pytest.raises(ConfigError, match=f"{argument}.* (dictionary of|a type of Arrow)"):
        made(tmp_path).alter(**{argument: types})


LOOK_UPS: dict[str, Callable[[Any, Any], object]] = {
    "keys": lambda metadata, odd: metadata.record_index(odd),
    "values": lambda metadata, odd: metadata.secondary_index("secondary_index_ts", odd),
    "of_files": lambda metadata, odd: metadata.bloom_filters(odd),
    "columns": lambda metadata, odd: metadata.column_stats(odd),
    "wanted": lambda metadata, odd: metadata.expression_stats("expr_index_x", odd),
}


@pytest.mark.parametrize(
    "odd", [5, b"id", [5], [b"id"], [[]], [("a",)], {"ts": "no type"}, {"ts": None}, pa.array([1]), object()]
)
@pytest.mark.parametrize("look_up", LOOK_UPS)
def test_what_cannot_be_looked_up(tmp_path: Path, look_up: str, odd: Any) -> None:
    table = made(tmp_path, indexes=["column_stats", "record_index", "bloom_filters", "secondary_index_ts"])
    table.upsert(ROWS)
    with pytest.raises(ConfigError, match=look_up):
        LOOK_UPS[look_up](table.metadata, odd)


def test_keys_to_look_up_in_any_list(tmp_path: Path) -> None:
    table = made(tmp_path, indexes=["record_index"])
    table.upsert(ROWS)
    keys = table.scan(columns=["id"]).to_table()["id"]
    for given in (keys, keys.combine_chunks(), keys.to_pylist(), keys.to_numpy(), keys.to_pandas(), iter(["a", "b"])):
        assert sorted(table.metadata.record_index(given)["record_key"].to_pylist()) == ["a", "b"]
    assert table.metadata.record_index("a")["record_key"].to_pylist() == ["a"]


def test_an_unknown_order_of_rows_is_refused_where_no_column_is_named(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.bulk_insert(ROWS)
    with pytest.raises(ConfigError, match=r"hilbet.* LINEAR, ZORDER"):
        table.cluster(strategy="hilbet")
    assert table.timeline.writes[-1].action.value == "commit"


def test_a_very_long_name_is_no_zone(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(ROWS)
    with pytest.raises(ConfigError, match=r"'timezone'.*an IANA zone"):
        table.scan("ts > 0", timezone="Europe/" + "é" * 300).to_table()


def test_a_frame_is_no_value(tmp_path: Path) -> None:
    table = made(tmp_path, [*ROWS.schema, pa.field("tags", pa.list_(pa.string()))])
    table.upsert(ROWS.append_column("tags", pa.array([["x"], None])))
    with pytest.raises(SchemaMismatch, match="tags"):
        table.update({"tags": pd.DataFrame({"id": ["a"]})})


@pytest.mark.parametrize("kind", [pa.decimal128(3, 5), pa.list_(pa.decimal128(3, 5)), pa.decimal128(5, -2)])
def test_decimals_of_more_places_than_digits(tmp_path: Path, kind: pa.DataType) -> None:
    """Parquet has none: a table of them could be created, and took no row."""
    with pytest.raises(SchemaMismatch, match="column 'd"):
        made(tmp_path, [*ROWS.schema, pa.field("d", kind)])
    table = made(tmp_path)
    with pytest.raises(SchemaMismatch, match="column 'd"):
        table.upsert(ROWS.append_column("d", pa.nulls(2, kind)))
    with pytest.raises(SchemaMismatch, match="column 'd"):
        table.alter(add={"d": kind})
    assert not table.history().num_rows


class Metres(pa.ExtensionType):
    """As users write them: with a comparison, and so without a hash."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "tests.metres")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Metres:
        return cls()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Metres)

    __hash__ = None  # type: ignore[assignment]


def test_types_of_users_are_merged_as_they_are_stored(tmp_path: Path) -> None:
    rows = ROWS.set_column(2, "ts", pa.ExtensionArray.from_storage(Metres(), pa.array([5, None])))
    table = made(tmp_path)
    table.merge(rows, "id").when_matched_update().when_not_matched_insert().execute()
    assert table.scan(columns=["ts"]).to_table()["ts"].to_pylist() == [5, None]


ENDLESS = 10**5000
"""Python refuses to write it."""


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda t: t.scan(where=[("id", ">", ENDLESS)]).count(), "tuple with an endless number"),
        (lambda t: t.update({"n": ENDLESS}), "'n' is an endless number"),
        (
            lambda t: hudimeta.Table(t.path, {"hoodie.parquet.max.file.size": ENDLESS}).insert({"id": [1]}),
            "value 'an endless number'",
        ),
    ],
)
def test_endless_numbers_are_refused(tmp_path: Path, ask: Callable[[hudimeta.Table], Any], says: str) -> None:
    table = hudimeta.Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("n", pa.int64())]), key="id")
    with pytest.raises(HudiError, match=says) as refused:
        ask(table)
    assert len(str(refused.value)) < 1000
