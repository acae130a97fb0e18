"""More file groups for the record index of a table, made from the index alone: no data file is read.

The file group of a key follows from the number of groups, so each group gets a new base file at one fresh instant, beside what
it has. That is a compaction of the metadata table whose content lies in other groups; nothing of it counts, for Apache Hudi nor
for us, before its last step, the completed file on the metadata table's timeline. An `indexing` action on the table's own
timeline goes before it, so that nobody believes what older commits say of the number.

Killed before that step it leaves a pending compaction, which the next writer runs with as many groups as there are.

Records go to their new groups as the bytes that they are. Where the number grows to a multiple, the keys of a group stay among
themselves, and one group after the other is taken; else all of them are in memory.

Fewer groups cannot be had this way: Apache Hudi counts those that it finds, and files of several groups do not go at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from hudimeta.commit.index_build import IndexReport, newest_write
from hudimeta.commit.session import WriteSession
from hudimeta.engine import LocalEngine
from hudimeta.errors import ConfigError, HudiError, IndexNotReady, TableError, UnsupportedFeature
from hudimeta.formats.hfile import KeyValues
from hudimeta.metadata import MetadataTable, compaction, record_index
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.metadata.delta import by_group
from hudimeta.metadata.file_groups import file_group_id
from hudimeta.metadata.group_files import FileGroup
from hudimeta.metadata.indexing import announce, complete, discard_dead
from hudimeta.metadata.own_instants import compaction_instant
from hudimeta.metadata.payload import sorted_cells
from hudimeta.metadata.rollback import METADATA_ROOT, remove_files
from hudimeta.metadata.writer import MetadataWriter
from hudimeta.timeline import Timeline, TimelineWriter
from hudimeta.types import Action, State

__all__ = ["resize"]

_PARTITION = record_index.PARTITION
_MOST = 10_000
"""Hudi makes no more."""


def resize(session: WriteSession, groups: int, *, dry_run: bool = False) -> IndexReport:
    """Give the record index more file groups.

    Args:
        session: The table.
        groups: How many.
        dry_run: Only check, and tell how many records would move.

    Raises:
        ConfigError: Fewer than there are, or more than Hudi makes.
        IndexNotReady: The table has no record index.
        UnsupportedFeature: It is kept by partition.
        TableError: A write is in doubt.
    """
    begin = time.perf_counter()
    if not dry_run:
        session.coordinator.recover()
    with session.lock.held():
        session.reload()
        if _PARTITION not in session.properties.metadata_partitions:
            raise IndexNotReady(_PARTITION, "not there: t.metadata.create_index(type='record_index') builds it")
        timeline = session.properties.load_timeline(session.storage)
        if not dry_run and discard_dead(session.fenced, timeline):
            timeline = session.properties.load_timeline(session.storage)
        table = _opened(session, timeline, dry_run)
        have = table.file_groups(_PARTITION)
        _check(table, have, groups)
        if len(have) == groups:
            return IndexReport(_PARTITION, f"has {groups:,} file groups already", seconds=time.perf_counter() - begin)
        if dry_run:
            return IndexReport(_PARTITION, f"would go from {len(have):,} to {groups:,} file groups")
        records, instant = _resized(session, timeline, table, have, groups)
    seconds = time.perf_counter() - begin
    return IndexReport(_PARTITION, f"resized from {len(have):,} file groups", instant, groups, records, seconds)


def _opened(session: WriteSession, timeline: Timeline, dry_run: bool) -> MetadataTable:
    """The metadata table without a compaction that died."""
    table = MetadataTable.open(session.storage, session.properties, timeline)
    begun = compaction.pending_compaction(table)
    if begun is None or dry_run:
        return table
    remove_files(session.fenced, begun.time)
    timelines = TimelineWriter(session.fenced.sub(METADATA_ROOT), table.timeline.folder)
    timelines.delete_pending(begun.time, Action.COMPACTION, State.INFLIGHT)
    timelines.delete_pending(begun.time, Action.COMPACTION, State.REQUESTED)
    return MetadataTable.open(session.storage, session.properties, timeline)


def _check(table: MetadataTable, have: tuple[FileGroup, ...], groups: int) -> None:
    definition = table.index_definitions.get(_PARTITION)
    if definition is not None and definition.is_partitioned:
        hint = "Each partition of the table has file groups of its own; drop the index and create it over the whole table."
        raise UnsupportedFeature("resizing a record index that is kept by partition", hint)
    if not len(have) <= groups <= _MOST:
        hint = (
            "Fewer are made by building it anew: drop it, and create it with "
            f"hoodie.metadata.record.index.min.filegroup.count={groups}."
        )
        raise ConfigError("groups", groups, f"{len(have):,}, which it has, to {_MOST:,}", hint if groups < len(have) else "")
    pending = {i.time for i in table.data_timeline.pending_writes}
    doubtful = [i.time for i in table.timeline.writes if i.time in pending]
    if doubtful:
        raise TableError(f"the write {doubtful[0]} is in the metadata table and not completed", "Try again when it has ended.")


def _resized(
    session: WriteSession, timeline: Timeline, table: MetadataTable, have: tuple[FileGroup, ...], groups: int
) -> tuple[int, str]:
    """Write the new base files, and switch to them; returns the number of records, and the instant."""
    storage, times = session.fenced, session.times
    inner = storage.sub(METADATA_ROOT)
    writer = MetadataWriter(storage, session.properties.version, times, LocalEngine().map)
    timelines = TimelineWriter(inner, table.timeline.folder)
    old = {group.file_id: group for group in have}
    plan = compaction.MetadataCompactionPlan([(_PARTITION, group) for group in have if group.base or group.logs])
    proven = _PARTITION in proven_indexes(table)
    instant = compaction_instant(table, times)
    timelines.create_requested(instant, Action.COMPACTION, plan.encode())
    timelines.create_inflight(instant, Action.COMPACTION)
    stats: list[Mapping[str, Any]] = []

    def write(share: tuple[int, KeyValues]) -> Mapping[str, Any]:
        file_id = file_group_id(_PARTITION, share[0])
        group = old.get(file_id, FileGroup(file_id, None, ()))
        return compaction.write_base(inner, writer, instant, _PARTITION, group, share[1])

    try:
        for shares in _shares(table, have, groups, writer):
            stats += LocalEngine().map(write, shares)
        upto = newest_write(timeline)
        said = times.next(timeline.last_time, table.timeline.last_time)
        announce(storage, timeline, said, [_PARTITION], upto)
        complete(storage, timeline, times, said, {_PARTITION: proven}, upto, session.properties.version)
    except HudiError:
        remove_files(storage, instant)
        timelines.delete_pending(instant, Action.COMPACTION, State.INFLIGHT)
        timelines.delete_pending(instant, Action.COMPACTION, State.REQUESTED)
        raise
    completion = times.next(instant, table.timeline.last_time)
    timelines.complete(instant, Action.COMPACTION, completion, compaction.commit_of(writer, stats))
    return sum(int(stat["numWrites"]) for stat in stats), instant


def _shares(
    table: MetadataTable, have: tuple[FileGroup, ...], groups: int, writer: MetadataWriter
) -> Iterator[list[tuple[int, KeyValues]]]:
    """The records of each new file group, some groups at a time."""
    taken = [[group] for group in have] if groups % len(have) == 0 else [list(have)]
    for number, some in enumerate(taken):
        cells = KeyValues.concat([c for group in some for c in table.group_pieces(_PARTITION, group, writer.layout)])
        keys, values = cells.keys, cells.values
        at = dict(by_group(keys, groups))
        own = range(number, groups, len(have)) if len(taken) > 1 else range(groups)
        if not set(at) <= set(own):
            raise TableError(
                f"the file group {some[0].file_id} of the record index holds keys of another one",
                "t.metadata.rebuild() makes the index anew.",
            )
        nothing = pa.array([], pa.int64())
        yield [
            (group, KeyValues(*sorted_cells(keys.take(rows), values.take(rows))))
            for group, rows in ((group, at.get(group, nothing)) for group in own)
        ]
