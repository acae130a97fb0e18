"""A manifest is a list of files that Spark reads as a folder, whatever the files are called and wherever they lie."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark_hudimeta.native.manifest import MANIFEST_FILES, base_files, encode_manifest, file_uri, write_manifest

from hudimeta.errors import OutsideTable
from hudimeta.storage import open_storage
from tests.spark.tables import create, ids, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ODD = ["plain", "with blank", "100%", "a%3Db", "k=v", "q?x#y", "[x]", "é–日本", "a+b;c,d", "it's"]


@pytest.mark.parametrize(
    ("root", "path", "uri"),
    [
        ("/t", "p=1/a b.parquet", "file:///t/p=1/a%20b.parquet"),
        ("/", "x", "file:///x"),
        ("/a%20b", "x#", "file:///a%2520b/x%23"),
        ("s3://bucket/t", "é", "s3://bucket/t/%C3%A9"),
        ("gs://bucket", "x", "gs://bucket/x"),
    ],
)
def test_uris(root: str, path: str, uri: str) -> None:
    assert file_uri(root, path) == uri


@pytest.mark.parametrize("partition", ["../victim", "..", "/victim", "linked", "a//b"])
def test_files_outside_are_not_handed_to_spark(partition: str, tmp_path: Path) -> None:
    (tmp_path / "t" / "a").mkdir(parents=True)
    (tmp_path / "victim").mkdir()
    (tmp_path / "t" / "linked").symlink_to(tmp_path / "victim")
    columns = {
        "partition_path": [partition],
        "base_file": ["f.parquet"],
        "base_instant": ["20260101000000000"],
        "base_size": [1],
    }
    with pytest.raises(OutsideTable):
        base_files(pa.table(columns), str(tmp_path / "t"))
    assert base_files(pa.table({**columns, "partition_path": ["a"]}), str(tmp_path / "t")).num_rows == 1


@pytest.mark.oldest
def test_spark_reads_exactly_the_files_listed(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path / "a table", rows(range(20)).set_column(1, "part", pa.array((ODD * 2)[:20])))
    slices = table.file_slices()
    assert slices.num_rows == len(ODD)
    files = base_files(slices.slice(0, 7), table.path)
    write_manifest(open_storage(tmp_path), "plan", files)
    frame = spark.read.option("recursiveFileLookup", "true").schema("id bigint, part string").parquet(str(tmp_path / "plan"))
    shown = {row.part for row in frame.collect()}
    assert len(shown) == 7
    assert shown < set(ODD)
    assert len(frame.inputFiles()) == 7
    told = frame.select("_metadata.file_modification_time", "_metadata.file_size").distinct().collect()
    assert {row.file_size for row in told} == set(files.column("size").to_pylist())
    assert min(row.file_modification_time.year for row in told) >= 2025, "a file's time is its commit's"


def test_an_empty_manifest_is_an_empty_frame(spark: SparkSession, tmp_path: Path) -> None:
    write_manifest(open_storage(tmp_path), "none", MANIFEST_FILES.empty_table())
    frame = spark.read.option("recursiveFileLookup", "true").schema("id bigint").parquet(str(tmp_path / "none"))
    assert ids(frame) == []


def test_slices_without_a_base_file_and_instants_that_are_no_times() -> None:
    slices = pa.table(
        {
            "partition_path": ["", "p"],
            "base_instant": ["00000000000009", "20260101000000000"],
            "base_file": ["f.parquet", None],
            "base_size": pa.array([5, None], pa.int64()),
        }
    )
    files = base_files(slices, "/t")
    assert files.to_pylist() == [{"uri": "file:///t/f.parquet", "size": 5, "modified_ms": 0}]
    assert encode_manifest(files).decode().split("\n")[0] == "v1"
