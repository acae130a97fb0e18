"""Removing an index: out of the table's properties first, so that nobody uses it, then its definition, then its files.

Plans to build it go as well, and what a run of one left that died: they would stay pending for good.

The completed `indexing` action stays on the timeline: writers that began before learn by it to look at the properties anew.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from hudimeta.commit.concurrency import Concurrency
from hudimeta.commit.dead_indexing import take_back_dead
from hudimeta.commit.index_build import IndexReport, ready_property
from hudimeta.commit.locks.chosen import table_lock
from hudimeta.commit.locks.fence import FencedLock, FencedStorage
from hudimeta.commit.planned_runs import idle
from hudimeta.config import Options
from hudimeta.config.options import INDEX_TIMEZONE
from hudimeta.errors import ConfigError, TableError
from hudimeta.indexes.plan import dependents
from hudimeta.metadata import expression_index, files, secondary_index
from hudimeta.metadata.indexing import announce, complete, indexing_instant, partitions_of, remove_index, waits, withdraw
from hudimeta.snapshot.table_schema import refuse_foreign_write
from hudimeta.storage import Storage
from hudimeta.table.properties import TableProperties, update
from hudimeta.table.properties import load as load_properties
from hudimeta.timeline import InstantGenerator, SystemClock, Timeline
from hudimeta.types import Action

__all__ = ["drop_index"]


def drop_index(storage: Storage, options: Options, name: str) -> IndexReport:
    """Remove an index; rows do not change.

    Args:
        storage: Rooted at the table.
        options: Of the caller.
        name: Of its metadata partition, or of a secondary or expression index without the prefix.

    Raises:
        ConfigError: No such index.
        TableError: It is `files`, or another index needs it.
    """
    begin = time.perf_counter()
    lock = FencedLock(table_lock(storage, options, load_properties(storage).name), SystemClock())
    with lock.held():
        storage = FencedStorage(storage, lock)
        properties = load_properties(storage)
        properties.check_writable()
        timeline = properties.load_timeline(storage)
        refuse_foreign_write(properties, timeline)
        plans = _plans(timeline)
        partition = _partition(properties, [one for names in plans.values() for one in names], name)
        _withdraw(storage, properties, timeline, [one for one, names in plans.items() if partition in names], options)
        properties = load_properties(storage)
        timeline = properties.load_timeline(storage)
        ready = [one for one in properties.metadata_partitions if one != partition]
        inflight = [one for one in properties.metadata_partitions_inflight if one and one != partition]
        changes: dict[str, str | None] = {
            "hoodie.table.metadata.partitions": ready_property(ready),
            "hoodie.table.metadata.partitions.inflight": ready_property(inflight),
        }
        if not any(one.startswith(expression_index.PREFIX) for one in ready):
            changes[INDEX_TIMEZONE.key] = None  # the next may be built in another zone
        # Whoever finds this on the timeline finishes what was begun.
        times = InstantGenerator(SystemClock(), properties.zone)
        instant = indexing_instant(storage, timeline, times)
        announce(storage, timeline, instant, [partition], "")
        update(storage, changes)
        remove_index(storage, properties, partition)
        complete(storage, timeline, times, instant, {partition: False}, "", properties.version)
    return IndexReport(partition, "dropped", seconds=time.perf_counter() - begin)


def _plans(timeline: Timeline) -> dict[str, list[str]]:
    """Indexes whose building waits for whoever runs it, by the instant of the plan."""
    found = timeline.plans(i for i in timeline.pending if i.action is Action.INDEXING)
    return {one.time: partitions_of(record) for one, record in found if waits(record)}


def _withdraw(
    storage: Storage, properties: TableProperties, timeline: Timeline, plans: Sequence[str], options: Options
) -> None:
    """Take back what died while it built an index, then the plans of the one that goes: nothing would ever run them.

    Raises:
        CommitError: A process is running one.
    """
    patience_s = Concurrency.of(options, properties).patience_s
    for instant in plans:
        idle(storage, timeline, instant, Action.INDEXING, patience_s)
    take_back_dead(storage, timeline, properties, patience_s)
    for instant in plans:
        withdraw(storage, timeline, instant)


def _partition(properties: TableProperties, planned: Sequence[str], name: str) -> str:
    there = tuple(dict.fromkeys((*properties.metadata_partitions, *properties.metadata_partitions_inflight, *planned)))
    spelled = (name, secondary_index.PREFIX + name, expression_index.PREFIX + name)
    found = [one for one in spelled if one in there]
    if not found:
        raise ConfigError("name", name, f"an index of the table: {', '.join(one for one in there if one != files.PARTITION)}")
    partition = found[0]
    if partition == files.PARTITION:
        hint = "t.metadata.rebuild() makes it anew."
        raise TableError("the listing of files is what the metadata table is for, it cannot be dropped alone", hint)
    needed_by = dependents(partition, there)
    if needed_by:
        raise TableError(f"{partition} is needed by {', '.join(needed_by)}", "Drop these first.")
    return partition
