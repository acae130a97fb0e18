"""What names no format, in a session whose `spark.sql.sources.default` is ours.

Spark would make an entry that leads nowhere, and to replace a table it would drop the one that is there before it fails.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hudimeta
from tests.elsewhere import SAYS_STATEMENTS
from tests.spark.sql_tables import Name, rows, table_of
from tests.spark.tables import contents, create

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Conf = Callable[[str, str], None]
KEY = "tblproperties (primaryKey = 'id')"


@pytest.fixture(autouse=True)
def of_ours(conf: Conf) -> None:
    conf("spark.sql.sources.default", "hudimeta")


class TestStatements:
    pytestmark = SAYS_STATEMENTS

    def test_a_table_is_made_without_using(self, door: SparkSession, name: Name) -> None:
        made, copied, scripted = name(), name(), name()
        door.sql(f"create table {made} (id int, x double) {KEY}")
        door.sql(f"insert into {made} values (1, 1.5)")
        door.sql(f"create table {copied} {KEY} as select id, x from {made}")
        assert rows(door, copied) == [(1, 1.5)]
        door.sql(f"create or replace table {made} {KEY} as select 7 as id")
        assert rows(door, made) == [(7,)]
        door.sql(f"begin create table {scripted} (id int) {KEY}; insert into {scripted} values (3); end")
        assert rows(door, scripted) == [(3,)]
        assert table_of(door, scripted).properties.record_keys == ("id",)

    def test_other_formats_are_named(self, door: SparkSession, name: Name, conf: Conf) -> None:
        other, default = name(), name()
        door.sql(f"create table {other} using parquet as select 1 as id")
        assert door.sql(f"show create table {other}").collect()[0][0].split("USING ")[1].startswith("parquet")
        conf("spark.sql.sources.default", "parquet")
        door.sql(f"create table {default} (id int)")
        assert door.sql(f"show create table {default}").collect()[0][0].split("USING ")[1].startswith("parquet")


def test_dataframes_are_written_without_a_format(attached: SparkSession, name: Name, tmp_path: Path) -> None:
    given = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    made, created = name(), name()
    attached.range(3).write.options(**given).save(str(tmp_path / "t"))
    assert attached.read.load(str(tmp_path / "t")).count() == 3
    attached.range(3).write.options(**given).saveAsTable(made)
    attached.range(5).write.mode("overwrite").saveAsTable(made)
    assert len(rows(attached, made)) == 5
    attached.range(2).writeTo(created).option("primaryKey", "id").create()
    attached.range(4).writeTo(created).option("primaryKey", "id").createOrReplace()
    assert len(rows(attached, created)) == 4
    listed = name()
    attached.catalog.createTable(listed, schema=attached.range(1).schema, primaryKey="id")
    assert table_of(attached, listed).properties.record_keys == ("id",)


def test_a_stream_goes_where_it_was_last_told(attached: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "from")
    seen: list[int] = []
    stream = attached.readStream.load(str(tmp_path / "from")).drop("_hoodie_commit_time")

    def begun(name: str) -> object:
        return stream.writeStream.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True)

    begun("a").format("hudimeta").foreachBatch(lambda frame, number: seen.append(frame.count())).start().awaitTermination()
    begun("b").foreachBatch(lambda frame, number: seen.append(frame.count())).start().awaitTermination()
    assert seen == [10, 10]
    given = {"hoodie.table.name": "to", "hoodie.datasource.write.recordkey.field": "id"}
    begun("c").options(**given).start(str(tmp_path / "to")).awaitTermination()
    assert contents(tmp_path / "to", "id") == contents(tmp_path / "from", "id")
    assert hudimeta.Table(tmp_path / "to").properties.record_keys == ("id",)


def test_a_writer_that_is_started_again_writes_to_the_table_that_is_named_then(attached: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "from")
    given = {"hoodie.table.name": "to", "hoodie.datasource.write.recordkey.field": "id"}
    stream = attached.readStream.load(str(tmp_path / "from")).drop("_hoodie_commit_time")
    writer = stream.writeStream.format("hudimeta").options(**given).trigger(availableNow=True)
    for place in ("a", "b"):
        writer.option("checkpointLocation", str(tmp_path / f"batches-{place}")).start(str(tmp_path / place)).awaitTermination()
        assert contents(tmp_path / place, "id") == contents(tmp_path / "from", "id")
