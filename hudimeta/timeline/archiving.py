"""Moving instants from an active timeline to its history; the caller has decided which, and holds the table lock.

The history is written first, then the instants' files go: pending ones, then completed ones, the oldest first, so that whatever
is left of them is never older than something that is missing. A run that died is finished by the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hudimeta.errors import NotFound
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import delete_files
from hudimeta.timeline.active import Timeline
from hudimeta.timeline.history_writer import HistoryWriter, archived_rows, without
from hudimeta.timeline.naming import parse_instant_name
from hudimeta.types import Action, Instant, State

__all__ = ["leaving", "move_to_history"]

_STAY = (Action.SAVEPOINT, Action.INDEXING, Action.RESTORE)
"""Apache Hudi leaves these on the active timeline for good."""

_PLANNED = (Action.CLEAN, Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)
"""Of these the requested file is kept as the plan."""


def leaving(timeline: Timeline, limit: str) -> Iterator[Instant]:
    """Completed instants before a time, without those that never leave, and writes that a savepoint pins.

    The newest clean stays: the next one begins there.
    """
    newest_clean = max((i.time for i in timeline.completed if i.action is Action.CLEAN), default="")
    for instant in timeline.completed:
        stays = instant.action in _STAY or instant.time in timeline.savepoints
        if instant.time < limit and not stays and instant.time != newest_clean:
            yield instant


def move_to_history(storage: Storage, timeline: Timeline, instants: Sequence[Instant]) -> None:
    """Add instants to the history, then delete their files.

    Args:
        storage: Rooted at the table of the timeline.
        timeline: As listed under the lock.
        instants: Oldest first.
    """
    if not instants:
        return
    writer = HistoryWriter(storage, timeline.history)
    timeline.prefetch(instants)
    rows = archived_rows([_row(timeline, i) for i in instants])
    writer.add(without(rows, writer.known(instants[0].time)))
    pending, completed = _paths(timeline, instants)
    delete_files(storage, pending)
    for path in completed:
        storage.delete(path)


def _row(timeline: Timeline, instant: Instant) -> tuple[str, str | None, str, bytes | None, bytes | None]:
    return instant.time, instant.completion, instant.action.value, timeline.read(instant), _plan_bytes(timeline, instant)


def _plan_bytes(timeline: Timeline, instant: Instant) -> bytes | None:
    """What Apache Hudi keeps as the plan: the requested file of a service, the inflight one of an overwrite."""
    planned = instant.pending_action or instant.action
    if planned in _PLANNED:
        state = State.REQUESTED
    elif planned is Action.REPLACE_COMMIT:
        state = State.INFLIGHT
    else:
        return None
    try:
        return timeline.pending_bytes(instant, state)
    except NotFound:  # other writers need not leave it
        return None


def _paths(timeline: Timeline, instants: Iterable[Instant]) -> tuple[list[str], list[str]]:
    """Files that may go first, in any order, and those of completed instants, which go one after the other, the oldest first.

    Whoever lists the timeline meanwhile takes what is missing after its first instant for what was never written.
    """
    pending: list[str] = []
    completed: list[str] = []
    for instant in instants:
        for name in timeline.files_of(instant):
            file = parse_instant_name(name)
            last = file is not None and file.state is State.COMPLETED
            (completed if last else pending).append(join(timeline.folder, name))
    return pending, completed
