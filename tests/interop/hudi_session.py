"""The session of Spark 3.5 in which Apache Hudi runs, and what its writers must be told besides a test's own options."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

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


FLAGS = "-XX:+UseSerialGC -Djol.skipHotspotSAAttach=true -Duser.timezone=UTC"


def open_session(cores: int, memory: str) -> SparkSession:
    """A small session with Hudi's extensions. HUDI_BUNDLE names the jar, HUDI_JVM_FLAGS more flags for Java.

    The jar goes on the class path of driver and executors: through `spark.jars` it lands in a second class loader, and
    some writes then fail to cast a class to itself.
    """
    jar, scratch = os.environ["HUDI_BUNDLE"], tempfile.mkdtemp(prefix="hudi-jvm-")
    builder = SparkSession.builder.master(f"local[{cores}]").appName("Apache Hudi")
    settings = {
        "spark.driver.extraClassPath": jar,
        "spark.executor.extraClassPath": jar,
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"{FLAGS} {os.environ.get('HUDI_JVM_FLAGS', '')}",
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
