"""What a query of Apache Hudi's returns, which files it reads, and what it costs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession


class Stopwatch:
    """Wall and CPU seconds of this process and its JVM, bytes that the JVM read and wrote; CPU comes in ticks of 10 ms."""

    def __init__(self, spark: SparkSession) -> None:
        self.jvm = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}")
        self.seconds: dict[str, float] = {}

    def _cpu(self) -> float:
        fields = (self.jvm / "stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()

    def _moved(self) -> dict[str, float]:
        counts = dict(line.split(": ") for line in (self.jvm / "io").read_text().splitlines())
        return {"read": float(counts["rchar"]), "written": float(counts["write_bytes"])}

    def __enter__(self) -> Stopwatch:
        self.moved, self.cpu, self.wall = self._moved(), self._cpu(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        wall = time.perf_counter() - self.wall
        self.seconds = {"wall": wall, "cpu": self._cpu() - self.cpu}
        self.seconds |= {name: count - self.moved[name] for name, count in self._moved().items()}


def collect(frame: DataFrame, out: str) -> int:
    """Write the rows of a DataFrame into an Arrow file; returns how many."""
    batches = frame._collect_as_arrow()
    schema = batches[0].schema if batches else _arrow_schema(frame)
    table = pa.Table.from_batches(batches, schema)
    with pa.OSFile(out, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return int(table.num_rows)


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema)


def files_read(frame: DataFrame) -> int:
    """Sum of the `number of files read` metrics of the executed plan's file scans."""
    return sum(scan.metrics().get("numFiles").get().value() for scan in scans(frame))


def scans(frame: DataFrame) -> Iterator[Any]:
    """The file scans of the executed plan."""
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
