"""How Spark's own Parquet reader reads base files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["NO_SKIPPING", "PARQUET_OPTIONS"]

PARQUET_OPTIONS: Final[Mapping[str, str]] = {
    # Hudi's files do not say which calendar they use, and it is the proleptic one.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # Pages carry checksums, which Spark compares only when it is asked to.
    "parquet.page.verify-checksum.enabled": "true",
}
"""Options of a scan; Spark hands them to Parquet as settings of Hadoop."""

NO_SKIPPING: Final = "Spark's own reader cannot leave out damaged files and tell so, which hudimeta.read.corrupt=skip asks for"
"""Why a read goes through the Python source."""
