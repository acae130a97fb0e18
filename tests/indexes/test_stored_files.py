"""What statistics say of files that were there before the index.

Apache Hudi makes statistics of a partition anew of what those of its files say: where one says nothing, its readers lose rows.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudimeta
from hudimeta.commit.session import WriteSession
from hudimeta.metadata import column_stats
from hudimeta.slices.single_files import SingleFile, held_by, task_for
from hudimeta.snapshot.file_slice import slices_of
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
STATISTICS = ("column_stats", "partition_stats")


def made(folder: Path, kind: str) -> ModelledTable:
    """A table without statistics."""
    options = {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": kind}
    table = ModelledTable(str(folder / "t"), {**options, "hoodie.metadata.index.column.stats.enable": "false"})
    table.write(Operation.INSERT, simple_rows(range(40), 1))
    return table


def index(table: ModelledTable) -> None:
    for name in STATISTICS:
        hudimeta.Table(table.path).metadata.create_index(type=name)


def stated(table: ModelledTable) -> dict[str, tuple[Any, Any]]:
    """Bounds of `ts` by file."""
    metadata = hudimeta.Table(table.path).snapshot().metadata
    assert metadata is not None
    rows = metadata.records("column_stats")
    rows = rows.filter(pc.equal(rows["column_name"], "ts"))
    bounds = (column_stats.typed(rows, pa.int64())[side].to_pylist() for side in ("min", "max"))
    return dict(zip(rows["file_name"].to_pylist(), zip(*bounds, strict=True), strict=True))


def newest_files(table: ModelledTable) -> set[str]:
    slices = slices_of(hudimeta.Table(table.path).file_slices())
    return {name for one in slices for name in (one.base_file, *one.log_files) if name is not None}


def test_log_files_of_before_the_index_have_statistics(tmp_path: Path) -> None:
    table = made(tmp_path, "MERGE_ON_READ")
    table.write(Operation.UPSERT, simple_rows(range(0, 40, 3), 70))
    table.write(Operation.DELETE, simple_rows(range(1, 40, 8), 80))
    index(table)
    bounds = stated(table)
    assert bounds.keys() == newest_files(table)
    logs = {name: both for name, both in bounds.items() if name.startswith(".")}
    assert set(logs.values()) == {(70, 70), (None, None)}, "a file of deletes bounds nothing"
    assert hudimeta.Table(table.path).metadata.validate().holds
    scan = hudimeta.Table(table.path, {"hudimeta.index.use": "column_stats"}).scan(where="ts > 70")
    assert not scan.count()
    assert not scan.report.files_kept


@KINDS
def test_files_of_a_write_that_began_before_the_index_have_statistics(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)
    beside = Interrupted(lambda: index(table))
    rows = simple_rows(range(30, 50), 9)
    report = write_rows(WriteSession(table.storage, table.options, engine=beside), Operation.UPSERT, rows)
    assert report.attempts == 1
    table.model.write(Operation.UPSERT, rows)
    assert newest_files(table) <= stated(table).keys()
    table.model.check(table.read())
    assert hudimeta.Table(table.path).metadata.validate().holds


def test_an_index_hears_of_rows_that_a_log_replaces_and_deletes(tmp_path: Path) -> None:
    """A log file of version 6 has blocks of several writes: who reads the table as of the first sees its rows."""
    table = made(tmp_path, "MERGE_ON_READ")
    for ts in (5, 6):
        table.write(Operation.UPSERT, simple_rows([0], ts))
    table.write(Operation.DELETE, simple_rows([0], 7))
    opened = hudimeta.Table(table.path)
    (one,) = (s for s in slices_of(opened.file_slices()) if len(s.log_files) == 3)
    logs = SingleFile(one.log_files[0], True, replace(one, base_file=None, base_size=0))
    task = task_for(table.storage, opened.snapshot().properties, opened.timeline, ["ts"])
    assert [row for piece in held_by(logs, task, table.storage) for row in piece["ts"].to_pylist()] == [5, 6]
