"""hudimeta's plain door in Spark as a reader that the recorded answers can judge: nothing but options on `spark.read`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession


def read(path: str, kind: str, options: dict[str, Any]) -> pa.Table:
    """Rows of one query, through the active Spark session. Arguments as in `tests.conformance.reader.read`."""
    reader = SparkSession.builder.getOrCreate().read.format("hudimeta")
    for name, value in ((options.get("record") or {}).get("read_options") or {}).items():
        reader = reader.option(name, value)
    for name, value in query_options(kind, options).items():
        reader = reader.option(name, value)
    return reader.load(path).toArrow()


def query_options(kind: str, options: dict[str, Any]) -> dict[str, str]:
    """What a user writes for one kind of query. Raises NotImplementedError for a kind that Spark's reader has not."""
    if kind == "snapshot":
        return {}
    if kind == "as_of":
        return {"as.of.instant": options["instant"]}
    if kind == "filter":
        return {"hudimeta.filter": options["where"]}
    if kind == "read_optimized":
        return {"hoodie.datasource.query.type": "read_optimized"}
    if kind in ("incremental", "cdc"):
        bounds = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": options["start"],
            # Recorded ranges reach into archived timelines, of which Apache Hudi answers what the table still has.
            "hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true",
        }
        if options.get("end") is not None:
            bounds["hoodie.datasource.read.end.instanttime"] = options["end"]
        if kind == "cdc":
            bounds["hoodie.datasource.query.incremental.format"] = "cdc"
        return bounds
    raise NotImplementedError(kind)
