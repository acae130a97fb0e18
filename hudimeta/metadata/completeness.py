"""Which indexes of whole tables are proven to lack no row.

Statistics of a file speak of that file. A record index or a secondary index speaks of the whole table: a key that it lacks
would be a row that is not there; and statistics of a partition leave out the values of a file of which Java knew nothing when
it united them. Tables can hold such indexes with entries missing or stale, so the newest write must say that they are complete:
`hudimeta.indexes.complete` in the extraMetadata of its commit, names separated by commas. An index that was built since says
the same in the completed `indexing` instant. A table without any write lacks no row.

That word is void as soon as others change an index without a write: they restore the table or take a completed write back, lay
a partition of the metadata table out anew, or upgrade or downgrade the table. Our own restores and rollbacks leave every index
as it was. Nothing proves a secondary index beside a record index that is kept by partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hudimeta.metadata import partition_stats, record_index, secondary_index
from hudimeta.metadata.index_definitions import COMPLETE_KEY, VERSION_KEY
from hudimeta.timeline.restore_record import is_own_restore
from hudimeta.timeline.rollback_record import is_own_rollback
from hudimeta.types import Action

if TYPE_CHECKING:
    from hudimeta.metadata.metadata_table import MetadataTable
    from hudimeta.types import Instant

__all__ = ["knows_whole_table", "proof_of", "proven_indexes"]

_LAID_OUT = "0000"
"""Instants of the metadata table that lay it out begin so; all others are those of writes."""
_OF_TABLES = frozenset({record_index.PARTITION, partition_stats.PARTITION})


def knows_whole_table(partition: str) -> bool:
    """True for indexes that need a proof."""
    return partition in _OF_TABLES or partition.startswith(secondary_index.PREFIX)


def proof_of(names: Iterable[str], version: int) -> dict[str, str]:
    """Entries of extraMetadata that call indexes of a table of some version complete; empty when there are none."""
    complete = ",".join(sorted(names))
    return {COMPLETE_KEY: complete, VERSION_KEY: str(version)} if complete else {}


def proven_indexes(table: MetadataTable, names: Iterable[str] | None = None) -> frozenset[str]:
    """Names of the metadata partitions that lack no row.

    Args:
        table: The metadata table.
        names: Those that are asked about; None for all that are ready.
    """
    timeline, version = table.data_timeline, table.version
    wanted = frozenset(name for name in (table.ready if names is None else names) if knows_whole_table(name))
    if any(name.startswith(secondary_index.PREFIX) for name in wanted) and _has_keys_by_partition(table):
        wanted = frozenset(name for name in wanted if not name.startswith(secondary_index.PREFIX))
    if not wanted:
        return wanted
    if not timeline.writes:
        return wanted if _is_unwritten(table) or not timeline.history.manifest() else frozenset()
    newest = timeline.by_completion[-1]
    since = newest.completion_order
    later = [i for i in (*timeline.completed, *table.laid_out) if i.completion_order > since]
    found = _named(timeline.metadata(newest).get("extraMetadata"), version)
    for instant in sorted(later, key=lambda i: i.completion_order):
        if instant.action is Action.INDEXING:
            found = _after_indexing(timeline.metadata(instant), found, version)
        elif instant.action is Action.DELTA_COMMIT or _was_undone_by_others(table, instant):
            found = set()
    return wanted & found


def _has_keys_by_partition(table: MetadataTable) -> bool:
    """True where a key may be a row in each partition: an entry of a secondary index, a value and a key, is of all of them."""
    definition = table.index_definitions.get(record_index.PARTITION)
    return definition is not None and definition.is_partitioned


def _was_undone_by_others(table: MetadataTable, instant: Instant) -> bool:
    """True for what took back writes without leaving every index as it had been: a rollback or restore that is not ours."""
    timeline = table.data_timeline
    if instant.action is Action.RESTORE:
        return not is_own_restore(timeline.read(instant), instant.file_name)
    return instant.action is Action.ROLLBACK and not is_own_rollback(timeline.read(instant), instant.file_name)


def _is_unwritten(table: MetadataTable) -> bool:
    """True when the metadata table was laid out and nothing else: then no archived write needs to be looked for."""
    return all(instant.time.startswith(_LAID_OUT) for instant in table.timeline)


def _after_indexing(record: Mapping[str, object], found: set[str], version: int) -> set[str]:
    infos = record.get("indexPartitionInfos")
    for info in infos if isinstance(infos, list) else ():
        # Whoever built it anew may have left rows out: only its own word counts from here on.
        found = found - {info["metadataPartitionPath"]} | _named(info.get("extraMetadata"), version)
    return found


def _named(extra: object, version: int) -> set[str]:
    if not isinstance(extra, Mapping) or extra.get(VERSION_KEY, str(version)) != str(version):
        return set()
    return {name.strip() for name in extra.get(COMPLETE_KEY, "").split(",") if name.strip()}
