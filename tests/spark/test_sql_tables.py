"""SQL in an attached session: CREATE TABLE, CREATE TABLE … AS SELECT, INSERT, ALTER TABLE, DROP TABLE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark_hudimeta
import pytest

import hudimeta
from tests.spark.tables import check, create, refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBER = count()
Name = Callable[[], str]
TRIPS = "(id int, month string, fare double, ts bigint) using hudimeta partitioned by (month)"


@pytest.fixture
def attached(spark: SparkSession) -> Iterator[SparkSession]:
    pyspark_hudimeta.attach(spark)
    yield spark
    pyspark_hudimeta.detach(spark)


@pytest.fixture
def name(attached: SparkSession) -> Iterator[Name]:
    """`name()` is the name of a table that is dropped after the test, with its files."""
    names = []

    def new() -> str:
        names.append(f"sql_{next(NUMBER)}")
        return names[-1]

    yield new
    pyspark_hudimeta.attach(attached)
    for made in names:
        attached.sql(f"drop table if exists {made} purge")


def rows(spark: SparkSession, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.sql(f"select {columns} from {table}").collect()), key=repr)


def table_of(spark: SparkSession, name: str) -> hudimeta.Table:
    """Of a table without LOCATION."""
    warehouse = spark.conf.get("spark.sql.warehouse.dir")
    assert warehouse is not None
    return hudimeta.Table(Path(warehouse.removeprefix("file:")) / name)


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


def test_a_table_in_the_warehouse_is_nobody_elses(attached: SparkSession, name: Name) -> None:
    old, new = name(), name()
    attached.sql(f"create table {old} {TRIPS} tblproperties (primaryKey = 'id')")
    attached.sql(f"insert into {old} values (1, 1.5, 1, 'm')")
    attached.sql(f"alter table {old} rename to {new}")  # its files stay where they are
    says = refusal(lambda: attached.sql(f"create table {old} {TRIPS} tblproperties (primaryKey = 'id')"))
    assert "registers it where LOCATION names its folder" in says
    assert not attached.catalog.tableExists(old)
    assert rows(attached, new, "id") == [(1,)]


def test_the_option_path_is_a_location(attached: SparkSession, name: Name, tmp_path: Path) -> None:
    t = name()
    attached.sql(f"create table {t} (id int) using hudimeta options (path '{tmp_path / 't'}', primaryKey 'id')")
    assert hudimeta.Table(tmp_path / "t").schema.names[-1] == "id"
    attached.sql(f"drop table {t}")
    assert (tmp_path / "t").exists()
    two = f"options (path '{tmp_path / 't'}') location '{tmp_path / 'u'}'"
    assert "one place" in refusal(lambda: attached.sql(f"create table {t} (id int) using hudimeta {two}"))


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


def test_insert_adds_rows_and_with_an_order_the_newer_row_of_a_key_wins(attached: SparkSession, name: Name) -> None:
    plain, ordered = name(), name()
    attached.sql(f"create table {plain} {TRIPS} tblproperties (primaryKey = 'id')")
    attached.sql(f"create table {ordered} {TRIPS} tblproperties (primaryKey = 'id', orderingFields = 'ts')")
    for t in (plain, ordered):
        attached.sql(f"insert into {t} values (1, 1.0, 1, 'm'), (2, 2.0, 2, 'm'), (2, 2.5, 1, 'm')")
        attached.sql(f"insert into {t} values (1, 9.0, 0, 'm'), (2, 9.0, 3, 'm')")
    assert rows(attached, plain, "id, fare") == [(1, 1.0), (1, 9.0), (2, 2.0), (2, 2.5), (2, 9.0)], "as Apache Hudi inserts"
    assert rows(attached, ordered, "id, fare") == [(1, 1.0), (2, 9.0)]
    attached.sql("set hoodie.spark.sql.insert.into.operation = upsert")
    try:
        attached.sql(f"insert into {plain} values (1, 7.0, 0, 'm')")
    finally:
        attached.sql("reset hoodie.spark.sql.insert.into.operation")
    assert (1, 1.0) not in rows(attached, plain, "id, fare")


def test_every_form_of_insert(attached: SparkSession, name: Name) -> None:
    t = name()
    encoded = "'hoodie.datasource.write.partitionpath.urlencode' = 'true'"  # without it, no partition has a colon
    attached.sql(f"create table {t} {TRIPS} tblproperties (primaryKey = 'id', type = 'mor', {encoded})")
    attached.sql(f"insert into {t} (month, id) values ('a', 1), ('b', 2)")
    attached.sql(f"with s as (select 3 as id, 'c' as m) insert into {t} (id, month) select id, m from s")
    attached.sql(f"insert into {t} by name select 'd' as month, 4 as id, 1.5 as fare, 7 as ts")
    attached.sql(f"insert into {t} by name select 'g' as month, 7 as ID")
    attached.sql(f"insert into {t} partition (month = 'h') by name select 8 as id")
    attached.sql(f"insert into table {t} partition (month = 'e') select 5, 2.5, 1")
    attached.sql(f"insert into {t} partition (month) (ts, month, id) select 1L, 'f', 6")
    attached.sql(f"insert into {t} select id + 10, fare, ts, month from {t}")
    attached.sql(f"INSERT INTO {t} VALUES (?, ?, ?, ?)", [100, 1.0, 1, "what?"])
    attached.sql(f'insert into {t} select :id, 1.0, 1, "it\'s :id"', {"id": 101})
    attached.sql("insert into identifier('default.' || :t) select :id, 1.0, 1, 'named'", {"t": t, "id": 103})
    attached.sql("update identifier(?) set identifier('fare') = ? where id = 103", [t, 7.5])
    attached.sql(f"insert into {t} select * from {{frame}}", frame=attached.sql("select 102, 1.0, 1, 'frame'"))
    months = {1: "a", 2: "b", 3: "c", 4: "d", 5: "e", 6: "f", 7: "g", 8: "h"}
    more = {100: "what?", 101: "it's :id", 102: "frame", 103: "named"}
    assert dict(rows(attached, t, "id, month")) == {**months, **{i + 10: m for i, m in months.items()}, **more}
    assert rows(attached, f"{t} where id in (4, 7, 103)", "fare, ts") == [(1.5, 7), (7.5, 1), (None, None)]
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        attached.sql("delete from identifier(:t) where id = 1", {"t": "nothing_of_this_name"})
    check(Path(table_of(attached, t).path))


def test_columns_declared_not_null_hold_no_null(attached: SparkSession, name: Name) -> None:
    t, like = name(), name()
    columns = "(id int not null, s struct<Xy: int, `from`: array<struct<Q: int>>>, n string not null comment 'never none')"
    attached.sql(f"create table {t} {columns} using hudimeta tblproperties (primaryKey = 'id', type = 'mor')")
    attached.sql(f"insert into {t} values (1, null, 'a'), (2, named_struct('Xy', 1, 'from', null), 'b')")
    null = "select 3 as id, cast(null as string) as n union all select 1, 'c'"
    for statement in (
        f"insert into {t} (id) values (3)",
        f"update {t} set n = null where id = 1",
        f"merge into {t} t using ({null}) s on t.id = s.id when matched then update set * when not matched then insert *",
    ):
        assert "column 'n' is null in 1 rows, the table needs a value in every row" in refusal(partial(attached.sql, statement))
    attached.sql(f"delete from {t} where id = 2")
    assert rows(attached, t, "id, n") == [(1, "a")]
    attached.sql(f"create table {like} like {t}")
    for made in (t, like):
        ((statement,),) = attached.sql(f"show create table {made}").collect()
        assert (
            "  `id` INT NOT NULL,\n  `s` STRUCT<`Xy`: INT, `from`: ARRAY<STRUCT<`Q`: INT>>>,\n"
            "  `n` STRING NOT NULL COMMENT 'never none')"
        ) in statement
    assert attached.table(like).schema["s"] == attached.table(t).schema["s"]


def test_the_values_of_partition_are_texts_of_the_columns_types(attached: SparkSession, name: Name) -> None:
    t = name()
    attached.sql(
        f"create table {t} (id int, n int, day date) using hudimeta partitioned by (n, day) tblproperties (primaryKey = 'id')"
    )
    attached.sql(f"insert into {t} partition (n = '1', day = '2026-01-31') select 1")
    attached.sql(f"insert into {t} partition (n = '2', day) values (2, date'2026-02-28')")
    assert rows(attached, t, "id, n, day") == [(1, 1, date(2026, 1, 31)), (2, 2, date(2026, 2, 28))]
    attached.sql(f"insert overwrite {t} partition (n = '1', day = '2026-01-31') select 3")
    assert rows(attached, t, "id, n") == [(2, 2), (3, 1)]
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        attached.sql(f"insert into {t} partition (n = 'x', day = '2026-01-31') select 4")


@pytest.mark.rotation(3)
@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("insert into {} values (1, 2.0)", "INSERT_COLUMN_ARITY_MISMATCH"),
        ("insert into {} values ('x', 2.0, 1, 'm')", "CANNOT_SAFELY_CAST|INCOMPATIBLE_DATA_FOR_TABLE"),
        ("insert into {} values (3000000000L, 2.0, 1, 'm')", "CAST_OVERFLOW"),
        ("insert into {} (id, nothing) values (1, 2)", "columns of the table: id, fare, ts, month"),
        ("insert into {} (id, id) values (1, 2)", "every column once"),
        ("insert into {} by name select 1 as id, 2 as nothing", "columns of the table: id, fare, ts, month"),
        ("insert into {} partition (month = 'a', MONTH = 'b') values (1, 2.0, 1)", "DUPLICATE_KEY"),
        ("insert into {} partition (id = 3) select 1, 2, 'm'", "all partition columns: month"),
        ("insert into {} select * from nowhere_at_all", "TABLE_OR_VIEW_NOT_FOUND"),
        ("insert into {} slect 1", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_an_insert_that_does_not_fit_changes_nothing(attached: SparkSession, name: Name, statement: str, error: str) -> None:
    t = name()
    attached.sql(f"create table {t} {TRIPS} tblproperties (primaryKey = 'id')")
    attached.sql(f"insert into {t} values (7, 2.0, 1, 'm')")
    with pytest.raises(Exception, match=error):
        attached.sql(statement.format(t))
    assert rows(attached, t, "id") == [(7,)]


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
    assert f"CREATE TABLE spark_catalog.default.{t} (\n  `id` INT" in catalog.getCreateTableString(t)
    assert catalog.getTableProperties(t) == {"primaryKey": "id", "type": "mor"}
    catalog.truncateTable(t)
    assert rows(attached, t) == []
    place = Path(table_of(attached, t).path)
    catalog.dropTable(t)
    assert not place.exists()


def test_overwriting_the_table_and_its_partitions(attached: SparkSession, name: Name) -> None:
    t = name()
    attached.sql(f"create table {t} {TRIPS} tblproperties (primaryKey = 'id', preCombineField = 'ts')")

    def fill() -> None:
        attached.sql(f"insert overwrite {t} values (1, 1.0, 1, 'a'), (2, 2.0, 1, 'b'), (3, 3.0, 1, 'b')")

    fill()
    attached.sql(f"insert overwrite {t} partition (month = 'b') select 4, 4.0, 1")
    assert rows(attached, t, "id, month") == [(1, "a"), (4, "b")]
    attached.sql(f"insert overwrite table {t} partition (month = 'b') select 4, 4.0, 1 where false")
    assert rows(attached, t, "id, month") == [(1, "a")]
    fill()
    assert rows(attached, t, "id, month") == [(1, "a"), (2, "b"), (3, "b")]
    attached.sql("set spark.sql.sources.partitionOverwriteMode = dynamic")
    try:
        attached.sql(f"insert overwrite {t} values (5, 1.0, 1, 'b')")
        assert rows(attached, t, "id, month") == [(1, "a"), (5, "b")]
        attached.sql(f"insert overwrite {t} partition (month) select 6, 1.0, 1, 'c'")
        assert rows(attached, t, "id, month") == [(1, "a"), (5, "b"), (6, "c")]
    finally:
        attached.sql("reset spark.sql.sources.partitionOverwriteMode")
    attached.sql(f"insert overwrite {t} partition (month) select 7, 1.0, 1, 'c'")
    assert rows(attached, t, "id, month") == [(7, "c")]
    check(Path(table_of(attached, t).path))


def test_columns_are_altered_in_the_table_and_in_the_catalog(attached: SparkSession, name: Name) -> None:
    t = name()
    attached.sql(f"create table {t} (id int, label string, v int) using hudimeta tblproperties (primaryKey = 'id')")
    attached.sql(f"insert into {t} values (1, 'a', 1)")
    attached.sql(f"alter table {t} add columns (extra double comment 'more', tags array<int>)")
    attached.sql(f"insert into {t} values (2, 'b', 2, 2.5, array(1))")
    assert rows(attached, t) == [(1, "a", 1, None, None), (2, "b", 2, 2.5, [1])]
    attached.sql(f"alter table {t} rename column v to w")
    attached.sql(f"alter table {t} drop column extra")
    assert rows(attached, t, "id, w") == [(1, 1), (2, 2)]
    assert table_of(attached, t).schema.names[5:] == ["id", "label", "w", "tags"]
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
