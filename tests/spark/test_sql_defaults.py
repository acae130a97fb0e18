"""Default values of columns, and columns at other places: what statements do with them, and what the table keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark_hudimeta
import pytest
from pyspark.sql.functions import col, lit
from pyspark_hudimeta import HudiTable

import hudimeta
from hudimeta.table.column_defaults import column_defaults
from tests.elsewhere import REMOTE
from tests.spark.tables import check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CREATE = """create table defaulted (id int, n bigint default 3, s string default 'it''s (?)' comment 'a text',
    d date default date'2026-01-02', p string default 'p0') using hudimeta partitioned by (p)
    tblproperties (primaryKey = 'id')"""


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    pyspark_hudimeta.sql(spark, f"{CREATE} location '{tmp_path / 'd'}'")
    yield tmp_path / "d"
    check(tmp_path / "d")
    for name in ("defaulted", "alike"):
        pyspark_hudimeta.sql(spark, f"drop table if exists {name}")


def run(spark: SparkSession, statement: str, *given: Any, **frames: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in pyspark_hudimeta.sql(spark, statement, *given, **frames).collect()]


def shown(spark: SparkSession) -> dict[int, tuple[Any, ...]]:
    return {row[0]: row[1:] for row in run(spark, "select id, n, s, string(d), p from defaulted")}


@pytest.mark.oldest
def test_rows_get_what_columns_have_by_default(spark: SparkSession, path: Path) -> None:
    all_of_them = (3, "it's (?)", "2026-01-02", "p0")
    run(spark, "insert into defaulted (id) values (1)")
    run(spark, "insert into defaulted values (2, default, 'x', default, 'p1'), (?, 7, DEFAULT, null, default)", [3])
    run(spark, "insert into defaulted (p, id, n) select 'p2', 4, default")
    run(spark, "insert into defaulted partition (p = 'p3') (id) values (5)")
    spark.sql("insert into defaulted (id) values (6)")  # Spark's own, by the entry
    source = spark.sql("select 6 as id, 1 as other union all select 7, 1")
    run(
        spark,
        "merge into defaulted t using {source} s on t.id = s.id when matched then update set n = default, s = 'm' "
        "when not matched then insert (id, s) values (s.id, default)",
        source=source,
    )
    merging = pyspark_hudimeta.merge_into(source.selectExpr("id + 3 as id"), "defaulted", col("defaulted.id") == col("id"))
    with pytest.raises(Exception, match="AMBIGUOUS"):
        merging.whenNotMatched().insert({"id": col("id")}).merge()
    rows = source.selectExpr("id + 2 as key")
    merging = pyspark_hudimeta.merge_into(rows, "defaulted", col("defaulted.id") == rows["key"])
    merging.whenNotMatched().insert({"id": col("key"), "n": lit(0)}).merge()
    run(spark, "update defaulted set s = 'none', d = default, n = default where id = 3")
    assert shown(spark) == {
        1: all_of_them,
        2: (3, "x", "2026-01-02", "p1"),
        3: (3, "none", "2026-01-02", "p0"),
        4: (3, "it's (?)", "2026-01-02", "p2"),
        5: (3, "it's (?)", "2026-01-02", "p3"),
        6: (3, "m", "2026-01-02", "p0"),
        7: all_of_them,
        8: (0, *all_of_them[1:]),
        9: (0, *all_of_them[1:]),
    }


@pytest.mark.parametrize("door", ["plain", "planned", *(["attached"] if not REMOTE else [])])
def test_rows_of_a_dataframe_that_lack_columns_get_them(spark: SparkSession, path: Path, door: str) -> None:
    def write(frame: DataFrame, operation: str) -> None:
        if door == "planned":
            HudiTable(spark, str(path)).upsert(frame) if operation == "upsert" else HudiTable(spark, str(path)).insert(frame)
            return
        writer = frame.write.format("hudimeta").mode("append").option("hoodie.datasource.write.operation", operation)
        writer.save(str(path))

    if door == "attached":
        pyspark_hudimeta.attach(spark)
    try:
        write(spark.createDataFrame([(1, "p1", 7), (2, "p2", 7)], "id int, p string, n bigint"), "insert")
        write(spark.createDataFrame([(2, "p2"), (3, "p1")], "id int, p string"), "upsert")
    finally:
        pyspark_hudimeta.detach(spark)
    assert shown(spark) == {
        1: (7, "it's (?)", "2026-01-02", "p1"),
        2: (None, None, None, "p2"),
        3: (3, "it's (?)", "2026-01-02", "p1"),
    }


def test_the_table_keeps_them_whatever_becomes_of_its_columns(spark: SparkSession, path: Path) -> None:
    def kept() -> dict[str, str]:
        return column_defaults(hudimeta.Table(path).properties)

    run(spark, "alter table defaulted alter column n set default 4 + 4")
    run(spark, "alter table defaulted alter column s set default 'please select'")
    run(spark, "alter table defaulted alter column s set default 'it''s (?)'")
    run(spark, "alter table defaulted alter column d drop default")
    run(spark, "alter table defaulted rename column s to text")
    assert kept() == {"n": "4 + 4", "text": "'it''s (?)'", "p": "'p0'"}
    run(spark, "create table alike like defaulted")
    assert "`n` BIGINT DEFAULT 4 + 4" in run(spark, "show create table alike")[0][0]
    assert ("n", "bigint", "4 + 4") in run(spark, "describe extended defaulted")
    run(spark, "alter table defaulted add columns (late int)")
    run(spark, "alter table defaulted drop column late")
    run(spark, "alter table defaulted alter column text first")
    run(spark, "alter table defaulted alter column d after text")
    assert run(spark, "select * from defaulted") == []
    assert spark.table("defaulted").columns == ["text", "d", "id", "n", "p"]
    run(spark, "alter table defaulted drop column text")
    assert kept() == {"n": "4 + 4", "p": "'p0'"}
    hudimeta.Table(path).upsert([{"id": 1, "n": None, "d": None, "p": "a"}])
    run(spark, "drop table defaulted")
    run(spark, f"create table defaulted using hudimeta location '{path}'")
    spark.sql("insert into defaulted (id) values (2)")
    assert run(spark, "select id, n, d, p from defaulted order by id") == [(1, None, None, "a"), (2, 8, None, "p0")]


def test_columns_stand_where_they_are_put(spark: SparkSession, path: Path) -> None:
    run(
        spark,
        f"create table alike (id int, s struct<a: int, b: string, c: double>, t string) using hudimeta location '{path}-2'",
    )
    run(spark, "insert into alike values (1, named_struct('a', 2, 'b', 'x', 'c', 3.5), 'y')")
    run(spark, "alter table alike alter column s.c first")
    run(spark, "alter table alike alter column s.a after b")
    run(spark, "alter table alike alter column T first")
    run(spark, "insert into alike values ('z', 2, named_struct('c', 0D, 'b', 'w', 'a', 7))")
    assert run(spark, "select * from alike order by id") == [("y", 1, (3.5, "x", 2)), ("z", 2, (0.0, "w", 7))]
    assert hudimeta.Table(f"{path}-2").scan().schema.names[-3:] == ["t", "id", "s"]
    run(spark, "alter table alike rename column T to `Text`")
    run(spark, "alter table alike alter column ID type bigint")
    run(spark, "alter table alike drop column TEXT")
    assert run(spark, "select * from alike order by id") == [(1, (3.5, "x", 2)), (2, (0.0, "w", 7))]


WRONG = {
    "alter table defaulted alter column n set default 'many'": "HUDIMETA_CONFIG.*type bigint.*(CAST|TYPE)",
    "alter table defaulted alter column n set default id + 1": "HUDIMETA_CONFIG.*UNRESOLVED_COLUMN",
    "alter table defaulted alter column n set default 1 +": "PARSE_SYNTAX_ERROR",
    "alter table defaulted alter column n set default no_function(1)": "HUDIMETA_CONFIG.*UNRESOLVED_ROUTINE",
    "alter table defaulted alter column n set default 1 / 0": "HUDIMETA_CONFIG.*Spark says",
    "alter table defaulted alter column n set default 1 % 0": "HUDIMETA_CONFIG.*Spark says",
    "alter table defaulted alter column n set default (select 1)": "without a query",
    "alter table defaulted alter column nope set default 1": "columns of the table",
    "alter table defaulted alter column n set default": "PARSE_SYNTAX_ERROR",
    "alter table defaulted add columns (m int default 3)": "ALTER COLUMN … SET DEFAULT",
    "alter table defaulted alter column nope first": "nope",
    "alter table defaulted alter column n after nope": "nope",
    "create table alike (id int, n int default 'a') using hudimeta": "HUDIMETA_CONFIG.*(CAST|TYPE)",
    "create table alike (id int, n int default n + 1) using hudimeta": "HUDIMETA_CONFIG.*UNRESOLVED_COLUMN",
    "insert into defaulted values (1, default + 1, '', null, '')": "(?i)default|UNRESOLVED",
    "update defaulted set n = default + 1": "(?i)default|UNRESOLVED",
}


def test_what_is_no_default_value_is_said_and_changes_nothing(spark: SparkSession, path: Path) -> None:
    before = sorted(path.rglob("*")), column_defaults(hudimeta.Table(path).properties)
    for statement, says in WRONG.items():
        with pytest.raises(Exception, match=says):
            run(spark, statement)
        assert (sorted(path.rglob("*")), column_defaults(hudimeta.Table(path).properties)) == before, statement
