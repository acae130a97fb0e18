"""What the jobs of a routed write are about: rows and files that pass through memory, requests, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.types import Operation
from hudimeta.write.routed.executors import LocalExecutors
from tests.write.routed.sides import KINDS, routed, rows, same_tables


class Weighed(LocalExecutors):
    """Notes what each job is said to be about; None where nobody knows."""

    def __init__(self, parts: Sequence[pa.Table]) -> None:
        super().__init__(parts)
        self.sizes: dict[str, int | None] = {}

    def map(self, task: Any, items: Any, size: int | None = None) -> list[Any]:
        self.sizes[type(task.task).__name__] = size
        return super().map(task, items, size)


def sizes(path: Path, parts: Sequence[pa.Table], options: Mapping[str, str] | None = None) -> dict[str, int | None]:
    """What the jobs of an upsert are about."""
    run = Weighed(parts)
    routed(path, Operation.UPSERT, parts, options, run)
    return run.sizes


def base_bytes(path: Path) -> int:
    """Of the base files of the newest slices."""
    return sum(hudimeta.Table(path).file_slices()["base_size"].to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_is_as_large_as_the_rows_and_files_that_it_passes_through_memory(tmp_path: Path, kind: str) -> None:
    path, _ = same_tables(tmp_path, type=kind, indexes=["record_index"])
    routed(path, Operation.BULK_INSERT, [rows(0, 30_000)])
    base, batch = base_bytes(path), rows(0, 60, 2)
    found = sizes(path, [batch])
    assert 0 < (found["LookUp"] or 0) < 20_000, "a record index reads no file of the table"
    low, high = (base, base + 20_000) if kind == "COPY_ON_WRITE" else (0, 20_000)
    assert low < (found["PieceWriter"] or 0) < high


def test_a_look_up_in_files_is_as_large_as_their_keys_where_they_are_few(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path, indexes=["column_stats"])
    routed(path, Operation.BULK_INSERT, [rows(0, 30_000)])
    alone, base = rows(0, 60, 2, parts=1), base_bytes(path)
    found = sizes(path, [alone])["LookUp"] or 0
    assert base / 3 / 20 < found < base / 3 / 16 + 20_000, "one partition of three"
    assert sizes(path, [alone], {"hoodie.index.type": "GLOBAL_SIMPLE"})["LookUp"] is None
    assert sizes(path, [rows(0, 200, 3, parts=100)])["LookUp"] is None, "many partitions"


def test_requests_of_tasks_are_in_the_report(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path, indexes=["column_stats"])
    report = routed(path, Operation.UPSERT, [rows(0, 20), rows(20, 30)])
    files = [file for part in path.iterdir() if part.name.startswith("p") for file in part.glob("*.parquet")]
    assert report.requests["PUT", "data"] >= len(files) == 3
    found = hudimeta.Table(path).report()
    assert found.requests["PUT", "data"] == report.requests["PUT", "data"]


def test_what_is_handed_back_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    path, _ = same_tables(tmp_path, indexes=["record_index", "column_stats", "secondary_index_ts"])
    collected = []
    for first, last in ((0, 300), (1000, 31_000)):
        run = LocalExecutors([rows(first, last)])
        routed(path, Operation.UPSERT, [rows(first, last)], run=run)
        collected.append(run.collected)
    assert collected[1] < 2 * collected[0] + 50_000
