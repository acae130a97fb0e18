"""`df.write.format("hudimeta")`: every operation, failing tasks and commits, threads, and what errors say."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import hudimeta
from tests.elsewhere import REMOTE
from tests.spark.tables import COLUMNS, DDL, KEYS, check, contents, create, ids, instants, refusal, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame(spark: SparkSession, numbers: range, ts: int = 1, x: str = "cast(id as double)", tasks: int = 2) -> DataFrame:
    """Rows as `tests.spark.tables.rows` makes them, in several tasks."""
    plain = spark.range(numbers.start, numbers.stop, numPartitions=tasks)
    return plain.selectExpr("id", "concat('p', id % 5) part", f"{ts}L ts", f"{x} x")


def save(data: DataFrame, path: Path, mode: str = "append", **options: Any) -> None:
    """One write. `operation` is short for the option of that name."""
    if "operation" in options:
        options["hoodie.datasource.write.operation"] = options.pop("operation")
    data.write.format("hudimeta").mode(mode).options(**options).save(str(path))


@pytest.mark.oldest
def test_a_write_creates_the_table(spark: SparkSession, tmp_path: Path) -> None:
    save(frame(spark, range(100)), tmp_path / "t", **KEYS, **{"hoodie.table.name": "trips"})
    table = hudimeta.Table(tmp_path / "t")
    assert (table.properties.name, table.version) == ("trips", 8)
    assert table.properties["hoodie.timeline.layout.version"] == "2"
    assert contents(tmp_path / "t") == [(n, 1, float(n)) for n in range(100)]
    assert {p["_hoodie_partition_path"] for p in table.scan().to_table().to_pylist()} == {f"p{n}" for n in range(5)}
    check(tmp_path / "t")


@pytest.mark.oldest
def test_upsert_updates_and_inserts(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    save(frame(spark, range(8, 12), ts=2, x="-1D"), tmp_path / "t")
    assert contents(tmp_path / "t") == [*((n, 1, float(n)) for n in range(8)), *((n, 2, -1.0) for n in range(8, 12))]
    check(tmp_path / "t")


def test_an_older_version_of_a_row_does_not_win(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t", rows(range(3), ts=5))
    save(frame(spark, range(3), ts=4, x="-1D"), tmp_path / "t")
    assert contents(tmp_path / "t") == [(n, 5, float(n)) for n in range(3)]


@pytest.mark.oldest
def test_one_key_in_two_tasks_is_one_row(spark: SparkSession, tmp_path: Path) -> None:
    twice = frame(spark, range(50), tasks=2).union(frame(spark, range(50), ts=2, x="-1D", tasks=2))
    save(twice, tmp_path / "t", **KEYS, **{"hoodie.table.name": "t"})
    assert contents(tmp_path / "t") == [(n, 2, -1.0) for n in range(50)]


@pytest.mark.rotation(2)
@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_inserts_keep_every_row(spark: SparkSession, tmp_path: Path, operation: str) -> None:
    create(tmp_path / "t")
    save(frame(spark, range(8, 12), ts=2, tasks=3), tmp_path / "t", operation=operation)
    assert [row[0] for row in contents(tmp_path / "t")] == [*range(8), 8, 8, 9, 9, 10, 11]
    check(tmp_path / "t")


def test_delete_needs_only_keys_and_partitions(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    save(frame(spark, range(5, 20)).select("id", "part"), tmp_path / "t", operation="delete")
    assert [row[0] for row in contents(tmp_path / "t")] == list(range(5))
    check(tmp_path / "t")


@pytest.mark.oldest
def test_overwrite_replaces_all_rows_or_the_partitions_written_to(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    part = frame(spark, range(20, 30)).where("part = 'p0'")
    save(part, tmp_path / "t", "overwrite", partitionOverwriteMode="dynamic")
    assert [row[0] for row in contents(tmp_path / "t")] == [1, 2, 3, 4, 6, 7, 8, 9, 20, 25]
    save(part, tmp_path / "t", operation="insert_overwrite")
    assert [row[0] for row in contents(tmp_path / "t")] == [1, 2, 3, 4, 6, 7, 8, 9, 20, 25]
    save(part, tmp_path / "t", "overwrite")
    assert [row[0] for row in contents(tmp_path / "t")] == [20, 25]
    check(tmp_path / "t")


def test_meta_columns_of_written_rows_are_ignored(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "a")
    loaded = spark.read.format("hudimeta").load(str(tmp_path / "a"))
    save(loaded.withColumn("part", loaded.part), tmp_path / "b", **KEYS, **{"hoodie.table.name": "b"})
    made = hudimeta.Table(tmp_path / "b").scan().to_table()
    assert made.column_names[-4:] == COLUMNS
    assert set(made.column("_hoodie_commit_time").to_pylist()) == {hudimeta.Table(tmp_path / "b").timeline.writes[-1].time}


@pytest.mark.oldest
def test_every_type_comes_back_as_it_was_written(spark: SparkSession, tmp_path: Path) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        data = spark.range(3, numPartitions=1).selectExpr(
            "id",
            "id % 2 = 0 flag",
            "cast(id as int) i",
            "cast(id as float) f",
            "cast(id as decimal(12,3)) money",
            "cast(concat('b', id) as binary) bytes",
            "date'2026-01-02' day",
            "timestamp'2026-01-02 03:04:05.678901' at",
            "timestamp_ntz'2026-01-02 03:04:05.678901' wall",
            "array(id, null) many",
            "map('k', id) counts",
            "named_struct('a', id, 'b', array(named_struct('c', 'x'))) nested",
            "cast(null as string) nothing",
        )
        key = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.name": "t"}
        save(data, tmp_path / "t", **key)
        again = spark.read.format("hudimeta").load(str(tmp_path / "t")).select(*data.columns)
        assert [c.dataType for c in again.schema] == [c.dataType for c in data.schema.fields] or again.dtypes == data.dtypes
        assert sorted(map(tuple, again.collect()), key=repr) == sorted(map(tuple, data.collect()), key=repr)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_large_arrow_types_are_written_too(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        save(frame(spark, range(5)), tmp_path / "t", **KEYS, **{"hoodie.table.name": "t"})
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    assert ids(spark.read.format("hudimeta").load(str(tmp_path / "t"))) == list(range(5))


def test_a_dataframe_without_rows_creates_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.createDataFrame([], DDL), tmp_path / "t", **KEYS, **{"hoodie.table.name": "t"})
    assert spark.read.format("hudimeta").load(str(tmp_path / "t")).count() == 0
    check(tmp_path / "t")


@pytest.mark.parametrize("through", ["spark", *(["attached"] if not REMOTE else [])])
def test_a_write_without_rows_leaves_nothing_behind(through: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The plain door committed what the others did not."""
    session = request.getfixturevalue(through)
    create(tmp_path / "t")
    none, before = session.createDataFrame([], DDL), instants(tmp_path / "t")
    for operation in ("insert", "upsert", "bulk_insert", "delete", "delete_partition"):
        save(none, tmp_path / "t", operation=operation)
    save(frame(session, range(3)).where("id > 5"), tmp_path / "t")
    assert instants(tmp_path / "t") == before
    save(none, tmp_path / "t", operation="delete", **{"hoodie.allow.empty.commit": "true", "_offset": "17"})
    timeline = hudimeta.Table(tmp_path / "t").timeline
    assert timeline.metadata(timeline.writes[-1])["extraMetadata"]["_offset"] == "17"
    assert len(contents(tmp_path / "t")) == 10
    save(none, tmp_path / "t", operation="insert_overwrite_table")
    assert not contents(tmp_path / "t")
    check(tmp_path / "t")


# What goes wrong


def failing(spark: SparkSession, attempts: int, tasks: int = 2) -> DataFrame:
    """Rows whose last task hands out some of them and then fails, in its first `attempts` attempts."""

    def flaky(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            yield batch
            if context.partitionId() == tasks - 1 and context.attemptNumber() < attempts:
                raise ValueError("this task was told to fail")

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    return frame(spark, range(100), tasks=tasks).mapInArrow(flaky, DDL)


@pytest.fixture
def small_batches(spark: SparkSession) -> Iterator[None]:
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.mark.rotation(2)
@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_a_repeated_task_doubles_no_rows(spark: SparkSession, tmp_path: Path, small_batches: None, operation: str) -> None:
    save(failing(spark, attempts=1), tmp_path / "t", operation=operation, **KEYS, **{"hoodie.table.name": "t"})
    assert [row[0] for row in contents(tmp_path / "t")] == list(range(100))
    check(tmp_path / "t")


@pytest.mark.rotation(2)
@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
@pytest.mark.parametrize("tasks", [1, 2])
def test_a_write_that_fails_leaves_nothing_behind(
    spark: SparkSession, tmp_path: Path, small_batches: None, operation: str, tasks: int
) -> None:
    create(tmp_path / "t")
    before, timeline = contents(tmp_path / "t"), instants(tmp_path / "t")
    with pytest.raises(Exception, match="this task was told to fail"):
        save(failing(spark, 9, tasks), tmp_path / "t", operation=operation)
    assert contents(tmp_path / "t") == before
    assert [text for text in instants(tmp_path / "t") if "rollback" not in text] == timeline, "nothing is left pending"
    if tasks == 1:  # Spark says that a write failed while other tasks of it still run: those clean up a little later
        check(tmp_path / "t")
    save(frame(spark, range(20, 22)), tmp_path / "t")
    assert len(contents(tmp_path / "t")) == 12


def test_the_key_is_needed_in_every_row(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    nulls = frame(spark, range(5)).selectExpr("nullif(id, 3) id", "part", "ts", "x")
    before = contents(tmp_path / "t")
    assert "id" in refusal(lambda: save(nulls, tmp_path / "t"))
    assert contents(tmp_path / "t") == before
    check(tmp_path / "t")


@pytest.mark.parametrize(
    ("columns", "options", "says"),
    [
        (["id", "part", "ts", "true x"], {}, "HUDIMETA_SCHEMA_MISMATCH: column 'x'"),
        (["id", "part", "ts", "x", "array(parse_json('1')) v"], {}, "writing column v.element of type variant is not"),
        (COLUMNS, {"hoodie.datasource.write.operation": "upsrt"}, "HUDIMETA_CONFIG: option 'hoodie.datasource.write.oper"),
        (COLUMNS, {"hoodie.datasource.write.recordkey.field": "x"}, "HUDIMETA_CONFIG"),
        (COLUMNS, {"hudimeta.nope": "1"}, "HUDIMETA_CONFIG: option 'hudimeta.nope'"),
    ],
)
def test_rows_and_options_that_do_not_fit_are_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Path, columns: list[str], options: dict[str, str], says: str
) -> None:
    create(tmp_path / "t")
    timeline = instants(tmp_path / "t")
    assert says in refusal(lambda: save(frame(spark, range(5)).selectExpr(*columns), tmp_path / "t", **options))
    assert instants(tmp_path / "t") == timeline


def test_a_new_table_needs_what_describes_it(spark: SparkSession, tmp_path: Path) -> None:
    missing = {**KEYS, "hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "nope"}
    assert "nope" in refusal(lambda: save(frame(spark, range(5)), tmp_path / "t", **missing))
    assert not (tmp_path / "t" / ".hoodie" / "hoodie.properties").exists()


def test_save_modes_and_partition_by_belong_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    """These never reach the source: Spark refuses them itself, and nothing is written."""
    writer = frame(spark, range(5)).write.format("hudimeta")
    for refused in (writer.mode("error"), writer.mode("ignore")):
        with pytest.raises(Exception, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
            refused.save(str(tmp_path / "t"))
    with pytest.raises(Exception, match="partition"):
        writer.mode("append").partitionBy("part").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


# Streams


def test_streams_are_written_by_their_batches(spark: SparkSession, tmp_path: Path) -> None:
    """Each batch in a thread of Spark's."""
    create(tmp_path / "t")
    frame(spark, range(8, 12), ts=2).write.parquet(str(tmp_path / "new"))
    mine = spark.readStream.schema(DDL).parquet(str(tmp_path / "new")).writeStream.trigger(availableNow=True)
    mine = mine.option("checkpointLocation", str(tmp_path / "checkpoint"))
    mine.foreachBatch(lambda rows, _: save(rows, tmp_path / "t")).start().awaitTermination()
    assert [(i, ts) for i, ts, _ in contents(tmp_path / "t")] == [*((n, 1) for n in range(8)), *((n, 2) for n in range(8, 12))]
    check(tmp_path / "t")


# Threads


def test_threads_read_and_write_side_by_side(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")

    def insert(number: int) -> int:
        # Spark's save() finds data sources through the session that is active in the thread.
        spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)
        start = 100 * (number + 1)
        save(frame(spark, range(start, start + 10)), tmp_path / "t", operation="bulk_insert")
        return spark.read.format("hudimeta").load(str(tmp_path / "t")).count()

    with ThreadPoolExecutor(3) as pool:
        counts = list(pool.map(insert, range(3)))
    assert max(counts) == 40
    assert all(found % 10 == 0 for found in counts), "a commit is seen whole or not at all"
    assert len(contents(tmp_path / "t")) == 40
    check(tmp_path / "t")


def test_partitions_are_deleted_by_rows_and_by_name(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    where = tmp_path / "t"
    save(spark.createDataFrame([("p1",)], "part string"), where, operation="delete_partition")
    assert {n % 5 for n, *_ in contents(where)} == {0, 2, 3, 4}
    named = {"hoodie.datasource.write.partitions.to.delete": "p2,p3*"}
    save(frame(spark, range(0)), where, operation="delete_partition", **named)
    assert {n % 5 for n, *_ in contents(where)} == {0, 4}
    check(where)
    assert "Use mode append" in refusal(lambda: save(frame(spark, range(4)), where, "overwrite", operation="delete_partition"))


def test_inserts_drop_or_refuse_known_keys(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    known = len(contents(tmp_path / "t"))
    again = frame(spark, range(known - 3, known + 2), ts=9)
    fail = {"hoodie.datasource.insert.dup.policy": "fail"}
    assert "DUPLICATE_KEYS" in refusal(lambda: save(again, tmp_path / "t", operation="insert", **fail))
    assert "DUPLICATE_KEYS" in refusal(lambda: save(again, tmp_path / "t", **fail)), "an upsert by default"
    save(again, tmp_path / "t", **{"hoodie.datasource.write.insert.drop.duplicates": "true"})
    assert contents(tmp_path / "t")[-3:] == [(known - 1, 1, float(known - 1)), *((n, 9, float(n)) for n in (known, known + 1))]
    check(tmp_path / "t")


def test_bulk_inserts_sort_within_their_tasks(spark: SparkSession, tmp_path: Path) -> None:
    sort = {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}
    backwards = frame(spark, range(20), tasks=1).orderBy("id", ascending=False)
    save(backwards, tmp_path / "t", operation="bulk_insert", **KEYS, **sort, **{"hoodie.table.name": "t"})
    found = hudimeta.Table(tmp_path / "t").scan(where="part = 'p0'").to_table()
    assert found["_hoodie_record_key"].to_pylist() == sorted(found["_hoodie_record_key"].to_pylist())
    check(tmp_path / "t")


def test_the_report_of_a_write_reaches_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    import pyspark_hudimeta

    create(tmp_path / "t")
    save(frame(spark, range(8, 14), ts=2), tmp_path / "t")
    report = pyspark_hudimeta.last_commit(str(tmp_path / "t"))
    assert (report.operation, report.inserted, report.updated, report.found) == ("UPSERT", 4, 2, 2)
