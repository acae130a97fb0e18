"""Our side's calls, in the words of the public surface; one place, so that every claim measures what a user would write."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa


def open_table(path: Path, options: Mapping[str, str] | None = None) -> Any:
    """`hudimeta.Table`, the import included: the first call of a process pays for it."""
    import hudimeta

    return hudimeta.Table(str(path), options)


def keeping_plans(folder: Path) -> dict[str, str]:
    """Options with which plans of any size are kept in a folder."""
    return {
        "hudimeta.plan.cache": "local",
        "hudimeta.plan.cache.dir": str(folder),
        "hudimeta.plan.cache.min.files": "0",
    }


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


def locate(table: Any, keys: pa.Array) -> int:
    """How many of some record keys the record index knows."""
    return int(table.metadata.record_index(keys).num_rows)


@contextlib.contextmanager
def storage_wrapped(wrap: Callable[[Any], Any]) -> Iterator[None]:
    """Tables that are opened inside stand on `wrap(storage)`: it counts requests, or makes them slow."""
    face: Any = importlib.import_module("hudimeta.api.table")
    plain = face.open_storage
    face.open_storage = lambda *location: wrap(plain(*location))
    try:
        yield
    finally:
        face.open_storage = plain


def create(
    path: Path, schema: pa.Schema, key: str, partition: str, ordering: str, kind: str, indexes: list[str] | None = None
) -> Any:
    """An empty table with the default indexes, or others."""
    import hudimeta

    how: dict[str, Any] = {"partition_by": [partition], "ordering": [ordering], "type": kind}
    if indexes is not None:
        how["indexes"] = indexes
    return hudimeta.Table.create(str(path), schema, key=key, **how)


def create_lineitem(path: Path, schema: pa.Schema, indexes: list[str], kind: str = "COPY_ON_WRITE") -> Any:
    """An empty lineitem table."""
    return create(path, schema, "key", "ship_year", "l_linenumber", kind, indexes)


def bulk_insert(path: Path, rows: pa.Table, indexes: list[str], kind: str = "COPY_ON_WRITE") -> None:
    """A new lineitem table with these rows."""
    create_lineitem(path, rows.schema, indexes, kind).bulk_insert(rows)


def upsert(path: Path, rows: pa.Table, options: dict[str, str] | None = None) -> Any:
    """Update and insert; the table is opened for it. The report."""
    import hudimeta

    return upsert_into(hudimeta.Table(str(path), options), rows)


def upsert_into(table: Any, rows: pa.Table) -> Any:
    """Update and insert. The report."""
    return table.upsert(rows)


def update_where(path: Path, where: str) -> Any:
    """Change a text of lineitem's rows that meet a condition."""
    return open_table(path).update({"l_shipinstruct": "'LEAVE AT THE DOOR'"}, where)


def delete_where(path: Path, where: str) -> Any:
    """Delete rows that meet a condition."""
    return open_table(path).delete(where=where)


def cluster(path: Path) -> Any:
    """Put small files together."""
    return open_table(path).cluster()


def clean(path: Path, options: Mapping[str, str] | None = None) -> Any:
    """Remove the files that no retained moment needs."""
    return open_table(path, options).clean()


def scan(path: Path, where: str | None = None, columns: list[str] | None = None) -> int:
    """Read rows batch by batch, as a consumer does; how many."""
    return sum(batch.num_rows for batch in open_table(path).scan(where=where, columns=columns).to_batches())


def count(path: Path, where: str | None = None) -> int:
    """How many rows there are."""
    return int(open_table(path).scan(where=where).count())
