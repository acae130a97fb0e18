"""SQL in an attached session: tables and rows that give way to others, tables like others, columns that come with a MERGE."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hudimeta
from hudimeta.config import HudiWarning
from tests.elsewhere import SAYS_STATEMENTS
from tests.spark.tables import check, refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = SAYS_STATEMENTS


@pytest.fixture
def session(attached: SparkSession) -> Iterator[SparkSession]:
    yield attached
    for table in ("old", "new", "plain", "target", "keyless"):
        attached.sql(f"drop table if exists {table}")


def rows(spark: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.sql(query).collect())


def warehouse(spark: SparkSession, name: str) -> list[str]:
    """Folders of the warehouse that begin with a table's name."""
    folder = Path(str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:"))
    return sorted(path.name for path in folder.glob(f"{name}*"))


def helpers(session: SparkSession) -> set[str]:
    """Tables and views that nobody named."""
    return {table.name for table in session.catalog.listTables() if table.name.startswith("_hudimeta")}


def test_a_table_gives_way_when_the_new_one_is_whole(session: SparkSession, tmp_path: Path) -> None:
    sql, before = session.sql, helpers(session)
    sql(
        "create or replace table old (id int, day string) using hudimeta partitioned by (day) tblproperties (primaryKey = 'id')"
    )
    sql("insert into old values (1, 'a'), (2, 'b')")
    for failing in (
        "create or replace table old using hudimeta as select raise_error('no') as id",
        "create or replace table old using hudimeta tblproperties (primaryKey = 'nope') as select 1 as id",
        "replace table old (id int, id int) using hudimeta",
        "create or replace table old using hudimeta as select nope from old",
    ):
        with pytest.raises(Exception, match=r".+"):
            sql(failing).collect()
        assert rows(session, "select * from old") == [(1, "a"), (2, "b")], failing
        assert len(warehouse(session, "old")) == 1, failing
    keys = "tblproperties (primaryKey = 'n', type = 'mor')"
    sql(f"create or replace table old using hudimeta {keys} as select id + 1 as n from old")
    assert rows(session, "select * from old") == [(2,), (3,)]
    assert len(warehouse(session, "old")) == 1, "the files of the old table are gone"
    sql(f"replace table old (id int) using hudimeta location '{tmp_path / 'third'}'")
    assert rows(session, "select * from old") == []
    assert warehouse(session, "old") == []
    same = f"create or replace table old (id int, x int) using hudimeta location '{tmp_path / 'third'}'"
    assert "same folder" in refusal(lambda: sql(same))
    sql("create table plain using parquet as select 7 as id")
    sql("create or replace table plain using hudimeta as select id from plain")
    assert rows(session, "select * from plain") == [(7,)]
    assert "TABLE_OR_VIEW_NOT_FOUND" in _says(session, "replace table nothing (id int) using hudimeta")
    assert helpers(session) == before
    check(tmp_path / "third")


def _says(session: SparkSession, statement: str) -> str:
    with pytest.raises(Exception, match=r".+") as caught:
        session.sql(statement)
    return str(caught.value)


def test_a_table_like_another_has_its_columns_keys_and_partitions(session: SparkSession, tmp_path: Path) -> None:
    sql = session.sql
    sql(
        f"create table old (id int comment 'key', x double, day string) using hudimeta partitioned by (day) "
        f"tblproperties (primaryKey = 'id', orderingFields = 'x', type = 'mor') location '{tmp_path / 'old'}'"
    )
    sql("insert into old values (1, 1, 'a')")
    sql(f"create table new like old location '{tmp_path / 'new'}'")
    sql("create table if not exists new like old")
    made = hudimeta.Table(tmp_path / "new").properties
    assert (made.record_keys, made.ordering_fields, made.partition_fields) == (("id",), ("x",), ("day",))
    assert made.type.value == "MERGE_ON_READ"
    assert rows(session, "select * from new") == []
    columns = {row.col_name: (row.data_type, row.comment) for row in sql("describe new").collect()}
    assert columns["id"] == ("int", "key")
    with pytest.raises(Exception, match="ALREADY_EXISTS"):
        sql("create table new like old using hudimeta")
    sql("create table plain (a int, b string) using parquet")
    sql("create table target like plain using hudimeta tblproperties (primaryKey = 'a')")
    sql("insert into target values (1, 'x'), (1, 'y')")
    assert rows(session, "select a from target") == [(1,), (1,)]
    with pytest.warns(HudiWarning, match=r"any length only: v varchar\(3\)"):
        sql("create table keyless (v varchar(3)) using hudimeta")
    with pytest.warns(HudiWarning, match=r"narrower than int: s smallint, l.element tinyint will be int"):
        sql("create table narrow (s smallint, l array<tinyint>) using hudimeta")
    assert [row.data_type for row in sql("describe narrow").collect()] == ["int", "array<int>"]


def test_rows_give_way_where_a_condition_is_true(session: SparkSession, tmp_path: Path) -> None:
    sql = session.sql
    for name, keys in (("target", "tblproperties (primaryKey = 'id', orderingFields = 'ts')"), ("keyless", "")):
        sql(
            f"create table {name} (id int, x double, ts bigint, day string) using hudimeta partitioned by (day) {keys} "
            f"location '{tmp_path / name}'"
        )
        sql(f"insert into {name} values (1, 1, 1, 'a'), (2, 2, 1, 'a'), (3, 3, 1, 'b'), (4, 4, 1, 'b')")
        sql(f"insert into {name} replace where day = 'a' or x > 3 select id, 9, 2, 'a' from range(2, 4)")
        assert rows(session, f"select id, x, day from {name}") == [(2, 9.0, "a"), (3, 3.0, "b"), (3, 9.0, "a")]
        assert len(hudimeta.Table(tmp_path / name).timeline.writes) == 2
        wrong = f"insert into {name} replace where day = 'a' values (7, 7, 7, 'a'), (8, 8, 8, 'c')"
        assert "REPLACE WHERE" in _says(session, wrong)
        assert "UNRESOLVED_COLUMN" in _says(session, f"insert into {name} replace where nope = 1 values (7, 7, 7, 'a')")
        assert len(rows(session, f"select * from {name}")) == 3
        check(tmp_path / name)


def test_a_merge_brings_columns_that_only_the_source_has(session: SparkSession, tmp_path: Path) -> None:
    sql = session.sql
    sql(f"create table target (id int, x double) using hudimeta tblproperties (primaryKey = 'id') location '{tmp_path / 't'}'")
    sql("insert into target values (1, 1), (2, 2)")
    source = "(select * from values (2, 5D, 'b', 7L), (3, 6D, 'c', 8L) as v(id, x, note, n)) s"
    clauses = "when matched then update set * when not matched then insert *"
    failing = f"merge with schema evolution into target t using {source} on t.id = s.nope {clauses}"
    assert "UNRESOLVED_COLUMN" in _says(session, failing)
    assert session.table("target").columns == ["id", "x"]
    (counts,) = sql(f"merge with schema evolution into target t using {source} on t.id = s.id {clauses}").collect()
    assert (counts.num_updated_rows, counts.num_inserted_rows) == (1, 1)
    assert rows(session, "select id, x, note, n from target where id > 1") == [(2, 5.0, "b", 7), (3, 6.0, "c", 8)]
    assert rows(session, "select note from target where id = 1") == [(None,)]
    sql(f"merge into target t using {source} on t.id = s.id when matched then update set t.note = 'only this'")
    assert rows(session, "select id, x, note from target where note = 'only this'") == [
        (2, 5.0, "only this"),
        (3, 6.0, "only this"),
    ]
    check(tmp_path / "t")
