"""Schemas of the bootstrap index: which source file stands behind a skeleton base file."""

from __future__ import annotations

from typing import Any

from hudimeta.formats.avro.schemas.notation import NAMESPACE, map_of, optional, record, version

__all__ = ["BOOTSTRAP_FILE_PARTITION_INFO", "BOOTSTRAP_INDEX_INFO", "BOOTSTRAP_PARTITION_METADATA"]

_PERMISSION = record(
    "HoodieFSPermission",
    version(),
    optional("userAction", "string"),
    optional("groupAction", "string"),
    optional("otherAction", "string"),
    optional("stickyBit", "boolean"),
)


def _file_status() -> dict[str, Any]:
    return record(
        "HoodieFileStatus",
        version(),
        optional("path", record("HoodiePath", version(), optional("uri", "string"))),
        optional("length", "long"),
        optional("isDir", "boolean"),
        optional("blockReplication", "int"),
        optional("blockSize", "long"),
        optional("modificationTime", "long"),
        optional("accessTime", "long"),
        optional("permission", _PERMISSION),
        optional("owner", "string"),
        optional("group", "string"),
        optional("symlink", "HoodiePath"),
    )


BOOTSTRAP_FILE_PARTITION_INFO = record(
    "HoodieBootstrapFilePartitionInfo",
    version(),
    optional("bootstrapPartitionPath", "string"),
    optional("bootstrapFileStatus", _file_status()),
    optional("partitionPath", "string"),
    namespace=NAMESPACE,
)
"""Value of the index by file id; a container file of its own within the HFile."""

BOOTSTRAP_PARTITION_METADATA = record(
    "HoodieBootstrapPartitionMetadata",
    version(),
    optional("bootstrapPartitionPath", "string"),
    optional("partitionPath", "string"),
    optional("fileIdToBootstrapFile", map_of(_file_status())),
    namespace=NAMESPACE,
)
"""Value of the index by partition."""

BOOTSTRAP_INDEX_INFO = record(
    "HoodieBootstrapIndexInfo",
    version(),
    optional("bootstrapBasePath", "string"),
    optional("createdTimestamp", "long"),
    optional("numKeys", "int"),
    namespace=NAMESPACE,
)
"""`INDEX_INFO` in the file info of both index files."""
