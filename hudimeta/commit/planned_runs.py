"""Services that were planned on the timeline, each run by one process at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from hudimeta.commit import compaction_runs
from hudimeta.commit.liveness import Heartbeat, is_alive
from hudimeta.commit.locks.protocol import TableLock
from hudimeta.errors import CommitError, CorruptFileError, StorageError
from hudimeta.storage import Storage, join
from hudimeta.table.properties import TableProperties
from hudimeta.timeline import Timeline
from hudimeta.timeline.naming import pending_name
from hudimeta.types import Action, Instant, State

__all__ = ["running"]


@contextlib.contextmanager
def running(
    storage: Storage, properties: TableProperties, lock: TableLock, instant: str, action: Action
) -> Iterator[tuple[Timeline, Instant]]:
    """Run a planned service alone: two processes that ran one plan would delete and replace each other's files.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        lock: The table's lock.
        instant: Of the plan.
        action: Its pending word.

    Yields:
        The timeline, and the pending instant on it.

    Raises:
        CommitError: There is no such plan, or another process is running it.
        CorruptFileError: The file of the plan is empty.
    """
    word = action.value
    with contextlib.ExitStack() as held:
        with lock.held():
            timeline = properties.load_timeline(storage)
            found = timeline.get(instant, action)
            if found is None or found.is_completed or found.action is not action:
                raise CommitError(f"there is no pending {word} at {instant}", "See t.timeline for what is pending.")
            requested = join(timeline.folder, pending_name(instant, action, State.REQUESTED))
            if not timeline.plan(found):
                hint = "Restore it from a copy; or delete it and the inflight file beside it, and the next run plans anew."
                raise CorruptFileError(requested, 0, f"the plan of a {word}", "an empty file", hint)
            if is_alive(storage, instant, requested):
                raise CommitError(
                    f"{word} {instant} is being run by another process", "Wait for its end; if it dies, run it again."
                )
            guard = storage.guard(requested)
            beat = Heartbeat(storage, instant)
            if guard is None:
                held.callback(_stop, beat)
            held.enter_context(guard if guard is not None else beat.beating())
            if action is Action.COMPACTION:
                compaction_runs.note(storage, instant)
        yield timeline, found


def _stop(beat: Heartbeat) -> None:
    """The run is over, however it ended: what is left of the heartbeat only delays others."""
    with contextlib.suppress(StorageError):
        beat.stop()
