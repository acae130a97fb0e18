"""SQL in an attached session: partitions, properties, and what Delta Lake's users type for services; EXPLAIN of what runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import hudimeta
from tests.elsewhere import SAYS_STATEMENTS
from tests.spark.sql_tables import SCAN
from tests.spark.tables import check, refusal
from tests.write.moment_folders import rows
from tests.write.moment_folders import table as table_by_seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = SAYS_STATEMENTS


@pytest.fixture
def path(attached: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Of a table of six partitions by two columns."""
    attached.sql(
        f"create table kept (id int, x double, ts bigint, day string, hour int) using hudimeta location '{tmp_path / 'kept'}' "
        "partitioned by (day, hour) tblproperties (primaryKey = 'id', orderingFields = 'ts')"
    )
    rows = ", ".join(f"({n}, {n}, 1, 'd{n % 3}', {n % 2})" for n in range(12))
    attached.sql(f"insert into kept values {rows}")
    yield tmp_path / "kept"
    attached.sql("drop table if exists kept")


def ids(spark: SparkSession) -> list[int]:
    return sorted(row.id for row in spark.sql("select id from kept").collect())


def row(frame: DataFrame) -> dict[str, Any]:
    (found,) = frame.collect()
    return dict(found.asDict())


def newest(path: Path) -> str:
    return hudimeta.Table(path).timeline.writes[-1].time


def test_partitions_of_dates_go_by_the_names_of_their_folders(attached: SparkSession, tmp_path: Path) -> None:
    sql, keygen = attached.sql, "hoodie.keygen.timebased"
    moments = [(1, 1701443427, "a"), (2, 1704121827, "a"), (3, 1704121827, "b"), (4, 1706800227, "a"), (5, 1706800227, "b")]
    options = {
        "hoodie.table.name": "dated",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "ts:timestamp,part:simple",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        f"{keygen}.timestamp.type": "UNIX_TIMESTAMP",
        f"{keygen}.output.dateformat": "yyyyMM",
    }
    frame = attached.createDataFrame(moments, "id int, ts int, part string")
    frame.write.format("hudimeta").options(**options).mode("overwrite").save(str(tmp_path / "dated"))
    sql(f"create table dated using hudimeta location '{tmp_path / 'dated'}'")
    sql("alter table dated drop partition (ts = 202401, part = 'a'), partition (ts = 1706800227, part = 'b')")
    sql("truncate table dated partition (part = 'a', ts = '202312')")
    assert sorted(r.id for r in sql("select id from dated").collect()) == [3, 4]
    assert "202402/a" in refusal(lambda: sql("alter table dated drop partition (ts = 202403, part = 'a')"))
    sql("drop table dated")


def test_partitions_are_dropped_truncated_and_checked(attached: SparkSession, path: Path) -> None:
    sql = attached.sql
    sql("alter table kept add if not exists partition (day = 'd1', hour = 1)")
    sql("alter table kept add partition (day = 'd9', hour = 1)")
    sql("truncate table kept partition (day = 'd1', hour = 1)")
    assert ids(attached) == [0, 2, 3, 4, 5, 6, 8, 9, 10, 11]
    sql("alter table kept drop if exists partition (day = 'nope')")
    sql("alter table kept drop partition (day = 'd0'), partition (HOUR = 1)")
    assert ids(attached) == [2, 4, 8, 10]
    assert [r.partition for r in sql("show partitions kept").collect()] == ["day=d1/hour=0", "day=d2/hour=0"]
    assert len(hudimeta.Table(path).timeline.writes) == 3
    sql("truncate table kept")
    assert ids(attached) == []
    check(path)


@pytest.mark.parametrize("partitions", ["", "partitioned by (p)"])
def test_rows_of_a_truncated_table_have_no_say_in_those_to_come(
    attached: SparkSession, tmp_path: Path, partitions: str
) -> None:
    """TRUNCATE deleted rows one by one, and such a delete wins over what is older by the ordering column."""
    place, made = f"location '{tmp_path / 't'}'", "type = 'mor', primaryKey = 'id', orderingFields = 'ts'"
    attached.sql(f"create table emptied (id int, ts int, p string) using hudimeta {partitions} {place} tblproperties ({made})")
    attached.sql("truncate table emptied")
    attached.sql("insert into emptied values (1, 1000, 'a'), (2, 1000, 'b')")
    attached.sql("truncate table emptied")
    assert attached.table("emptied").count() == 0
    assert attached.sql("show partitions emptied").collect() == []
    attached.sql("insert into emptied values (1, 500, 'a')")
    assert [tuple(row) for row in attached.table("emptied").collect()] == [(1, 500, "a")]
    attached.sql("drop table emptied")
    check(tmp_path / "t")


def test_a_star_names_partitions_that_are_dropped_as_in_hudi(attached: SparkSession, path: Path) -> None:
    assert [r.partition for r in attached.sql("show partitions kept partition (day = 'd*')").collect()] == []
    attached.sql("truncate table kept partition (day = 'd*', hour = 1)")
    assert ids(attached) == [0, 2, 4, 6, 8, 10]
    attached.sql("alter table kept drop partition (day = '*0')")
    assert ids(attached) == [2, 4, 8, 10]
    assert "SHOW PARTITIONS" in refusal(lambda: attached.sql("alter table kept drop partition (day = 'x*')"))
    attached.sql("alter table kept drop if exists partition (day = '*')")
    assert ids(attached) == []
    check(path)


@pytest.mark.parametrize("value", ["'d0' x", "day", "(select 'd0')"])
def test_a_partition_is_named_by_constants(door: SparkSession, path: Path, value: str) -> None:
    for statement in ("alter table kept drop if exists", "truncate table kept", "show partitions kept"):
        with pytest.raises(Exception, match=r"(?s)PARSE_SYNTAX_ERROR.* partition \(day|PARTITION has .* allowed is a constant"):
            door.sql(f"{statement} partition (day = {value})")
    assert len(ids(door)) == 12


def test_a_partition_by_seconds_is_dropped_by_its_second(attached: SparkSession, tmp_path: Path) -> None:
    """SQL of Apache Hudi names it so: it holds rows of the whole second, and one moment of it is not the partition."""
    path = table_by_seconds(tmp_path / "seconds", rows("first"))
    attached.sql(f"create table seconds using hudimeta location '{path}'")
    folders = [r.partition for r in attached.sql("show partitions seconds").collect()]
    attached.sql("alter table seconds drop if exists partition (at = timestamp'2026-01-02 03:04:05.5Z')")
    assert attached.table("seconds").count() == 1
    attached.sql("insert into seconds (id, v, at) values ('b', 'second', timestamp'2026-01-02 03:04:05.7Z')")
    folders += [r.partition for r in attached.sql("show partitions seconds").collect()]
    attached.sql("alter table seconds drop partition (at = timestamp'2026-01-02 03:04:05Z')")
    assert (folders, attached.table("seconds").count()) == (["at=2026-01-02 03%3A04%3A05"] * 2, 0)
    attached.sql("drop table seconds")


def test_properties_are_options_of_all_reads_and_writes(attached: SparkSession, path: Path) -> None:
    attached.sql("alter table kept set tblproperties ('hoodie.parquet.compression.codec' = 'gzip', team = 'taxis')")
    attached.sql("update kept set x = 0.5, ts = 2 where id = 1")
    (written,) = (file for file in path.rglob("day=d1/hour=1/*.parquet") if newest(path) in file.name)
    assert pq.ParquetFile(written).metadata.row_group(0).column(0).compression == "GZIP"
    found = {r.key: r.value for r in attached.sql("show tblproperties kept").collect()}
    assert (found["hoodie.parquet.compression.codec"], found["team"]) == ("gzip", "taxis")
    attached.sql("alter table kept unset tblproperties ('hoodie.parquet.compression.codec', nothing)")
    assert "hoodie.parquet.compression.codec" not in {r.key for r in attached.sql("show tblproperties kept").collect()}
    attached.sql("alter table kept set tblproperties (primaryKey = 'id', type = 'cow')")
    assert ids(attached) == list(range(12))


def test_delta_lakes_words_for_services(attached: SparkSession, path: Path) -> None:
    sql = attached.sql
    for number in (2, 3):
        sql(f"update kept set x = x + 1, ts = {number} where day = 'd0'")
    clustered = row(sql("optimize kept where day = 'd0' and hour = 1 zorder by (x, id)"))
    assert (clustered["files_removed"], clustered["files_added"]) == (1, 1)
    assert hudimeta.Table(path).timeline.writes[-1].action.value == "replacecommit"
    assert sql("optimize kept where day = 'nope'").count() == 0
    assert sql("vacuum kept dry run").count() == 0, "nothing is old enough"
    assert row(sql("vacuum kept retain 1000 hours"))["files_deleted"] == 0
    sql("set hoodie.clean.commits.retained = 1")
    gone = [r.path for r in sql("vacuum kept dry run").collect()]
    assert gone
    assert all(Path(name).exists() for name in gone)
    assert row(sql("vacuum kept"))["files_deleted"] == len(gone)
    assert not any(Path(name).exists() for name in gone)
    sql("reset hoodie.clean.commits.retained")
    sql("analyze table kept compute statistics for all columns")
    before, last = ids(attached), newest(path)
    sql("delete from kept where day = 'd1'")
    assert row(sql(f"restore table kept to version as of {last}"))["restored_to"] == last
    assert ids(attached) == before
    assert row(sql("restore kept timestamp as of current_timestamp()"))["instants_undone"] == 0
    check(path)


def test_explain_shows_what_runs_and_changes_nothing(attached: SparkSession, path: Path) -> None:
    def plan(statement: str) -> str:
        return str(row(attached.sql(statement))["plan"])

    before = [str(i) for i in hudimeta.Table(path).timeline.instants]
    assert SCAN in plan("explain select * from kept where id = 3")
    assert "== Analyzed Logical Plan ==" in plan("explain extended select * from kept")
    changing = "merge into kept t using (select 1 as id, 2D as x) s on t.id = s.id when matched then update set x = s.x"
    for statement, word in (
        ("update kept set x = 1 where id = 3", "UPDATE"),
        ("delete from kept where id = 3", "DELETE"),
        (changing, "MERGE"),
        ("insert into kept select * from kept", "INSERT"),
    ):
        shown = plan(f"explain formatted {statement}")
        assert f"hudimeta {word} of spark_catalog.default.kept" in shown
        assert SCAN.replace("File", "") in shown
    for statement in ("optimize kept zorder by (x)", "vacuum kept", "create index i on kept (x)", "call show_commits('kept')"):
        said = " ".join(statement.split()[: 1 + statement.startswith("create")]).upper()
        assert plan(f"explain {statement}").startswith(f"== hudimeta {said} "), statement
    assert "Range" in plan("explain select * from range(3)")
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        attached.sql("explain delete from kept where nope = 1")
    assert [str(i) for i in hudimeta.Table(path).timeline.instants] == before


def test_a_record_window_by_statements(attached: SparkSession, tmp_path: Path) -> None:
    sql, path = attached.sql, tmp_path / "windowed"
    sql(
        "create table windowed (id int, v int, day string) using hudimeta partitioned by (day) "
        f"tblproperties (primaryKey = 'id') location '{path}'"
    )
    try:
        sql("insert into windowed values (1, 1, '2026-03-01'), (2, 1, '2026-03-02')")
        sql("create index record_window on windowed using record_window (day) options (days = '2')")
        assert "record_window" in [one["index_name"] for one in sql("show indexes from windowed").collect()]
        sql("refresh index record_window on windowed")
        report = hudimeta.Table(path).upsert({"id": [1], "v": [2], "day": ["2026-03-02"]})
        assert "1 keys looked up, 1 keys found (2 days, 2 file slices in it)" in report.index
        sql("drop index record_window on windowed")
        assert not (path / ".hoodie/.aux/hudimeta/record_window").exists()
    finally:
        sql("drop table windowed")
