"""How Spark's own Parquet reader reads base files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["NO_SKIPPING", "PARQUET_OPTIONS", "SPARKS_PARQUET"]

PARQUET_OPTIONS: Final[Mapping[str, str]] = {
    # Hudi's files do not say which calendar they use, and it is the proleptic one.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # Pages carry checksums, which Spark compares only when it is asked to.
    "parquet.page.verify-checksum.enabled": "true",
}
"""Options of a scan; Spark hands them to Parquet as settings of Hadoop."""

SPARKS_PARQUET: Final = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
"""Format of a read by Spark's own scan. By the name `parquet`, sessions whose `spark.sql.sources.useV1SourceList` leaves that
out have another reader, which knows nothing of a file's time."""

NO_SKIPPING: Final = "Spark's own reader cannot leave out damaged files and tell so, which hudimeta.read.corrupt=skip asks for"
"""Why a read goes through the Python source."""
