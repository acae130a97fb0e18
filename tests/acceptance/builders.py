"""Tables for the acceptance tests, each written with few calls, and what their files hold as plain Python values."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudimeta

__all__ = ["CLUSTERED", "INDEXED", "ROWS_A_FILE", "ClusteredTable", "clustered_rows", "create_clustered", "small_files"]

ROWS_A_FILE = 2
UTC = dt.timezone.utc
NAN_EVERY = 100
"""One file in so many has a NaN beside a number in its floating columns."""

CLUSTERED = pa.schema(
    [
        ("id", pa.string()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("plain", pa.int32()),
        ("large", pa.int64()),
        ("real", pa.float32()),
        ("double", pa.float64()),
        ("text", pa.string()),
        ("long_text", pa.string()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("wall_time", pa.timestamp("us")),
        ("price", pa.decimal128(10, 2)),
        ("fine", pa.decimal128(30, 15)),
        ("flag", pa.bool_()),
        ("gap", pa.int32()),
        ("place", pa.struct([("city", pa.string()), ("at", pa.struct([("n", pa.int32())]))])),
        ("unlisted", pa.int32()),
        ("huge", pa.decimal128(38, 18)),
    ]
)
INDEXED = [name for name in CLUSTERED.names if name not in ("place", "unlisted", "huge")] + ["place.city", "place.at.n"]


def small_files(rows: int = ROWS_A_FILE) -> dict[str, str]:
    """Options with which so many rows fill a file."""
    return {"hoodie.parquet.max.file.size": str(rows * 1024), "hoodie.copyonwrite.record.size.estimate": "1024"}


def clustered_rows(count: int) -> pa.Table:
    """Rows of `CLUSTERED` in the order of every column at once; `gap` is null in every other file."""

    def has_nan(i: int) -> bool:
        return i % (NAN_EVERY * ROWS_A_FILE) == 1

    columns: dict[str, Callable[[int], Any]] = {
        "id": lambda i: f"k{i:06d}",
        "tiny": lambda i: i * 256 // count - 128,
        "small": lambda i: i * 65_535 // count - 32_768,
        "plain": lambda i: i * 4_000_000_000 // count - 2_000_000_000,
        "large": lambda i: (i - count // 2) * 2**52,
        "real": lambda i: math.nan if has_nan(i) else i / 4 - 100,
        "double": lambda i: math.nan if has_nan(i) else i / 10 - 50,
        "text": lambda i: f"{i:06d}",
        "long_text": lambda i: "same beginning " * 20 + f"{i:06d}",
        "day": lambda i: dt.date(1969, 6, 1) + dt.timedelta(days=i),
        "moment": lambda i: dt.datetime(1969, 12, 31, tzinfo=UTC) + dt.timedelta(minutes=i, microseconds=i),
        "wall_time": lambda i: dt.datetime(1969, 12, 31) + dt.timedelta(minutes=i, microseconds=i),
        "price": lambda i: decimal.Decimal(i - count // 2) + decimal.Decimal("0.25"),
        "fine": lambda i: decimal.Decimal(i - 3).scaleb(-15),
        "flag": lambda i: i >= count // 2,
        "gap": lambda i: None if i // ROWS_A_FILE % 2 else i,
        "place": lambda i: {"city": f"c{i:06d}", "at": {"n": i}},
        "unlisted": lambda i: i,
        "huge": lambda i: decimal.Decimal(i),
    }
    return pa.table(
        {name: pa.array([make(i) for i in range(count)], CLUSTERED.field(name).type) for name, make in columns.items()}
    )


@dataclass(frozen=True)
class ClusteredTable:
    """A table of files that are clustered by every column.

    Attributes:
        path: Of the table.
        rows: All rows in order, as Python values.
    """

    path: Path
    rows: list[dict[str, Any]]

    @cached_property
    def files(self) -> dict[str, list[dict[str, Any]]]:
        """Rows by the path of their data file."""
        columns = ["_hoodie_partition_path", "_hoodie_file_name", "id"]
        by_id = {row["id"]: row for row in self.rows}
        found: dict[str, list[dict[str, Any]]] = {}
        for row in hudimeta.Table(self.path).scan(columns=columns).to_table().to_pylist():
            path = "/".join(part for part in (row["_hoodie_partition_path"], row["_hoodie_file_name"]) if part)
            found.setdefault(path, []).append(by_id[row["id"]])
        return found

    def values(self, column: str) -> list[Any]:
        """Values of a column or of a field by dotted path, in order."""
        return [value_of(row, column) for row in self.rows]


def value_of(row: Mapping[str, Any], column: str) -> Any:
    """A column's value, or that of a field by dotted path."""
    value: Any = row
    for name in column.split("."):
        value = None if value is None else value[name]
    return value


def create_clustered(path: Path, files: int, options: Mapping[str, str] | None = None, **creation: Any) -> ClusteredTable:
    """A table of so many base files, clustered by every column of `CLUSTERED`, with statistics of `INDEXED`."""
    rows = clustered_rows(files * ROWS_A_FILE)
    listed = {"hoodie.metadata.index.column.stats.column.list": ",".join(INDEXED)}
    table = hudimeta.Table.create(
        path, rows.schema, key="id", options={**listed, **small_files(), **(options or {})}, **creation
    )
    report = table.bulk_insert(rows)
    assert report.files_written == files
    clustered = ClusteredTable(path, rows.to_pylist())
    assert len(clustered.files) == files
    return clustered
