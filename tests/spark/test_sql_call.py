"""CALL in an attached session, and `HudiTable.call`: what runs, and what is refused with which words."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark_hudimeta import HudiTable

from hudimeta.errors import ConfigError, UnsupportedFeature
from tests.elsewhere import SAYS_STATEMENTS

pytestmark = SAYS_STATEMENTS


def test_call_by_name_by_path_and_by_place(attached: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = "TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts')"
    attached.sql(f"CREATE TABLE called (id STRING, ts BIGINT) USING hudimeta {options} LOCATION '{path}'")
    try:
        attached.sql("INSERT INTO called VALUES ('a', 1), ('b', 1)")
        by_name = attached.sql("CALL system.show_commits(table => 'called', limit => 1 + 0)")
        assert by_name.columns[:3] == ["commit_time", "state_transition_time", "action"]
        (commit,) = by_name.collect()
        assert commit["total_records_written"] == 2
        assert attached.sql(f"CALL show_commits('{path}', 1)").collect() == [commit]
        assert attached.sql("CALL show_commits(table => :t)", {"t": "default.called"}).collect() == [commit]
        assert HudiTable(attached, path).call("show_commits").collect() == [commit]
        attached.sql("CALL create_savepoint(table => 'called')")
        assert attached.sql(f"CALL show_savepoints(path => '{path}')").collect()[0][0] == commit["commit_time"]
        attached.sql("CALL copy_to_temp_view(table => 'called', view_name => 'copied', replace => true)")
        assert attached.sql("SELECT id FROM copied ORDER BY id").collect() == [("a",), ("b",)]
        assert "limit int = 10" in attached.sql("CALL help(cmd => 'show_commits')").collect()[0][0]
        for statement, says in (
            ("CALL show_comits(table => 'called')", "Did you mean show_commits"),
            ("CALL show_commits(table => 'nosuch')", "a table of the catalog"),
            ("CALL show_commits()", "show_commits needs it"),
            ("CALL show_savepoints()", "the name of a table"),
            ("CALL copy_to_temp_view(table => 'called', view_name => 'v', query_type => 'all')", "snapshot, read_optimized"),
            ("CALL copy_to_table(table => 'called', new_table => 'called')", "a new name, or a table of another format"),
        ):
            with pytest.raises(ConfigError, match=says):
                attached.sql(statement)
        assert attached.table("called").count() == 2
        with pytest.raises(UnsupportedFeature, match="Hive metastore"):
            attached.sql("CALL hive_sync(table => 'called')")
        with pytest.raises(PySparkException):
            attached.sql("CALL elsewhere.system.show_commits('called')")
    finally:
        attached.sql("DROP TABLE called")


def test_metadata_tables_of_several_tables_go_at_once(attached: SparkSession, tmp_path: Path) -> None:
    """As Apache Hudi takes them; nothing goes where one of the tables is not there."""
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        attached.sql(
            f"CREATE TABLE gone_{path.name} (id STRING) USING hudimeta TBLPROPERTIES (primaryKey = 'id') LOCATION '{path}'"
        )
        attached.sql(f"INSERT INTO gone_{path.name} VALUES ('a')")
    try:
        with pytest.raises(ConfigError, match="gone_three"):
            attached.sql("CALL delete_metadata_table(table => 'gone_one,gone_three')")
        assert all((path / ".hoodie" / "metadata").exists() for path in paths)
        said = attached.sql(f"CALL delete_metadata_table(table => 'gone_one, {paths[1]}')").collect()
        assert [path.name in text for path, (text,) in zip(paths, said, strict=True)] == [True, True]
        assert not any((path / ".hoodie" / "metadata").exists() for path in paths)
    finally:
        for path in paths:
            attached.sql(f"DROP TABLE gone_{path.name}")


def test_statements_about_compactions_are_those_that_apache_hudi_has(attached: SparkSession, tmp_path: Path) -> None:
    path, options = tmp_path / "t", "TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = 'mor')"
    attached.sql(f"CREATE TABLE compacted (id STRING, ts BIGINT) USING hudimeta {options} LOCATION '{path}'")
    try:
        attached.sql("INSERT INTO compacted VALUES ('a', 1)")
        attached.sql("UPDATE compacted SET ts = 2")
        assert attached.sql("SHOW COMPACTION ON compacted").collect() == []
        ((time, count, state),) = attached.sql("SCHEDULE COMPACTION ON default.compacted").collect()
        assert (count, state) == (1, "REQUESTED")
        assert attached.sql(f"RUN COMPACTION ON '{path}' AT {time}").collect() == [(time, 1, "COMPLETED")]
        assert attached.sql(f"SHOW COMPACTION ON hudimeta.`{path}` LIMIT 1").collect() == [(time, 1, "COMPLETED")]
        assert attached.sql("SHOW COMPACTION ON compacted").columns == ["timestamp", "operation_size", "state"]
        assert attached.sql("EXPLAIN RUN COMPACTION ON compacted").collect()[0][0].startswith("== hudimeta CALL run_compaction")
        assert attached.sql("BEGIN SHOW COMPACTION ON compacted; END").collect() == [(time, 1, "COMPLETED")]
        with pytest.raises(ConfigError, match="a table of the catalog"):
            attached.sql("RUN COMPACTION ON nosuch")
        assert attached.sql("CALL help").collect() == attached.sql("CALL help()").collect()
    finally:
        attached.sql("DROP TABLE compacted")


def test_a_table_is_bootstrapped_by_call(attached: SparkSession, tmp_path: Path) -> None:
    raw, path = tmp_path / "raw", tmp_path / "t"
    attached.range(20).selectExpr("id", "id * 0.5D as x", "concat('p', id % 2) as part").write.partitionBy("part").parquet(
        str(raw)
    )
    where = f"bootstrap_path => '{raw}', base_path => '{path}', rowKey_field => 'id', partition_path_field => 'part'"
    call = f"CALL run_bootstrap(table => 'boot', table_type => 'MERGE_ON_READ', {where}"
    for more, says in (
        ("enable_hive_sync => true", "enable_hive_sync"),
        ("base_file_format => 'HFILE'", "PARQUET"),
        ("options => 'hoodie.parquet.max.file.size'", "key=value"),
        ("selector_class => 'nope'", "hoodie.bootstrap.mode.selector"),
        ("options => 'hoodie.nope.what=1', table_type => 'x'", "one value"),
    ):
        with pytest.raises((ConfigError, UnsupportedFeature), match=says):
            attached.sql(f"{call}, {more})")
        assert not path.exists(), more
    assert attached.sql(f"{call})").collect() == [(0,)]
    attached.sql(f"CREATE TABLE boot USING hudimeta LOCATION '{path}'")
    try:
        assert attached.sql("SELECT count(*), sum(x) FROM boot").collect() == [(20, 95.0)]
        assert attached.sql("CALL show_bootstrap_partitions(table => 'boot')").collect() == [("part=p0",), ("part=p1",)]
        files = attached.sql(f"CALL show_bootstrap_mapping(path => '{path}', partition_path => 'part=p1')").collect()
        assert {row["source_partition"] for row in files} == {"part=p1"}
        attached.sql("UPDATE boot SET x = -1 WHERE id = 3")
        assert attached.sql("SELECT id FROM boot WHERE x < 0").collect() == [(3,)]
        table, needed = HudiTable(attached, path), ("table_type", "bootstrap_path", "base_path", "rowKey_field")
        with pytest.raises(ConfigError, match="not there yet"):
            table.call("run_bootstrap", **dict.fromkeys(needed, "x"))
    finally:
        attached.sql("DROP TABLE boot")
