"""`HudiTable` reads natively what can be read natively, gives the engine's rows in any case, and writes what `Table` writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark_hudimeta import HudiTable
from pyspark_hudimeta.native.manifest import MANIFEST_FILES
from pyspark_hudimeta.native.scan_folders import KEPT_MS, SHARED_FOLDER, shared_folder
from pyspark_hudimeta.spark_version import is_connect

import hudimeta
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.storage import open_storage
from tests.spark.tables import check, contents, create, ids, refusal, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark_hudimeta.native.frame_scan import FrameScan

ROOT = Path(__file__).resolve().parents[2]

RICH = [
    "all_types_mor",
    "all_types_cow8",
    "odd_partitions",
    "drop_partition_cols",
    "evolve_write_mor",
    "evolve_write_cow8",
    "alter_drop_cow9",
    "alter_rename_mor",
    "virtual_keys_cow",
    "bootstrap_full",
    "time_keygen_datestring",
    "multi_level_typed",
]


# Hudi 1.2.0 wrote a, b (of eu) and c, d (of us), then a with region us and d with region eu, which both stayed, and e.
STAYED = {"a": "eu", "b": "eu", "c": "us", "d": "us", "e": "us"}


def regions(scan: FrameScan) -> dict[str, str]:
    """What a read of such a table shows."""
    return {row.id: row.region for row in scan.to_df().select("id", "region").collect()}


def same_rows(frame: DataFrame, expected: pa.Table) -> None:
    """The frame shows the engine's columns and rows; order does not count."""
    found = frame.toArrow()
    assert found.column_names == expected.column_names
    for column in expected.column_names:
        fitting = found.column(column).cast(expected.column(column).type)
        assert sorted(map(repr, fitting.to_pylist())) == sorted(map(repr, expected.column(column).to_pylist())), column


@dataclass(frozen=True)
class StoppedClock:
    """Shows one moment."""

    ms: int

    def now_ms(self) -> int:
        """Epoch milliseconds."""
        return self.ms


def changed(path: Path) -> hudimeta.Table:
    """A merge-on-read table of 20 rows in five file groups, of which one has updates and deletes in its log."""
    table = create(path, rows(range(20)), type="MERGE_ON_READ")
    table.upsert(rows([1, 6], ts=2, x=-1.0))
    table.delete(rows([11]))
    return table


@pytest.mark.rotation(3)
@pytest.mark.parametrize("name", RICH)
def test_rows_are_those_of_the_engine(spark: SparkSession, recorded_table: Callable[[str], Path], name: str) -> None:
    path = recorded_table(name)
    same_rows(HudiTable(spark, path).scan().to_df(), hudimeta.Table(path).scan().to_table())


@pytest.mark.rotation(3)
@pytest.mark.parametrize("name", ["stayed_cow9", "stayed_mor9", "stayed_bloom_cow9"])
def test_a_row_that_stayed_in_its_partition_shows_the_value_of_that(
    spark: SparkSession, rich_table: Callable[[str], Path], name: str
) -> None:
    table = HudiTable(spark, rich_table(name))
    first, began = table.timeline.writes[0].time, table.timeline.writes[0].completion
    assert regions(table.scan()) == STAYED
    assert (
        regions(table.scan(columns=["val", "region", "id"], query_type="read_optimized")).items()
        >= {"a": "eu", "d": "us"}.items()
    )
    assert regions(table.scan(where="region = 'eu'", columns=["id", "region"])) == {"a": "eu", "b": "eu"}
    assert ids(table.scan(where="region = 'us' OR val = 2", columns=["id"]).to_df()) == ["b", "c", "d", "e"]
    assert table.scan(where=[("region", "=", "us")], columns=["id"]).to_df().count() == 3
    assert regions(table.scan(as_of=first)) == {key: STAYED[key] for key in "abcd"}
    assert regions(table.scan(query_type="incremental", begin=began)) == {key: STAYED[key] for key in "ade"}


def dropping(path: Path, kind: str) -> Path:
    """A table of two partition columns, an int and a date, that are in no file; one key of three is updated."""
    schema = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("day", pa.date32()), ("ts", pa.int64())])
    options = {"hoodie.datasource.write.drop.partition.columns": "true"}
    table = hudimeta.Table.create(path, schema, "id", ["n", "day"], ordering="ts", type=kind, options=options)
    days = [date(2024, 2, 29), date(1969, 12, 31), date(2024, 1, 31)]
    data = pa.table([[1, 2, 3], pa.array([1, -20, 3], pa.int32()), pa.array(days), [1, 1, 1]], schema=schema)
    table.insert(data)
    table.upsert(data.slice(0, 1).set_column(3, "ts", pa.array([2])))
    return path


@pytest.mark.rotation(2)
@pytest.mark.parametrize("name", ["drop_partition_mor9", "dropped_two_mor9", "COPY_ON_WRITE", "MERGE_ON_READ"])
def test_columns_that_no_file_holds_are_shown_in_every_query(
    spark: SparkSession, rich_table: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    path = dropping(tmp_path / "t", name) if name.isupper() else rich_table(name)
    engine, table = hudimeta.Table(path), HudiTable(spark, path)
    first, began = engine.timeline.writes[0].time, engine.timeline.writes[0].completion
    column = engine.properties.partition_fields[-1]
    value = engine.scan(columns=[column]).to_table()[column][0].as_py()
    questions: list[dict[str, Any]] = [
        {},
        {"as_of": first},
        {"query_type": "read_optimized"},
        {"query_type": "incremental", "begin": began},
        {"where": f"{column} = '{value}'", "columns": ["id"]},
        {"where": f"{column} <> '{value}' OR ts > 1"},
    ]
    for asked in questions:
        same_rows(table.scan(**asked).to_df(), engine.scan(**asked).to_table())
    plain = spark.read.format("hudimeta")
    same_rows(plain.load(str(path)).where(f"{column} = '{value}'"), engine.scan(where=f"{column} = '{value}'").to_table())
    same_rows(plain.option("as.of.instant", first).load(str(path)), engine.scan(as_of=first).to_table())


@pytest.mark.oldest
def test_only_slices_with_logs_pass_through_python(spark: SparkSession, tmp_path: Path) -> None:
    changed(tmp_path / "t")
    scan = HudiTable(spark, tmp_path / "t").scan(where="x < 3", columns=["id", "x"])
    assert (scan.parts.native.num_rows, scan.parts.others.num_rows) == (2, 1)
    assert scan.parts.reasons == ("log files to merge: 1 slices",)
    frame = scan.to_df()
    assert frame.columns == ["id", "x"]
    assert sorted(map(tuple, frame.collect())) == [(0, 0.0), (1, -1.0), (2, 2.0), (6, -1.0)]
    optimised = HudiTable(spark, tmp_path / "t").scan(query_type="read_optimized")
    assert optimised.parts.others.num_rows == 0
    assert ids(optimised.to_df()) == list(range(20))


@pytest.mark.oldest
def test_a_filter_skips_files_and_drops_rows_in_every_notation(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t", rows(range(20)))
    table = HudiTable(spark, tmp_path / "t")
    predicates: list[Any] = [
        "part IN ('p1', 'p2') AND x > 6.5",
        [("part", "in", ["p1", "p2"]), ("x", ">", 6.5)],
        ["and", ["in", {"col": "part"}, [{"lit": "p1"}, {"lit": "p2"}]], [">", {"col": "x"}, {"lit": 6.5}]],
    ]
    for where in predicates:
        scan = table.scan(where=where, columns=["id"])
        assert scan.report.files_kept == len(scan.plan().files) == 2
        assert [row.id for row in scan.to_df().orderBy("id").collect()] == [7, 11, 12, 16, 17]
    few = HudiTable(spark, tmp_path / "t", {"hudimeta.filter": "id < 13"})
    assert ids(few.scan("id > 10").to_df()) == ids(few.scan([("id", ">", 10)]).to_df()) == [11, 12]
    assert ids(few.scan().to_df()) == list(range(13))


def test_spark_prunes_columns_and_pushes_filters(spark: SparkSession, tmp_path: Path, capsys: Any) -> None:
    create(tmp_path / "t")
    HudiTable(spark, tmp_path / "t").scan(where="x > 3").to_df().select("id").explain()
    plan = capsys.readouterr().out
    assert "FileScan parquet" in plan
    assert "ReadSchema: struct<id:bigint,x:double" in plan
    assert "part" not in plan.partition("ReadSchema")[2], "and nothing of the partition column, whose values the paths tell"
    assert "GreaterThan(x,3.0)" in plan


def test_texts_of_times_are_in_the_sessions_zone(spark: SparkSession, tmp_path: Path) -> None:
    at = pa.array([1_700_000_000_000_000, 1_700_010_000_000_000], pa.timestamp("us", "UTC"))  # 22:13:20 and 01:00:00 UTC
    table = create(tmp_path / "t", rows([1, 2]).append_column("at", at), type="MERGE_ON_READ")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for _ in ("from base files", "merged with logs"):
            found = HudiTable(spark, tmp_path / "t").scan(where="at < '2023-11-14 18:00:00'").to_df()
            assert ids(found) == [1]
            table.upsert(rows([1, 2], ts=2).append_column("at", at))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_a_frame_shows_one_moment(spark: SparkSession, tmp_path: Path) -> None:
    table = changed(tmp_path / "t")
    hudi = HudiTable(spark, tmp_path / "t")
    frame = hudi.scan(columns=["id"]).to_df()
    first = hudi.timeline.writes[0].time
    table.upsert(rows([1, 2, 30], ts=9))
    alive = [n for n in range(20) if n != 11]
    assert ids(frame) == alive
    assert frame.where("id >= 19").count() == 1
    assert ids(hudi.scan().to_df()) == [*alive, 30]
    assert ids(hudi.scan(as_of=first).to_df()) == list(range(20))


@pytest.mark.rotation(2)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_incremental_reads_end_where_they_were_planned(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    table = create(tmp_path / "t", type=kind)
    begin = table.timeline.writes[-1].completion
    table.upsert(rows([1, 11], ts=2))
    hudi = HudiTable(spark, tmp_path / "t")
    frame = hudi.scan(where="id < 100", query_type="incremental", begin=begin).to_df()
    table.upsert(rows([2], ts=3))
    assert ids(frame) == [1, 11]
    assert ids(hudi.scan(query_type="incremental", begin=begin).to_df()) == [1, 2, 11]


def test_changes_are_those_that_the_engine_finds(spark: SparkSession, recorded_table: Callable[[str], Path]) -> None:
    path = recorded_table("cdc_mor_before")
    expected = hudimeta.Table(path).scan(where="op = 'u'", query_type="cdc", begin="earliest").to_table()
    assert expected.num_rows
    same_rows(HudiTable(spark, path).scan(where="op = 'u'", query_type="cdc", begin="earliest").to_df(), expected)


def test_the_sessions_choice_of_readers_changes_nothing(
    spark: SparkSession, conf: Callable[[str, str], None], tmp_path: Path
) -> None:
    """Without `parquet` in the list Spark reads it by another source, which does not know a file's time."""
    conf("spark.sql.sources.useV1SourceList", "")
    create(tmp_path / "t", rows(range(10)))
    assert ids(HudiTable(spark, tmp_path / "t").scan(where="part <> 'p0'").to_df()) == [1, 2, 3, 4, 6, 7, 8, 9]


def test_a_table_without_rows_is_an_empty_frame(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t", rows([]))
    frame = HudiTable(spark, tmp_path / "t").scan(columns=["id", "part"]).to_df()
    assert (frame.columns, frame.count()) == (["id", "part"], 0)


def test_it_knows_what_the_engine_knows(spark: SparkSession, tmp_path: Path) -> None:
    table = changed(tmp_path / "t")
    hudi = HudiTable(spark, tmp_path / "t")
    assert (hudi.path, hudi.version, hudi.schema) == (table.path, table.version, table.schema)
    assert dict(hudi.properties) == dict(table.properties)
    assert hudi.file_slices().sort_by("file_id") == table.file_slices().sort_by("file_id")
    assert hudi.metadata.files().num_rows == table.metadata.files().num_rows
    assert [i.time for i in hudi.timeline] == [i.time for i in table.timeline]


# Writing


@pytest.mark.oldest
def test_every_verb_writes_and_reports(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t", type="MERGE_ON_READ")
    hudi = HudiTable(spark, tmp_path / "t")

    def some(numbers: list[int], ts: int) -> DataFrame:
        values = [(n, f"p{n % 5}", ts, float(-n)) for n in numbers]
        return spark.createDataFrame(values, "id long, part string, ts long, x double")

    updated = hudi.upsert(some([1, 11], 2))
    assert (updated.operation, updated.inserted, updated.updated) == ("UPSERT", 1, 1)
    assert updated.completion == hudi.timeline.writes[-1].completion
    assert hudi.insert(some([12], 3)).inserted == 1
    assert hudi.bulk_insert(some([13], 3)).files_written == 1
    assert hudi.delete("id IN (2, 3)").deleted == 2
    assert hudi.delete(some([4], 9).select("id", "part")).deleted == 1
    assert [i for i, _, _ in contents(tmp_path / "t")] == [0, 1, 5, 6, 7, 8, 9, 11, 12, 13]
    assert hudi.compact()
    assert hudi.insert_overwrite(some([20], 4)).file_groups_replaced >= 1
    assert [i for i, _, _ in contents(tmp_path / "t")] == [1, 6, 7, 8, 9, 11, 12, 13, 20]
    hudi.delete_partition("p0")
    hudi.insert_overwrite_table(some([7], 5))
    hudi.clean()
    assert contents(tmp_path / "t") == [(7, 5, -7.0)]
    check(tmp_path / "t")


def test_what_it_read_can_be_written_back(spark: SparkSession, tmp_path: Path) -> None:
    changed(tmp_path / "t")
    hudi = HudiTable(spark, tmp_path / "t")
    small = hudi.scan(where="id < 10").to_df()
    hudi.upsert(small.selectExpr(*[name for name in small.columns if name != "x"], "5.0D x"))
    assert [(i, x) for i, _, x in contents(tmp_path / "t") if i < 10] == [(n, 5.0) for n in range(10)]
    check(tmp_path / "t")


# Refusals and manifests


def test_refusals(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    hudi = HudiTable(spark, tmp_path / "t")
    assert refusal(lambda: HudiTable(spark, tmp_path / "none")).startswith("HUDIMETA_TABLE_NOT_FOUND")
    assert "Did you mean part?" in refusal(lambda: hudi.scan(columns=["parts"]))
    assert "HUDIMETA_CONFIG" in refusal(lambda: hudi.scan(where="id >"))
    listed = spark.read.format("hudimeta").option("hudimeta.read.slices", "nonsense")
    assert "what HudiTable.scan wrote" in refusal(lambda: listed.load(str(tmp_path / "t")).collect())


def test_a_connect_scan_keeps_its_manifest_in_the_table(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    assert ids(HudiTable(spark, tmp_path / "t").scan().to_df()) == list(range(10))
    assert (tmp_path / "t" / SHARED_FOLDER).is_dir() == is_connect(spark)
    check(tmp_path / "t")


def test_manifests_in_the_table_go_after_a_week(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    first = shared_folder(storage, MANIFEST_FILES.empty_table(), StoppedClock(1_700_000_000_000))
    again = shared_folder(storage, MANIFEST_FILES.empty_table(), StoppedClock(1_700_000_000_000 + KEPT_MS))
    kept = {info.name for info in storage.list(SHARED_FOLDER)}
    assert kept == {first.rpartition("/")[2], again.rpartition("/")[2]}
    shared_folder(storage, MANIFEST_FILES.empty_table(), StoppedClock(1_700_000_000_001 + KEPT_MS))
    left = {info.name for info in storage.list(SHARED_FOLDER)}
    assert first.rpartition("/")[2] not in left
    assert again.rpartition("/")[2] in left


@pytest.mark.rotation(2)
def test_the_examples_of_the_guide_run(spark: SparkSession, tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    trips = pa.table({"id": ["a", "b"], "month": ["2026-01", "2026-02"], "fare": [70.0, -1.0], "ts": [1, 1]})
    options = {"hoodie.table.cdc.enabled": "true", "hoodie.metadata.record.index.enable": "true"}
    table = create(tmp_path / "trips", trips, partition_by="month", type="MERGE_ON_READ", options=options)
    moment = table.timeline.writes[-1].time
    more = spark.createDataFrame([("c", "2026-01", 90.0, 2)], "id string, month string, fare double, ts long")
    known = {"spark": spark, "df": more}
    texts = (
        guide.replace("/data/trips", str(tmp_path / "trips"))
        .replace("2026-01-02 03:04:05", moment)
        .replace("20260102000000000", "earliest")
        .replace("20260103000000000", "20991231000000000")
    )
    for section in ("HudiTable", "Table functions", "Routed writes"):
        text = re.search(rf"^## {section}\n(.*?)^## ", texts, re.MULTILINE | re.DOTALL)
        assert text is not None
        for language, block in re.findall(r"^```(\w+)\n(.*?)^```", text[1], re.MULTILINE | re.DOTALL):
            if language == "python":
                exec(compile(block, f"docs/spark.md: {section}", "exec"), known)
            for statement in block.splitlines() if language == "sql" else ():
                assert spark.sql(statement.partition(";")[0]).count() > 0, statement
    assert sorted(contents(tmp_path / "trips", "id", "fare")) == [("a", pytest.approx(77.0)), ("c", 90.0)]


@pytest.mark.rotation(2)
def test_fields_of_structs_are_columns_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    place = pa.struct([("x", pa.int32()), ("y", pa.string())])
    schema = pa.schema([("id", pa.string()), ("place", place)])
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        engine = hudimeta.Table.create(tmp_path / kind, schema, key="id", type=kind)
        engine.insert(pa.table([["a", "b"], [{"x": 1, "y": "p"}, None]], schema=schema))
        engine.upsert(pa.table([["a"], [{"x": 3, "y": "q"}]], schema=schema))
        frame = HudiTable(spark, str(tmp_path / kind)).scan(where="id < 'c'", columns=["place.x", "id"]).to_df()
        assert frame.columns == ["place.x", "id"]
        assert sorted(map(tuple, frame.collect()), key=str) == [(3, "a"), (None, "b")]


def test_what_only_pyarrow_can_evaluate_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow.compute as pc

    schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    hudimeta.Table.create(tmp_path / "t", schema, key="id").insert(pa.table([["a", "bb"], [1, 2]], schema=schema))
    table = HudiTable(spark, str(tmp_path / "t"))
    assert [row.id for row in table.scan(where=pc.field("n") > 1).to_df().collect()] == ["bb"]
    with pytest.raises(UnsupportedFeature, match="utf8_length"):
        table.scan(where=pc.utf8_length(pc.field("id")) == 2)


def test_a_table_is_created_found_by_name_and_read_to_a_limit(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(1, "a"), (2, "b"), (3, "c")], "id int, part string")
    made = HudiTable.create(spark, tmp_path / "t", frame.schema, key="id", partition_by="part", name="found_by_name")
    assert made.upsert(frame).inserted == 3
    assert made.history()["rows_inserted"].to_pylist() == [3]
    assert made.scan("id > 1").to_df().count() == 2
    assert made.scan(limit=2).to_df().count() == 2
    assert made.delete(where="id = 3").deleted == 1
    assert made.delete(keys=frame.where("id = 2")).deleted == 1
    spark.sql(f"create table found_by_name using hudimeta location '{tmp_path / 't'}'")
    try:
        found = HudiTable.for_name(spark, "default.found_by_name")
        assert (found.path, ids(found.scan().to_df())) == (made.path, [1])
        spark.range(1).createOrReplaceTempView("no_table_of_ours")
        with pytest.raises(ConfigError, match="USING hudimeta"):
            HudiTable.for_name(spark, "no_table_of_ours")
    finally:
        spark.sql("drop table found_by_name")
