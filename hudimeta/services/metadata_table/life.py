"""The metadata table of a table made, brought up to date, and removed; each tells first what it would do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from hudimeta.commit.session import WriteSession
from hudimeta.errors import MetadataOutOfSync, TableError
from hudimeta.indexes.planned import indexes_of_table
from hudimeta.metadata import MetadataTable
from hudimeta.metadata.compaction import pending_compaction
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.redaction import hidden
from hudimeta.reports import Report
from hudimeta.services.indexing import rebuild
from hudimeta.storage import FileInfo, Storage
from hudimeta.table.modes import MetadataModes

__all__ = ["MetadataChange", "create", "delete", "update"]

_PARTITIONS, _BUILDING = "hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight"


@dataclass(frozen=True, repr=False)
class MetadataChange(Report):
    """What became of a metadata table or, of a dry run, what would.

    Attributes:
        verb: `create`, `update`, `delete` or `set`.
        table: Location of the table.
        steps: What was done, in words; none where nothing had to be.
        partitions: The metadata partitions that are there afterwards.
        dry_run: Nothing was done.
        seconds: What it took.
    """

    verb: str
    table: str
    steps: tuple[str, ...]
    partitions: tuple[str, ...]
    dry_run: bool = False
    seconds: float = 0.0

    def __str__(self) -> str:
        if not self.steps:
            return f"metadata table of {self.table}: nothing was to be done ({self.seconds:.2f} s)"
        head = f"metadata table of {self.table}" + (" (dry run, nothing was changed)" if self.dry_run else "")
        return "\n".join([f"{head}:", *(f"  {step}" for step in self.steps), f"  in {self.seconds:.2f} s"])


def create(session: WriteSession, *, dry_run: bool = False) -> MetadataChange:
    """Make the metadata table of a table that has none, from a listing of its folders.

    Args:
        session: The table; its options say which indexes are made.
        dry_run: Only tell which partitions it would have.

    Raises:
        TableError: It has one, or its properties say that it has none.
    """
    begin, table = time.perf_counter(), hidden(session.storage.root)
    if session.properties.has_metadata_table:
        raise TableError("the table has a metadata table", "t.metadata.delete() removes it, t.metadata.update() repairs it.")
    if not MetadataModes.of(session.options, session.properties).enabled:
        hint = (
            "t.metadata.set(enable=True) switches it on for the table; an option hoodie.metadata.enable=false goes before that."
        )
        raise TableError("the metadata table is switched off for this table", hint)
    if dry_run:
        timeline = session.properties.load_timeline(session.storage)
        planned = indexes_of_table(session.properties, session.snapshot_at(timeline).file_schema, session.options)
        names = tuple(sorted(index.partition for index in planned))
        return MetadataChange("create", table, (f"create {', '.join(names)}",), names, True, time.perf_counter() - begin)
    session.ensure_metadata()
    names = tuple(sorted(session.properties.metadata_partitions))
    return MetadataChange("create", table, (f"created {', '.join(names)}",), names, seconds=time.perf_counter() - begin)


def update(session: WriteSession, *, dry_run: bool = False) -> MetadataChange:
    """Bring a metadata table into step: take dead writes back, finish its own services, rebuild it if it is behind.

    Every commit keeps it in step, so there is something to do only after a crash, or after a writer that left it out.

    Args:
        session: The table.
        dry_run: Only tell what would be done.

    Raises:
        TableError: There is none.
    """
    begin, table = time.perf_counter(), hidden(session.storage.root)
    if not session.properties.has_metadata_table:
        raise TableError("the table has no metadata table", "t.metadata.create() makes one.")
    due = _due(session)
    if dry_run:
        names = tuple(sorted(session.properties.metadata_partitions))
        return MetadataChange("update", table, due, names, True, time.perf_counter() - begin)
    steps = [f"rolled back {instant}" for instant in session.coordinator.recover()]
    session.reload()
    pending = _pending_compaction(session)
    if any("compaction" in step for step in due) and not pending:
        steps.append("finished its compaction")
    if _lag(session):
        steps.append(f"built it anew: {len(rebuild(session).parts)} partitions")
    names = tuple(sorted(session.properties.metadata_partitions))
    return MetadataChange("update", table, tuple(steps), names, seconds=time.perf_counter() - begin)


def delete(session: WriteSession, *, dry_run: bool = False) -> MetadataChange:
    """Remove the metadata table with all indexes. The next write makes it anew, unless its properties say that it has none.

    Args:
        session: The table.
        dry_run: Only tell what would be removed.

    Raises:
        TableError: There is none.
    """
    begin, table = time.perf_counter(), hidden(session.storage.root)
    found = list(_below(session.storage, METADATA_ROOT))
    if not session.properties.has_metadata_table and not found:
        raise TableError("the table has no metadata table", "There is nothing to remove.")
    what = f"{len(found):,} files ({sum(file.size for file in found):,} bytes) of {METADATA_ROOT}"
    names = tuple(sorted(session.properties.metadata_partitions))
    if dry_run:
        return MetadataChange("delete", table, (f"remove {what}",), names, True, time.perf_counter() - begin)
    session.coordinator.recover()
    with session.lock.held():
        session.change_properties(lambda _: {_PARTITIONS: "", _BUILDING: ""})
        session.fenced.delete_folder(METADATA_ROOT)
    return MetadataChange("delete", table, (f"removed {what}",), (), seconds=time.perf_counter() - begin)


def _due(session: WriteSession) -> tuple[str, ...]:
    """What an update would have to do; writes that live are among the pending ones and stay."""
    timeline = session.properties.load_timeline(session.storage)
    steps = [f"roll back {i.action.value} {i.time}, if its writer is dead" for i in timeline.pending_writes]
    pending = _pending_compaction(session)
    if pending:
        steps.append(f"finish its compaction at {pending}")
    if lag := _lag(session):
        steps.append(f"build it anew: {lag}")
    return tuple(steps)


def _lag(session: WriteSession) -> str:
    """What the metadata table lacks, in words; "" where it is in step."""
    timeline = session.properties.load_timeline(session.storage)
    try:
        MetadataTable.open(session.storage, session.properties, timeline)
    except MetadataOutOfSync as error:
        return error.message
    return ""


def _pending_compaction(session: WriteSession) -> str:
    """Instant of a compaction of the metadata table that was begun and not finished; "" without one."""
    timeline = session.properties.load_timeline(session.storage)
    try:
        found = pending_compaction(MetadataTable.open(session.storage, session.properties, timeline))
    except MetadataOutOfSync:
        return ""
    return found.time if found else ""


def _below(storage: Storage, folder: str) -> Iterator[FileInfo]:
    for entry in storage.list(folder):
        if entry.is_folder:
            yield from _below(storage, entry.path)
        else:
            yield entry
