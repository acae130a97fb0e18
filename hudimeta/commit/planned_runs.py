"""Services that were planned on the timeline, each run by one process at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from hudimeta.commit import service_runs
from hudimeta.commit.liveness import Heartbeat, builds_an_index, is_alive
from hudimeta.commit.locks.protocol import TableLock
from hudimeta.commit.recovery import Recovery
from hudimeta.errors import CommitError, CorruptFileError, StorageError
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import beside
from hudimeta.table.properties import TableProperties
from hudimeta.timeline import InstantGenerator, Timeline
from hudimeta.timeline.naming import pending_name
from hudimeta.types import Action, Instant, State

__all__ = ["Begun", "begin", "cancel", "idle", "is_being_run", "running"]


@dataclass(frozen=True)
class Begun:
    """A run that has begun, which others see until it is closed.

    Attributes:
        timeline: As it was when the run began.
        planned: The pending instant on it.
        held: What others see the run by.
    """

    timeline: Timeline
    planned: Instant
    held: contextlib.ExitStack

    def __enter__(self) -> tuple[Timeline, Instant]:
        return self.timeline, self.planned

    def __exit__(self, *_: object) -> None:
        self.held.close()


def idle(storage: Storage, timeline: Timeline, instant: str, action: Action, patience_s: float = 0.0) -> Instant:
    """A planned service that no process is running; the caller holds the table lock.

    Args:
        storage: Rooted at the table.
        timeline: As listed under the lock.
        instant: Of the plan.
        action: Its pending word.
        patience_s: See `is_alive`.

    Raises:
        CommitError: There is no such plan, or a process is running it.
    """
    word = action.value
    found = timeline.get(instant, action)
    if found is None or found.is_completed or found.action is not action:
        raise CommitError(f"there is no pending {word} at {instant}", "See t.timeline for what is pending.")
    if is_being_run(storage, timeline, found, patience_s):
        raise CommitError(f"{word} {instant} is being run by another process", "Wait for its end; if it dies, run it again.")
    return found


def is_being_run(storage: Storage, timeline: Timeline, planned: Instant, patience_s: float = 0.0) -> bool:
    """True while a process runs a planned service; `patience_s`: see `is_alive`."""
    requested = join(timeline.folder, pending_name(planned.time, planned.action, State.REQUESTED))
    runs = is_alive(storage, planned.time, requested, patience_s=patience_s)
    return runs or (planned.action is Action.INDEXING and builds_an_index(storage, planned.time, patience_s))


def begin(
    storage: Storage,
    properties: TableProperties,
    instant: str,
    action: Action,
    patience_s: float = 0.0,
    *,
    just_planned: bool = False,
) -> Begun:
    """Begin to run a planned service; the caller holds the table lock.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        instant: Of the plan.
        action: Its pending word.
        patience_s: See `is_alive`.
        just_planned: The caller made the plan since it took the lock, so that nobody can be running it.

    Raises:
        CommitError: There is no such plan, or another process is running it.
        CorruptFileError: The file of the plan is empty.
    """
    timeline = properties.load_timeline(storage)
    own = timeline.get(instant, action) if just_planned else None
    found = own or idle(storage, timeline, instant, action, patience_s)
    requested = join(timeline.folder, pending_name(instant, action, State.REQUESTED))
    if own is None and not timeline.plan(found):
        hint = "Restore it from a copy; or delete it and the inflight file beside it, and the next run plans anew."
        raise CorruptFileError(requested, 0, f"the plan of a {action.value}", "an empty file", hint)
    guard = storage.guard(requested)
    beat = Heartbeat(storage, instant)
    with contextlib.ExitStack() as held:
        if guard is None:
            held.callback(_stop, beat)
        shown = guard if guard is not None else beat.beating()
        beside(lambda: held.enter_context(shown), lambda: timeline.plan(found), storage)  # which the run asks for next
        if action in service_runs.ACTIONS:
            service_runs.note(storage, instant, action)
        return Begun(timeline, found, held.pop_all())


@contextlib.contextmanager
def running(
    storage: Storage, properties: TableProperties, lock: TableLock, instant: str, action: Action, patience_s: float = 0.0
) -> Iterator[tuple[Timeline, Instant]]:
    """Run a planned service alone: two processes that ran one plan would delete and replace each other's files.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        lock: The table's lock.
        instant: Of the plan.
        action: Its pending word.
        patience_s: See `is_alive`.

    Yields:
        The timeline, and the pending instant on it.

    Raises:
        CommitError: There is no such plan, or another process is running it.
        CorruptFileError: The file of the plan is empty.
    """
    with lock.held():
        begun = begin(storage, properties, instant, action, patience_s)
    with begun as run:
        yield run


def cancel(
    storage: Storage,
    properties: TableProperties,
    lock: TableLock,
    times: InstantGenerator,
    instant: str,
    action: Action,
    patience_s: float = 0.0,
) -> None:
    """Take the plan of a service back, with what a run that died wrote.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        lock: The table's lock.
        times: Makes instants.
        instant: Of the plan.
        action: Its pending word.
        patience_s: See `is_alive`.

    Raises:
        CommitError: There is no such plan, or a process is running it.
    """
    with lock.held():
        timeline = properties.load_timeline(storage)
        planned = idle(storage, timeline, instant, action, patience_s)
        partitions = () if planned.state is State.REQUESTED else None
        Recovery(storage, properties, lock, times).undo(timeline, planned, partitions)


def _stop(beat: Heartbeat) -> None:
    """The run is over, however it ended: what is left of the heartbeat only delays others."""
    with contextlib.suppress(StorageError):
        beat.stop()
