"""Tables in places that Spark's own file systems do not reach are left to the Python source, and it is said why."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import fsspec
import pyarrow as pa
from pyspark_hudimeta import HudiTable
from pyspark_hudimeta.native.spark_places import why_spark_cannot_open

import hudimeta

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_only_places_without_a_file_system_are_left_to_python(spark: SparkSession, tmp_path: Path) -> None:
    assert why_spark_cannot_open(spark, str(tmp_path)) == ""
    assert why_spark_cannot_open(spark, f"file://{tmp_path}") == ""
    assert "no file system for s3://" in why_spark_cannot_open(spark, "s3://bucket/trips")


def test_a_scan_says_why_python_reads_every_slice(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
    hudimeta.Table.create(tmp_path / "t", rows.schema, key="id").insert(rows)
    place = f"/{uuid.uuid4().hex}"
    fsspec.filesystem("memory").put(str(tmp_path / "t"), place, recursive=True)
    scan = HudiTable(spark, f"memory:/{place}").scan("x > 1")
    assert (scan.parts.native.num_rows, scan.parts.others.num_rows) == (0, 1)
    assert scan.parts.reasons == ("Spark has no file system for memory:// (its jar is not there)",)
