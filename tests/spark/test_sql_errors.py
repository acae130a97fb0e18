"""SQL in an attached session: what is wrong is Spark's error or ours, with its reason, and changes nothing on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.tables import check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MISSING = "TABLE_OR_VIEW_NOT_FOUND"
WRONG = {
    "update wrong set nope = 1": "columns of the table: id, name, price, ts, day",
    "update wrong set price = 'abc' where id = 1": "CANNOT_SAFELY_CAST",
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
    "update wrong_view set price = 1": "does not support UPDATE",
    "insert into wrong_view values (1)": "EXPECT_TABLE_NOT_VIEW",
    "truncate table wrong_view": "EXPECT_TABLE_NOT_VIEW",
    "execute immediate 'update wrong set nope = 1'": "columns of the table",
}


@pytest.fixture
def path(attached: SparkSession, tmp_path: Path) -> Iterator[Path]:
    attached.sql(
        "create table wrong (id int, name string, price double, ts bigint, day string) using hudimeta partitioned by (day) "
        f"tblproperties (primaryKey = 'id', orderingFields = 'ts') location '{tmp_path / 'wrong'}'"
    )
    attached.sql("insert into wrong values (1, 'a', 1, 1, 'd1'), (2, 'b', 2, 1, 'd2')")
    attached.sql("create view wrong_view as select * from wrong")
    yield tmp_path / "wrong"
    attached.sql("drop view wrong_view")
    attached.sql("drop table wrong")


def test_what_is_wrong_is_said_and_changes_nothing(attached: SparkSession, path: Path) -> None:
    def found() -> list[str]:
        return sorted(str(file) for file in path.rglob("*") if ".aux" not in str(file))

    before = found()
    for statement, says in WRONG.items():
        with pytest.raises(Exception, match=r".+") as caught:
            attached.sql(statement)
        assert says in str(caught.value), statement
        assert found() == before, statement
    with pytest.raises(Exception, match="a record key in every row"):  # which tasks see: the write is rolled back
        attached.sql("insert into wrong values (null, 'a', 1.0, 1, 'd1')")
    assert attached.table("wrong").count() == 2
    check(path)


def test_names_are_compared_as_the_session_says(attached: SparkSession, path: Path, conf: Callable[[str, str], None]) -> None:
    attached.sql("update WRONG set PRICE = 3, TS = 2 where ID = 1")
    conf("spark.sql.caseSensitive", "true")
    for statement, says in {
        "update wrong set PRICE = 4": "columns of the table",
        "delete from wrong where ID = 1": "UNRESOLVED_COLUMN",
        "insert into wrong (ID, name, price, ts, day) values (5, 'x', 1, 1, 'd1')": "columns of the table",
        "delete from WRONG": MISSING,
    }.items():
        with pytest.raises(Exception, match=says):
            attached.sql(statement)
    attached.sql("update spark_catalog.default.wrong set price = 5, ts = 3 where spark_catalog.default.wrong.id = 2")
    assert sorted(tuple(row) for row in attached.sql("select id, price from wrong").collect()) == [(1, 3.0), (2, 5.0)]


def test_quotes_comments_and_statements_in_texts(attached: SparkSession, path: Path) -> None:
    attached.sql("update /* ' */ wrong -- it's\n set `name` = 'a \\'quoted\\' -- text', ts = 2 /* ; */ where `id` = 1;")
    attached.sql("execute immediate 'update wrong set name = :n, ts = 2 where id = :i' using 'new' as n, 1 + 1 as i")
    attached.sql("execute immediate \"insert into wrong values (?, ?, 0, 1, 'd1')\" using 3, 'third'")
    names = sorted(row.name for row in attached.sql("select name from wrong").collect())
    assert names == ["a 'quoted' -- text", "new", "third"]


def test_options_of_hudi_stand_in_the_session(attached: SparkSession, path: Path, conf: Callable[[str, str], None]) -> None:
    conf("spark.hoodie.spark.sql.insert.into.operation", "bulk_insert")
    attached.sql("insert into wrong values (1, 'again', 1, 5, 'd1')")
    assert attached.sql("select * from wrong where id = 1").count() == 2, "a bulk insert looks for no keys"
    with pytest.raises(Exception, match=r"Did you mean hoodie\.spark\.sql\.insert\.into\.operation"):
        attached.sql("set spark.hoodie.spark.sql.insert.into.operatoin = upsert")
    attached.sql("set spark.hoodie.spark.sql.insert.into.operation = upsert")
    attached.sql("insert into wrong values (2, 'again', 1, 5, 'd2')")
    assert attached.sql("select name from wrong where id = 2").collect()[0].name == "again"
