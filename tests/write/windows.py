"""Tables with a record window, by day of January 2026."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta

SCHEMA = pa.schema([("id", pa.string()), ("day", pa.string()), ("v", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
FOLDER = ".hoodie/.aux/hudimeta/record_window"
THREE = {"hudimeta.record.window.days": "3"}


def rows(*given: tuple[str, int, int]) -> pa.Table:
    """(id, day of January 2026, v); the event was at noon of that day."""
    noon = 1_767_268_800_000_000
    names = SCHEMA.names
    made = [(key, f"2026-01-{day:02d}", v, noon + (day - 1) * 86_400_000_000) for key, day, v in given]
    return pa.Table.from_pylist([dict(zip(names, one, strict=True)) for one in made], SCHEMA)


def create(path: Path, kind: str = "COPY_ON_WRITE", **options: str) -> hudimeta.Table:
    given: dict[str, Any] = {key.replace("_", "."): value for key, value in options.items()} or THREE
    return hudimeta.Table.create(path, SCHEMA, key="id", partition_by="day", type=kind, options=given, name="t")


def contents(path: Path) -> list[tuple[str, int, int]]:
    """(id, day of the partition, v), sorted."""
    found = hudimeta.Table(path).scan().to_table()
    columns = (found[name].to_pylist() for name in ("id", "_hoodie_partition_path", "v"))
    return sorted((key, int(path[-2:]), v) for key, path, v in zip(*columns, strict=True))
