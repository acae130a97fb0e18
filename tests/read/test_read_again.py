"""`hudimeta.read.retry.on.clean`: a read whose file a cleaner removes between its plan and its rows plans again by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta.api.table import Table
from hudimeta.errors import FileRemoved
from hudimeta.read.scan import Scan
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation

AGAIN = {"hudimeta.read.retry.on.clean": "true"}
CLEANS = {"hoodie.clean.commits.retained": "1"}


@pytest.fixture
def table(tmp_path: Path) -> ModelledTable:
    made = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    made.write(Operation.UPSERT, simple_rows(range(6), 1))
    return made


def replaced_and_cleaned(table: ModelledTable, ids: range = range(6)) -> None:
    for ts in (2, 3, 4):
        table.write(Operation.UPSERT, simple_rows(ids, ts))
    assert Table(table.path, CLEANS).clean().deleted


READS: dict[str, Callable[[Scan], pa.Table]] = {
    "table": lambda scan: scan.to_table(),
    "batches": lambda scan: pa.Table.from_batches(list(scan.to_batches()), scan.schema),
    "stream": lambda scan: pa.table(scan),
}


@pytest.mark.parametrize("read", READS)
def test_it_reads_the_table_of_then_and_says_so(table: ModelledTable, read: str) -> None:
    scan = Table(table.path, AGAIN).scan()
    assert scan.plan().slices.num_rows == 2
    replaced_and_cleaned(table)
    table.model.check(READS[read](scan))
    assert any("was removed after the read had been planned" in note for note in scan.report.notes)


def test_it_counts_the_rows_of_then(table: ModelledTable) -> None:
    scan = Table(table.path, AGAIN).scan("x >= 1")
    scan.plan()
    replaced_and_cleaned(table)
    assert scan.count() == 6


def test_it_fails_once_rows_were_handed_out(table: ModelledTable) -> None:
    batches = Table(table.path, AGAIN).scan().to_batches()
    next(batches)
    replaced_and_cleaned(table)
    with pytest.raises(FileRemoved):
        next(batches)


def test_a_file_that_stays_away_is_an_error(table: ModelledTable) -> None:
    for file in Path(table.path).rglob("*.parquet"):
        file.unlink()
    with pytest.raises(FileRemoved, match="If nobody cleans, the file is lost"):
        Table(table.path, AGAIN).scan().to_table()
