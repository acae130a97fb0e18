"""Indexes that were built while a write was under way.

What an index must know of a file is gathered when the file is written. An index that was not there then is brought along from
the files, as far as that can be done; an index of keys cannot, so the write runs again. One that was dropped and built anew,
perhaps over another column, has a name that the facts of the files know already: then nobody can tell what they speak of.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudimeta.errors import CommitConflict
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metadata import MetadataTable, column_stats, record_index, secondary_index
from hudimeta.types import Action

__all__ = ["built_since", "refuse_built_anew"]


def built_since(table: MetadataTable, instant: str) -> dict[str, str]:
    """Metadata partitions that were built since an instant, each with the instant of the building.

    Args:
        table: The metadata table, opened under the lock.
        instant: Of the write.
    """
    found: dict[str, str] = {}
    timeline = table.data_timeline
    for action in timeline.completed:
        late = action.action is Action.INDEXING and action.completed_at > instant
        # One that builds nothing, and records that an index is complete, has no part in the metadata table.
        if late and table.timeline.get(action.time, Action.DELTA_COMMIT) is not None:
            infos = timeline.metadata(action).get("indexPartitionInfos") or ()
            found.update({info["metadataPartitionPath"]: action.time for info in infos})
    return found


def refuse_built_anew(
    table: MetadataTable, instant: str, written: Sequence[WrittenFile], known: MetadataTable | None = None
) -> None:
    """Refuse files with facts for an index that was built since the write began, or without those that an index of keys needs.

    It costs nothing where none was built.

    A service begins when its plan is run: its instant is older, and what was built in between it knows.

    Args:
        table: The metadata table, opened under the lock.
        instant: Of the write.
        written: The files of the write.
        known: The metadata table as the write saw it; None where nobody knows.

    Raises:
        CommitConflict: With the building; a write with a new instant can do it.
    """
    seen = frozenset() if known is None else frozenset(i.time for i in known.data_timeline.completed)
    late = built_since(table, instant)
    built = [(name, winner) for name, winner in late.items() if winner not in seen and name in table.ready]
    if known is not None:
        # Properties are read before the timeline: they may not name an index of which the timeline says that it is built.
        newest = max((i.time for i in table.data_timeline.completed if i.action is Action.INDEXING), default="")
        built += [(name, late.get(name, newest)) for name in table.ready if name not in known.ready]
    for name, winner in built:
        if any(_speaks_of(f, name) or _lacks(f, name) for f in written):
            raise CommitConflict("write", (), winner, what=f"the index {name}", did="built meanwhile")


def _lacks(file: WrittenFile, partition: str) -> bool:
    """True where an index of keys cannot tell what the file changes."""
    if partition == record_index.PARTITION:
        return file.facts.keys is None
    return partition.startswith(secondary_index.PREFIX) and partition not in file.facts.values


def _speaks_of(file: WrittenFile, partition: str) -> bool:
    if partition == column_stats.PARTITION:
        return bool(len(file.statistics))
    return partition in file.facts.values or partition in file.facts.expressions
