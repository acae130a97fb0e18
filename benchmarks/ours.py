"""Our side's calls, in the words of the public surface; one place, so that every claim measures what a user would write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa


def open_table(path: Path) -> Any:
    """`hudimeta.Table`, the import included: the first call of a process pays for it."""
    import hudimeta

    return hudimeta.Table(str(path))


def count_partitions(table: Any) -> int:
    """How many partitions the metadata table names."""
    return len(table.metadata.partitions())


def count_files(table: Any, partition: str) -> int:
    """How many files one partition has."""
    return int(table.metadata.files([partition]).num_rows)


def count_slices(table: Any) -> int:
    """How many file slices the newest snapshot has, all of them built."""
    return int(table.file_slices().num_rows)


def count_planned(table: Any, where: str | None) -> int:
    """How many file slices a scan would read."""
    return int(table.scan(where=where).plan().slices.num_rows)


def planned_ids(path: Path, where: str) -> set[str]:
    """File ids of the slices that a scan would read."""
    return set(open_table(path).scan(where=where).plan().slices["file_id"].to_pylist())


def bulk_insert(path: Path, rows: pa.Table, indexes: list[str]) -> None:
    """A new lineitem table with these rows."""
    import hudimeta

    table = hudimeta.Table.create(
        str(path), rows.schema, key="key", partition_by=["ship_year"], ordering=["l_linenumber"], indexes=indexes
    )
    table.bulk_insert(rows)


def scan(path: Path, where: str | None = None, columns: list[str] | None = None) -> int:
    """Read rows batch by batch, as a consumer does; how many."""
    return sum(batch.num_rows for batch in open_table(path).scan(where=where, columns=columns).to_batches())
