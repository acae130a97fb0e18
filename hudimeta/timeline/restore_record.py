"""The records of a restore: the plan in its requested file, the outcome in its completed one; and what is undone meanwhile.

From the moment at which the plan of a restore is on the timeline, what it names does not count any more, whether its files are
still there or not: a restore that is under way, or died, shows the table as it will be. So does a rollback of a completed
write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.formats.avro.container import container_entries, encode_container
from hudimeta.formats.avro.schemas import RESTORE_METADATA, RESTORE_PLAN
from hudimeta.timeline.rollback_record import FilesByPartition, rollback_record, rollback_target
from hudimeta.types import Action, Instant

__all__ = [
    "RestoreRecord",
    "being_undone",
    "decode_restore_plan",
    "encode_restore_metadata",
    "encode_restore_plan",
    "is_own_restore",
]

_PLAN_VERSION = 2
_OWN = {"hudimeta.made.by": "hudimeta"}
"""Entry of the container in which we record a restore."""


@dataclass(frozen=True)
class RestoreRecord:
    """What the plan of a restore says.

    Attributes:
        point: Requested time of the write that stays the newest.
        instants: Requested time and action of what goes, the newest first.
    """

    point: str
    instants: tuple[tuple[str, Action], ...]

    @property
    def times(self) -> tuple[str, ...]:
        """Requested times of what goes."""
        return tuple(time for time, _ in self.instants)


class _Listed(Protocol):
    """What is asked of a timeline here."""

    instants: tuple[Instant, ...]

    def plan(self, instant: Instant) -> Mapping[str, Any]: ...


def encode_restore_plan(plan: RestoreRecord) -> bytes:
    """As the Avro container in a requested file."""
    infos = [{"commitTime": time, "action": action.value} for time, action in plan.instants]
    record = {"instantsToRollback": infos, "version": _PLAN_VERSION, "savepointToRestoreTimestamp": plan.point}
    return encode_container(RESTORE_PLAN, [record], entries=_OWN)


def decode_restore_plan(record: Mapping[str, Any]) -> RestoreRecord:
    """From the record in a requested file; of an empty file there is nothing to undo."""
    infos = record.get("instantsToRollback") or ()
    point = record.get("savepointToRestoreTimestamp") or ""
    return RestoreRecord(point, tuple((info["commitTime"], Action(info["action"])) for info in infos))


def encode_restore_metadata(
    root: str, time: str, took_ms: int, plan: RestoreRecord, deleted: Mapping[str, FilesByPartition]
) -> bytes:
    """What a restore did, as the Avro container in its completed file.

    Args:
        root: Of the table.
        time: Of the restore.
        took_ms: Milliseconds.
        plan: What it undid.
        deleted: By requested time of what was undone, names of the deleted files by partition path.
    """
    undone = {
        instant: [rollback_record(root, time, instant, action, deleted.get(instant, {}))] for instant, action in plan.instants
    }
    record = {
        "startRestoreTime": time,
        "timeTakenInMillis": took_ms,
        "instantsToRollback": list(plan.times),
        "hoodieRestoreMetadata": undone,
        "version": 1,
        "restoreInstantInfo": [{"commitTime": instant, "action": action.value} for instant, action in plan.instants],
    }
    return encode_container(RESTORE_METADATA, [record], entries=_OWN)


def is_own_restore(data: bytes, path: str) -> bool:
    """Whether we recorded a restore, of which `data` is the completed file: those take back what they undo out of every index.

    Raises:
        CorruptFileError: The file is damaged.
    """
    return bool(data) and _OWN.keys() <= container_entries(data, path).keys()


def being_undone(timeline: _Listed) -> tuple[Instant, ...]:
    """Instants that a pending restore names, and completed ones that a pending rollback takes back.

    One request for each, of which timelines in good health have none.
    """
    pending = [i for i in timeline.instants if not i.is_completed]
    restores = [i for i in pending if i.action is Action.RESTORE]
    rollbacks = [i for i in pending if i.action is Action.ROLLBACK]
    named = {named for restore in restores for named in _named_by(timeline, restore)}
    taken_back = {named for rollback in rollbacks for named in _named_by(timeline, rollback)}
    if not named and not taken_back:
        return ()
    writes = [(i, (i.time, i.action.completed_as)) for i in timeline.instants if i.action.writes_data]
    return tuple(i for i, own in writes if own in named or (i.is_completed and own in taken_back))


def _named_by(timeline: _Listed, undoing: Instant) -> Iterable[tuple[str, Action]]:
    try:
        plan = timeline.plan(undoing)
    except NotFound:  # completed or taken back since the listing
        return ()
    except CorruptFileError:
        if undoing.action is Action.RESTORE:
            raise
        return ()  # a rollback that was torn as it began has taken nothing back; whoever is to finish it says so
    if undoing.action is Action.RESTORE:
        return [(time, action.completed_as) for time, action in decode_restore_plan(plan).instants]
    target = rollback_target(plan)
    return () if target is None else [(target[0], target[1].completed_as)]
