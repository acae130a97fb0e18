"""Runs of planned services: who runs one leaves a note, by which others know that its files are ours to delete.

The plan of a compaction or a clustering waits until somebody runs it, and Apache Hudi lets that be a process of its own, beside
the writers. So a writer must not touch what belongs to a pending one unless the run was ours and its process is dead. The note
lies with staged rows, where Apache Hudi keeps nothing.
"""

from __future__ import annotations

from hudimeta.commit.liveness import Heartbeat
from hudimeta.commit.markers import files_of_write, marker_folder, staging_folder
from hudimeta.metadata.rollback import take_back_delta
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import delete_files
from hudimeta.timeline import TimelineWriter
from hudimeta.types import Action, Instant, State

__all__ = ["ACTIONS", "is_ours", "note", "take_back"]

ACTIONS = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)
"""The services whose runs write data files."""


def _note_of(instant: str, action: Action) -> str:
    return join(staging_folder(instant), action.value)


def note(storage: Storage, instant: str, action: Action) -> None:
    """Say that a process of ours runs a service; before it writes anything."""
    storage.put(_note_of(instant, action), b"")


def is_ours(storage: Storage, run: Instant) -> bool:
    """True when a process of ours began to run a service and did not complete it."""
    return storage.is_file(_note_of(run.time, run.action))


def take_back(storage: Storage, folder: str, run: Instant) -> None:
    """Delete what a dead run of ours wrote; its plan waits for the next run. The caller holds the table lock.

    The inflight file goes last: without it nobody looks for the rest.

    Args:
        storage: Rooted at the table.
        folder: Of the timeline.
        run: The pending service.
    """
    take_back_delta(storage, run.time)
    delete_files(storage, files_of_write(storage, run.time) or ())
    Heartbeat(storage, run.time).stop()
    storage.delete_folder(marker_folder(run.time))
    storage.delete_folder(staging_folder(run.time))
    TimelineWriter(storage, folder).delete_pending(run.time, run.action, State.INFLIGHT)
