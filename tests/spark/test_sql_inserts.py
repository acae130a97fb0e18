"""SQL in an attached session: INSERT and INSERT OVERWRITE in all their forms."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.tables import check, refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
from tests.elsewhere import REMOTE, SAYS_STATEMENTS
from tests.spark.sql_tables import TRIPS, Name, is_said, rows, table_of

pytestmark = SAYS_STATEMENTS


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


def test_what_is_set_of_keys_and_of_commits_is_heeded(
    attached: SparkSession, name: Name, conf: Callable[[str, str], None]
) -> None:
    t, keyless = name(), name()
    attached.sql(f"create table {t} {TRIPS} tblproperties (primaryKey = 'id')")
    attached.sql(f"create table {keyless} {TRIPS}")
    conf("hoodie.datasource.write.commitmeta.key.prefix", "told_")
    conf("told_by", "me")
    attached.sql(f"insert into {t} values (1, 1.0, 1, 'm')")
    told = attached.sql(f"call show_commit_extra_metadata(table => '{t}', metadata_key => 'told_by')").collect()
    assert [row.metadata_value for row in told] == ["me"]
    conf("hoodie.datasource.insert.dup.policy", "drop")
    for verb, there in (("bulk_insert", t), ("insert", keyless)):
        conf("hoodie.spark.sql.insert.into.operation", verb)
        said = refusal(partial(attached.sql, f"insert into {there} values (1, 2.0, 2, 'm')"))
        assert "hoodie.datasource.insert.dup.policy" in said
    made = name()
    attached.sql(f"create table {made} using hudimeta tblproperties (primaryKey = 'id') as select * from {t}")
    assert rows(attached, made, "id") == [(1,)], "no key of a new table is known"
    assert rows(attached, keyless) == []


def test_every_form_of_insert(attached: SparkSession, name: Name) -> None:
    t = name()
    encoded = "'hoodie.datasource.write.partitionpath.urlencode' = 'true'"  # without it, no partition has a colon
    attached.sql(f"create table {t} {TRIPS} tblproperties (primaryKey = 'id', type = 'mor', {encoded})")
    attached.sql(f"insert into {t} (month, id) values ('a', 1), ('b', 2)")
    attached.sql(f"with s as (select 3 as id, 'c' as m) insert into {t} (id, month) select id, m from s")
    attached.sql(f"insert into {t} by name select 'd' as month, 4 as id, 1.5 as fare, 7 as ts")
    attached.sql(f"insert into {t} by name select 'g' as month, 7 as ID")
    attached.sql(f"insert into {t} partition (month = 'h') by name select 8 as id")
    attached.sql(f"insert into {t} select 'i' as Month, 9L as ts, 90.5D as fare, 9 as id")
    attached.sql(f"insert into {t} partition (month = 'j') select 8L as ts, 80.5D as fare, 10 as id")
    attached.sql(f"insert into table {t} partition (month = 'e') select 5, 2.5, 1")
    attached.sql(f"insert into {t} partition (month) (ts, month, id) select 1L, 'f', 6")
    attached.sql(f"insert into {t} select id + 10, fare, ts, month from {t}")
    attached.sql(f"INSERT INTO {t} VALUES (?, ?, ?, ?)", [100, 1.0, 1, "what?"])
    attached.sql(f'insert into {t} select :id, 1.0, 1, "it\'s :id"', {"id": 101})
    attached.sql("insert into identifier('default.' || :t) select :id, 1.0, 1, 'named'", {"t": t, "id": 103})
    attached.sql("update identifier(?) set identifier('fare') = ? where id = 103", [t, 7.5])
    attached.sql(f"insert into {t} select * from {{frame}}", frame=attached.sql("select 102, 1.0, 1, 'frame'"))
    attached.sql(f"insert into {t} select 104 as id, 1.0 as fare, 104 as id, 'twice' as month")
    months = dict(enumerate("abcdefghij", start=1))
    more = {100: "what?", 101: "it's :id", 102: "frame", 103: "named", 104: "twice"}
    assert dict(rows(attached, t, "id, month")) == {**months, **{i + 10: m for i, m in months.items()}, **more}
    assert rows(attached, f"{t} where id in (4, 7, 103)", "fare, ts") == [(1.5, 7), (7.5, 1), (None, None)]
    assert rows(attached, f"{t} where id in (9, 10, 104)", "id, fare, ts") == [(10, 80.5, 8), (104, 1.0, 104), (9, 90.5, 9)]
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        attached.sql("delete from identifier(:t) where id = 1", {"t": "nothing_of_this_name"})
    check(Path(table_of(attached, t).path))


def test_columns_declared_not_null_hold_no_null(attached: SparkSession, name: Name) -> None:
    t, like = name(), name()
    columns = "(id int not null, s struct<Xy: int not null, `from`: array<struct<Q: int>>>, n string not null comment 'none')"
    attached.sql(f"create table {t} {columns} using hudimeta tblproperties (primaryKey = 'id', type = 'mor')")
    attached.sql(f"insert into {t} values (1, null, 'a'), (2, named_struct('Xy', 1, 'from', null), 'b')")
    inside = f"insert into {t} values (3, named_struct('Xy', cast(null as int), 'from', null), 'c')"
    assert "column 's.Xy' is null in 1 rows" in refusal(partial(attached.sql, inside))
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
            "  `id` INT NOT NULL,\n  `s` STRUCT<`Xy`: INT NOT NULL, `from`: ARRAY<STRUCT<`Q`: INT>>>,\n"
            "  `n` STRING NOT NULL COMMENT 'none')"
        ) in statement
    assert attached.table(like).schema["s"] == attached.table(t).schema["s"]


def test_fields_of_structs_go_by_name_where_all_columns_do(attached: SparkSession, name: Name) -> None:
    t = name()
    attached.sql(f"create table {t} (id int, s struct<a: int, b: int>) using hudimeta tblproperties (primaryKey = 'id')")
    attached.sql(f"insert into {t} select named_struct('b', 2, 'a', 1) as s, 1 as id")
    attached.sql(f"insert into {t} values (2, named_struct('c', 1, 'd', 2))")
    assert rows(attached, t, "id, s.a, s.b") == [(1, 1, 2), (2, 1, 2)]
    attached.sql(f"insert into {t} select 3 as id, named_struct('a', 1, 'c', 2) as s")  # not all, so none
    assert rows(attached, f"{t} where id = 3", "id, s.a, s.b") == [(3, 1, 2)]
    for wrong in (
        "select 'x' as s, 4 as id",
        "by name select named_struct('a', 1, 'c', 2) as s, 4 as id",
        "values (4, named_struct('a', 1))",
        "values (4, named_struct('a', 1, 'b', 2, 'c', 3))",
    ):
        with pytest.raises(
            Exception, match=r"CANNOT_SAFELY_CAST|HUDIMETA_|INVALID_COLUMN_OR_FIELD|INCOMPATIBLE_DATA_FOR_TABLE"
        ):
            attached.sql(f"insert into {t} {wrong}")
    assert len(rows(attached, t, "id")) == 3


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
    attached.sql(f"insert into {t} partition (day, n) select 4, 5, date'2026-05-05'")  # in the order of the table
    assert rows(attached, f"{t} where id = 4") == [(4, 5, date(2026, 5, 5))]
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
    with pytest.raises(Exception, match=r".+") as caught:
        attached.sql(statement.format(t))
    assert is_said(error, caught.value)
    assert rows(attached, t, "id") == [(7,)]


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


def test_overwriting_the_partitions_that_have_some_values(attached: SparkSession, name: Name) -> None:
    t = name()
    columns = "(id int, ts bigint, day date, hour int) using hudimeta partitioned by (day, hour)"
    attached.sql(f"create table {t} {columns} tblproperties (primaryKey = 'id', orderingFields = 'ts', type = 'mor')")
    first, second = "date'2026-01-01'", "date'2026-01-02'"
    attached.sql(f"insert into {t} values (1, 1, {first}, 1), (2, 1, {first}, 2), (3, 1, {second}, 1)")
    attached.sql(f"insert overwrite {t} partition (day = '2026-01-01', hour) select 4, 1, 3")
    assert rows(attached, t, "id, hour") == [(3, 1), (4, 3)], "every hour of that day gives way, as in Apache Hudi and Spark"
    attached.sql(f"insert overwrite {t} partition (hour = 1, day) select 5, 1, {first}")
    assert rows(attached, t, "id, hour") == [(4, 3), (5, 1)]
    attached.sql(f"insert overwrite {t} partition (day = '2026-01-09', hour) values (6, 1, 1)")
    assert rows(attached, t, "id") == [(4,), (5,), (6,)], "no partition of that day was there"
    attached.sql(f"insert overwrite {t} partition (day = '2026-01-01', hour) select 7, 1, 1 where false")
    assert rows(attached, t, "id") == [(6,)]
    attached.sql("set spark.sql.sources.partitionOverwriteMode = dynamic")
    try:
        attached.sql(f"insert into {t} values (1, 1, {first}, 1), (2, 1, {first}, 2)")
        attached.sql(f"insert overwrite {t} partition (day = '2026-01-01', hour) select 8, 1, 1")
    finally:
        attached.sql("reset spark.sql.sources.partitionOverwriteMode")
    assert rows(attached, t, "id") == [(2,), (6,), (8,)]
    check(Path(table_of(attached, t).path))


def test_partitions_whose_names_are_no_list_are_not_overwritten_by_some_values(attached: SparkSession, name: Name) -> None:
    t = name()
    columns = "(id int, a string, b string) using hudimeta partitioned by (a, b)"
    attached.sql(f"create table {t} {columns} tblproperties (primaryKey = 'id')")
    attached.sql(f"insert into {t} values (1, 'x,y', '1'), (2, '*', '1'), (3, 'z', '1')")
    for value in ("x,y", "*"):
        with pytest.raises(Exception, match="Name all values"):
            attached.sql(f"insert overwrite {t} partition (a = '{value}', b) select 4, '2'")
        attached.sql(f"insert overwrite {t} partition (a = '{value}', b = '1') select 5")
    assert rows(attached, t, "id, a") == [(3, "z"), (5, "*"), (5, "x,y")]


def test_a_partition_that_is_there_is_not_overwritten_if_not_exists(attached: SparkSession, name: Name) -> None:
    t = name()
    attached.sql(f"create table {t} {TRIPS} tblproperties (primaryKey = 'id')")
    attached.sql(f"insert into {t} values (1, 1.0, 1, 'a')")
    again = f"insert overwrite {t} partition (month = 'a') if not exists select 2, 2.0, 1"
    assert attached.sql(again).collect() == [(0, 0)]
    new = f"insert overwrite table {t} partition (month = 'b') if not exists select 3, 2.0, 1"
    assert attached.sql(new).collect() == [(1, 1)]
    assert rows(attached, t, "id, month") == [(1, "a"), (3, "b")]
    with pytest.raises(Exception, match="IF NOT EXISTS with dynamic partitions"):
        attached.sql(f"insert overwrite {t} partition (month) if not exists select 2, 2.0, 1, 'c'")


def test_inserts_after_one_from(attached: SparkSession, name: Name) -> None:
    a, b, c = name(), name(), name()
    columns = "(id int, v double) using hudimeta tblproperties"
    for t in (a, b):
        attached.sql(f"create table {t} {columns} (primaryKey = 'id')")
    attached.sql(f"create table {c} {columns} (primaryKey = 'id', orderingFields = 'v')")
    attached.sql(f"insert into {a} values (1, 1.0), (2, 2.0)")
    one = f"from {a} insert into {b} (v, id) select v, id where id > :least"
    assert attached.sql(one, {"least": 1}).collect() == [(1, 1)]
    two = f"with s as (select * from {a}) from s insert into {a} select id + 10, v insert into {c} select id, v * 2"
    assert attached.sql(two).collect() == [(2, 2), (2, 2)]
    more = f"from {a} insert into {a} select id + 100, v where id = 1 insert overwrite {b} by name select v, id"
    assert attached.sql(more).collect() == [(1, 1), (4, 4)], "both read what was there before the first"
    assert rows(attached, b, "id") == [(1,), (11,), (12,), (2,)]
    assert rows(attached, c, "id, v") == [(1, 2.0), (2, 4.0)]
    first = f"from {a} insert into {a} select id, v"
    assert len(attached.sql(f"explain {first} insert into {b} select id, v").collect()) == 2
    attached.sql("create table of_spark (id int, v double) using parquet")
    try:
        for second, said in (
            ("nothing_of_this_name select id, v", "TABLE_OR_VIEW_NOT_FOUND"),
            (f"{b} select id", "not enough data columns"),
            (f"{b} select nope, v", "UNRESOLVED_COLUMN"),
            ("of_spark select id, v", "`of_spark`, which is no hudimeta table"),
        ):
            with pytest.raises(Exception, match=r".+") as caught:
                attached.sql(f"{first} insert into {second}")
            assert is_said(said, caught.value)
    finally:
        attached.sql("drop table of_spark")
    assert rows(attached, a, "id") == [(1,), (101,), (11,), (12,), (2,)]


def test_hudis_older_options_of_inserts(attached: SparkSession, name: Name, conf: Callable[[str, str], None]) -> None:
    t = name()
    attached.sql(f"create table {t} (id int, n int) using hudimeta tblproperties (primaryKey = 'id', orderingFields = 'n')")
    attached.sql(f"insert into {t} values (1, 5)")
    conf("hoodie.sql.insert.mode", "non-strict")
    attached.sql(f"insert into {t} values (1, 4), (2, 4), (2, 6)")
    assert rows(attached, t) == [(1, 4), (1, 5), (2, 6)], "as Apache Hudi 1.0.2"
    conf("hoodie.sql.bulk.insert.enable", "true")
    attached.sql(f"insert into {t} values (3, 1), (3, 2)")
    assert rows(attached, f"{t} where id = 3") == [(3, 2)]
    conf("hoodie.sql.insert.mode", "strict")
    assert "hoodie.sql.insert.mode" in refusal(partial(attached.sql, f"insert into {t} values (4, 1)"))
    conf("hoodie.sql.insert.mode", "upsert")
    attached.sql(f"insert into {t} values (3, 1), (3, 3)")
    assert rows(attached, f"{t} where id = 3") == [(3, 3)]


def test_what_is_set_goes_before_the_tables_properties(
    attached: SparkSession, name: Name, conf: Callable[[str, str], None]
) -> None:
    t = name()
    of_table = "'hoodie.spark.sql.insert.into.operation' = 'insert', 'hoodie.datasource.overwrite.mode' = 'dynamic'"
    attached.sql(f"create table {t} {TRIPS} tblproperties (primaryKey = 'id', orderingFields = 'ts', {of_table})")
    for fare in (1.0, 2.0):
        attached.sql(f"insert into {t} values (1, {fare}, 1, 'a')")
    attached.sql(f"insert overwrite {t} values (2, 1.0, 1, 'b')")
    assert rows(attached, t, "fare, month") == [(1.0, "a"), (1.0, "b"), (2.0, "a")]
    conf("hoodie.spark.sql.insert.into.operation", "upsert")
    attached.sql(f"insert into {t} values (2, 3.0, 1, 'b')")
    assert rows(attached, t, "fare, month") == [(1.0, "a"), (2.0, "a"), (3.0, "b")]
    conf("hoodie.datasource.overwrite.mode", "static")
    attached.sql(f"insert overwrite {t} values (3, 4.0, 1, 'b')")
    assert rows(attached, t, "fare, month") == [(4.0, "b")]


def test_the_option_of_writers_chooses_what_inserts_do(
    attached: SparkSession, name: Name, conf: Callable[[str, str], None]
) -> None:
    t, option = name(), "hoodie.datasource.write.operation"
    plain = f"'{option}' = 'insert'"  # Apache Hudi does not keep it
    attached.sql(f"create table {t} {TRIPS} tblproperties (primaryKey = 'id', orderingFields = 'ts', {plain})")
    for fare, month in ((1.0, "a"), (2.0, "a"), (1.0, "b")):
        attached.sql(f"insert into {t} values (1, {fare}, 1, '{month}')")
    assert rows(attached, t, "fare, month") == [(1.0, "b"), (2.0, "a")]
    conf("hoodie.spark.sql.insert.into.operation", "upsert")
    conf(option, "insert")
    attached.sql(f"insert into {t} values (1, 3.0, 1, 'a')")
    assert rows(attached, t, "fare, month") == [(1.0, "b"), (2.0, "a"), (3.0, "a")]
    conf(option, "insert_overwrite")
    attached.sql(f"insert overwrite {t} values (2, 4.0, 1, 'a')")
    assert rows(attached, t, "fare, month") == [(1.0, "b"), (4.0, "a")]
    conf(option, "insert_overwrite_table")
    if not REMOTE:
        newer = attached.sql("select 2 as id, 5.0D as fare, 2L as ts, 'a' as month")
        newer.writeTo(t).overwritePartitions()
        assert rows(attached, t, "fare, month") == [(1.0, "b"), (5.0, "a")], "as the method says"
    attached.sql(f"insert overwrite {t} partition (month = 'c') select 3, 6.0, 1")
    assert rows(attached, t, "fare, month") == [(6.0, "c")]
    conf(option, "delete_partition")
    assert "DROP PARTITION" in refusal(partial(attached.sql, f"insert into {t} values (1, 1.0, 1, 'a')"))


def test_values_of_partition_may_have_a_suffix_or_be_kept_as_they_are_written(
    attached: SparkSession, name: Name, conf: Callable[[str, str], None]
) -> None:
    t = name()
    attached.sql(f"create table {t} {TRIPS} tblproperties (primaryKey = 'id')")
    attached.sql(f"insert into {t} partition (month = 7L) (id) values (1)")
    attached.sql(f"insert into {t} partition (month = 01) (id) values (2)")
    conf("spark.sql.legacy.keepPartitionSpecAsStringLiteral", "true")
    attached.sql(f"insert into {t} partition (month = 01) (id) values (3)")
    assert rows(attached, t, "id, month") == [(1, "7"), (2, "1"), (3, "01")]
    attached.sql(f"alter table {t} drop partition (month = 01)")
    assert rows(attached, t, "id, month") == [(1, "7"), (2, "1")]
