"""Scripts in attached sessions and by `pyspark_hudimeta.sql`: variables, flow, handlers, around statements about our tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark_hudimeta
import pytest
from pyspark.errors import PySparkException

from hudimeta.errors import ConfigError
from tests.elsewhere import REMOTE, only_when
from tests.spark.tables import contents, create, instants, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Sql = Callable[..., "DataFrame"]


@pytest.fixture(params=["by function"] if REMOTE else ["attached", "by function"])
def sql(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Sql]:
    """Both ways to run a script, of which one is there through Spark Connect."""
    if request.param == "by function":
        yield partial(pyspark_hudimeta.sql, spark)
        return
    pyspark_hudimeta.attach(spark)
    yield spark.sql
    pyspark_hudimeta.detach(spark)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Ids 0 to 3, as the table `scripted` of the catalog."""
    create(tmp_path / "t", rows(range(4)))
    spark.sql(f"create table scripted using hudimeta location '{tmp_path / 't'}'")
    yield tmp_path / "t"
    spark.sql("drop table if exists scripted")


def values(path: Path) -> dict[Any, Any]:
    return dict(contents(path, "id", "x"))


def found(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


def test_statements_that_a_script_makes(sql: Sql, table: Path) -> None:
    text = """begin
        declare said string default 'delete from scripted where id = 0';
        declare n int;
        execute immediate said;
        set said = 'update scripted set x = :x where id = :i';
        execute immediate said using 50 as x, 1 as i;
        set said = 'select max(id) from scripted';
        execute immediate said into n;
        select 'not the last query';
        execute immediate 'select id, x from ' || :name || ' where id <= ? order by id' using n;
    end"""
    assert found(sql(text, {"name": "scripted"})) == [(1, 50.0), (2, 2.0), (3, 3.0)]
    assert found(sql("begin declare q string default 'select 1 + ?'; execute immediate q using 2; end")) == [(3,)]
    assert found(sql("execute immediate 'begin delete from scripted where id = 1; select count(*) from scripted; end'")) == [
        (2,)
    ]
    with pytest.raises(PySparkException, match="NULL_QUERY_STRING"):
        sql("begin declare q string; delete from scripted where id = 2; execute immediate q; end")
    assert values(table) == {3: 3.0}


def test_variables_conditions_and_loops(sql: Sql, table: Path) -> None:
    text = """begin
        declare n, m int default 1;
        declare least double;
        set least = (select max(x) from scripted);
        set (n, m) = (select 2, 3);
        if least > 100 then
            delete from scripted;
        elseif least = 3 and :added > 0 then
            update scripted set x = least + n + m where id = 0;
        end if;
        case n when 1 then delete from scripted; when 2 then update scripted set x = -1 where id = 1; end case;
        while n < 4 do
            set n = n + 1;
            insert into scripted values (10 + n, 1, :added, 'p0');
        end while;
        repeat set n = n - 1; until n = 0 end repeat;
        select n, m, count(*) from scripted group by all;
    end"""
    assert found(sql(text, {"added": 0.5})) == [(0, 3, 6)]
    assert values(table) == {0: 8.0, 1: -1.0, 2: 2.0, 3: 3.0, 13: 0.5, 14: 0.5}


def test_rows_of_queries_and_jumps(sql: Sql, table: Path) -> None:
    text = """begin
        declare sum double default 0;
        outside: for r as select id as row_id, x from scripted order by id do
            if row_id = 1 then iterate outside; end if;
            inside: begin
                if r.row_id = 3 then leave outside; end if;
                leave inside;
                delete from scripted;
            end;
            set sum = sum + r.x;
            update scripted set x = r.x + 100 where id = row_id;
        end for;
        forever: loop set sum = sum + 1; leave forever; end loop;
        select sum;
    end"""
    assert found(sql(text)) == [(3.0,)]
    assert values(table) == {0: 100.0, 1: 1.0, 2: 102.0, 3: 3.0}


def test_a_failing_statement_stops_the_script(sql: Sql, table: Path, spark: SparkSession) -> None:
    before = instants(table)
    with pytest.raises(ConfigError, match="the value 'nope', allowed is columns of the table"):
        sql("begin declare n int default 7; update scripted set x = n where id = 0; update scripted set nope = 1; "
            "delete from scripted; end")  # fmt: skip
    assert values(table)[0] == 7.0
    assert len(instants(table)) == len(before) + 1
    with pytest.raises(PySparkException, match="UNRESOLVED_COLUMN"):
        spark.sql("select n")


@pytest.mark.parametrize("wrong", ["select 1 +", "update scripted set x = where id = 2", "signal sqlstate '45000'"])
def test_a_script_with_a_statement_that_cannot_be_read_does_nothing(sql: Sql, table: Path, wrong: str) -> None:
    before = instants(table)
    with pytest.raises(PySparkException, match="PARSE_SYNTAX_ERROR"):
        sql(f"begin delete from scripted where id = :i; if false then {wrong}; end if; end", {"i": 1})
    assert instants(table) == before


def test_handlers_go_on_or_leave_their_block(sql: Sql, table: Path) -> None:
    text = """begin
        declare seen string default '';
        begin
            declare continue handler for DIVIDE_BY_ZERO set seen = seen || 'zero ';
            declare exit handler for sqlexception begin set seen = seen || 'other '; end;
            set seen = string(1 / 0);
            update scripted set x = 50 where id = 0;
            update scripted set id = 9;
            delete from scripted;
        end;
        select seen;
    end"""
    assert found(sql(text)) == [("zero other ",)]
    assert values(table) == {0: 50.0, 1: 1.0, 2: 2.0, 3: 3.0}


def test_variables_of_the_session_come_back(sql: Sql, table: Path, spark: SparkSession) -> None:
    spark.sql("declare or replace variable kept int default 5")
    try:
        text = """begin
            declare kept string default 'outer';
            begin declare kept double default 1.5; update scripted set x = kept where id = 2; end;
            select kept;
        end"""
        assert found(sql(text)) == [("outer",)]
        assert found(spark.sql("select kept")) == [(5,)]
        assert values(table)[2] == 1.5
    finally:
        spark.sql("drop temporary variable kept")


def test_a_query_shows_the_rows_of_its_moment(sql: Sql, table: Path) -> None:
    assert found(sql("begin select count(*) from scripted; delete from scripted where id > 0; end")) == [(4,)]
    assert list(values(table)) == [0]


def test_scripts_about_other_tables_are_sparks_own(sql: Sql, spark: SparkSession) -> None:
    text = "begin declare a int default 1; begin declare b int default 2; select a + b; end; end"
    assert found(sql(text)) == found(spark.sql(text)) == [(3,)]
    with pytest.raises(Exception, match="INVALID_LABEL_USAGE"):
        sql("begin leave nowhere; end")


@only_when(not REMOTE, "classic sessions: it counts in Spark's own function")
def test_execute_immediate_evaluates_its_expression_once(sql: Sql, table: Path, spark: SparkSession) -> None:
    """Also of a statement that is Spark's; a UDF counts."""
    times = spark.sparkContext.accumulator(0)

    def said(text: str) -> str:
        times.add(1)
        return text

    spark.udf.register("said", said)
    sql("declare or replace variable told int")
    for number, statement in enumerate(("select 1 + ?", "select count(*) from scripted where id <= ?"), 1):
        assert found(sql(f"execute immediate said('{statement}') using 2")) == [(3,)]
        assert times.value == number
    sql("execute immediate said('select :n * 2') into told using 4 as n")
    assert found(sql("select told")) == [(8,)]
    assert times.value == 3
