"""Apache Hudi builds the metadata partition `bloom_filters` over files of ours, whose filters it labels as its own form."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.formats.bloom import BloomFilter
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import Ours, Theirs, plain_rows, row

WITH = {"hoodie.metadata.index.bloom.filter.enable": "true"}


@pytest.mark.timeout(300)
def test_both_look_up_keys_in_filters_that_hudi_collected(hudi: ApacheHudi, tmp_path: Path) -> None:
    path = tmp_path / "table"
    ours = Ours(path)
    ours.write("bulk_insert", [row(n, 1) for n in range(60)])
    ours.write("upsert", [row(n, 2) for n in range(20)])
    theirs = Theirs(path, hudi, options={**WITH, "hoodie.index.type": "BLOOM"})
    theirs.write("upsert", [row(n, 3) for n in range(10, 30)])
    theirs.write("upsert", [row(n, 4) for n in range(25, 70)])
    expected = [row(n, 4 if n >= 25 else 3 if n >= 10 else 2) for n in range(70)]
    table = hudimeta.Table(path)
    assert "bloom_filters" in set(table.properties.metadata_partitions)
    assert plain_rows(table.scan().to_table()) == expected == plain_rows(hudi.read(path).table)
    labels = table.metadata.records("bloom_filters")["type_code"].unique()
    assert labels.to_pylist() == ["DYNAMIC_V0"]
    assert hudi.validate(path)["bloom_filters"]
    for number in (3, 12, 40, 69):
        scan = table.scan(f"id = 'k{number:05d}'")
        assert plain_rows(scan.to_table()) == [expected[number]]
        assert len(scan.plan().slices) == 1
    report = table.metadata.validate()
    assert report.holds, str(report)
    ours = Ours(path, options={"hoodie.index.type": "BLOOM"})
    done = hudimeta.Table(path, ours.options).upsert(pa.Table.from_pylist([row(n, 5) for n in (3, 40)], ours.schema))
    assert (done.updated, done.inserted) == (2, 0)


@pytest.mark.timeout(300)
def test_hudi_looks_up_keys_in_filters_that_were_put_side_by_side(hudi: ApacheHudi, tmp_path: Path) -> None:
    """Rows of different sizes, as of files that are clustered without decoding them; in footers and in the metadata table."""
    path = tmp_path / "table"
    options = {**WITH, "hoodie.parquet.small.file.limit": "0"}
    ours = Ours(path, options=options)
    for first, last in ((0, 40), (40, 46), (46, 60)):
        ours.write("insert", [row(n, 1) for n in range(first, last)])
    copies = {"hoodie.clustering.execution.strategy.class": "SparkBinaryCopyClusteringExecutionStrategy"}
    (report,) = hudimeta.Table(path, {**options, **copies}).cluster()
    assert report.groups_copied == 3
    records = hudimeta.Table(path).metadata.records("bloom_filters").to_pylist()
    rows = [len(BloomFilter.from_base64(one["bloom"]).rows) for one in records if not one["is_deleted"]]
    assert rows.count(3) == 3
    for more in (WITH, {}):
        theirs = Theirs(path, hudi, options={**more, "hoodie.index.type": "BLOOM"})
        theirs.write("upsert", [row(n, 3) for n in range(30, 70)])
        expected = [row(n, 3 if n >= 30 else 1) for n in range(70)]
        assert plain_rows(hudimeta.Table(path).scan().to_table()) == expected == plain_rows(hudi.read(path).table)
