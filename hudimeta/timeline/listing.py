"""From the files of a timeline's folder to instants: one LIST, and more only while somebody is writing.

Writers on a local disk or HDFS may show a completed file before its bytes are there. While a completed commit, deltacommit or
replacecommit has 0 bytes, the folder is therefore listed again, a few times. If the file stays empty, its content is lost. In
layout 2 the instant still counts as completed, by its name, because that is how Apache Hudi counts it; a warning names the
file, and whoever needs what it should say is refused. In layout 1 (version 6) such a file was legal: a commit without content.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import NamedTuple

from hudimeta.config import HudiWarning
from hudimeta.storage import FileInfo, Storage, join
from hudimeta.timeline.clock import format_instant
from hudimeta.timeline.naming import LAYOUT_V1, InstantFile, parse_instant_name
from hudimeta.types import Action, Instant, State

__all__ = ["RELIST_PAUSES_S", "InstantKey", "TimelineListing", "list_instants"]

RELIST_PAUSES_S = (0.01, 0.04, 0.15)
"""Pauses before the folder is listed again, while a completed write is empty."""

InstantKey = tuple[str, Action]
"""Requested time and completed action: what the files of one instant have in common."""


@dataclass(frozen=True, slots=True)
class TimelineListing:
    """The instants of one folder at one moment.

    Attributes:
        instants: Sorted by requested time; a savepoint follows the commit whose time it shares.
        file_names: Of every instant all its files, requested first.
    """

    instants: tuple[Instant, ...]
    file_names: Mapping[InstantKey, tuple[str, ...]]


class _Found(NamedTuple):
    name: str
    file: InstantFile
    info: FileInfo

    @property
    def is_half_written(self) -> bool:
        return self.info.size == 0 and self.file.state is State.COMPLETED and self.file.action.writes_data


def list_instants(
    storage: Storage, folder: str, layout: int, zone: tzinfo | None, sleep: Callable[[float], None], place: str = ""
) -> TimelineListing:
    """List a timeline's folder.

    Args:
        storage: Rooted at the table.
        folder: The timeline's folder, relative to the table.
        layout: 1 or 2.
        zone: The table's zone, for completion times that only the file's age tells.
        sleep: Waits so many seconds before listing again.
        place: Where the storage's root is within the user's table, for the warning.
    """
    found = _instant_files(storage.list(folder))
    for pause in RELIST_PAUSES_S:
        if not _half_written(found):
            break
        sleep(pause)
        found = _instant_files(storage.list(folder))
    if layout != LAYOUT_V1:
        _warn_of_empty(join(place, folder), found)
    groups: dict[InstantKey, list[_Found]] = {}
    for one in found:
        groups.setdefault((one.file.time, one.file.action.completed_as), []).append(one)
    instants = [_instant(group, layout, zone) for group in groups.values()]
    instants.sort(key=lambda instant: (instant.time, instant.action is Action.SAVEPOINT, instant.action.value))
    names = {key: tuple([one.name for one in sorted(group, key=_by_state)]) for key, group in groups.items()}
    return TimelineListing(tuple(instants), names)


def _warn_of_empty(folder: str, found: Iterable[_Found]) -> None:
    for one in _half_written(found):
        path = join(folder, one.name)
        text = f"{path} is empty: the write counts as completed, but what it did is not known"
        warnings.warn(text, HudiWarning, stacklevel=4)


def _half_written(found: Iterable[_Found]) -> list[_Found]:
    return [one for one in found if not one.info.size and one.is_half_written]


def _instant_files(entries: Iterable[FileInfo]) -> list[_Found]:
    # A commit lists timelines some ten times: this is done for each of their files.
    named = [(entry.path.rpartition("/")[2], entry) for entry in entries if not entry.is_folder]
    return [_Found(name, file, entry) for name, entry in named if (file := parse_instant_name(name)) is not None]


def _by_state(one: _Found) -> tuple[State, str]:
    return one.file.state, one.name


def _instant(group: list[_Found], layout: int, zone: tzinfo | None) -> Instant:
    """The highest state wins; of two completed files, which only a retried publication leaves, the earlier with content."""
    done = [one for one in group if one.file.state is State.COMPLETED]
    done = [one for one in done if not one.is_half_written] or done
    waiting = [one for one in group if one.file.state is not State.COMPLETED]
    if done:
        first = min(done, key=lambda one: (_completion(one, layout, zone), one.name)) if len(done) > 1 else done[0]
        pending_action = waiting[0].file.action if waiting and waiting[0].file.action is not first.file.action else None
        completion = _completion(first, layout, zone)
        file = first.file
        return Instant(
            file.time,
            file.action,
            State.COMPLETED,
            completion,
            pending_action,
            first.name,
            first.info.size,
            first.info.modified_ms,
        )
    last = max(waiting, key=_by_state)
    return Instant(last.file.time, last.file.action, last.file.state, None, None, last.name, last.info.size)


def _completion(one: _Found, layout: int, zone: tzinfo | None) -> str:
    if one.file.completion is not None:
        return one.file.completion
    if layout == LAYOUT_V1 or one.info.modified_ms <= 0:
        return one.file.time
    return format_instant(one.info.modified_ms, zone)
