"""CALL in an attached session, and `HudiTable.call`: what runs, and what is refused with which words."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark_hudimeta import HudiTable

from hudimeta.errors import ConfigError, UnsupportedFeature


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
        ):
            with pytest.raises(ConfigError, match=says):
                attached.sql(statement)
        with pytest.raises(UnsupportedFeature, match="Hive metastore"):
            attached.sql("CALL hive_sync(table => 'called')")
        with pytest.raises(PySparkException):
            attached.sql("CALL elsewhere.system.show_commits('called')")
    finally:
        attached.sql("DROP TABLE called")
