"""The plan of a compaction as its requested file stores it: which file slices are merged, in data and in metadata tables.

    HoodieCompactionPlan, of a compaction and of a log compaction
      operations    one a file slice: fileId, partitionPath, baseInstantTime, dataFilePath (the base file, null without),
                    deltaFilePaths (the log files, oldest first) and metrics; files by their bare names
      version       2
      strategy, preserveHoodieMetadata   null and false; of a log compaction Hudi's name of what runs it, and true

Older writers store whole paths, of which only the last part counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hudimeta.formats.avro.container import encode_container
from hudimeta.formats.avro.schemas import COMPACTION_PLAN

__all__ = ["PlannedSlice", "decode_compaction_plan", "encode_compaction_plan"]

_VERSION = 2
_LOG_STRATEGY = {
    "compactorClassName": "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper",
    "strategyParams": {},
    "version": 1,
}


@dataclass(frozen=True)
class PlannedSlice:
    """A file slice that a compaction merges.

    Attributes:
        partition_path: Of its file group.
        file_id: Of its file group.
        base_instant: At which the slice began.
        base_file: Name of its base file; None for a slice of log files only.
        log_files: Their names, oldest first.
        metrics: What the plan says of sizes, by Hudi's names.
    """

    partition_path: str
    file_id: str
    base_instant: str
    base_file: str | None
    log_files: tuple[str, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)


def encode_compaction_plan(slices: Iterable[PlannedSlice], *, of_logs: bool = False) -> bytes:
    """A plan as an Avro container.

    Args:
        slices: What it names.
        of_logs: Their logs alone are merged.
    """
    operations = [
        {
            "baseInstantTime": one.base_instant,
            "deltaFilePaths": list(one.log_files),
            "dataFilePath": one.base_file,
            "fileId": one.file_id,
            "partitionPath": one.partition_path,
            "metrics": dict(one.metrics),
            "bootstrapFilePath": None,
        }
        for one in slices
    ]
    record = {
        "operations": operations,
        "extraMetadata": {},
        "version": _VERSION,
        "strategy": _LOG_STRATEGY if of_logs else None,
        "preserveHoodieMetadata": of_logs,
        "missingSchedulePartitions": [],
    }
    return encode_container(COMPACTION_PLAN, [record])


def decode_compaction_plan(record: Mapping[str, Any]) -> tuple[PlannedSlice, ...]:
    """The slices that a plan names.

    Args:
        record: As `Timeline.plan` decodes it; {} names none.
    """
    return tuple(
        PlannedSlice(
            operation["partitionPath"] or "",
            operation["fileId"] or "",
            operation["baseInstantTime"] or "",
            _name(operation["dataFilePath"]) if operation["dataFilePath"] else None,
            tuple(_name(path) for path in operation["deltaFilePaths"] or ()),
            operation.get("metrics") or {},
        )
        for operation in record.get("operations") or ()
    )


def _name(path: str) -> str:
    return path.rpartition("/")[2]
