"""Making a metadata table anew from what lies on storage.

Where the old one can be opened, every file group gets a new base file at a fresh instant, beside what it has. That is a
compaction whose content does not come from the logs: nothing of it counts before its last step, the completed file on the
metadata table's timeline. Until then a preview shows the metadata table as it will be, and that is validated.

Where it cannot be opened, or where there is none, the properties stop naming it first (readers list storage meanwhile); then
its folder is laid out anew, validated, and named again. So no moment shows a metadata table that is stale or not there.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hudimeta.commit.index_ahead import every_group, of_so_many
from hudimeta.commit.index_build import IndexReport, index_source, record_proof
from hudimeta.commit.metadata_again import planned_again
from hudimeta.commit.metadata_bootstrap import lay_out_indexes
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS, HudiWarning
from hudimeta.config.options import RECORD_INDEX_BY_PARTITION
from hudimeta.engine import LocalEngine
from hudimeta.errors import CorruptFileError, MetadataError, NotFound, TableError, UnsupportedFeature
from hudimeta.formats.hfile import KeyValues
from hudimeta.indexes.lost_definitions import lost_definitions
from hudimeta.indexes.planned import PlannedIndex, index_properties, indexes_of_table
from hudimeta.indexes.protocol import IndexSource
from hudimeta.indexes.registry import maintainer_for
from hudimeta.metadata import MetadataTable, compaction, group_merges, record_index, upkeep
from hudimeta.metadata.completeness import knows_whole_table
from hudimeta.metadata.group_files import FileGroup, spelling_in
from hudimeta.metadata.index_definitions import DEFAULT_PATH
from hudimeta.metadata.own_instants import compaction_instant
from hudimeta.metadata.rollback import METADATA_ROOT, remove_files
from hudimeta.metadata.writer import MetadataWriter
from hudimeta.redaction import hidden
from hudimeta.reports import Report
from hudimeta.services.indexing.preview import PreviewStorage
from hudimeta.services.validation import ValidationReport, validate
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import CountingStorage, Storage, join
from hudimeta.table.discovery import committed_files, list_table
from hudimeta.table.properties import TableProperties, update
from hudimeta.table.stated_sizes import listed_as_stated, lost_files
from hudimeta.timeline import Timeline, TimelineWriter
from hudimeta.timeline.naming import completed_name
from hudimeta.types import Action, State

__all__ = ["RebuildReport", "rebuild"]


@dataclass(frozen=True, repr=False)
class RebuildReport(Report):
    """What a rebuild made.

    Attributes:
        parts: One report a metadata partition.
        validation: Of what was made, before anybody used it.
        beside: Whether the old metadata table served readers meanwhile.
        seconds: What it took.
        lost: Files of rows that commits name and storage lacks: the table goes on without them.
    """

    parts: tuple[IndexReport, ...]
    validation: ValidationReport
    beside: bool
    seconds: float
    lost: tuple[str, ...] = ()

    def __str__(self) -> str:
        how = "beside the old one" if self.beside else "in its place"
        head = f"metadata table of {self.validation.table} built anew {how} in {self.seconds:.2f} s"
        lost = [f"  lost: {_shown(self.lost)}"] if self.lost else []
        return "\n".join([head, *(f"  {part}" for part in self.parts), *lost, str(self.validation)])


def _shown(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN:,} more" if len(paths) > _SHOWN else ""
    return f"{'; '.join(paths[:_SHOWN])}{more}"


def rebuild(session: WriteSession) -> RebuildReport:
    """Make the metadata table anew, with the indexes that it has, or (where there is none) those that options ask for.

    Args:
        session: The table.

    Raises:
        TableError: Writes are under way.
        ValidationFailed: What was built is not true; nothing of it is used.
        CorruptFileError: It has a record index by partition without its definition, and the options ask for none.
    """
    begin = time.perf_counter()
    session.coordinator.recover()
    with session.lock.held():
        session.reload()
        properties = session.properties
        timeline = properties.load_timeline(session.storage)
        if timeline.pending_writes:
            writers = ", ".join(f"{i.action.value} {i.time}" for i in timeline.pending_writes)
            raise TableError(
                f"writes are under way ({writers}), which Apache Hudi could not take back any more",
                "Wait for their end, run what is planned (t.compact(), t.cluster(), t.services.log_compact()), and try again.",
            )
        # Of a table without a write there is nothing to go on reading, and an instant of its own would tell of lost writes.
        table = _opened(session, timeline) if timeline.instants else None
        made = _in_place(session, timeline) if table is None else _beside(session, timeline, table)
        parts, validation, lost = made
        if lost:
            text = f"storage lacks files that commits name, so their rows are gone: {_shown(lost)}"
            warnings.warn(f"{text}. Restore them from a copy, then rebuild again", HudiWarning, stacklevel=2)
        keyed = [part.partition for part in parts if knows_whole_table(part.partition)]
        record_proof(session, {name: name in validation.proven for name in keyed})
        return RebuildReport(parts, validation, table is not None, time.perf_counter() - begin, lost)


_SHOWN = 5
"""Paths of lost files that are told."""

Made = tuple[tuple[IndexReport, ...], ValidationReport, tuple[str, ...]]
"""What was built, what the validator says of it, and which files are lost."""


def _opened(session: WriteSession, timeline: Timeline) -> MetadataTable | None:
    """The metadata table, if the number of its file groups can be known; None where it must be laid out anew."""
    if not session.properties.has_metadata_table:
        return None
    try:
        table = MetadataTable.open(session.storage, session.properties, timeline)
        begun = compaction.pending_compaction(table)
        if begun is not None:
            _take_back(session.fenced, table.timeline.folder, begun.time)
        if upkeep.take_back_dead(session.fenced, table) or begun is not None:
            table = MetadataTable.open(session.storage, session.properties, timeline)
        lost = lost_definitions(table)
        known = all(table.file_groups(name) for name in table.ready)
    except (MetadataError, CorruptFileError, NotFound):
        return None
    if record_index.PARTITION in lost and not session.options.get(RECORD_INDEX_BY_PARTITION):
        hint = f"Open the table with {RECORD_INDEX_BY_PARTITION.key}=true, which describes it, or restore the file from a copy."
        raise CorruptFileError(DEFAULT_PATH, 0, "the definition of record_index, which is kept by partition", "none", hint)
    return table if known and not lost else None


def _take_back(storage: Storage, folder: str, instant: str) -> None:
    """Remove a compaction of the metadata table that is not completed."""
    remove_files(storage, instant)
    timeline = TimelineWriter(storage.sub(METADATA_ROOT), folder)
    timeline.delete_pending(instant, Action.COMPACTION, State.INFLIGHT)
    timeline.delete_pending(instant, Action.COMPACTION, State.REQUESTED)


# Beside the old one


def _beside(session: WriteSession, timeline: Timeline, table: MetadataTable) -> Made:
    storage, times = session.fenced, session.times
    inner = storage.sub(METADATA_ROOT)
    writer = MetadataWriter(storage, session.properties.version, times, LocalEngine())
    timelines = TimelineWriter(inner, table.timeline.folder)
    groups = [(name, group) for name in table.ready for group in table.file_groups(name)]
    plan = compaction.MetadataCompactionPlan([(name, group) for name, group in groups if group.base or group.logs])
    instant = compaction_instant(table, times)
    timelines.create_requested(instant, Action.COMPACTION, plan.encode())
    timelines.create_inflight(instant, Action.COMPACTION)
    stats, reports = [], []
    schema, listing = session.snapshot_at(timeline).file_schema, listed_as_stated(list_table(storage), timeline)
    source = index_source(session, timeline, schema, writer, listing, table.index_definitions)
    try:
        for name in table.ready:
            begin, records = time.perf_counter(), 0
            for group, content in _contents(source, table, name):
                stats.append(group_merges.write_base(inner, instant, writer.version, name, group, content))
                records += len(content)
            seconds = time.perf_counter() - begin
            reports.append(IndexReport(name, "rebuilt", instant, len(table.file_groups(name)), records, seconds))
        completion = times.next(instant, table.timeline.last_time)
        content_of_commit = compaction.commit_of(writer, stats)
        name = completed_name(instant, Action.COMMIT, completion)
        preview = PreviewStorage(storage, join(METADATA_ROOT, table.timeline.folder, name), content_of_commit)
        found = _validated(session, session.properties, preview)
    except BaseException:
        _take_back(storage, table.timeline.folder, instant)
        raise
    timelines.complete(instant, Action.COMPACTION, completion, content_of_commit)
    return tuple(reports), found, tuple(lost_files(listing, timeline))


def _contents(source: IndexSource, table: MetadataTable, name: str) -> Iterator[tuple[FileGroup, KeyValues]]:
    """New content for each file group of a metadata partition, in as many groups as it has."""
    groups = {group.file_id: group for group in table.file_groups(name)}
    have = Counter(spelling for group in groups if (spelling := spelling_in(name, group)) is not None)
    options = of_so_many(source.options, len(groups))
    built = maintainer_for(name).build(name, replace(source, options=options, groups=have))
    ids = built.file_ids(name)
    if set(ids) != groups.keys():
        raise UnsupportedFeature(f"rebuilding {name} with {len(groups)} file groups", "Drop the index and create it again.")
    for number, content in every_group(built.groups, built.content):
        yield groups[ids[number]], content


# In its place


def _in_place(session: WriteSession, timeline: Timeline) -> Made:
    storage, properties = session.fenced, session.properties
    schema = session.snapshot_at(timeline).file_schema
    planned = _planned(session, timeline)
    nothing = {"hoodie.table.metadata.partitions": "", "hoodie.table.metadata.partitions.inflight": ""}
    update(storage, nothing, anew=True)
    listing = committed_files(listed_as_stated(list_table(storage), timeline), timeline)
    storage.delete_folder(METADATA_ROOT)
    begin = time.perf_counter()
    lay_out_indexes(storage, properties, planned, schema, session.options, session.times, session.engine, timeline, listing)
    seconds = time.perf_counter() - begin
    changes = index_properties(planned)
    found = _validated(session, properties.with_changes(changes), storage)
    session.properties = update(storage, dict(changes))
    reports = tuple(IndexReport(one.partition, "rebuilt", seconds=seconds / len(planned)) for one in planned)
    return reports, found, tuple(lost_files(listing, timeline))


def _planned(session: WriteSession, timeline: Timeline) -> list[PlannedIndex]:
    """The metadata partitions that the table has, as far as their definitions are there; without any, those of the options."""
    properties = session.properties
    schema = session.snapshot_at(timeline).file_schema
    if not properties.has_metadata_table:
        return indexes_of_table(properties, schema, session.options)
    names = properties.metadata_partitions
    planned, left_out = planned_again(session.storage, properties, names, schema, session.options)
    for name in left_out:
        warnings.warn(f"{name} is not built again: its definition is gone, create it anew", HudiWarning, stacklevel=2)
    return planned


# Both


def _validated(session: WriteSession, properties: TableProperties, storage: Storage) -> ValidationReport:
    """What the validator says of the new metadata table; raises unless it holds."""
    timeline = properties.load_timeline(storage)
    options = OPTIONS.read({"hudimeta.index.trust": "true"})
    found = validate(Snapshot(CountingStorage(storage), properties, timeline, options), engine=session.engine)
    found.raise_if_differs()
    return replace(found, table=hidden(session.storage.root))
