"""What a clean is going to delete, and did delete: the records of its requested and of its completed file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hudimeta.formats.avro.container import encode_container
from hudimeta.formats.avro.schemas import CLEAN_METADATA, CLEANER_PLAN
from hudimeta.reports import Report
from hudimeta.storage import join
from hudimeta.types import Action, Instant, State

if TYPE_CHECKING:
    from hudimeta.timeline.active import Timeline

__all__ = [
    "CleanPlan",
    "being_cleaned",
    "decode_plan",
    "emptied_by",
    "encode_metadata",
    "encode_plan",
    "is_partial",
    "savepoints_of",
]

SAVEPOINTS_KEY = "savepointed_timestamps"
"""Entry of a clean's extraMetadata, Apache Hudi's too: savepointed moments, separated by commas."""

PARTIAL_KEY = "hudimeta.clean.partial"
"""Entry of the extraMetadata of a clean of ours that looked at some partitions alone."""


EMPTIED_KEY = "hudimeta.clean.emptied"
"""Entry of the extraMetadata of a plan of ours: a JSON list of the partitions that have no file afterwards.

The plan's own list of them stays empty: whoever runs the plan in our place, Apache Hudi, deletes the folders of those with all
that is in them, and with that what was written there since.
"""


@dataclass(frozen=True, repr=False)
class CleanPlan(Report):
    """What a clean deletes; prints as a short list.

    Attributes:
        policy: One of the three.
        earliest: Earliest commit whose moment stays readable, None where the policy knows none.
        files: Names of files to delete, by partition path.
        emptied: Partitions that have no file any more afterwards.
        last_commit: Newest completed commit when the plan was made.
        savepoints: Savepointed moments then, whose files stay; a clean after one is given up looks at the whole table.
        partial: Only some partitions were looked at, as options said; the next clean looks at the whole table.
        sources: Of a plan of Apache Hudi the files that a bootstrap describes (`hoodie.clean.delete.bootstrap.base.file`).
    """

    policy: str
    earliest: Instant | None
    files: Mapping[str, tuple[str, ...]]
    emptied: tuple[str, ...]
    last_commit: str
    savepoints: tuple[str, ...] = ()
    partial: bool = False
    sources: tuple[str, ...] = ()

    @property
    def extra(self) -> dict[str, str]:
        """Entries of its extraMetadata."""
        return {SAVEPOINTS_KEY: ",".join(self.savepoints)} | ({PARTIAL_KEY: "true"} if self.partial else {})

    @property
    def n_files(self) -> int:
        """How many files go."""
        return sum(len(names) for names in self.files.values())

    def __str__(self) -> str:
        kept = f", keeping what commits from {self.earliest.time} on need" if self.earliest else ""
        return f"clean {self.n_files:,} files in {len(self.files):,} partitions ({self.policy}{kept})"


def encode_plan(root: str, the_plan: CleanPlan) -> bytes:
    """As the Avro container in the requested file; `root` is the table's own path."""
    earliest = the_plan.earliest
    record: dict[str, Any] = {
        "earliestInstantToRetain": None
        if earliest is None
        else {"timestamp": earliest.time, "action": earliest.action.value, "state": earliest.state.name},
        "lastCompletedCommitTimestamp": the_plan.last_commit,
        "policy": the_plan.policy,
        "filesToBeDeletedPerPartition": {},
        "version": 2,
        "filePathsToBeDeletedPerPartition": {
            partition: [{"filePath": f"{root}/{join(partition, n)}", "isBootstrapBaseFile": False} for n in names]
            for partition, names in the_plan.files.items()
        },
        "partitionsToBeDeleted": [],
        "extraMetadata": the_plan.extra | ({EMPTIED_KEY: json.dumps(the_plan.emptied)} if the_plan.emptied else {}),
    }
    return encode_container(CLEANER_PLAN, [record])


def decode_plan(record: Mapping[str, Any]) -> CleanPlan:
    """From the record in a requested file."""
    earliest = record.get("earliestInstantToRetain")
    files: dict[str, tuple[str, ...]] = {}
    sources: list[str] = []
    for partition, entries in (record["filePathsToBeDeletedPerPartition"] or {}).items():
        own = [entry["filePath"] for entry in entries if not entry.get("isBootstrapBaseFile")]
        sources += [entry["filePath"] for entry in entries if entry.get("isBootstrapBaseFile")]
        if own or not entries:
            files[partition] = tuple(path.rpartition("/")[2] for path in own)
    return CleanPlan(
        record["policy"],
        Instant(earliest["timestamp"], Action(earliest["action"]), State.COMPLETED) if earliest else None,
        files,
        emptied_by(record),
        record["lastCompletedCommitTimestamp"],
        savepoints_of(record),
        is_partial(record),
        tuple(sources),
    )


def being_cleaned(timeline: Timeline) -> Iterator[tuple[str, str]]:
    """Partition path and name of the files that pending cleans delete: each may be there, or not any more.

    No slice of a retained moment has them, but the partition `files` lists them until their clean is completed.
    """
    for instant in timeline.pending:
        if instant.action is Action.CLEAN and (record := timeline.plan(instant)):
            for partition, names in decode_plan(record).files.items():
                yield from ((partition, name) for name in names)


def savepoints_of(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Savepointed moments that a plan, or the metadata of a clean, respected."""
    text = (record.get("extraMetadata") or {}).get(SAVEPOINTS_KEY) or ""
    return tuple(filter(None, text.split(",")))


def emptied_by(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Partitions that have no file when a plan, whoever made it, was run."""
    own = json.loads((record.get("extraMetadata") or {}).get(EMPTIED_KEY) or "[]")
    return (*(record.get("partitionsToBeDeleted") or ()), *own)


def is_partial(record: Mapping[str, Any]) -> bool:
    """True where a clean looked at some partitions alone."""
    return (record.get("extraMetadata") or {}).get(PARTIAL_KEY) == "true"


def encode_metadata(time: str, the_plan: CleanPlan, deleted: int, stated: Mapping[str, str] | None = None) -> bytes:
    """The Avro container in the completed file of a clean.

    Args:
        time: Its instant.
        the_plan: What it went by.
        deleted: How many files were there and are gone.
        stated: More entries of its extraMetadata; None for none.
    """
    record = {
        "startCleanTime": time,
        "timeTakenInMillis": 0,
        "totalFilesDeleted": deleted,
        "earliestCommitToRetain": the_plan.earliest.time if the_plan.earliest else "",
        "lastCompletedCommitTimestamp": the_plan.last_commit,
        "partitionMetadata": {
            partition: {
                "partitionPath": partition,
                "policy": the_plan.policy,
                "deletePathPatterns": list(names),
                "successDeleteFiles": list(names),
                "failedDeleteFiles": [],
                "isPartitionDeleted": partition in the_plan.emptied,
            }
            for partition, names in the_plan.files.items()
        },
        "version": 2,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": {**the_plan.extra, **(stated or {})},
    }
    return encode_container(CLEAN_METADATA, [record])
