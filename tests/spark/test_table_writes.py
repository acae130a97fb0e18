"""`insertInto` and `saveAsTable` of an attached session: by name what `save` is by path, and what SQL does with a query."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.functions import col, expr, lit
from pyspark_hudimeta import HudiTable, attach, detach, last_commit

from tests.spark.tables import KEYS, check, create, refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUMBER = count()


@pytest.fixture
def name(attached: SparkSession) -> Iterator[str]:
    """A name for a table, which is dropped."""
    found = f"named_{next(NUMBER)}"
    yield found
    attached.sql(f"drop table if exists {found} purge")


def some(spark: SparkSession, ids: list[int], ts: int) -> DataFrame:
    return spark.createDataFrame([(i, f"p{i % 5}", ts, float(i * ts)) for i in ids], "id long, part string, ts long, x double")


def placed(spark: SparkSession, ids: list[int], ts: int) -> DataFrame:
    """The same in the order of a registered table's columns."""
    return some(spark, ids, ts).select("id", "ts", "x", "part")


def shown(spark: SparkSession, table: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.sql(f"select id, ts, x from {table}").collect()))


def routed(path: Path | str) -> bool:
    return any(note.startswith("routed: ") for note in last_commit(str(path)).notes)


def test_rows_are_inserted_by_place_or_by_all_names(attached: SparkSession, name: str, tmp_path: Path) -> None:
    create(tmp_path / "t", indexes=["record_index"])
    attached.sql(f"create table {name} using hudimeta location '{tmp_path / 't'}'")
    placed(attached, [3, 20], 2).toDF("a", "b", "c", "d").write.insertInto(name)
    assert routed(tmp_path / "t")
    assert [(i, ts) for i, ts, _ in shown(attached, name) if i in (2, 3, 20)] == [(2, 1), (3, 2), (20, 2)]
    placed(attached, [8], 3).write.option("partitionOverwriteMode", "dynamic").insertInto(name, overwrite=True)
    assert [i for i, *_ in shown(attached, name)] == [0, 1, 2, 4, 5, 6, 7, 8, 9, 20]
    placed(attached, [1, 2], 4).write.mode("overwrite").insertInto(f"spark_catalog.default.{name}")
    assert shown(attached, name) == [(1, 4, 4.0), (2, 4, 8.0)]
    for method, given in (("bucketBy", (2, "id")), ("sortBy", ("id",)), ("clusterBy", ("id",))):
        ours = some(attached, [1], 5).write.format("hudimeta").mode("overwrite")
        assert f"{method} for a hudimeta table" in refusal(partial(getattr(ours, method)(*given).saveAsTable, name))
    with pytest.raises(Exception, match="sortBy must be used together with bucketBy"):  # Spark's own word, as of any format
        some(attached, [1], 5).write.format("hudimeta").sortBy("id").save(str(tmp_path / "new"))
    replacing = some(attached, [1], 5).writeTo(name).using("hudimeta").clusterBy("id")
    assert "clusterBy for a hudimeta table" in refusal(replacing.createOrReplace)
    assert shown(attached, name) == [(1, 4, 4.0), (2, 4, 8.0)]
    with pytest.raises(Exception, match=r"(?i)columns"):
        placed(attached, [1], 5).drop("x").write.insertInto(name)
    placed(attached, [2], 5).write.option("hoodie.datasource.write.operation", "delete").insertInto(name)
    assert shown(attached, name) == [(1, 4, 4.0)]
    frame = placed(attached, [7], 5)
    frame.select(*reversed(frame.columns)).write.insertInto(name)
    assert shown(attached, name) == [(1, 4, 4.0), (7, 5, 35.0)]
    placed(attached, [7], 6).write.option("hudimeta.write.routed", False).insertInto(name)
    assert not routed(tmp_path / "t")
    check(tmp_path / "t")


def test_a_table_is_made_and_written_by_its_name(attached: SparkSession, name: str, tmp_path: Path) -> None:
    first = some(attached, [1, 2, 6], 1).write.format("hudimeta").options(**KEYS).partitionBy("part")
    first.saveAsTable(name)
    assert attached.sql(f"select * from {name}").columns == ["id", "ts", "x", "part"]
    some(attached, [2, 3], 2).select("x", "part", "ts", "id").write.format("hudimeta").mode("append").saveAsTable(name)
    assert shown(attached, name) == [(1, 1, 1.0), (2, 2, 4.0), (3, 2, 6.0), (6, 1, 6.0)]
    some(attached, [4], 1).write.saveAsTable(name, format="hudimeta", mode="overwrite")
    assert shown(attached, name) == [(4, 1, 4.0)]
    with pytest.raises(Exception, match="ALREADY_EXISTS"):
        some(attached, [5], 1).write.format("hudimeta").saveAsTable(name)
    warehouse = str(attached.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")
    assert routed(f"{warehouse}/{name}")
    detach(attached)
    assert [row.id for row in attached.sql(f"select id from {name}").collect()] == [4]
    attach(attached)
    attached.sql(f"drop table {name}")
    assert not Path(warehouse, name).exists()
    path = str(tmp_path / "there")
    some(attached, [1], 1).write.format("hudimeta").mode("append").options(**KEYS, path=path).saveAsTable(name)
    assert HudiTable(attached, path).properties.record_keys == ("id",)
    check(Path(path))


def test_rows_bring_new_columns_where_the_writer_says_so(attached: SparkSession, name: str) -> None:
    some(attached, [1], 1).write.format("hudimeta").options(**KEYS).partitionBy("part").saveAsTable(name)
    wider = some(attached, [2], 1).drop("x").withColumn("note", expr("concat('n', id)"))
    with pytest.raises(Exception, match="INCOMPATIBLE_DATA_FOR_TABLE"):
        wider.write.format("hudimeta").mode("append").saveAsTable(name)
    wrong = wider.withColumn("ts", expr("array(1)"))
    with pytest.raises(Exception, match="INCOMPATIBLE_DATA_FOR_TABLE"):
        wrong.write.format("hudimeta").mode("append").option("mergeSchema", "true").saveAsTable(name)
    assert attached.table(name).columns == ["id", "ts", "x", "part"]
    wider.write.format("hudimeta").mode("append").option("mergeSchema", "true").saveAsTable(name)
    wider.withColumn("id", expr("id + 1")).drop("note").writeTo(name).option("mergeSchema", True).append()
    assert attached.table(name).columns == ["id", "ts", "x", "note", "part"]
    found = attached.sql(f"select id, x, note, part from {name} order by id").collect()
    assert [tuple(row) for row in found] == [(1, 1.0, None, "p1"), (2, None, "n2", "p2"), (3, None, None, "p2")]


def test_rows_are_written_to_a_table_by_the_names_of_columns(attached: SparkSession, name: str) -> None:
    """`df.writeTo`, into a table without any string column as well, which Spark alone does not find."""
    numbers = attached.createDataFrame([(1, 1, 0.5), (2, 1, 0.5)], "id long, ts long, day double").selectExpr(
        "id", "ts", "int(day) day"
    )
    keys = {**KEYS, "hoodie.datasource.write.partitionpath.field": "day"}
    numbers.writeTo(name).using("hudimeta").options(**keys).partitionedBy(numbers.day).create()
    more = attached.sql("select 2L ts, 1 day, 2L id")
    more.writeTo(name).append()
    seen = attached.table(name).select("id", "ts", "day")
    assert sorted(map(tuple, seen.collect())) == [(1, 1, 0), (2, 1, 0), (2, 2, 1)]
    attached.sql("select 3L id, 5L ts, 1 day").writeTo(name).overwritePartitions()
    seen = attached.table(name).select("id", "ts", "day")
    assert sorted(map(tuple, seen.collect())) == [(1, 1, 0), (2, 1, 0), (3, 5, 1)]
    with pytest.raises(Exception, match=r"(?i)column"):
        more.drop("ts").writeTo(name).append()
    with pytest.raises(Exception, match=r"HUDIMETA_CONFIG.*/elsewhere"):
        more.writeTo(name).option("path", "/elsewhere").append()
    assert attached.table(name).count() == 3


def test_a_table_is_replaced_by_one_of_other_columns_or_stays(attached: SparkSession, name: str) -> None:
    some(attached, [1, 2], 1).write.format("hudimeta").options(**KEYS).saveAsTable(name)
    new = some(attached, [9], 1)
    by_x = new.write.format("hudimeta").partitionBy("x")
    for mode in ("overwrite", "append"):
        with pytest.raises(Exception, match=r"HUDIMETA_CONFIG.*partitionBy.*what the table has: part"):
            by_x.mode(mode).saveAsTable(name)
    assert [i for i, *_ in shown(attached, name)] == [1, 2]
    new.write.format("hudimeta").partitionBy("PART").mode("append").saveAsTable(name)
    new.write.format("hudimeta").partitionBy("part").mode("overwrite").saveAsTable(name)
    assert [i for i, *_ in shown(attached, name)] == [9]
    with pytest.raises(Exception, match="HUDIMETA_"):
        new.writeTo(name).using("hudimeta").option("hoodie.datasource.write.recordkey.field", "nope").createOrReplace()
    assert [i for i, *_ in shown(attached, name)] == [9]
    new.selectExpr("id", "'z' as z").writeTo(name).using("hudimeta").createOrReplace()
    assert [tuple(row) for row in attached.table(name).collect()] == [(9, "z")]
    new.writeTo(name).using("hudimeta").options(**KEYS).replace()
    assert [i for i, *_ in shown(attached, name)] == [9]
    with pytest.raises(Exception, match="NOT_FOUND"):
        new.writeTo("no_such_table").using("hudimeta").replace()
    other = f"{name}_of_parquet"
    some(attached, [1, 2], 1).write.format("parquet").saveAsTable(other)
    new.write.format("hudimeta").options(**KEYS).mode("overwrite").saveAsTable(other)
    assert [i for i, *_ in shown(attached, other)] == [9]
    attached.sql(f"drop table {other}")


def test_what_is_not_ours_is_sparks(attached: SparkSession, name: str) -> None:
    some(attached, [1], 1).write.format("parquet").saveAsTable(name)
    some(attached, [2], 1).write.insertInto(name)
    assert [i for i, *_ in shown(attached, name)] == [1, 2]
    with pytest.raises(Exception, match="TABLE_OPERATION"):
        some(attached, [3], 1).writeTo(name).using("parquet").createOrReplace()
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        some(attached, [2], 1).write.insertInto("no_such_table")


def test_merge_into_is_sparks_own_method(attached: SparkSession, name: str, tmp_path: Path) -> None:
    create(tmp_path / "t", indexes=["record_index"])
    attached.sql(f"create table {name} using hudimeta location '{tmp_path / 't'}'")
    full = f"spark_catalog.default.{name}"
    rows = attached.table(name).where("id > 7").withColumn("x", lit(-1.0)).withColumn("ts", lit(5)).alias("s")
    matched = (col("s.id") == col(f"{full}.id")) & (col(f"default.{name}.ts") < 5)
    rows.mergeInto(full, matched).whenMatched().updateAll().merge()
    assert [row for row in shown(attached, name) if row[1] == 5] == [(8, 5, -1.0), (9, 5, -1.0)]
    detach(attached)
    with pytest.raises(Exception, match=r"(?i)merge|unsupported"):  # Spark's own again
        rows.mergeInto(name, col("s.id") == 1).whenMatched().delete().merge()
    attach(attached)
    check(tmp_path / "t")
