"""From the files of a timeline's folder to instants: one LIST, and more only while somebody is writing.

Writers on a local disk or HDFS may show a completed file before its bytes are there. While a completed commit, deltacommit or
replacecommit has 0 bytes, the folder is therefore listed again, a few times, unless the file has been empty for minutes. If
it stays so, its content is lost. In layout 2 the instant still counts as completed, by its name, because that is how Apache
Hudi counts it; a warning names the file, and whoever needs what it should say is refused. In layout 1 (version 6) such a file
was legal: a commit without content.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from hudimeta.config import HudiWarning
from hudimeta.engine.machine import now_ms
from hudimeta.errors import CorruptFileError
from hudimeta.storage import FileInfo, Storage, join, kept_by
from hudimeta.timeline.clock import format_instant
from hudimeta.timeline.naming import LAYOUT_V1, NAMES_KEPT, InstantFile, parse_instant_name
from hudimeta.types import Action, Instant, State

__all__ = ["RELIST_PAUSES_S", "InstantKey", "TimelineListing", "list_instants"]

RELIST_PAUSES_S = (0.01, 0.04, 0.15)
"""Pauses before the folder is listed again, while a completed write is empty."""

_MOMENT_MS = 300_000
"""For so long somebody may still be filling a file, or the clocks of this machine and of the store may differ."""

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


class _Said(NamedTuple):
    """What the name of a file says, with what is asked of it again and again.

    Attributes:
        file: What the name says.
        key: Of its instant.
        needs_content: It is a completed write, which is half written as long as it is empty.
    """

    file: InstantFile
    key: InstantKey
    needs_content: bool


@lru_cache(maxsize=NAMES_KEPT)
def _said(name: str) -> _Said | None:
    file = parse_instant_name(name)
    if file is None:
        return None
    needs_content = file.state is State.COMPLETED and file.action.writes_data
    return _Said(file, (file.time, file.action.completed_as), needs_content)


class _Found(NamedTuple):
    """The files of a listing that are of instants, by instant. Attributes: empty: Names of completed writes without content."""

    files: Mapping[InstantKey, Sequence[FileInfo]]
    empty: list[str]


class _Group(NamedTuple):
    """What the files of one instant say together.

    Attributes:
        order: By which instants are sorted.
        instant: What they say.
        names: Requested first.
        is_bare: See `TimelineListing`.
    """

    order: tuple[str, bool, str]
    instant: Instant
    names: tuple[str, ...]
    is_bare: bool


class _Read(NamedTuple):
    """The last list of a folder.

    Attributes:
        entries: What it said.
        how: Layout and zone.
        files: The files of instants.
        groups: What they say together.
        listing: What was made of it.
    """

    entries: frozenset[FileInfo]
    how: tuple[int, tzinfo | None]
    files: Mapping[InstantKey, Sequence[FileInfo]]
    groups: Mapping[InstantKey, _Group]
    listing: TimelineListing


def list_instants(
    storage: Storage,
    folder: str,
    layout: int,
    zone: tzinfo | None,
    sleep: Callable[[float], None],
    place: str = "",
    listed: Sequence[FileInfo] = (),
) -> TimelineListing:
    """List a timeline's folder.

    Args:
        storage: Rooted at the table.
        folder: The timeline's folder, relative to the table.
        layout: 1 or 2.
        zone: The table's zone, for completion times that only the file's age tells.
        sleep: Waits so many seconds before listing again.
        place: Where the storage's root is within the user's table, for the warning and the error.
        listed: What is in the folder, where that was asked for just now.

    Raises:
        CorruptFileError: A folder has the name of an instant's file.
    """
    entries, kept, name = listed or storage.list(folder), kept_by(storage), f"listing {join(place, folder)}"
    last = kept.get(name)
    before = last if isinstance(last, _Read) and last.how == (layout, zone) else None
    now = frozenset(entries)
    if before is not None and before.entries == now:
        return before.listing
    _refuse_folders(entries, join(place, folder))
    found = _instant_files(entries) if before is None else _changed_files(before, now)
    for pause in RELIST_PAUSES_S:
        if not _may_be_filled(entries, found.empty):
            break
        sleep(pause)
        found, before = _instant_files(entries := storage.list(folder)), None
    if layout != LAYOUT_V1:
        _warn_of_empty(join(place, folder), found.empty)
    groups = _groups(found.files, layout, zone, before)
    ordered = sorted(groups.values(), key=_ORDER)
    names = {key: group.names for key, group in groups.items()}
    listing = TimelineListing(tuple([g.instant for g in ordered]), names, tuple([g.instant for g in ordered if g.is_bare]))
    if not found.empty:
        kept[name] = _Read(frozenset(entries), (layout, zone), found.files, groups, listing)
    return listing


_ORDER = attrgetter("order")


def _may_be_filled(entries: Iterable[FileInfo], empty: Sequence[str]) -> bool:
    """Whether one of some empty files is not known to have been empty for minutes."""
    long_ago = now_ms() - _MOMENT_MS
    return bool(empty) and any(not 0 < entry.modified_ms < long_ago for entry in entries if entry.name in empty)


def _warn_of_empty(folder: str, names: Iterable[str]) -> None:
    for name in names:
        text = f"{join(folder, name)} is empty: the write counts as completed, but what it did is not known"
        warnings.warn(text, HudiWarning, stacklevel=4)


def _refuse_folders(entries: Iterable[FileInfo], folder: str) -> None:
    """Whoever passed over a folder in place of a completed file would take the write for a dead one, and roll it back."""
    for entry in entries:
        if entry.is_folder and _said(entry.name) is not None:
            raise CorruptFileError(join(folder, entry.name), 0, "a file", "a folder", "Restore the file from a copy.")


def _instant_files(entries: Iterable[FileInfo]) -> _Found:
    """Sort a listing out, file by file: a commit does that with a thousand of them."""
    files: dict[InstantKey, list[FileInfo]] = {}
    empty: list[str] = []
    for entry in entries:
        path, size, _, is_folder = entry
        name = path.rpartition("/")[2]
        said = None if is_folder else _said(name)
        if said is None:
            continue
        files.setdefault(said.key, []).append(entry)
        if not size and said.needs_content:
            empty.append(name)
    return _Found(files, empty)


def _changed_files(before: _Read, now: frozenset[FileInfo]) -> _Found:
    """The same of a list most of which is as it was: a commit adds three files to the hundreds that there are."""
    came, went = _instant_files(now - before.entries), _instant_files(before.entries - now)
    files = dict(before.files)
    for key in {*came.files, *went.files}:
        gone = went.files.get(key, ())
        left = [*(one for one in files.pop(key, ()) if one not in gone), *came.files.get(key, ())]
        if left:
            files[key] = sorted(left)
    return _Found(files, sorted(came.empty))


def _groups(
    files: Mapping[InstantKey, Sequence[FileInfo]], layout: int, zone: tzinfo | None, before: _Read | None
) -> dict[InstantKey, _Group]:
    """What the files of each instant say; as before where they are the same objects."""
    if before is None:
        return {key: _group(tuple(group), layout, zone) for key, group in files.items()}
    old, known = before.files, before.groups
    return {key: known[key] if old.get(key) is group else _group(tuple(group), layout, zone) for key, group in files.items()}


def _file(entry: FileInfo) -> InstantFile:
    found = parse_instant_name(entry.name)
    if found is None:
        raise ValueError(entry.name)
    return found


def _by_state(one: FileInfo) -> tuple[State, str]:
    return _file(one).state, one.name


@lru_cache(maxsize=FILES_KEPT)
def _group(files: tuple[FileInfo, ...], layout: int, zone: tzinfo | None) -> _Group:
    instant = _instant(files, layout, zone)
    states = [_file(one).state for one in files]
    is_bare = instant.is_completed and instant.action.writes_data and State.INFLIGHT not in states
    order = instant.time, instant.action is Action.SAVEPOINT, instant.action.value
    return _Group(order, instant, tuple([one.name for one in sorted(files, key=_by_state)]), is_bare)


def _instant(group: Sequence[FileInfo], layout: int, zone: tzinfo | None) -> Instant:
    """The highest state wins; of two completed files, which only a retried publication leaves, the earlier with content."""
    done = [one for one in group if _file(one).state is State.COMPLETED]
    done = [one for one in done if one.size or not _file(one).action.writes_data] or done
    waiting = [one for one in group if _file(one).state is not State.COMPLETED]
    if done:
        first = min(done, key=lambda one: (_completion(one, layout, zone), one.name)) if len(done) > 1 else done[0]
        said, pending = _file(first), _file(min(waiting, key=_by_state)).action if waiting else None
        pending_action = pending if pending is not said.action else None
        completion = _completion(first, layout, zone)
        return Instant(
            said.time, said.action, State.COMPLETED, completion, pending_action, first.name, first.size, first.modified_ms
        )
    last = max(waiting, key=_by_state)
    said = _file(last)
    return Instant(said.time, said.action, said.state, None, None, last.name, last.size)


def _completion(one: FileInfo, layout: int, zone: tzinfo | None) -> str:
    said = _file(one)
    if said.completion is not None:
        return said.completion
    if layout == LAYOUT_V1 or one.modified_ms <= 0:
        return said.time
    return format_instant(one.modified_ms, zone)
