"""Statements as values: what is read, that the user's text stays as it was, and that everything else is left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudimeta.sql import (
    AlterEntry,
    AlterTable,
    Analyze,
    ColumnPlace,
    CreateIndex,
    CreateLike,
    CreateTable,
    DeclaredColumn,
    Delete,
    DropTable,
    Explain,
    Insert,
    InsertEach,
    MergeAction,
    MergeClause,
    MergeRows,
    MergeStatement,
    Optimize,
    Partitions,
    PartitionVerb,
    Restore,
    SetOption,
    SetTableProperties,
    TableName,
    Update,
    Vacuum,
    form_of,
    may_write,
    parse,
    target_of,
    with_format,
)


def name(*parts: str) -> TableName:
    return TableName(parts)


def test_create_table() -> None:
    assert parse(
        "/* first */ CREATE TABLE IF NOT EXISTS db.`a.b` (id int, m map<string, struct<x: int>>) USING HudiMeta "
        "PARTITIONED BY (month string, `day`) TBLPROPERTIES (primaryKey = 'id', 'hoodie.x' 'it\\'s', hoodie.y.z = true) "
        "LOCATION '/t' COMMENT \"c\"; -- end"
    ) == CreateTable(
        name("db", "a.b"),
        "hudimeta",
        True,
        "id int, m map<string, struct<x: int>>",
        ("month", "day"),
        "month string",
        {"primaryKey": "id", "hoodie.x": "it's", "hoodie.y.z": "true"},
        "/t",
        "c",
    )
    made = parse("create table t using hudimeta options (type 'mor') as with c as (select 1) select (1) as id from c")
    assert isinstance(made, CreateTable)
    assert made.query == "with c as (select 1) select (1) as id from c"
    assert made.options == {"type": "mor"}
    for text in ("create or replace table t using hudimeta as select 1", "REPLACE TABLE t USING hudimeta AS SELECT 1"):
        made = parse(text)
        assert isinstance(made, CreateTable)
        assert made.replaces
        assert made.creates == text.startswith("create")
    like = parse("create table if not exists t like db.u using hudimeta tblproperties (type = 'mor') location '/t'")
    assert like == CreateLike(name("t"), name("db", "u"), "hudimeta", True, {"type": "mor"}, "/t")
    assert may_write("create table t like u")
    odd = parse("create table t (id int) using hudimeta partitioned by (days(ts))")
    assert isinstance(odd, CreateTable)
    assert odd.odd == "the partition transform days(…)"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("create table t (id int)", "create table t (id int) USING hudimeta"),
        ("create table if not exists a.`b c` as select 1", "create table if not exists a.`b c` USING hudimeta as select 1"),
        ("replace table t (select 1 as n)", "replace table t USING hudimeta (select 1 as n)"),
        ("create table t(n int) /* like */ location '/t'", "create table t(n int) USING hudimeta /* like */ location '/t'"),
        *(
            (text, text)
            for text in ("create table t (n int) using parquet", "create table t like u", "create view t as select 1")
        ),
        *((text, text) for text in ("create table t (n int) stored as orc", "create temporary view t using csv", "select 1")),
    ],
)
def test_a_table_without_a_format_gets_ours(text: str, written: str) -> None:
    assert with_format(text) == written


def test_insert() -> None:
    assert parse("INSERT INTO t VALUES (1, ';')") == Insert(name("t"), "VALUES (1, ';')")
    assert parse("insert overwrite table a.b.t partition (p = 'x''y', q) select (1)") == Insert(
        name("a", "b", "t"), "select (1)", True, None, False, (("p", "'x''y'"), ("q", None))
    )
    absent = parse("insert overwrite t partition (p = 1) if not exists (a) select 1")
    assert absent == Insert(name("t"), "select 1", True, ("a",), partition=(("p", "1"),), if_not_exists=True)
    assert parse("insert into t (a, `b c`) select 1, 2") == Insert(name("t"), "select 1, 2", columns=("a", "b c"))
    assert parse("insert into t (select 1)") == Insert(name("t"), "(select 1)")
    assert parse("insert into t by name table u") == Insert(name("t"), "table u", by_name=True)
    assert parse("with c as (select 1 /* insert */) insert into t select * from c") == Insert(
        name("t"), "with c as (select 1 /* insert */) select * from c"
    )


def test_update_and_delete() -> None:
    assert parse("update t as r set r.x = case when a then b else c end, y = f(1, 2) where z = 'where, ('") == Update(
        name("t"), "r", ((("r", "x"), "case when a then b else c end"), (("y",), "f(1, 2)")), "z = 'where, ('"
    )
    assert parse("DELETE FROM t") == Delete(name("t"), None, None)
    assert parse("delete from t r where r.id in (select id from u where x)") == Delete(
        name("t"), "r", "r.id in (select id from u where x)"
    )


def test_merge() -> None:
    assert parse(
        "merge into t using (select * from u when) s on t.id = s.id when matched and case when x then y end then delete "
        "when matched then update set t.x = s.x + 1, y = 2 "
        "when not matched by target and s.z then insert (id, x) values (1, g(2, 3)) "
        "when not matched then insert * when not matched by source then update set x = 0"
    ) == MergeStatement(
        name("t"),
        None,
        "(select * from u when)",
        "s",
        "t.id = s.id",
        (
            MergeClause(MergeRows.MATCHED, MergeAction.DELETE, "case when x then y end"),
            MergeClause(MergeRows.MATCHED, MergeAction.UPDATE, None, ((("t", "x"), "s.x + 1"), (("y",), "2"))),
            MergeClause(MergeRows.NOT_MATCHED, MergeAction.INSERT, "s.z", ((("id",), "1"), (("x",), "g(2, 3)"))),
            MergeClause(MergeRows.NOT_MATCHED, MergeAction.INSERT),
            MergeClause(MergeRows.NOT_MATCHED_BY_SOURCE, MergeAction.UPDATE, None, ((("x",), "0"),)),
        ),
    )
    merged = parse("merge into a.t as x using b.s on x.id = s.id when matched then update set *")
    assert isinstance(merged, MergeStatement)
    assert (merged.alias, merged.source, merged.source_alias) == ("x", "b.s", "s")


QUERIES = "with recursive c(n) max recursion level 9 as (select 1), `update` as (select 2), d (select 3)"


@pytest.mark.parametrize(
    "statement",
    [
        "insert into t select * from c",
        "update t set x = (select max(n) from c)",
        "delete from t where id in (table d)",
        "merge into t using c on t.id = c.n when matched then delete",
    ],
)
def test_queries_stand_before_every_statement_that_changes_rows(statement: str) -> None:
    plain, found = parse(statement), parse(f"{QUERIES} {statement}")
    assert target_of(f"{QUERIES} {statement}") == name("t")
    if isinstance(plain, Insert):
        assert found == replace(plain, query=f"{QUERIES} {plain.query}")
    else:
        assert isinstance(plain, (Update, Delete, MergeStatement))
        assert found == replace(plain, queries=QUERIES)


@pytest.mark.parametrize(
    ("declared", "column"),
    [
        ("n int not null comment 'add' AFTER c", DeclaredColumn(("n",), "int", True, None, "add", ColumnPlace("c"))),
        (
            "s.n struct<a: int comment 'x', b: decimal(3, 1)> first",
            DeclaredColumn(("s", "n"), "struct<a: int comment 'x', b: decimal(3, 1)>", place=ColumnPlace(None)),
        ),
        ("m.value.n map<string, array<int>>", DeclaredColumn(("m", "value", "n"), "map<string, array<int>>")),
        ("n int default concat('a', 'b') comment 'c'", DeclaredColumn(("n",), "int", False, "concat('a', 'b')", "c")),
        ("`n o` string collate utf8_lcase", DeclaredColumn(("n o",), "string collate utf8_lcase")),
    ],
)
def test_added_columns(declared: str, column: DeclaredColumn) -> None:
    assert parse(f"ALTER TABLE t ADD COLUMNS ({declared}, last date)") == AlterTable(
        name("t"), add=(column, DeclaredColumn(("last",), "date"))
    )
    assert parse(f"ALTER TABLE t ADD COLUMN {declared}") == AlterTable(name("t"), add=(column,))


@pytest.mark.parametrize(
    "declared", ["", "n", "n int first first", "n int comment 'a' comment 'b'", "n int,", "n int somewhere else after"]
)
def test_added_columns_that_are_not_read_are_nothing_for_the_catalog_alone(declared: str) -> None:
    found = parse(f"ALTER TABLE t ADD COLUMNS ({declared})")
    assert isinstance(found, AlterEntry | AlterTable)
    assert declared == "n int somewhere else after" or isinstance(found, AlterEntry)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("change column a a bigint", AlterTable(name("t"), change=DeclaredColumn(("a",), "bigint"))),
        (
            "change s.a A bigint comment 'c' after b",
            AlterTable(name("t"), change=DeclaredColumn(("s", "a"), "bigint", comment="c", place=ColumnPlace("b"))),
        ),
        ("change column a b bigint", AlterEntry(name("t"), "ALTER TABLE … ALTER COLUMN b bigint")),
        ("alter column a drop not null", AlterTable(name("t"), nullable="a")),
        ("alter column a set not null", AlterEntry(name("t"), "ALTER TABLE … ALTER COLUMN set not null")),
    ],
)
def test_changed_columns(change: str, found: object) -> None:
    assert parse(f"ALTER TABLE t {change}") == found


def test_alter_and_drop() -> None:
    columns = DeclaredColumn(("a",), "int", comment="x, y"), DeclaredColumn(("b",), "string")
    assert parse("alter table t add columns (a int comment 'x, y', b string)") == AlterTable(name("t"), add=columns)
    assert parse("alter table t rename column a to b") == AlterTable(name("t"), rename=("a", "b"))
    assert parse("alter table t drop columns (a, `b c`)") == AlterTable(name("t"), drop=("a", "b c"))
    assert parse("drop table if exists t purge") == DropTable(name("t"), True, True)


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "",
        "create view v as select 'hudimeta'",
        "insert overwrite directory '/x' using parquet select 1",
        "insert into t",
        "insert overwrite t replace where x select 1",
        "insert into t replace using (x) select 1",
        "update t set",
        "delete from t where",
        "merge into t using s on t.id = s.id when matched then update set * when",
        "merge into t using s on t.id = s.id when not matched then delete",
        "merge into t using s on t.id = s.id when not matched then insert (a, b) values (1)",
        "merge into t using s on t.id = s.id when not matched then insert * when matched then delete",
        "merge into t using s on t.id = s.id when not matched by source then delete when not matched then insert *",
        "merge into t using s on t.id = s.id when matched then delete when matched and s.a then update set *",
        "create index i on t (a) options (expr = 'lower', EXPR = 'upper')",
        "drop view t",
        "alter table t set owner me",
        "insert into t select 'open",
        "insert into t partition (p = 1, P = 2) select 1",
        "with delete as (select 1) select * from delete",
        "create external table t (id int) using hudimeta",
    ],
)
def test_everything_else_is_left_to_the_engine(text: str) -> None:
    assert parse(text) is None


def test_the_first_look_is_cheap_and_the_second_finds_the_table() -> None:
    assert may_write("  -- c\n/* d */ Insert into t values (1)") == "INSERT"
    assert not may_write("with c as (select 1) select * from c")
    assert not may_write("create table t (id int) using parquet")
    assert target_of("with c as (select 1) insert into `x y`.t select * from c") == name("x y", "t")
    assert target_of("merge into a.b.t x using y") == name("a", "b", "t")
    assert target_of("drop table if exists t") == name("t")
    assert target_of("insert into") is None
    assert target_of("drop database d") is None


def test_rows_that_give_way_and_columns_that_come() -> None:
    found = parse("insert into table t replace where day = 'd' and (x > 1) values (1)")
    assert found == Insert(name("t"), "values (1)", where="day = 'd' and (x > 1)")
    text = "merge with schema evolution into t using s on t.id = s.id when not matched then insert *"
    merging = parse(text)
    assert isinstance(merging, MergeStatement)
    assert merging.evolves
    assert target_of(text) == name("t")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("alter table t replace columns (id string)", AlterEntry(name("t"), "ALTER TABLE … REPLACE COLUMNS")),
        ("ALTER TABLE db.t SET LOCATION '/x'", AlterEntry(name("db", "t"), "ALTER TABLE … SET LOCATION")),
        (
            "alter table t set tblproperties ('hoodie.x' = 'a, b', foo.bar = 1, type 'mor')",
            SetTableProperties(name("t"), {"hoodie.x": "a, b", "foo.bar": "1", "type": "mor"}),
        ),
        (
            "alter table t unset tblproperties if exists ('hoodie.x', y)",
            SetTableProperties(name("t"), {"hoodie.x": None, "y": None}),
        ),
        ("alter table t rename to db.u", AlterEntry(name("t"), "ALTER TABLE … RENAME TO", new_name=name("db", "u"))),
        (
            "alter table t drop if exists partition (p = 1), partition (p = 2, q)",
            Partitions(name("t"), PartitionVerb.DROP, ((("p", "1"),), (("p", "2"), ("q", None))), lenient=True),
        ),
        ("alter table t add partition (p = 1)", Partitions(name("t"), PartitionVerb.ADD, ((("p", "1"),),))),
        ("alter table t add partition (p = 1) location '/x'", AlterEntry(name("t"), "ALTER TABLE … ADD PARTITION … LOCATION")),
        ("alter table t drop partition (p = 1) purge", AlterEntry(name("t"), "ALTER TABLE … DROP PARTITION … PURGE")),
        ("alter table t recover partitions", Partitions(name("t"), PartitionVerb.ADD, ())),
        ("msck repair table db.t sync partitions", Partitions(name("db", "t"), PartitionVerb.ADD, ())),
        ("repair table t", Partitions(name("t"), PartitionVerb.ADD, ())),
        ("alter table t default collation unicode", AlterEntry(name("t"), "ALTER TABLE … DEFAULT COLLATION")),
        ("alter table t alter column a first", AlterTable(name("t"), move={"a": ColumnPlace(None)})),
        ("truncate table t partition (p = 1)", Partitions(name("t"), PartitionVerb.TRUNCATE, ((("p", "1"),),))),
        ("OPTIMIZE db.t WHERE p > 1 ZORDER BY (a, b)", Optimize(name("db", "t"), "p > 1", ("a", "b"))),
        ("optimize t", Optimize(name("t"))),
        ("vacuum t retain 10 hours dry run", Vacuum(name("t"), 10, True)),
        ("vacuum t retain many hours", None),
        ("restore table t to version as of '2026'", Restore(name("t"), "'2026'", True)),
        ("RESTORE t TIMESTAMP AS OF now() - interval 1 day", Restore(name("t"), "now() - interval 1 day", False)),
        ("analyze table t compute statistics", Analyze(name("t"), "compute statistics")),
        ("analyze table t partition (p = 1) compute statistics", Analyze(name("t"), "compute statistics", (), (("p", "1"),))),
        ("analyze table t compute statistics for columns a, `b`", Analyze(name("t"), "compute statistics", ("a", "b"))),
        ("analyze table t compute statistics noscan for all columns", Analyze(name("t"), "compute statistics noscan")),
        ("merge into t using u on t.a = u.a", None),
        ("explain formatted delete from t", Explain("formatted", "delete from t")),
        ("truncate table t", Partitions(name("t"), PartitionVerb.TRUNCATE, ())),
        ("alter table t alter column a.b type decimal(9, 2)", AlterTable(name("t"), retype=("a.b", "decimal(9, 2)"))),
        ("alter table t alter column a comment 'x'", None),
        ("alter table t alter column a comment 'x', b.c comment 'y'", None),
        (
            "alter table t alter column a comment 'x', b drop not null",
            AlterEntry(name("t"), "ALTER TABLE … ALTER COLUMN comment 'x', b drop not null"),
        ),
        (
            "alter table t alter column a type int comment 'x'",
            AlterEntry(name("t"), "ALTER TABLE … ALTER COLUMN type int comment 'x'"),
        ),
        (
            "alter table t alter column a drop not null, b drop not null",
            AlterEntry(name("t"), "ALTER TABLE … ALTER COLUMN drop not null, b drop not null"),
        ),
        (
            "alter table t alter column a set default f(1, 2), b set default 2",
            AlterEntry(name("t"), "ALTER TABLE … ALTER COLUMN set default f(1, 2), b set default 2"),
        ),
        (
            "alter table t alter column a drop default first",
            AlterEntry(name("t"), "ALTER TABLE … ALTER COLUMN drop default first"),
        ),
        ("alter table t alter column a set default f(1, 2)", AlterTable(name("t"), default=("a", "f(1, 2)"))),
        ("alter table t set owner me", None),
        ("set hoodie.metadata.enable=false", SetOption("hoodie.metadata.enable", "false")),
        ("SET `hudimeta.index.use` = none", SetOption("hudimeta.index.use", "none")),
        ("set spark.sql.ansi.enabled = true", None),
    ],
)
def test_what_spark_changes_in_its_catalog_alone_is_read(text: str, found: object) -> None:
    assert parse(text) == found


def test_options_with_two_values_are_odd() -> None:
    made = parse("create table t (id int) using hudimeta options (type 'mor') tblproperties (type = 'cow')")
    assert isinstance(made, CreateTable)
    assert made.odd == "type with two values in CREATE TABLE"


def test_inserts_share_what_stands_after_from() -> None:
    alone = Insert(name("t"), "FROM a SELECT x, y WHERE x > 1", columns=("x", "y"))
    assert parse("FROM a INSERT INTO t (x, y) SELECT x, y WHERE x > 1") == alone
    shared = "WITH q AS (SELECT 'insert into') FROM q JOIN (SELECT 1) i"
    text = f"{shared} INSERT INTO t SELECT 1 INSERT OVERWRITE u BY NAME SELECT 2"
    second = Insert(name("u"), f"{shared} SELECT 2", overwrite=True, by_name=True)
    assert parse(text) == InsertEach((Insert(name("t"), f"{shared} SELECT 1"), second))
    assert target_of(text) == name("t")
    for other in ("FROM a SELECT x", "FROM a INSERT INTO t VALUES (1)", "FROM a INSERT INTO t", "FROM a |> WHERE insert > 1"):
        assert parse(other) is None


@pytest.mark.parametrize(
    "text",
    [
        "create table t (id int) using hudimeta using parquet",
        "create table t (id int) using hudimeta comment 'x' comment 'y'",
        "create table t (id int) using hudimeta location '/a' location '/b'",
        "describe history t limit x",
        "describe history t limit -1",
        "vacuum t retain \u00b2 hours",
        "create table t (id int) using hudimeta tblproperties (a = 'b', a = 'c')",
        "create or replace table if not exists t (id int) using hudimeta",
        "insert into t by name (id) select 1",
        "insert into t partition (p = 1) if not exists select 1",
        "insert overwrite t partition (p = 1, q) if not exists select 1",
    ],
)
def test_what_spark_refuses_is_left_to_it(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "table", "begins"),
    [
        ("optimize a.t where", ("a", "t"), "OPTIMIZE t [WHERE"),
        ("restore t", ("t",), "RESTORE TABLE t TO VERSION"),
        ("desc /* all */ history `t` limit x", ("t",), "DESCRIBE HISTORY t"),
        ("show indexes in t where", ("t",), "SHOW INDEXES FROM t"),
        ("create index if not exists i on table t ()", ("t",), "CREATE INDEX i ON t"),
    ],
)
def test_statements_that_only_hudimeta_has_say_how_they_are_written(text: str, table: tuple[str, ...], begins: str) -> None:
    assert parse(text) is None
    form = form_of(text)
    assert form is not None
    assert form.name == name(*table)
    assert form.form.startswith(begins)


@pytest.mark.parametrize("text", ["optimize", "select 1", "describe t", "create index on t (x)", "show indexes", "vacuum 'x'"])
def test_others_have_no_form(text: str) -> None:
    assert form_of(text) is None


def test_options_of_indexes_are_named_in_any_case() -> None:
    text = "create index i on t using column_stats (a OPTIONS (Format = 'yyyy')) options (EXPR = 'From_unixtime')"
    options = {"format": "yyyy", "expr": "From_unixtime"}
    assert parse(text) == CreateIndex(name("t"), "i", "column_stats", ("a",), options, False)
