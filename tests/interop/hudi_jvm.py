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
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hudi_validation
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.java_gateway import JavaClass
from pyspark.sql import DataFrame, SparkSession

WRITE_DEFAULTS = {
    "hoodie.metadata.enable": "true",
    "hoodie.embed.timeline.server": "false",  # markers go to storage, where the other writer looks for them
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
    "hoodie.parquet.compression.codec": "zstd",
}

INDEX_SWITCHES = {
    "column_stats": "hoodie.metadata.index.column.stats.enable",
    "partition_stats": "hoodie.metadata.index.partition.stats.enable",
    "bloom_filters": "hoodie.metadata.index.bloom.filter.enable",
    "record_index": "hoodie.metadata.record.index.enable",
}

LEFT_SET = (
    "spark.sql.parquet.filterPushdown",
    "spark.sql.parquet.recordLevelFilter.enabled",
    "spark.sql.parquet.enableVectorizedReader",
)
"""What some of Hudi's relations (of change data, of bootstrapped tables) set in the session and leave so. Parquet's own filter
of records, which only reads rows one by one, then takes -0.0 for another number than 0.0, and later reads lose rows."""


def open_session(cores: int, memory: str) -> SparkSession:
    """A small session with Hudi's extensions. HUDI_BUNDLE names the jar.

    The jar goes on the class path of driver and executors: through `spark.jars` it lands in a second class loader, and
    some writes then fail to cast a class to itself.
    """
    jar, scratch = os.environ["HUDI_BUNDLE"], tempfile.mkdtemp(prefix="hudi-jvm-")
    builder = SparkSession.builder.master(f"local[{cores}]").appName("Apache Hudi")
    settings = {
        "spark.driver.extraClassPath": jar,
        "spark.executor.extraClassPath": jar,
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Djol.skipHotspotSAAttach=true -Duser.timezone=UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.legacy.allowHashOnMapType": "true",  # checksums over whole rows
        "spark.sql.shuffle.partitions": "4",
        "spark.default.parallelism": "2",
        "spark.sql.warehouse.dir": scratch + "/warehouse",
        "spark.local.dir": scratch,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def table_properties(path: str) -> dict[str, str]:
    """`hoodie.properties` of a table; empty when there is no table yet."""
    file = Path(path, ".hoodie", "hoodie.properties")
    lines = file.read_text().splitlines() if file.is_file() else []
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip().replace("\\:", ":") for key, value in pairs}


def index_options(path: str) -> dict[str, str]:
    """What a Java writer must be told so that it maintains the table's indexes: it *drops* those that its options leave out."""
    present = table_properties(path).get("hoodie.table.metadata.partitions", "").split(",")
    options = {switch: "true" for name, switch in INDEX_SWITCHES.items() if name in present}
    if any(name.startswith("secondary_index_") for name in present):
        options["hoodie.metadata.index.secondary.enable"] = "true"
    if any(name.startswith("expr_index_") for name in present):
        options["hoodie.metadata.index.expression.enable"] = "true"
    return options


class Commands:
    """The operations; each method takes the command's fields as keywords and returns the answer's fields."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def ping(self) -> dict[str, Any]:
        """Who answers."""
        java = self.spark._jvm.System.getProperty("java.version")
        return {"spark": self.spark.version, "java": java, "jvm": self.spark.sparkContext._gateway.proc.pid}

    def write(self, path: str, rows: str, options: dict[str, str], mode: str = "append") -> dict[str, Any]:
        """Write the rows of a Parquet file. The table's own indexes are switched on beneath `options`."""
        frame = self.spark.read.parquet(rows)
        settings = {**WRITE_DEFAULTS, **index_options(path), **options}
        with _Stopwatch(self.spark) as watch:
            frame.write.format("hudi").options(**settings).mode(mode).save(path)
        return {"timings": [watch.seconds]}

    def stream(self, path: str, folder: str, progress: str, options: dict[str, str]) -> dict[str, Any]:
        """Write each Parquet file of a folder as one batch of a stream, from where the stream stands by its `progress`."""
        source = self.spark.readStream.schema(self.spark.read.parquet(folder).schema)
        rows = source.option("maxFilesPerTrigger", 1).parquet(folder)
        sink = rows.writeStream.format("hudi").options(**{**WRITE_DEFAULTS, **options}).option("checkpointLocation", progress)
        sink.outputMode("append").trigger(availableNow=True).start(path).awaitTermination()
        return {}

    def write_parquet(self, path: str, rows: str, partition_by: list[str], codec: str) -> dict[str, Any]:
        """The same rows as plain Parquet: what Spark itself needs for them."""
        frame = self.spark.read.parquet(rows)
        with _Stopwatch(self.spark) as watch:
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
    ) -> dict[str, Any]:
        """Read rows into an Arrow file; `files_read` is the scan's own count of files after all pruning.

        Without `out` rows go nowhere (Spark's noop sink) or are only counted, `repeat` times, each timed: for measuring.
        """
        timings = []
        answer: dict[str, Any] = {}
        for _ in range(repeat):
            with _Stopwatch(self.spark) as watch:
                frame = self.spark.read.format("hudi").options(**(options or {})).load(path)
                frame = frame.where(where) if where else frame
                frame = frame.select(*columns) if columns else frame
                if count:
                    answer = {"rows": frame.count()}
                elif out is None:
                    frame.write.format("noop").mode("overwrite").save()
                else:
                    answer = {"rows": _collect(frame, out), "files_read": _files_read(frame)}
            timings.append(watch.seconds)
        return {**answer, "timings": timings}

    def sql(self, statement: str, out: str | None = None) -> dict[str, Any]:
        """Run one statement; rows of a query go into an Arrow file."""
        with _Stopwatch(self.spark) as watch:
            frame = self.spark.sql(statement)
            rows = _collect(frame, out) if out else len(frame.collect())
        return {"rows": rows, "timings": [watch.seconds]}

    def service(
        self, path: str, name: str, options: dict[str, str] | None = None, instant: str | None = None
    ) -> dict[str, Any]:
        """Run a table service through Hudi's write client; returns the instant, or None when there was nothing to do."""
        with _Stopwatch(self.spark) as watch:
            done = self._service(path, name, options or {}, instant)
        return {**done, "timings": [watch.seconds]}

    def _service(self, path: str, name: str, options: dict[str, str], instant: str | None) -> dict[str, Any]:
        client = self._client(path, options)
        none = self.spark._jvm.org.apache.hudi.common.util.Option.empty()
        try:
            if name == "clean":
                done = client.clean()
                return {"instant": None if done is None else done.getStartCleanTime()}
            if name == "compact":
                planned = client.scheduleCompaction(none)
                if not planned.isPresent():
                    return {"instant": None}
                return self._compact(client, planned.get())
            if name == "run_compaction":
                return self._compact(client, str(instant))
            if name == "cluster":
                planned = client.scheduleClustering(none)
                if not planned.isPresent():
                    return {"instant": None}
                client.cluster(planned.get(), True)
                return {"instant": planned.get()}
            if name == "archive":
                client.archive()
                return {"instant": None}
            if name == "rollback":
                return {"instant": instant, "done": client.rollback(instant)}
            if name == "rollback_failed":
                return {"done": client.rollbackFailedWrites()}
            if name == "savepoint":
                client.savepoint(instant, "interop", "")
                return {"instant": instant}
            if name == "restore":
                client.restoreToSavepoint(instant)
                return {"instant": instant}
            if name in ("plan_clustering", "plan_compaction", "plan_log_compaction"):
                schedule = {
                    "plan_clustering": client.scheduleClustering,
                    "plan_compaction": client.scheduleCompaction,
                    "plan_log_compaction": client.scheduleLogCompaction,
                }[name]
                planned = schedule(none)
                return {"instant": planned.get() if planned.isPresent() else None}
            if name == "plan_clean":
                planned = client.scheduleTableService(none, self.spark._jvm.org.apache.hudi.common.model.TableServiceType.CLEAN)
                return {"instant": planned.get() if planned.isPresent() else None}
            if name == "run_log_compaction":
                client.logCompact(instant, True)
                return {"instant": instant}
            if name == "run_clustering":
                client.cluster(instant, True)
                return {"instant": instant}
            raise ValueError(f"no service named {name}")
        finally:
            client.close()

    def _compact(self, client: Any, instant: str) -> dict[str, Any]:
        if self._has_own_schema:
            client.compact(instant, True)  # or nobody would complete it
        else:
            client.compact(instant)
        return {"instant": instant}

    def validate(self, path: str) -> dict[str, Any]:
        """What Hudi's own reader of the metadata table says, against storage, footers and rows."""
        return hudi_validation.validate(self.spark, path, index_options(path))

    def plan(self, path: str, what: str, partition: str = "", repeat: int = 1, reuse: bool = False) -> dict[str, Any]:
        """Time one question to the metadata table: `partitions`, `files` (of one partition) or `slices` (of the table).

        The engine context is local, as in a Java program without Spark; every repetition opens the table anew unless
        `reuse` keeps the reader.
        """
        reader = None
        timings, count = [], 0
        for _ in range(repeat):
            with _Stopwatch(self.spark) as watch:
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
            with _Stopwatch(self.spark) as watch:
                reader = hudi_validation.MetadataReader(self.spark, path, {}, local=True, reuse=False)
                count = reader.count_located(java_keys)
            timings.append(watch.seconds)
        return {"count": count, "timings": timings}

    def plan_scan(self, path: str, where: str | None, options: dict[str, str] | None = None, repeat: int = 1) -> dict[str, Any]:
        """Time Spark's planning of a scan: how many files are left, nothing is read."""
        timings: list[dict[str, float]] = []
        selected: list[Any] = []
        for _ in range(repeat):
            with _Stopwatch(self.spark) as watch:
                frame = self.spark.read.format("hudi").options(**(options or {})).load(path)
                frame = frame.where(where) if where else frame
                selected = [scan.selectedPartitions() for scan in _scans(frame)]
            timings.append(watch.seconds)
        return {"files": sum(folder.files().size() for scan in selected for folder in scan), "timings": timings}

    @property
    def _has_own_schema(self) -> bool:
        """True from Hudi 1.2 on, which no longer hands out Avro's schemas and completes no compaction unasked."""
        return isinstance(self.spark._jvm.org.apache.hudi.common.schema.HoodieSchema, JavaClass)

    def _client(self, path: str, options: dict[str, str]) -> Any:
        java = self.spark._jvm
        own = table_properties(path)
        settings = java.java.util.Properties()
        for name, value in {**WRITE_DEFAULTS, **index_options(path), **options}.items():
            settings.setProperty(name, value)
        reader = hudi_validation.MetadataReader(self.spark, path, {})
        resolver = java.org.apache.hudi.common.table.TableSchemaResolver(reader.client)
        if self._has_own_schema:
            schema = resolver.getTableSchema(False).toAvroSchema()
        else:
            schema = resolver.getTableAvroSchema(False)
        config = (
            java.org.apache.hudi.config.HoodieWriteConfig.newBuilder()
            .withPath(path)
            .forTable(own.get("hoodie.table.name", "table"))
            .withSchema(schema.toString())
            .withProperties(settings)
            .build()
        )
        return java.org.apache.hudi.client.SparkRDDWriteClient(reader.context, config)


class _Stopwatch:
    """Wall and CPU seconds of this process and its JVM; the kernel counts CPU in ticks of 10 ms."""

    def __init__(self, spark: SparkSession) -> None:
        self.stat = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/stat")
        self.seconds: dict[str, float] = {}

    def _cpu(self) -> float:
        fields = self.stat.read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()

    def __enter__(self) -> _Stopwatch:
        self.cpu, self.wall = self._cpu(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        wall = time.perf_counter() - self.wall
        self.seconds = {"wall": wall, "cpu": self._cpu() - self.cpu}


def _collect(frame: DataFrame, out: str) -> int:
    batches = frame._collect_as_arrow()
    schema = batches[0].schema if batches else _arrow_schema(frame)
    table = pa.Table.from_batches(batches, schema)
    with pa.OSFile(out, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return int(table.num_rows)


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema)


def _files_read(frame: DataFrame) -> int:
    """Sum of the `number of files read` metrics of the executed plan's file scans."""
    return sum(scan.metrics().get("numFiles").get().value() for scan in _scans(frame))


def _scans(frame: DataFrame) -> Iterator[Any]:
    pending = [frame._jdf.queryExecution().executedPlan()]
    while pending:
        node = pending.pop()
        name = node.getClass().getSimpleName()
        if name == "AdaptiveSparkPlanExec":
            pending.append(node.executedPlan())
        elif name.endswith("QueryStageExec"):
            pending.append(node.plan())
        elif name == "FileSourceScanExec":
            yield node
        children = node.children().iterator()
        while children.hasNext():
            pending.append(children.next())


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
