"""Small tables for Spark's tests, made by the engine in milliseconds, and what an error says to a Spark user."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all

KEYS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}
"""Options of a table of `rows`, as a writer that creates it gives them."""

COLUMNS = ["id", "part", "ts", "x"]
DDL = "id bigint, part string, ts bigint, x double"


def rows(ids: Iterable[int], ts: int = 1, x: float | None = None) -> pa.Table:
    """Rows `id int64, part string, ts int64, x double`; five partitions, chosen by the id."""
    numbers = list(ids)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "part": pa.array([f"p{n % 5}" for n in numbers], pa.string()),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "x": pa.array([float(n) if x is None else x for n in numbers], pa.float64()),
        }
    )


def create(path: Path, data: pa.Table | None = None, **more: Any) -> hudimeta.Table:
    """A table of `data` (of `rows` 0 to 9 when None)."""
    data = rows(range(10)) if data is None else data
    arguments = {"key": "id", "partition_by": "part", "ordering": "ts", **more}
    table = hudimeta.Table.create(path, data.schema, **arguments)
    if data.num_rows:
        table.bulk_insert(data)
    return table


def contents(path: Path, *columns: str) -> list[tuple[Any, ...]]:
    """The table's rows by the engine, sorted."""
    names = columns or ("id", "ts", "x")
    table = hudimeta.Table(path).scan(columns=names).to_table()
    return sorted(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def ids(frame: Any) -> list[int]:
    """The ids of a DataFrame, sorted."""
    return sorted(row.id for row in frame.select("id").collect())


def refusal(statement: Callable[[], object]) -> str:
    """What hudimeta says when Spark runs a statement that it refuses: the text from `HUDIMETA_` on."""
    with pytest.raises(Exception, match="HUDIMETA_") as caught:
        statement()
    found = re.search(r"HUDIMETA_[A-Z_]+: .*", str(caught.value))
    assert found is not None
    return found.group()


def instants(path: Path) -> list[str]:
    """What the timeline holds, as `action state`, in order."""
    return [f"{i.action.value} {i.state.name.lower()}" for i in hudimeta.Table(path).timeline.instants]


def check(path: Path) -> None:
    """Every invariant of a table at rest."""
    check_all(open_storage(path))
