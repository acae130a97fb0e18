"""Upgrading and downgrading: what must be done before, the one step that decides, and what is left to do after it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from hudimeta.commit.index_build import record_proof
from hudimeta.commit.locks.chosen import table_lock
from hudimeta.commit.locks.fence import FencedLock, FencedStorage
from hudimeta.commit.metadata_again import planned_again
from hudimeta.commit.metadata_bootstrap import bootstrap_metadata
from hudimeta.commit.session import WriteSession
from hudimeta.commit.supported import check_supported, refuse_contradictions
from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.engine import Engine
from hudimeta.errors import TableError, UnsupportedFeature
from hudimeta.indexes.expression_index.facts import WantedExpression, expression_of
from hudimeta.indexes.lost_definitions import refuse_lost_definitions
from hudimeta.indexes.planned import PlannedIndex, record_index_definition, store_definitions
from hudimeta.keys import FIRST_VERSION_WITH_PREFIX, KeyGenerator
from hudimeta.metadata import bloom_filters, column_stats, expression_index, partition_stats, record_index
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.metadata.indexed_columns import column_type, has_statistics, statistics_definition
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.schema import with_meta_columns
from hudimeta.services import compaction
from hudimeta.services.versions.old_archive import copy_archive
from hudimeta.services.versions.old_timeline import copy_timeline, remove_old_files
from hudimeta.services.versions.plan import Unfinished, VersionPlan, VersionReport, steps_between
from hudimeta.services.versions.property_changes import property_changes
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import CountingStorage, Storage
from hudimeta.table.properties import TableProperties, update
from hudimeta.table.properties import load as load_properties
from hudimeta.timeline import DEFAULT_FOLDER, History, SystemClock, Timeline
from hudimeta.timeline.naming import LAYOUT_V1, LAYOUT_V2
from hudimeta.types import META_COLUMNS, TableType
from hudimeta.write.learned_keys import learned_from_rows

__all__ = ["change_version", "plan_version"]

_PARTITIONS, _INFLIGHT = "hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight"
_NO_METADATA: Mapping[str, str] = {_PARTITIONS: "", _INFLIGHT: ""}
_OLD_FOLDER = ".hoodie"
_HISTORY = "history"
_COMPACTIONS_TRIED = 3
"""So often log files that other writers added meanwhile are compacted once more."""

_MADE = "another process set the properties"
_ALL_SLICES = {keys.COMPACT_STRATEGY.key: "UnBoundedCompactionStrategy"}
_ASKED_BY = {
    column_stats.PARTITION: keys.COLUMN_STATS,
    partition_stats.PARTITION: keys.PARTITION_STATS,
    bloom_filters.PARTITION: keys.BLOOM_FILTERS,
    record_index.PARTITION: keys.RECORD_INDEX,
}


def plan_version(storage: Storage, options: Options, to: int, verb: str) -> VersionPlan:
    """What `change_version` would do now; nothing is changed.

    Args:
        storage: Rooted at the table.
        options: Of the caller.
        to: The version that the table shall have.
        verb: `upgrade` or `downgrade`.

    Raises:
        ConfigError, UnsupportedFeature: The table cannot have that version.
    """
    options = options.without(keys.TABLE_VERSION)  # which a table on its way is not held to
    properties = load_properties(storage)
    way = steps_between(properties.version, to, verb)
    if FIRST_VERSION_WITH_PREFIX in way:
        _refuse_bare_keys(storage, options)
    begun = Unfinished.find(storage)
    actions = ["finish what a call that died has begun"] if begun is not None and begun.to == properties.version else []
    now = properties
    if way:
        refuse_contradictions(now, options)
    for version in way:
        changes = property_changes(now, version, options.texts)
        actions += _actions(now, version)
        now = now.with_changes(changes)
        if version == 8:  # what is left to do after such a step is a write, which must not be refused then
            check_supported(now, _after_a_step(options))
    return VersionPlan(properties.version, to, way, tuple(actions))


def _after_a_step(options: Options) -> Options:
    """Options that said of a table what it was, as they fit what it has become: a step may merge its rows by another class."""
    return options.without(keys.MERGE_MODE).without(keys.PAYLOAD_CLASS)


def _refuse_bare_keys(storage: Storage, options: Options) -> None:
    """Refuse to move a table whose keys would be spelled otherwise from then on, so that each row came once more.

    That is one with a single column of keys and the generator COMPLEX, whose keys are bare values, as those of Apache Hudi 1.0
    are. Where its later releases upgrade tables, they refuse all with that generator.
    """
    snapshot = Snapshot.open(CountingStorage(storage), options)
    unknown = replace(KeyGenerator.from_properties(snapshot.properties), complex_single_field_prefix=None)
    if not snapshot.properties.populate_meta or not unknown.lacks_prefix:
        return
    known = learned_from_rows(unknown, snapshot)
    if known is not None and not known.complex_single_field_prefix:
        field = known.record_fields[0]
        raise UnsupportedFeature(
            f"version {FIRST_VERSION_WITH_PREFIX} for keys that are bare values of {field!r}",
            f"It writes them as {field}:value, so that no row would be found again. Leave the table at version 8, or write its "
            "rows into a new table.",
        )


def _actions(properties: TableProperties, to: int) -> Iterator[str]:
    merges = properties.type is TableType.MERGE_ON_READ
    has_metadata = properties.has_metadata_table
    if properties.version == 6:
        yield "write the timeline anew in .hoodie/timeline, with what is archived, then remove its old files"
    elif merges:
        yield f"compact all log files, before version {to}"
    yield f"set the properties of version {to}"
    if has_metadata and (properties.version, to) != (8, 9):
        yield f"build the metadata table anew: {', '.join(properties.metadata_partitions)}"
    if merges and properties.version == 6:
        yield "compact all log files"


def change_version(storage: Storage, options: Options, to: int, verb: str, engine: Engine | None = None) -> VersionReport:
    """Move a table to another version; rows do not change.

    Args:
        storage: Rooted at the table.
        options: Of the caller.
        to: The version that it shall have.
        verb: `upgrade` or `downgrade`.
        engine: Where files are merged and read.

    Raises:
        ConfigError, UnsupportedFeature: The table cannot have that version; nothing was changed.
        TableError: Writers or services are at work.
        CorruptFileError: Damage was found; the table has the version that it had.
    """
    begin = time.perf_counter()
    options = options.without(keys.TABLE_VERSION)  # the table has another one at every step
    plan = plan_version(storage, options, to, verb)
    done = _finished(storage, options, engine)
    options = _after_a_step(options)
    way = (plan.version, *plan.versions)
    for passed in range(len(plan.versions)):
        done += [*_step(storage, options, way[passed:], engine), *_finished(storage, options, engine)]
    return VersionReport(plan.version, to, tuple(done), time.perf_counter() - begin)


def _step(storage: Storage, options: Options, way: Sequence[int], engine: Engine | None) -> list[str]:
    if way[0] == 6:
        return [_leave_version_6(storage, options, way)]
    to = way[1]
    session = WriteSession(storage, options.having(_ALL_SLICES), engine=engine)
    done = []
    for _ in range(_COMPACTIONS_TRIED):
        session.coordinator.recover()
        if session.properties.type is TableType.MERGE_ON_READ:
            # What compaction does not run is refused before it changes anything.
            now = session.properties.load_timeline(session.storage)
            _refuse_pending(now, {instant.time for instant in compaction.pending(now)})
            done += [f"compacted: {report}" for report in compaction.compact(session)]
        with session.lock.held():
            session.reload()
            if _is_made(session.properties, way):
                return [*done, _MADE]
            timeline = session.properties.load_timeline(session.storage)
            _refuse_pending(timeline)
            if not compaction.plan(session, session.snapshot_at(timeline)).slices:
                _switch(session, to)
                return [*done, f"set the properties of version {to}"]
    raise TableError("other writers add log files as fast as they are compacted", "Stop them, and try again.")


def _is_made(properties: TableProperties, way: Sequence[int]) -> bool:
    """Whether another process made the first step of a way since this one looked; asked under the table lock."""
    if properties.version not in way:
        raise TableError(
            f"another process moved the table to version {properties.version} meanwhile", "Look at its version, and try again."
        )
    return properties.version != way[0]


def _refuse_pending(timeline: Timeline, run_first: Collection[str] = ()) -> None:
    if pending := [instant for instant in timeline.pending if instant.time not in run_first]:
        named = ", ".join(f"{i.action.value} {i.time}" for i in pending)
        raise TableError(
            f"writes or services are pending ({named}), and their files belong to the version that the table has",
            "Wait for their end, or roll them back; run what is only planned.",
        )


def _leave_version_6(storage: Storage, options: Options, way: Sequence[int]) -> str:
    lock = FencedLock(table_lock(storage, options, load_properties(storage).name), SystemClock())
    with lock.held():
        fenced = FencedStorage(storage, lock)
        properties = load_properties(fenced)
        if _is_made(properties, way):
            return _MADE
        old = properties.load_timeline(fenced)
        _refuse_pending(old)
        Unfinished(properties.version, 8, properties.metadata_partitions).store(fenced)
        written = copy_timeline(fenced, old, DEFAULT_FOLDER)
        history = History(fenced, f"{DEFAULT_FOLDER}/{_HISTORY}", LAYOUT_V2)
        archived = copy_archive(fenced, properties.history_folder, history)
        update(fenced, {**property_changes(properties, 8, options.texts), **_NO_METADATA})
    said = f"wrote {written:,} files of the timeline anew, and set the properties of version 8"
    if archived.instants:
        said += f"; {archived.instants:,} archived instants are in its history, and stay in {properties.history_folder} as well"
    if archived.bare:
        said += f", {archived.bare:,} of them without what they did, which is in no form that is known"
    if archived.damaged:
        said += f"; {archived.damaged:,} damaged stretches of {properties.history_folder} were left out"
    return said


def _switch(session: WriteSession, to: int) -> None:
    """The step that decides; the caller holds the table lock."""
    storage, properties = session.fenced, session.properties
    changes = property_changes(properties, to, session.options.texts)
    if to == 9:
        metadata = session.snapshot_now().metadata
        proven = frozenset() if metadata is None else proven_indexes(metadata)
        if metadata is not None:
            refuse_lost_definitions(metadata)
            store_definitions(storage, metadata.index_definitions)  # which says the form of each index
            update(storage.sub(METADATA_ROOT), {"hoodie.table.version": str(to)})
        update(storage, changes)
        session.reload()
        record_proof(session, dict.fromkeys(proven, True))  # a word of the version before would not count any more
        return
    if properties.has_metadata_table:
        Unfinished(properties.version, to, properties.metadata_partitions).store(storage)
        changes |= _NO_METADATA
    update(storage, changes)


# After the step


def _finished(storage: Storage, options: Options, engine: Engine | None) -> list[str]:
    """Do what is left to do after the last step, whoever made it."""
    begun = Unfinished.find(storage)
    if begun is None or load_properties(storage).version != begun.to:
        return []
    session, done = WriteSession(storage, options.having(_ALL_SLICES), engine=engine), list[str]()
    with session.lock.held():
        session.reload()
        begun = Unfinished.find(storage)  # which another process may have finished meanwhile
        if begun is None or session.properties.version != begun.to:
            return []
        if begun.version == 6:
            old = Timeline.load(session.fenced, _OLD_FOLDER, LAYOUT_V1, zone=session.properties.zone)
            remove_old_files(session.fenced, old)
        if set(begun.metadata_partitions) - set(session.properties.metadata_partitions):
            done.append(_metadata_anew(session, begun.metadata_partitions))
        Unfinished.forget(session.fenced)
    if begun.version == 6 and session.properties.type is TableType.MERGE_ON_READ:
        session.reload()
        done += [f"compacted: {report}" for report in compaction.compact(session)]
    return done


def _metadata_anew(session: WriteSession, partitions: tuple[str, ...]) -> str:
    storage, properties = session.fenced, session.properties
    timeline = properties.load_timeline(storage)
    schema = session.snapshot_at(timeline).file_schema
    names = {*partitions, *properties.metadata_partitions}
    asked = {option.key: str(name in names).lower() for name, option in _ASKED_BY.items()}
    options = session.options.having({**asked, keys.RECORD_INDEX_BY_PARTITION.key: "false"})
    kept, left_out = planned_again(storage, properties, names, schema, options)
    planned = [_in_form_of(properties.version, one, schema) for one in kept]
    unfit = [one for one in planned if not _is_kept_up(one, schema)]
    planned = [one for one in planned if one not in unfit]
    if record_index.PARTITION in left_out:  # by partition, which version 8 does not know
        planned.insert(1, PlannedIndex(record_index.PARTITION, record_index_definition(properties.version)))
    update(storage, dict(_NO_METADATA))
    session.properties = bootstrap_metadata(
        storage, properties, timeline, schema, options, session.times, session.engine, planned
    )
    lost = sorted({*left_out, *(one.partition for one in unfit)} - {record_index.PARTITION})
    beside = f"; {', '.join(lost)} is not built again: create it anew" if lost else ""
    return f"built the metadata table anew: {', '.join(one.partition for one in planned)}{beside}"


def _in_form_of(version: int, index: PlannedIndex, schema: pa.Schema) -> PlannedIndex:
    """An index as it was, in the form of the table's version."""
    if index.partition == record_index.PARTITION:
        return PlannedIndex(index.partition, record_index_definition(version))
    if index.definition is None:
        return index
    if index.partition == column_stats.PARTITION:
        columns = [c for c in index.definition.source_fields if _has_bounds(schema, c)]
        return PlannedIndex(index.partition, statistics_definition(columns, version))
    return PlannedIndex(index.partition, replace(index.definition, version=None))


def _is_kept_up(index: PlannedIndex, schema: pa.Schema) -> bool:
    """Whether an index can be built in its form: bounds of version 8 do not hold every decimal."""
    if index.definition is None or not index.partition.startswith(expression_index.PREFIX):
        return True
    try:
        expression_of(WantedExpression(index.definition), with_meta_columns(schema))
    except UnsupportedFeature:
        return False
    return True


def _has_bounds(schema: pa.Schema, column: str) -> bool:
    kind = column_type(schema, column)
    return column in META_COLUMNS or (kind is not None and has_statistics(kind, "V1"))
