"""Timestamps of type INT96, which tasks read themselves, are what Spark reads; those that it would change stay with Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark_hudimeta import HudiTable
from pyspark_hudimeta.arrow_types import written_schema
from pyspark_hudimeta.routed import scanned_files

import hudimeta
from tests.spark.scanned import THROUGH_SPARK, loaded, way, written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("small_files_count")

Conf = Callable[[str, str], None]
WRITE_MODE = "spark.sql.parquet.int96RebaseModeInWrite"
READ_MODE = "spark.sql.parquet.int96RebaseModeInRead"
BY_TASKS, LEGACY = "by the tasks", "INT96 of the calendar of before Spark 3.1"

TEXTS = [
    "0001-01-10 00:00:00",
    "0999-12-31 23:59:59.999999",
    "1582-10-04 12:00:00.5",
    "1582-10-10 00:00:00",
    "1582-10-15 00:00:00.000001",
    "1883-11-18 12:03:57.999999",
    "1899-12-31 23:59:59.999999",
    "1900-01-01 00:00:00",
    "1937-07-01 00:19:32",
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "1970-01-01 00:00:00.000001",
    "2024-03-10 02:30:00",
    "2262-04-11 23:47:16.854776",
    "9999-12-30 23:59:59.999999",
]
MICROSECONDS = [
    None,
    -62_135_596_799_999_995,
    -12_219_292_800_000_001,
    -2_208_988_800_000_001,
    -86_400_000_001,
    -1_000_001,
    -1,
    0,
    1,
]


def times(spark: SparkSession) -> DataFrame:
    """Instants of all calendars, alone and within lists, structs and maps; nulls among them."""
    listed = ", ".join(f"timestamp'{text}'" for text in TEXTS)
    frame = spark.range(0, 60, 1, 1).selectExpr("id", f"if(id % 4 = 3, null, array({listed})[id % {len(TEXTS)}]) at")
    return frame.selectExpr(
        "*",
        "if(id % 5 = 0, null, named_struct('at', at, 'text', string(id), 'list', array(at, null, at))) inner",
        "if(id % 7 = 0, null, map(concat('k', id), at, 'none', null)) mapped",
        "map(string(id), array(named_struct('at', at), null)) deep",
    )


def saved(frame: DataFrame, path: Path, **options: str) -> DataFrame:
    """The rows as a file of Spark's says them."""
    frame.write.options(**options).parquet(str(path))
    return frame.sparkSession.read.parquet(str(path))


def by_arrow(path: Path, kind: pa.DataType, values: Sequence[int | None], version: str = "", **options: Any) -> str:
    """The path of a folder with a file of INT96 by pyarrow.

    Args:
        path: The folder.
        kind: Of the column.
        values: One a row.
        version: Of Spark, as if that had written it.
        options: Of the writer.
    """
    path.mkdir(exist_ok=True)
    nested = pa.array([{"at": value} for value in values], pa.struct([("at", kind)]))
    table = pa.table({"id": pa.array(range(len(values)), pa.int64()), "at": pa.array(values, kind), "inner": nested})
    if version:
        table = table.replace_schema_metadata({"org.apache.spark.version": version})
    pq.write_table(table, path / f"{len(values)}.parquet", use_deprecated_int96_timestamps=True, **options)
    return str(path)


@pytest.mark.rotation(3)
@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Kathmandu"])
def test_files_of_spark(spark: SparkSession, tmp_path: Path, conf: Conf, zone: str) -> None:
    conf("spark.sql.session.timeZone", zone)
    assert BY_TASKS in loaded(spark, saved(times(spark), tmp_path / "rows"), tmp_path)


@pytest.mark.rotation(2)
@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_files_of_the_old_calendar(spark: SparkSession, tmp_path: Path, conf: Conf, zone: str) -> None:
    conf("spark.sql.session.timeZone", zone)
    conf(WRITE_MODE, "LEGACY")
    assert LEGACY in loaded(spark, saved(times(spark), tmp_path / "rows"), tmp_path)


@pytest.mark.rotation(2)
@pytest.mark.parametrize(
    "options",
    [{"parquet.enable.dictionary": "false"}, {"parquet.writer.version": "PARQUET_2_0"}, {"parquet.page.size": "200"}],
    ids=str,
)
def test_pages_of_all_kinds(spark: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    assert BY_TASKS in loaded(spark, saved(times(spark), tmp_path / "rows", **options), tmp_path)


def test_files_of_the_legacy_layout_of_lists(spark: SparkSession, tmp_path: Path, conf: Conf) -> None:
    conf("spark.sql.parquet.writeLegacyFormat", "true")
    assert BY_TASKS in loaded(spark, saved(times(spark), tmp_path / "rows"), tmp_path)


def test_instants_to_the_ends_of_a_long(spark: SparkSession, tmp_path: Path) -> None:
    edge = 210_866_803_200_000_000  # The first Julian day: before it, days and nanoseconds are negative.
    values = [-(2**63), -(2**63) + 1, -edge - 86_400_000_001, -edge - 1, -edge, -edge + 1, -(2**61), 2**61, 2**63 - 1]
    frame = spark.createDataFrame(list(enumerate(values)), "id bigint, n bigint").coalesce(1)
    frame = saved(frame.selectExpr("id", "timestamp_micros(n) at"), tmp_path / "rows")
    found = []
    for name, options in (("direct", {}), ("through", THROUGH_SPARK)):
        hudimeta.Table.create(tmp_path / name, written_schema(frame.schema), key="id")
        report = HudiTable(spark, tmp_path / name, options).bulk_insert(frame)
        assert (BY_TASKS in way(report)) is (not options)
        rows = hudimeta.Table(tmp_path / name).scan(columns=["id", "at"]).to_table().sort_by("id")
        found.append(rows.column("at").cast(pa.int64()).to_pylist())
    assert found[0] == found[1]
    assert found[0][3:6] == values[3:6]


@pytest.mark.rotation(2)
@pytest.mark.parametrize(("zone", "dictionary"), [("UTC", True), ("America/Los_Angeles", False)])
def test_files_of_arrow(spark: SparkSession, tmp_path: Path, conf: Conf, zone: str, dictionary: bool) -> None:
    conf("spark.sql.session.timeZone", zone)
    source = by_arrow(tmp_path / "rows", pa.timestamp("us"), MICROSECONDS, use_dictionary=dictionary, row_group_size=4)
    assert BY_TASKS in loaded(spark, spark.read.parquet(source), tmp_path)


def test_nanoseconds_are_cut_as_spark_cuts_them(spark: SparkSession, tmp_path: Path) -> None:
    around = (-1_001, -1_000, -999, -1, 0, 1, 999)
    values = [second * 10**9 + part for second in (-(10**9), -86_400, 0, 10**9) for part in around]
    source = by_arrow(tmp_path / "rows", pa.timestamp("ns"), values)
    assert BY_TASKS in loaded(spark, spark.read.parquet(source), tmp_path)


def test_files_with_and_without(spark: SparkSession, tmp_path: Path) -> None:
    rows = times(spark)
    written(rows.where("id % 2 = 0"), tmp_path / "rows")
    rows.where("id % 2 = 1").write.mode("append").parquet(str(tmp_path / "rows"))
    assert "rows read from 2 Parquet files" in loaded(spark, spark.read.parquet(str(tmp_path / "rows")), tmp_path)


def test_one_file_of_the_old_calendar_leaves_all_to_spark(spark: SparkSession, tmp_path: Path, conf: Conf) -> None:
    rows = times(spark)
    saved(rows.where("id % 2 = 0"), tmp_path / "rows")
    conf(WRITE_MODE, "LEGACY")
    rows.where("id % 2 = 1").write.mode("append").parquet(str(tmp_path / "rows"))
    assert LEGACY in loaded(spark, spark.read.parquet(str(tmp_path / "rows")), tmp_path)


def test_each_kind_of_times_has_a_calendar_of_its_own(spark: SparkSession, tmp_path: Path, conf: Conf) -> None:
    conf("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    frame = saved(times(spark).selectExpr("*", "date'1400-01-01' day"), tmp_path / "rows")
    (tmp_path / "1").mkdir()
    assert "dates of the calendar of before Spark 3" in loaded(spark, frame, tmp_path)
    assert BY_TASKS in loaded(spark, frame.drop("day"), tmp_path / "1")
    conf(WRITE_MODE, "LEGACY")
    conf("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
    frame = saved(times(spark).selectExpr("*", "date'1400-01-01' day"), tmp_path / "others")
    for name, columns, told in (("2", ["id", "at"], LEGACY), ("3", ["id", "day"], BY_TASKS), ("4", ["id", "deep"], LEGACY)):
        (tmp_path / name).mkdir()
        assert told in loaded(spark, frame.select(*columns), tmp_path / name)


@pytest.mark.rotation(2)
@pytest.mark.parametrize("mode", ["EXCEPTION", "LEGACY"])
def test_files_that_do_not_tell_their_calendar(spark: SparkSession, tmp_path: Path, conf: Conf, mode: str) -> None:
    source = by_arrow(tmp_path / "rows", pa.timestamp("us"), [-1, 0, 1])
    told = "does not say of which calendar its timestamps of type INT96 are"
    assert told in loaded(spark, spark.read.option("int96RebaseMode", mode).parquet(source), tmp_path)
    conf(READ_MODE, mode)
    for name in "123":
        (tmp_path / name).mkdir()
    assert told in loaded(spark, spark.read.parquet(source), tmp_path / "1")
    assert BY_TASKS in loaded(spark, spark.read.option("int96RebaseMode", "CORRECTED").parquet(source), tmp_path / "2")
    assert BY_TASKS in loaded(spark, spark.read.parquet(source).select("id"), tmp_path / "3")


@pytest.mark.rotation(3)
@pytest.mark.parametrize(("version", "told"), [("2.4.8", LEGACY), ("3.0.3", LEGACY), ("3.1.0", BY_TASKS)])
def test_the_version_that_wrote_a_file_tells_its_calendar(
    spark: SparkSession, tmp_path: Path, conf: Conf, version: str, told: str
) -> None:
    conf(READ_MODE, "EXCEPTION")
    source = by_arrow(tmp_path / "rows", pa.timestamp("us"), MICROSECONDS, version)
    assert told in loaded(spark, spark.read.parquet(source), tmp_path)


def test_files_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    for values in ([], MICROSECONDS):
        source = by_arrow(tmp_path / "rows", pa.timestamp("us"), values)
    assert "read from 2 Parquet files" in loaded(spark, spark.read.parquet(source), tmp_path)


def test_a_session_that_shifts_int96(spark: SparkSession, tmp_path: Path, conf: Conf) -> None:
    conf("spark.sql.session.timeZone", "America/Los_Angeles")
    conf("spark.sql.parquet.int96TimestampConversion", "true")
    source = by_arrow(tmp_path / "rows", pa.timestamp("us"), MICROSECONDS)
    assert "int96TimestampConversion is set" in loaded(spark, spark.read.parquet(source), tmp_path)


def test_a_session_that_does_not_know_int96(spark: SparkSession, tmp_path: Path, conf: Conf) -> None:
    frame = spark.read.parquet(by_arrow(tmp_path / "rows", pa.timestamp("us"), MICROSECONDS))
    conf("spark.sql.parquet.int96AsTimestamp", "false")
    told = scanned_files.scanned_files(spark, frame, written_schema(frame.schema), {})
    assert "int96AsTimestamp is not set" in str(told)


def test_times_without_zone(spark: SparkSession, tmp_path: Path) -> None:
    source = by_arrow(tmp_path / "rows", pa.timestamp("us"), MICROSECONDS)
    frame = spark.read.schema("id bigint, at timestamp_ntz").parquet(source)
    assert "timestamp[us, tz=UTC], which is no timestamp[us]" in loaded(spark, frame, tmp_path)


def test_other_values_of_twelve_bytes(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    columns = {"id": pa.array([1, 2]), "raw": pa.array([b"twelve bytes", None], pa.binary(12)), "at": pa.array([1, -1])}
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "rows" / "0.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows"))
    assert "raw as fixed_size_binary[12], which is no binary" in loaded(spark, frame, tmp_path)
    table = table.set_column(2, "at", table["at"].cast(pa.timestamp("us")))
    pq.write_table(table, tmp_path / "rows" / "0.parquet", use_deprecated_int96_timestamps=True)
    (tmp_path / "1").mkdir()
    frame = spark.read.parquet(str(tmp_path / "rows")).select("id", "at")
    assert "at as timestamp[ns], which is no timestamp[us, tz=UTC]" in loaded(spark, frame, tmp_path / "1")
