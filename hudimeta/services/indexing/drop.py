"""Removing an index: out of the table's properties first, so that nobody uses it, then its definition, then its files.

The completed `indexing` action stays on the timeline: writers that began before learn by it to look at the properties anew.
"""

from __future__ import annotations

import time

from hudimeta.commit.index_build import IndexReport, ready_property
from hudimeta.commit.locks.chosen import table_lock
from hudimeta.commit.locks.fence import FencedLock, FencedStorage
from hudimeta.config import Options
from hudimeta.config.options import INDEX_TIMEZONE
from hudimeta.errors import ConfigError, TableError
from hudimeta.indexes.plan import dependents
from hudimeta.metadata import expression_index, files, secondary_index
from hudimeta.metadata.indexing import announce, complete, discard_dead, indexing_instant, remove_index
from hudimeta.snapshot.table_schema import refuse_foreign_write
from hudimeta.storage import Storage
from hudimeta.table.properties import TableProperties, update
from hudimeta.table.properties import load as load_properties
from hudimeta.timeline import InstantGenerator, SystemClock

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
        partition = _partition(properties, name)
        ready = [one for one in properties.metadata_partitions if one != partition]
        inflight = [one for one in properties.metadata_partitions_inflight if one and one != partition]
        changes: dict[str, str | None] = {
            "hoodie.table.metadata.partitions": ready_property(ready),
            "hoodie.table.metadata.partitions.inflight": ready_property(inflight),
        }
        if not any(one.startswith(expression_index.PREFIX) for one in ready):
            changes[INDEX_TIMEZONE.key] = None  # the next may be built in another zone
        timeline = properties.load_timeline(storage)
        refuse_foreign_write(properties, timeline)
        if discard_dead(storage, timeline):
            timeline = properties.load_timeline(storage)
        # Whoever finds this on the timeline finishes what was begun.
        times = InstantGenerator(SystemClock(), properties.zone)
        instant = indexing_instant(storage, timeline, times)
        announce(storage, timeline, instant, [partition], "")
        update(storage, changes)
        remove_index(storage, properties, partition)
        complete(storage, timeline, times, instant, {partition: False}, "", properties.version)
    return IndexReport(partition, "dropped", seconds=time.perf_counter() - begin)


def _partition(properties: TableProperties, name: str) -> str:
    there = (*properties.metadata_partitions, *(p for p in properties.metadata_partitions_inflight if p))
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
