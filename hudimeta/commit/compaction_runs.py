"""Runs of planned compactions: who runs one leaves a note, by which others know that its files are ours to delete.

The plan of a compaction waits until somebody runs it, and Apache Hudi lets that be a process of its own, beside the writers. So
a writer must not touch what belongs to a pending compaction unless the run was ours and its process is dead. The note lies with
staged rows, where Apache Hudi keeps nothing.
"""

from __future__ import annotations

from hudimeta.commit.liveness import Heartbeat
from hudimeta.commit.markers import files_of_write, marker_folder, staging_folder
from hudimeta.metadata.rollback import take_back_delta
from hudimeta.storage import Storage, join
from hudimeta.timeline import TimelineWriter
from hudimeta.types import Action, State

__all__ = ["is_ours", "note", "take_back"]


def _note_of(instant: str) -> str:
    return join(staging_folder(instant), "compaction")


def note(storage: Storage, instant: str) -> None:
    """Say that a process of ours runs a compaction; before it writes anything."""
    storage.put(_note_of(instant), b"")


def is_ours(storage: Storage, instant: str) -> bool:
    """True when a process of ours began to run a compaction and did not complete it."""
    return storage.stat(_note_of(instant)) is not None


def take_back(storage: Storage, folder: str, instant: str) -> None:
    """Delete what a dead run of ours wrote; its plan waits for the next run. The caller holds the table lock.

    The inflight file goes last: without it nobody looks for the rest.

    Args:
        storage: Rooted at the table.
        folder: Of the timeline.
        instant: Of the compaction.
    """
    take_back_delta(storage, instant)
    for path in files_of_write(storage, instant) or ():
        storage.delete(path)
    Heartbeat(storage, instant).stop()
    storage.delete_folder(marker_folder(instant))
    storage.delete_folder(staging_folder(instant))
    TimelineWriter(storage, folder).delete_pending(instant, Action.COMPACTION, State.INFLIGHT)
