"""Tables of which every row was written several times, for cleans."""

from __future__ import annotations

from pathlib import Path

from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation


def written(path: Path, writes: int, **options: str) -> ModelledTable:
    """A table of two partitions whose every row was written `writes` times."""
    table = ModelledTable(str(path), {**SIMPLE_OPTIONS, **options})
    for ts in range(1, writes + 1):
        table.write(Operation.UPSERT, simple_rows(range(10), ts))
    return table


def base_files(path: Path) -> list[str]:
    """Names of all base files below the partitions."""
    return sorted(file.name for file in path.glob("p*/*.parquet"))


def emptied_partition(path: Path, **options: str) -> ModelledTable:
    """A table one of whose partitions lost all its rows to an overwrite, long enough ago to be cleaned."""
    table = written(path, 1, **options)
    table.write(Operation.INSERT_OVERWRITE_TABLE, simple_rows(range(0, 10, 2), 2))
    for ts in (3, 4, 5):
        table.write(Operation.UPSERT, simple_rows(range(0, 10, 2), ts))
    return table
