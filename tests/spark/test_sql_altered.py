"""SQL in an attached session: ALTER TABLE of columns, in the table and in the catalog's entry."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyspark_hudimeta
import pytest

import hudimeta
from hudimeta.config import HudiWarning
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.elsewhere import REMOTE, SAYS_STATEMENTS
from tests.spark.sql_tables import Name, rows
from tests.spark.tables import refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = SAYS_STATEMENTS


@pytest.fixture
def t(name: Name) -> str:
    """The name of a table that is dropped after the test, with its files."""
    return name()


def folder_of(spark: SparkSession, table: str) -> str:
    return str(spark.sql(f"describe detail {table}").collect()[0].location)


def test_columns_are_altered_in_the_table_and_in_the_catalog(attached: SparkSession, t: str) -> None:
    attached.sql(f"create table {t} (id int, label string, v int) using hudimeta tblproperties (primaryKey = 'id')")
    attached.sql(f"insert into {t} values (1, 'a', 1)")
    attached.sql(f"alter table {t} add columns (extra double comment 'more', tags array<int>)")
    attached.sql(f"insert into {t} values (2, 'b', 2, 2.5, array(1))")
    assert rows(attached, t) == [(1, "a", 1, None, None), (2, "b", 2, 2.5, [1])]
    attached.sql(f"alter table {t} rename column v to w")
    attached.sql(f"alter table {t} drop column extra")
    assert rows(attached, t, "id, w") == [(1, 1), (2, 2)]
    assert hudimeta.Table(folder_of(attached, t)).schema.names[5:] == ["id", "label", "w", "tags"]
    attached.sql(f"alter table {t} add columns (note string)")
    attached.sql(f"alter table {t} drop columns (label)")
    attached.sql(f"insert into {t} values (3, 3, null, 'n')")
    assert attached.table(t).columns == ["id", "w", "tags", "note"]
    assert len(rows(attached, t)) == 3
    says = refusal(lambda: attached.sql(f"alter table {t} drop column id"))
    assert "id" in says
    assert attached.table(t).columns == ["id", "w", "tags", "note"], "neither was changed"
    attached.sql(f"comment on table {t} is 'a comment'")
    attached.sql(f"alter table {t} set tblproperties ('a' = 'b')")


def test_new_columns_have_the_types_that_the_table_stores(attached: SparkSession, t: str) -> None:
    """An entry that said SMALLINT was refused by every other session: the table holds an INT."""
    attached.sql(f"create table {t} (id int, label string) using hudimeta tblproperties (primaryKey = 'id')")
    added = "s smallint, l array<tinyint>, n struct<a: smallint, v: varchar(2)>, c char(3)"
    with pytest.warns(HudiWarning) as said:
        attached.sql(f"alter table {t} add columns ({added})")
    told = {str(warning.message) for warning in said}
    for says in ("n.v varchar(2) will not be cut", "c char(3) will not be cut", "s smallint will be int", "n.a smallint will"):
        assert any(says in text for text in told), says
    attached.sql(f"insert into {t} values (1, 'a', 2, array(3Y), named_struct('a', 4S, 'v', 'long'), 'longer')")
    other = attached if REMOTE else attached.newSession()
    assert rows(other, t) == [(1, "a", 2, [3], (4, "long"), "longer")]
    shown = "struct<id:int,label:string,s:int,l:array<int>,n:struct<a:int,v:string>,c:string>"
    assert other.table(t).schema.simpleString() == shown


def test_new_columns_stand_before_those_of_the_partition(attached: SparkSession, t: str, tmp_path: Path) -> None:
    """As Apache Hudi has them: an INSERT without names goes by the places of columns."""
    made = attached.createDataFrame([(1, "x", "a")], "id int, p string, v string")
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "p"}
    made.write.format("hudimeta").options(**options, **{"hoodie.table.name": t}).mode("append").save(str(tmp_path / "t"))
    attached.sql(f"create table {t} using hudimeta location '{tmp_path / 't'}'")
    attached.sql(f"insert into {t} values (2, 'b', 'y')")
    attached.sql(f"alter table {t} add columns (w string, n int)")
    with pytest.warns(HudiWarning, match="NOT NULL of ADD COLUMNS"):
        attached.sql(f"alter table {t} add column (first int not null comment 'of all' first)")
    assert attached.table(t).columns == ["first", "id", "v", "w", "n", "p"]
    attached.sql(f"insert into {t} values (7, 3, 'c', 'new', 5, 'z')")
    assert rows(attached, t) == [(7, 3, "c", "new", 5, "z"), (None, 1, "a", None, None, "x"), (None, 2, "b", None, None, "y")]
    table = hudimeta.Table(tmp_path / "t")
    assert table.schema.names[5:] == ["first", "id", "p", "v", "w", "n"]
    moment = table.timeline.writes[-1].time
    for query in (f"select * from {t} timestamp as of '{moment}'", f"select *, 1 from {t} where _hoodie_commit_time > '0'"):
        assert [name for name in attached.sql(query).columns if name in table.schema.names[5:]] == attached.table(t).columns
    attached.sql(f"insert into {t} select * from {t} version as of {moment} where id = 3")
    attached.sql(f"create or replace temporary view with_meta as select * from {t} where _hoodie_record_key is not null")
    assert [name for name in attached.table("with_meta").columns if name[0] != "_"] == attached.table(t).columns
    attached.catalog.dropTempView("with_meta")
    assert {r.partition for r in attached.sql(f"show partitions {t}").collect()} == {"x", "y", "z"}
    check_all(open_storage(tmp_path / "t"))


def test_columns_are_declared_anew(attached: SparkSession, t: str) -> None:
    attached.sql(
        f"create table {t} (id int, n int not null, s struct<a: int>) using hudimeta tblproperties (primaryKey = 'id')"
    )
    attached.sql(f"insert into {t} select 1, 2, named_struct('a', 3)")
    before = len(hudimeta.Table(folder_of(attached, t)).timeline.writes)
    attached.sql(f"alter table {t} change column n N int comment 'how many'")
    assert len(hudimeta.Table(folder_of(attached, t)).timeline.writes) == before, "a comment is the catalog's alone"
    attached.sql(f"alter table {t} alter column n type int")
    assert "another name" in refusal(lambda: attached.sql(f"alter table {t} rename column s.a to a"))
    assert len(hudimeta.Table(folder_of(attached, t)).timeline.writes) == before, "nothing has changed"
    attached.sql(f"alter table {t} change column n n bigint after s")
    attached.sql(f"alter table {t} alter column n drop not null")
    attached.sql(f"alter table {t} add columns (s.b string after a, s.c int first)")
    attached.sql(f"insert into {t} select 2, named_struct('c', 1, 'a', 2, 'b', 'x'), null")
    assert rows(attached, t) == [(1, (None, 3, None), 2), (2, (1, 2, "x"), None)]
    shown = {row.col_name: row.data_type for row in attached.sql(f"describe {t}").collect()}
    assert shown == {"id": "int", "s": "struct<c:int,a:int,b:string>", "n": "bigint"}
    with pytest.raises(Exception, match="RENAME COLUMN"):
        attached.sql(f"alter table {t} change column n m bigint")
    assert "only CREATE TABLE" in refusal(lambda: attached.sql(f"alter table {t} alter column n set not null"))
    assert "SCHEMA_EVOLUTION" in refusal(lambda: attached.sql(f"alter table {t} change column n n int"))
    assert attached.table(t).columns == ["id", "s", "n"]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_texts_become_dates_and_numbers_become_decimals(attached: SparkSession, t: str, kind: str) -> None:
    columns = "(id int, day string, n int, x double, s string)"
    attached.sql(f"create table {t} {columns} using hudimeta tblproperties (primaryKey = 'id', type = '{kind}')")
    attached.sql(f"insert into {t} values (1, '2026-01-31', 5, 2.5, '12.345'), (2, null, null, null, 'junk')")
    attached.sql(f"update {t} set n = 6 where id = 1")
    assert "'junk'" in refusal(lambda: attached.sql(f"alter table {t} alter column s type decimal(10, 2)"))
    attached.sql(f"update {t} set s = null where id = 2")
    for column, type in (("day", "date"), ("n", "decimal(14, 2)"), ("x", "decimal(14, 1)"), ("s", "decimal(10, 2)")):
        attached.sql(f"alter table {t} alter column {column} type {type}")
    attached.sql(f"insert into {t} values (3, date '2026-03-01', 7.25, 1.5, 3)")
    assert attached.table(t).dtypes[1:] == [
        ("day", "date"),
        ("n", "decimal(14,2)"),
        ("x", "decimal(14,1)"),
        ("s", "decimal(10,2)"),
    ]
    shown = [(1, "2026-01-31", "6.00", "2.5", "12.35"), (3, "2026-03-01", "7.25", "1.5", "3.00")]
    texts = "id, string(day), string(n), string(x), string(s)"
    assert rows(attached, f"{t} where id <> 2", texts) == shown
    for where in ("day >= date '2026-01-31'", "n between 6 and 7.25", "x > 1", "s < 20 and s > 2"):
        assert rows(attached, f"{t} where {where}", texts) == shown, where
    if not REMOTE:
        pyspark_hudimeta.detach(attached)
        assert rows(attached, f"{t} where id <> 2", texts) == shown
        pyspark_hudimeta.attach(attached)
    check_all(open_storage(folder_of(attached, t)))


def test_a_column_of_text_tells_plain_sessions_where_the_table_is(attached: SparkSession, t: str) -> None:
    """Once the only one had gone, no other was taken for it, and plain INSERT was refused for good."""
    attached.sql(f"create table {t} (id int, label string, v int) using hudimeta tblproperties (primaryKey = 'id')")
    attached.sql(f"alter table {t} drop column label")
    attached.sql(f"alter table {t} add columns (note string comment 'of a rider')")
    if not REMOTE:
        pyspark_hudimeta.detach(attached)
    attached.sql(f"insert into {t} values (1, 2, 'n')")
    if not REMOTE:
        pyspark_hudimeta.attach(attached)
    assert rows(attached, t) == [(1, 2, "n")]
    assert {row.col_name: row.comment for row in attached.sql(f"describe {t}").collect()}["note"] == "of a rider"
    assert "kept for Hudi" in refusal(lambda: attached.sql(f"alter table {t} add columns (_hoodie_file_name string)"))


@pytest.mark.parametrize("field", ["s.a", "l.element.a", "m.value.a"])
def test_the_last_field_of_a_struct_stays(attached: SparkSession, t: str, field: str) -> None:
    """No Parquet file holds a struct without fields: the next write failed."""
    fields = "s struct<a: int>, l array<struct<a: int>>, m map<string, struct<a: int>>"
    attached.sql(f"create table {t} (id int, {fields}) using hudimeta tblproperties (primaryKey = 'id')")
    assert "no field left" in refusal(lambda: attached.sql(f"alter table {t} drop column {field}"))
    attached.sql(f"insert into {t} select 1, struct(1), array(struct(2)), map('k', struct(3))")
    assert rows(attached, t) == [(1, (1,), [(2,)], {"k": (3,)})]


def test_the_catalog_is_told_of_a_column_that_another_write_made_wider(attached: SparkSession, t: str, tmp_path: Path) -> None:
    place, made = f"location '{tmp_path / 't'}'", "tblproperties (primaryKey = 'id')"
    attached.sql(f"create table {t} (id int, label string, v float) using hudimeta {place} {made}")
    attached.sql(f"insert into {t} values (1, 'a', 1.5)")
    wider = attached.createDataFrame([(2, "b", 0.1, "more")], "id int, label string, v double, extra string")
    wider.write.format("hudimeta").mode("append").save(str(tmp_path / "t"))
    assert "ALTER COLUMN … TYPE" in refusal(lambda: attached.table(t).collect())
    attached.sql(f"alter table {t} alter column v type double")
    assert rows(attached, t) == [(1, "a", 1.5), (2, "b", 0.1)]
    attached.sql(f"drop table {t}")
    attached.sql(f"create table {t} using hudimeta {place}")
    assert rows(attached, t) == [(1, "a", 1.5, None), (2, "b", 0.1, "more")]
