"""From the files of a timeline's folder to instants: one LIST, and more only while somebody is writing.

Writers on a local disk or HDFS may show a completed file before its bytes are there. While a completed commit, deltacommit or
replacecommit has 0 bytes, the folder is therefore listed again, a few times. If the file stays empty, its content is lost. In
layout 2 the instant still counts as completed, by its name, because that is how Apache Hudi counts it; a warning names the
file, and whoever needs what it should say is refused. In layout 1 (version 6) such a file was legal: a commit without content.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import lru_cache
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


FILES_KEPT = 4096
"""Instants kept in memory by the names, sizes and ages of their files: a commit lists timelines some ten times, and most of
what it finds is as it was."""


@dataclass(frozen=True, slots=True)
class TimelineListing:
    """The instants of one folder at one moment.

    Attributes:
        instants: Sorted by requested time; a savepoint follows the commit whose time it shares.
        file_names: Of every instant all its files, requested first.
        bare: Completed writes without an inflight file.
    """

    instants: tuple[Instant, ...]
    file_names: Mapping[InstantKey, tuple[str, ...]]
    bare: tuple[Instant, ...]


class _Found(NamedTuple):
    """One file of an instant."""

    name: str
    size: int
    modified_ms: int

    @property
    def said(self) -> InstantFile:
        """What the name says."""
        found = parse_instant_name(self.name)
        if found is None:
            raise ValueError(self.name)
        return found

    @property
    def is_half_written(self) -> bool:
        return self.size == 0 and self.said.state is State.COMPLETED and self.said.action.writes_data


class _Group(NamedTuple):
    """What the files of one instant say together. Attributes: names: Requested first; is_bare: See `TimelineListing`."""

    instant: Instant
    names: tuple[str, ...]
    is_bare: bool


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
    files: dict[InstantKey, list[_Found]] = {}
    for one in found:
        said = one.said
        files.setdefault((said.time, said.action.completed_as), []).append(one)
    groups = {key: _group(tuple(group), layout, zone) for key, group in files.items()}
    ordered = sorted(groups.values(), key=_in_order)
    names = {key: group.names for key, group in groups.items()}
    return TimelineListing(tuple([g.instant for g in ordered]), names, tuple([g.instant for g in ordered if g.is_bare]))


def _in_order(group: _Group) -> tuple[str, bool, str]:
    instant = group.instant
    return instant.time, instant.action is Action.SAVEPOINT, instant.action.value


def _warn_of_empty(folder: str, found: Iterable[_Found]) -> None:
    for one in _half_written(found):
        path = join(folder, one.name)
        text = f"{path} is empty: the write counts as completed, but what it did is not known"
        warnings.warn(text, HudiWarning, stacklevel=4)


def _half_written(found: Iterable[_Found]) -> list[_Found]:
    return [one for one in found if not one.size and one.is_half_written]


def _instant_files(entries: Iterable[FileInfo]) -> list[_Found]:
    found = [_Found(path.rpartition("/")[2], size, modified) for path, size, modified, is_folder in entries if not is_folder]
    return [one for one in found if parse_instant_name(one.name) is not None]


def _by_state(one: _Found) -> tuple[State, str]:
    return one.said.state, one.name


@lru_cache(maxsize=FILES_KEPT)
def _group(files: tuple[_Found, ...], layout: int, zone: tzinfo | None) -> _Group:
    instant = _instant(files, layout, zone)
    states = [one.said.state for one in files]
    is_bare = instant.is_completed and instant.action.writes_data and State.INFLIGHT not in states
    return _Group(instant, tuple([one.name for one in sorted(files, key=_by_state)]), is_bare)


def _instant(group: Sequence[_Found], layout: int, zone: tzinfo | None) -> Instant:
    """The highest state wins; of two completed files, which only a retried publication leaves, the earlier with content."""
    done = [one for one in group if one.said.state is State.COMPLETED]
    done = [one for one in done if not one.is_half_written] or done
    waiting = [one for one in group if one.said.state is not State.COMPLETED]
    if done:
        first = min(done, key=lambda one: (_completion(one, layout, zone), one.name)) if len(done) > 1 else done[0]
        said = first.said
        pending_action = waiting[0].said.action if waiting and waiting[0].said.action is not said.action else None
        completion = _completion(first, layout, zone)
        return Instant(
            said.time, said.action, State.COMPLETED, completion, pending_action, first.name, first.size, first.modified_ms
        )
    last = max(waiting, key=_by_state)
    said = last.said
    return Instant(said.time, said.action, said.state, None, None, last.name, last.size)


def _completion(one: _Found, layout: int, zone: tzinfo | None) -> str:
    said = one.said
    if said.completion is not None:
        return said.completion
    if layout == LAYOUT_V1 or one.modified_ms <= 0:
        return said.time
    return format_instant(one.modified_ms, zone)
