"""Schema of a row of the archived (LSM) timeline, which lies in Parquet files."""

from __future__ import annotations

from hudimeta.formats.avro.schemas.notation import NAMESPACE, optional, record, required

__all__ = ["LSM_TIMELINE_INSTANT"]

LSM_TIMELINE_INSTANT = record(
    "HoodieLSMTimelineInstant",
    optional("instantTime", "string"),
    optional("completionTime", "string"),
    optional("action", "string"),
    optional("metadata", "bytes"),
    optional("plan", "bytes"),
    required("version", "int", default=1),
    namespace=NAMESPACE,
)
"""One archived instant; `metadata` and `plan` are the bytes of the files it had on the active timeline."""
