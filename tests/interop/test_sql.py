"""Statements of Apache Hudi's quick start and SQL pages, by Apache Hudi and by an attached session: equal rows after each.

The one difference is the word after USING. At the end a plain session reads each table that hudimeta made and inserts into it,
and Apache Hudi reads the files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark_hudimeta
import pytest

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.interop.apache_hudi import ApacheHudi, HudiFailed
from tests.interop.sides import FULL
from tests.spark.sql_list import SECTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBER = count()
COLUMNS = "(ts BIGINT, uuid STRING, rider STRING, driver STRING, fare DOUBLE, city STRING)"
TRIPS = """
    (1695159649087, '334e26e9', 'rider-A', 'driver-K', 19.10, 'san_francisco'),
    (1695091554788, 'e96c4396', 'rider-C', 'driver-M', 27.70, 'san_francisco'),
    (1695046462179, '9909a8b1', 'rider-D', 'driver-L', 33.90, 'san_francisco'),
    (1695332066204, '1dced545', 'rider-E', 'driver-O', 93.50, 'san_francisco'),
    (1695516137016, 'e3cf430c', 'rider-F', 'driver-P', 34.15, 'sao_paulo'),
    (1695376420876, '7a84095f', 'rider-G', 'driver-Q', 43.40, 'sao_paulo'),
    (1695173887231, '3eeb61f7', 'rider-I', 'driver-S', 41.06, 'chennai'),
    (1695115999911, 'c8abbe79', 'rider-J', 'driver-T', 17.85, 'chennai')"""

QUICK_START = [
    f"CREATE TABLE {{trips}} {COLUMNS} USING {{format}} PARTITIONED BY (city)",
    f"INSERT INTO {{trips}} VALUES {TRIPS}",
    "UPDATE {trips} SET fare = 25.0 WHERE rider = 'rider-D'",
    f"CREATE TABLE {{adjustments}} {COLUMNS} USING {{format}}",
    """INSERT INTO {adjustments} VALUES
        (1695091554788, 'e96c4396', 'rider-C', 'driver-M', -2.70, 'san_francisco'),
        (1695530237068, '3f3d9565', 'rider-B', 'driver-L', 48.01, 'san_francisco'),
        (1695241330902, 'ea4c36ff', 'rider-F', 'driver-P', 20.11, 'sao_paulo'),
        (1695376420876, '7a84095f', 'rider-G', 'driver-Q', 1.60, 'sao_paulo')""",
    """MERGE INTO {trips} AS target USING {adjustments} AS source ON target.uuid = source.uuid
        WHEN MATCHED THEN UPDATE SET target.fare = target.fare + source.fare""",
    "DELETE FROM {trips} WHERE uuid = '3f3d9565' OR city = 'sao_paulo' AND fare < 40",
    "INSERT OVERWRITE {trips} PARTITION (city = 'chennai') SELECT 1695000000000, 'c0ffee00', 'rider-X', 'driver-Y', 1.5",
]
"""The quick start: tables without a primary key."""

WITH_KEYS = [
    f"""CREATE TABLE IF NOT EXISTS {{trips}} {COLUMNS} USING {{format}}
        TBLPROPERTIES (type = '{{type}}', primaryKey = 'uuid', {{order}}) PARTITIONED BY (city)""",
    f"INSERT INTO {{trips}} VALUES {TRIPS}",
    """CREATE TABLE {copy} USING {format} TBLPROPERTIES (type = '{type}', primaryKey = 'uuid', {order})
        PARTITIONED BY (city) AS SELECT ts, uuid, rider, driver, fare * 2 AS fare, city FROM {trips} WHERE fare > 20""",
    "INSERT INTO {copy} (uuid, city, fare, ts) VALUES ('0000aaaa', 'chennai', 3.0, 1695000000001)",
    "INSERT INTO {copy} PARTITION (city = 'paris') SELECT 5, '0000bbbb', 'rider-P', 'driver-P', 7.0",
    "INSERT INTO {copy} PARTITION (city) SELECT 6, '0000cccc', 'rider-P', 'driver-P', 8.0, 'paris'",
    "UPDATE {trips} SET fare = fare * 2, ts = ts + 1 WHERE rider IN ('rider-A', 'rider-J')",
    "UPDATE {trips} SET fare = 0, ts = 1 WHERE rider = 'rider-C'",
    """MERGE INTO {trips} AS t USING (
            SELECT uuid, city, ts + 10 AS ts, rider, driver, fare,
                   CASE WHEN rider = 'rider-E' THEN 'delete' ELSE 'keep' END AS flag FROM {copy}) AS s
        ON t.uuid = s.uuid
        WHEN MATCHED AND s.flag <> 'delete' THEN UPDATE SET t.fare = s.fare, ts = s.ts
        WHEN MATCHED AND s.flag = 'delete' THEN DELETE
        WHEN NOT MATCHED AND s.rider IS NOT NULL THEN INSERT (uuid, city, ts, rider, driver, fare)
            VALUES (s.uuid, s.city, s.ts, concat(s.rider, '!'), s.driver, s.fare)""",
    """MERGE INTO {trips} t USING (
            SELECT 1795159649087L AS ts, '334e26e9' AS uuid, 'rider-AA' AS rider, 'driver-KK' AS driver,
                   1.25D AS fare, 'san_francisco' AS city
            UNION ALL SELECT 1795159649088L, 'deadbeef', 'rider-Z', 'driver-Z', 2.5D, 'tokyo') s
        ON t.uuid = s.uuid WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""",
    "DELETE FROM {trips} WHERE city = 'tokyo'",
    "DELETE FROM {trips} WHERE uuid IN (SELECT uuid FROM {copy} WHERE city = 'sao_paulo')",
    "INSERT OVERWRITE {trips} PARTITION (city = 'chennai') SELECT 1795000000000, 'c0ffee00', 'rider-X', 'driver-Y', 1.5",
    "SET spark.sql.sources.partitionOverwriteMode = dynamic",
    "INSERT OVERWRITE {trips} SELECT 1795000000000, 'c0ffee01', 'rider-X', 'driver-Y', 2.5, 'paris'",
    "INSERT OVERWRITE {trips} PARTITION (city) SELECT 1795000000000, 'c0ffee02', 'rider-X', 'driver-Y', 3.5, 'chennai'",
    "SET spark.sql.sources.partitionOverwriteMode = static",
    "INSERT OVERWRITE {copy} SELECT 1795000000000, 'c0ffee03', 'rider-X', 'driver-Y', 4.5, 'oslo'",
    "ALTER TABLE {copy} ADD COLUMNS (note STRING)",
    "INSERT INTO {copy} (ts, uuid, fare, city, note) SELECT 1795000000001, 'c0ffee04', 5.5, 'oslo', 'new'",
]
"""The other pages: tables with a primary key, of both types, with and without an order."""

CASES = {
    "quick start": (QUICK_START, "cow", ""),
    "copy-on-write": (WITH_KEYS, "cow", "hoodie.datasource.write.hive_style_partitioning = 'true'"),
    "copy-on-write, ordered": (WITH_KEYS, "cow", "preCombineField = 'ts'"),
    "merge-on-read, ordered": (WITH_KEYS, "mor", "preCombineField = 'ts'"),
}


QUICK = ("quick start",)
"""The others are part of make interop-full."""


@pytest.fixture
def attached(spark: SparkSession) -> Iterator[SparkSession]:
    pyspark_hudimeta.attach(spark)
    yield spark
    pyspark_hudimeta.detach(spark)
    spark.sql("reset spark.sql.sources.partitionOverwriteMode")


def rows_here(spark: SparkSession, table: str) -> list[tuple[Any, ...]]:
    frame = spark.sql(f"SELECT * FROM {table}")
    return sorted((tuple(row) for row in frame.select(*sorted(frame.columns)).collect()), key=repr)


def rows_there(hudi: ApacheHudi, table: str) -> list[tuple[Any, ...]]:
    found = hudi.sql(f"SELECT * FROM {table}")
    names = sorted(name for name in found.column_names if not name.startswith("_hoodie_"))
    return sorted(zip(*(found.column(name).to_pylist() for name in names), strict=True), key=repr)


@pytest.mark.timeout(1800)  # twenty statements and more, and both sides read after each
@pytest.mark.parametrize("case", CASES if FULL else QUICK)
def test_hudis_own_statements_give_the_rows_that_hudi_gives(attached: SparkSession, hudi: ApacheHudi, case: str) -> None:
    statements, kind, order = CASES[case]
    number = next(NUMBER)
    names = {name: f"{name}_{number}" for name in ("trips", "adjustments", "copy")}
    try:
        for statement in statements:
            words = {"type": kind, "order": order, **names}
            hudi.sql(statement.format(format="hudi", **words))
            attached.sql(statement.format(format="hudimeta", **words))
            named = [name for name in names if f"{{{name}}}" in statement]
            if named:
                changed = names[min(named, key=lambda name: statement.find(f"{{{name}}}"))]
                assert rows_here(attached, changed) == rows_there(hudi, changed), statement
        _other_doors(attached, hudi, [table for table in names.values() if attached.catalog.tableExists(table)])
    finally:
        pyspark_hudimeta.attach(attached)
        for table in names.values():
            attached.sql(f"DROP TABLE IF EXISTS {table} PURGE")
            hudi.sql(f"DROP TABLE IF EXISTS {table}")


def _other_doors(spark: SparkSession, hudi: ApacheHudi, tables: list[str]) -> None:
    """What a plain session and Apache Hudi make of the tables."""
    rows = {table: rows_here(spark, table) for table in tables}
    warehouse = str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")
    pyspark_hudimeta.detach(spark)
    for table in tables:
        check_all(open_storage(f"{warehouse}/{table}"))
        assert rows_here(spark, table) == rows[table]
        spark.sql(f"INSERT INTO {table} (ts, uuid, city, fare) VALUES (1895000000000, 'plain', 'plain', 1.5)")
        assert len(rows_here(spark, table)) == len(rows[table]) + 1
        with pytest.raises(Exception, match="not support"):
            spark.sql(f"DELETE FROM {table}")
        whole = hudi.read(f"{warehouse}/{table}").table
        ours = hudimeta.Table(f"{warehouse}/{table}").scan().to_table()
        assert sorted(whole["uuid"].to_pylist()) == sorted(ours["uuid"].to_pylist())
        assert sorted(whole["fare"].to_pylist()) == sorted(ours["fare"].to_pylist())


def refuses(hudi: ApacheHudi, statement: str) -> bool:
    """Whether Apache Hudi does not take a statement."""
    try:
        hudi.sql(statement)
    except HudiFailed:
        return True
    return False


LISTED = tuple(SECTIONS) if FULL else ("Rows",)
NEXT = "1.2." in os.environ.get("HUDI_BUNDLE", "")
_ANSWERS = ("SELECT", "SHOW PARTITIONS", "SHOW INDEXES")
_OF_OURS = ("column_stats", "partition_stats")
"""Indexes that the two make without being asked, each by its own defaults."""


def _first_write(run: Callable[[str], Any]) -> dict[str, str]:
    """When the first write of the table began, and when it was complete; empty texts before it."""
    shown = run("CALL show_commits(table => 'trips')")
    found = shown if isinstance(shown, pa.Table) else shown.toArrow()
    return {"at": found[0][-1].as_py(), "done": found[1][-1].as_py()} if found.num_rows else {"at": "", "done": ""}


@pytest.mark.filterwarnings("ignore:a Hudi table has strings of any length")
@pytest.mark.filterwarnings("ignore:new_col may be null")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("section", LISTED)
def test_hudi_does_with_the_statements_of_the_page_what_it_says(attached: SparkSession, hudi: ApacheHudi, section: str) -> None:
    attached.sql("CREATE DATABASE listed")
    attached.sql("USE listed")
    hudi.sql("CREATE DATABASE listed")
    hudi.sql("USE listed")
    times: dict[str, dict[str, str]] = {"there": {"at": "", "done": ""}, "here": {"at": "", "done": ""}}
    try:
        for one in SECTIONS[section]:
            there = one.text.format(format="hudi", **times["there"])
            stated = (one.newer if NEXT else "") or one.hudi
            if stated.startswith(("refuses it", "does not know it")):
                assert refuses(hudi, there), there
            elif not one.refused:
                answer = hudi.sql(there)
            if one.refused:
                continue
            frame = attached.sql(one.text.format(format="hudimeta", **times["here"]))
            mine = sorted((tuple(row) for row in frame.collect() if row[0] not in _OF_OURS), key=repr)
            if stated == "the same" and one.text.startswith(_ANSWERS):
                theirs = zip(*(column.to_pylist() for column in answer.columns), strict=True)
                assert mine == sorted((row for row in theirs if row[0] not in _OF_OURS), key=repr), one.text
            if not times["here"]["at"]:
                for side, run in (("here", attached.sql), ("there", hudi.sql)):
                    times[side] = _first_write(run)
    finally:
        for side in (attached.sql, hudi.sql):
            side("USE default")
            side("DROP DATABASE IF EXISTS listed CASCADE")
