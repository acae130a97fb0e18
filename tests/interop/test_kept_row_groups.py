"""Apache Hudi reads, updates by filters, and validates base files of which we copied row groups and columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import hudimeta
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import Model, Ours, Theirs, plain_rows, row

WITH = {"hoodie.metadata.index.bloom.filter.enable": "true"}
FIRST = 12_000


@pytest.mark.timeout(300)
@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE"])
def test_hudi_goes_on_with_copied_row_groups(hudi: ApacheHudi, tmp_path: Path, index: str) -> None:
    path, model = tmp_path / "table", Model()
    ours = Ours(path, partitioned=False, options=WITH)
    theirs = Theirs(path, hudi, partitioned=False, options={**WITH, "hoodie.index.type": index})

    def turn(side: Ours | Theirs, operation: str, first: int, last: int, ts: int) -> None:
        rows = [row(number, ts) for number in range(first, last)]
        side.write(operation, rows)
        model.put(rows)

    turn(ours, "bulk_insert", 0, FIRST, 1)
    turn(ours, "insert", FIRST, FIRST + 50, 2)
    turn(ours, "upsert", FIRST + 40, FIRST + 60, 3)
    (name,) = hudimeta.Table(path).file_slices()["base_file"].to_pylist()
    groups = pq.read_metadata(path / name)
    assert [groups.row_group(number).num_rows for number in range(groups.num_row_groups)] == [FIRST, 60]
    assert plain_rows(hudi.read(path).table) == model.sorted()
    one = hudi.read(path, where=f"id = 'k{FIRST + 55:05d}'").table
    assert plain_rows(one) == [row(FIRST + 55, 3)]
    assert hudi.validate(path)["bloom_filters"]
    turn(ours, "upsert", 100, 130, 3)
    assert hudimeta.Table(path).report().column_chunks_kept
    assert plain_rows(hudi.read(path, where="id >= 'k00099' and id < 'k00103'").table) == [
        row(99, 1),
        row(100, 3),
        row(101, 3),
        row(102, 3),
    ]
    turn(theirs, "upsert", FIRST + 30, FIRST + 70, 4)
    turn(theirs, "upsert", 5, 8, 5)
    turn(ours, "insert", FIRST + 70, FIRST + 80, 6)
    assert plain_rows(hudimeta.Table(path).scan().to_table()) == model.sorted() == plain_rows(hudi.read(path).table)
    report = hudimeta.Table(path).metadata.validate()
    assert report.holds, str(report)
