"""Bloom filters of base files follow every commit, and leave files out of reads by key."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from hudimeta.errors import ConfigError
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation

BLOOMS = {
    **SIMPLE_OPTIONS,
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.parquet.small.file.limit": "0",
}


def _files(table: ModelledTable) -> set[str]:
    slices = hudimeta.Table(table.path).file_slices()
    return {name for name in slices["base_file"].to_pylist() if name}


@pytest.mark.rotation(3)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_every_base_file_has_its_filter_after_every_operation(tmp_path: Path, kind: str) -> None:
    options = {**BLOOMS, "hoodie.datasource.write.table.type": kind, "hoodie.clean.commits.retained": "1"}
    table = ModelledTable(str(tmp_path / "t"), options)
    for step, operation in enumerate(
        (Operation.INSERT, Operation.UPSERT, Operation.BULK_INSERT, Operation.DELETE, Operation.INSERT_OVERWRITE)
    ):
        table.write(operation, simple_rows(range(step * 5, step * 5 + 12), step + 1))
        check_all(table.storage)
        report = hudimeta.Table(table.path).metadata.validate(["bloom_filters"])
        assert report.holds, report
        assert report.check("bloom_filters").compared == len(_files(table))
    handle = hudimeta.Table(table.path, options)
    if kind == "MERGE_ON_READ":
        table.write(Operation.UPSERT, simple_rows(range(20, 28), 9))
        assert handle.compact()
    handle.clean()
    check_all(table.storage)
    records = handle.metadata.records("bloom_filters")
    stored = {path.name for path in Path(table.path).rglob("*.parquet")}
    assert len(records) == len(stored)  # those of deleted files are gone
    table.model.check(table.read())


def test_filters_leave_files_out(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), BLOOMS)
    for start in range(0, 40, 10):
        table.write(Operation.BULK_INSERT, simple_rows(range(start, start + 10), 1, partitions=1))
    options = {"hudimeta.index.use": "bloom_filters"}
    scan = hudimeta.Table(table.path, options).scan(where="id = 'k0025'")
    assert scan.to_table().num_rows == 1
    assert (scan.report.files, scan.report.files_kept) == (4, 1)


def test_a_table_that_has_no_metadata_yet_gets_filters_of_all_its_files(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.enable": "false"})
    table.write(Operation.INSERT, simple_rows(range(30), 1))
    later = ModelledTable(table.path, BLOOMS, model=table.model, exists=True)
    later.write(Operation.UPSERT, simple_rows(range(5, 35), 2))
    check_all(table.storage)
    assert hudimeta.Table(table.path).metadata.validate().holds
    assert len(hudimeta.Table(table.path).metadata.file_groups("bloom_filters")) == 4


def test_only_record_keys_have_filters(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="create_index"):
        ModelledTable(str(tmp_path / "t"), {**BLOOMS, "hoodie.metadata.index.bloom.filter.column.list": "x"})
    ModelledTable(str(tmp_path / "u"), {**BLOOMS, "hoodie.metadata.index.bloom.filter.column.list": "id"})
