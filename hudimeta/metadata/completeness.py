"""Which indexes of whole tables are proven to lack no row.

Statistics of a file speak of that file. A record index or a secondary index speaks of the whole table: a key that it lacks
would be a row that is not there. Tables can hold such indexes with entries missing or stale, so the newest write must say that
they are complete: `hudimeta.indexes.complete` in the extraMetadata of its commit, names separated by commas. An index that was
built since says the same in the completed `indexing` instant. A table without any write lacks no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hudimeta.metadata import record_index, secondary_index
from hudimeta.metadata.index_definitions import COMPLETE_KEY
from hudimeta.timeline.active import Timeline
from hudimeta.types import Action, Instant

__all__ = ["completion_order", "knows_whole_table", "proven_indexes", "proof_of"]

_REPLACING = (Action.RESTORE,)
"""Actions that replace what an index holds without being writes."""


def knows_whole_table(partition: str) -> bool:
    """True for indexes that need a proof."""
    return partition == record_index.PARTITION or partition.startswith(secondary_index.PREFIX)


def completion_order(instant: Instant) -> tuple[str, str]:
    """Sorts instants by their completion."""
    return instant.completion or instant.time, instant.time


def proof_of(names: Iterable[str]) -> dict[str, str]:
    """The entry of a commit's extraMetadata that calls indexes complete; empty when there are none."""
    complete = ",".join(sorted(names))
    return {COMPLETE_KEY: complete} if complete else {}


def proven_indexes(timeline: Timeline, ready: Iterable[str]) -> frozenset[str]:
    """Names of the metadata partitions that lack no row.

    Args:
        timeline: Of the table. ready: Metadata partitions that are there.
    """
    wanted = frozenset(name for name in ready if knows_whole_table(name))
    if not wanted:
        return wanted
    newest = max(timeline.writes, key=completion_order, default=None)
    if newest is None:
        return frozenset() if timeline.history.manifest() else wanted
    since = completion_order(newest)
    later = sorted((i for i in timeline.completed if completion_order(i) > since), key=completion_order)
    found = _named(timeline.metadata(newest).get("extraMetadata"))
    for instant in later:
        if instant.action in _REPLACING:
            found = set()
        elif instant.action is Action.INDEXING:
            found = _after_indexing(timeline.metadata(instant), found)
    return wanted & found


def _after_indexing(record: Mapping[str, object], found: set[str]) -> set[str]:
    infos = record.get("indexPartitionInfos")
    for info in infos if isinstance(infos, list) else ():
        # Whoever built it anew may have left rows out: only its own word counts from here on.
        found = found - {info["metadataPartitionPath"]} | _named(info.get("extraMetadata"))
    return found


def _named(extra: object) -> set[str]:
    text = extra.get(COMPLETE_KEY, "") if isinstance(extra, Mapping) else ""
    return {name.strip() for name in text.split(",") if name.strip()}
