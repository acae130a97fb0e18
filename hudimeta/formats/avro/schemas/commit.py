"""Schemas of what a finished write says of itself (`HoodieCommitMetadata`, `HoodieReplaceCommitMetadata`)."""

from __future__ import annotations

from typing import Any

from hudimeta.formats.avro.schemas.notation import NAMESPACE, array_of, map_of, optional, record, version

__all__ = ["COMMIT_METADATA", "REPLACE_COMMIT_METADATA", "RUNTIME_STATS", "WRITE_STAT"]

RUNTIME_STATS = record(
    "HoodieRuntimeStats",
    optional("totalScanTime", "long"),
    optional("totalCreateTime", "long"),
    optional("totalUpsertTime", "long"),
)
"""Milliseconds spent on one file."""

WRITE_STAT = record(
    "HoodieWriteStat",
    optional("fileId", "string"),
    optional("path", "string"),
    optional("prevCommit", "string"),
    optional("numWrites", "long"),
    optional("numDeletes", "long"),
    optional("numUpdateWrites", "long"),
    optional("totalWriteBytes", "long"),
    optional("totalWriteErrors", "long"),
    optional("partitionPath", "string"),
    optional("totalLogRecords", "long"),
    optional("totalLogFiles", "long"),
    optional("totalUpdatedRecordsCompacted", "long"),
    optional("numInserts", "long"),
    optional("totalLogBlocks", "long"),
    optional("totalCorruptLogBlock", "long"),
    optional("totalRollbackBlocks", "long"),
    optional("fileSizeInBytes", "long"),
    optional("logVersion", "int"),
    optional("logOffset", "long"),
    optional("baseFile", "string"),
    optional("logFiles", array_of("string", default=None)),
    optional("cdcStats", map_of("long", default=None)),
    optional("prevBaseFile", "string"),
    optional("minEventTime", "long"),
    optional("maxEventTime", "long"),
    optional("runtimeStats", RUNTIME_STATS),
    optional("totalLogFilesCompacted", "long"),
    optional("totalLogReadTimeMs", "long"),
    optional("totalLogSizeCompacted", "long"),
    optional("tempPath", "string"),
    optional("numUpdates", "long"),
)
"""One file that a write produced."""


def _commit_fields(extra: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        optional("partitionToWriteStats", map_of(array_of(WRITE_STAT))),
        optional("compacted", "boolean"),
        optional("extraMetadata", extra),
        version(),
        optional("operationType", "string"),
    ]


COMMIT_METADATA = record("HoodieCommitMetadata", *_commit_fields(map_of("string", default=None)), namespace=NAMESPACE)
"""Content of `.commit` and `.deltacommit`, and of the inflight file of every write."""

REPLACE_COMMIT_METADATA = record(
    "HoodieReplaceCommitMetadata",
    *_commit_fields(map_of("string")),
    optional("partitionToReplaceFileIds", map_of(array_of("string"))),
    namespace=NAMESPACE,
)
"""Content of `.replacecommit`: commit metadata and the file groups that the write hides."""
