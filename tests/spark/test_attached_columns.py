"""The attached door on tables whose files lack columns, or have them of other types."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark_hudimeta
import pytest
from pyspark_hudimeta import HudiTable

import hudimeta
from tests.spark.attached import NATIVE_SCAN, plan, reports_of
from tests.spark.tables import contents, create, ids, refusal, rows
from tests.spark.test_reads import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_of_bootstrapped_files_are_left_to_the_python_source(
    attached: SparkSession, rich_table: Callable[[str], Path]
) -> None:
    path = rich_table("bootstrap_meta")
    first = hudimeta.Table(path).timeline.writes[0].time
    frame = load(attached, path, **{"as.of.instant": first})
    assert "bootstrapped" in pyspark_hudimeta.last_reports(attached)[-1].why_python
    assert frame.count() == hudimeta.Table(path).scan(as_of=first).count()


def test_partition_columns_that_files_lack_come_from_the_path(
    attached: SparkSession, rich_table: Callable[[str], Path]
) -> None:
    table = hudimeta.Table(rich_table("drop_partition_cols"))
    (column,) = table.properties.partition_fields
    values = sorted(set(table.scan().to_table().column(column).to_pylist()))
    frame = load(attached, rich_table("drop_partition_cols"))
    one = frame.where(f"{column} = '{values[0]}'")
    report = reports_of(attached, lambda: one.collect())[-1]
    assert {row[column] for row in one.collect()} == {values[0]}
    assert one.where(f"hash({column}) % 1 = 1").count() == 0, "also by what only Spark understands"
    assert frame.where(f"{column} = '{values[0]}' OR id IS NULL").count() == one.count()
    assert frame.groupBy(column).count().count() == len(values)
    assert report.report is not None
    assert report.report.partitions_kept == 1 < report.report.partitions


@pytest.mark.rotation(3)
@pytest.mark.parametrize("name", ["stayed_cow9", "stayed_mor9", "stayed_bloom_cow9"])
def test_a_row_that_stayed_in_its_partition_shows_the_value_of_that(
    attached: SparkSession, rich_table: Callable[..., Path], name: str
) -> None:
    path = rich_table(name, fresh=True)  # Hudi wrote a with region us over one of eu, and d the other way round
    frame = load(attached, path)
    assert sorted(map(tuple, frame.select("id", "region").collect())) == [
        *zip("abcde", ("eu", "eu", "us", "us", "us"), strict=True)
    ]
    assert ids(frame.where("region = 'eu'")) == ["a", "b"]
    assert ids(frame.where("region = 'eu' AND val > 5 OR id = 'd'")) == ["a", "d"]
    assert NATIVE_SCAN in plan(frame)
    attached.sql(f"CREATE TABLE stayed USING hudimeta LOCATION '{path}'")
    try:
        attached.sql("UPDATE stayed SET val = -1 WHERE region = 'us' AND id = 'd'")
        attached.sql("DELETE FROM stayed WHERE region = 'eu'")
    finally:
        attached.sql("DROP TABLE stayed")
    assert contents(path, "id", "region", "val") == [("c", "us", 3), ("d", "us", -1), ("e", "us", 5)]


def test_partition_values_are_no_text_of_sql(attached: SparkSession, tmp_path: Path) -> None:
    """Spark replaces `${...}` in the text of a statement, and knows quotes and backslashes there."""
    values = ["${spark.app.name}", "it's", "back\\slash", 'a "quote"']
    table = rows(range(len(values))).set_column(1, "part", pa.array(values))
    options = {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"}
    create(tmp_path / "t", table, options=options)
    expected = list(enumerate(values))
    for frame in (load(attached, tmp_path / "t"), pyspark_hudimeta.HudiTable(attached, str(tmp_path / "t")).scan().to_df()):
        assert sorted(map(tuple, frame.select("id", "part").collect())) == expected
        assert ids(frame.where(frame.part == values[0])) == [0]


MOMENT = datetime.datetime(2024, 1, 1, 3, 4, 5, 123456)


def told(value: Any, kind: pa.DataType) -> object:
    """A value of a row of Spark's, which has moments in the zone of this machine, as Arrow gives it."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return value.astimezone(datetime.timezone.utc)
    return bytes(value) if pa.types.is_binary(kind) else value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.binary(), b"\x00\xff"),
        (pa.timestamp("us", "UTC"), MOMENT.replace(tzinfo=datetime.timezone.utc)),
        (pa.timestamp("us"), MOMENT),
        (pa.decimal128(8, 2), decimal.Decimal("1.50")),
        (pa.float64(), 0.5),
        (pa.float32(), 0.5),
    ],
    ids=str,
)
def test_values_of_every_type_come_from_the_path(
    attached: SparkSession, tmp_path: Path, kind: pa.DataType, value: object
) -> None:
    """Of columns that no file holds; Spark's own scan takes constants of few types."""
    given = pa.table({"id": ["a", "b"], "at": pa.array([value, None], kind)})
    options = {"hoodie.datasource.write.drop.partition.columns": "true"}
    table = hudimeta.Table.create(tmp_path / "t", given.schema, key="id", partition_by="at", options=options)
    table.insert(given)
    (found,) = table.scan("id = 'a'").to_table()["at"].to_pylist()
    assert found == value
    for frame in (load(attached, tmp_path / "t"), HudiTable(attached, str(tmp_path / "t")).scan().to_df()):
        (row,) = frame.where("id = 'a'").collect()
        assert told(row.at, kind) == value
        assert ids(frame.where("at IS NULL")) == ["b"]


def test_settings_of_the_session_are_options_of_its_reads(
    attached: SparkSession, tmp_path: Path, conf: Callable[[str, str], None]
) -> None:
    create(tmp_path / "t", rows(range(10)), indexes=["column_stats"], type="MERGE_ON_READ").upsert(rows([1], ts=2, x=-1.0))
    conf("hoodie.enable.data.skipping", "false")
    assert ids(load(attached, tmp_path / "t").where("x = 7")) == [7]
    assert pyspark_hudimeta.last_reports(attached)[-1].report.files_kept == 6, "no file was skipped: five base files and a log"
    asked = attached.read.format("hudimeta").option("hoodie.enable.data.skipping", "true").load(str(tmp_path / "t"))
    assert ids(asked.where("x = 7")) == [7]
    assert pyspark_hudimeta.last_reports(attached)[-1].report.files_kept < 6, "the read's own option counts first"
    for key, value, code in (
        ("hoodie.datasource.query.type", "incremental", "HUDIMETA_CONFIG"),
        ("hoodie.datasource.view.type", "read_optimized", "HUDIMETA_CONFIG"),
        ("hoodie.datasource.merge.type", "skip_merge", "HUDIMETA_UNSUPPORTED"),
    ):
        attached.conf.set(key, value)
        try:
            said = refusal(lambda: load(attached, tmp_path / "t").collect())
            assert code in said, said
            assert value in said, said
        finally:
            attached.conf.unset(key)
    conf("hoodie.datasource.query.type", "read_optimized")
    asked = attached.read.format("hudimeta").option("hoodie.datasource.query.type", "snapshot").load(str(tmp_path / "t"))
    assert ids(asked.where("x < 0")) == [1]


def test_columns_that_only_a_commit_names_come_from_the_path(attached: SparkSession, rich_table: Callable[..., Path]) -> None:
    path = rich_table("drop_partition_mor9", fresh=True)
    expected = contents(path, "id", "country", "n")
    frame = load(attached, path)
    assert sorted(map(tuple, frame.select("id", "country", "n").collect())) == expected
    assert sorted(row.id for row in frame.where("country = 'de'").collect()) == [i for i, c, _ in expected if c == "de"]
    attached.sql(f"CREATE TABLE dropped_columns USING hudimeta LOCATION '{path}'")
    try:
        attached.sql("DELETE FROM dropped_columns WHERE country = 'de'")
        attached.sql("UPDATE dropped_columns SET val = -1 WHERE n = '20'")
    finally:
        attached.sql("DROP TABLE dropped_columns")
    assert contents(path, "id", "country", "n") == [row for row in expected if row[1] != "de"]
    assert {row.country for row in load(attached, path).where("val = -1").collect()} == {"fr"}


def test_the_partition_of_no_value_holds_nulls(attached: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t", rows(range(4)).set_column(1, "part", pa.array(["", None, "a", "b"])))
    expected = [(n, row) for n, row in sorted(contents(tmp_path / "t", "id", "part"))]
    frame = load(attached, tmp_path / "t")
    assert sorted(map(tuple, frame.select("id", "part").collect())) == expected
    assert NATIVE_SCAN in plan(frame)
    assert ids(frame.where("part IS NULL")) == [n for n, part in expected if part is None]


def test_files_of_narrower_types_are_converted_once(attached: SparkSession, tmp_path: Path) -> None:
    narrow = pa.table({"id": pa.array([1, 2], pa.int64()), "n": pa.array([1, 2], pa.int64()), "part": ["a", "b"]})
    table = hudimeta.Table.create(tmp_path / "t", narrow.schema, key="id", partition_by="part")
    table.insert(narrow)
    wide = pa.table({"id": pa.array([3], pa.int64()), "n": pa.array([0.5], pa.float64()), "part": ["b"]})
    table.insert(wide)
    frame = load(attached, tmp_path / "t")
    one, again = (reports_of(attached, lambda: frame.where("part = 'a'").collect())[-1] for _ in range(2))
    assert one.converted_slices == again.converted_slices == 1
    assert sorted(map(tuple, frame.select("id", "n").collect())) == [(1, 1.0), (2, 2.0), (3, 0.5)]


def test_floats_of_a_widened_column_are_the_doubles_of_their_texts(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own reader makes 0.10000000149011612 of 0.1, which no filter would find by what is known of the files."""
    table = create(tmp_path / "t", pa.table({"id": [1], "part": ["a"], "ts": [1], "x": pa.array([0.1], pa.float32())}))
    table.insert(pa.table({"id": [2], "part": ["b"], "ts": [1], "x": [0.1]}))
    expected = [(1, 0.1), (2, 0.1)]
    where, shown = "x <= 0.1D AND x >= 0.1D", ("id", "x")
    plain = load(spark, tmp_path / "t").where(where).select(*shown).collect()
    scanned = HudiTable(spark, str(tmp_path / "t")).scan(where=where).to_df().select(*shown).collect()
    pyspark_hudimeta.attach(spark)
    try:
        attached = load(spark, tmp_path / "t").where(where).select(*shown).collect()
    finally:
        pyspark_hudimeta.detach(spark)
    assert [sorted(map(tuple, found)) for found in (plain, scanned, attached)] == [expected] * 3
    assert contents(tmp_path / "t", *shown) == expected


def test_names_between_quotes_may_be_patterns(attached: SparkSession, conf: Callable[[str, str], None], tmp_path: Path) -> None:
    create(tmp_path / "t", rows(range(3)))
    conf("spark.sql.parser.quotedRegexColumnNames", "true")
    frame = load(attached, tmp_path / "t")
    assert ids(frame.where("part IS NOT NULL")) == [0, 1, 2]
    assert frame.selectExpr("`(id|part)`").columns == ["id", "part"]
    scanned = HudiTable(attached, str(tmp_path / "t")).scan(where="id > 0", columns=["id", "part"]).to_df()
    assert ids(scanned) == [1, 2]
