"""P22: streams into a table, batch by batch of 100 and of 1,000,000 rows: what a batch takes, from trigger to commit.

Both systems stream the same Parquet files, a file a batch, in one query; a batch's time is Spark's own (`triggerExecution`).
Rows are inserted by a record key. The first batch starts Spark's workers, and creates the table. CPU is that of the query by
its batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import ours, rivals
from benchmarks.case import APACHE, OURS, PLAIN, Case, Settings, Side, times_faster, versions_of_apache
from benchmarks.job import Job

SMALL, LARGE = 100, 1_000_000
BATCHES = {SMALL: 10, LARGE: 4}
OPTIONS = {
    "hoodie.table.name": "streamed",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}


def rows(number: int, count: int) -> pa.Table:
    """The rows of one batch."""
    ids = np.arange(number * count, (number + 1) * count)
    text = pa.array(ids).cast(pa.string())
    return pa.table({"id": text, "ts": pa.array(np.full(count, number)), "value": pa.array(ids / 7), "note": text})


def incoming(settings: Settings, folder: Path, size: int) -> int:
    """Write the files of the batches; returns how many rows they have."""
    folder.mkdir()
    count = settings.scaled(size, least=100)
    for number in range(BATCHES[size]):
        pq.write_table(rows(number, count), folder / f"{number:04d}.parquet")
    return BATCHES[size] * count


def _hudimeta(size: int, attached: bool, job: Job) -> None:
    import pyspark_hudimeta

    with rivals.spark_session(job) as spark, job.folder() as home:
        expected = incoming(job.settings, home / "incoming", size)
        if attached:
            pyspark_hudimeta.attach(spark)
        source = spark.readStream.schema(spark.read.parquet(str(home / "incoming")).schema)
        sink = source.option("maxFilesPerTrigger", 1).parquet(str(home / "incoming")).writeStream.format("hudimeta")
        sink = sink.options(**OPTIONS).option("checkpointLocation", str(home / "progress")).trigger(availableNow=True)
        whole = Job(job.settings, 1, job.side)
        with whole.timed(descendants=True):
            query = sink.start(str(home / "t"))
            query.awaitTermination()
        _add(job, [p["durationMs"] for p in query.recentProgress if "addBatch" in p["durationMs"]], whole.measured.calls[0].cpu)
        assert ours.count(home / "t") == expected
        job.note("rows a batch", expected // BATCHES[size])


def _apache(size: int, job: Job) -> None:
    with rivals.apache_hudi(job) as process, job.folder() as home:
        expected = incoming(job.settings, home / "incoming", size)
        given = {"folder": str(home / "incoming"), "progress": str(home / "progress"), "options": OPTIONS}
        done = process.call("stream", timeout=1200, path=str(home / "t"), **given)
        _add(job, done["batches"], done["timings"][0]["cpu"])
        job.note("rows a batch", expected // BATCHES[size])


def _add(job: Job, durations: list[Mapping[str, Any]], cpu: float) -> None:
    assert len(durations) >= 2, "the stream ran in single batches"
    job.add([{"wall": d["triggerExecution"] / 1000, "cpu": cpu / len(durations)} for d in durations])


def _case(name: str, size: int, factor: float) -> Case:
    def side(attached: bool) -> Side:
        return partial(_hudimeta, size, attached)

    return Case(
        f"P22-{name}",
        f"batches of {size:,} rows streamed into a table",
        {OURS: side(True), PLAIN: side(False), **versions_of_apache(partial(_apache, size))},
        tuple(times_faster(version, factor, "warm.wall", only_at_full_scale=True) for version in APACHE),
        rounds=1,
        not_in_smoke=(PLAIN,),
    )


CASES = [_case("100", SMALL, 2), _case("1M", LARGE, 2)]
