"""The plan of a clustering as its requested file stores it: which file groups are replaced together, and how rows are sorted.

    HoodieRequestedReplaceMetadata
      operationType  CLUSTER
      clusteringPlan HoodieClusteringPlan
        inputGroups  one a task: slices (fileId, partitionPath, dataFilePath, "" without a base file, deltaFilePaths, the log
                     files; files by absolute URIs), metrics, numOutputFileGroups
        strategy     strategyClassName of what executes it, and strategyParams, the columns to sort by among them
        preserveHoodieMetadata  true: rows keep their commit time

An overwrite stores the same record with nothing in it. Of a file's URI only the last part counts: a table may have been moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudimeta.formats.avro.container import encode_container
from hudimeta.formats.avro.schemas import REQUESTED_REPLACE_METADATA
from hudimeta.storage import join
from hudimeta.table.compaction_plan import PlannedSlice
from hudimeta.table.file_names import parse_base_file, parse_log_file

__all__ = ["PlannedGroup", "StoredClustering", "decode_clustering_plan", "encode_clustering_plan"]

_VERSION = 1


@dataclass(frozen=True)
class PlannedGroup:
    """File slices whose rows are written together, sorted among themselves.

    Attributes:
        slices: Of one partition.
        outputs: How many file groups come of them.
        metrics: What the plan says of sizes, by Hudi's names.
        extra: What a strategy says of the group besides.
    """

    slices: tuple[PlannedSlice, ...]
    outputs: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredClustering:
    """What the requested file of a clustering says.

    Attributes:
        groups: One a task.
        executor: Class name of what executes it.
        parameters: Of that.
        extra: What a strategy says of the plan besides.
    """

    groups: tuple[PlannedGroup, ...]
    executor: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)


def encode_clustering_plan(plan: StoredClustering, root: str) -> bytes:
    """A plan as an Avro container.

    Args:
        plan: What is planned.
        root: Of the table: an absolute path or a URI.
    """
    where = f"file:{root}" if root.startswith("/") else root
    groups = [
        {
            "slices": [_encoded(one, where) for one in group.slices],
            "metrics": dict(group.metrics),
            "numOutputFileGroups": group.outputs,
            "extraMetadata": dict(group.extra) or None,
            "version": _VERSION,
        }
        for group in plan.groups
    ]
    strategy = {"strategyClassName": plan.executor, "strategyParams": dict(plan.parameters), "version": _VERSION}
    stored = {
        "inputGroups": groups,
        "strategy": strategy,
        "extraMetadata": dict(plan.extra),
        "version": _VERSION,
        "preserveHoodieMetadata": True,
        "missingSchedulePartitions": [],
    }
    record = {"operationType": "CLUSTER", "clusteringPlan": stored, "extraMetadata": {}, "version": _VERSION}
    return encode_container(REQUESTED_REPLACE_METADATA, [record])


def _encoded(one: PlannedSlice, where: str) -> dict[str, Any]:
    folder = join(where, one.partition_path)
    return {
        "dataFilePath": f"{folder}/{one.base_file}" if one.base_file else "",
        "deltaFilePaths": [f"{folder}/{name}" for name in one.log_files],
        "fileId": one.file_id,
        "partitionPath": one.partition_path,
        "bootstrapFilePath": "",
        "version": _VERSION,
    }


def decode_clustering_plan(record: Mapping[str, Any]) -> StoredClustering:
    """What a requested file says.

    Args:
        record: As `Timeline.plan` decodes it; {}, or that of an overwrite, names no groups.
    """
    plan = record.get("clusteringPlan") or {}
    strategy = plan.get("strategy") or {}
    groups = tuple(
        PlannedGroup(
            tuple(_decoded(one) for one in group["slices"] or ()),
            group.get("numOutputFileGroups") or 1,
            group.get("metrics") or {},
            group.get("extraMetadata") or {},
        )
        for group in plan.get("inputGroups") or ()
    )
    parameters = {name: text or "" for name, text in (strategy.get("strategyParams") or {}).items()}
    return StoredClustering(groups, strategy.get("strategyClassName") or "", parameters)


def _decoded(one: Mapping[str, Any]) -> PlannedSlice:
    base = _name(one["dataFilePath"] or "") or None
    logs = tuple(_name(path) for path in one["deltaFilePaths"] or ())
    return PlannedSlice(one["partitionPath"] or "", one["fileId"] or "", _began(base, logs), base, logs)


def _began(base: str | None, logs: tuple[str, ...]) -> str:
    """When a slice began, which a clustering's plan does not say: as its base file is named, else as its first log file is."""
    if base is not None:
        file = parse_base_file(base)
        return "" if file is None else file.instant
    return min((log.instant for name in logs if (log := parse_log_file(name)) is not None), default="")


def _name(path: str) -> str:
    return path.rpartition("/")[2]
