"""What the timeline of a history ever held: writes by their names, also those that were archived, and what was undone since.

The store keeps the bytes of every file of a timeline, deleted or not; the names of writes stand in their commits' metadata.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from hudimeta.errors import ValidationFailed
from hudimeta.table.properties import load as load_properties
from hudimeta.testing.simulation.store import Files, SimulatedStorage, StoreKind
from hudimeta.timeline.archived import ArchivedRecords
from hudimeta.timeline.content import decode_instant
from hudimeta.timeline.naming import InstantFile, parse_instant_name
from hudimeta.timeline.rollback_record import taken_back
from hudimeta.types import Action, State

__all__ = ["NAME_KEY", "Ledger", "Named", "Published", "Undone"]

NAME_KEY = "_simulated.write"
"""Key of a commit's metadata that tells which write it is."""
_WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
_UNDOES = (Action.RESTORE, Action.ROLLBACK)


@dataclass(frozen=True)
class Published:
    """A write that was completed.

    Attributes:
        name: Of the write.
        instant: Requested time.
        action: As its completed file is named.
        completion: Completion time.
        partitions: In which it replaced file groups.
    """

    name: str
    instant: str
    action: Action
    completion: str
    partitions: tuple[str, ...] = ()

    def is_one_of(self, there: Mapping[Named, str]) -> bool:
        """Whether it is still there, among completion times of writes."""
        return there.get((self.instant, self.action)) == self.completion


Named = tuple[str, Action]
"""An instant: its requested time, and the action as its completed file is named."""


@dataclass(frozen=True)
class Undone:
    """A restore or a rollback: its requested time, and what it took back of what had been completed, which may be nothing."""

    time: str
    instants: frozenset[Named]


@dataclass(frozen=True)
class Ledger:
    """See the module.

    Attributes:
        writes: All that were ever completed, by name.
        undone: Restores and rollbacks, in their order.
    """

    writes: Mapping[str, Published]
    undone: tuple[Undone, ...] = ()

    @classmethod
    def of(cls, files: Files, asked: Container[str]) -> Ledger:
        """Read a store.

        Args:
            files: Of the store.
            asked: Requested times of the restores and rollbacks that somebody asked for; others take back what was never there:
                writes of the dead, and of those who were taken for dead, published late, and noticed.

        Raises:
            ValidationFailed: A write is there twice.
        """
        parsed = ((path, parse_instant_name(path.rpartition("/")[2])) for path in files.journal)
        done = {path: file for path, file in parsed if file is not None and file.state is State.COMPLETED}
        there = _there(files)
        undone = tuple(one for one in _undone(files, done, frozenset(there)) if one.time in asked)
        taken_back = {named for undo in undone for named in undo.instants}
        found: dict[str, Published] = {}
        for one in _writes(files, done):
            named = one.instant, one.action
            if named not in taken_back and not one.is_one_of(there):
                continue
            if one.name in found and found[one.name].is_one_of(there):
                raise ValidationFailed(f"{one.name} was published twice, at {found[one.name].completion} and {one.completion}")
            found[one.name] = one
        return cls(found, undone)


def _writes(files: Files, done: Mapping[str, InstantFile]) -> Iterator[Published]:
    """Every completed file that a named write ever had, in their order."""
    for path, file in sorted(done.items(), key=lambda item: item[1].completion or ""):
        if file.action in _WRITES:
            record = decode_instant(files.journal[path], path, True)
            name = (record.get("extraMetadata") or {}).get(NAME_KEY)
            if name is not None:
                replaced = tuple(sorted(record.get("partitionToReplaceFileIds") or {}))
                yield Published(name, file.time, file.action, file.completion or "", replaced)


def _there(files: Files) -> dict[Named, str]:
    """The completion time of each write on the timeline, active or archived."""
    storage = SimulatedStorage(files, StoreKind.DISK)
    timeline = load_properties(storage).load_timeline(storage)
    archived = ArchivedRecords(timeline.history, _WRITES).instants
    return {(i.time, i.action.completed_as): i.completed_at for i in (*archived, *timeline.writes)}


def _undone(files: Files, done: Mapping[str, InstantFile], there: frozenset[Named]) -> tuple[Undone, ...]:
    found: dict[str, set[Named]] = {}
    for path, file in done.items():
        if file.action in _UNDOES:
            found.setdefault(file.time, set()).update(taken_back(decode_instant(files.journal[path], path, False)))
    left = {(file.time, file.action) for file in done.values()} - there
    undone = []
    for time in sorted(found):  # the first: another write, which never completed, may have borne the instant as well
        undone.append(Undone(time, frozenset(found[time] & left)))
        left -= found[time]
    return tuple(undone)
