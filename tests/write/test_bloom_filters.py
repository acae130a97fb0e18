"""The bloom filters of base files: the form that Apache Hudi expects of the table's files, and what is said of damaged ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.errors import CorruptFileError
from hudimeta.formats.bloom import BloomFilter
from hudimeta.indexes.bloom_filters.look_up import excluded_by_filters
from hudimeta.indexes.simple.look_up import RowsByFile
from hudimeta.table.key_file import KeyFile
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation

FORM = "hoodie.bloom.index.filter.type"
WITH_INDEX = {**SIMPLE_OPTIONS, "hoodie.metadata.index.bloom.filter.enable": "true"}


def filters_in_footers(path: str) -> list[tuple[str, BloomFilter]]:
    """Label and filter of every base file."""
    found = []
    for file in sorted(Path(path).glob("p*/*.parquet")):
        entries = {k.decode(): v.decode() for k, v in pq.read_metadata(file).metadata.items()}
        bloom = BloomFilter.from_base64(entries["org.apache.hudi.bloomfilter"])
        found.append((entries["hoodie_bloom_filter_type_code"], bloom))
    return found


@pytest.mark.parametrize("form", [None, "DYNAMIC_V0", "SIMPLE"])
def test_files_have_the_form_of_the_option(tmp_path: Path, form: str | None) -> None:
    """New ones, and those that take the filter of the file before over, whatever form that had."""
    table = ModelledTable(str(tmp_path / "t"), {**WITH_INDEX, FORM: "SIMPLE"})
    table.write(Operation.INSERT, simple_rows(range(40), 1))
    table = ModelledTable(table.path, WITH_INDEX | ({FORM: form} if form else {}), model=table.model, exists=True)
    before = len(filters_in_footers(table.path))
    table.write(Operation.UPSERT, simple_rows(range(30, 50), 2))
    table.write(Operation.DELETE, simple_rows([3, 41], 3))
    written = filters_in_footers(table.path)
    wanted = form or "DYNAMIC_V0"
    assert len([label for label, bloom in written if label == bloom.type_code == wanted]) >= len(written) - before
    newest = hudimeta.Table(table.path).scan().to_table()
    assert newest.num_rows == 48
    assert all(sum(bloom.might_contain(key) for _, bloom in written) for key in newest["id"].to_pylist())
    assert hudimeta.Table(table.path).metadata.validate().holds
    table.check()


def test_filters_go_with_the_files_that_a_clean_deletes(tmp_path: Path) -> None:
    keep_one = {"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"}
    table = ModelledTable(str(tmp_path / "t"), {**WITH_INDEX, **keep_one})
    for ts in range(1, 5):
        table.write(Operation.UPSERT, simple_rows(range(9), ts))
    handle = hudimeta.Table(table.path, keep_one)
    before = handle.metadata.records("bloom_filters").num_rows
    assert before == len(filters_in_footers(table.path))
    deleted = handle.clean().deleted
    assert deleted > 0
    left = hudimeta.Table(table.path).metadata.records("bloom_filters").num_rows
    assert left == len(filters_in_footers(table.path)) == before - deleted


def test_a_damaged_filter_of_the_metadata_table_is_told_from_a_damaged_file() -> None:
    damaged = pa.table({"partition_path": ["p0"], "file_name": ["a.parquet"], "type_code": ["DYNAMIC_V0"], "bloom": [b"AAAA"]})
    where = RowsByFile([KeyFile("p0", "a", "a.parquet", 1)], [np.array([0])])
    with pytest.raises(CorruptFileError) as caught:
        excluded_by_filters(pa.array(["k1"]), where, lambda pairs: damaged)
    assert caught.value.path == ".hoodie/metadata/bloom_filters (filter of p0/a.parquet)"
