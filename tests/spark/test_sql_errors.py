"""SQL in all sessions: what is wrong is Spark's error or ours, with its reason, and changes nothing on disk."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

import hudimeta
from hudimeta.errors import ConfigError, HudiError
from tests.spark.spellings import commented, in_full
from tests.spark.sql_tables import is_said
from tests.spark.tables import check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MISSING = "TABLE_OR_VIEW_NOT_FOUND"
WRONG = {
    "update wrong set nope = 1": "columns of the table: id, name, price, ts, day",
    "update wrong set price = array(1) where id = 1": "INCOMPATIBLE_DATA_FOR_TABLE",
    "update wrong set price = (select max(price) from nope)": MISSING,
    "delete from wrong where nope = 1": "UNRESOLVED_COLUMN",
    "delete from nodb.wrong where id = 1": MISSING,
    "delete from nocatalog.default.wrong where id = 1": "nocatalog",
    "insert into wrong values (1)": "NOT_ENOUGH_DATA_COLUMNS",
    "insert into wrong values ('x', 'a', 1.0, 1, 'd1')": "CANNOT_SAFELY_CAST",
    "insert into wrong (id, nope) values (1, 2)": "columns of the table",
    "merge into wrong t using nope s on t.id = s.id when matched then delete": MISSING,
    "merge into wrong t using (select 1 as id) s on t.id = s.nope when matched then delete": "UNRESOLVED_COLUMN",
    "merge into wrong t using (select 1 as id) s on t.id = s.id when matched then update set nope = 1": "columns of the table",
    "merge into wrong t using (select 1 as id) t on t.id = t.id when matched then delete": "two names for the two sides",
    "merge into wrong t using (select 1 as x) s on t.id = s.x when matched then update set *": "some columns of the table: id",
    "merge into wrong t using (select 7 as x) s on t.id = s.x when not matched then insert *": "some columns of the table: id",
    "update wrong set price = :p": "UNBOUND_SQL_PARAMETER",
    "alter table wrong drop column id": "no part of the key",
    "alter table wrong alter column price type int": "cannot be changed",
    "alter table wrong rename column nope to x": "columns of the table: id, name, price, ts, day",
    "create table wrong (id int) using hudimeta": "TABLE_OR_VIEW_ALREADY_EXISTS",
    "create table other (id int, ID string) using hudimeta": "upper and lower case",
    "create table other (id int) using hudimeta partitioned by (nope)": "columns of the table",
    "create table nodb.other (id int) using hudimeta": "SCHEMA_NOT_FOUND",
    "create table other like nope using hudimeta": MISSING,
    "optimize nope": MISSING,
    "vacuum nodb.nope": MISSING,
    "restore table nope to version as of 20200101000000000": MISSING,
    "describe history nope": MISSING,
    "describe detail nope": MISSING,
    "show indexes from nope": MISSING,
    "show partitions nope": MISSING,
    "drop index i on nope": MISSING,
    "create index i on nope (id)": MISSING,
    "select * from nope timestamp as of '2026-01-01'": MISSING,
    "update wrong_view set price = 1": "`wrong_view` shows which one",
    "insert into wrong_view values (1)": "EXPECT_TABLE_NOT_VIEW",
    "truncate table wrong_view": "EXPECT_TABLE_NOT_VIEW",
    "execute immediate 'update wrong set nope = 1'": "columns of the table",
}

OF_A_VIEW = r"the view `?\w+.*Change the table that the view reads, by its name"
OF_EVERY_KIND = {
    "delete from wrong_view": OF_A_VIEW,
    "delete from spark_catalog.default.wrong_view where id = 1": OF_A_VIEW,
    "delete from wrong_temporary where id = 2": OF_A_VIEW,
    "update wrong_folder set price = 1": OF_A_VIEW,
    "merge into wrong_view v using wrong s on v.id = s.id when matched then delete": OF_A_VIEW,
    "explain delete from wrong_view": OF_A_VIEW,
    "explain extended delete from wrong_folder": OF_A_VIEW,
    "explain formatted update wrong_temporary set price = 1": OF_A_VIEW,
    "explain cost merge into wrong_view v using wrong s on v.id = s.id when not matched then insert *": OF_A_VIEW,
    "insert overwrite wrong_view select 1": "(?i)view",
    "alter table wrong_view add columns (x int)": "EXPECT_TABLE_NOT_VIEW",
    "alter table wrong_view alter column id first": "EXPECT_TABLE_NOT_VIEW",
    "delete from wrong where s.zz = 1": "FIELD_NOT_FOUND|UNRESOLVED_COLUMN",
    "delete from wrong where count(*) > 1": "INVALID_WHERE_CONDITION",
    "delete from wrong where id in (select nope from wrong)": "UNRESOLVED_COLUMN",
    "delete from wrong where id = ?": "UNBOUND_SQL_PARAMETER",
    "update wrong set price = (select id, ts from wrong)": "SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN",
    "update wrong set price = rand(": "PARSE_SYNTAX_ERROR",
    "update wrong set name.x = 1": "columns, and fields of structs",
    "update wrong set price = 1, PRICE = 2": "every column once",
    "insert overwrite wrong select 1": "NOT_ENOUGH_DATA_COLUMNS",
    "insert into wrong replace where nope = 1 select * from wrong": "UNRESOLVED_COLUMN",
    "insert into wrong partition (nope = '1') select 1": "columns of the table",
    "merge into wrong t using wrong_view s on t.id = s.id when matched then update set price = array(1)": "CAST",
    "merge into wrong t using wrong_view s on false when not matched then insert (id, id) values (1, 2)": "every column once",
    "merge into wrong t using wrong_view s on false when not matched then insert (id) values (1, 2)": "VALUE_COUNT_MISMATCH",
    "truncate table wrong partition (nope = 1)": "columns of the table",
    "alter table wrong drop partition (nope = 'x')": "columns of the table",
    "alter table wrong add partition (nope = 'x')": "columns of the table",
    "alter table wrong alter column price set not null": "HUDIMETA_UNSUPPORTED",
    "alter table wrong alter column nope comment 'x'": "UNRESOLVED_COLUMN",
    "alter table wrong alter column name comment 'x', price type int": "HUDIMETA_UNSUPPORTED",
    "alter table wrong drop columns if exists id, nope": "no part of the key",
    "alter table wrong rename to a.b.c": "REQUIRES_SINGLE_PART_NAMESPACE",
    "alter table wrong set tblproperties (primaryKey = 'name')": "primaryKey|recordkey",
    "create index i on wrong (nope)": "columns of the table",
    "drop index i on wrong": "an index of the table",
    "refresh index i on wrong": "an index of the table",
    "optimize wrong zorder by (nope)": "columns of the table",
    "vacuum wrong retain many hours": r"VACUUM t \[RETAIN n HOURS\]",
    "restore table wrong to version as of 5": "DESCRIBE HISTORY",
    "restore table wrong to version as of '20200101000000000'": "DESCRIBE HISTORY",
    "select * from wrong version as of 12": "DESCRIBE HISTORY",
    "select * from wrong timestamp as of 'soon'": "^HUDIMETA_",
    "call show_commits(table => 'wrong', limit => 'x')": "a whole number",
    "call show_commits(table => 'nope')": "SHOW TABLES",
    "call show_commit(table => 'wrong')": "show_commits",
    "create table if not exists wrong2 (id int, id int) using hudimeta": "is there twice",
    "create or replace table wrong (id int, ID int) using hudimeta": "upper and lower case",
    "create table wrong2 using hudimeta as select nope from wrong": "UNRESOLVED_COLUMN",
    "create table wrong2 (id foo) using hudimeta": "UNSUPPORTED_DATATYPE|the declaration of columns",
    "create table wrong2 (id int) using hudimeta partitioned by (bucket(3, id))": "transform",
    "select * from hudi_timeline('nope')": "SHOW TABLES",
    "explain update wrong set nope = 1": "columns of the table",
    "delete from wrong where": r"DELETE FROM t \[AS alias\] \[WHERE condition\]",
    "delete from wrong where id = 1 limit 1": "PARSE_SYNTAX_ERROR",
    "update wrong set price = 1 where id = 1 order by id": "PARSE_SYNTAX_ERROR",
    "merge into wrong w using wrong s on w.id = s.id limit 1 when matched then delete": "PARSE_SYNTAX_ERROR",
    "explain call show_commit(table => 'wrong')": "show_commits",
    "analyze table wrong compute statistics for columns id, nope": "columns of the table",
    "merge into wrong w using wrong s on w.id = s.id": "MERGE_WITHOUT_WHEN|WHEN clause",
    "merge into wrong w using wrong s on w.id = s.id when not matched then insert * when matched then delete": "PARSE_SYNTAX",
    "merge into wrong w using wrong s on w.id = s.id when matched then delete when matched then delete": "OMIT_CONDITION",
    "update wrong set price = explode(array(1, 2))": "UNSUPPORTED_GENERATOR",
    "update wrong set price = 1 returning id": r"pos (27|35|37)\)|/\*|spark_catalog",
    "merge into wrong t using wrong s on false when not matched then insert (id, ts) values (t.id, 1)": "UNRESOLVED_COLUMN",
    "merge into wrong t using (select 1 x) s on false when not matched and t.id = 1 then insert (id) values (x)": "UNRESOLVED",
    "merge into wrong t using (select 1 x) s on false when not matched by source then update set price = s.x": "UNRESOLVED",
    "merge into wrong t using (select 1 x) s on false when not matched by source and x = 1 then delete": "UNRESOLVED_COLUMN",
    "describe history wrong limit x": r"DESCRIBE HISTORY t \[LIMIT n\]",
    "create table wrong2 (id int) using hudimeta comment 'x' comment 'y'": "DUPLICATE_CLAUSES",
}
"""Wrong columns, types, views, nested names, parameters and texts of the kinds of statements that are not above."""


RESPELT: dict[str, Callable[[str], str]] = {
    "as written": lambda statement: statement,
    "comments": commented,
    "in full": lambda statement: in_full(statement, "wrong", "wrong_view"),
}
SPELT = pytest.mark.parametrize("spelling", RESPELT)


@pytest.mark.rotation(4)
@SPELT
@pytest.mark.parametrize("turn", [0, 1])
def test_every_kind_of_statement_says_what_is_wrong(door: SparkSession, path: Path, turn: int, spelling: str) -> None:
    def found() -> list[str]:
        return sorted(str(file) for file in path.rglob("*") if ".aux" not in str(file))

    before, entry = found(), door.table("wrong").schema
    for written, says in list(OF_EVERY_KIND.items())[turn::2]:
        statement = RESPELT[spelling](written)
        with pytest.raises(Exception, match=r".+") as caught:
            door.sql(statement).collect()
        text = str(caught.value)
        assert is_said(says, caught.value), (statement, text[:500])
        assert "INTERNAL_ERROR" not in text, statement
        assert type(caught.value).__name__ != "Py4JJavaError", statement
        assert (found(), door.table("wrong").schema) == (before, entry), statement
    door.sql("alter table wrong drop column if exists nope")
    assert (found(), door.table("wrong").schema) == (before, entry)


@pytest.fixture
def path(door: SparkSession, tmp_path: Path) -> Iterator[Path]:
    door.sql(
        "create table wrong (id int, name string, price double, ts bigint, day string) using hudimeta partitioned by (day) "
        f"tblproperties (primaryKey = 'id', orderingFields = 'ts') location '{tmp_path / 'wrong'}'"
    )
    door.sql("insert into wrong values (1, 'a', 1, 1, 'd1'), (2, 'b', 2, 1, 'd2')")
    door.sql("create view wrong_view as select * from wrong")
    door.sql("create temporary view wrong_temporary as select * from wrong where id > 1")
    door.sql(f"create temporary view wrong_folder using hudimeta options (path '{tmp_path / 'wrong'}')")
    yield tmp_path / "wrong"
    for view in ("wrong_view", "wrong_temporary", "wrong_folder"):
        door.sql(f"drop view {view}")
    door.sql("drop table wrong")


@pytest.mark.rotation(6)
@SPELT
def test_what_is_wrong_is_said_and_changes_nothing(door: SparkSession, path: Path, spelling: str) -> None:
    def found() -> list[str]:
        return sorted(str(file) for file in path.rglob("*") if ".aux" not in str(file))

    before = found()
    for written, says in WRONG.items():
        statement = RESPELT[spelling](written)
        with pytest.raises(Exception, match=r".+") as caught:
            door.sql(statement)
        assert is_said(re.escape(says), caught.value), statement
        assert found() == before, statement
    seen_by_tasks = {
        "insert into wrong values (null, 'a', 1.0, 1, 'd1')": "a record key in every row",
        "update wrong set price = 'abc' where id = 1": "CAST_INVALID_INPUT",
        "update wrong set price = (select price from wrong)": "SCALAR_SUBQUERY_TOO_MANY_ROWS",
        "merge into wrong t using wrong s on t.id = s.id when matched and (select id from wrong) > 0 then delete": "TOO_MANY",
    }
    for statement, says in seen_by_tasks.items():  # the write is rolled back
        with pytest.raises((HudiError, PySparkException), match=says):
            door.sql(statement)
    assert door.table("wrong").count() == 2
    check(path)


def test_names_are_compared_as_the_session_says(door: SparkSession, path: Path, conf: Callable[[str, str], None]) -> None:
    door.sql("update WRONG set PRICE = 3, TS = 2 where ID = 1")
    conf("spark.sql.caseSensitive", "true")
    for statement, says in {
        "update wrong set PRICE = 4": "columns of the table",
        "delete from wrong where ID = 1": "UNRESOLVED_COLUMN",
        "insert into wrong (ID, name, price, ts, day) values (5, 'x', 1, 1, 'd1')": "columns of the table",
        "delete from WRONG": MISSING,
    }.items():
        with pytest.raises(Exception, match=says):
            door.sql(statement)
    door.sql(
        "merge into wrong t using (select 1 as id, 9L as ts, 3D as price, 4D as PRICE) s on t.id = s.id "
        "when matched then update set *"
    )
    door.sql("update spark_catalog.default.wrong set price = 5, ts = 3 where spark_catalog.default.wrong.id = 2")
    assert sorted(tuple(row) for row in door.sql("select id, price from wrong").collect()) == [(1, 3.0), (2, 5.0)]


def test_names_are_compared_so_in_other_threads_too(door: SparkSession, path: Path, conf: Callable[[str, str], None]) -> None:
    with ThreadPoolExecutor(1) as other:
        other.submit(door.sql, "update wrong set PRICE = 3, TS = 2 where id = 1").result()
        conf("spark.sql.caseSensitive", "true")
        for statement in (
            "update wrong set PRICE = 4",
            "insert into wrong (ID, name, price, ts, day) values (5, 'x', 1, 1, 'd1')",
        ):
            with pytest.raises(ConfigError, match="columns of the table"):
                other.submit(door.sql, statement).result()
    assert sorted(tuple(row) for row in door.sql("select id, price from wrong").collect()) == [(1, 3.0), (2, 2.0)]


def test_a_star_passes_over_no_column_of_the_source_for_its_case(
    door: SparkSession, path: Path, conf: Callable[[str, str], None]
) -> None:
    conf("spark.sql.caseSensitive", "true")
    rows = "select 1 as id, 9L as ts, 4D as PRICE union all select 7, 9L, 5D"
    both = "select 1 as id, 9L as ts, 3D as price, 4D as PRICE"
    before = sorted(map(tuple, door.sql("select * from wrong").collect()))
    merge = "merge {evolving} into wrong t using ({rows}) s on t.id = s.id when {clause} *"
    clauses = ("matched then update set", "not matched then insert")
    for clause, evolving in itertools.product(clauses, ("", "with schema evolution")):
        with pytest.raises(Exception, match=r"PRICE.*columns of the table: price, in this case.*Rename"):
            door.sql(merge.format(evolving=evolving, rows=rows, clause=clause))
    for clause in clauses:  # the table can have no second column of that name
        with pytest.raises(Exception, match=r"PRICE.*by more than case"):
            door.sql(merge.format(evolving="with schema evolution", rows=both, clause=clause))
    assert sorted(map(tuple, door.sql("select * from wrong").collect())) == before
    conf("spark.sql.caseSensitive", "false")
    door.sql(merge.format(evolving="", rows=rows, clause=clauses[0]))
    assert sorted(map(tuple, door.sql("select id, price from wrong").collect())) == [(1, 4.0), (2, 2.0)]


def test_keywords_are_names_and_tables_are_named_in_full(door: SparkSession, path: Path) -> None:
    door.sql("create table keywords (end int, case int, when string, then int, group string) using hudimeta")
    try:
        door.sql("insert into keywords (end, case, when, group) values (1, 1, 'a', 'g'), (2, 2, 'b', 'g')")
        door.sql("update keywords set case = end + case, when = case when case == 1 then when else 'c' end where end = 1")
        door.sql(
            "merge into keywords t using keywords s on t.end = s.end and t.when = 'b' "
            "when matched and s.case = 2 then update set then = s.end, t.when = s.when"
        )
        found = door.sql("select end, case, when, then from keywords order by end").collect()
        assert [tuple(row) for row in found] == [(1, 2, "a", None), (2, 2, "b", 2)]
    finally:
        door.sql("drop table keywords")
    door.sql("update wrong set price = default.wrong.price + 1, ts = 2 where spark_catalog.default.wrong.id = 1")
    door.sql(
        "/* a /* comment */ in another */ merge into wrong using default.wrong s on default.wrong.id = s.id and s.id = 2 "
        "when matched then update set price = spark_catalog.default.wrong.price + 5, ts = 2 -- and one that goes on \\\n here"
    )
    assert sorted(row.price for row in door.sql("select price from wrong").collect()) == [2.0, 7.0]


def test_parameters_and_variables_stand_where_literals_do(
    door: SparkSession, path: Path, conf: Callable[[str, str], None]
) -> None:
    door.sql("insert into wrong partition (day = :d) select 3, 'c', 3, 1", {"d": "it's"})
    door.sql("insert overwrite wrong partition (day = ?) select ?, 'd', 4, 1", ["d1", 4])
    found = door.sql("select id, day from wrong order by id").collect()
    assert [tuple(row) for row in found] == [(2, "d2"), (3, "it's"), (4, "d1")]
    door.sql("alter table wrong set tblproperties ('note' = :n)", {"n": "it's :d"})
    (row,) = door.sql("show tblproperties wrong ('note')").collect()
    assert row.value == "it's :d"
    place = path.parent / "given"
    door.sql(
        "create table given (id int comment :c, n int default :n) using hudimeta comment :c location :l "
        "tblproperties (primaryKey = :k)",
        {"c": "it's", "n": 7, "l": str(place), "k": "id"},
    )
    try:
        door.sql("insert into given (id) values (:id)", {"id": 1})
        assert [tuple(row) for row in door.sql("select * from given").collect()] == [(1, 7)]
        assert hudimeta.Table(place).properties.record_keys == ("id",)
        assert door.sql("select count(*) from hudi_timeline(:t)", {"t": "given"}).collect()[0][0] == 1
        assert door.sql("describe detail given").collect()[0].description == "it's"
    finally:
        door.sql("drop table given")
    conf("of_wrong", "wrong")
    door.sql("delete from ${of_wrong} where day = '${hiveconf:of_wrong}' or id = 4")
    assert [row.id for row in door.sql("select id from ${of_wrong} order by id").collect()] == [2, 3]
    with pytest.raises(Exception, match="UNBOUND_SQL_PARAMETER"):
        door.sql("insert into wrong partition (day = :other) select 3, 'c', 3, 1", {"d": "x"})


def test_names_stand_in_double_quotes_where_the_session_says_so(
    door: SparkSession, path: Path, conf: Callable[[str, str], None]
) -> None:
    conf("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    door.sql("""update "wrong" w set "price" = 4, ts = 2, name = 'a "text"' where "w"."id" = 1""")
    door.sql("""insert into "wrong" ("id", "ts", "day") values (1, 3, 'd1')""")
    found = door.sql("""select "_hoodie_record_key", "name" from "wrong" order by 1""").collect()
    assert [tuple(row) for row in found] == [("1", None), ("2", "b")]


def test_quotes_comments_and_statements_in_texts(door: SparkSession, path: Path) -> None:
    door.sql("update /* ' */ wrong -- it's\n set `name` = 'a \\'quoted\\' -- text', ts = 2 /* ; */ where `id` = 1;")
    door.sql("execute immediate 'update wrong set name = :n, ts = 2 where id = :i' using 'new' as n, 1 + 1 as i")
    door.sql("execute immediate \"insert into wrong values (?, ?, 0, 1, 'd1')\" using 3, 'third'")
    names = sorted(row.name for row in door.sql("select name from wrong").collect())
    assert names == ["a 'quoted' -- text", "new", "third"]


def test_options_of_hudi_stand_in_the_session(door: SparkSession, path: Path, conf: Callable[[str, str], None]) -> None:
    conf("spark.hoodie.spark.sql.insert.into.operation", "bulk_insert")
    door.sql("insert into wrong values (1, 'again', 1, 5, 'd1')")
    assert door.sql("select * from wrong where id = 1").count() == 2, "a bulk insert looks for no keys"
    with pytest.raises(Exception, match=r"Did you mean hoodie\.spark\.sql\.insert\.into\.operation"):
        door.sql("set spark.hoodie.spark.sql.insert.into.operatoin = upsert")
    door.sql("set spark.hoodie.spark.sql.insert.into.operation = upsert")
    door.sql("insert into wrong values (2, 'again', 1, 5, 'd2')")
    assert door.sql("select name from wrong where id = 2").collect()[0].name == "again"
