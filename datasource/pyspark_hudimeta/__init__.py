"""Hudi tables in plain PySpark: `spark.read.format("hudimeta")`, with no registration and no JAR.

Spark imports every top-level module whose name begins with `pyspark_` when it meets a format that it does not know, and takes
the module's `DefaultSource`. So this module imports little: whoever asks for *another* unknown format waits for it as well.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from typing import TYPE_CHECKING, Any

from pyspark_hudimeta.spark_version import check_spark, has_data_sources, too_old

if TYPE_CHECKING:
    from pyspark_hudimeta.attached.attachment import attach, detach, last_reports
    from pyspark_hudimeta.hudi_table import HudiTable
    from pyspark_hudimeta.plain.commit_report import last_commit
    from pyspark_hudimeta.spark_engine import SparkEngine
    from pyspark_hudimeta.sql.door import merge_into, sql
    from pyspark_hudimeta.table_functions import register_functions

if not has_data_sources():
    raise ImportError(str(too_old()))
try:
    from pyspark_hudimeta.plain.source import DefaultSource
except Exception:
    # Spark swallows an exception raised here, and the user reads "data source not found": leave a trace of the reason.
    print("hudimeta cannot be used as a Spark data source, because importing it failed:", file=sys.stderr)
    traceback.print_exc()
    raise

__all__ = [
    "DefaultSource",
    "HudiTable",
    "SparkEngine",
    "attach",
    "detach",
    "last_commit",
    "last_reports",
    "merge_into",
    "register_functions",
    "sql",
]

_LATER = {
    "HudiTable": "pyspark_hudimeta.hudi_table",
    "SparkEngine": "pyspark_hudimeta.spark_engine",
    "attach": "pyspark_hudimeta.attached.attachment",
    "detach": "pyspark_hudimeta.attached.attachment",
    "last_commit": "pyspark_hudimeta.plain.commit_report",
    "last_reports": "pyspark_hudimeta.attached.attachment",
    "merge_into": "pyspark_hudimeta.sql.door",
    "register_functions": "pyspark_hudimeta.table_functions",
    "sql": "pyspark_hudimeta.sql.door",
}
"""Where the names are that nobody needs who only reads and writes by format."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        check_spark()
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
