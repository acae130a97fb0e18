"""After `attach(spark)` the plain door's code reads with Spark's own scans: the same rows, fewer files, and no trace."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark_hudimeta
import pytest
from pyspark.sql import DataFrameReader
from pyspark_hudimeta.native.report import AttachedScan

import hudimeta
from tests.spark.tables import contents, create, ids, refusal, rows
from tests.spark.test_reads import FRAME_SHAPES, SQL_SHAPES, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PYTHON_SCAN = "BatchScan"
NATIVE_SCAN = "FileScan parquet"

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


@pytest.fixture
def attached(spark: SparkSession) -> Iterator[SparkSession]:
    pyspark_hudimeta.attach(spark)
    yield spark
    pyspark_hudimeta.detach(spark)


def plan(frame: DataFrame) -> str:
    """The physical plan, as `explain` prints it."""
    return str(frame._jdf.queryExecution().executedPlan().toString())


def reports_of(spark: SparkSession, query: Callable[[], object]) -> list[AttachedScan]:
    """The reports of the scans of one query."""
    before = pyspark_hudimeta.last_reports(spark)
    query()
    after = pyspark_hudimeta.last_reports(spark)
    known = set(map(id, before))
    return [report for report in after if id(report) not in known]


def shown(frame: DataFrame) -> list[str]:
    """All rows, in an order that does not matter."""
    return sorted(repr(tuple(row)) for row in frame.collect())


def mor(path: Path) -> hudimeta.Table:
    """Ids 0 to 39 in five partitions, of which 5 and 6 were updated and 7 was deleted, in log files."""
    table = create(path, rows(range(40)), type="MERGE_ON_READ")
    table.upsert(rows([5, 6], ts=2, x=-1.0))
    table.delete(rows([7], ts=3))
    return table


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


def files_read(frame: DataFrame) -> int:
    """Spark's own count of the files of all scans of a query."""
    frame = frame.select("*")  # Spark counts when it first runs a plan
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    leaves = plan.collectLeaves() if "Adaptive" not in plan.getClass().getSimpleName() else plan.executedPlan().collectLeaves()
    return sum(int(leaves.apply(n).metrics().apply("numFiles").value()) for n in range(leaves.size()))


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


def test_files_of_a_large_table_go_over_in_one_piece(
    attached: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def staging(spark: SparkSession) -> str:
    """Where the session keeps its files."""
    from pyspark_hudimeta.attached.attachment import _attachments

    return _attachments[spark]._staging.storage().root


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
    before_detaching = attached.read.format("hudimeta")
    pyspark_hudimeta.detach(attached)
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
        attached.sql("insert into written values (50, 'p0', 1, 1.5)")
        attached.sql("insert into written select id + 100, part, ts, x from written where id < 2")
        assert ids(attached.table("written")) == [*range(10), 50, 100, 101]
        load(attached, tmp_path / "t").where("id = 3").write.format("hudimeta").mode("append").save(str(tmp_path / "t"))
        assert attached.table("written").count() == 13
    finally:
        attached.sql("drop table written")


# Changed columns


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


# The session


def test_detaching_leaves_no_trace(spark: SparkSession, tmp_path: Path) -> None:
    mor(tmp_path / "t")
    create(tmp_path / "cow")
    assert state(spark)  # Spark keeps what was asked for once
    before = state(spark)
    pyspark_hudimeta.attach(spark)
    pyspark_hudimeta.attach(spark)
    frame, plain_files = load(spark, tmp_path / "t"), load(spark, tmp_path / "cow")
    assert frame.count() == 39
    folder = Path(staging(spark))
    assert list(folder.iterdir())
    pyspark_hudimeta.detach(spark)
    pyspark_hudimeta.detach(spark)
    assert state(spark) == before
    assert not folder.exists()
    assert pyspark_hudimeta.last_reports(spark) == ()
    assert PYTHON_SCAN in plan(load(spark, tmp_path / "t"))
    assert ids(plain_files) == list(range(10)), "what needs no merged rows goes on"
    assert "detach" in refusal(lambda: frame.where("id < 39").count())


def state(spark: SparkSession) -> list[Any]:
    """What could be left behind: the object's class and attributes, tables and views, the configuration."""
    settings = spark._jsparkSession.sessionState().conf().getAllConfs().toSeq()
    texts = sorted(settings.apply(n).toString() for n in range(settings.size()))
    tables = sorted(str(table) for table in spark.catalog.listTables())
    return [type(spark), sorted(vars(spark)), tables, texts]


def test_other_sessions_stay_as_they_are(attached: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    other = attached.newSession()
    assert type(other) is not type(attached)
    assert PYTHON_SCAN in plan(load(other, tmp_path / "t"))
    assert pyspark_hudimeta.last_reports(other) == ()


def test_eight_threads_at_once(attached: SparkSession, tmp_path: Path) -> None:
    mor(tmp_path / "t")
    create(tmp_path / "cow")
    shared = load(attached, tmp_path / "t")
    ready = threading.Barrier(8)

    def ask(number: int) -> list[tuple[list[int], int, int]]:
        ready.wait()
        found = []
        for turn in range(3):
            part = f"p{(number + turn) % 5}"
            own = load(attached, tmp_path / ("t" if number % 2 else "cow")).where(f"part = '{part}'")
            found.append((ids(shared.where(f"part = '{part}'")), shared.where(f"id > {number}").count(), own.count()))
        return found

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(ask, range(8)))
    for number, result in enumerate(results):
        for turn, (found, more, own) in enumerate(result):
            part = (number + turn) % 5
            expected = [n for n in range(40) if n % 5 == part and n != 7]
            assert found == expected
            assert more == len([n for n in range(40) if n > number and n != 7])
            assert own == (len(expected) if number % 2 else 2)


def test_a_damaged_log_is_named(attached: SparkSession, tmp_path: Path) -> None:
    mor(tmp_path / "t")
    frame = load(attached, tmp_path / "t")
    log = next((tmp_path / "t" / "p0").glob(".*.log.*"))
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(bytes(data))
    says = refusal(lambda: frame.collect())
    assert says.startswith("HUDIMETA_CORRUPT_FILE")
    assert log.name in says


@pytest.mark.parametrize("skip", [False, True])
def test_a_damaged_page_is_no_other_value(attached: SparkSession, tmp_path: Path, skip: bool) -> None:
    """Uncompressed, so that nothing but the page's checksum can tell: Spark compares it when it is asked to."""
    options = {"hoodie.parquet.compression.codec": "uncompressed"}
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    table = hudimeta.Table.create(tmp_path / "t", schema, key="id", options=options)
    table.insert({"id": ["a"], "v": [1234567890123456789]})
    (base,) = (tmp_path / "t").glob("*.parquet")
    data, value = base.read_bytes(), (1234567890123456789).to_bytes(8, "little")
    base.write_bytes(data.replace(value, value[:-1] + b"\x22", 1))
    reader = attached.read.format("hudimeta").option("hudimeta.read.corrupt", "skip" if skip else "fail")
    frame = reader.load(str(tmp_path / "t")).select("v")
    if skip:
        assert frame.collect() == []
    else:
        with pytest.raises(Exception, match=r"CRC checksum verification failed|FAILED_READ_FILE"):
            frame.collect()
