"""`foreachBatch` in an attached session: what a batch writes is routed, and a batch that is repeated is not written twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark_hudimeta import HudiTable, last_commit

from hudimeta import Table
from hudimeta.commit.stream_batches import CHECKPOINT_KEY
from tests.spark.tables import create

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run(spark: SparkSession, home: Path, batch: Callable[[DataFrame, int], None]) -> None:
    """Run what the stream has to offer, batch by batch, from where its checkpoint says that it stands."""
    rows = spark.readStream.schema("id long, part string, ts long, x double").json(str(home / "incoming"))
    writer = rows.writeStream.option("checkpointLocation", str(home / "checkpoint")).trigger(availableNow=True)
    writer.foreachBatch(batch).start().awaitTermination()


def arrive(home: Path, name: str, ids: range, ts: int) -> None:
    (home / "incoming").mkdir(exist_ok=True)
    lines = [json.dumps({"id": i, "part": f"p{i % 2}", "ts": ts, "x": 0.5}) for i in ids]
    (home / "incoming" / name).write_text("\n".join(lines))


def forget_that_it_ended(home: Path, number: int) -> None:
    """As if the driver had been killed after the batch's write and before the checkpoint knew."""
    for name in (str(number), f".{number}.crc"):
        (home / "checkpoint" / "commits" / name).unlink()


def ids(path: Path) -> list[int]:
    return sorted(Table(str(path)).scan().to_table()["id"].to_pylist())


def test_a_repeated_batch_that_inserts_does_not_double(attached: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path)
    before = ids(path)
    tried: list[int] = []

    def insert(rows: DataFrame, number: int) -> None:
        tried.append(number)
        writer = rows.write.format("hudimeta").option("hoodie.datasource.write.operation", "insert").mode("append")
        writer.save(str(path))
        HudiTable(rows.sparkSession, str(path)).insert(rows.selectExpr("id + 100 as id", "part", "ts", "x"))

    arrive(tmp_path, "a", range(50, 53), 2)
    run(attached, tmp_path, insert)
    assert any(note.startswith("routed: ") for note in last_commit(str(path)).notes)
    written, instants = ids(path), [i.time for i in Table(str(path)).timeline]
    assert written == sorted([*before, *range(50, 53), *range(150, 153)])
    forget_that_it_ended(tmp_path, 0)
    run(attached, tmp_path, insert)
    assert tried == [0, 0], "the batch was not repeated"
    assert (ids(path), [i.time for i in Table(str(path)).timeline]) == (written, instants)
    arrive(tmp_path, "b", range(60, 61), 3)
    run(attached, tmp_path, insert)
    assert ids(path) == sorted([*written, 60, 160])
    timeline = Table(str(path)).timeline
    assert CHECKPOINT_KEY in timeline.metadata(timeline.writes[-1])["extraMetadata"]


@pytest.mark.rotation(2)
@pytest.mark.parametrize("by", ["statement", "HudiTable"])
def test_a_repeated_batch_that_merges_does_not_add_twice(attached: SparkSession, tmp_path: Path, by: str) -> None:
    create(tmp_path / "t")
    attached.sql(f"create table streamed using hudimeta location '{tmp_path / 't'}'")

    def merge(rows: DataFrame, number: int) -> None:
        if by == "HudiTable":
            merging = HudiTable(rows.sparkSession, str(tmp_path / "t")).merge(rows, on="id", source_alias="s", target_alias="t")
            merging.when_matched_update({"x": "t.x + s.x"}).when_not_matched_insert().execute()
            return
        rows.createOrReplaceTempView("fresh")
        rows.sparkSession.sql(
            "merge into streamed t using fresh s on t.id = s.id when matched then update set x = t.x + s.x "
            "when not matched then insert *"
        )

    try:
        arrive(tmp_path, "a", range(3, 5), 2)
        before = {row.id: row.x for row in attached.table("streamed").collect()}
        for _ in range(2):
            run(attached, tmp_path, merge)
            assert {row.id: row.x for row in attached.table("streamed").where("id in (3, 4)").collect()} == {
                3: before[3] + 0.5,
                4: before[4] + 0.5,
            }
            forget_that_it_ended(tmp_path, 0)
    finally:
        attached.sql("drop table streamed")
