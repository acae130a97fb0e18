"""SQL over hudimeta: what each kind of statement does, and that no INSERT ever reaches a table other than the one it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.spark.tables import contents, create, ids, refusal, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBER = count()
REGISTER = "create table {0} using hudimeta location '{1}'"

Register = Callable[..., str]


@pytest.fixture
def register(spark: SparkSession) -> Iterator[Register]:
    """`register(path)` makes an entry of the catalog for a table and returns its name; entries are dropped afterwards."""
    names = []

    def make(path: Path | str, statement: str = REGISTER) -> str:
        name = f"statements_{next(NUMBER)}"
        names.append(name)
        spark.sql(statement.format(name, path))
        return name

    yield make
    for name in names:
        spark.sql(f"drop table if exists {name}")


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two tables with equal columns, ids 0 to 9 and 100 to 104."""
    create(tmp_path / "a")
    create(tmp_path / "b", rows(range(100, 105)))
    return tmp_path / "a", tmp_path / "b"


# Registered tables


@pytest.mark.oldest
@pytest.mark.parametrize(
    "statement",
    [
        REGISTER,
        "create table {0} using hudimeta options (path '{1}')",
        "create external table {0} using hudimeta location 'file://{1}' comment 'flights' tblproperties ('a' = 'b')",
    ],
)
def test_a_table_is_registered_and_read(spark: SparkSession, register: Register, tmp_path: Path, statement: str) -> None:
    create(tmp_path / "t")
    name = register(tmp_path / "t", statement)
    assert spark.table(name).columns == ["id", "ts", "x", "part"], "without meta columns, or INSERT would ask for them"
    assert spark.sql(f"select sum(id) from {name} where x > 3").first()[0] == 39


def test_a_registered_table_is_read_as_it_is_now(spark: SparkSession, register: Register, tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    name = register(tmp_path / "t")
    assert spark.table(name).count() == 10
    table.upsert(rows([10]))
    assert spark.table(name).count() == 11


def test_the_catalogs_own_function_registers_too(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    spark.catalog.createTable("by_function", path=str(tmp_path / "t"), source="hudimeta")
    try:
        assert ids(spark.table("by_function")) == list(range(10))
    finally:
        spark.sql("drop table by_function")


def test_meta_columns_are_shown_where_asked_for(spark: SparkSession, register: Register, tmp_path: Path) -> None:
    create(tmp_path / "t")
    asked = "create table {0} using hudimeta options (path '{1}', 'hudimeta.meta.columns' 'true')"
    name = register(tmp_path / "t", asked)
    assert spark.table(name).columns[0] == "_hoodie_commit_time"
    spark.sql(f"insert into {name} (id, part, ts, x) values (20, 'p0', 1, 20.0)")
    assert spark.sql(f"select _hoodie_partition_path p from {name} where id = 20").first().p == "p0"


def test_meta_columns_are_left_out_of_a_view_that_says_so(session: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    hidden = f"options (path '{tmp_path / 't'}', 'hudimeta.meta.columns' 'false')"
    session.sql(f"create temporary view bare using hudimeta {hidden}")
    try:
        loaded = session.read.format("hudimeta").option("hudimeta.meta.columns", "false").load(str(tmp_path / "t"))
        assert session.table("bare").columns == loaded.columns == ["id", "part", "ts", "x"]
        session.sql("insert into bare values (20, 'p0', 1, 20.0)")
        session.sql("create or replace temporary view bare using hudimeta " + hidden)
        assert ids(session.table("bare")) == [*range(10), 20]
    finally:
        session.catalog.dropTempView("bare")


@pytest.mark.rotation(2)
def test_options_of_registration_hold_for_every_read_of_the_table(
    spark: SparkSession, register: Register, tmp_path: Path
) -> None:
    table = create(tmp_path / "t")
    first = table.timeline.writes[-1].time
    table.upsert(rows([10]))
    old = register(tmp_path / "t", "create table {0} using hudimeta options (path '{1}', 'as.of.instant' '" + first + "')")
    few = register(tmp_path / "t", "create table {0} using hudimeta options (path '{1}', 'hudimeta.filter' 'id > 7')")
    assert spark.table(old).count() == 10
    assert ids(spark.table(few)) == [8, 9, 10]


def test_dropping_a_registered_table_keeps_its_files(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    spark.sql(REGISTER.format("dropped", tmp_path / "t"))
    spark.sql("drop table dropped")
    assert len(contents(tmp_path / "t")) == 10


def test_sql_reads_temporary_and_permanent_views(spark: SparkSession, register: Register, tmp_path: Path) -> None:
    create(tmp_path / "t")
    name = register(tmp_path / "t")
    spark.sql(f"create or replace temp view chosen (id bigint, x double) using hudimeta options (path '{tmp_path / 't'}')")
    spark.sql(f"create view permanent as select id from {name} where id < 3")
    try:
        assert spark.table("chosen").columns == ["id", "x"]
        assert spark.table("chosen").count() == 10
        assert ids(spark.table("permanent")) == [0, 1, 2]
    finally:
        spark.sql("drop view permanent")
        spark.catalog.dropTempView("chosen")


# Inserts


@pytest.mark.rotation(2)
@pytest.mark.parametrize(
    ("statement", "added"),
    [
        ("insert into {0} values (20, 1, 1.5, 'p0')", (20, 1, 1.5)),
        ("insert into {0} (x, part, id, ts) values (1.5, 'p0', 20, 1)", (20, 1, 1.5)),
        ("insert into {0} (id, part, ts) values (20, 'p0', 1)", (20, 1, None)),
        ("insert into {0} select 20, 1, 1.5, 'p0'", (20, 1, 1.5)),
        ("insert into {0} by name select 1.5 x, 20 id, 'p0' part, 1 ts", (20, 1, 1.5)),
        ("insert into {0} select id + 20, ts, x, part from {0} where id = 0", (20, 1, 0.0)),
    ],
)
def test_inserts_reach_their_table(
    spark: SparkSession, register: Register, tmp_path: Path, statement: str, added: tuple[int, int, float]
) -> None:
    create(tmp_path / "t")
    spark.sql(statement.format(register(tmp_path / "t")))
    assert set(contents(tmp_path / "t")) == {*((n, 1, float(n)) for n in range(10)), added}


@pytest.mark.rotation(2)
def test_insert_overwrite_replaces_the_whole_table(spark: SparkSession, register: Register, tmp_path: Path) -> None:
    create(tmp_path / "t")
    spark.sql(f"insert overwrite {register(tmp_path / 't')} values (20, 1, 1.5, 'p0'), (21, 1, 2.5, 'p1')")
    assert contents(tmp_path / "t") == [(20, 1, 1.5), (21, 1, 2.5)]


def test_dataframes_reach_a_registered_table(spark: SparkSession, register: Register, tmp_path: Path) -> None:
    create(tmp_path / "t")
    name = register(tmp_path / "t")

    def one(number: int) -> object:
        return spark.range(number, number + 1).selectExpr("id", "1L ts", "0D x", "'p0' part")

    one(20).writeTo(name).append()
    one(21).write.insertInto(name)
    one(22).write.format("hudimeta").mode("append").saveAsTable(name)
    assert [row[0] for row in contents(tmp_path / "t")] == [*range(10), 20, 21, 22]


def test_a_temporary_view_is_written_through_with_its_options(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    spark.sql(
        f"create or replace temp view door using hudimeta options (path '{tmp_path / 't'}', "
        "'hudimeta.columns' 'id,part,ts,x', 'hoodie.datasource.write.operation' 'delete')"
    )
    try:
        spark.sql("insert into door select * from door where id < 8")
        assert [row[0] for row in contents(tmp_path / "t")] == [8, 9]
    finally:
        spark.catalog.dropTempView("door")


# The wrong table is never written to

CONFUSIONS = [
    "insert into {b} select * from {a}",
    "insert into {b} select id, ts, x, part from {a}",
    "insert into {b} (id, ts, x, part) select * from {a} where id < 100",
    "insert into {b} select * from (select * from {a} union all select * from {a})",
    "with c as (select * from {a}) insert into {b} select * from c",
]


@pytest.mark.rotation(2)
@pytest.mark.parametrize("statement", CONFUSIONS)
def test_rows_of_one_table_go_into_the_other(
    spark: SparkSession, register: Register, two: tuple[Path, Path], statement: str
) -> None:
    a, b = two
    before = contents(a)
    spark.sql(statement.format(a=register(a), b=register(b)))
    assert contents(a) == before
    assert [row[0] for row in contents(b)] == [*range(10), *range(100, 105)]


@pytest.mark.rotation(2)
def test_dataframes_of_one_table_go_into_the_other(
    spark: SparkSession, register: Register, two: tuple[Path, Path], tmp_path: Path
) -> None:
    a, b = two
    before = contents(a)
    from_a = spark.table(register(a))
    name = register(b)
    from_a.where("id < 2").writeTo(name).append()
    from_a.where("id between 2 and 3").write.insertInto(name)
    from_a.where("id between 4 and 5").write.format("hudimeta").mode("append").saveAsTable(name)
    from_a.where("id >= 6").write.format("hudimeta").mode("append").save(str(b))
    assert contents(a) == before
    assert [row[0] for row in contents(b)] == [*range(10), *range(100, 105)]


def test_writing_a_table_into_itself_is_refused(spark: SparkSession, register: Register, two: tuple[Path, Path]) -> None:
    a, b = two
    before = contents(a), contents(b)
    name = register(a)
    for statement in (f"insert into {name} select * from {name}", f"insert overwrite {name} select * from {name}"):
        says = refusal(lambda statement=statement: spark.sql(statement))
        assert "where the rows come from" in says
        assert "CREATE TEMP VIEW" in says
    assert (contents(a), contents(b)) == before


@pytest.mark.parametrize("source", ["{a}", "(select 1L id, 'p0' part, 1L ts, 0D x)"])
def test_create_table_as_select_is_refused_and_leaves_nothing(
    spark: SparkSession, register: Register, two: tuple[Path, Path], tmp_path: Path, source: str
) -> None:
    a, b = two
    before = contents(a), contents(b)
    query = f"select * from {source.format(a=register(a))}"
    says = refusal(lambda: spark.sql(f"create table made using hudimeta location '{tmp_path / 'made'}' as {query}"))
    assert "AS SELECT" in says
    assert "save(path)" in says
    assert not spark.catalog.tableExists("made")
    assert not (tmp_path / "made").exists()
    assert (contents(a), contents(b)) == before


@pytest.mark.parametrize("columns", ["id", "id, part, ts, x"])
def test_replacing_a_registered_table_is_refused_and_its_files_stay(
    spark: SparkSession, register: Register, two: tuple[Path, Path], columns: str
) -> None:
    """Spark drops the catalog's entry then; what matters is that nobody's rows are touched."""
    a, b = two
    before = contents(a), contents(b)
    from_a = spark.table(register(a)).selectExpr(*columns.split(", "))
    for_b = [register(b), register(b)]
    overwrite = from_a.write.format("hudimeta").mode("overwrite")
    assert "CREATE TEMP VIEW" in refusal(lambda: overwrite.saveAsTable(for_b[0]))
    from_a.createOrReplaceTempView("replacing")
    replace = f"create or replace table {for_b[1]} using hudimeta as select * from replacing"
    assert "CREATE TEMP VIEW" in refusal(lambda: spark.sql(replace))
    spark.catalog.dropTempView("replacing")
    assert (contents(a), contents(b)) == before


@pytest.mark.rotation(2)
def test_save_without_a_path_is_refused(spark: SparkSession, register: Register, two: tuple[Path, Path]) -> None:
    before = contents(two[0])
    frame = spark.table(register(two[0]))
    assert "where the rows come from" in refusal(lambda: frame.write.format("hudimeta").mode("append").save())
    assert "no path was given" in refusal(lambda: spark.range(1).write.format("hudimeta").mode("append").save())
    assert contents(two[0]) == before


def test_a_path_option_that_contradicts_the_named_table_is_refused(
    spark: SparkSession, register: Register, two: tuple[Path, Path]
) -> None:
    a, b = two
    frame = spark.range(1).selectExpr("id", "1L ts", "0D x", "'p0' part")
    says = refusal(lambda: frame.writeTo(register(a)).option("path", str(b)).append())
    assert str(a) in says
    assert len(contents(b)) == 5


def test_a_table_without_string_columns_is_read_and_not_inserted_into(
    spark: SparkSession, register: Register, tmp_path: Path
) -> None:
    numbers = pa.table({"id": pa.array([1, 2], pa.int64()), "n": pa.array([1, 2], pa.int64())})
    create(tmp_path / "t", numbers, partition_by=(), ordering=())
    name = register(tmp_path / "t")
    assert ids(spark.table(name)) == [1, 2]
    says = refusal(lambda: spark.sql(f"insert into {name} values (3, 3)"))
    assert "no string column" in says
    assert "CREATE TEMP VIEW" in says
    spark.sql(f"create temp view numbers using hudimeta options (path '{tmp_path / 't'}', 'hudimeta.columns' 'id,n')")
    try:
        spark.sql("insert into numbers values (3, 3)")
    finally:
        spark.catalog.dropTempView("numbers")
    assert contents(tmp_path / "t", "id", "n") == [(1, 1), (2, 2), (3, 3)]


# What cannot work says so


def test_a_table_created_with_columns_says_how_to_create_it(spark: SparkSession, register: Register, tmp_path: Path) -> None:
    create(tmp_path / "t")
    name = register(tmp_path / "t", "create table {0} (id bigint, part string) using hudimeta location '{1}'")
    assert "created with a list of columns" in refusal(lambda: spark.table(name).collect())
    assert "tables created with a list of columns" in refusal(lambda: spark.sql(f"insert into {name} values (1, 'p0')"))


def test_a_table_created_without_place_says_what_is_missing(spark: SparkSession, tmp_path: Path) -> None:
    assert "no path was given" in refusal(lambda: spark.sql("create table nowhere using hudimeta"))
    none = refusal(lambda: spark.sql(REGISTER.format("nowhere", tmp_path / "none")))
    assert none.startswith("HUDIMETA_TABLE_NOT_FOUND")
    assert not spark.catalog.tableExists("nowhere")


def test_columns_added_to_the_catalogs_entry_alone_are_refused(spark: SparkSession, register: Register, tmp_path: Path) -> None:
    create(tmp_path / "t")
    name = register(tmp_path / "t")
    spark.sql(f"alter table {name} add columns (extra string)")
    assert "extra" in refusal(lambda: spark.table(name).collect())


@pytest.mark.parametrize(
    "statement",
    [
        "delete from {0} where id = 1",
        "update {0} set x = 0 where id = 1",
        "truncate table {0}",
        "merge into {0} using {0} s on false when not matched then insert *",
        "insert into {0} partition (part = 'p0') select 1, 1, 1.0",
        "select * from {0} version as of 1",
    ],
)
def test_statements_that_spark_keeps_from_python_sources_change_nothing(
    spark: SparkSession, register: Register, tmp_path: Path, statement: str
) -> None:
    create(tmp_path / "t")
    before = contents(tmp_path / "t")
    with pytest.raises(Exception, match=r"\[[A-Z_.]+\]|does not support"):
        spark.sql(statement.format(register(tmp_path / "t"))).collect()
    assert contents(tmp_path / "t") == before


def test_an_insert_is_an_upsert_by_the_tables_own_key(spark: SparkSession, register: Register, tmp_path: Path) -> None:
    create(tmp_path / "t")
    spark.sql(f"insert into {register(tmp_path / 't')} values (3, 2, -3.0, 'p3')")
    assert contents(tmp_path / "t")[3] == (3, 2, -3.0)
    assert len(contents(tmp_path / "t")) == 10
