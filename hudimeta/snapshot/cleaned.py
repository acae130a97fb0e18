"""Moments that cleaning has made unreadable: refused, since without their files they would look like smaller tables.

A cleaner that keeps a number of commits, or of hours, says from which instant on all can be read: `earliestCommitToRetain`. One
that keeps a number of file versions does not, because every file group has its own limit. There what it removed tells: a moment
cannot be read when its newest slice of a file group is among the files that are gone. So it does of a moment that leaves out
writes of an earlier request, because they were completed later: no cleaner goes by completion. Cleans are archived as well, so
that of moments before the active timeline perhaps the history alone knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hudimeta.errors import TableError
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.timeline.archived import ArchivedRecords
from hudimeta.timeline.content import replaced_groups_table
from hudimeta.timeline.naming import LAYOUT_V1
from hudimeta.types import Action, Instant

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["refuse_cleaned", "refuse_lost"]

Groups = set[tuple[str, str]]


def refuse_cleaned(snapshot: Snapshot, latest: Snapshot) -> None:
    """Make sure that a moment's files are still there.

    Args:
        snapshot: As of a moment. The newest clean is read; all active ones if it names no earliest commit; and archived ones if
            the moment lies before the active timeline and no active clean settles it.
        latest: The same table without a moment.

    Raises:
        TableError: The cleaner has removed files that the moment needs.
    """
    moment, kept = snapshot.as_of or "", snapshot.earliest_kept
    archived = None
    if not kept and moment < (snapshot.timeline.first_active_write or ""):
        archived = ArchivedRecords(snapshot.timeline.history, (Action.CLEAN,), moment)
        if archived.instants and not _active_cleans(snapshot):
            kept = archived.metadata(archived.instants[-1]).get("earliestCommitToRetain") or ""
    if moment < kept:
        raise TableError(
            f"the table cannot be read as of {moment}: cleaning removed files that only instants before {kept} needed",
            f"The earliest instant that can be read is {kept}.",
        )
    if not kept:
        refuse_lost(snapshot, latest, archived)


def refuse_lost(snapshot: Snapshot, latest: Snapshot, archived: ArchivedRecords | None = None) -> None:
    """Make sure that no file group of a moment is among what cleans removed, whatever they said that they keep.

    Args:
        snapshot: As of a moment. All active cleans are read.
        latest: The same table without a moment.
        archived: Cleans that are archived, where they count.

    Raises:
        TableError: The cleaner has removed files that the moment needs.
    """
    lost = _lost_file_group(snapshot, latest, archived)
    if lost is not None:
        raise TableError(
            f"the table cannot be read as of {snapshot.as_of}: cleaning removed the files that file group {lost[1]} of "
            f"partition {lost[0]!r} had then",
            "Read a later instant; a cleaner that keeps commits instead of file versions keeps whole moments.",
        )


def _lost_file_group(snapshot: Snapshot, latest: Snapshot, archived: ArchivedRecords | None) -> tuple[str, str] | None:
    """Partition path and id of a file group whose rows as of the moment are gone; None when nothing removed is missed."""
    missed = _missed(snapshot, archived, snapshot.unseen)
    if missed and snapshot.timeline.rolled_back:  # files that a restore took back afterwards are not missed
        missed = _missed(snapshot, archived, snapshot.unseen | snapshot.timeline.rolled_back)
    if missed:  # an archival may have moved a replacement to the history, and left the clean that removed what it took out
        if snapshot.timeline.layout == LAYOUT_V1:
            # What no replacecommit of the active timeline took out, and is not there today, was taken out by an archived one.
            missed &= _groups(latest.slices()) | _replaced(latest)
        else:
            missed -= _replaced_before_the_timeline(snapshot)
    return min(missed, default=None)


def _missed(snapshot: Snapshot, archived: ArchivedRecords | None, unseen: frozenset[str]) -> Groups:
    """File groups whose newest slice as of the moment was removed, without those that were replaced by then."""
    removed = _removed(snapshot, archived, unseen)
    shown = _base_instants(snapshot) if removed else {}
    return {group for group, instant in removed.items() if shown.get(group, "") < instant} - _replaced(snapshot)


def _active_cleans(snapshot: Snapshot) -> list[Instant]:
    return [instant for instant in snapshot.timeline.completed if instant.action is Action.CLEAN]


def _base_instants(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    """The instant of each file group's slice that has a base file. Log files alone do not make up for what was removed."""
    slices = snapshot.slices()
    based = slices.filter(slices["base_file"].is_valid())
    columns = (based.column(name).to_pylist() for name in ("partition_path", "file_id", "base_instant"))
    return {(partition, file_id): instant for partition, file_id, instant in zip(*columns, strict=True)}


def _replaced(snapshot: Snapshot) -> Groups:
    gone = snapshot.visibility.replaced
    return set() if gone is None else _groups(gone)


def _replaced_before_the_timeline(snapshot: Snapshot) -> Groups:
    """File groups that archived instants, requested up to the moment, took out."""
    records = ArchivedRecords(snapshot.timeline.history, (Action.REPLACE_COMMIT,))
    replacing = [instant for instant in records.instants if instant.time <= (snapshot.as_of or "")]
    return _groups(replaced_groups_table(replacing, records))


def _groups(replaced: pa.Table) -> Groups:
    return set(zip(replaced["partition_path"].to_pylist(), replaced["file_id"].to_pylist(), strict=True))


def _removed(snapshot: Snapshot, archived: ArchivedRecords | None, unseen: frozenset[str]) -> dict[tuple[str, str], str]:
    """The newest removed slice of each file group, of those that the moment may show: its instant."""
    moment = snapshot.as_of or ""
    bases: dict[tuple[str, str], str] = {}
    logs: dict[tuple[str, str], str] = {}
    for clean in _clean_records(snapshot, archived):
        for partition, cleaned in (clean.get("partitionMetadata") or {}).items():
            for path in cleaned["successDeleteFiles"] or ():
                _note(bases, logs, partition, path.rpartition("/")[2], moment, unseen)
    # Logs bear later instants than their slice, so they speak only of file groups of which no base file was removed.
    return dict.fromkeys(logs, "0") | bases


def _clean_records(snapshot: Snapshot, archived: ArchivedRecords | None) -> Iterator[dict[str, Any]]:
    if archived is not None:
        yield from map(archived.metadata, archived.instants)
    active = _active_cleans(snapshot)
    snapshot.timeline.prefetch(active)
    yield from map(snapshot.timeline.metadata, active)


def _note(
    bases: dict[tuple[str, str], str],
    logs: dict[tuple[str, str], str],
    partition: str,
    name: str,
    moment: str,
    unseen: frozenset[str],
) -> None:
    base, log = parse_base_file(name), parse_log_file(name)
    file, found = (base, bases) if base is not None else (log, logs)
    if file is not None and file.instant <= moment and file.instant not in unseen:
        group = partition, file.file_id
        found[group] = max(found.get(group, ""), file.instant)
