"""The rivals: Apache Hudi, two versions, each in a Java process of its own; hudi-rs; Spark's own Parquet."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.case import apache_of
from benchmarks.job import Absent, Job

if TYPE_CHECKING:
    from tests.interop.apache_hudi import ApacheHudi

HEAP = "6g"
"""Hudi's planning needs 16 KB a file slice; its memory follows the heap it is given."""

READ_OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.enable.data.skipping": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
}


@contextlib.contextmanager
def apache_hudi(job: Job) -> Iterator[ApacheHudi]:
    """A fresh process of Apache Hudi; its peak memory counts for the side. Raises Absent.

    The side's name says which version; Spark's own sides use the Spark of the first.
    """
    from tests.interop.apache_hudi import ApacheHudi, Installation

    version = apache_of(job.side).rsplit(" ", 1)[1]
    installation = Installation.find(version)
    if installation is None:
        raise Absent(f"run `make bench` once, which fetches Apache Hudi {version}")
    with ApacheHudi(installation, memory=HEAP) as process:
        yield process
        job.peak(int(process.about["jvm"]))


def planning(job: Job, path: Path, what: str, partition: str = "", reuse: bool = False) -> int:
    """Ask Apache Hudi's metadata reader, once a round, without Spark's engine context."""
    with apache_hudi(job) as process:
        asked = {"path": str(path), "what": what, "partition": partition, "repeat": job.rounds, "reuse": reuse}
        answer = process.call("plan", timeout=1200, **asked)
    job.add(answer["timings"])
    return int(answer["count"])


def planning_calls(job: Job, path: Path, calls: Mapping[str, str], partition: str) -> dict[str, tuple[int, list[float]]]:
    """Ask one process of Apache Hudi several questions, each once a round; the table and the reader are opened for each.

    Args:
        job: The side.
        path: The table.
        calls: Name to the question as `planning` takes it.
        partition: Of those about one.

    Returns:
        Name to the count, and the seconds of each round.
    """
    found = {}
    with apache_hudi(job) as process:
        for name, what in calls.items():
            answer = process.call("plan", timeout=1200, path=str(path), what=what, partition=partition, repeat=job.rounds)
            found[name] = int(answer["count"]), [float(one["wall"]) for one in answer["timings"]]
            job.add(answer["timings"])
    return found


def hudi_rs(path: Path) -> Any:
    """A table object of hudi-rs. Raises ModuleNotFoundError where it is not installed."""
    from hudi import HudiTableBuilder

    return HudiTableBuilder.from_base_uri(str(path)).build()


@contextlib.contextmanager
def spark_session(job: Job, cores: int = 2) -> Iterator[Any]:
    """A session of the project's own Spark, for its plain Parquet scan and for our source in it. Raises Absent.

    Args:
        job: The side.
        cores: Tasks at a time.
    """
    if not os.environ.get("JAVA_HOME"):
        raise Absent("no JAVA_HOME: run through `make bench`")
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
        job.peak(int(session.sparkContext._gateway.proc.pid))
    finally:
        session.stop()
