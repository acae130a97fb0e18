"""Names of the timeline's files: one instant has up to three, one per state.

Layout 2 (table versions 8 and 9, folder `.hoodie/timeline`)::

    <requested>.<action>.requested      <requested>.<action>.inflight      <requested>_<completion>.<action>

Layout 1 (version 6, folder `.hoodie`): the completed file is `<requested>.<action>`. In both a commit's inflight file is
`<requested>.inflight`, without the action; a savepoint has no requested file. Clustering, compaction and log compaction have
words of their own only while pending (clustering only in layout 2): their completed files are those of replacecommit, commit
and deltacommit. Whatever else lies in the folder is not an instant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from hudimeta.types import Action, State

__all__ = [
    "EXTERNAL_SUFFIX",
    "LAYOUT_V1",
    "LAYOUT_V2",
    "NAMES_KEPT",
    "InstantFile",
    "completed_name",
    "parse_instant_name",
    "pending_name",
]

EXTERNAL_SUFFIX = "_hudiext"
"""Commits and listings so end the names of base files that other tools wrote, such as Apache XTable."""
LAYOUT_V1 = 1
LAYOUT_V2 = 2

MAX_INSTANT_DIGITS = 32
"""17 digits, three more in metadata tables of version 6; anything much longer is not an instant."""

NAMES_KEPT = 4096
"""Parsed names kept in memory: who writes lists the same timeline again and again."""

_NAME = re.compile(
    rf"(?P<time>\d{{1,{MAX_INSTANT_DIGITS}}})(?:_(?P<completion>\d{{1,{MAX_INSTANT_DIGITS}}}))?"
    r"\.(?P<word>[a-z]+)(?:\.(?P<state>requested|inflight))?",
    re.ASCII,
)
_ACTIONS = {action.value: action for action in Action}
_PENDING_ONLY = frozenset((Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING))
_INFLIGHT_WORD = "inflight"


@dataclass(frozen=True, slots=True)
class InstantFile:
    """What a file's name says.

    Attributes:
        time: Requested time.
        action: The word in the name (COMMIT for a bare `<time>.inflight`).
        state: As named.
        completion: Completion time; None for pending files, and for completed ones that do not name it.
    """

    time: str
    action: Action
    state: State
    completion: str | None = None


@lru_cache(maxsize=NAMES_KEPT)
def parse_instant_name(name: str) -> InstantFile | None:
    """Read the name of one file of a timeline's folder, of either layout.

    Args:
        name: The file's name without its folder.

    Returns:
        What it says; None when it is no instant (side files, temporary files, actions that readers need not know).
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    time, completion, word, state = found["time"], found["completion"], found["word"], found["state"]
    if word == _INFLIGHT_WORD:
        return None if state or completion else InstantFile(time, Action.COMMIT, State.INFLIGHT)
    action = _ACTIONS.get(word)
    if action is None:
        return None
    if state is None:
        return None if action in _PENDING_ONLY else InstantFile(time, action, State.COMPLETED, completion)
    return None if completion else InstantFile(time, action, State[state.upper()])


def pending_name(time: str, action: Action, state: State) -> str:
    """Name of a requested or inflight file, the same in both layouts.

    Raises:
        ValueError: the state is COMPLETED; use `completed_name`.
    """
    if state is State.COMPLETED:
        raise ValueError("a completed file is named by its completion time as well")
    if state is State.INFLIGHT and action is Action.COMMIT:
        return f"{time}.{_INFLIGHT_WORD}"
    return f"{time}.{action.value}.{state.name.lower()}"


def completed_name(time: str, action: Action, completion: str | None) -> str:
    """Name of a completed file: of layout 2 with a completion time, of layout 1 with None.

    Args:
        time: Requested time.
        action: The action, pending or completed word alike (COMPACTION gives a `.commit`).
        completion: Completion time.
    """
    stem = time if completion is None else f"{time}_{completion}"
    return f"{stem}.{action.completed_as.value}"
