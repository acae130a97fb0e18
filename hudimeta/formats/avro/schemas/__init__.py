"""Hudi's own Avro records, field by field and in the order that the files embed, without their documentation texts."""

from __future__ import annotations

from hudimeta.formats.avro.schemas.archive import LSM_TIMELINE_INSTANT
from hudimeta.formats.avro.schemas.bootstrap import (
    BOOTSTRAP_FILE_PARTITION_INFO,
    BOOTSTRAP_INDEX_INFO,
    BOOTSTRAP_PARTITION_METADATA,
)
from hudimeta.formats.avro.schemas.cdc import CDC_KEY_ONLY, cdc_with_before, cdc_with_before_and_after
from hudimeta.formats.avro.schemas.commit import COMMIT_METADATA, REPLACE_COMMIT_METADATA, RUNTIME_STATS, WRITE_STAT
from hudimeta.formats.avro.schemas.deletes import DELETE_RECORD_LIST, DELETE_RECORD_LIST_1_0
from hudimeta.formats.avro.schemas.plans import (
    CLEAN_METADATA,
    CLEANER_PLAN,
    CLUSTERING_PLAN,
    COMPACTION_PLAN,
    INDEX_COMMIT_METADATA,
    INDEX_PLAN,
    REQUESTED_REPLACE_METADATA,
)
from hudimeta.formats.avro.schemas.rollback import (
    RESTORE_METADATA,
    RESTORE_PLAN,
    ROLLBACK_METADATA,
    ROLLBACK_PLAN,
    SAVEPOINT_METADATA,
)

__all__ = [
    "BOOTSTRAP_FILE_PARTITION_INFO",
    "BOOTSTRAP_INDEX_INFO",
    "BOOTSTRAP_PARTITION_METADATA",
    "CDC_KEY_ONLY",
    "CLEANER_PLAN",
    "CLEAN_METADATA",
    "CLUSTERING_PLAN",
    "COMMIT_METADATA",
    "COMPACTION_PLAN",
    "DELETE_RECORD_LIST",
    "DELETE_RECORD_LIST_1_0",
    "INDEX_COMMIT_METADATA",
    "INDEX_PLAN",
    "LSM_TIMELINE_INSTANT",
    "REPLACE_COMMIT_METADATA",
    "REQUESTED_REPLACE_METADATA",
    "RESTORE_METADATA",
    "RESTORE_PLAN",
    "ROLLBACK_METADATA",
    "ROLLBACK_PLAN",
    "RUNTIME_STATS",
    "SAVEPOINT_METADATA",
    "WRITE_STAT",
    "cdc_with_before",
    "cdc_with_before_and_after",
]
