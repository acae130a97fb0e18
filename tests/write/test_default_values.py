"""Rows that lack columns with a default value: new rows get it, by every way of writing; rows that are there do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.api.plain_write import PlainWrite
from hudimeta.errors import ConfigError
from hudimeta.storage import open_storage
from hudimeta.table.column_defaults import KEY
from hudimeta.table.properties import update
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from tests.write.routed.sides import routed

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("d", pa.date32()), ("l", pa.list_(pa.int32())), ("x", pa.int64())])
DEFAULTS = {"n": "1 + 2", "d": "date'2026-01-02'"}


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., hudimeta.Table]:
    def made(defaults: dict[str, str] = DEFAULTS, **more: Any) -> hudimeta.Table:
        hudimeta.Table.create(tmp_path / "t", SCHEMA, key="id", **more)
        update(open_storage(tmp_path / "t"), {KEY: json.dumps(defaults)})
        return hudimeta.Table(tmp_path / "t")

    return made


def rows(*ids: str) -> pa.Table:
    """Rows without the columns n, d and l."""
    return pa.table({"id": pa.array(ids, pa.string()), "x": pa.array([7] * len(ids), pa.int64())})


def shown(table: hudimeta.Table) -> dict[str, tuple[Any, ...]]:
    found = table.scan(columns=["id", "n", "d", "l", "x"]).to_table().to_pylist()
    return {row["id"]: (row["n"], str(row["d"]), row["l"], row["x"]) for row in found}


NEW = (3, "2026-01-02", None, 7)
CHANGED = (None, "None", None, 7)


@pytest.mark.parametrize("verb", ["insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"])
def test_every_row_is_new_of_what_inserts(make: Callable[..., hudimeta.Table], verb: str) -> None:
    table = make()
    report = getattr(table, verb)(rows("a", "b"))
    assert shown(table) == {"a": NEW, "b": NEW}
    assert "columns that the rows lack, by default in new rows: n, d" in report.notes
    assert "columns that the rows lack, filled with null: l" in report.notes
    check_all(open_storage(table.path))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", ["BLOOM", "RECORD_INDEX", "BUCKET"])
@pytest.mark.parametrize("as_stream", [False, True])
def test_an_upsert_gives_them_to_rows_that_are_not_there(
    make: Callable[..., hudimeta.Table], kind: str, index: str, as_stream: bool
) -> None:
    options = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2", "hudimeta.write.portion.bytes": "20"}
    indexes = ["record_index"] if index == "RECORD_INDEX" else []
    table = make(type=kind, indexes=indexes, options=options)
    table = hudimeta.Table(table.path, options)
    table.upsert(pa.table({"id": ["a"], "n": [1], "x": [1]}))
    given = rows("a", "b", "c")
    table.upsert(given.to_reader(max_chunksize=1) if as_stream else given)
    found = shown(table)
    assert found["a"] == CHANGED, "a row that is there has what the upsert says: nothing"
    known = {NEW} if index != "BUCKET" else {NEW, CHANGED}
    assert {found["b"], found["c"]} <= known, "a bucket does not tell which rows are new"
    check_all(open_storage(table.path))


@pytest.mark.parametrize("door", ["plain", "routed"])
@pytest.mark.parametrize("operation", [Operation.INSERT, Operation.BULK_INSERT, Operation.UPSERT])
def test_tasks_give_them_too(make: Callable[..., hudimeta.Table], door: str, operation: Operation) -> None:
    table = make()
    table.insert(pa.table({"id": ["a"], "n": [1], "x": [1]}))
    ids = ("a", "b") if operation is Operation.UPSERT else ("b",)
    if door == "routed":
        routed(Path(table.path), operation, [rows(*ids)])
    else:
        options = {"hoodie.datasource.write.operation": operation.value}
        write = PlainWrite.begin(table.path, options, rows().schema, overwrite=False)
        write.commit([write.write(rows(*ids).to_batches(), 0, 0)])
    changed = CHANGED if operation is Operation.UPSERT else (1, "2026-01-02", None, 1)
    assert shown(table) == {"a": changed, "b": NEW}
    check_all(open_storage(table.path))


def test_quotes_in_texts_are_sparks(make: Callable[..., hudimeta.Table]) -> None:
    table = make({"id": "'unused'", "s": "'it''s (?)'"})
    table.alter(add={"s": pa.string()})
    hudimeta.Table(table.path).insert(rows("a"))
    assert hudimeta.Table(table.path).scan(columns=["s"]).to_table()["s"].to_pylist() == ["it's (?)"]
    update(open_storage(table.path), {KEY: json.dumps({"s": "concat('it''s', 'x')"})})
    hudimeta.Table(table.path).insert(rows("b"))
    assert sorted(hudimeta.Table(table.path).scan(columns=["s"]).to_table()["s"].to_pylist()) == ["it's (?)", "it'sx"]


def test_a_null_that_was_given_stays(make: Callable[..., hudimeta.Table]) -> None:
    table = make()
    table.insert(pa.table({"id": ["a"], "n": pa.array([None], pa.int64()), "x": [7]}))
    assert shown(table)["a"] == (None, "2026-01-02", None, 7)


def test_todays_date_is_known_and_what_only_spark_knows_is_refused(make: Callable[..., hudimeta.Table]) -> None:
    table = make({"d": "current_date()", "n": "hash('a')"})
    with pytest.raises(ConfigError, match=r"DEFAULT of n has the value .*evaluated without Spark"):
        table.insert(rows("a"))
    assert table.timeline.writes == ()
    table.insert(pa.table({"id": ["a"], "n": [1], "x": [7]}))
    assert shown(table)["a"][1] >= "2026"
