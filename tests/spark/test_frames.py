"""Tables as the rest of Spark meets them in an attached session: save modes, the catalog, Spark ML, pandas on Spark."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.functions import col, lit
from pyspark_hudimeta import last_commit

import hudimeta
from tests.spark.tables import KEYS, check, contents, create, ids, refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

WITHOUT_PARTITIONS = {key: value for key, value in KEYS.items() if "partitionpath" not in key}


def some(spark: SparkSession, numbers: list[int], ts: int = 1) -> DataFrame:
    return spark.createDataFrame([(n, f"p{n % 5}", ts, float(n)) for n in numbers], "id long, part string, ts long, x double")


def writer(frame: DataFrame, **options: str) -> DataFrameWriter:
    return frame.write.format("hudimeta").options(**options or KEYS, **{"hoodie.table.name": "t"})


def routed(path: Path) -> bool:
    return any(note.startswith("routed: ") for note in last_commit(str(path)).notes)


@pytest.mark.rotation(3)
def test_save_modes_and_partitions_of_a_folder(attached: SparkSession, tmp_path: Path) -> None:
    path, other = tmp_path / "t", tmp_path / "other"
    writer(some(attached, [1, 2])).save(str(path))
    assert routed(path)
    for mode in (None, "error", "errorifexists"):
        said = refusal(lambda mode=mode: writer(some(attached, [3])).mode(mode).save(str(path)))
        assert said.startswith("HUDIMETA_TABLE: there is a table at")
        assert "mode('append')" in said
    writer(some(attached, [3])).mode("ignore").save(str(path))
    assert contents(path, "id") == [(1,), (2,)]
    writer(some(attached, [3]), **WITHOUT_PARTITIONS).mode("ignore").partitionBy("part").save(str(other))
    assert hudimeta.Table(other).properties.partition_fields == ("part",)
    writer(some(attached, [8]), **WITHOUT_PARTITIONS).mode("append").partitionBy("PART").save(str(other))
    wrong = writer(some(attached, [9]), **WITHOUT_PARTITIONS).mode("append").partitionBy("x")
    assert "what the table has: part" in refusal(lambda: wrong.save(str(other)))
    assert contents(other, "id") == [(3,), (8,)]
    assert ids(attached.read.format("hudimeta").load(str(other / "*"))) == [3, 8]
    assert ids(attached.read.format("hudimeta").load([str(path), str(other)])) == [1, 2, 3, 8]
    check(other)


@pytest.mark.rotation(3)
def test_rows_that_meet_a_condition_are_overwritten(attached: SparkSession) -> None:
    writer(some(attached, [1, 2, 6, 7])).saveAsTable("frames_t")
    try:
        some(attached, [11, 6], 2).writeTo("frames_t").overwrite((col("part") == "p1") & col("id").between(1, 20))
        assert ids(attached.table("frames_t")) == [2, 6, 7, 11]
        said = refusal(lambda: some(attached, [12]).writeTo("frames_t").overwrite(col("part") == lit("p1")))
        assert "true of every row" in said
        some(attached, [4]).writeTo("frames_t").overwrite(lit(True))
        assert ids(attached.table("frames_t")) == [4]
        with pytest.raises(Exception, match="nope"):
            some(attached, [5]).writeTo("frames_t").overwrite(col("nope") > 1)
        assert ids(attached.table("frames_t")) == [4]
    finally:
        attached.sql("drop table frames_t")


@pytest.mark.rotation(3)
def test_the_catalog_machine_learning_and_pandas(attached: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    catalog = attached.catalog
    try:
        assert ids(catalog.createTable("frames_c", path=str(tmp_path / "t"), source="hudimeta")) == list(range(10))
        assert catalog.tableExists("frames_c")
        assert "frames_c" in [table.name for table in catalog.listTables()]
        assert next((c.name, c.dataType) for c in catalog.listColumns("frames_c")) == ("id", "bigint")
        catalog.cacheTable("frames_c")
        assert (catalog.isCached("frames_c"), attached.table("frames_c").count()) == (True, 10)
        some(attached, [50]).writeTo("frames_c").append()
        assert attached.table("frames_c").count() == 11, "what was cached is read anew"
        catalog.uncacheTable("frames_c")
        catalog.refreshTable("frames_c")
        assert ids(attached.table("spark_catalog.default.frames_c").where("x >= 9")) == [9, 50]
        assert _slope(attached.table("frames_c")) == pytest.approx(1.0)
        assert _by_pandas("frames_c", tmp_path) == ({"p0": 55.0, "p1": 7.0, "p2": 9.0, "p3": 11.0, "p4": 13.0}, 11)
        assert contents(tmp_path / "by_pandas", "id") == [(n,) for n in (*range(10), 50)]
    finally:
        attached.sql("drop table frames_c")


def _slope(frame: DataFrame) -> float:
    """What a pipeline of Spark ML learns."""
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import VectorAssembler
    from pyspark.ml.regression import LinearRegression

    stages: list[Any] = [VectorAssembler(inputCols=["id"], outputCol="f"), LinearRegression(featuresCol="f", labelCol="x")]
    return float(Pipeline(stages=stages).fit(frame).stages[-1].coefficients[0])


def _by_pandas(name: str, home: Path) -> tuple[dict[str, float], int]:
    """Sums by partition of a table of the catalog and the rows of its folder, which become another table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas on Spark's own
        import pyspark.pandas as ps

        sums: dict[str, float] = ps.read_table(name).groupby("part")["x"].sum().to_dict()
        rows = ps.read_spark_io(str(home / "t"), format="hudimeta")
        given = {**KEYS, "hoodie.table.name": "t"}
        rows.spark.to_spark_io(str(home / "by_pandas"), format="hudimeta", mode="append", **given)
        return sums, len(rows)
