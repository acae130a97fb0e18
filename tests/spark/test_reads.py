"""`spark.read.format("hudimeta")` answers as the engine does: types, columns, snapshots, filters, and every shape of query."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.types import META_COLUMNS
from tests.spark.tables import COLUMNS, create, ids, refusal, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RICH = ["all_types_mor", "all_types_cow8", "odd_partitions", "evolve_write_mor", "deletes_mor", "virtual_keys_cow"]


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    """The table as a DataFrame."""
    return spark.read.format("hudimeta").options(**options).load(str(path))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    create(tmp_path / "t")
    return tmp_path / "t"


@pytest.mark.oldest
@pytest.mark.parametrize("name", RICH)
def test_spark_shows_what_the_engine_shows(spark: SparkSession, rich_table: Callable[[str], Path], name: str) -> None:
    path = rich_table(name)
    expected = hudimeta.Table(path).scan().to_table()
    found = load(spark, path).toArrow()
    assert found.column_names == expected.column_names
    for column in expected.column_names:
        fitting = found.column(column).cast(expected.column(column).type)
        assert sorted(map(repr, fitting.to_pylist())) == sorted(map(repr, expected.column(column).to_pylist())), column


def test_nothing_needs_to_be_registered_not_even_in_a_new_session(spark: SparkSession, table: Path) -> None:
    assert ids(load(spark.newSession(), table)) == list(range(10))


def test_meta_columns_come_first_and_every_column_is_nullable(spark: SparkSession, table: Path) -> None:
    frame = load(spark, table)
    assert frame.columns == [*META_COLUMNS, *COLUMNS]
    assert all(column.nullable for column in frame.schema)
    assert {row._hoodie_partition_path for row in frame.collect()} == {f"p{n}" for n in range(5)}


@pytest.mark.oldest
def test_columns_are_chosen_by_option_and_by_schema(spark: SparkSession, table: Path) -> None:
    assert load(spark, table, **{"hudimeta.columns": "x, id"}).columns == ["x", "id"]
    assert load(spark, table, **{"hudimeta.columns": "`x`, `ID`"}).where("id < 2").select("x").columns == ["x"]
    assert "names separated by commas" in refusal(lambda: load(spark, table, **{"hudimeta.columns": "`x, id"}))
    frame = spark.read.format("hudimeta").schema("part string, id bigint").load(str(table))
    assert sorted(map(tuple, frame.collect()))[:2] == [("p0", 0), ("p0", 5)]
    wider = spark.read.format("hudimeta").schema("ID bigint, ts double").load(str(table))
    assert sorted(row.ID for row in wider.collect()) == list(range(10))


def test_a_schema_that_does_not_fit_is_refused_before_any_task(spark: SparkSession, table: Path) -> None:
    reader = spark.read.format("hudimeta")
    says = refusal(lambda: reader.schema("id bigint, x bigint").load(str(table)).collect())
    assert "column 'x' is double in the table and cannot be read as bigint" in says
    assert "Did you mean part?" in refusal(lambda: reader.schema("id bigint, parts string").load(str(table)).collect())


def test_times_are_instants_whatever_the_sessions_zone(spark: SparkSession, tmp_path: Path) -> None:
    at = pa.array([1_700_000_000_000_000], pa.timestamp("us", "UTC"))
    local = pa.array([1_700_000_000_000_000], pa.timestamp("us"))
    create(tmp_path / "t", rows([1]).append_column("at", at).append_column("wall", local))
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        shown = load(spark, tmp_path / "t").selectExpr("cast(at as string)", "cast(wall as string)").first()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert tuple(shown) == ("2023-11-14 17:13:20", "2023-11-14 22:13:20")


@pytest.mark.oldest
def test_an_empty_table_has_columns_and_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t", rows([]))
    frame = load(spark, tmp_path / "t")
    assert frame.columns[-4:] == COLUMNS
    assert frame.count() == 0


@pytest.mark.oldest
def test_a_dataframe_shows_one_snapshot_however_often_it_is_planned(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    frame = load(spark, tmp_path / "t")
    own = spark.read.format("hudimeta").schema("id bigint").load(str(tmp_path / "t"))
    assert own.count() == 10
    table.upsert(rows([10, 11]))
    with pushdown(spark):  # replans every filtered query
        assert ids(frame) == list(range(10))
        assert frame.where("id >= 9").count() == own.where("id >= 9").count() == 1
    assert load(spark, tmp_path / "t").count() == 12


@pytest.mark.oldest
def test_time_travel(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    first = table.timeline.writes[-1].time
    table.upsert(rows([1], ts=2, x=-1.0))
    then = load(spark, tmp_path / "t", **{"as.of.instant": first})
    assert then.where("id = 1").first().x == 1.0
    assert load(spark, tmp_path / "t").where("id = 1").first().x == -1.0
    assert "as.of.instant" in refusal(lambda: load(spark, tmp_path / "t", **{"as.of.instant": "yesterday"}))


@pytest.mark.oldest
def test_an_incremental_read_gives_the_rows_of_later_commits(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    first = table.timeline.writes[-1].completion
    assert first is not None
    table.upsert(rows([1, 11], ts=2))
    asked = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": first}
    assert ids(load(spark, tmp_path / "t", **asked)) == [1, 11]


@pytest.mark.oldest
@pytest.mark.parametrize("name", ["cdc_cow_full", "cdc_mor_before"])
def test_changes_are_those_that_the_engine_finds(spark: SparkSession, rich_table: Callable[[str], Path], name: str) -> None:
    asked = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "000",
    }
    expected = hudimeta.Table(rich_table(name), asked).scan().to_table()
    found = load(spark, rich_table(name), **asked).toArrow()
    assert expected.num_rows > 0
    assert found.column_names == expected.column_names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))


def test_a_filter_option_drops_rows_and_skips_files(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    options = {"hudimeta.filter": "part IN ('p1', 'p2') AND x > 1.5"}
    report = hudimeta.Table(tmp_path / "t", options).scan().plan().report
    assert (report.files_kept, report.partitions_kept) == (2, 2), "one file of each partition"
    for path in hudimeta.Table(tmp_path / "t").scan(where="part NOT IN ('p1', 'p2')").plan().files:
        (tmp_path / "t" / path).unlink()  # who reads what the report says is skipped, fails
    frame = load(spark, tmp_path / "t", **options)
    assert ids(frame) == [2, 6, 7]
    assert frame.select("ts").collect(), "columns that the filter does not name are there"
    assert table.path == str(tmp_path / "t")


def test_files_are_packed_into_tasks_of_the_size_asked_for(spark: SparkSession, table: Path) -> None:
    few = load(spark, table).rdd.getNumPartitions()
    many = load(spark, table, **{"hudimeta.split.bytes": "1"}).rdd.getNumPartitions()
    assert few < many == 5


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"hudimeta.filter": "nope > 1"}, "nope"),
        ({"hudimeta.filter": "id >"}, "HUDIMETA_CONFIG"),
        ({"hudimeta.fliter": "id > 1"}, "Did you mean hudimeta.filter?"),
        ({"hudimeta.columns": "ids"}, "Did you mean id?"),
        ({"hoodie.datasource.query.type": "incremental"}, "hoodie.datasource.read.begin.instanttime"),
        ({"hoodie.datasource.query.type": "cdc"}, "hoodie.table.cdc.enabled"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(
    spark: SparkSession, table: Path, options: dict[str, str], says: str
) -> None:
    assert says in refusal(lambda: load(spark, table, **options).collect())


def test_a_missing_table_and_missing_paths_are_named(spark: SparkSession, tmp_path: Path) -> None:
    assert refusal(lambda: load(spark, tmp_path / "none")).startswith("HUDIMETA_TABLE_NOT_FOUND: no Hudi table at '/")
    assert "no path was given" in refusal(lambda: spark.read.format("hudimeta").load())
    missing = refusal(lambda: spark.read.format("hudimeta").load([str(tmp_path / "a"), str(tmp_path / "b")]))
    assert missing.startswith("HUDIMETA_TABLE_NOT_FOUND: no Hudi table at '/")


class pushdown:  # noqa: N801 - reads as a verb
    """Switch on what makes Spark push filters into Python sources."""

    KEY = "spark.sql.python.filterPushdown.enabled"

    def __init__(self, spark: SparkSession, on: bool = True) -> None:
        self.spark, self.on = spark, on

    def __enter__(self) -> None:
        self.spark.conf.set(self.KEY, str(self.on).lower())

    def __exit__(self, *error: object) -> None:
        self.spark.conf.unset(self.KEY)


FEW = "(select * from shapes where id > 7)"

SQL_SHAPES = {
    "exists": ("select id from shapes where exists (select 1 from shapes where id > 8)", 10),
    "left join": (f"select * from shapes a left join {FEW} b on a.id = b.id", 10),
    "cross join": (f"select * from shapes cross join {FEW}", 20),
    "cross join in the catalog": (f"select * from shapes_t cross join {FEW.replace('shapes', 'shapes_t')}", 20),
    "in": ("select * from shapes where id in (select id from shapes where id > 7)", 2),
    "common table expression": (f"with few as {FEW} select * from few union all select * from shapes", 12),
}

FRAME_SHAPES: dict[str, tuple[Callable[[DataFrame], int], int]] = {
    "filter, then all": (lambda f: f.where("id > 7").count() * 100 + f.count(), 210),
    "union with a filtered side": (lambda f: f.where("id > 7").union(f).count(), 12),
    "union of two filters": (lambda f: f.where("id > 7").union(f.where("id < 3")).count(), 5),
    "cached": (lambda f: _cached(f), 12),
}


def _cached(frame: DataFrame) -> int:
    kept = frame.where("id > 7").cache()
    try:
        return kept.union(frame).count()
    finally:
        kept.unpersist()


@pytest.mark.parametrize("conf", [False, True], ids=["default", "pushdown on"])
def test_every_shape_of_query_gives_the_right_rows(spark: SparkSession, tmp_path: Path, conf: bool) -> None:
    create(tmp_path / "t")
    load(spark, tmp_path / "t").createOrReplaceTempView("shapes")
    spark.sql("drop table if exists shapes_t")
    spark.sql(f"create table shapes_t using hudimeta location '{tmp_path / 't'}'")
    try:
        with pushdown(spark, conf):
            found = {name: query(load(spark, tmp_path / "t")) for name, (query, _) in FRAME_SHAPES.items()}
            found |= {name: spark.sql(query).count() for name, (query, _) in SQL_SHAPES.items()}
    finally:
        spark.sql("drop table shapes_t")
        spark.catalog.dropTempView("shapes")
    assert found == {name: expected for name, (_, expected) in (*FRAME_SHAPES.items(), *SQL_SHAPES.items())}
