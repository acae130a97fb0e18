"""Schemas of the plans that lie in requested files: compaction, clustering, cleaning, indexing, and of what comes of them."""

from __future__ import annotations

from hudimeta.formats.avro.schemas.notation import NAMESPACE, array_of, map_of, optional, record, required, version

__all__ = [
    "CLEANER_PLAN",
    "CLEAN_METADATA",
    "CLUSTERING_PLAN",
    "COMPACTION_PLAN",
    "INDEX_COMMIT_METADATA",
    "INDEX_PLAN",
    "REQUESTED_REPLACE_METADATA",
]

_STRING_MAP = map_of("string")

COMPACTION_PLAN = record(
    "HoodieCompactionPlan",
    optional(
        "operations",
        array_of(
            record(
                "HoodieCompactionOperation",
                required("baseInstantTime", ["null", "string"]),
                optional("deltaFilePaths", array_of("string")),
                optional("dataFilePath", "string"),
                required("fileId", ["null", "string"]),
                optional("partitionPath", "string"),
                optional("metrics", map_of("double")),
                optional("bootstrapFilePath", "string"),
            )
        ),
    ),
    optional("extraMetadata", _STRING_MAP),
    version(),
    optional(
        "strategy",
        record(
            "HoodieCompactionStrategy",
            optional("compactorClassName", "string"),
            optional("strategyParams", _STRING_MAP),
            version(),
        ),
    ),
    required("preserveHoodieMetadata", ["boolean", "null"], default=False),
    optional("missingSchedulePartitions", array_of("string")),
    namespace=NAMESPACE,
)
"""Content of `.compaction.requested` and `.logcompaction.requested`; files are named without their folders."""

_SLICE_INFO = record(
    "HoodieSliceInfo",
    optional("dataFilePath", "string"),
    optional("deltaFilePaths", array_of("string")),
    required("fileId", ["null", "string"]),
    optional("partitionPath", "string"),
    optional("bootstrapFilePath", "string"),
    version(),
)

_CLUSTERING_GROUP = record(
    "HoodieClusteringGroup",
    optional("slices", array_of(_SLICE_INFO)),
    optional("metrics", map_of("double")),
    required("numOutputFileGroups", ["int", "null"], default=1),
    optional("extraMetadata", _STRING_MAP),
    version(),
)

CLUSTERING_PLAN = record(
    "HoodieClusteringPlan",
    optional("inputGroups", array_of(_CLUSTERING_GROUP)),
    optional(
        "strategy",
        record(
            "HoodieClusteringStrategy",
            optional("strategyClassName", "string"),
            optional("strategyParams", _STRING_MAP),
            version(),
        ),
    ),
    optional("extraMetadata", _STRING_MAP),
    version(),
    optional("preserveHoodieMetadata", "boolean"),
    optional("missingSchedulePartitions", array_of("string")),
)
"""The plan within a clustering's requested file; files are absolute URIs. Version 6 lacks the last field."""

REQUESTED_REPLACE_METADATA = record(
    "HoodieRequestedReplaceMetadata",
    optional("operationType", "string"),
    optional("clusteringPlan", CLUSTERING_PLAN),
    optional("extraMetadata", _STRING_MAP),
    version(),
    namespace=NAMESPACE,
)
"""Content of `.clustering.requested`, and all null of `.replacecommit.requested` of an overwrite."""

CLEANER_PLAN = record(
    "HoodieCleanerPlan",
    optional(
        "earliestInstantToRetain",
        record(
            "HoodieActionInstant",
            required("timestamp", "string"),
            required("action", "string"),
            required("state", "string"),
        ),
    ),
    required("lastCompletedCommitTimestamp", "string", default=""),
    required("policy", "string"),
    optional("filesToBeDeletedPerPartition", map_of(array_of("string"))),
    version(),
    optional(
        "filePathsToBeDeletedPerPartition",
        map_of(
            array_of(
                record(
                    "HoodieCleanFileInfo",
                    optional("filePath", "string"),
                    optional("isBootstrapBaseFile", "boolean"),
                )
            )
        ),
    ),
    optional("partitionsToBeDeleted", array_of("string")),
    optional("extraMetadata", map_of("string", default=None)),
    namespace=NAMESPACE,
)
"""Content of `.clean.requested`; files are full paths, with or without a scheme."""

_CLEAN_PARTITION_METADATA = record(
    "HoodieCleanPartitionMetadata",
    required("partitionPath", "string"),
    required("policy", "string"),
    required("deletePathPatterns", array_of("string")),
    required("successDeleteFiles", array_of("string")),
    required("failedDeleteFiles", array_of("string")),
    optional("isPartitionDeleted", "boolean"),
)

CLEAN_METADATA = record(
    "HoodieCleanMetadata",
    required("startCleanTime", "string"),
    required("timeTakenInMillis", "long"),
    required("totalFilesDeleted", "int"),
    required("earliestCommitToRetain", "string"),
    required("lastCompletedCommitTimestamp", "string", default=""),
    required("partitionMetadata", map_of(_CLEAN_PARTITION_METADATA)),
    version(),
    optional("bootstrapPartitionMetadata", map_of("HoodieCleanPartitionMetadata", default=None)),
    optional("extraMetadata", map_of("string", default=None)),
    namespace=NAMESPACE,
)
"""Content of `.clean`; files are bare names in version 2 of the record."""

_INDEX_PARTITION_INFO = record(
    "HoodieIndexPartitionInfo",
    version(),
    optional("metadataPartitionPath", "string"),
    optional("indexUptoInstant", "string"),
    optional("extraMetadata", _STRING_MAP),
)

INDEX_PLAN = record(
    "HoodieIndexPlan",
    version(),
    optional("indexPartitionInfos", array_of(_INDEX_PARTITION_INFO)),
    namespace=NAMESPACE,
)
"""Content of `.indexing.requested`."""

INDEX_COMMIT_METADATA = record(
    "HoodieIndexCommitMetadata",
    version(),
    optional("operationType", "string"),
    optional("indexPartitionInfos", array_of(_INDEX_PARTITION_INFO)),
    namespace=NAMESPACE,
)
"""Content of `.indexing`."""
