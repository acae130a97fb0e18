"""Schemas of going back: rollback of one instant, savepoint, restore to a savepoint."""

from __future__ import annotations

from typing import Any

from hudimeta.formats.avro.schemas.notation import NAMESPACE, array_of, map_of, optional, record, required, version

__all__ = ["RESTORE_METADATA", "RESTORE_PLAN", "ROLLBACK_METADATA", "ROLLBACK_PLAN", "SAVEPOINT_METADATA"]

_INSTANT_INFO = record("HoodieInstantInfo", required("commitTime", "string"), required("action", "string"))

ROLLBACK_PLAN = record(
    "HoodieRollbackPlan",
    optional("instantToRollback", _INSTANT_INFO),
    optional(
        "RollbackRequests",
        array_of(
            record(
                "HoodieRollbackRequest",
                required("partitionPath", "string"),
                optional("fileId", "string"),
                optional("latestBaseInstant", "string"),
                required("filesToBeDeleted", array_of("string", default=[]), default=[]),
                optional("logBlocksToBeDeleted", map_of("long")),
            )
        ),
    ),
    version(),
    namespace=NAMESPACE,
)
"""Content of `.rollback.requested`; files are absolute paths. `RollbackRequests` really begins with a capital."""

_ROLLBACK_PARTITION_METADATA = record(
    "HoodieRollbackPartitionMetadata",
    required("partitionPath", "string"),
    required("successDeleteFiles", array_of("string")),
    required("failedDeleteFiles", array_of("string")),
    optional("rollbackLogFiles", map_of("long")),
    optional("logFilesFromFailedCommit", map_of("long")),
)


def _rollback_metadata(**namespace: str) -> dict[str, Any]:
    return record(
        "HoodieRollbackMetadata",
        required("startRollbackTime", "string"),
        required("timeTakenInMillis", "long"),
        required("totalFilesDeleted", "int"),
        required("commitsRollback", array_of("string")),
        required("partitionMetadata", map_of(_ROLLBACK_PARTITION_METADATA)),
        version(),
        required("instantsRollback", array_of(_INSTANT_INFO, default=[]), default=[]),
        **namespace,
    )


ROLLBACK_METADATA = _rollback_metadata(namespace=NAMESPACE)
"""Content of `.rollback`."""

SAVEPOINT_METADATA = record(
    "HoodieSavepointMetadata",
    required("savepointedBy", "string"),
    required("savepointedAt", "long"),
    required("comments", "string"),
    required(
        "partitionMetadata",
        map_of(
            record(
                "HoodieSavepointPartitionMetadata",
                required("partitionPath", "string"),
                required("savepointDataFile", array_of("string")),
            )
        ),
    ),
    version(),
    namespace=NAMESPACE,
)
"""Content of `.savepoint`: by whom, when (epoch milliseconds), why, and the names of the files it keeps."""

RESTORE_PLAN = record(
    "HoodieRestorePlan",
    required("instantsToRollback", array_of(_INSTANT_INFO, default=None), default=[]),
    version(2),
    optional("savepointToRestoreTimestamp", "string"),
    namespace=NAMESPACE,
)
"""Content of `.restore.requested`."""

RESTORE_METADATA = record(
    "HoodieRestoreMetadata",
    required("startRestoreTime", "string"),
    required("timeTakenInMillis", "long"),
    required("instantsToRollback", array_of("string")),
    required("hoodieRestoreMetadata", map_of(array_of(["null", _rollback_metadata()], default=None))),
    version(),
    required("restoreInstantInfo", array_of("HoodieInstantInfo", default=None), default=[]),
    namespace=NAMESPACE,
)
"""Content of `.restore`: per instant what its rollback did."""
