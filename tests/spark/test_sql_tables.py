"""SQL in an attached session: CREATE TABLE, CREATE TABLE … AS SELECT, ALTER TABLE, DROP TABLE."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark_hudimeta
import pytest
from pyspark.sql.functions import col

import hudimeta
from hudimeta.config import HudiWarning
from tests.spark.tables import check, create, refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
from tests.elsewhere import REMOTE, SAYS_STATEMENTS, only_when
from tests.spark.sql_tables import TRIPS, Name, rows, table_of

pytestmark = SAYS_STATEMENTS


def test_a_table_is_created_with_its_columns_and_properties(attached: SparkSession, name: Name, tmp_path: Path) -> None:
    t = name()
    attached.sql(
        f"create table {t} (id int comment 'the key', month string, fare decimal(8, 2), tags array<string>) using hudimeta "
        "partitioned by (month) tblproperties (primaryKey = 'ID', preCombineField = 'fare', type = 'mor', "
        f"'hoodie.metadata.record.index.enable' = 'true') location '{tmp_path / 'trips'}' comment 'trips of cabs'"
    )
    table = hudimeta.Table(tmp_path / "trips")
    properties = table.properties
    assert (properties.name, properties.type.value, properties.record_keys) == (t, "MERGE_ON_READ", ("id",))
    assert (properties.partition_fields, properties.ordering_fields, properties.hive_style) == (("month",), ("fare",), True)
    assert "record_index" in properties.metadata_partitions
    assert attached.table(t).columns == ["id", "fare", "tags", "month"], "partition columns come last, as in Apache Hudi"
    described = {row.col_name: (row.data_type, row.comment) for row in attached.sql(f"describe {t}").collect()}
    assert described["id"] == ("int", "the key")
    assert described["fare"][0] == "decimal(8,2)"
    attached.sql(f"insert into {t} values (1, 2.5, array('a'), '2026-01')")
    assert rows(attached, t, "id, month, tags[0]") == [(1, "2026-01", "a")]
    check(tmp_path / "trips")


def test_names_are_those_of_the_catalog(attached: SparkSession, name: Name, tmp_path: Path) -> None:
    attached.sql("create database named")
    forms = [("(id int, n int) using", "", "hoodie.table.name"), ("using", "as select 1 as id, 2 as n", "hoodie.table.name")]
    forms.append(("(id int, n int) using", "", "hoodie.datasource.write.table.name"))
    for n, (clause, query, key) in enumerate(forms):
        t = name()
        stated = f"{key} = 'other', 'hoodie.database.name' = 'another', primaryKey = 'id'"
        with pytest.warns(HudiWarning, match="the catalog's name counts"):
            attached.sql(
                f"create table named.{t} {clause} hudimeta tblproperties ({stated}) location '{tmp_path / str(n)}' {query}"
            )
        properties = hudimeta.Table(tmp_path / str(n)).properties
        assert (properties.name, properties.get("hoodie.database.name")) == (t, "named")
        attached.sql(f"insert into named.{t} values (5, 6)")
        assert "other" not in str(attached.sql(f"show tblproperties named.{t}").collect())
    attached.sql("drop database named cascade")


def test_fields_of_structs_are_keys_and_orders(attached: SparkSession, name: Name, tmp_path: Path) -> None:
    t = name()
    attached.sql(
        f"create table {t} (n int, At struct<k: string, Of: struct<ts: int>>) using hudimeta "
        f"tblproperties (primaryKey = 'at.K', preCombineField = 'At.of.ts') location '{tmp_path / 't'}'"
    )
    properties = hudimeta.Table(tmp_path / "t").properties
    assert (properties.record_keys, properties.ordering_fields) == (("At.k",), ("At.Of.ts",))
    attached.sql(
        f"insert into {t} values (1, struct('a', struct(9))), (2, struct('a', struct(3))), (3, struct('b', struct(1)))"
    )
    attached.sql(f"update {t} set n = 4 where at.k = 'a'")
    assert rows(attached, t, "n, at.k") == [(3, "b"), (4, "a")]
    attached.sql(f"update {t} set at.of.ts = 20 where n = 4")
    source = "(select 5 as n, struct('a' as k, struct(30 as ts) as of) as at)"
    matched = f"merge into {t} t using {source} s on t.at.k = s.at.k when matched then update set"
    attached.sql(f"{matched} *")
    assert rows(attached, t, "n, at.k, at.of.ts") == [(3, "b", 1), (5, "a", 30)]
    if not REMOTE:  # Spark Connect hands no `mergeInto` over
        frame = attached.sql("select 6 as n, struct('a' as k, struct(40 as ts) as of) as at")
        frame.mergeInto(t, frame["at.k"] == col(f"{t}.at.k")).whenMatched().updateAll().merge()
        assert rows(attached, t, "n, at.k, at.of.ts") == [(3, "b", 1), (6, "a", 40)]
    assert "part of the key" in refusal(partial(attached.sql, f"{matched} at = struct('z' as k, s.at.of as of)"))
    assert "Delete the row" in refusal(partial(attached.sql, f"update {t} set at.k = 'z'"))
    for wrong, told in (("At.nope", "At.nope"), ("nope.k", "'nope'"), ("At", "At is struct")):
        statement = f"create table no_{t} (At struct<k: int>) using hudimeta tblproperties (primaryKey = '{wrong}')"
        assert told in refusal(partial(attached.sql, statement))


def test_a_table_without_location_lies_in_the_warehouse_and_is_dropped_with_its_files(
    attached: SparkSession, name: Name
) -> None:
    t = name()
    attached.sql(f"create table if not exists {t} {TRIPS} tblproperties (primaryKey = 'id')")
    attached.sql(f"create table if not exists {t} {TRIPS} tblproperties (primaryKey = 'id')")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        attached.sql(f"create table {t} {TRIPS}")
    attached.sql(f"insert into {t} values (1, 1.5, 1, 'm')")
    path = Path(table_of(attached, t).path)
    attached.sql(f"drop table {t}")
    assert not path.exists()
    assert not attached.catalog.tableExists(t)
    attached.sql(f"create table {t} {TRIPS}")
    assert rows(attached, t) == []


@pytest.mark.parametrize("of_query", [False, True])
def test_the_name_of_a_renamed_table_is_free(attached: SparkSession, name: Name, of_query: bool) -> None:
    old, new = name(), name()
    attached.sql(f"create table {old} {TRIPS} tblproperties (primaryKey = 'id')")
    attached.sql(f"insert into {old} values (1, 1.5, 1, 'm')")
    path = Path(table_of(attached, old).path)
    attached.sql(f"alter table {old} rename to {new}")  # its files stay where they are
    if of_query:
        attached.sql(f"create table {old} using hudimeta tblproperties (primaryKey = 'id') as select 2 as id")
    else:
        attached.sql(f"create table if not exists {old} {TRIPS} tblproperties (primaryKey = 'id')")
        attached.sql(f"insert into {old} values (2, 1.5, 1, 'm')")
    assert (rows(attached, new, "id"), rows(attached, old, "id")) == ([(1,)], [(2,)])
    assert hudimeta.Table(path).properties.name == new
    attached.sql(f"drop table {old}")
    assert rows(attached, new, "id") == [(1,)]
    attached.sql(f"drop table {new}")
    assert not list(path.parent.glob(f"{path.name}*"))


def test_a_table_in_the_warehouse_that_the_catalog_does_not_know_is_nobody_elses(attached: SparkSession, name: Name) -> None:
    t, other = name(), name()
    attached.sql(f"create table {t} {TRIPS} tblproperties (primaryKey = 'id')")
    path = Path(table_of(attached, t).path)
    attached.sql(f"drop table {t}")
    for called in (t, other):
        hudimeta.Table.create(path, pa.schema([("id", pa.int32())]), key="id", name=called)
        assert "HUDIMETA_" in refusal(partial(attached.sql, f"create table {t} {TRIPS} tblproperties (primaryKey = 'id')"))
        assert not attached.catalog.tableExists(t)
        assert hudimeta.Table(path).properties.name == called
        shutil.rmtree(path)


def test_the_option_path_is_a_location(attached: SparkSession, name: Name, tmp_path: Path) -> None:
    t = name()
    attached.sql(f"create table {t} (id int) using hudimeta options (path '{tmp_path / 't'}', primaryKey 'id')")
    assert hudimeta.Table(tmp_path / "t").schema.names[-1] == "id"
    attached.sql(f"drop table {t}")
    assert (tmp_path / "t").exists()
    two = f"options (path '{tmp_path / 't'}') location '{tmp_path / 'u'}'"
    with pytest.raises(Exception, match="HUDIMETA_CONFIG: LOCATION" if REMOTE else "Duplicated table paths found"):
        attached.sql(f"create table {t} (id int) using hudimeta {two}")


def test_dropping_a_table_with_location_keeps_its_files_unless_it_is_purged(
    attached: SparkSession, name: Name, tmp_path: Path
) -> None:
    t = name()
    at = f"location '{tmp_path / 't'}'"
    attached.sql(f"create table {t} {TRIPS} tblproperties (primaryKey = 'id') {at}")
    attached.sql(f"insert into {t} values (1, 1.5, 1, 'm')")
    attached.sql(f"drop table {t}")
    assert hudimeta.Table(tmp_path / "t").scan().count() == 1
    attached.sql(f"create table {t} {TRIPS} tblproperties (primaryKey = 'id') {at}")
    assert rows(attached, t, "id") == [(1,)], "the table that is there"
    attached.sql(f"drop table {t} purge")
    assert not (tmp_path / "t").exists()


def test_a_table_that_is_there_must_fit_what_is_asked_for(attached: SparkSession, name: Name, tmp_path: Path) -> None:
    create(tmp_path / "t")
    t = name()
    at = f"using hudimeta location '{tmp_path / 't'}'"
    says = refusal(lambda: attached.sql(f"create table {t} (id bigint, other string) {at}"))
    assert "Leave the list of columns out" in says
    columns = "(id bigint, part string, ts bigint, x double)"
    assert "primary" not in refusal(lambda: attached.sql(f"create table {t} {columns} {at} tblproperties (primaryKey = 'x')"))
    assert not attached.catalog.tableExists(t)
    attached.sql(f"create table {t} {columns} {at} tblproperties (primaryKey = 'id')")
    assert attached.table(t).count() == 10


@pytest.mark.rotation(2)
@pytest.mark.parametrize(
    ("clauses", "text"),
    [
        ("(id int, part string) using hudimeta partitioned by (bucket(4, id))", "transform bucket"),
        ("(id int) using hudimeta clustered by (id) into 4 buckets", "CLUSTERED"),
        ("(id int, s string) using hudimeta tblproperties (primaryKey = 'nothing')", "columns of the table: id, s"),
        ("(id int, s interval day to second) using hudimeta", "column s"),
        ("(id int, s struct<t: array<string collate unicode_ci>>) using hudimeta", "s.t.element with collation UNICODE_CI"),
        ("using hudimeta as select 'x' collate utf8_lcase as s", "column s with collation UTF8_LCASE"),
        ("(id int, s string) using hudimeta partitioned by (s string)", "a column once"),
        ("(id int, s string) using hudimeta tblproperties (type = 'cows')", "cows"),
        ("(id int, s string) using hudimeta tblproperties ('hoodie.metadata.record.indx.enable' = 'true')", "record.index"),
    ],
)
def test_what_cannot_be_created_leaves_nothing(attached: SparkSession, name: Name, clauses: str, text: str) -> None:
    t = name()
    warehouse = Path(attached.conf.get("spark.sql.warehouse.dir").removeprefix("file:"))
    assert text in refusal(lambda: attached.sql(f"create table {t} {clauses}"))
    assert not attached.catalog.tableExists(t)
    assert not (warehouse / t).exists()


def test_a_table_is_created_from_a_query(attached: SparkSession, name: Name, tmp_path: Path) -> None:
    t = name()
    attached.sql(
        f"create table {t} using hudimeta partitioned by (m) tblproperties (primaryKey = 'id', type = 'mor') "
        "as select id, concat('m', id % 2) as m, id * 1.5D as fare from range(4)"
    )
    assert rows(attached, t) == [(0, 0.0, "m0"), (1, 1.5, "m1"), (2, 3.0, "m0"), (3, 4.5, "m1")]
    u = name()
    at = f"location '{tmp_path / 'u'}'"
    attached.sql(f"create table {u} using hudimeta {at} as select * from {t} where id < :most", {"most": 2})
    assert rows(attached, u, "id, m") == [(0, "m0"), (1, "m1")]
    assert hudimeta.Table(tmp_path / "u").properties.record_keys == ()
    failing = name()
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        attached.sql(f"create table {failing} using hudimeta location '{tmp_path / 'f'}' as select 1 / (id - 3) x from {t}")
    assert not attached.catalog.tableExists(failing)
    assert not (tmp_path / "f").exists()


def test_a_query_makes_no_table_in_a_folder_that_holds_something(attached: SparkSession, name: Name, tmp_path: Path) -> None:
    t = name()
    other = tmp_path / "t" / "notes.txt"
    other.parent.mkdir()
    other.write_text("mine")
    statement = f"create table {t} using hudimeta location '{tmp_path / 't'}' as select 1 as id"
    assert "notes.txt" in refusal(lambda: attached.sql(statement))
    assert not attached.catalog.tableExists(t)
    assert [entry.name for entry in tmp_path.rglob("*")] == ["t", "notes.txt"], "nothing was begun"
    other.unlink()
    attached.sql(statement)
    assert rows(attached, t) == [(1,)]
    again = name()
    says = refusal(lambda: attached.sql(f"create table {again} using hudimeta location '{tmp_path / 't'}' as select 2 as id"))
    assert "INSERT INTO the table that is there" in says
    assert rows(attached, t) == [(1,)]


@pytest.mark.oldest
@only_when(not REMOTE, "classic sessions, whose catalog attaching exchanges")
def test_sparks_catalog_makes_and_drops_tables(attached: SparkSession, name: Name) -> None:
    t, catalog = name(), attached.catalog
    schema = attached.createDataFrame([], "id int, month string").schema
    catalog.createTable(t, source="hudimeta", schema=schema, description="trips", primaryKey="id", type="mor")
    attached.sql(f"insert into {t} values (1, 'a')")
    assert rows(attached, t) == [(1, "a")]
    assert table_of(attached, t).properties.record_keys == ("id",)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        catalog.createTable(t, source="hudimeta", schema=schema)
    assert "partitions" in refusal(lambda: catalog.recoverPartitions(t))
    catalog.analyzeTable(t)
    partitioned = name()
    attached.sql(f"create table {partitioned} {TRIPS} tblproperties (primaryKey = 'id')")
    attached.sql(f"insert into {partitioned} (id, month) values (1, 'a')")
    assert [one.partition for one in catalog.listPartitions(partitioned)] == ["month=a"]
    assert f"CREATE TABLE spark_catalog.default.{t} (\n  `id` INT" in catalog.getCreateTableString(t)
    assert catalog.getTableProperties(t) == {"primaryKey": "id", "type": "mor"}
    catalog.truncateTable(t)
    assert rows(attached, t) == []
    other = name()
    attached.sql(f"create table {other} (id int, month string) using parquet partitioned by (month)")
    attached.sql(f"insert into {other} values (1, 'b')")
    assert [one.partition for one in catalog.listPartitions(other)] == ["month=b"], "tables of Spark's are asked by Spark"
    for named in (partitioned, f"default.{partitioned}", other):
        assert [column.name for column in catalog.listColumns(named) if column.isPartition] == ["month"], named
    assert "USING parquet" in catalog.getCreateTableString(other)
    catalog.dropTable(other, ifExists=True)
    catalog.dropTable(other, ifExists=True)
    place = Path(table_of(attached, t).path)
    catalog.dropTable(t)
    assert not place.exists()


@pytest.mark.rotation(2)
def test_a_plain_session_reads_and_inserts_into_what_was_made(attached: SparkSession, name: Name) -> None:
    made, from_query = name(), name()
    attached.sql(f"create table {made} {TRIPS} tblproperties (primaryKey = 'id', preCombineField = 'ts', type = 'mor')")
    attached.sql(f"create table {from_query} using hudimeta tblproperties (primaryKey = 'id') as select 1 as id, 'x' as s")
    attached.sql(f"insert into {made} values (1, 1.0, 1, 'm')")
    attached.sql(f"alter table {from_query} add columns (n int)")
    pyspark_hudimeta.detach(attached)
    attached.sql(f"insert into {made} values (1, 2.0, 2, 'm'), (2, 2.0, 2, 'n')")
    attached.sql(f"insert into {from_query} select id + 1, month, 5 from {made}")
    assert rows(attached, made) == [(1, 2.0, 2, "m"), (2, 2.0, 2, "n")]
    assert rows(attached, from_query) == [(1, "x", None), (2, "m", 5), (3, "n", 5)]


def test_tables_of_other_formats_and_views_are_sparks(attached: SparkSession, tmp_path: Path) -> None:
    attached.sql("drop table if exists of_parquet")
    attached.sql("create table of_parquet (id int, `insert into x` string) using parquet partitioned by (id)")
    try:
        attached.sql("insert into of_parquet values ('s;', 1)")
        attached.sql("insert overwrite of_parquet partition (id = 2) select 'hudimeta'")
        attached.sql("insert overwrite directory '{}' using parquet select 1 as a".format(tmp_path / "out"))
        assert rows(attached, "of_parquet") == [("hudimeta", 2), ("s;", 1)]
        attached.sql("alter table of_parquet add columns (more int)")
        attached.sql("create temporary view over_parquet as select * from of_parquet")
        with pytest.raises(Exception, match=r"UNSUPPORTED|not support"):
            attached.sql("update over_parquet set more = 1")
        with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
            attached.sql("insert intoo of_parquet values (1)")
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            attached.sql("drop table nothing_of_this_name")
        attached.sql("drop table if exists nothing_of_this_name")
    finally:
        attached.sql("drop view if exists over_parquet")
        attached.sql("drop table of_parquet")
