"""One Java process with Spark 3.5 and Apache Hudi, kept alive: a command per line on standard input, an answer per line back.

Runs in the interoperability environment (pyspark 3.5, never the project), started by `tests.interop.apache_hudi`:

    python hudi_jvm.py                    commands and answers are JSON objects, one per line
    > {"op": "read", "path": "/t", "where": "id > 3", "out": "/tmp/x.arrow"}
    < {"ok": true, "rows": 7, "files_read": 2}

A session costs ten seconds and the first row as much again, a later read half a second: hence one process for many tables.
Spark and Hudi print what they like; answers go to the standard output that the process was started with, everything else
to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import hudi_validation
import pyarrow.parquet as pq
from hudi_scans import Stopwatch, collect, files_read, scans
from hudi_services import Services
from hudi_session import LEFT_SET, WRITE_DEFAULTS, index_options, open_session
from pyspark.sql import DataFrame, SparkSession


class Commands:
    """The operations; each method takes the command's fields as keywords and returns the answer's fields."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark, self.services = spark, Services(spark)

    def ping(self) -> dict[str, Any]:
        """Who answers."""
        java = self.spark._jvm.System.getProperty("java.version")
        return {"spark": self.spark.version, "java": java, "jvm": self.spark.sparkContext._gateway.proc.pid}

    def write(
        self, path: str, rows: str, options: dict[str, str], mode: str = "append", query: str | None = None
    ) -> dict[str, Any]:
        """Write the rows of a Parquet file. The table's own indexes are switched on beneath `options`.

        Those of a query are written, if there is one, which finds the rows of the file under the name `stored`.
        """
        frame = self._rows(rows, query)
        settings = {**WRITE_DEFAULTS, **index_options(path), **options}
        with Stopwatch(self.spark) as watch:
            frame.write.format("hudi").options(**settings).mode(mode).save(path)
        return {"timings": [watch.seconds]}

    def stream(self, path: str, folder: str, progress: str, options: dict[str, str]) -> dict[str, Any]:
        """Write each Parquet file of a folder as one batch of a stream, from where the stream stands by its `progress`.

        Returns what Spark says of the times of each batch, beside the query's own.
        """
        source = self.spark.readStream.schema(self.spark.read.parquet(folder).schema)
        rows = source.option("maxFilesPerTrigger", 1).parquet(folder)
        sink = rows.writeStream.format("hudi").options(**{**WRITE_DEFAULTS, **options}).option("checkpointLocation", progress)
        with Stopwatch(self.spark) as watch:
            query = sink.outputMode("append").trigger(availableNow=True).start(path)
            query.awaitTermination()
        batches = [done["durationMs"] for done in query.recentProgress if "addBatch" in done["durationMs"]]
        return {"timings": [watch.seconds], "batches": batches}

    def read_stream(self, path: str, progress: str, to: str) -> dict[str, Any]:
        """Add to Parquet files what the stream of a table has to offer, from where it stands by its `progress`."""
        rows = self.spark.readStream.format("hudi").load(path).writeStream.format("parquet")
        rows.option("checkpointLocation", progress).trigger(availableNow=True).start(to).awaitTermination()
        return {}

    def _rows(self, file: str, query: str | None) -> DataFrame:
        frame = self.spark.read.parquet(file)
        return self.spark.sql(query, stored=frame) if query else frame

    def write_parquet(
        self, path: str, rows: str, partition_by: list[str], codec: str, query: str | None = None
    ) -> dict[str, Any]:
        """The same rows as plain Parquet: what Spark itself needs for them."""
        frame = self._rows(rows, query)
        with Stopwatch(self.spark) as watch:
            frame.write.partitionBy(*partition_by).option("compression", codec).parquet(path)
        return {"timings": [watch.seconds]}

    def read(
        self,
        path: str,
        out: str | None = None,
        options: dict[str, str] | None = None,
        where: str | None = None,
        columns: list[str] | None = None,
        repeat: int = 1,
        count: bool = False,
        settings: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        """Read rows into an Arrow file; `files_read` is the scan's own count of files after all pruning.

        Without `out` rows go nowhere (Spark's noop sink) or are only counted, `repeat` times, each timed: for measuring.
        `settings` are those of the session, for this read.
        """
        for name, value in (settings or {}).items():
            self.spark.conf.set(name, value)
        timings = []
        answer: dict[str, Any] = {}
        for _ in range(repeat):
            with Stopwatch(self.spark) as watch:
                frame = self.spark.read.format("hudi").options(**(options or {})).load(path)
                frame = frame.where(where) if where else frame
                frame = frame.select(*columns) if columns else frame
                if count:
                    answer = {"rows": frame.count()}
                elif out is None:
                    frame.write.format("noop").mode("overwrite").save()
                else:
                    answer = {"rows": collect(frame, out), "files_read": files_read(frame)}
            timings.append(watch.seconds)
        return {**answer, "timings": timings}

    def sql(self, statement: str, out: str | None = None, settings: dict[str, str] | None = None) -> dict[str, Any]:
        """Run one statement under settings of the session; rows of a query go into an Arrow file."""
        for name, value in (settings or {}).items():
            self.spark.conf.set(name, value)
        try:
            with Stopwatch(self.spark) as watch:
                frame = self.spark.sql(statement)
                rows = collect(frame, out) if out else len(frame.collect())
        finally:
            for name in settings or {}:
                self.spark.conf.unset(name)
        return {"rows": rows, "timings": [watch.seconds]}

    def service(
        self, path: str, name: str, options: dict[str, str] | None = None, instant: str | None = None
    ) -> dict[str, Any]:
        """Run a table service through Hudi's write client; returns the instant, or None when there was nothing to do."""
        with Stopwatch(self.spark) as watch:
            done = self.services.run(path, name, options or {}, instant)
        return {**done, "timings": [watch.seconds]}

    def validate(self, path: str) -> dict[str, Any]:
        """What Hudi's own reader of the metadata table says, against storage, footers and rows."""
        return hudi_validation.validate(self.spark, path, index_options(path))

    def plan(self, path: str, what: str, partition: str = "", repeat: int = 1, reuse: bool = False) -> dict[str, Any]:
        """Time one question to the metadata table, one of those that `MetadataReader.count` takes.

        The engine context is local, as in a Java program without Spark; every repetition opens the table anew unless
        `reuse` keeps the reader.
        """
        reader = None
        timings, count = [], 0
        for _ in range(repeat):
            with Stopwatch(self.spark) as watch:
                if reader is None or not reuse:
                    reader = hudi_validation.MetadataReader(self.spark, path, {}, local=True, reuse=reuse)
                count = reader.count(what, partition)
            timings.append(watch.seconds)
        return {"count": count, "timings": timings}

    def locate(self, path: str, keys: str, repeat: int = 1) -> dict[str, Any]:
        """Time a look-up in the record index: the keys of a Parquet file; every repetition opens the table anew."""
        wanted = pq.read_table(keys).column(0).to_pylist()
        timings, count = [], 0
        java_keys = self.spark._jvm.java.util.ArrayList()
        for key in wanted:
            java_keys.add(key)
        for _ in range(repeat):
            with Stopwatch(self.spark) as watch:
                reader = hudi_validation.MetadataReader(self.spark, path, {}, local=True, reuse=False)
                count = reader.count_located(java_keys)
            timings.append(watch.seconds)
        return {"count": count, "timings": timings}

    def plan_scan(self, path: str, where: str | None, options: dict[str, str] | None = None, repeat: int = 1) -> dict[str, Any]:
        """Time Spark's planning of a scan: how many files are left, nothing is read."""
        timings: list[dict[str, float]] = []
        selected: list[Any] = []
        for _ in range(repeat):
            with Stopwatch(self.spark) as watch:
                frame = self.spark.read.format("hudi").options(**(options or {})).load(path)
                frame = frame.where(where) if where else frame
                selected = [scan.selectedPartitions() for scan in scans(frame)]
            timings.append(watch.seconds)
        return {"files": sum(folder.files().size() for scan in selected for folder in scan), "timings": timings}


def serve(commands: Commands, answers: Any) -> None:
    """Answer until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        operation: Callable[..., dict[str, Any]] = getattr(commands, request.pop("op"))
        try:
            for name in LEFT_SET:
                commands.spark.conf.unset(name)
            reply = {"ok": True, **operation(**request)}
        except Exception as error:
            traceback.print_exc()
            reply = {"ok": False, "error": _told(error)}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


def _told(error: Exception) -> str:
    """The beginning of an error's text, and of each cause that Java names further down."""
    text = f"{type(error).__name__}: {error}"
    lines = text.splitlines()
    named = [at for at, line in enumerate(lines) if line.startswith("Caused by")]
    return "\n".join([text[:4000], *(line for at in named for line in lines[at : at + 4])])[:10000]


def main() -> None:
    """Keep the real standard output for answers, send everything else to standard error, then serve."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    cores, memory = int(os.environ.get("HUDI_JVM_CORES", "2")), os.environ.get("HUDI_JVM_MEMORY", "1200m")
    commands = Commands(open_session(cores, memory))
    answers.write(json.dumps({"ok": True, **commands.ping()}) + "\n")
    answers.flush()
    serve(commands, answers)
    commands.spark.stop()


if __name__ == "__main__":
    main()
