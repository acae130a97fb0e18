"""An overwrite replaces the partitions that its rows name, those too of which all rows ask for the deletion of their key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.api.plain_write import PlainWrite
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.storage import open_storage
from hudimeta.types import Operation
from hudimeta.write.routed.driver import write_routed
from hudimeta.write.routed.executors import LocalExecutors
from hudimeta.write.routed.sources import GivenRows

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])


def _rows(*rows: tuple[str, str, bool]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": key, "part": part, "ts": 1, "_hoodie_is_deleted": deleted} for key, part, deleted in rows], SCHEMA
    )


def _as_table(path: str, rows: pa.Table, options: dict[str, str]) -> None:
    hudimeta.Table(path, options).insert_overwrite(rows)


def _as_stream(path: str, rows: pa.Table, options: dict[str, str]) -> None:
    table = hudimeta.Table(path, {**options, "hudimeta.write.portion.bytes": "1"})
    table.insert_overwrite(pa.RecordBatchReader.from_batches(SCHEMA, rows.to_batches(max_chunksize=1)))


def _by_spark_tasks(path: str, rows: pa.Table, options: dict[str, str]) -> None:
    given = {**options, "hoodie.datasource.write.operation": "insert_overwrite"}
    write = PlainWrite.begin(path, given, SCHEMA, overwrite=True)
    write.commit([write.write(rows.slice(at, 1).to_batches(), at, 0) for at in range(rows.num_rows)])


def _routed(path: str, rows: pa.Table, options: dict[str, str]) -> None:
    session = WriteSession(open_storage(path), OPTIONS.read(options))
    parts = [rows.slice(at, 1) for at in range(rows.num_rows)]
    write_routed(session, GivenRows(Operation.INSERT_OVERWRITE, SCHEMA), LocalExecutors(parts))


DOORS = [_as_table, _as_stream, _by_spark_tasks, _routed]


@pytest.mark.parametrize("combine", ["false", "true"])
@pytest.mark.parametrize("door", DOORS)
def test_a_partition_of_which_only_deletes_come_is_emptied(
    tmp_path: Path, door: Callable[[str, pa.Table, dict[str, str]], None], combine: str
) -> None:
    path = str(tmp_path / "t")
    options = {"hoodie.combine.before.insert": combine}
    table = hudimeta.Table.create(path, SCHEMA, key="id", partition_by="part", ordering="ts")
    table.insert(_rows(("a", "p", False), ("b", "q", False), ("c", "r", False)))
    door(path, _rows(("a", "p", True), ("d", "q", False)), options)
    assert sorted(hudimeta.Table(path).scan(columns=["id"]).to_table()["id"].to_pylist()) == ["c", "d"]
    door(path, _rows(("c", "r", True), ("x", "r", True)), options)
    assert hudimeta.Table(path).scan(columns=["id"]).to_table()["id"].to_pylist() == ["d"]


@pytest.mark.parametrize("option", ["hoodie.combine.before.insert", "hoodie.datasource.write.insert.drop.duplicates"])
@pytest.mark.parametrize("door", DOORS)
def test_an_overwrite_keeps_one_row_a_key_whichever_tasks_bring_them(
    tmp_path: Path, door: Callable[[str, pa.Table, dict[str, str]], None], option: str
) -> None:
    path = str(tmp_path / "t")
    hudimeta.Table.create(path, SCHEMA, key="id", partition_by="part").insert(_rows(("x", "p", False), ("y", "q", False)))
    door(path, _rows(("a", "p", False), ("b", "p", False), ("a", "p", False)), {option: "true"})
    assert sorted(hudimeta.Table(path).scan(columns=["id"]).to_table()["id"].to_pylist()) == ["a", "b", "y"]


def test_a_bulk_insert_by_tasks_keeps_one_row_a_key_where_that_is_asked(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    given = {"hoodie.datasource.write.operation": "bulk_insert", "hoodie.combine.before.insert": "true"}
    hudimeta.Table.create(path, SCHEMA, key="id", partition_by="part")
    rows = _rows(("a", "p", False), ("b", "p", False), ("a", "p", False))
    write = PlainWrite.begin(path, given, SCHEMA, overwrite=False)
    write.commit([write.write(rows.slice(at, 1).to_batches(), at, 0) for at in range(rows.num_rows)])
    assert sorted(hudimeta.Table(path).scan(columns=["id"]).to_table()["id"].to_pylist()) == ["a", "b"]
