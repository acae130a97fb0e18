"""After `attach(spark)` the plain door's code reads with Spark's own scans: the same rows, fewer files, and no trace."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark_hudimeta
import pytest
from pyspark.sql import DataFrameReader

import hudimeta
from hudimeta.errors import PredicateError
from tests.spark.attached import NATIVE_SCAN, PYTHON_SCAN, files_read, mor, plan, reports_of, shown, staging
from tests.spark.tables import contents, create, ids, refusal, rows
from tests.spark.test_reads import FRAME_SHAPES, SQL_SHAPES, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED = {
    "all_types_cow8": "native",
    "all_types_mor": "merged",
    "alter_drop_cow9": "native",
    "alter_rename_mor": "native",
    "auto_keys": "native",
    "bootstrap_full": "native",
    "bootstrap_meta": "native",
    "bucket_logs_only": "merged",
    "custom_keygen_mixed": "native",
    "delete_marker_mor": "merged",
    "drop_partition_cols": "native",
    "event_late_mor": "merged",
    "evolve_write_mor": "native",
    "multi_level_typed": "native",
    "odd_partitions": "merged",
    "partial_payload_mor9": "merged",
    "time_keygen_datestring": "merged",
    "upgraded_6_8_9_mor": "merged",
    "virtual_keys_cow": "native",
}
"""Recorded tables, and the least that Python has to do for each."""


# Rows


@pytest.mark.rotation(3)
@pytest.mark.parametrize("name", sorted(RECORDED))
def test_rows_and_columns_are_those_of_the_plain_door(
    spark: SparkSession, rich_table: Callable[[str], Path], name: str
) -> None:
    plain = load(spark, rich_table(name))
    pyspark_hudimeta.attach(spark)
    try:
        frame = load(spark, rich_table(name))
        assert frame.schema == plain.schema
        assert shown(frame) == shown(plain)
        report = pyspark_hudimeta.last_reports(spark)[-1]
    finally:
        pyspark_hudimeta.detach(spark)
    did = "python" if report.why_python else "converted" if report.converted_slices else "merged"
    assert RECORDED[name] == (did if did != "merged" or report.merged_slices else "native"), str(report)


def test_every_shape_of_query_gives_the_right_rows(attached: SparkSession, tmp_path: Path) -> None:
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        table = create(tmp_path / kind, rows([]), type=kind)
        table.bulk_insert(rows(range(10), ts=0, x=99.0))
        table.upsert(rows(range(10)))
        load(attached, tmp_path / kind).createOrReplaceTempView("shapes")
        attached.sql("drop table if exists shapes_t")
        attached.sql(f"create table shapes_t using hudimeta location '{tmp_path / kind}'")
        try:
            found = {name: query(load(attached, tmp_path / kind)) for name, (query, _) in FRAME_SHAPES.items()}
            frames = {name: attached.sql(query) for name, (query, _) in SQL_SHAPES.items()}
            found |= {name: frame.count() for name, frame in frames.items()}
            assert not [name for name, frame in frames.items() if PYTHON_SCAN in plan(frame)]
        finally:
            attached.sql("drop table shapes_t")
            attached.catalog.dropTempView("shapes")
        assert found == {name: expected for name, (_, expected) in (*FRAME_SHAPES.items(), *SQL_SHAPES.items())}


def test_logs_are_merged_before_any_filter(attached: SparkSession, tmp_path: Path) -> None:
    mor(tmp_path / "t")
    frame = load(attached, tmp_path / "t")
    assert frame.count() == 39
    assert ids(frame.where("x = 5.0 OR x = 7.0")) == [], "values that base files still hold"
    assert ids(frame.where("x = -1.0")) == [5, 6]
    assert frame.where("id = 5").select("ts", "x").first() == (2, -1.0)
    assert frame.groupBy().sum("x").first()[0] == sum(range(40)) - 5 - 6 - 7 - 2
    assert sorted(map(tuple, frame.select("id", "ts", "x").collect())) == contents(tmp_path / "t")


def test_read_optimized_reads_base_files_alone(attached: SparkSession, tmp_path: Path) -> None:
    mor(tmp_path / "t")
    frame = load(attached, tmp_path / "t", **{"hoodie.datasource.query.type": "read_optimized"})
    assert frame.count() == 40
    assert NATIVE_SCAN in plan(frame)


def test_a_slice_of_logs_alone_and_many_commits(attached: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path / "t", rows(range(20)), type="MERGE_ON_READ")
    for turn in range(3):
        table.upsert(rows(range(turn, 20, 3), ts=2 + turn, x=100.0 + turn))
    table.delete(rows([19], ts=9))
    assert shown(load(attached, tmp_path / "t").select("id", "ts", "x")) == sorted(map(repr, contents(tmp_path / "t")))
    table.compact()
    after = load(attached, tmp_path / "t")
    assert reports_of(attached, after.collect)[-1].merged_slices == 0
    assert shown(after.select("id", "ts", "x")) == sorted(map(repr, contents(tmp_path / "t")))


# Plans


def test_scans_are_sparks_own_and_read_only_what_a_query_needs(attached: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "cow")
    mor(tmp_path / "mor")
    for name in ("cow", "mor"):
        text = plan(load(attached, tmp_path / name).where("x > 3.5 AND part LIKE 'p%'").select("id"))
        assert PYTHON_SCAN not in text
        assert NATIVE_SCAN in text
        assert "Batched: true" in text
        assert "GreaterThan(x,3.5)" in text
        assert "StartsWith(__hudimeta_part" in text, "of a constant of each file, which no file is read for"
        read = text.partition("ReadSchema: ")[2]
        assert "x:double" in read
        assert "ts:" not in read, "a column that nobody asked for"


def test_where_skips_files_of_its_own_scan_only(attached: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    frame = load(attached, tmp_path / "t")
    few = frame.where("part IN ('p1', 'p2') AND x > 1.5")
    report = reports_of(attached, few.collect)[-1]
    assert (report.files_kept, report.report.partitions, report.report.partitions_kept) == (2, 5, 2)  # type: ignore[union-attr]
    assert report.not_understood == ()
    assert files_read(few) == 2
    assert files_read(frame) == 5
    assert files_read(frame.where("id > 8 OR x < 0.0")) == 1, "by the statistics of columns"
    assert len(few.inputFiles()) == 5, "Spark tells the files of the table here, not of the query"
    for path in hudimeta.Table(tmp_path / "t").scan(where="part NOT IN ('p1', 'p2')").plan().files:
        (tmp_path / "t" / path).unlink()  # who reads what is skipped, fails
    assert ids(frame.where("part IN ('p1', 'p2') AND x > 1.5")) == [2, 6, 7]
    assert ids(frame.where("substring(part, 2, 1) = '1'")) == [1, 6], "functions skip as well"


def test_a_filter_that_is_not_understood_keeps_every_file_and_is_named(attached: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.functions import col, udf

    create(tmp_path / "t")
    odd = udf(lambda number: number % 2 == 1, "boolean")
    frame = load(attached, tmp_path / "t").where("hash(id) % 1 = 0").where("part = 'p1'")
    report = reports_of(attached, lambda: ids(frame))[-1]
    assert ids(frame) == [1, 6]
    assert report.files_kept == 1
    assert any("hash(id)" in text for text in report.not_understood)
    assert ids(load(attached, tmp_path / "t").where(odd(col("id")) & (col("id") > 2))) == [3, 5, 7, 9]


def test_partitions_are_left_out_as_the_session_computes(
    attached: SparkSession, conf: Callable[[str, str], None], tmp_path: Path
) -> None:
    """Without ANSI mode numbers wrap around, and texts are cut off, that are refused with it."""
    schema = pa.schema([("id", pa.int32()), ("n", pa.int32()), ("part", pa.string())])
    table = hudimeta.Table.create(tmp_path / "t", schema, key="id", partition_by=["n", "part"])
    table.insert(pa.table({"id": [1, 2], "n": [2**31 - 1, -(2**31)], "part": ["1.5", "b"]}, schema=schema))
    conf("spark.sql.ansi.enabled", "false")
    frame = load(attached, tmp_path / "t")
    asked = ["coalesce(n + 1, 7) < 0", "abs(n) < 0", "- n < -2147483647", "CAST(part AS INT) = 1", "n + 1 <=> -2147483648"]
    assert [ids(frame.where(where)) for where in asked] == [[1, 2], [2], [2], [1], [1]]


@pytest.mark.parametrize("zone", ["GMT+3", "+01:02:03"])
def test_a_session_may_have_every_zone_that_spark_knows(
    attached: SparkSession, conf: Callable[[str, str], None], tmp_path: Path, zone: str
) -> None:
    """In one that the engine knows by another name files are left out, in one that it does not know none are."""
    create(tmp_path / "t", rows(range(4)))
    conf("spark.sql.session.timeZone", zone)
    frame = load(attached, tmp_path / "t").where("id > 1 AND hour(timestamp_seconds(ts)) >= 0")
    (report,) = reports_of(attached, lambda: ids(frame))
    assert ids(frame) == [2, 3]
    assert bool(report.not_understood) == (zone == "+01:02:03")


def test_a_collation_leaves_no_partition_out(attached: SparkSession, tmp_path: Path) -> None:
    """By it `A` is equal to `a`."""
    table = create(tmp_path / "t", rows(range(2)).set_column(1, "part", pa.array(["A", "b"])))
    same = "CAST(part AS STRING COLLATE UTF8_LCASE) = CAST(lower(part) AS STRING COLLATE UTF8_LCASE)"
    assert ids(load(attached, tmp_path / "t").where(same)) == [0, 1]
    with pytest.raises(PredicateError, match="names a collation"):
        table.scan(where=same)


@pytest.mark.parametrize("readers", ["parquet", ""])
def test_files_of_a_large_table_go_over_in_one_piece(
    attached: SparkSession, conf: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readers: str
) -> None:
    conf("spark.sql.sources.useV1SourceList", readers)
    monkeypatch.setattr("pyspark_hudimeta.native.file_directories.MANY", 3)
    mor(tmp_path / "t")
    create(tmp_path / "cow")
    assert ids(load(attached, tmp_path / "cow")) == list(range(10))
    frame = load(attached, tmp_path / "t")
    assert sorted(map(tuple, frame.select("id", "ts", "x").collect())) == contents(tmp_path / "t")
    assert not list(Path(staging(attached)).glob("manifest-*"))


def test_constants_of_many_partitions_go_over_in_one_piece(
    attached: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["it's", 'a"b', "back\\slash", "${spark.app.name}", "ünï 🙂", None, "true"]
    days = [datetime.date(1969, 12, 31 - n) for n in range(7)]
    columns = {
        "id": range(7),
        "text": texts,
        "day": days,
        "n": [-1, 0, None, 3, 4, 5, 1 << 30],
        "yes": [True, False] * 3 + [None],
    }
    schema = pa.schema(
        [("id", pa.int64()), ("text", pa.string()), ("day", pa.date32()), ("n", pa.int32()), ("yes", pa.bool_())]
    )
    given = pa.table({name: pa.array(values, schema.field(name).type) for name, values in columns.items()}, schema=schema)
    options = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
    table = hudimeta.Table.create(tmp_path / "t", schema, key="id", partition_by=["text", "day", "n", "yes"], options=options)
    table.insert(given)
    few = load(attached, tmp_path / "t")
    expected = [tuple(row.values()) for row in given.to_pylist()]
    assert sorted(map(tuple, few.select(*schema.names).collect())) == expected
    monkeypatch.setattr("pyspark_hudimeta.native.file_directories.MANY", 3)
    many = load(attached, tmp_path / "t").where("id >= 0")
    assert sorted(map(tuple, many.select(*schema.names).collect())) == expected
    assert ids(many.where("hash(day, n) % 1 = 0 AND NOT (yes AND length(text) = 4)")) == [1, 2, 3, 4, 5]
    assert ids(many.where("n IS NULL OR date_add(day, 1) = DATE '1970-01-01'")) == [0, 2]


# Moments and options


def test_a_dataframe_shows_one_snapshot_and_so_does_a_view(attached: SparkSession, tmp_path: Path) -> None:
    table = mor(tmp_path / "t")
    first = table.timeline.writes[0].time
    frame = load(attached, tmp_path / "t")
    attached.sql(f"create temporary view pinned using hudimeta options (path '{tmp_path / 't'}')")
    attached.sql("drop table if exists moving")
    attached.sql(f"create table moving using hudimeta location '{tmp_path / 't'}'")
    try:
        assert attached.sql("select count(*) from pinned").first()[0] == 39
        table.upsert(rows([100, 101]))
        assert frame.count() == 39
        assert attached.sql("select count(*) from pinned").first()[0] == 39
        assert attached.table("moving").count() == 41
        assert attached.read.table("moving").where("id >= 100").count() == 2
        assert load(attached, tmp_path / "t").count() == 41
        then = load(attached, tmp_path / "t", **{"as.of.instant": first})
        assert then.where("id = 5").select("x").first() == (5.0,)
    finally:
        attached.catalog.dropTempView("pinned")
        attached.sql("drop table moving")


def test_options_mean_what_they_mean_at_the_plain_door(attached: SparkSession, tmp_path: Path) -> None:
    mor(tmp_path / "t")
    frame = load(attached, tmp_path / "t", **{"hudimeta.columns": "x, id", "hudimeta.filter": "part = 'p1' AND x < 7"})
    assert frame.columns == ["x", "id"]
    report = reports_of(attached, lambda: ids(frame))[-1]
    assert ids(frame) == [1, 6]
    assert (report.report.partitions_kept, report.why_python) == (1, "")  # type: ignore[union-attr]
    own = attached.read.format("hudimeta").schema("ID bigint, part string").load(str(tmp_path / "t"))
    assert own.columns == ["ID", "part"]
    assert own.where("ID < 2").count() == 2
    assert NATIVE_SCAN in plan(own)
    assert "Did you mean id?" in refusal(lambda: load(attached, tmp_path / "t", **{"hudimeta.columns": "ids"}))
    assert refusal(lambda: load(attached, tmp_path / "none")).startswith("HUDIMETA_TABLE_NOT_FOUND")


def test_a_load_opens_the_table_without_the_python_source(
    attached: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path / "t")
    first = table.timeline.writes[-1].time
    table.upsert(rows([1, 11], ts=2))
    with monkeypatch.context() as patched:
        patched.setattr(DataFrameReader, "load", lambda *_, **__: pytest.fail("Spark was asked to open the table"))
        old = attached.read.option("AS.OF.INSTANT", first).format("HudiMeta").load(str(tmp_path / "t"))
        few = attached.read.load(str(tmp_path / "t"), "hudimeta", **{"HUDIMETA.FILTER": "id > 8"})
    assert ids(old) == list(range(10))
    assert ids(few) == [9, 11]
    assert old.columns == few.columns == table.schema.names
    before_detaching, run = attached.read.format("hudimeta"), attached.sql
    pyspark_hudimeta.detach(attached)
    assert run("SELECT 1 AS one").collect() == [(1,)]
    assert PYTHON_SCAN in plan(before_detaching.load(str(tmp_path / "t")))


def test_what_only_the_python_source_does_is_left_to_it_and_named(attached: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    first = table.timeline.writes[-1].completion
    table.upsert(rows([1, 11], ts=2))
    asked = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": str(first)}
    changes = reports_of(attached, lambda: ids(load(attached, tmp_path / "t", **asked)))
    assert [r.why_python for r in changes] == ["it is a query of type incremental"]
    assert ids(load(attached, tmp_path / "t", **asked)) == [1, 11]
    wider = attached.read.format("hudimeta").schema("id bigint, ts double").load(str(tmp_path / "t"))
    assert wider.count() == 11
    assert "ts is declared as double" in pyspark_hudimeta.last_reports(attached)[-1].why_python
    zoned = load(attached, tmp_path / "t", **{"hudimeta.filter": "cast(id as string) = '1'"})
    assert ids(zoned) == [1]
    assert "CAST(id AS STRING)" in str(pyspark_hudimeta.last_reports(attached)[-1])


def test_statements_that_write_pass_to_the_plain_door(attached: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    attached.sql("drop table if exists written")
    attached.sql(f"create table written using hudimeta location '{tmp_path / 't'}'")
    try:
        attached.sql("insert into written values (50, 1, 1.5, 'p0')")
        attached.sql("insert into written select id + 100, ts, x, part from written where id < 2")
        assert ids(attached.table("written")) == [*range(10), 50, 100, 101]
        load(attached, tmp_path / "t").where("id = 3").write.format("hudimeta").mode("append").save(str(tmp_path / "t"))
        assert attached.table("written").count() == 13
    finally:
        attached.sql("drop table written")
