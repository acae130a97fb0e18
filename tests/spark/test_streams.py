"""`readStream` and `writeStream` of `format("hudimeta")`: what goes in comes out once, whatever ends in between."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark_hudimeta import last_commit
from pyspark_hudimeta.spark_version import has_read_limits

import hudimeta
from hudimeta.commit.stream_batches import CHECKPOINT_KEY
from tests.spark.tables import KEYS, check, contents, create, refusal, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

ONE_BY_ONE = {"maxFilesPerTrigger": "1"} if has_read_limits() else {}
NEW = {**KEYS, "hoodie.table.name": "copy"}


def source(spark: SparkSession, home: Path, **options: str) -> DataFrame:
    return spark.readStream.format("hudimeta").options(**options).load(str(home / "from"))


def sink(frame: DataFrame, home: Path, **options: str) -> DataStreamWriter:
    given = {**NEW, "checkpointLocation": str(home / "checkpoint"), **options}
    return frame.writeStream.format("hudimeta").options(**given).trigger(availableNow=True)


def ended(query: StreamingQuery) -> list[dict[str, Any]]:
    """What the batches did."""
    query.awaitTermination()
    return [progress for progress in query.recentProgress if "addBatch" in progress["durationMs"]]


def copy(spark: SparkSession, home: Path) -> list[dict[str, Any]]:
    return ended(sink(source(spark, home, **ONE_BY_ONE), home).start(str(home / "to")))


def put(home: Path, ids: Iterable[int], ts: int) -> None:
    hudimeta.Table(home / "from").upsert(rows(ids, ts))


def forget_that_it_ended(home: Path, number: int) -> None:
    """As if the driver had been killed after the batch's write and before the checkpoint knew."""
    for name in (str(number), f".{number}.crc"):
        (home / "checkpoint" / "commits" / name).unlink()


def batches(home: Path) -> list[tuple[str, str]]:
    """Stream and batch that the copy's commits say they hold, the oldest first."""
    timeline = hudimeta.Table(home / "to").timeline
    entries = [(timeline.metadata(i).get("extraMetadata") or {}).get(CHECKPOINT_KEY) for i in timeline.writes]
    return [next(iter(json.loads(entry).items())) for entry in entries if entry]


@pytest.mark.oldest
@pytest.mark.rotation(2)
def test_a_copy_equals_and_goes_on_where_it_ended(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "from", rows([0, 5]))
    put(tmp_path, [5, 10], 2)
    copy(spark, tmp_path)
    assert contents(tmp_path / "to") == contents(tmp_path / "from")
    last = 1 if has_read_limits() else 0
    assert [number for _, number in batches(tmp_path)] == ["0", "1"][: last + 1], "whole commits, one by one"
    put(tmp_path, [15], 3)
    forget_that_it_ended(tmp_path, last)
    done = copy(spark, tmp_path)
    if not has_read_limits():  # there Spark's trigger takes one batch, and the repeated one is it
        assert contents(tmp_path / "to", "id") == [(0,), (5,), (10,)]
        done += copy(spark, tmp_path)
    assert [batch["batchId"] for batch in done] == [last, last + 1]
    assert contents(tmp_path / "to") == contents(tmp_path / "from")
    assert [number for _, number in batches(tmp_path)] == ["0", "1", "2"][: last + 2], "the repeated batch committed nothing"
    assert len({stream for stream, _ in batches(tmp_path)}) == 1
    check(tmp_path / "to")


@pytest.mark.rotation(3)
def test_a_failing_batch_is_written_when_the_query_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "from", rows([0, 5]))
    create(tmp_path / "to", rows([100]), name="copy")
    wrong = source(spark, tmp_path).selectExpr("id", "part", "ts", "if(id = 5, raise_error('no') , x) x")
    with pytest.raises(Exception, match="no"):
        ended(sink(wrong, tmp_path).start(str(tmp_path / "to")))
    assert contents(tmp_path / "to") == [(100, 1, 100.0)]
    (again,) = ended(sink(source(spark, tmp_path), tmp_path).start(str(tmp_path / "to")))
    assert (again["batchId"], contents(tmp_path / "to", "id")) == (0, [(0,), (5,), (100,)])


@pytest.mark.rotation(3)
def test_a_plain_stream_to_a_name_says_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "from", rows([0, 5]))
    create(tmp_path / "to", rows([100]), name="copy")
    spark.sql(f"create table streamed_by_name using hudimeta location '{tmp_path / 'to'}'")
    try:
        for name in ("streamed_by_name", "streamed_to_nothing"):
            writer = sink(source(spark, tmp_path), tmp_path)
            assert "toTable passes none on. Begin the query with" in refusal(lambda w=writer, n=name: ended(w.toTable(n)))
    finally:
        spark.sql("drop table streamed_by_name")
        spark.sql("drop table if exists streamed_to_nothing")
    assert contents(tmp_path / "to", "id") == [(100,)]


@pytest.mark.rotation(2)
def test_an_attached_stream_is_routed_and_knows_the_catalog(attached: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "from", rows([0, 5]))
    attached.sql(f"create table streamed_from using hudimeta location '{tmp_path / 'from'}'")
    try:
        stream = attached.readStream.options(**ONE_BY_ONE).table("streamed_from")
        assert stream.columns == attached.table("streamed_from").columns == ["id", "ts", "x", "part"]
        stream.createOrReplaceTempView("streamed_rows")
        stream = attached.sql("select * from streamed_rows where id >= 0")
        with pytest.raises(Exception, match="checkpointLocation"):
            stream.writeStream.format("hudimeta").options(**NEW).start(str(tmp_path / "to"))
        writer = sink(stream, tmp_path, path=str(tmp_path / "to"))
        ended(writer.toTable("streamed_to"))
        put(tmp_path, [5, 10], 2)
        forget_that_it_ended(tmp_path, 0)
        assert [batch["batchId"] for batch in ended(sink(stream, tmp_path).toTable("streamed_to"))] == [0, 1]
        assert contents(tmp_path / "to") == contents(tmp_path / "from")
        assert sorted(row.id for row in attached.table("streamed_to").collect()) == [0, 5, 10]
        assert [number for _, number in batches(tmp_path)] == ["0", "1"]
        assert any(note.startswith("routed: ") for note in last_commit(str(tmp_path / "to")).notes)
    finally:
        attached.sql("drop table streamed_from")
        attached.sql("drop table if exists streamed_to")
        attached.catalog.dropTempView("streamed_rows")


@pytest.mark.rotation(3)
def test_complete_mode_replaces_the_table(attached: SparkSession, tmp_path: Path, conf: Any) -> None:
    conf("spark.sql.shuffle.partitions", "1")
    create(tmp_path / "from", rows([0, 5]))
    counted = source(attached, tmp_path, **ONE_BY_ONE).groupBy("part").count()
    given = {"hoodie.datasource.write.recordkey.field": "part", "hoodie.datasource.write.partitionpath.field": ""}
    given["hoodie.datasource.write.precombine.field"] = ""
    for ids in ([5, 10], [11]):
        put(tmp_path, ids, 2)
    ended(sink(counted, tmp_path, **given).outputMode("complete").start(str(tmp_path / "to")))
    assert contents(tmp_path / "to", "part", "count") == [("p0", 4), ("p1", 1)]


def test_what_a_stream_cannot_do_is_said_before_it_writes(attached: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "from", rows([0]))
    stream = source(attached, tmp_path)
    for options, says in (
        ({"hoodie.datasource.write.streaming.ignore.failed.batch": "true"}, "would lose the rows"),
        ({"hoodie.datasource.write.operation": "delete_partition"}, "foreachBatch"),
    ):
        assert says in refusal(lambda options=options: sink(stream, tmp_path, **options).start(str(tmp_path / "to")))
    partitioned = sink(stream, tmp_path).partitionBy("part")
    assert "partitionpath.field" in refusal(lambda: partitioned.start(str(tmp_path / "to")))
    assert not (tmp_path / "to").exists()
