"""The DataFrames of Apache Hudi's quick start, in a plain and in an attached session: a table without key columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.functions import col

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRIPS = [(1, "u1", "rider-A", 19.1, "sf"), (2, "u2", "rider-C", 27.7, "sf"), (3, "u3", "rider-F", 34.15, "sao_paulo")]
OPTIONS = {"hoodie.table.name": "trips_table", "hoodie.datasource.write.partitionpath.field": "city"}


def save(frame: DataFrame, path: Path, mode: str = "append", operation: str = "") -> None:
    named = {"hoodie.datasource.write.operation": operation} if operation else {}
    frame.write.format("hudimeta").options(**OPTIONS, **named).mode(mode).save(str(path))


def test_rows_that_were_loaded_are_updated_and_deleted(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    save(session.createDataFrame(TRIPS, "ts long, uuid string, rider string, fare double, city string"), path, "overwrite")

    def loaded(condition: str = "true") -> DataFrame:
        return session.read.format("hudimeta").load(str(path)).filter(condition)

    save(loaded("rider == 'rider-C'").withColumn("fare", col("fare") * 10), path)
    assert sorted(loaded().select("rider", "fare").collect()) == [("rider-A", 19.1), ("rider-C", 277.0), ("rider-F", 34.15)]
    save(loaded("rider == 'rider-F'"), path, operation="delete")
    assert sorted(row.rider for row in loaded().collect()) == ["rider-A", "rider-C"]
    save(loaded("rider == 'rider-A'"), path, operation="insert")
    assert sorted(row.rider for row in loaded().collect()) == ["rider-A", "rider-A", "rider-C"]


def test_the_empty_payload_deletes_the_rows(session: SparkSession, tmp_path: Path) -> None:
    path, keyed = tmp_path / "trips", {"hoodie.datasource.write.recordkey.field": "uuid"}
    rows = session.createDataFrame(TRIPS, "ts long, uuid string, rider string, fare double, city string").coalesce(1)
    rows.write.format("hudimeta").options(**OPTIONS, **keyed).mode("append").save(str(path))
    payload = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.EmptyHoodieRecordPayload"}
    rows.filter("uuid = 'u2'").write.format("hudimeta").options(**OPTIONS, **keyed, **payload).mode("append").save(str(path))
    assert sorted(row.uuid for row in session.read.format("hudimeta").load(str(path)).collect()) == ["u1", "u3"]
