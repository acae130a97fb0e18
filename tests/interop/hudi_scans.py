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
    """Wall and CPU seconds of this process and its JVM; the kernel counts CPU in ticks of 10 ms."""

    def __init__(self, spark: SparkSession) -> None:
        self.stat = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/stat")
        self.seconds: dict[str, float] = {}

    def _cpu(self) -> float:
        fields = self.stat.read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()

    def __enter__(self) -> Stopwatch:
        self.cpu, self.wall = self._cpu(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        wall = time.perf_counter() - self.wall
        self.seconds = {"wall": wall, "cpu": self._cpu() - self.cpu}


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
