"""Another number of file groups for the record index of a table, made from the index alone: no data file is read.

The file group of a key follows from the number of groups, so each group gets a new base file at one fresh instant, beside what
it has. Nothing of it counts, for Apache Hudi nor for us, before its last step, the completed file on the metadata table's
timeline. An `indexing` action on the table's own timeline goes before it, so that nobody believes what older commits say of the
number.

*More* groups come by a compaction of the metadata table whose content lies in other groups. Killed before its last step it is a
pending compaction, which the next writer runs with as many groups as there are.

*Fewer* come by a replacecommit of the metadata table, which names the groups that go: Apache Hudi counts the groups that it
finds, and passes over those. Their files stay for readers from before as long as superseded files do, and the replacecommit as
long as they. Killed before its last step it is taken back. Until it is archived, the ids that it names cannot be used again.

Records go to their new groups as the bytes that they are. Groups of which the numbers have the same remainder by the greatest
common divisor of both numbers keep their keys among themselves: so many parts are taken one after the other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hudimeta.commit.dead_indexing import take_back_dead
from hudimeta.commit.index_build import IndexReport, newest_write
from hudimeta.commit.session import WriteSession
from hudimeta.engine import LocalEngine
from hudimeta.errors import ConfigError, HudiError, IndexNotReady, TableError, UnsupportedFeature
from hudimeta.formats.hfile import KeyValues
from hudimeta.metadata import MetadataTable, compaction, group_merges, record_index, upkeep
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.metadata.delta import by_group
from hudimeta.metadata.group_files import FileGroup, base_name, file_group_id, log_file
from hudimeta.metadata.indexing import announce, complete
from hudimeta.metadata.own_instants import compaction_instant
from hudimeta.metadata.payload import sorted_cells
from hudimeta.metadata.rollback import METADATA_ROOT, remove_files
from hudimeta.metadata.writer import MetadataWriter
from hudimeta.storage import Storage
from hudimeta.timeline import Timeline, TimelineWriter
from hudimeta.types import MOST_GROUPS, Action, State

__all__ = ["resize"]

_PARTITION = record_index.PARTITION


def resize(session: WriteSession, groups: int, *, dry_run: bool = False) -> IndexReport:
    """Give the record index more or fewer file groups.

    Args:
        session: The table.
        groups: How many.
        dry_run: Only check, and tell how many records would move.

    Raises:
        ConfigError: None, more than Hudi makes, or some whose names an earlier call took out and cannot be used again yet.
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
        if not dry_run and take_back_dead(session.fenced, timeline, session.properties, session.concurrency.patience_s):
            session.reload()
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
    """The metadata table without a compaction, or a call like this one, that died."""
    table = MetadataTable.open(session.storage, session.properties, timeline)
    if dry_run:
        return table
    if upkeep.take_back_dead(session.fenced, table):
        table = MetadataTable.open(session.storage, session.properties, timeline)
    begun = compaction.pending_compaction(table)
    if begun is None:
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
    if not 0 < groups <= MOST_GROUPS:
        raise ConfigError("groups", groups, f"a number from 1 to {MOST_GROUPS:,}")
    unusable = table.taken_out(_PARTITION) & {file_group_id(_PARTITION, number) for number in range(groups)}
    if unusable:
        hint = (
            f"Those that went last come back when the metadata table has archived that, after {upkeep.LEAST_RETAINED} and more "
            "writes; or drop the index and create it anew."
        )
        raise ConfigError("groups", groups, f"{len(have):,}, which it has, or fewer", hint)
    pending = {i.time for i in table.data_timeline.pending_writes}
    doubtful = [i.time for i in table.timeline.writes if i.time in pending]
    if doubtful:
        raise TableError(f"the write {doubtful[0]} is in the metadata table and not completed", "Try again when it has ended.")


def _resized(
    session: WriteSession, timeline: Timeline, table: MetadataTable, have: tuple[FileGroup, ...], groups: int
) -> tuple[int, str]:
    """Write the new base files, and switch to them; returns the number of records, and the instant."""
    action = Action.COMPACTION if groups > len(have) else Action.REPLACE_COMMIT
    storage, times = session.fenced, session.times
    inner = storage.sub(METADATA_ROOT)
    writer = MetadataWriter(storage, session.properties.version, times, LocalEngine())
    timelines = TimelineWriter(inner, table.timeline.folder)
    old = {group.file_id: group for group in have}
    proven = _PARTITION in proven_indexes(table)
    instant = compaction_instant(table, times)
    timelines.create_requested(instant, action, _plan(have, action))
    timelines.create_inflight(instant, action)
    stats: list[Mapping[str, Any]] = []

    def write(share: tuple[int, KeyValues]) -> Mapping[str, Any]:
        file_id = file_group_id(_PARTITION, share[0])
        group = old.get(file_id, FileGroup(file_id, None, ()))
        return group_merges.write_base(inner, instant, writer.version, _PARTITION, group, share[1])

    try:
        for shares in _shares(table, have, groups, writer):
            stats += LocalEngine().map(write, shares)
        upto = newest_write(timeline)
        said = times.next(timeline.last_time, table.timeline.last_time)
        announce(storage, timeline, said, [_PARTITION], upto)
        complete(storage, timeline, times, said, {_PARTITION: proven}, upto, session.properties.version)
    except HudiError:
        remove_files(storage, instant)
        timelines.delete_pending(instant, action, State.INFLIGHT)
        timelines.delete_pending(instant, action, State.REQUESTED)
        raise
    completion = times.next(instant, table.timeline.last_time)
    if action is Action.COMPACTION:
        content = compaction.commit_of(writer, stats)
    else:
        gone = sorted(old.keys() - {file_group_id(_PARTITION, number) for number in range(groups)})
        content = compaction.replacement_of(writer, stats, _PARTITION, gone, _superseded(inner, have, gone))
    timelines.complete(instant, action, completion, content)
    return sum(int(stat["numWrites"]) for stat in stats), instant


def _plan(have: tuple[FileGroup, ...], action: Action) -> bytes:
    """What the requested file says."""
    if action is Action.COMPACTION:
        return compaction.MetadataCompactionPlan([(_PARTITION, group) for group in have if group.base or group.logs]).encode()
    return compaction.replacement_plan()


def _superseded(inner: Storage, have: tuple[FileGroup, ...], gone: Sequence[str]) -> list[str]:
    """Names of the files that nobody needs any more: all of the groups that go, and the newest slices of those that stay."""
    slices = [file.path.rpartition("/")[2] for group in have for file in (group.base, *group.logs) if file is not None]
    there = [(file.name, base_name(file.name) or log_file(_PARTITION, file.name, file.size)) for file in inner.list(_PARTITION)]
    return sorted({*slices, *(name for name, one in there if one is not None and one[0] in gone)})


def _shares(
    table: MetadataTable, have: tuple[FileGroup, ...], groups: int, writer: MetadataWriter
) -> Iterator[list[tuple[int, KeyValues]]]:
    """The records of each new file group, some groups at a time."""
    parts = math.gcd(len(have), groups)
    for number in range(parts):
        some = have[number::parts]
        cells = KeyValues.concat([c for group in some for c in table.group_pieces(_PARTITION, group, writer.layout)])
        keys, values = cells.keys, cells.values
        at = dict(by_group(keys, groups))
        own = range(number, groups, parts)
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
