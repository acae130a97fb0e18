"""What archived instants said, for the few questions that reach back beyond the active timeline."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hudimeta.timeline.content import decode_instant
from hudimeta.timeline.history import History
from hudimeta.timeline.naming import completed_name, pending_name
from hudimeta.types import Action, Instant, State

__all__ = ["ArchivedRecords", "archived_files"]

_TIMES = ("instant_time", "completion_time", "action")


def archived_files(history: History, since: str) -> dict[str, bytes]:
    """What the files of archived instants held, by name: for who listed a timeline just before another process archived some.

    Completed files, and plans: the requested file of a service, the inflight one of an overwrite.

    Args:
        history: Of the timeline.
        since: Instants before it may be left out.

    Raises:
        CorruptFileError: The history is damaged.
    """
    found: dict[str, bytes] = {}
    rows = history.load((*_TIMES, "metadata", "plan"), since)
    for time, completion, word, said, plan in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        action = Action(word)
        found[completed_name(time, action, completion)] = said or b""
        if plan is not None:
            for pending in (a for a in Action if a.completed_as is action):
                state = State.INFLIGHT if pending is Action.REPLACE_COMMIT else State.REQUESTED
                found[pending_name(time, pending, state)] = plan
    return found


class ArchivedRecords:
    """Completed instants of some actions, with what their files held.

    Metadata is nearly all of a history's bytes, so it is read only where the small columns name such an instant.

    Args:
        history: Of the table; in layout 1 it tells nothing.
        actions: In the words of completed instants.
        since: Instants before it may be left out.
        until: Instants after it may be left out; None for none.

    Attributes:
        instants: By requested time.

    Raises:
        CorruptFileError: The history is damaged.
    """

    def __init__(self, history: History, actions: Collection[Action], since: str = "", until: str | None = None) -> None:
        words = {action.value for action in actions}
        self._folder = history.folder
        self._bytes: dict[Instant, bytes] = {}
        if words & set(history.times(since)["action"].unique().to_pylist()):
            rows = history.load((*_TIMES, "metadata"), since, until)
            for time, completion, word, said in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                if word in words and time >= since and (until is None or time <= until):
                    self._bytes[Instant(time, Action(word), State.COMPLETED, completion)] = said or b""
        self.instants = tuple(self._bytes)

    def metadata(self, instant: Instant) -> dict[str, Any]:
        """The record of one of `instants`, as `Timeline.metadata` gives it for active ones. Raises CorruptFileError."""
        return decode_instant(self._bytes[instant], self._folder, instant.action.writes_data)
