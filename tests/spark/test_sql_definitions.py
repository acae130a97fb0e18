"""Definitions and services of SQL in an attached session: what is wrong is said, by Spark or by us, and changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hudimeta
from tests.elsewhere import SAYS_STATEMENTS
from tests.spark.sql_tables import SCAN, is_said, rows
from tests.spark.tables import refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = SAYS_STATEMENTS

NO_TABLE = "which is no hudimeta table.*SHOW TABLES"
REFUSED = {
    # Spark reads the whole of a definition before anything of it is done
    "create table made (id int,) using hudimeta": "PARSE_SYNTAX_ERROR",
    "create table made (id foo) using hudimeta": "UNSUPPORTED_DATATYPE",
    "create table made (id int) using hudimeta tblproperties (a = 'b', a = 'c')": "DUPLICATE_KEY",
    "create or replace table if not exists defined (id int) using hudimeta": "PARSE_SYNTAX_ERROR",
    "create table made (id int default 1 default 2) using hudimeta": "DEFAULT",
    "alter table defined alter column id drop not null, name drop not null": "ALTER COLUMN drop not null, name drop not null",
    "alter table defined add columns ()": "PARSE_SYNTAX_ERROR",
    "alter table defined alter column id type bigint comment 'x'": "PARSE_SYNTAX_ERROR",
    "alter table defined alter column id type foo": "UNSUPPORTED_DATATYPE",
    "alter table defined drop partition (day)": "EMPTY_PARTITION_VALUE",
    "truncate table defined partition (day)": "EMPTY_PARTITION_VALUE",
    # As Spark has it for tables of any format
    "show partitions defined partition (day = '')": "say day = null",
    'alter table defined drop partition (day = "")': "a text that is not empty",
    "alter table defined add partition (day = '')": "a text that is not empty",
    "truncate table defined partition (day = r'')": "a text that is not empty",
    "analyze table defined partition (day = '') compute statistics": "a text that is not empty",
    "insert into defined partition (day = '') (id, ts) values (3, 1)": "a text that is not empty",
    "insert overwrite defined partition (day = '') (id, ts) values (3, 1)": "a text that is not empty",
    # What makes no table, and what takes none away
    "create table made using hudimeta": "LOCATION with the folder of a table",
    "create table made using hudimeta location '/nowhere'": r"\AHUDIMETA_TABLE_NOT_FOUND.*create the table",
    "create table made (id int primary key) using hudimeta": r"the declaration of columns \(id int primary key\)|CONSTRAINT",
    "create table made (id int) using hudimeta tblproperties ('hudimeta.storage.s3.secret' = 'x')": "in clear text",
    "create table made (id int) using hudimeta location ''": "LOCATION out for a table in the warehouse",
    "create table made (id int) using hudimeta location '{there}/file/in'": "/file is a file",
    "create table made using hudimeta location '{there}/a/b' as select cast('x' as int) as id": "CAST_INVALID_INPUT",
    "create table `ma/de` (id int) using hudimeta": "letters, digits and underscores",
    "create or replace table defined using hudimeta": "LOCATION with the folder of a table",
    "replace table defined using hudimeta location '/nowhere'": r"\AHUDIMETA_TABLE_NOT_FOUND.*create the table",
    "replace table defined using hudimeta location '{there}/defined'": "in the same folder",
    "replace table defined using hudimeta location '{there}/defined/new' as select 1 as id": "in the same folder",
    "create or replace table defined_view (id int) using hudimeta": "It is a view",
    "replace table defined_view using hudimeta as select 1 as id": "It is a view",
    # Columns and partitions
    "alter table defined alter column id type smallint": "from int32 to int16",
    "alter table defined add columns (x interval day)": "column x of type interval day",
    "alter table defined add columns (`a.b` int)": "'a.b' is a name that Avro cannot hold",
    "alter table defined drop partition (day = 'd1') purge": "VACUUM does so now",
    "alter table defined add partition (day = 'd9') location '/x'": "leave LOCATION out",
    "alter table defined add constraint c check (id > 0)": "primaryKey and NOT NULL",
    "analyze table defined partition (id = 1) compute statistics": "partition columns: day",
    "insert into defined by name (id, day) select 1, 'd1'": "PARSE_SYNTAX_ERROR",
    "insert into defined partition (day = name) (id, ts) values (3, 1)": "a constant",
    "insert overwrite directory '/tmp/x' using hudimeta select 1 as id": "LOCATION … AS SELECT",
    # What Spark does not know
    "optimize defined where": r"Write OPTIMIZE t \[WHERE",
    "optimize defined where id = 1": "a condition over partition columns: day",
    "optimize defined zorder by ()": r"Write OPTIMIZE t \[WHERE",
    "optimize defined_view": NO_TABLE,
    "optimize plain": NO_TABLE,
    "vacuum defined retain 1 day": r"Write VACUUM t \[RETAIN n HOURS\]",
    "vacuum plain": NO_TABLE,
    "restore table defined": "Write RESTORE TABLE t TO VERSION AS OF instant",
    "restore table plain to version as of 5": NO_TABLE,
    "describe extended defined partition (day = 'd1')": "SHOW PARTITIONS lists those",
    "describe history defined limit x": r"Write DESCRIBE HISTORY t \[LIMIT n\]",
    "describe history defined_temporary": NO_TABLE,
    "describe detail plain": NO_TABLE,
    "show indexes from plain": NO_TABLE,
    "create index i on defined ()": "Write CREATE INDEX i ON t",
    "create index i on defined using column_stats(ts) options (expr = 'nope')": "Take one of identity, year",
    "create index i on defined using column_stats(ts) options (expr = 'lower', nope = 'x')": "lower takes no options",
    "create index i on keyless (v)": r"CREATE INDEX record_index ON `keyless` USING record_index \(`id`\)",
    # Queries
    "select * from hudi_timeline('nope')": r"\AHUDIMETA_CONFIG: argument 'path' has the value 'nope'",
    "select * from hudi_table_changes('defined', 'nope', 'earliest')": r"\AHUDIMETA_CONFIG: argument 'query_type'.*\bcdc\.?",
    "explain select * from hudi_timeline('/nowhere')": r"\AHUDIMETA_TABLE_NOT_FOUND",
    "select * from hudimeta.`defined`": r"\AHUDIMETA_CONFIG.*with a slash",
    "select d.id from defined d join hudimeta.defined on true": r"\AHUDIMETA_CONFIG.*with a slash",
    # Errors of Spark's own
    "optimize nope": "TABLE_OR_VIEW_NOT_FOUND",
    "merge into defined t using plain s on t.id = s.id when matched then update set name = s.nope": "FIELD_NOT_FOUND",
}


@pytest.fixture
def there(attached: SparkSession, tmp_path: Path) -> Iterator[Path]:
    attached.sql(
        "create table defined (id int, name string, ts bigint, day string) using hudimeta partitioned by (day) "
        f"tblproperties (primaryKey = 'id', orderingFields = 'ts') location '{tmp_path / 'defined'}'"
    )
    attached.sql("insert into defined values (1, 'a', 1, 'd1'), (2, 'b', 1, 'd2')")
    attached.sql(f"create table keyless (id int, v string) using hudimeta location '{tmp_path / 'keyless'}'")
    attached.sql("create view defined_view as select id, name from defined")
    attached.sql("create temporary view defined_temporary as select id, name from defined")
    attached.sql("create table plain using parquet as select 1 as id, 'x' as name")
    (tmp_path / "file").touch()
    yield tmp_path
    for made in ("view defined_view", "view defined_temporary", "table defined", "table keyless", "table plain"):
        attached.sql(f"drop {made}")


@pytest.mark.rotation(2)
@pytest.mark.parametrize("turn", [0, 1])
def test_what_is_refused_changes_neither_files_nor_catalog(attached: SparkSession, there: Path, turn: int) -> None:
    warehouse = Path(str(attached.conf.get("spark.sql.warehouse.dir")).removeprefix("file:"))

    def found() -> tuple[Any, ...]:
        files = [str(file) for file in there.rglob("*") if not {".aux", ".locks"} & set(file.parts)]
        names = sorted(row.tableName for row in attached.sql("show tables").collect())
        return sorted(files), sorted(path.name for path in warehouse.iterdir()), names, attached.table("defined").schema

    before = found()
    for statement, says in list(REFUSED.items())[turn::2]:
        with pytest.raises(Exception, match=r".+") as caught:
            attached.sql(statement.replace("{there}", str(there))).collect()
        text = str(caught.value)
        assert is_said(says, caught.value), (statement, text[:500])
        for internal in ("Traceback", "INTERNAL_ERROR", "_hudimeta_"):
            assert internal not in text.split("Project")[0], (statement, text[:500])
        assert type(caught.value).__name__ != "Py4JJavaError", statement
        assert found() == before, statement
    assert rows(attached, "defined_view") == [(1, "a"), (2, "b")]


def test_names_that_differ_by_case_alone_and_those_of_temporary_views(attached: SparkSession, there: Path) -> None:
    assert "not in case alone" in refusal(lambda: attached.sql("alter table defined rename column name to NAME"))
    attached.sql("alter table defined rename column NAME to Title")
    assert attached.table("defined").columns == ["id", "Title", "ts", "day"]
    attached.sql("insert into defined values (3, 'c', 1, 'd1')")
    assert rows(attached, "defined", "id, title") == [(1, "a"), (2, "b"), (3, "c")]
    attached.sql(f"create table defined_temporary (n int) using hudimeta location '{there / 'hidden'}'")
    attached.sql("insert into default.defined_temporary values (7)")
    assert rows(attached, "default.defined_temporary") == [(7,)]
    attached.sql(f"create or replace table defined_temporary using hudimeta location '{there / 'other'}' as select 8 as n")
    assert rows(attached, "default.defined_temporary") == [(8,)]
    attached.sql("drop table default.defined_temporary")


def test_columns_and_properties_are_changed_as_the_statement_names_them(attached: SparkSession, there: Path) -> None:
    attached.sql("alter table defined add columns (s struct<a: int, b: int, c: int>)")
    attached.sql("alter table defined drop column if exists S.A, s.nope, nope")
    attached.sql("alter table defined alter column S.B type bigint")
    attached.sql("alter table defined alter column s.C first")
    attached.sql("alter table defined alter column id comment 'the key', TS comment 'the order'")
    shown = {row.col_name: (row.data_type, row.comment) for row in attached.sql("describe defined").collect()}
    assert shown["s"][0] == "struct<c:int,b:bigint>"
    assert (shown["id"][1], shown["ts"][1]) == ("the key", "the order")
    assert attached.sql(f"describe hudimeta.`{there / 'defined'}`").collect()[0].data_type == "int"
    for statement, comment in {
        "comment on table defined is 'old'": "old",
        "alter table defined set tblproperties ('note' = 'x')": "old",
        "alter table defined set tblproperties ('comment' = 'new')": "new",
        "alter table defined unset tblproperties ('comment')": None,
    }.items():
        attached.sql(statement)
        assert attached.sql("describe detail defined").collect()[0].description == comment, statement
    attached.sql("truncate table defined partition (day = :d)", {"d": "d1"})
    for empty in (
        "alter table defined drop partition (day = ?)",
        "insert into defined partition (day = ?) (id, ts) values (3, 1)",
    ):
        assert "a text that is not empty" in refusal(lambda empty=empty: attached.sql(empty, [""]))
    attached.sql("alter table defined drop partition (day = ?)", ["d2"])
    assert rows(attached, "defined") == []
    with pytest.raises(Exception, match="UNBOUND_SQL_PARAMETER"):
        attached.sql("alter table defined set tblproperties ('note' = :n)", {"m": 1})


def test_an_entry_is_replaced_by_one_of_another_folder(attached: SparkSession, there: Path) -> None:
    attached.sql("insert into keyless values (1, 'k')")
    attached.sql(f"create or replace table defined using hudimeta location '{there / 'keyless'}'")
    assert rows(attached, "defined") == [(1, "k")]
    assert hudimeta.Table(there / "defined").scan().to_table().num_rows == 2, "files at a LOCATION stay"


EXPLAINED = {
    "create table made (id int) using hudimeta": "hudimeta CREATE TABLE of spark_catalog.default.made: done by hudimeta",
    "create table made using hudimeta as select id from defined": f"hudimeta CREATE TABLE AS SELECT.*{SCAN}",
    "alter table defined add columns (x int)": "hudimeta ALTER TABLE of spark_catalog.default.defined",
    "alter table defined drop partition (day = 'd1')": "hudimeta ALTER TABLE … DROP PARTITION of",
    "msck repair table defined": "hudimeta MSCK REPAIR TABLE of",
    "show partitions defined": "hudimeta SHOW PARTITIONS of",
    "drop table defined": "hudimeta DROP TABLE of",
}


def test_what_definitions_would_do_and_what_views_are_is_shown(attached: SparkSession, there: Path) -> None:
    for statement, says in EXPLAINED.items():
        (shown,) = attached.sql(f"explain {statement}").collect()
        assert re.search(says, shown[0], re.DOTALL), shown[0]
    assert rows(attached, "defined", "id, ts") == [(1, 1), (2, 1)]
    for view in ("defined_view", "extended defined_view", "defined_temporary"):
        shown = {row.col_name: row.data_type for row in attached.sql(f"describe {view}").collect()}
        assert (shown["id"], shown["name"]) == ("int", "string"), view
    attached.sql("create table alike like defined using parquet")
    try:
        attached.sql("insert into alike values (1, 'a', 1, 'd1')")
        assert attached.table("alike").columns == attached.table("defined").columns
        assert [row.partition for row in attached.sql("show partitions alike").collect()] == ["day=d1"]
    finally:
        attached.sql("drop table alike")


def test_a_name_in_double_quotes_that_is_not_closed_is_none(
    attached: SparkSession, there: Path, conf: Callable[[str, str], None]
) -> None:
    conf("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    for statement in ('delete from defined where "id"" = 1', 'select _hoodie_record_key, "id"" from defined'):
        with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
            attached.sql(statement)
    assert rows(attached, "defined", "id") == [(1,), (2,)]
