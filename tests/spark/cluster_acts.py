"""A program for `test_cluster.py`: what is done on a cluster while one of its workers is killed, and what is there afterwards.

python cluster_acts.py FOLDER

A worker is killed at a moment that is seen: the table's timeline holds an action that is not complete, the files are there that
the act is known by, and an executor of that worker runs a task. Prints a line for each act.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import hudimeta
from tests.spark.cluster import PATIENCE, Cluster, Process
from tests.spark.tables import KEYS, check, create

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 60_000
BETWEEN_LOOKS = 0.02
"""Seconds."""
PYTHON = "pyspark.daemon"
EVERYTHING_IN_TASKS = {"hudimeta.write.routed.driver.bytes": "0"}
Busy = Callable[[Process], bool]


@dataclass(frozen=True)
class Moment:
    """When a worker is killed: while it is at work, and what is awaited is there.

    Attributes:
        table: Whose timeline holds an action that is not complete.
        files: Below it; one must be there that was not there when the act began. "" for none.
        since: Files that were there then.
    """

    table: Path
    files: str = ""
    since: frozenset[Path] = frozenset()

    def begun(self) -> Moment:
        return replace(self, since=frozenset(self._found()))

    def _found(self) -> list[Path]:
        try:
            return list(self.table.glob(self.files)) if self.files else []
        except FileNotFoundError:  # a folder went away meanwhile: look again
            return []

    def is_now(self) -> bool:
        timeline = self.table / ".hoodie" / "timeline"
        pending = any(
            re.search(r"\.(inflight|requested)$", path.name) and not _is_complete(path) for path in timeline.glob("2*")
        )
        return pending and (not self.files or not self.since.issuperset(self._found()))


def _is_complete(path: Path) -> bool:
    """Whether an action's last file lies beside one of its earlier ones."""
    return any(re.match(r"\d+_\d+\.", other.name) for other in path.parent.glob(f"{path.name.split('.')[0]}_*"))


class Killer:
    """Kills one worker while a block runs, as soon as the moment has come. Args: cluster, moment, busy: See above."""

    def __init__(self, cluster: Cluster, moment: Moment, busy: Busy) -> None:
        self._cluster, self._moment, self._busy = cluster, moment.begun(), busy
        self._over, self._thread = threading.Event(), threading.Thread(target=self._run, daemon=True)
        self.after: float | None = None
        """Seconds until then; None where nobody was killed."""
        self.took = 0.0

    def __enter__(self) -> Killer:
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.took = time.monotonic() - self._began
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(BETWEEN_LOOKS):
            if self._moment.is_now():
                for worker in self._cluster.workers:
                    if self._busy(worker):
                        self._cluster.kill(worker)
                        self.after = time.monotonic() - self._began
                        return


def runs_python(worker: Process) -> bool:
    """Whether Python works for it."""
    return sum(PYTHON in command for command in worker.family().values()) > 1


def runs_tasks(spark: SparkSession) -> Busy:
    """Tells whether the session's executor of a worker runs a task."""
    store = spark.sparkContext._jsc.sc().statusStore()

    def busy(worker: Process) -> bool:
        summaries = store.executorList(True)
        working = {summaries.apply(n).id() for n in range(summaries.size()) if summaries.apply(n).activeTasks() > 0}
        named = (re.search(r"--executor-id (\d+)", command) for command in worker.family().values())
        return any(found[1] in working for found in named if found)

    return busy


# What is done


def rows(ids: range, ts: int) -> pa.Table:
    numbers = pa.array(ids, pa.int64())
    parts = pa.array([f"p{n % 4}" for n in ids])
    return pa.table(
        {"id": numbers, "part": parts, "ts": pa.array([ts] * len(ids), pa.int64()), "x": numbers.cast(pa.float64())}
    )


def frame(spark: SparkSession, first: int, ts: int) -> DataFrame:
    """As many rows, in eight tasks."""
    made = spark.range(first, first + ROWS, 1, 8)
    return made.selectExpr("id", "concat('p', id % 4) part", f"{ts}L ts", f"id * {ts}.0D x")


def holds(path: Path, expected: dict[int, float]) -> int:
    """See that a table is sound and holds these rows, each once."""
    found = hudimeta.Table(path).scan(columns=["id", "x"]).to_table()
    assert found.num_rows == len(expected), f"{path}: {found.num_rows} rows instead of {len(expected)}"
    assert dict(zip(found["id"].to_pylist(), found["x"].to_pylist(), strict=True)) == expected, path
    check(path)
    return found.num_rows


def values(first: int, ts: int) -> dict[int, float]:
    return {n: float(n * ts) for n in range(first, first + ROWS)}


@dataclass(frozen=True)
class Act:
    """One thing to do with a cluster.

    Attributes:
        name: For the report.
        moment: When a worker is killed.
        prepare: Before.
        run: Meanwhile.
        expected: What the table holds afterwards.
    """

    name: str
    moment: Moment
    prepare: Callable[[], object]
    run: Callable[[SparkSession], object]
    expected: dict[int, float]


def acts(home: Path) -> Sequence[Act]:
    """All of them but the demo."""
    from pyspark_hudimeta import HudiTable, attach, detach
    from pyspark_hudimeta.spark_engine import SparkEngine

    SparkEngine.worth_bytes = 0  # services of small tables stay on the driver otherwise
    upserted, loaded, compacted = home / "upserted", home / "loaded", home / "compacted"
    source, copied = home / "source", home / "copied"

    def load(spark: SparkSession) -> None:
        attach(spark)
        given = {**KEYS, **EVERYTHING_IN_TASKS, "hoodie.table.name": "loaded"}
        given["hoodie.datasource.write.operation"] = "bulk_insert"
        frame(spark, 0, 3).write.format("hudimeta").options(**given).mode("append").save(str(loaded))
        detach(spark)

    def with_logs() -> None:
        table = create(compacted, rows(range(ROWS), 1), type="MERGE_ON_READ")
        table.upsert(rows(range(ROWS), 2))

    def compact(spark: SparkSession) -> None:
        HudiTable(spark, compacted, EVERYTHING_IN_TASKS).compact()

    def three_commits() -> None:
        table = create(source, rows(range(ROWS), 1))
        for turn in (1, 2):
            table.bulk_insert(rows(range(turn * ROWS, (turn + 1) * ROWS), 1))

    def copy(attached: bool) -> Callable[[SparkSession], None]:
        def run(spark: SparkSession) -> None:
            if attached:
                attach(spark)
            changes = spark.readStream.format("hudimeta").option("maxFilesPerTrigger", "1").load(str(source))
            given = {
                **KEYS,
                **EVERYTHING_IN_TASKS,
                "hoodie.table.name": "copied",
                "hoodie.datasource.write.operation": "insert",
            }
            given["checkpointLocation"] = str(home / f"checkpoint-{attached}")
            sink = changes.writeStream.format("hudimeta").options(**given).trigger(availableNow=True)
            sink.start(str(copied) + str(attached)).awaitTermination()
            detach(spark)

        return run

    once = values(0, 1) | values(ROWS, 1) | values(2 * ROWS, 1)
    streamed = {n: float(n) for n in once}
    staged, base = ".hoodie/.staged/**/*", "p*/*.parquet"
    return (
        Act(
            "routed upsert, a task has begun",
            Moment(upserted),
            lambda: create(upserted, rows(range(ROWS), 1)),
            lambda spark: HudiTable(spark, upserted, EVERYTHING_IN_TASKS).upsert(frame(spark, ROWS // 2, 2)),
            values(0, 1) | values(ROWS // 2, 2),
        ),
        Act(
            "routed upsert, rows lie between its steps",
            Moment(upserted, staged),
            lambda: None,
            lambda spark: HudiTable(spark, upserted, EVERYTHING_IN_TASKS).upsert(frame(spark, 0, 3)),
            values(0, 3) | {n: float(n * 2) for n in range(ROWS, ROWS // 2 + ROWS)},
        ),
        Act("attached load, a file is written", Moment(loaded, base), lambda: None, load, values(0, 3)),
        Act("compaction, a task has begun", Moment(compacted), with_logs, compact, {n: float(n) for n in range(ROWS)}),
        Act(
            "attached stream, a batch has written a file",
            Moment(Path(f"{copied}True"), base),
            three_commits,
            copy(True),
            streamed,
        ),
        Act(
            "plain stream, a batch has written a file",
            Moment(Path(f"{copied}False"), base),
            lambda: None,
            copy(False),
            streamed,
        ),
    )


# The program


def demo(cluster: Cluster, home: Path) -> None:
    """The demo, whose own checks say whether all is right."""
    path = home / "demo"
    command = [sys.executable, "-m", "demo", "--size", "smoke", "--master", cluster.url, "--path", str(path)]
    with Killer(cluster, Moment(path / "flights"), runs_python) as killer:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
    report("demo, the first write has begun", killer, hudimeta.Table(path / "flights").scan(columns=["id"]).to_table().num_rows)
    cluster.complete()


def report(name: str, killer: Killer, found: int) -> None:
    assert killer.after is not None, f"{name}: it was over before anybody could be killed"
    when = f"a worker killed after {killer.after:.1f} of {killer.took:.1f} s"
    print(f"ACT {name}: {when}, {found:,} rows, load {os.getloadavg()[0]:.1f}", flush=True)


def session(cluster: Cluster) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(cluster.url).config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.liveUpdate.period", "0")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def wait_for_executors(spark: SparkSession) -> None:
    """Until each worker has one."""
    waiting, end = threading.Event(), time.monotonic() + PATIENCE
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3:  # with the driver
        assert time.monotonic() < end, "an executor is missing"
        waiting.wait(BETWEEN_LOOKS)


def main(home: Path) -> None:
    """All acts, one after the other."""
    cluster = Cluster(home / "cluster")
    try:
        demo(cluster, home)
        spark = session(cluster)
        for act in acts(home):
            cluster.complete()
            wait_for_executors(spark)
            act.prepare()
            with Killer(cluster, act.moment, runs_tasks(spark)) as killer:
                act.run(spark)
            report(act.name, killer, holds(act.moment.table, act.expected))
        spark.stop()
    finally:
        cluster.end()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
