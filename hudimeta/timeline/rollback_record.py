"""The two records of a rollback: the plan in its requested file, the outcome in its completed one; paths are absolute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hudimeta.formats.avro.container import container_entries, encode_container
from hudimeta.formats.avro.schemas import ROLLBACK_METADATA, ROLLBACK_PLAN
from hudimeta.storage import join
from hudimeta.types import Action

__all__ = [
    "FilesByPartition",
    "encode_rollback_metadata",
    "encode_rollback_plan",
    "is_own_rollback",
    "rollback_record",
    "rollback_target",
    "taken_back",
]

FilesByPartition = Mapping[str, Sequence[str]]
"""Partition path -> file names."""

_OWN = {"hudimeta.made.by": "hudimeta"}
"""Entry of the container in which we record a rollback."""


def encode_rollback_plan(root: str, instant: str, action: Action, files: FilesByPartition) -> bytes:
    """The plan to take `instant` back by deleting `files` below `root`: an Avro container of HoodieRollbackPlan."""
    requests = [
        {
            "partitionPath": partition,
            "fileId": "",
            "latestBaseInstant": "",
            "filesToBeDeleted": [f"{root}/{join(partition, name)}"],
            "logBlocksToBeDeleted": {},
        }
        for partition, names in files.items()
        for name in names
    ]
    undone = {"commitTime": instant, "action": action.value}
    return encode_container(ROLLBACK_PLAN, [{"instantToRollback": undone, "RollbackRequests": requests, "version": 1}])


def encode_rollback_metadata(
    root: str, rollback_time: str, instant: str, action: Action, deleted: FilesByPartition, took_ms: int = 0
) -> bytes:
    """What the rollback at `rollback_time` deleted: an Avro container of HoodieRollbackMetadata."""
    record = rollback_record(root, rollback_time, instant, action, deleted, took_ms)
    return encode_container(ROLLBACK_METADATA, [record], entries=_OWN)


def rollback_record(
    root: str, rollback_time: str, instant: str, action: Action, deleted: FilesByPartition, took_ms: int = 0
) -> dict[str, Any]:
    """The same as a record of HoodieRollbackMetadata."""
    partitions = {
        partition: {
            "partitionPath": partition,
            "successDeleteFiles": [f"{root}/{join(partition, name)}" for name in names],
            "failedDeleteFiles": [],
            "rollbackLogFiles": {},
            "logFilesFromFailedCommit": {},
        }
        for partition, names in deleted.items()
    }
    return {
        "startRollbackTime": rollback_time,
        "timeTakenInMillis": took_ms,
        "totalFilesDeleted": sum(len(names) for names in deleted.values()),
        "commitsRollback": [instant],
        "partitionMetadata": partitions,
        "version": 1,
        "instantsRollback": [{"commitTime": instant, "action": action.value}],
    }


def rollback_target(plan: Mapping[str, Any]) -> tuple[str, Action] | None:
    """What the plan of a rollback is going to take back: its requested time and action; None where it does not say."""
    undone = plan.get("instantToRollback")
    return (undone["commitTime"], Action(undone["action"])) if undone else None


def taken_back(record: Mapping[str, Any]) -> frozenset[tuple[str, Action]]:
    """What the completed record of a rollback or restore names: requested times, and actions as completed files have them."""
    infos = record.get("instantsRollback") or record.get("restoreInstantInfo") or ()
    return frozenset((info["commitTime"], Action(info["action"]).completed_as) for info in infos)


def is_own_rollback(data: bytes, path: str) -> bool:
    """Whether we recorded a rollback, of which `data` is the completed file: those took it out of every index.

    Raises:
        CorruptFileError: The file is damaged.
    """
    return bool(data) and _OWN.keys() <= container_entries(data, path).keys()
