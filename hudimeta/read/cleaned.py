"""Moments that cleaning has made unreadable although it names no commit from which on all can be read.

A cleaner that keeps a number of commits, or of hours, says so: `earliestCommitToRetain`. One that keeps a number of file
versions does not, because every file group has its own limit. What it removed tells: a moment cannot be read when its newest
slice of a file group is among the files that are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.types import Action

if TYPE_CHECKING:
    from hudimeta.read.snapshot import Snapshot

__all__ = ["lost_file_group"]


def lost_file_group(snapshot: Snapshot, latest: Snapshot) -> tuple[str, str] | None:
    """A file group whose rows as of a snapshot's moment were cleaned away.

    Args:
        snapshot: As of a moment. The metadata of all cleans on the active timeline is read; archived ones are not.
        latest: The same table without a moment.

    Returns:
        Partition path and file id; None when nothing that the cleans removed is missed.
    """
    removed = _removed(snapshot)
    shown = _slices(snapshot) if removed else {}
    missed = [group for group, instant in removed.items() if shown.get(group, "") < instant]
    missed = [group for group in missed if group not in _replaced(snapshot)]
    if not missed or (snapshot.as_of or "") < (snapshot.timeline.first_active_write or ""):
        return min(missed, default=None)
    # What no replacecommit of the active timeline took out, and is not there today, was taken out by an archived one.
    known = _slices(latest).keys() | _replaced(latest)
    return min((group for group in missed if group in known), default=None)


def _slices(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    """The instant of each file group's slice."""
    slices = snapshot.slices()
    columns = (slices.column(name).to_pylist() for name in ("partition_path", "file_id", "base_instant"))
    return {(partition, file_id): instant for partition, file_id, instant in zip(*columns, strict=True)}


def _replaced(snapshot: Snapshot) -> set[tuple[str, str]]:
    gone = snapshot.visibility.replaced
    if gone is None:
        return set()
    return set(zip(gone["partition_path"].to_pylist(), gone["file_id"].to_pylist(), strict=True))


def _removed(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    """The newest removed slice of each file group, of those that the moment may show: its instant."""
    timeline, moment = snapshot.timeline, snapshot.as_of or ""
    cleans = [instant for instant in timeline.completed if instant.action is Action.CLEAN]
    timeline.prefetch(cleans)
    bases: dict[tuple[str, str], str] = {}
    logs: dict[tuple[str, str], str] = {}
    for clean in cleans:
        for partition, cleaned in (timeline.metadata(clean).get("partitionMetadata") or {}).items():
            for path in cleaned["successDeleteFiles"] or ():
                _note(bases, logs, partition, path.rpartition("/")[2], moment)
    # Logs bear later instants than their slice, so they speak only of file groups of which no base file was removed.
    return dict.fromkeys(logs, "0") | bases


def _note(
    bases: dict[tuple[str, str], str], logs: dict[tuple[str, str], str], partition: str, name: str, moment: str
) -> None:
    base, log = parse_base_file(name), parse_log_file(name)
    file, found = (base, bases) if base is not None else (log, logs)
    if file is not None and file.instant <= moment:
        group = partition, file.file_id
        found[group] = max(found.get(group, ""), file.instant)
