"""Every shape of table that can be made: written by all operations, read back equal by us and by hudi-rs, at each instant."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.testing.model import ModelTable, Place
from hudimeta.types import Operation
from tests.write.hudi_rs import read_with_hudi_rs

Rows = Callable[[Iterable[int], int], pa.Table]
DAY = dt.date(2024, 2, 27)


def wide_rows(ids: Iterable[int], ts: int) -> pa.Table:
    """Rows with a column of every type that matters to keys, partitions and statistics."""
    numbers = list(ids)
    moments = [dt.datetime(2024, 1, 1 + n % 3, 5, n % 60, tzinfo=dt.timezone.utc) for n in numbers]
    floats = [[float(n), float("nan"), None, -0.0][(n + ts) % 4] for n in numbers]
    return pa.table(
        {
            "id": pa.array([f"k{n:03d}" for n in numbers], pa.string()),
            "number": pa.array(numbers, pa.int64()),
            "place": pa.array([["ice land", "a=b/c", "plain", None][n % 4] for n in numbers], pa.string()),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "day": pa.array([DAY + dt.timedelta(n % 3) for n in numbers], pa.date32()),
            "moment": pa.array(moments, pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal(n * ts - 20).scaleb(-2) for n in numbers], pa.decimal128(12, 2)),
            "ratio": pa.array(floats, pa.float64()),
            "small": pa.array([None if n % 5 == 0 else n % 7 for n in numbers], pa.int32()),
            "text": pa.array([None if n % 3 == 0 else "ä€𝄞"[: n % 4] * ts for n in numbers], pa.string()),
            "flag": pa.array([None if n % 4 == 0 else n % 2 == 0 for n in numbers], pa.bool_()),
            "raw": pa.array([bytes([n % 250, 0, 255]) for n in numbers], pa.binary()),
            "nested": pa.array(
                [None if n % 6 == 0 else {"deep": n - ts, "name": f"n{n}"} for n in numbers],
                pa.struct([("deep", pa.int64()), ("name", pa.string())]),
            ),
            "many": pa.array([[n, None, ts] if n % 2 else [] for n in numbers], pa.list_(pa.int64())),
        }
    )


@dataclass(frozen=True)
class Shape:
    """A kind of table: options, and where its rows belong. `statistics` lists columns, empty for the default."""

    options: Mapping[str, str]
    place_of: Callable[[Mapping[str, Any]], Place]
    ordering: str | None = "ts"
    statistics: str = ""
    hudi_rs: bool = True
    fields: Mapping[str, str] = field(default_factory=dict)


KEY, PART, ORDER = (
    "hoodie.datasource.write.recordkey.field",
    "hoodie.datasource.write.partitionpath.field",
    "hoodie.datasource.write.precombine.field",
)
HIVE, ENCODE = "hoodie.datasource.write.hive_style_partitioning", "hoodie.datasource.write.partitionpath.urlencode"
NULL = "__HIVE_DEFAULT_PARTITION__"


def escaped(text: str | None) -> str:
    """As URL-encoded partition paths spell the texts of `wide_rows`."""
    return NULL if text is None else text.replace("=", "%3D").replace("/", "%2F")


SHAPES: Mapping[str, Shape] = {
    "partitioned": Shape(
        {KEY: "id", PART: "small", ORDER: "ts"}, lambda r: (NULL if r["small"] is None else str(r["small"]), r["id"])
    ),
    "not partitioned": Shape({KEY: "id", ORDER: "ts"}, lambda r: ("", r["id"])),
    "without ordering": Shape({KEY: "id"}, lambda r: ("", r["id"]), ordering=None),
    "commit time": Shape(
        {KEY: "id", ORDER: "ts", "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, lambda r: ("", r["id"]), ordering=None
    ),
    "hive style": Shape(
        {KEY: "number", PART: "day", ORDER: "ts", HIVE: "true"}, lambda r: (f"day={r['day']}", str(r["number"]))
    ),
    "encoded": Shape({KEY: "id", PART: "place", ORDER: "ts", ENCODE: "true"}, lambda r: (escaped(r["place"]), r["id"])),
    "hive style, encoded": Shape(
        {KEY: "id", PART: "place", ORDER: "ts", ENCODE: "true", HIVE: "true"},
        lambda r: (f"place={escaped(r['place'])}", r["id"]),
    ),
    "two partition fields": Shape(
        {KEY: "id,number", PART: "day,flag", ORDER: "ts", HIVE: "true"},
        lambda r: (
            f"day={r['day']}/flag={NULL if r['flag'] is None else str(r['flag']).lower()}",
            f"id:{r['id']},number:{r['number']}",
        ),
    ),
    "timestamp partitions": Shape(
        {
            KEY: "id",
            PART: "moment",
            ORDER: "ts",
            "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMICROSECONDS",
            "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        },
        lambda r: (r["moment"].strftime("%Y/%m/%d"), r["id"]),
        hudi_rs=False,
    ),
    "version 9": Shape(
        {KEY: "id", PART: "small", ORDER: "ts", "hoodie.write.table.version": "9"},
        lambda r: (NULL if r["small"] is None else str(r["small"]), r["id"]),
    ),
    "statistics of nested fields": Shape(
        {
            KEY: "id",
            PART: "small",
            ORDER: "ts",
            "hoodie.metadata.index.column.stats.column.list": "ts,price,ratio,nested.deep,nested.name,day,moment,text",
        },
        lambda r: (NULL if r["small"] is None else str(r["small"]), r["id"]),
    ),
    "without statistics": Shape(
        {KEY: "id", PART: "small", ORDER: "ts", "hoodie.metadata.index.column.stats.enable": "false"},
        lambda r: (NULL if r["small"] is None else str(r["small"]), r["id"]),
    ),
    "without metadata table": Shape(
        {KEY: "id", PART: "small", ORDER: "ts", "hoodie.metadata.enable": "false"},
        lambda r: (NULL if r["small"] is None else str(r["small"]), r["id"]),
    ),
    "merge on read": Shape(
        {KEY: "id", PART: "small", ORDER: "ts", "hoodie.datasource.write.table.type": "MERGE_ON_READ"},
        lambda r: (NULL if r["small"] is None else str(r["small"]), r["id"]),
    ),
    "merge on read, version 9": Shape(
        {
            KEY: "id",
            PART: "small",
            ORDER: "ts",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.write.table.version": "9",
        },
        lambda r: (NULL if r["small"] is None else str(r["small"]), r["id"]),
    ),
}


@pytest.mark.rotation(9)
@pytest.mark.parametrize("name", SHAPES)
def test_rows_come_back_at_each_instant(tmp_path: Path, name: str) -> None:
    shape = SHAPES[name]
    options = {"hoodie.table.name": "shapes", "hoodie.metadata.compact.max.delta.commits": "4", **shape.options}
    table = ModelledTable(str(tmp_path / "t"), options, wide_rows([], 0).schema, ModelTable(shape.place_of, shape.ordering))
    steps = (
        (Operation.BULK_INSERT, wide_rows(range(12), 2)),
        (Operation.UPSERT, wide_rows(range(8, 20), 3)),
        (Operation.UPSERT, wide_rows([1, 2, 30], 1)),
        (Operation.DELETE, wide_rows([0, 9, 30, 77], 0)),
        (Operation.INSERT, wide_rows(range(40, 46), 3)),
        (Operation.INSERT_OVERWRITE, wide_rows([8, 16], 4)),
        (Operation.UPSERT, wide_rows([3, 4, 8, 50], 5)),
        (Operation.INSERT_OVERWRITE_TABLE, wide_rows([5, 6], 6)),
    )
    for operation, rows in steps:
        table.write(operation, rows)
        table.model.check(table.read())
        check_all(table.storage)
    table.check()
    for instant in table.model.past if shape.hudi_rs else ():
        table.model.check(plain(read_with_hudi_rs(table.path, instant)), instant)


def plain(rows: pa.Table) -> pa.Table:
    """hudi-rs's types as ours."""
    return rows


def test_generated_keys_are_unique(tmp_path: Path) -> None:
    options = {"hoodie.table.name": "generated", PART: "small", "hoodie.parquet.max.file.size": "2000"}
    model = ModelTable(lambda r: (NULL if r["small"] is None else str(r["small"]), ""), None)
    table = ModelledTable(str(tmp_path / "t"), options, wide_rows([], 0).schema, model)
    for operation in (Operation.BULK_INSERT, Operation.INSERT, Operation.UPSERT, Operation.INSERT):
        rows = wide_rows([*range(10), *range(10)], 1)
        table.write(operation, rows)
        if operation is Operation.UPSERT:
            # Without key columns an upsert can only insert; the model knows no such thing.
            table.model.rows.clear()
            for _ in range(3):
                table.model.write(Operation.INSERT, rows)
            table.model.past.clear()
        found = table.read()
        table.model.check(found)
        keys = found["_hoodie_record_key"].to_pylist()
        assert len(set(keys)) == len(keys)
        assert len(set(found["_hoodie_commit_seqno"].to_pylist())) == len(keys)
        check_all(table.storage)


@pytest.mark.parametrize("name", ["partitioned", "not partitioned", "version 9"])
def test_a_table_may_lose_all_its_rows(tmp_path: Path, name: str) -> None:
    shape = SHAPES[name]
    options = {"hoodie.table.name": "emptied", **shape.options}
    table = ModelledTable(str(tmp_path / "t"), options, wide_rows([], 0).schema, ModelTable(shape.place_of, shape.ordering))
    table.write(Operation.INSERT, wide_rows(range(9), 1))
    table.write(Operation.DELETE, wide_rows(range(9), 0))
    assert table.read().num_rows == 0
    check_all(table.storage)
    table.write(Operation.UPSERT, wide_rows(range(3, 6), 0))
    table.check()
    check_all(table.storage)
    for instant in table.model.past:
        table.model.check(read_with_hudi_rs(table.path, instant), instant)


@pytest.mark.rotation(3)
@pytest.mark.parametrize("operation", [Operation.INSERT, Operation.BULK_INSERT, Operation.UPSERT, Operation.INSERT_OVERWRITE])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_marked_as_deleted_are_not_stored(tmp_path: Path, kind: str, operation: Operation) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": kind})
    table.write(Operation.INSERT, simple_rows(range(6), 1))
    rows = simple_rows([2, 4, 20, 21], 2)
    rows = rows.append_column("_hoodie_is_deleted", pa.array([True, False, True, None]))
    table.write(operation, rows)
    live = {row["id"] for row in table.read().to_pylist() if row["ts"] == 2}
    assert live == {"k0004", "k0021"}
    check_all(table.storage)
