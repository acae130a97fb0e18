"""Writes by Spark's executors: the driver sees summaries only, and what happens to single tasks changes nothing."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark_hudimeta import HudiTable, attach, detach, last_commit
from pyspark_hudimeta.arrow_types import written_schema
from pyspark_hudimeta.routed.executors import SparkExecutors

from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.config.options import ROUTED_NEARBY_BYTES
from hudimeta.errors import SchemaMismatch, ValidationFailed
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.types import Operation
from hudimeta.write.routed.driver import write_routed
from hudimeta.write.routed.sources import GivenRows
from tests.elsewhere import REMOTE, only_when
from tests.spark.tables import KEYS, check, contents, create, refusal, rows
from tests.write.unstated import without_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INDEXES = ["record_index", "column_stats", "secondary_index_ts"]
BY_TASKS = {ROUTED_NEARBY_BYTES.key: "0"}


def some(spark: SparkSession, first: int, last: int, ts: int) -> DataFrame:
    """Rows of some ids."""
    return spark.range(first, last, 1, 3).selectExpr("id", "concat('p', id % 5) part", f"{ts}L ts", f"id * {ts}.0D x")


# Semantics


@pytest.mark.rotation(2)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("options", [BY_TASKS, {}], ids=["by tasks", "the small rest by the driver"])
def test_verbs_keep_rows_and_indexes(spark: SparkSession, tmp_path: Path, kind: str, options: dict[str, str]) -> None:
    create(tmp_path / "t", type=kind, indexes=INDEXES)
    hudi = HudiTable(spark, tmp_path / "t", options)
    report = hudi.upsert(some(spark, 5, 40, 2).union(some(spark, 30, 35, 3)))
    assert (report.inserted, report.updated, report.looked_up, report.found) == (30, 5, 35, 5)
    assert {"rows", "look-up", "place", "write", "publish"} <= report.seconds.keys()
    (note,) = (note for note in report.notes if "summaries collected" in note)
    assert ("the driver did the rest" in note) is (not options)
    assert hudi.delete("id < 3").deleted == 3
    assert hudi.update({"x": "x + 0.5"}, "part = 'p4' AND id < 10").updated == 2
    newest = dict.fromkeys((3, 4), 1) | dict.fromkeys(range(5, 40), 2) | dict.fromkeys(range(30, 35), 3)
    assert contents(tmp_path / "t") == [(i, ts, i * ts + (0.5 if i in (4, 9) else 0.0)) for i, ts in sorted(newest.items())]
    check(tmp_path / "t")


def test_a_merge_updates_deletes_and_inserts(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t", indexes=INDEXES)
    merge = HudiTable(spark, tmp_path / "t").merge(some(spark, 7, 12, 5), "target.id = source.id")
    report = (
        merge.when_matched_delete(condition="source.id = 8")
        .when_matched_update({"x": "target.x + source.x", "ts": "source.ts"})
        .when_not_matched_insert(condition="source.id < 11")
        .execute()
    )
    assert (report.inserted, report.updated, report.deleted) == (1, 2, 1)
    assert contents(tmp_path / "t")[7:] == [(7, 5, 42.0), (9, 5, 54.0), (10, 5, 50.0)]
    check(tmp_path / "t")


def test_the_driver_gets_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t", rows([]), indexes=INDEXES)
    hudi = HudiTable(spark, tmp_path / "t", BY_TASKS)
    collected = []
    for first, last in ((0, 100), (1000, 41_000)):
        notes = hudi.upsert(some(spark, first, last, 1)).notes
        (note,) = (note for note in notes if "summaries collected" in note)
        collected.append(int(note.partition("tasks, ")[2].partition(" bytes")[0].replace(",", "")))
    assert collected[1] < collected[0] + 50_000, "the keys alone of 40,000 rows are more than this"


def test_first_rows_tell_the_columns_where_nothing_does(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t", rows([]), indexes=INDEXES)
    without_columns(tmp_path / "t")
    note = "nothing told the table's columns: they are those of these rows"
    assert note in HudiTable(spark, tmp_path / "t", BY_TASKS).upsert(some(spark, 0, 4, 1)).notes
    assert contents(tmp_path / "t") == [(i, 1, float(i)) for i in range(4)]
    check(tmp_path / "t")


def test_rows_that_do_not_fit_are_refused_with_the_engines_error(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    hudi = HudiTable(spark, tmp_path / "t")
    with pytest.raises(SchemaMismatch, match="part"):
        hudi.upsert(spark.range(3))
    with pytest.raises(SchemaMismatch, match="record key"):
        hudi.upsert(some(spark, 0, 9, 2).selectExpr("nullif(id, 7) id", "part", "ts", "x"))
    assert len(contents(tmp_path / "t")) == 10
    check(tmp_path / "t")


def test_rows_of_chance_are_placed_once(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t", rows([]), indexes=INDEXES)
    frame = spark.range(0, 500, 1, 2).selectExpr(
        "cast(rand() * 1e15 as bigint) id", "concat('p', cast(rand() * 5 as int)) part", "1L ts", "rand() x"
    )
    report = HudiTable(spark, tmp_path / "t").upsert(frame)
    assert report.inserted == len(contents(tmp_path / "t")) == 500
    check(tmp_path / "t")


# The attached door


@only_when(not REMOTE, "classic sessions, which can be attached")
@pytest.mark.rotation(2)
def test_an_attached_session_routes_what_it_saves(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    plain = type(some(spark, 0, 1, 1).write)
    attach(spark)
    try:
        created = some(spark, 0, 10, 1).write.format("hudimeta").mode("append").options(**KEYS)
        created.option("hoodie.table.name", "t").option("hoodie.metadata.record.index.enable", True).save(path)
        some(spark, 5, 12, 2).write.save(path, format="hudimeta", mode="append")
        report = last_commit(path)
        assert any(note.startswith("routed: 7 rows") for note in report.notes)
        assert (report.inserted, report.updated) == (2, 5)
        assert refusal(lambda: some(spark, 0, 1, 1).write.format("hudimeta").mode("append").save()).startswith("HUDIMETA_TABLE")
        some(spark, 0, 3, 9).write.format("hudimeta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(path)
        assert [i for i, _, _ in contents(tmp_path / "t")] == [0, 1, 2, 3, 4, 8, 9]
        unrouted = some(spark, 20, 21, 9).write.format("hudimeta").mode("append")
        unrouted.option("hudimeta.write.routed", "false").save(path)
        assert not any(note.startswith("routed") for note in last_commit(path).notes)
        some(spark, 0, 3, 1).write.mode("overwrite").parquet(str(tmp_path / "other"))
        assert spark.read.parquet(str(tmp_path / "other")).count() == 3
    finally:
        detach(spark)
    assert type(some(spark, 0, 1, 1).write) is plain
    check(tmp_path / "t")


# Faults

Run = Callable[[Iterator[Any]], Iterator[Any]]


class Interfered(SparkExecutors):
    """Executors with whom something happens in one of the jobs.

    Args:
        at: Which job, from 0. wrap: Makes it happen.
    """

    def __init__(self, spark: SparkSession, frame: DataFrame, at: int, wrap: Callable[[Run], Run]) -> None:
        super().__init__(spark, frame, written_schema(frame.schema))
        self._left, self._wrap = at, wrap

    def _run(self, frame: DataFrame, run: Run) -> dict[int, Any]:
        self._left -= 1
        return super()._run(frame, self._wrap(run) if self._left == -1 else run)


def interfere(path: Path, executors: SparkExecutors, frame: DataFrame) -> None:
    """An upsert by these executors."""
    session = WriteSession(CountingStorage(open_storage(path)), OPTIONS.read({}))
    write_routed(session, GivenRows(Operation.UPSERT, written_schema(frame.schema)), executors)


@pytest.mark.rotation(2)
@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_worker_that_dies_after_its_work_is_replaced(spark: SparkSession, tmp_path: Path, at: int) -> None:
    create(tmp_path / "t", indexes=INDEXES)
    flag = str(tmp_path / "died")

    def dying(run: Run) -> Run:
        def work(batches: Iterator[Any]) -> Iterator[Any]:
            results = list(run(batches))
            if not os.path.exists(flag):
                open(flag, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            yield from results

        return work

    frame = some(spark, 5, 30, 2)
    interfere(tmp_path / "t", Interfered(spark, frame, at, dying), frame)
    assert os.path.exists(flag)
    assert contents(tmp_path / "t") == [(i, 1, float(i)) for i in range(5)] + [(i, 2, i * 2.0) for i in range(5, 30)]
    check(tmp_path / "t")


_WRITES_AFTER = 10


@only_when(not REMOTE, "classic sessions, by whose context jobs are cancelled")
@pytest.mark.rotation(3)
@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_cancelled_job_leaves_nothing(spark: SparkSession, tmp_path: Path, at: int) -> None:
    create(tmp_path / "t", indexes=INDEXES)
    reached, running = str(tmp_path / "reached"), str(tmp_path / "running")
    os.mkfifo(reached)

    def waiting(run: Run) -> Run:
        def work(batches: Iterator[Any]) -> Iterator[Any]:
            with open(running, "a") as held:
                fcntl.flock(held, fcntl.LOCK_SH)
                results = list(run(batches))
                with open(reached, "w") as gate:
                    gate.write("here")
                threading.Event().wait()
                yield from results

        return work

    def cancel() -> None:
        with open(reached) as gate:
            gate.read()
        spark.sparkContext.cancelAllJobs()

    frame = some(spark, 5, 30, 2)
    canceller = threading.Thread(target=cancel, daemon=True)
    canceller.start()
    with pytest.raises(Exception, match=r"(?i)cancel"):
        interfere(tmp_path / "t", Interfered(spark, frame, at, waiting), frame)
    canceller.join(60)
    assert contents(tmp_path / "t") == [(i, 1, float(i)) for i in range(10)]
    with open(running, "a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # Spark stops workers of a cancelled job some time later: they write until then
    for written in range(1, _WRITES_AFTER + 1):
        HudiTable(spark, tmp_path / "t").upsert(some(spark, 99 + written, 100 + written, 1))
        assert len(contents(tmp_path / "t")) == 10 + written
        try:
            check(tmp_path / "t")
            return
        except ValidationFailed:  # by a task that had not even begun when the job was cancelled
            if written == _WRITES_AFTER:
                raise


@only_when(os.environ.get("HUDIMETA_FAULTS_FULL"), "make faults-full: a session with speculation, and 50 random kills")
def test_random_kills_and_speculation(tmp_path: Path) -> None:
    program = Path(__file__).with_name("routed_faults.py")
    found = subprocess.run([sys.executable, str(program), str(tmp_path), "50"], capture_output=True, text=True, timeout=3600)
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-4000:]
    assert "50 writes" in found.stdout


@only_when(os.environ.get("HUDIMETA_ROUTED_LARGE"), "make faults-full: five million rows, some ten minutes")
def test_the_drivers_memory_does_not_grow_with_rows(tmp_path: Path) -> None:
    program = [sys.executable, str(Path(__file__).with_name("routed_large.py")), str(tmp_path), "5000000", "local[2]"]
    found = subprocess.run(program, capture_output=True, text=True, timeout=3600)
    assert found.returncode == 0, found.stderr[-4000:]
    (line,) = (line for line in found.stdout.splitlines() if line.startswith("SEEN "))
    seen = json.loads(line.removeprefix("SEEN "))
    assert seen["driver MiB"] < 500
    assert seen["last"] == [0, 1000, 5_000_000]
