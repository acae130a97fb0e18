"""SQL in an attached session: tables at a moment, by their folder, with their meta columns; and their indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hudimeta
from tests.elsewhere import SAYS_STATEMENTS
from tests.spark.tables import check, refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = SAYS_STATEMENTS


@pytest.fixture
def at(attached: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A table of two commits; the instant of the first."""
    attached.sql(
        f"create table trips (id int, name string, ts bigint) using hudimeta location '{tmp_path / 'trips'}' "
        "tblproperties (primaryKey = 'id', orderingFields = 'ts')"
    )
    attached.sql("insert into trips values (1, 'a', 1), (2, 'b', 1)")
    attached.sql("insert into trips values (1, 'x', 2), (3, 'c', 1)")
    yield min(i.time for i in hudimeta.Table(tmp_path / "trips").timeline.writes)
    attached.sql("drop table if exists trips")


def test_comments_stand_wherever_blanks_do(attached: SparkSession, at: str) -> None:
    gap = " /* of /* two */ ; */ -- it's\n "
    assert listed(attached.sql(f"select id, name from trips timestamp{gap}as{gap}of{gap}'{at}'")) == OLD
    assert attached.sql(f"select count(*) from hudi_timeline{gap}('trips')").collect()[0][0] == 2
    for kind in (f"temporary{gap}view", "view"):
        attached.sql(
            f"{gap}create{gap}or{gap}replace{gap}{kind}{gap}then{gap}as select id, name from trips version as{gap}of {at}"
        )
        assert listed(attached.sql("select * from then")) == OLD
        attached.sql("drop view then")
    assert not [row for row in attached.sql(f"{gap}show{gap}tables").collect() if row[1].startswith("_hudimeta")]


def listed(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


OLD, NEW = [(1, "a"), (2, "b")], [(1, "x"), (2, "b"), (3, "c")]


@pytest.mark.rotation(2)
def test_a_table_is_read_at_a_moment_wherever_a_query_names_it(attached: SparkSession, at: str, tmp_path: Path) -> None:
    sql = attached.sql
    assert listed(sql(f"select id, name from trips timestamp as of '{at}'")) == OLD
    assert listed(sql(f"select t.id, trips.name from default.trips version as of {at} join trips t using (id)")) == OLD
    sampled = f"select trips.id, t.name from trips version as of {at} tablesample (9 rows) join trips timestamp as of '{at}'"
    assert listed(sql(f"{sampled} tablesample (100 percent) repeatable (1) t using (id)")) == OLD
    assert len(listed(sql("select trips._hoodie_record_key from trips tablesample (9 rows)"))) == len(NEW)
    assert listed(sql(f"select default.trips.id, name from default.trips for version as of '{at}'")) == OLD
    both = f"select n.id, o.name from trips n left join trips timestamp as of '{at}' o on o.id = n.id"
    assert listed(sql(both)) == [(1, "a"), (2, "b"), (3, None)]
    assert listed(sql(f"select id from trips where id not in (select id from trips timestamp as of '{at}')")) == [(3,)]
    when = datetime.strptime(at[:14], "%Y%m%d%H%M%S")
    assert listed(sql("select id, name from trips timestamp as of :at + interval '2' hours", {"at": when})) == NEW
    assert listed(sql("select id, name from trips timestamp as of ?", [at])) == OLD
    assert sql(f"select * from trips timestamp as of '{at}'").columns == ["id", "name", "ts"]
    sql(f"create temporary view earlier as select * from trips timestamp as of '{at}'")
    sql(f"create view then as select id, name from trips timestamp as of '{at}'")
    sql("insert into trips values (4, 'd', 1)")
    names = {row[1] for row in sql("show tables").collect()}
    assert {"trips", "earlier"} <= names
    assert not [name for name in names if name.startswith("_hudimeta")]
    assert listed(sql("select id, name from earlier")) == OLD
    assert listed(sql("select * from then")) == OLD
    sql(f"insert into trips select id + 10, name, ts from trips timestamp as of '{at}'")
    merging = f"merge into trips t using trips timestamp as of '{at}' s on t.id = s.id"
    sql(f"{merging} when matched then update set name = s.name, ts = 9")
    assert listed(sql("select id, name from trips")) == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (11, "a"), (12, "b")]
    for view in ("earlier", "then"):
        sql(f"drop view {view}")
    left = [table.name for table in attached.catalog.listTables() if table.name.startswith("_hudimeta_query")]
    assert left == []


def test_columns_stand_where_they_stood_at_the_moment(attached: SparkSession, at: str) -> None:
    attached.sql("alter table trips drop column name")
    attached.sql("alter table trips add columns (note string)")
    earlier = f"select * from trips timestamp as of '{at}'"
    assert attached.sql(earlier).columns == ["id", "name", "ts"]
    attached.sql(f"create temporary view earlier as {earlier}")
    assert listed(attached.sql("select * from earlier")) == [(1, "a", 1), (2, "b", 1)]
    attached.sql("drop view earlier")


def test_moments_that_cannot_be_read_are_refused(attached: SparkSession, at: str, tmp_path: Path) -> None:
    before = [str(i) for i in hudimeta.Table(tmp_path / "trips").timeline.instants]
    assert "DESCRIBE HISTORY" in refusal(lambda: attached.sql("select * from trips version as of 3"))
    assert "AS OF" in refusal(lambda: attached.sql("select * from trips timestamp as of null"))
    assert "HUDIMETA_" in refusal(lambda: attached.sql("select * from trips timestamp as of 'yesterday'"))
    two = f"create view two as select * from trips t join trips timestamp as of '{at}' u on t.id = u.id"
    assert "two moments" in refusal(lambda: attached.sql(two))
    folder = f"create view two as select * from hudimeta.`{tmp_path / 'trips'}`"
    assert "gives the folder a name" in refusal(lambda: attached.sql(folder))
    dropping = f"drop table hudimeta.`{tmp_path / 'trips'}`"
    assert "DROP TABLE by the name of a folder" in refusal(lambda: attached.sql(dropping))
    meta = "create view two as select id, _hoodie_commit_time from trips"
    assert "hudimeta.meta.columns" in refusal(lambda: attached.sql(meta))
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        attached.sql(f"select nope from trips timestamp as of '{at}'")
    attached.range(2).createOrReplaceTempView("others")
    with pytest.raises(Exception, match="TIME_TRAVEL"):
        attached.sql("select * from others timestamp as of '2026-01-01'")
    attached.catalog.dropTempView("others")
    assert [str(i) for i in hudimeta.Table(tmp_path / "trips").timeline.instants] == before


@pytest.mark.rotation(2)
def test_a_folder_is_queried_and_changed_by_its_name(attached: SparkSession, at: str, tmp_path: Path) -> None:
    here = f"hudimeta.`{tmp_path / 'trips'}`"
    assert listed(attached.sql(f"select id, name from {here}")) == NEW
    assert listed(attached.sql(f"select o.id, o.name from {here} version as of '{at}' o, {here} n where n.id = o.id")) == OLD
    attached.sql(f"update {here} set name = 'z', ts = 5 where id = 2")
    attached.sql(f"insert into {here} values (4, 'd', 1)")
    attached.sql(f"delete from {here} where id = 1")
    attached.sql(f"create temporary view folder as select * from {here}")
    assert listed(attached.sql("select id, name from folder")) == [(2, "z"), (3, "c"), (4, "d")]
    attached.sql("drop view folder")
    assert attached.sql(f"describe history {here}").count() == 5
    with pytest.raises(hudimeta.errors.TableNotFound):
        attached.sql(f"select * from hudimeta.`{tmp_path / 'nothing'}`")
    check(tmp_path / "trips")


def test_meta_columns_are_there_for_queries_that_name_them(attached: SparkSession, at: str, tmp_path: Path) -> None:
    found = attached.sql("select _hoodie_record_key, id from trips where _hoodie_commit_time = ?", [at])
    assert listed(found) == [("2", 2)]
    joined = "select trips._hoodie_partition_path, o.name from default.trips join (select * from trips) o on o.id = trips.id"
    assert listed(attached.sql(joined)) == [("", "b"), ("", "c"), ("", "x")]
    assert attached.sql("select * from trips").columns == ["id", "name", "ts"], "unless it does, they are hidden"
    attached.sql("create table keys using parquet as select _hoodie_record_key as k from trips")
    assert listed(attached.table("keys")) == [("1",), ("2",), ("3",)]
    attached.sql("drop table keys")


def test_indexes_are_made_shown_refreshed_and_dropped(attached: SparkSession, at: str, tmp_path: Path) -> None:
    def shown() -> set[tuple[str, ...]]:
        known = ("column_stats", "partition_stats")
        return {tuple(row) for row in attached.sql("show indexes in trips").collect() if row.index_name not in known}

    says = refusal(lambda: attached.sql("create index by_name on trips (name)"))
    assert "CREATE INDEX record_index ON `trips` (id)" in says
    attached.sql("create index record_index on trips (id)")
    for index in ("record_index on trips (name)", "column_stats on trips (name)"):
        assert "another name" in refusal(partial(attached.sql, f"create index {index}"))
    attached.sql("create index by_name on trips using secondary_index(name)")
    attached.sql("create index if not exists by_name on trips (name)")
    attached.sql("create index by_day on trips using column_stats(ts) options (expr = 'from_unixtime', format = 'yyyy-MM-dd')")
    attached.sql("create index of_names on trips using bloom_filters(name)")
    assert shown() == {
        ("record_index", "record_index", ""),
        ("secondary_index_by_name", "secondary_index", "name"),
        ("expr_index_by_day", "column_stats", "ts"),
        ("expr_index_of_names", "bloom_filters", "name"),
    }
    assert listed(attached.sql("select id from trips where name = 'b'")) == [(2,)]
    attached.sql("refresh index by_name on trips")
    assert "DROP INDEX by_name" in refusal(lambda: attached.sql("create index by_name on trips (name)"))
    for statement in ("drop index nope on trips", "refresh index nope on trips", "create index i on trips using btree (name)"):
        refusal(partial(attached.sql, statement))
    assert "columns of the table" in refusal(lambda: attached.sql("create index i on trips (nope)"))
    attached.sql("drop index if exists nope on trips")
    for index in ("by_name", "expr_index_by_day", "of_names", "record_index"):
        attached.sql(f"drop index {index} on trips")
    assert shown() == set()
    check(tmp_path / "trips")


def test_indexes_look_at_moments_in_the_zone_of_the_session_that_made_the_first(
    attached: SparkSession, at: str, tmp_path: Path, conf: Callable[[str, str], None]
) -> None:
    conf("spark.sql.session.timeZone", "Asia/Tokyo")
    attached.sql("create index by_hour on trips using column_stats(ts) options (expr = 'from_unixtime', format = 'HH')")
    conf("spark.sql.session.timeZone", "UTC")
    attached.sql("insert into trips values (4, 'd', 3)")
    trusting = hudimeta.Table(tmp_path / "trips", {"hudimeta.index.trust": True, "hudimeta.index.use": "expression_index"})
    found = trusting.scan(where="from_unixtime(ts, 'HH') = '09'", timezone="Asia/Tokyo").to_table()
    assert sorted(found["id"].to_pylist()) == [1, 2, 3, 4]
