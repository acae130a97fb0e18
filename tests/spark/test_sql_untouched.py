"""What is not about hudimeta tables answers with `attach` and after `detach` as before: rows, and errors to the letter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark_hudimeta
import pytest

from tests.elsewhere import REMOTE, only_when
from tests.spark.tables import create, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = only_when(not REMOTE, "classic sessions, which alone can be attached")
STATEMENTS = [
    "select 1 as `update t set`",
    "-- insert into t\nselect 'merge into hudimeta' as a;",
    "with insert_into as (select 1 as id) select * from insert_into",
    "create or replace temporary view of_values as select * from values (1, 'a'), (2, 'b') as t(id, s)",
    "select * from of_values",
    "insert into of_values values (3, 'c')",
    "create table others (id int, s string) using parquet",
    "insert into others values (1, 'x'), (2, 'y')",
    "insert into others by name select 'z' as s, 3 as id",
    "insert overwrite others select id, upper(s) from others where id < 3",
    "update others set s = 'q'",
    "delete from others where id = 1",
    "merge into others t using others s on t.id = s.id when matched then delete",
    "alter table others add columns (more int comment 'hudimeta')",
    "alter table others rename column id to key",
    "describe others",
    "select * from others",
    "insert into others values (1",
    "insert into others select 1",
    "merge others into nothing",
    "update nothing set a = 1",
    "drop table nothing",
    "drop table if exists nothing",
    "create table others using hudimeta location '/there/is/nothing'",
    "create table others (id int) using hudimeta",
    "drop table others",
    "call something.else()",
    "",
]


@pytest.fixture
def clean(spark: SparkSession) -> Iterator[SparkSession]:
    yield spark
    pyspark_hudimeta.detach(spark)
    spark.sql("drop table if exists others")
    spark.catalog.dropTempView("of_values")


def outcome(spark: SparkSession, statement: str) -> Any:
    """Rows, or what the error says, without numbers that grow by themselves."""
    try:
        frame = spark.sql(statement)
        return frame.columns, sorted(map(repr, frame.collect()))
    except Exception as error:
        return type(error).__name__, re.sub(r"#\d+L?", "", str(error).split("JVM stacktrace")[0])


def test_other_statements_answer_as_before(clean: SparkSession) -> None:
    before = [outcome(clean, statement) for statement in STATEMENTS]
    pyspark_hudimeta.attach(clean)
    attached = [outcome(clean, statement) for statement in STATEMENTS]
    pyspark_hudimeta.detach(clean)
    after = [outcome(clean, statement) for statement in STATEMENTS]
    assert sum(isinstance(what[1], str) for what in before) < len(STATEMENTS), "some of them work"
    for statement, was, with_it, then in zip(STATEMENTS, before, attached, after, strict=True):
        assert with_it == was, statement
        assert then == was, statement


def test_parameters_frames_and_configuration_reach_spark(clean: SparkSession) -> None:
    settings = dict(clean.conf.getAll)
    pyspark_hudimeta.attach(clean)
    frame = clean.range(3)
    assert [row.id for row in clean.sql("select id from {f} where id > :least", {"least": 1}, f=frame).collect()] == [2]
    assert clean.sql("select ? + ?", [1, 2]).first()[0] == 3
    assert clean.newSession().sql("select 1").first()[0] == 1
    assert dict(clean.conf.getAll) == settings
    pyspark_hudimeta.detach(clean)
    assert dict(clean.conf.getAll) == settings
    assert type(clean).__name__ == "SparkSession"


def test_rows_of_ours_are_written_once_to_tables_of_other_formats(clean: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "ours", rows(range(4)))
    pyspark_hudimeta.attach(clean)
    clean.sql(f"create or replace temporary view of_values using hudimeta options (path '{tmp_path / 'ours'}')")
    clean.sql("create table others (id bigint, part string) using parquet partitioned by (part)")
    for statement, count in {
        "insert into others select id, part from of_values": 4,
        "with c as (select id, part from of_values) insert into others select * from c where id < 3": 7,
        "from of_values insert into others select id, part where id = 0 insert into others select id, part where id = 1": 9,
        "execute immediate 'insert into others select id, part from of_values where id = :n' using 2 as n": 10,
        "insert overwrite others select id, part from of_values": 4,
    }.items():
        clean.sql(statement)
        assert clean.table("others").count() == count, statement
