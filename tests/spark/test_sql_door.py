"""`pyspark_hudimeta.sql`: statements in sessions that are not attached, classic ones and those of Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark_hudimeta
import pytest

import hudimeta
from tests.spark.tables import check, refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CREATE = (
    "create table by_door (id int comment 'the key', name string, price double, ts bigint, day string) using hudimeta "
    "partitioned by (day) comment 'what for' tblproperties (primaryKey = 'id', orderingFields = 'ts', type = 'mor', team = 'x')"
)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[hudimeta.Table]:
    """Ids 0 to 19 in two partitions, of which 3 was updated and 4 deleted, in a table of the catalog."""
    pyspark_hudimeta.sql(spark, f"{CREATE} location '{tmp_path / 't'}'")
    values = ", ".join(f"({n}, 'n{n}', {n}.5, 1, 'd{n % 2}')" for n in range(20))
    pyspark_hudimeta.sql(spark, f"insert into by_door values {values}")
    pyspark_hudimeta.sql(spark, "update by_door set name = :name, ts = 2 where id = 3", {"name": "{new}"})
    pyspark_hudimeta.sql(spark, "delete from by_door where id = (select max(id) - 15 from by_door)")
    yield hudimeta.Table(tmp_path / "t")
    spark.sql("drop table if exists by_door")


def rows(spark: SparkSession, statement: str, *given: Any, **frames: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in pyspark_hudimeta.sql(spark, statement, *given, **frames).collect()]


@pytest.mark.oldest
def test_statements_change_and_ask_tables(spark: SparkSession, table: hudimeta.Table) -> None:
    first = min(instant.time for instant in table.timeline.writes)
    source = spark.range(18, 22).selectExpr("cast(id AS int) AS id", "'m' AS name", "0D AS price", "3L AS ts", "'d0' AS day")
    merging = (
        "merge into by_door t using {source} s on t.id = s.id when matched and rand() < 0.5 then delete "
        "when matched then update set name = s.name, ts = s.ts when not matched then insert *"
    )
    ((affected, updated, deleted, inserted),) = rows(spark, merging, source=source)
    assert (affected, updated + deleted, inserted) == (4, 2, 2), "each row goes to one clause"
    assert rows(spark, "select name from by_door where id = 3") == [("{new}",)]
    then = f"by_door timestamp as of '{first}'"
    query = f"select a.id, b.name, '{{' as c from by_door a join {then} b on a.id = b.id where a.id < ? order by a.id"
    assert rows(spark, query, [4]) == [(n, f"n{n}", "{") for n in range(4)]
    frame = pyspark_hudimeta.sql(spark, f"select id from {then}")
    assert (frame.count(), len(frame.collect()), frame.select("id").distinct().count()) == (20, 20, 20)
    meta = "select count(distinct _hoodie_commit_time), count(*) from by_door where _hoodie_partition_path = 'day=d1'"
    assert rows(spark, meta)[0][0] in (2, 3)
    assert rows(spark, f"select count(*) from hudimeta.`{table.path}` where id < 10") == [(9,)]
    assert rows(spark, f"select count(*) > 2 from hudi_timeline('{table.path}')") == [(True,)]
    assert rows(spark, "describe history by_door limit 1")[0][2] == "deltacommit"
    (explained,) = rows(spark, "explain delete from by_door where id = 1")
    assert explained[0].startswith("== hudimeta DELETE of spark_catalog.default.by_door")
    assert rows(spark, "call show_commits(table => 'by_door', limit => 1)")
    assert "every column once" in refusal(lambda: pyspark_hudimeta.sql(spark, "update by_door set price = 1, price = 2"))
    assert pyspark_hudimeta.sql(spark, "select 1 AS one").columns == ["one"], "others are Spark's"
    check(Path(table.path))


@pytest.mark.oldest
def test_entries_of_the_catalog_keep_what_they_say(spark: SparkSession, table: hudimeta.Table, tmp_path: Path) -> None:
    ours = rows(spark, "show tables like '_hudimeta*'")
    pyspark_hudimeta.sql(spark, "alter table by_door set tblproperties ('hoodie.keep.max.commits' = '40', note = 'v, b=c')")
    pyspark_hudimeta.sql(spark, "alter table by_door add columns (n bigint comment 'later')")
    ((statement,),) = rows(spark, "show create table by_door")
    for part in (
        "`id` INT COMMENT 'the key'",
        "`n` BIGINT COMMENT 'later'",
        "COMMENT 'what for'",
        "'team' = 'x'",
        "max.commits",
    ):
        assert part in statement
    options = pyspark_hudimeta.HudiTable.for_name(spark, "by_door")._options
    assert options["hoodie.keep.max.commits"] == "40"
    pyspark_hudimeta.sql(spark, "create or replace table by_door using hudimeta as select 1 as a, 'x' as b")
    assert rows(spark, "select * from by_door") == [(1, "x")]
    ((place,),) = [(d.location,) for d in pyspark_hudimeta.sql(spark, "describe detail by_door").collect()]
    assert Path(place).is_dir()
    pyspark_hudimeta.sql(spark, "drop table by_door")
    assert not Path(place).exists(), "a table without LOCATION goes with its files"
    assert rows(spark, "show tables like 'by_door'") == []
    assert rows(spark, "show tables like '_hudimeta*'") == ours, "statements leave nothing that they needed for a while"
    assert Path(table.path).is_dir()


def test_several_statements_and_variables(spark: SparkSession, table: hudimeta.Table) -> None:
    first = min(instant.time for instant in table.timeline.writes)
    text = "update by_door set price = 0, ts = 3 where id = :i; -- the next; one\n select price from by_door where id = :i"
    assert rows(spark, text, {"i": 7}) == [(0.0,)]
    script = "begin update by_door set price = 1, ts = 4 where id = 7; insert into by_door values (70, ';', 1, 1, 'd1'); "
    rows(spark, f"{script} select 1; end")
    assert rows(spark, "select id, name, price from by_door where id in (7, 70) order by id") == [
        (7, "n7", 1.0),
        (70, ";", 1.0),
    ]
    spark.sql("declare or replace variable at_first double")
    spark.sql("declare or replace variable how_many bigint")
    query = f"\"select max(price), count(*) from by_door timestamp as of '{first}' where id <= ?\""
    rows(spark, f"execute immediate {query} into at_first, how_many using 7")
    assert rows(spark, "select at_first, how_many") == [(7.5, 8)]
    spark.sql("declare or replace variable said string default 'update by_door set price = :p, ts = 5 where id = :i'")
    rows(spark, "execute immediate said using 1.5 as p, 3 + 4 as i")
    spark.sql(f"set variable said = {query}")
    rows(spark, "execute immediate session.said into at_first, how_many using (5)")
    assert rows(spark, "select at_first, how_many, (select price from by_door where id = 7)") == [(5.5, 6, 1.5)]
    for statement, says in {
        "execute immediate how_many": "INVALID_EXPR_TYPE",
        "execute immediate said || ' limit'": "PARSE_SYNTAX_ERROR",
        f"execute immediate {query} into at_first using 7": "(?i)column|mismatch",
        "execute immediate 'delete from by_door' into at_first": "Leave INTO out",
        "begin delete from by_door; declare x int; end": "(?i)declare|variable|INVALID",
    }.items():
        with pytest.raises(Exception, match=says):
            rows(spark, statement)
    with pytest.raises(Exception, match="parameters with names"):
        pyspark_hudimeta.sql(spark, "select ?; select ?", [1, 2])
    assert rows(spark, "select count(*) from by_door") == [(20,)]


def test_constants_are_refused_before_a_write_begins(spark: SparkSession, table: hudimeta.Table) -> None:
    def files() -> list[str]:
        return sorted(str(file) for file in Path(table.path).rglob("*"))

    before = files()
    for statement, says in {
        "update by_door set price = 'abc' where id = 99": "CAST_INVALID_INPUT",
        "update by_door set ts = 30000000000000000000 where id = 99": "CAST_OVERFLOW",
        "merge into by_door t using (select 9 i) s on id = i when matched then update set price = 'x'": "CAST_INVALID_INPUT",
        "insert into by_door values (1, 'x', 1, 30000000000000000000, 'd1')": "CAST_OVERFLOW",
        "insert into by_door select 1, 'x', 1, cast('abc' as bigint), 'd1'": "CAST_INVALID_INPUT",
    }.items():
        with pytest.raises(Exception, match=says):
            pyspark_hudimeta.sql(spark, statement)
        assert files() == before, statement
    assert rows(spark, "update by_door set price = '2.5', ts = 3 where id = 1") == [(1,)]


def test_inserts_after_one_from_read_before_any_of_them_writes(spark: SparkSession, table: hudimeta.Table) -> None:
    more = (
        "from by_door insert into by_door select id + 100, name, price, ts, day "
        "insert into by_door select id + 200, 'x', price, 1, day"
    )
    assert rows(spark, more) == [(19, 19), (19, 19)]
    assert rows(spark, "select count(*), count_if(name = 'x') from by_door") == [(57, 19)]
