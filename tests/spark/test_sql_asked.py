"""SQL in an attached session: statements that ask what a table is, and what statements that change rows say of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hudimeta
from tests.elsewhere import SAYS_STATEMENTS
from tests.spark.tables import check, refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = SAYS_STATEMENTS

COLUMNS = "(id int comment 'the key', name string, price double, ts bigint, day string, hour int)"


@pytest.fixture
def table(attached: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A table of two partition columns."""
    attached.sql(
        f"create table asked {COLUMNS} using hudimeta partitioned by (day, hour) comment 'what it\\'s for' "
        "tblproperties (primaryKey = 'id', orderingFields = 'ts', type = 'mor', team = 'taxis') "
        f"location '{tmp_path / 'asked'}'"
    )
    attached.sql("insert into asked values (1, 'a', 1, 1, 'd1', 7), (2, 'b', 2, 1, 'd1', 8), (3, 'c', 3, 1, 'd 2', 7)")
    yield "asked"
    attached.sql("drop table if exists asked")


def listed(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


def test_show_create_table_is_a_statement_that_makes_the_same_entry(attached: SparkSession, table: str, tmp_path: Path) -> None:
    ((statement,),) = listed(attached.sql("show create table asked"))
    assert statement == (
        "CREATE TABLE spark_catalog.default.asked (\n  `id` INT COMMENT 'the key',\n  `name` STRING,\n"
        "  `price` DOUBLE,\n  `ts` BIGINT,\n  `day` STRING,\n  `hour` INT)\nUSING hudimeta\n"
        f"PARTITIONED BY (`day`, `hour`)\nLOCATION '{tmp_path / 'asked'}'\nCOMMENT 'what it\\'s for'\nTBLPROPERTIES (\n"
        "  'orderingFields' = 'ts',\n  'primaryKey' = 'id',\n  'team' = 'taxis',\n  'type' = 'mor')\n"
    )
    attached.sql("drop table asked")
    attached.sql(statement)
    assert listed(attached.sql("show create table default.asked")) == [(statement,)]
    assert attached.table("asked").count() == 3
    attached.sql("drop table asked")
    attached.sql(f"create table asked using hudimeta location '{tmp_path / 'asked'}'")
    known = [("orderingFields", "ts"), ("primaryKey", "id"), ("type", "mor")]
    assert listed(attached.sql("show tblproperties asked")) == known, "what the table itself knows"
    assert listed(attached.sql("show tblproperties asked (type)")) == [("type", "mor")]


def test_describe_extended_says_where_the_table_is_and_what_it_is(attached: SparkSession, table: str, tmp_path: Path) -> None:
    described = listed(attached.sql("describe table extended asked"))
    assert described[:3] == [("id", "int", "the key"), ("name", "string", None), ("price", "double", None)]
    assert described[6:10] == [
        ("# Partition Information", "", ""),
        ("# col_name", "data_type", "comment"),
        ("day", "string", None),
        ("hour", "int", None),
    ]
    facts = {name: value for name, value, _ in described[12:]}
    assert (facts["Database"], facts["Table"], facts["Type"]) == ("default", "asked", "EXTERNAL")
    assert (facts["Provider"], facts["Location"], facts["Comment"]) == ("hudimeta", str(tmp_path / "asked"), "what it's for")
    assert facts["Table Properties"] == "[orderingFields=ts, primaryKey=id, team=taxis, type=mor]"
    assert facts["Created Time"]
    of_name = dict(listed(attached.sql("describe table asked name")))
    assert of_name == {"col_name": "name", "data_type": "string", "comment": "NULL"}
    assert listed(attached.sql("desc formatted spark_catalog.default.asked")) == described
    for statement in ("describe asked", "desc table default.asked", f"describe hudimeta.`{tmp_path / 'asked'}`"):
        shown = listed(attached.sql(statement))
        assert [line[:2] for line in shown] == [line[:2] for line in described[:10]], statement


def test_partitions_indexes_history_and_detail_are_told(attached: SparkSession, table: str, tmp_path: Path) -> None:
    paths = [("day=d 2/hour=7",), ("day=d1/hour=7",), ("day=d1/hour=8",)]
    assert listed(attached.sql("show partitions asked")) == paths
    assert listed(attached.sql("show partitions asked partition (day = 'd1')")) == paths[1:]
    assert listed(attached.sql("show partitions asked partition (hour = '7', DAY)")) == paths[:2]
    assert listed(attached.sql("show partitions asked partition (hour = 7, day = 'd1')")) == paths[1:2]
    assert "partition columns: day, hour" in refusal(lambda: attached.sql("show partitions asked partition (name = 'a')"))
    flat = f"hudimeta.`{tmp_path / 'flat'}`"
    attached.sql(f"create table flat (id int) using hudimeta location '{tmp_path / 'flat'}'")
    assert listed(attached.sql("show partitions flat")) == listed(attached.sql(f"show partitions {flat}")) == []
    assert "flat` is not partitioned" in refusal(lambda: attached.sql("show partitions flat partition (id = 1)"))
    attached.sql("drop table flat")
    for looks in ("msck repair table asked", "alter table asked recover partitions"):
        assert listed(attached.sql(looks)) == []
    attached.sql("delete from asked where hour = 8")
    rows = attached.sql("describe history asked limit 2").collect()
    assert [(row.action, row.operation) for row in rows] == [("deltacommit", "DELETE"), ("deltacommit", "UPSERT")]
    assert rows[0].rows_deleted == 1
    assert attached.sql("describe history asked").count() == 2
    (detail,) = attached.sql("describe detail asked").collect()
    assert (detail.format, detail.location, detail.partitionColumns) == ("hudimeta", str(tmp_path / "asked"), ["day", "hour"])
    on_disk = [path for path in (tmp_path / "asked").rglob("*") if path.name.endswith(".parquet") or ".log." in path.name]
    data = [path for path in on_disk if ".hoodie" not in str(path) and not path.name.endswith(".crc")]
    assert (detail.numFiles, detail.sizeInBytes) == (len(data), sum(path.stat().st_size for path in data))
    indexes = listed(attached.sql("show indexes from asked"))
    assert ("column_stats", "column_stats", "") in [(name, kind, "") for name, kind, _ in indexes]


def test_statements_say_how_many_rows_they_changed(attached: SparkSession, table: str, tmp_path: Path) -> None:
    def counts(statement: str) -> dict[str, int]:
        (row,) = attached.sql(statement).collect()
        return dict(row.asDict())

    new = "(4, 'd', 4, 1, 'd1', 7), (1, 'a', 5, 2, 'd1', 7)"
    assert counts(f"insert into asked values {new}") == {"num_affected_rows": 2, "num_inserted_rows": 1}
    assert counts("update asked set price = price + 1, ts = ts + 1 where id < 3") == {"num_affected_rows": 2}
    assert counts("delete from asked where id = 3") == {"num_affected_rows": 1}
    source = "(select id + 2 as id, 'z' as name, 0D as price, 9L as ts, 'd1' as day, 7 as hour from range(3)) s"
    merged = counts(
        f"merge into asked t using {source} on t.id = s.id when matched and s.id = 2 then delete "
        "when matched then update set * when not matched then insert *"
    )
    assert merged == {"num_affected_rows": 3, "num_updated_rows": 1, "num_deleted_rows": 1, "num_inserted_rows": 1}
    assert counts("delete from asked where id > 100") == {"num_affected_rows": 0}
    assert [(row.id, row.name) for row in attached.table("asked").sort("id").collect()] == [(1, "a"), (3, "z"), (4, "z")]
    check(tmp_path / "asked")


def test_a_merge_inserts_into_a_table_without_key_columns(attached: SparkSession, tmp_path: Path) -> None:
    attached.sql(f"create table keyless (id int, name string) using hudimeta location '{tmp_path / 'k'}'")
    merging = "merge into keyless t using (select * from values (1, 'a'), (2, 'b') as v(id, name)) s on t.id = s.id "
    clauses = "when matched then update set name = concat(t.name, s.name) when not matched then insert *"
    attached.sql(merging + clauses)
    attached.sql(merging + clauses)
    assert listed(attached.table("keyless").sort("id")) == [(1, "aa"), (2, "bb")]
    attached.sql("drop table keyless")
    check(tmp_path / "k")
    assert hudimeta.Table(tmp_path / "k").scan().count() == 2
