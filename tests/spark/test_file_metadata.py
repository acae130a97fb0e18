"""`_metadata` of Spark's file sources: there where Spark reads a table's own files, and said to be missing elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyspark_hudimeta
import pytest

import hudimeta
from tests.elsewhere import REMOTE, only_when
from tests.spark.sql_tables import Name
from tests.spark.tables import create, refusal, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASSIC = only_when(not REMOTE, "a classic session")
FILES = "select id, _metadata.file_name as name, _metadata.file_path as path, _metadata.row_index as at from {}"


def registered(session: SparkSession, name: str, table: hudimeta.Table) -> str:
    pyspark_hudimeta.sql(session, f"create table {name} using hudimeta location '{table.path}'")
    return name


@CLASSIC
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_say_which_file_they_are_of(attached: SparkSession, name: Name, tmp_path: Path, kind: str) -> None:
    table = create(tmp_path / "t", type=kind)
    table.insert(rows([20, 21, 22]))
    expected = {
        row["id"]: row["_hoodie_file_name"] for row in table.scan(columns=["id", "_hoodie_file_name"]).to_table().to_pylist()
    }
    by_name = registered(attached, name(), table)
    for found in (
        attached.sql(FILES.format(by_name)),
        attached.sql(f"{FILES.format(by_name)} t where t._metadata.file_size > 0"),
        attached.sql(FILES.format(f"hudimeta.`{table.path}`")),
        attached.table(by_name).selectExpr(
            "id", "_metadata.file_name name", "_metadata.file_path path", "_metadata.row_index at"
        ),
    ):
        told = found.collect()
        assert {row["id"]: row["name"] for row in told} == expected
        assert all(Path(row["path"].removeprefix("file:")).is_file() and "/t/p" in row["path"] for row in told)
        assert len({(row["name"], row["at"]) for row in told}) == len(expected)
    assert attached.sql(f"select * from {by_name} where id = 1").columns == ["id", "ts", "x", "part"]
    assert attached.sql(f"select '_metadata' as id from {by_name} where id = 1").columns == ["id"]


@CLASSIC
def test_rows_that_were_merged_are_of_no_file(attached: SparkSession, name: Name, tmp_path: Path) -> None:
    table = create(tmp_path / "t", type="MERGE_ON_READ")
    table.upsert(rows([1], ts=2, x=-1.0))
    by_name = registered(attached, name(), table)
    says = f"HUDIMETA_UNSUPPORTED: _metadata of .*{by_name}.*_hoodie_file_name"
    with pytest.raises(Exception, match=says):
        attached.sql(FILES.format(by_name))
    with pytest.raises(Exception, match=r"`_metadata`.*_hoodie_file_name"):
        attached.read.format("hudimeta").load(str(table.path)).select("_metadata.file_path")
    query = f"select id, _hoodie_file_name from {by_name}"
    assert len(attached.sql(query).collect()) == 10
    table.compact()
    assert len({row["name"] for row in attached.sql(FILES.format(by_name)).collect()}) > 1


def test_who_does_not_know_files_says_so(door: SparkSession, spark: SparkSession, name: Name, tmp_path: Path) -> None:
    table, other = create(tmp_path / "t"), name()
    by_name = registered(spark, name(), table)
    says = f"HUDIMETA_UNSUPPORTED: _metadata of .*{by_name}.*attached sessions"
    with pytest.raises(Exception, match=says):
        door.sql(f"create temporary view {other} as {FILES.format(by_name)}")
    if isinstance(door, type(spark)):
        return
    assert says.split()[0] in refusal(lambda: door.sql(FILES.format(by_name)))
    assert door.sql(f"select '_metadata' as text from {by_name}").count() == 10
