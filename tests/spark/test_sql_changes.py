"""SQL in an attached session: UPDATE, DELETE and MERGE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark_hudimeta
import pytest
from pyspark.sql.functions import expr
from pyspark_hudimeta import last_commit
from pyspark_hudimeta.routed.executors import SparkExecutors

import hudimeta
from hudimeta.types import Action
from tests.elsewhere import SAYS_STATEMENTS
from tests.spark.sql_tables import Name, rows, table_of
from tests.spark.tables import check, create, instants, refusal
from tests.spark.tables import rows as made

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = SAYS_STATEMENTS

NUMBER = count()


Make = Callable[..., str]


@pytest.fixture
def table(attached: SparkSession, tmp_path: Path) -> Iterator[Make]:
    """`table(type=…)` registers a table `id bigint, part string, ts bigint, x double` of ids 0 to 9."""
    names = []

    def new(**more: Any) -> str:
        name = f"changes_{next(NUMBER)}"
        create(tmp_path / name, **more)
        attached.sql(f"create table {name} using hudimeta location '{tmp_path / name}'")
        names.append(name)
        return name

    yield new
    for name in names:
        check(tmp_path / name)
        attached.sql(f"drop table if exists {name}")


def shown(spark: SparkSession, table: str, where: str = "true") -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.sql(f"select id, ts, x from {table} where {where}").collect()))


KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


@pytest.mark.rotation(2)
@KINDS
def test_update_changes_what_the_condition_is_true_of(attached: SparkSession, table: Make, kind: str) -> None:
    t = table(type=kind)
    attached.sql(f"update {t} set x = x * 2 + length(part), {t}.ts = ts + 1 where id in (select id + 1 from range(2))")
    assert shown(attached, t, "id < 4") == [(0, 1, 0.0), (1, 2, 4.0), (2, 2, 6.0), (3, 1, 3.0)]
    attached.sql(f"update {t} as r set r.x = case when r.id = :id then null else 7 end where r.id > 7", {"id": 9})
    assert shown(attached, t, "id > 7") == [(8, 1, 7.0), (9, 1, None)]
    attached.sql(f"update {t} set x = ? where id = ? or id = ?", [1.5, 3, 4])
    assert shown(attached, t, "id in (3, 4)") == [(3, 1, 1.5), (4, 1, 1.5)]
    attached.sql(f"update {t} set x = 0")
    assert {x for _, _, x in shown(attached, t)} == {0.0}


@pytest.mark.rotation(2)
@KINDS
def test_delete_removes_what_the_condition_is_true_of(attached: SparkSession, table: Make, kind: str) -> None:
    t = table(type=kind)
    attached.sql(f"delete from {t} where part like 'p1%' or id = (select max(id) from {t})")
    assert [i for i, _, _ in shown(attached, t)] == [0, 2, 3, 4, 5, 7, 8]
    attached.sql(f"delete from {t} as d where d.id < :least", {"least": 4})
    assert [i for i, _, _ in shown(attached, t)] == [4, 5, 7, 8]
    attached.sql(f"delete from {t}")
    assert shown(attached, t) == []


def test_delete_removes_every_row_of_a_doubled_key(attached: SparkSession, table: Make, tmp_path: Path) -> None:
    """A delete in a log would meet the first of them alone."""
    t = table(type="MERGE_ON_READ")
    hudimeta.Table(tmp_path / t).insert(made([1, 2, 3]))
    attached.sql(f"delete from {t} where id < 3")
    assert [i for i, _, _ in shown(attached, t, "id < 5")] == [3, 3, 4]


def test_rows_of_a_doubled_key_that_were_updated_together_can_be_changed(
    attached: SparkSession, table: Make, tmp_path: Path
) -> None:
    t = table()
    hudimeta.Table(tmp_path / t).insert(made([1]))
    attached.sql(f"update {t} set x = 7, ts = 2 where id = 1")
    attached.sql(f"update {t} set x = x + 1, ts = 3 where id < 2")
    assert shown(attached, t, "id < 2") == [(0, 3, 1.0), (1, 3, 8.0), (1, 3, 8.0)]
    assert attached.sql(f"delete from {t} where id = 1").collect() == [(2,)]
    assert shown(attached, t, "id < 2") == [(0, 3, 1.0)]


def test_a_delete_that_would_leave_rows_of_a_doubled_key_is_refused(
    attached: SparkSession, table: Make, tmp_path: Path
) -> None:
    t = table(type="MERGE_ON_READ")
    hudimeta.Table(tmp_path / t).insert(made([1]))
    attached.sql(f"update {t} set ts = 2 where id = 6")
    says = refusal(lambda: attached.sql(f"delete from {t} where id = 1"))
    assert "rows of key '1' shall be deleted" in says
    assert "compact the table first" in says
    assert len(shown(attached, t, "id = 1")) == 2
    hudimeta.Table(tmp_path / t).services.compact()
    attached.sql(f"delete from {t} where id = 1")
    assert shown(attached, t, "id in (1, 6)") == [(6, 2, 6.0)]


@pytest.mark.rotation(2)
@KINDS
def test_fields_of_structs_are_set(attached: SparkSession, tmp_path: Path, kind: str) -> None:
    attached.sql(
        "create table nested (id int, s struct<a: int, b: string, Deep: struct<x: int, y: int>>, l array<int>) using hudimeta "
        f"tblproperties (primaryKey = 'id', type = '{'mor' if kind == 'MERGE_ON_READ' else 'cow'}') location '{tmp_path / 'n'}'"
    )
    try:
        whole = "named_struct('a', 1, 'b', 'u', 'Deep', named_struct('x', 1, 'y', 2))"
        attached.sql(f"insert into nested values (1, {whole}, array(1)), (2, null, null)")
        attached.sql("with w as (select 10 as n) update nested r set r.s.b = 'v', s.deep.Y = s.a + (select n from w)")
        source = "with src as (select 2 as id, 5 as v) "
        clauses = "when matched then update set t.s.Deep.x = src.v when not matched by source then update set s.a = t.id + 1"
        attached.sql(f"{source} merge into nested t using src on t.id = src.id {clauses}")
        found = {row.id: (row.s.asDict(True), row.l) for row in attached.table("nested").collect()}
        assert found[1] == ({"a": 2, "b": "v", "Deep": {"x": 1, "y": 11}}, [1])
        assert found[2] == ({"a": None, "b": "v", "Deep": {"x": 5, "y": None}}, None)
        for assigned, text in {
            "s.a = 1, s = null": "every column once",
            "s.deep = null, s.Deep.x = 1": "every column once",
            "s.c = 1": "fields of s: a, b, Deep",
            "l.c = 1": "columns, and fields of structs",
        }.items():
            assert text in refusal(partial(attached.sql, f"update nested set {assigned}"))
        rows = attached.sql("select 1 as id, 7 as v").alias("u")
        merging = pyspark_hudimeta.merge_into(rows, "nested", expr("nested.id = u.id"))
        merging.whenMatched().update({"s.a": expr("u.v"), "nested.s.deep.x": expr("u.v")}).merge()
        ((struct,),) = attached.sql("select s from nested where id = 1").collect()
        assert struct.asDict(True) == {"a": 7, "b": "v", "Deep": {"x": 7, "y": 11}}
        wrong = "when not matched then insert (id, s.a) values (1, 1)"
        assert "whole columns" in refusal(lambda: attached.sql(f"merge into nested t using (select 9 i) u on t.id = i {wrong}"))
        attached.sql("with w as (select 1 as i) delete from nested where id in (table w)")
        assert [row.id for row in attached.table("nested").collect()] == [2]
    finally:
        attached.sql("drop table nested")
    check(tmp_path / "n")


@pytest.mark.rotation(2)
@KINDS
def test_merge_does_what_each_clause_says(attached: SparkSession, table: Make, kind: str) -> None:
    t = table(type=kind)
    attached.sql(
        f"""merge into {t} as t
        using (select id + 7 as id, concat('p', (id + 7) % 5) as part, 5L as ts, 0.5D as delta from range(6)) s
        on t.id = s.id
        when matched and t.id = 7 then delete
        when matched then update set t.x = t.x + s.delta, ts = s.ts, id = s.id
        when not matched and s.id % 2 = 0 then insert (id, part, ts, x) values (s.id, part, ts, -delta)
        when not matched by source and x < 2 then delete
        when not matched by source and t.id = 3 then update set x = x + 10 * id, ts = ts + 4"""
    )
    assert shown(attached, t, "id < 4 or id > 6") == [
        (2, 1, 2.0),
        (3, 5, 33.0),
        (8, 5, 8.5),
        (9, 5, 9.5),
        (10, 5, -0.5),
        (12, 5, -0.5),
    ]


@KINDS
def test_clauses_for_one_side_name_its_columns_without_it(attached: SparkSession, table: Make, kind: str) -> None:
    t = table(type=kind)
    attached.sql(
        f"""merge into {t} using (select id + 8 as id, 'p' || id as part, 5L as ts, id * 10D as x from range(5)) s
        on {t}.id = s.id
        when not matched and x between 20 and 30 and id not in (select max(id) from {t}) then insert *
        when not matched and part = 'p4' then insert (id, part, ts, x) values (id, 'other', ts, -x)
        when not matched by source and x > 2 and exists (select 1 from range(3, 5) r where r.id = {t}.id) then delete
        when not matched by source and part = 'p1' then update set x = x + 100, ts = ts + 1"""
    )
    assert shown(attached, t) == [
        (0, 1, 0.0),
        (1, 2, 101.0),
        (2, 1, 2.0),
        (5, 1, 5.0),
        (6, 2, 106.0),
        (7, 1, 7.0),
        (8, 1, 8.0),
        (9, 1, 9.0),
        (10, 5, 20.0),
        (11, 5, 30.0),
        (12, 5, -40.0),
    ]


@pytest.mark.rotation(2)
@KINDS
def test_merge_takes_all_columns_of_the_source(attached: SparkSession, table: Make, kind: str) -> None:
    t = table(type=kind, indexes=["record_index"])
    attached.createDataFrame(made([9, 10], ts=4, x=-1.0)).createOrReplaceTempView("incoming")
    attached.sql(
        f"merge into {t} using incoming on {t}.id = incoming.id when matched then update set * when not matched then insert *"
    )
    assert shown(attached, t, "id > 7") == [(8, 1, 8.0), (9, 4, -1.0), (10, 4, -1.0)]
    attached.sql(f"merge into {t} t using incoming s on t.id = s.id and t.part = s.part when matched then delete")
    assert [i for i, _, _ in shown(attached, t)] == list(range(9))
    attached.catalog.dropTempView("incoming")


DROPPED, VIRTUAL = {"hoodie.datasource.write.drop.partition.columns": "true"}, {"hoodie.populate.meta.fields": "false"}


@pytest.mark.rotation(2)
@pytest.mark.parametrize(("kind", "stored"), [("MERGE_ON_READ", DROPPED), ("COPY_ON_WRITE", {**DROPPED, **VIRTUAL})])
def test_tables_whose_files_lack_the_partition_columns(
    attached: SparkSession, table: Make, kind: str, stored: dict[str, str]
) -> None:
    t = table(type=kind, options=stored)
    attached.sql(
        f"merge into {t} as t using (select id + 8 as id, concat('p', (id + 8) % 5) as part, 5L ts, 0.5D x from range(4)) s "
        "on t.id = s.id when matched and s.id = 8 then delete when matched then update set x = t.x + s.x, ts = s.ts "
        "when not matched then insert *"
    )
    attached.sql(f"update {t} set x = 0.25 where part = 'p0' and id > 9")
    attached.sql(f"delete from {t} where part = 'p1' and id < 7")
    found = attached.sql(f"select id, part, x from {t} where id > 5 order by id").collect()
    assert [tuple(row) for row in found] == [(7, "p2", 7.0), (9, "p4", 9.5), (10, "p0", 0.25), (11, "p1", 0.5)]


def test_of_several_rows_for_one_key_the_newer_wins_or_without_an_order_the_last(attached: SparkSession, table: Make) -> None:
    """Apache Hudi 1.0.2 and 1.2.0 say the same."""
    twice = "(select 1L as id, 'p1' as part, 9L as ts, 9D as x union all select 1L, 'p1', 8L, 8D)"
    ordered, plain = table(), table(ordering=())
    for t, which in ((ordered, (1, 9, 9.0)), (plain, (1, 8, 8.0))):
        attached.sql(f"merge into {t} t using {twice} s on t.id = s.id when matched then update set *")
        assert shown(attached, t, "id = 1") == [which]
    some = "when matched and s.ts = 9 then update set x = 7 when not matched then insert *"
    attached.sql(f"merge into {plain} t using {twice} s on t.id = s.id {some}")
    assert shown(attached, plain, "id = 1") == [(1, 8, 8.0)], "the last row has no clause"
    attached.sql(f"merge into {plain} t using {twice} s on t.ts = 1 and s.id = t.id + 1 when matched then update set x = s.x")
    assert shown(attached, plain, "id = 0") == [(0, 1, 8.0)], "of rows that match by anything else, too"


@KINDS
def test_the_newest_row_for_a_key_is_found_before_clauses_are_looked_at(attached: SparkSession, table: Make, kind: str) -> None:
    """Apache Hudi 1.0.2 and 1.2.0 say the same of these statements."""
    t = table(type=kind)
    rows = "(1, 9, 'new'), (1, 5, 'old'), (2, 7, 'old'), (2, 8, 'new'), (99, 5, 'old'), (99, 9, 'new')"
    columns = "bigint(a) as id, bigint(b) as ts, double(b) as x, concat('p', a % 5) as part, c"
    source = f"(select {columns} from values {rows} as v(a, b, c))"
    before = shown(attached, t)
    clauses = "when matched and s.c = 'old' then update set x = s.x, ts = s.ts when not matched and s.c = 'old' then insert *"
    for on in ("t.id = s.id", "s.part = t.part and s.id = t.id"):
        attached.sql(f"merge into {t} t using {source} s on {on} {clauses}")
        assert shown(attached, t) == before, "the newest rows are for no clause"
    attached.sql(f"merge into {t} t using {source} s on t.id = s.id and s.ts < 10 {clauses}")
    assert shown(attached, t, "id in (1, 2)") == [(1, 5, 5.0), (2, 7, 7.0)], "a condition of more than the key is Spark's"
    attached.sql(f"merge into {t} t using {source} s on t.id = s.id {clauses.replace('old', 'new')}")
    assert shown(attached, t, "id in (1, 2, 99)") == [(1, 9, 9.0), (2, 8, 8.0), (99, 9, 9.0)]


@pytest.mark.rotation(2)
@KINDS
def test_the_newest_row_for_a_key_counts_whatever_becomes_of_it(attached: SparkSession, table: Make, kind: str) -> None:
    t = table(type=kind)
    rows = "(1, 8, 8, 'keep'), (1, 9, 9, 'gone'), (2, 9, 9, 'keep'), (2, 8, 8, 'gone'), (3, 7, 7, 'keep'), (3, 5, 5, 'keep')"
    source = f"(select bigint(a) as id, bigint(b) as ts, double(c) as fresh, d as fate from values {rows} as v(a, b, c, d))"
    clauses = "when matched and s.fate = 'gone' then delete when matched then update set x = s.fresh"
    attached.sql(f"merge into {t} t using {source} s on t.id = s.id {clauses}")
    assert shown(attached, t, "id < 5") == [(0, 1, 0.0), (2, 1, 9.0), (3, 1, 7.0), (4, 1, 4.0)]
    frame = attached.sql(f"select * from {source}").withColumn("id", expr("id + 2")).alias("s")
    merging = pyspark_hudimeta.merge_into(frame, t, expr(f"{t}.id = s.id"))
    gone, fresh = merging.whenMatched(expr("fate = 'gone'")).delete(), {"x": expr("fresh + 10")}
    gone.whenMatched().update(fresh).merge()
    assert shown(attached, t, "id < 6") == [(0, 1, 0.0), (2, 1, 9.0), (4, 1, 19.0), (5, 1, 17.0)]


def test_constants_are_refused_before_anything_is_begun(attached: SparkSession, table: Make, tmp_path: Path) -> None:
    t = table()
    before = instants(tmp_path / t)
    for statement, error in (
        ("update {} set x = 'abc' where id = 99", "CAST_INVALID_INPUT"),
        ("update {} set ts = 30000000000000000000 where id = 99", "CAST_OVERFLOW"),
        ("update {} set ts = cast('abc' as bigint) where id = 99", "CAST_INVALID_INPUT"),
        ("merge into {} t using (select 99L i) s on t.id = s.i when matched then update set x = 'abc'", "CAST_INVALID_INPUT"),
        ("insert into {} values (10, 30000000000000000000, 1, 'p')", "CAST_OVERFLOW"),
        ("insert into {} select 10, cast('abc' as bigint), 1, 'p'", "CAST_INVALID_INPUT"),
    ):
        with pytest.raises(Exception, match=error) as caught:
            attached.sql(statement.format(t))
        assert "stage failure" not in str(caught.value), statement
    assert instants(tmp_path / t) == before
    attached.sql(f"update {t} set x = '2.5', ts = ts + 1 where id = 3")
    assert shown(attached, t, "id = 3") == [(3, 2, 2.5)]


@pytest.mark.rotation(3)
@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("update {} set id = 3 where id = 1", "neither part of the key nor of the partition"),
        ("update {} set part = 'p3'", "neither part of the key nor of the partition"),
        ("update {} set nothing = 3", "columns of the table: id, ts, x, part"),
        ("update {} set x = 1, x = 2", "every column once"),
        ("update {} set x = 'abc'", "CAST_INVALID_INPUT"),
        ("update {} set ts = null where id = 1", "ts"),
        ("update {} set x = y", "UNRESOLVED_COLUMN"),
        ("delete from {} where id =", "PARSE_SYNTAX_ERROR"),
        ("merge into {} t using (select 1L i, 'p9' p) s on t.id = s.i when matched then update set part = s.p", "delete"),
        ("merge into {} t using (select 1L i) s on t.id = s.i when matched then update set y = 1", "columns of the table"),
        ("merge into {} t using (select 1L i) t on t.id = t.i when matched then delete", "two names"),
        ("merge into {} t using nowhere s on t.id = s.i when matched then delete", "TABLE_OR_VIEW_NOT_FOUND"),
        ("merge into {} t using (select 1L i) s on t.id = s.i", "PARSE_SYNTAX_ERROR|not support|MERGE"),
    ],
)
def test_a_change_that_does_not_fit_changes_nothing(attached: SparkSession, table: Make, statement: str, error: str) -> None:
    t = table()
    before = shown(attached, t)
    with pytest.raises(Exception, match=f"(?i){error}"):
        attached.sql(statement.format(t))
    assert shown(attached, t) == before
    assert not [view for view in attached.catalog.listTables() if view.name.startswith("_hudimeta")]


def test_what_is_set_goes_before_the_tables_properties(
    attached: SparkSession, name: Name, conf: Callable[[str, str], None]
) -> None:
    t = name()
    cleans = "'hoodie.clean.automatic' = 'false', 'hoodie.cleaner.commits.retained' = '5'"
    attached.sql(f"create table {t} (id int, x int) using hudimeta tblproperties (primaryKey = 'id', {cleans})")
    attached.sql(f"insert into {t} values (1, 1), (2, 1)")
    conf("hoodie.clean.automatic", "true")
    conf("hoodie.clean.commits.retained", "1")  # another name of the same option
    attached.sql(f"update {t} set x = x + 1 where id = 1")
    attached.sql(f"merge into {t} t using (select 1 as id) s on t.id = s.id when matched then update set x = x + 1")
    attached.sql(f"delete from {t} where id = 2")
    assert rows(attached, t) == [(1, 3)]
    assert Action.CLEAN in {instant.action for instant in table_of(attached, t).timeline.completed}


def test_tables_without_key_columns_are_changed_too(attached: SparkSession, table: Make) -> None:
    t = table(key=None, ordering=())
    attached.sql(f"update {t} set x = 100 where id = 3")
    attached.sql(f"delete from {t} where id < 3")
    attached.sql(f"merge into {t} t using (select 4L i) s on t.id = s.i when matched then update set x = 44")
    assert shown(attached, t, "id < 6") == [(3, 1, 100.0), (4, 1, 44.0), (5, 1, 5.0)]


def test_a_change_sees_what_another_writer_did_just_before(
    attached: SparkSession, table: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = table()
    plain, turns = SparkExecutors.map, []

    def after_another(*args: Any) -> Any:
        if not turns:  # the changes are computed by now
            turns.append(1)
            hudimeta.Table(tmp_path / t).upsert(made([1], ts=2, x=50.0))
        return plain(*args)

    monkeypatch.setattr(SparkExecutors, "map", after_another)
    attached.sql(f"update {t} set x = x + 1, ts = ts + 1 where id = 1")
    assert shown(attached, t, "id = 1") == [(1, 3, 51.0)]


@pytest.mark.rotation(2)
def test_no_row_passes_through_the_driver(attached: SparkSession, table: Make, tmp_path: Path) -> None:
    t = table(indexes=["record_index"])
    hudimeta.Table(tmp_path / t).bulk_insert(made(range(1000, 31_000)))
    source = "(select id, 'new' as part, 9L as ts, 1D as x from range({}, {})) s"
    merging = f"merge into {t} t using {source} on t.id = s.id "
    merging += "when matched then update set x = s.x when not matched then insert *"
    statements = (
        (f"update {t} set x = -x where id < 8", f"update {t} set x = -x where id < 30000"),
        (merging.format(9, 12), merging.format(30_000, 60_000)),
        (f"delete from {t} where id < 5", f"delete from {t} where id >= 5"),
    )
    for few, many in statements:
        collected = []
        for statement in (few, many):
            attached.sql(statement)
            (note,) = (n for n in last_commit(str(tmp_path / t)).notes if "summaries collected" in n)
            collected.append(int(note.partition("tasks, ")[2].partition(" bytes")[0].replace(",", "")))
        assert collected[1] < collected[0] + 50_000, "the keys alone of 30,000 rows are more than this"


def test_a_plain_session_refuses_these_statements_by_itself(spark: SparkSession, table: Make) -> None:
    t = table()
    pyspark_hudimeta.detach(spark)
    merging = f"merge into {t} using {t} s on true when matched then delete"
    for statement in (f"update {t} set x = 1", f"delete from {t}", merging):
        with pytest.raises(Exception, match="not support"):
            spark.sql(statement)
