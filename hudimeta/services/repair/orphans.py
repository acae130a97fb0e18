"""Data files that no write owns: what is left of tasks and writers that nobody took back.

A file is an orphan when the metadata table does not list it and, besides, either no instant of the timeline or of its history
bears its time, or a completed write bears it whose commit does not name the file. Everything else stays: files of pending
instants, of savepoints, of archived writes, and whatever nothing is known of. Folders are listed before the timeline, so that
a write which begins meanwhile is on the timeline that its files are held against.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.commit.removal import delete_in_tasks
from hudimeta.commit.session import WriteSession
from hudimeta.errors import CorruptFileError
from hudimeta.metadata import MetadataTable
from hudimeta.services.repair.findings import Finding, RepairReport
from hudimeta.storage import join
from hudimeta.table.discovery import list_table
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.timeline import Timeline
from hudimeta.timeline.archived import ArchivedRecords
from hudimeta.timeline.naming import LAYOUT_V1
from hudimeta.timeline.savepoint_record import files_of_savepoint
from hudimeta.types import Action

__all__ = ["repair_orphans"]

_WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
_GONE = "no write of its instant is on the timeline or in the history"
_UNNAMED = "its write was completed without it"


@dataclass(frozen=True)
class _Found:
    path: str
    instant: str
    size: int


def repair_orphans(session: WriteSession, *, dry_run: bool) -> RepairReport:
    """Delete the data files that no write owns, after dead writes were rolled back.

    Args:
        session: The table.
        dry_run: Only list them.
    """
    if not dry_run:
        session.coordinator.recover()
    orphans, notes = _find(session)
    if not dry_run:
        delete_in_tasks(session.storage, [one.path for one in orphans], session.engine)
    return RepairReport(tuple(orphans), not dry_run, notes)


def _find(session: WriteSession) -> tuple[list[Finding], tuple[str, ...]]:
    listed = list_table(session.storage)
    timeline = session.properties.load_timeline(session.storage)
    candidates = list(_unlisted(session, timeline, listed))
    if timeline.layout == LAYOUT_V1:  # whose log files bear the instant of their base file
        candidates = [one for one in candidates if parse_log_file(one.path.rpartition("/")[2]) is None]
    owners = _Owners(timeline, {one.instant for one in candidates})
    findings, unknown = [], 0
    for one in candidates:
        why = owners.why_orphan(one)
        unknown += why is None
        if why:
            findings.append(Finding(one.path, why, "deleted", one.size))
    said = f"{unknown:,} files stay of whose writes too little is known: they are older than the history tells, or unfinished"
    return sorted(findings, key=lambda one: one.path), (said,) if unknown else ()


def _unlisted(session: WriteSession, timeline: Timeline, listed: pa.Table) -> Iterable[_Found]:
    """Data files that the metadata table does not list; all of them where there is none."""
    if session.properties.has_metadata_table:
        known = MetadataTable.open(session.storage, session.properties, timeline).files()
        names, have = (
            pc.binary_join_element_wise(table["partition_path"].cast(pa.string()), table["name"].cast(pa.string()), "\0")
            for table in (known, listed)
        )
        listed = listed.filter(pc.invert(pc.is_in(have, value_set=names.combine_chunks())))
    for partition, name, size in zip(*(listed[c].to_pylist() for c in ("partition_path", "name", "size")), strict=True):
        parsed = parse_base_file(name) or parse_log_file(name)
        if parsed is not None:
            yield _Found(join(partition, name), parsed.instant, size)


class _Owners:
    """What commits and savepoints say of the files of some instants.

    Args:
        timeline: Listed after the files.
        instants: Of the files.
    """

    def __init__(self, timeline: Timeline, instants: set[str]) -> None:
        self._pending = {i.time for i in (*timeline.pending, *timeline.disowned, *timeline.undone)}
        self._others = {i.time for i in timeline if not i.action.writes_data}
        self._saved: set[str] = set()
        self._named: dict[str, set[str] | None] = {}
        if not instants:
            return
        saved = [i for i in timeline.completed if i.action is Action.SAVEPOINT]
        writes = [i for i in timeline.writes if i.time in instants]
        timeline.prefetch([*saved, *writes])
        for one in saved:
            for partition, names in files_of_savepoint(timeline.metadata(one)).items():
                self._saved.update(join(partition, name) for name in names)
        for one in writes:
            self._named[one.time] = _paths_named(timeline.metadata(one))
        self._first = timeline.first_active_write
        old = {time for time in instants if self._first is not None and time < self._first}
        self._look_up_archived(timeline, old - set(self._named))

    def _look_up_archived(self, timeline: Timeline, instants: set[str]) -> None:
        if not instants or timeline.layout == LAYOUT_V1:
            return
        try:
            archived = ArchivedRecords(timeline.history, _WRITES, since=min(instants))
            for one in archived.instants:
                if one.time in instants:
                    self._named[one.time] = _paths_named(archived.metadata(one))
        except CorruptFileError:  # then nothing is known of them
            return

    def why_orphan(self, file: _Found) -> str | None:
        """Why nobody owns a file; "" where somebody does, None where that cannot be known."""
        time = file.instant
        if file.path in self._saved:
            return ""
        if time in self._named:
            named = self._named[time]
            if named is None:
                return None
            return "" if file.path in named else _UNNAMED
        if time in self._pending or time in self._others or self._first is None or time < self._first:
            return None
        return _GONE


def _paths_named(commit: Mapping[str, Any]) -> set[str] | None:
    """Paths of the files of a commit; None where it does not name them all."""
    found: set[str] = set()
    for partition, stats in commit["partitionToWriteStats"].items():
        for stat in stats:
            if not stat["path"]:
                return None
            found.update([stat["path"], *(stat.get("cdcStats") or ())])
            found.update(join(partition, name.rpartition("/")[2]) for name in stat.get("logFiles") or ())
    return found or None
