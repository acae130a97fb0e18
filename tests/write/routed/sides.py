"""Tables that are written twice, by tasks and by the engine itself, and what must be the same of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import hudimeta
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.types import Operation
from hudimeta.write.routed.driver import write_routed
from hudimeta.write.routed.executors import LocalExecutors
from hudimeta.write.routed.sources import GivenRows

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
INDEXED = ["column_stats", "record_index", "bloom_filters", "secondary_index_ts"]
SAME = ("inserted", "updated", "deleted", "unmatched_deletes", "dropped_duplicates", "looked_up", "found", "moved")
"""What a report says alike; into how many files tasks write is their own affair."""


def rows(first: int, last: int, ts: int = 1, parts: int = 3) -> pa.Table:
    """Rows of some ids in a few partitions."""
    ids = np.arange(first, last)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "part": pa.array([f"p{i % parts}" for i in ids], pa.string()),
            "ts": pa.array(np.full(len(ids), ts), pa.int64()),
            "x": pa.array(ids * float(ts)),
        }
    )


def routed(
    path: Path, operation: Operation, parts: Sequence[pa.Table], options: Mapping[str, str] | None = None, run: Any = None
) -> CommitReport:
    """Write the parts, each by a task."""
    session = WriteSession(CountingStorage(open_storage(path)), OPTIONS.read(options))
    return write_routed(session, GivenRows(operation, parts[0].schema), run or LocalExecutors(parts))


def same_tables(tmp_path: Path, **more: Any) -> tuple[Path, Path]:
    """Two empty tables alike: one for routed writes, one for the engine's."""
    paths = tmp_path / "routed", tmp_path / "engine"
    for path in paths:
        arguments = {"key": "id", "partition_by": "part", "ordering": "ts", **more}
        hudimeta.Table.create(path, rows(0, 0).schema, name="t", **arguments)
    return paths


def contents(path: Path) -> list[tuple[Any, ...]]:
    """All rows, sorted."""
    table = hudimeta.Table(path).scan(columns=["id", "part", "ts", "x"]).to_table()
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def contents_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table in memory, sorted."""
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def both(
    paths: tuple[Path, Path], operation: Operation, parts: Sequence[pa.Table], options: Mapping[str, str] | None = None
) -> CommitReport:
    """Do the same to both tables, and compare what came of it."""
    report = routed(paths[0], operation, parts, options)
    expected = getattr(hudimeta.Table(paths[1], options), operation.value.lower())(pa.concat_tables(parts))
    for name in SAME:
        assert getattr(report, name) == getattr(expected, name), (operation, name)
    assert contents(paths[0]) == contents(paths[1])
    return report
