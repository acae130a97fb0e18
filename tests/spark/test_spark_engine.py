"""Services on Spark's executors: the same results as on threads, errors as they were, and work that really went there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark_hudimeta import HudiTable, SparkEngine

from hudimeta import Table
from hudimeta.errors import CorruptFileError
from hudimeta.indexes.record_window import window
from hudimeta.storage import open_storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def process_of(_: int) -> int:
    return os.getpid()


def failing(number: int) -> int:
    if number >= 3:
        raise CorruptFileError(f"file{number}", number, "whole bytes", "half")
    return number


def test_results_come_in_the_order_of_the_items(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    assert engine.map(lambda n: n * n, range(500)) == [n * n for n in range(500)]
    assert engine.map(lambda n: n, []) == []
    assert os.getpid() not in engine.map(process_of, range(4))


def test_many_bytes_of_items_arrive_as_well(spark: SparkSession) -> None:
    items = [bytes([n]) * 30_000 for n in range(100)]
    assert SparkEngine(spark).map(lambda item: (item[0], len(item)), items) == [(n, 30_000) for n in range(100)]


def test_a_small_compaction_stays_here(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    for ts in range(1, 3):
        table.write(Operation.UPSERT, simple_rows(range(30), ts, partitions=5))
    monkeypatch.setattr(SparkEngine, "map", lambda *_: pytest.fail("a job for some hundred bytes"))
    (report,) = HudiTable(spark, table.path).compact()
    assert report.files_written == 5
    table.model.check(table.read())


def test_the_first_error_arrives_with_its_facts(spark: SparkSession) -> None:
    with pytest.raises(CorruptFileError, match="file3"):
        SparkEngine(spark).map(failing, range(6))


@pytest.mark.rotation(2)
@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_clustering_runs_there(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type: str) -> None:
    monkeypatch.setattr(SparkEngine, "worth_bytes", 0)
    table = ModelledTable(
        str(tmp_path / "t"),
        {
            **SIMPLE_OPTIONS,
            "hoodie.datasource.write.table.type": type,
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.metadata.record.index.enable": "true",
        },
    )
    for ts in range(1, 4):
        table.write(Operation.INSERT, simple_rows(range(ts * 30, ts * 30 + 30), ts, partitions=5))
    table.write(Operation.UPSERT, simple_rows(range(40, 100), 7, partitions=5))
    on_spark = HudiTable(spark, table.path)
    planned = on_spark.cluster("x", partitions=["p1", "p2", "p3"], dry_run=True)
    on_spark.cluster(["x", "id"], strategy="hilbert", partitions=["p1", "p2", "p3"])
    assert "9 file slices in 3 groups" in str(planned)
    assert len(Table(table.path).file_slices()) == 3 + 2 * 3
    table.check()
    assert on_spark.metadata.validate().outcome.value == "holds"


@pytest.mark.rotation(2)
def test_services_of_a_table_run_there(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkEngine, "worth_bytes", 0)
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    for ts in range(1, 5):
        table.write(Operation.UPSERT, simple_rows(range(30), ts, partitions=5))
    on_spark = HudiTable(spark, table.path, {"hoodie.clean.commits.retained": "1"})
    (report,) = on_spark.compact()
    assert report.files_written == 5
    assert [len(logs) for logs in Table(table.path).file_slices()["log_files"].to_pylist()] == [0] * 5
    on_spark.table.metadata.create_index(type="bloom_filters")
    on_spark.table.metadata.create_index(type="record_index")
    assert on_spark.table.metadata.validate().outcome.value == "holds"
    table.write(Operation.UPSERT, simple_rows(range(30), 9, partitions=5))
    on_spark.compact()
    assert on_spark.clean().deleted
    table.model.check(table.read())
    check_all(open_storage(table.path))


def test_the_keys_of_a_record_window_are_read_by_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hudimeta.record.window.days": "3"})
    table.write(Operation.INSERT, simple_rows(range(30), 1, partitions=5))
    shutil.rmtree(tmp_path / "t/.hoodie/.aux/hudimeta/record_window")
    monkeypatch.setattr(window, "_TASK_BYTES", 1)  # each slice is worth a task
    jobs = []
    work = SparkEngine.map
    monkeypatch.setattr(SparkEngine, "map", lambda self, task, items: jobs.append(len(items)) or work(self, task, items))
    rows = simple_rows(range(10, 40), 2, partitions=5)
    frame = spark.createDataFrame(rows.to_pylist(), "id string, part string, ts long, x double")
    report = HudiTable(spark, table.path).upsert(frame)
    assert 5 in jobs, jobs
    assert report.index == "record window index: 30 keys looked up, 20 keys found (3 days, 5 file slices in it)"
    assert "the record window read 5 file slices anew" in report.notes
    table.model.write(Operation.UPSERT, rows)
    table.model.check(table.read())
    again = HudiTable(spark, table.path).upsert(frame)
    assert not any("anew" in note for note in again.notes), "tasks told the window what they wrote"
    assert again.updated == 30
    check_all(table.storage)
