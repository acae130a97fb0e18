"""Moments that cleaning has made unreadable: refused, since without their files they would look like smaller tables.

A cleaner that keeps a number of commits, or of hours, says from which instant on all can be read: `earliestCommitToRetain`. One
that keeps a number of file versions does not, because every file group has its own limit. There what it removed tells: a moment
cannot be read when its newest slice of a file group is among the files that are gone. So it does of a moment that leaves out
writes of an earlier request, because they were completed later: no cleaner goes by completion. Cleans are archived as well, so
that of moments before the active timeline perhaps the history alone knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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

__all__ = ["lost_slices", "newest_removed", "refuse_cleaned", "refuse_lost"]

Groups = set[tuple[str, str]]
Slices = dict[tuple[str, str], str]
"""Instants of file slices by partition path and file id."""


@dataclass(frozen=True)
class _Cleaned:
    """What cleans after a moment say; those before it left what it shows.

    Attributes:
        kept: From which instant on the newest keeps everything; "" if it names none.
        unbound: Some name none, or a later one than the moment, so that what they removed must be looked at: a newer one may
            keep more than they did, and a restore may have gone back to a savepoint, which they spared.
        archived: Cleans of the history; None where the moment lies within the active timeline.
    """

    kept: str
    unbound: bool
    archived: ArchivedRecords | None

    @classmethod
    def after(cls, snapshot: Snapshot) -> _Cleaned:
        """Reads all active cleans after the moment, and archived ones if it lies before the active timeline."""
        moment, archived, named = snapshot.as_of or "", None, []
        if moment < (snapshot.timeline.first_active_write or ""):
            archived = ArchivedRecords(snapshot.timeline.history, (Action.CLEAN,), moment)
            named += [archived.metadata(clean).get("earliestCommitToRetain") or "" for clean in archived.instants]
        active = [clean for clean in _active_cleans(snapshot) if clean.time > moment]
        snapshot.timeline.prefetch(active)
        named += [snapshot.timeline.metadata(clean).get("earliestCommitToRetain") or "" for clean in active]
        return cls(named[-1] if named else "", any(not kept or kept > moment for kept in named), archived)


def refuse_cleaned(snapshot: Snapshot, latest: Snapshot) -> None:
    """Make sure that a moment's files are still there.

    Args:
        snapshot: As of a moment. The active cleans after it are read, and archived ones if it lies before the active timeline.
        latest: The same table without a moment.

    Raises:
        TableError: The cleaner has removed files that the moment needs.
    """
    moment, cleaned = snapshot.as_of or "", _Cleaned.after(snapshot)
    if moment < cleaned.kept:
        raise TableError(
            f"the table cannot be read as of {moment}: cleaning removed files that only instants before {cleaned.kept} needed",
            f"The earliest instant that can be read is {cleaned.kept}.",
        )
    if cleaned.unbound:
        _refuse(snapshot, _lost(snapshot, latest, cleaned.archived))


def refuse_lost(snapshot: Snapshot, latest: Snapshot) -> None:
    """Make sure that no file group of a moment is among what active cleans removed, whatever they said that they keep.

    Args:
        snapshot: As of a moment. All active cleans are read.
        latest: The same table without a moment.

    Raises:
        TableError: The cleaner has removed files that the moment needs.
    """
    _refuse(snapshot, _lost(snapshot, latest, None))


def lost_slices(snapshot: Snapshot, latest: Snapshot) -> Slices:
    """The file slices of a moment that cleans after it removed, where what these say that they keep does not bind them.

    Nor does it where the moment leaves out writes that were completed later: cleans keep what moments with them need.

    Args:
        snapshot: As of a moment. The active cleans after it are read, and archived ones if it lies before the active timeline.
        latest: The same table without a moment.
    """
    cleaned = _Cleaned.after(snapshot)
    return _lost(snapshot, latest, cleaned.archived) if cleaned.unbound or snapshot.unseen else {}


def newest_removed(snapshot: Snapshot, moment: str, unseen: frozenset[str]) -> Slices:
    """The newest file of each file group that cleans removed, of those that a moment may show: its instant.

    Args:
        snapshot: The table of now. Its active cleans are read, and archived ones if the moment lies before the active timeline.
        moment: Files of later instants do not count.
        unseen: Nor do those of these instants.
    """
    timeline, archived = snapshot.timeline, None
    if moment < (timeline.first_active_write or ""):
        archived = ArchivedRecords(timeline.history, (Action.CLEAN,), moment)
    bases, logs = _removed(snapshot, archived, moment, unseen)
    return {group: max(bases.get(group, ""), logs.get(group, "")) for group in {*bases, *logs}}


def _refuse(snapshot: Snapshot, lost: Slices) -> None:
    if lost:
        partition, group = min(lost)
        raise TableError(
            f"the table cannot be read as of {snapshot.as_of}: cleaning removed the files that file group {group} of "
            f"partition {partition!r} had then",
            "Read a later instant; a cleaner that keeps commits instead of file versions keeps whole moments.",
        )


def _lost(snapshot: Snapshot, latest: Snapshot, archived: ArchivedRecords | None) -> Slices:
    """The slices of file groups whose rows as of the moment are gone; none when nothing removed is missed."""
    missed = _missed(snapshot, archived, snapshot.unseen)
    if missed and snapshot.timeline.rolled_back:  # files that a restore took back afterwards are not missed
        missed = _missed(snapshot, archived, snapshot.unseen | snapshot.timeline.rolled_back)
    if not missed:
        return {}
    # An archival may have moved a replacement to the history, and left the clean that removed what it took out.
    if snapshot.timeline.layout == LAYOUT_V1:
        # What no replacecommit of the active timeline took out, and is not there today, was taken out by an archived one.
        here = _groups(latest.slices()) | _replaced(latest)
        return {group: instant for group, instant in missed.items() if group in here}
    gone = _replaced_before_the_timeline(snapshot)
    return {group: instant for group, instant in missed.items() if group not in gone}


def _missed(snapshot: Snapshot, archived: ArchivedRecords | None, unseen: frozenset[str]) -> Slices:
    """Newest slices as of the moment that were removed, without those of file groups that were replaced by then."""
    bases, logs = _removed(snapshot, archived, snapshot.as_of or "", unseen)
    shown, gone = (_base_instants(snapshot), _replaced(snapshot)) if bases or logs else ({}, set())
    # Where no base file is shown, that of the slice was removed, or it has none. Else a log belongs to the newest base file
    # that is older, which a savepoint may have spared; in version 6 its name tells no more than that base file.
    missed = {group: "0" for group, at in logs.items() if group not in shown or at > shown[group]}
    missed |= {group: at for group, at in bases.items() if shown.get(group, "") < at}
    return {group: at for group, at in missed.items() if group not in gone}


def _active_cleans(snapshot: Snapshot) -> list[Instant]:
    return [instant for instant in snapshot.timeline.completed if instant.action is Action.CLEAN]


def _base_instants(snapshot: Snapshot) -> Slices:
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


def _removed(
    snapshot: Snapshot, archived: ArchivedRecords | None, moment: str, unseen: frozenset[str]
) -> tuple[Slices, Slices]:
    """The newest removed base file and log file of each file group, of those that the moment may show: their instants."""
    bases: Slices = {}
    logs: Slices = {}
    for clean in _clean_records(snapshot, archived):
        for partition, cleaned in (clean.get("partitionMetadata") or {}).items():
            for path in cleaned["successDeleteFiles"] or ():
                _note(bases, logs, partition, path.rpartition("/")[2], moment, unseen)
    return bases, logs


def _clean_records(snapshot: Snapshot, archived: ArchivedRecords | None) -> Iterator[dict[str, Any]]:
    if archived is not None:
        yield from map(archived.metadata, archived.instants)
    active = _active_cleans(snapshot)
    snapshot.timeline.prefetch(active)
    yield from map(snapshot.timeline.metadata, active)


def _note(
    bases: Slices,
    logs: Slices,
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
