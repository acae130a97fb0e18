"""The driver of a write by thousands of tasks: Spark on executors of their own, on this machine.

Each task has a few rows, so that what is measured is what the driver's process does for each of them: counts that come back,
files that are named in the commit, statistics that go to the metadata table. Spark's own JVM is not part of it.
"""

from __future__ import annotations

import functools
import shutil
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import ours
from benchmarks.scale.measured import Phase
from benchmarks.written import COW

__all__ = ["DRIVER"]

ROWS_A_TASK = 10
MASTER = "local-cluster[2, 1, 1024]"
"""Two executors of one core, each a process of its own with so many megabytes."""
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])


@functools.cache
def _session() -> Any:
    """Spark, which lives as long as the process that measures."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.executor.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master(MASTER)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    Finalize(None, _end, (session,), exitpriority=0)  # a process of multiprocessing leaves other hooks out
    return session


def _end(session: Any) -> None:
    """Stop Spark, and remove what its executors had beside it, which Spark leaves there."""
    import pyspark

    folder = Path(pyspark.__file__).with_name("work") / session.sparkContext.applicationId
    session.stop()
    shutil.rmtree(folder, ignore_errors=True)


def _empty(data: Path, _: int) -> Path:
    path = data / "scale-empty"
    if not path.is_dir():
        ours.create(path, SCHEMA, "id", "part", "ts", COW, ["column_stats"])
    return path


def _rows(_: Path, tasks: int) -> Any:
    """A frame of so many partitions; a file of each is the least that its task writes."""
    columns = ("lpad(id, 12, '0') AS id", f"concat('p', id div {ROWS_A_TASK} % 100) AS part", "0L AS ts")
    return _session().range(0, tasks * ROWS_A_TASK, 1, tasks).selectExpr(*columns)


def _write(path: Path, rows: Any) -> object:
    from pyspark_hudimeta import HudiTable

    return HudiTable(_session(), str(path)).bulk_insert(rows)


DRIVER = Phase(
    "driver of a routed write", "tasks", (250, 1000, 5000), _empty, _write, _rows, changes=True, least=5, needs="JAVA_HOME"
)
"""What one process does for the tasks of a write."""
