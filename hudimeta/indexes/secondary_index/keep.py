"""The metadata partitions `secondary_index_<name>`: which record keys have a value.

Each entry is a key of value and record key in one. A file brings the entries that it adds to and takes from its file group,
from its rows before and after; file groups that are replaced take theirs along. An entry that is both lost and added stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import MetadataError
from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.plain_arrays import array_of
from hudimeta.indexes.changed_meanwhile import counts_still
from hudimeta.indexes.facts import KeyChanges, value_keys
from hudimeta.indexes.protocol import BuiltIndex, CleanChange, CommitChange, IndexDelta, IndexSource, Reach
from hudimeta.indexes.record_index.keep import estimated_groups
from hudimeta.indexes.removed_meanwhile import check_not_removed_later
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metadata import MetadataTable, secondary_index
from hudimeta.metadata.delta import Hashed, PartitionDelta, by_group
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.keys import secondary_heads

__all__ = ["SecondaryIndexKeep"]


class SecondaryIndexKeep:
    """See `IndexMaintainer`."""

    def keeps(self, partition: str) -> bool:
        """See `IndexMaintainer`."""
        return partition.startswith(secondary_index.PREFIX)

    def delta(self, partition: str, change: CommitChange) -> IndexDelta:
        """See the head of the module."""
        if change.same_rows:
            return IndexDelta()
        definition = change.table.index_definitions[partition]
        (column,) = definition.source_fields
        changes = [value_changes(file, partition) for file in change.written]
        lost = [value_keys(rows, column, definition.is_v2) for _, rows in change.replaced_rows]
        removed = pa.concat_arrays([_none(), *lost, *(c.removed for c in changes)]).unique()
        added = pa.concat_arrays([_none(), *(c.added for c in changes)]).unique()
        check_not_removed_later(change, partition, added)
        gone = removed.filter(pc.invert(pc.is_in(removed, value_set=added)))
        records = secondary_index.encode_keys(added, change.layout)
        part = PartitionDelta(partition, records, gone, _hashed(definition))
        return IndexDelta([part] if len(part) else [])

    def holds(self, partition: str, change: CommitChange, now: MetadataTable) -> bool:
        """Where no younger write was completed before this one, whose word on an entry would count instead."""
        if change.same_rows:
            return True
        if any(change.replaced.values()):  # rows may have come to what it replaces
            return change.timeline.completed == now.data_timeline.completed
        return counts_still(change, now.data_timeline) and all(
            i.time < change.instant for i in change.missed(now.data_timeline)
        )

    def cleaned(self, partition: str, change: CleanChange) -> IndexDelta:
        """Nothing: a clean takes no row."""
        return IndexDelta()

    def build(self, partition: str, source: IndexSource) -> BuiltIndex:
        """The entries of all rows of the newest file slices."""
        definition = source.definitions[partition]
        (column,) = definition.source_fields
        found = [texts for _, texts in source.entries([column], lambda rows: value_keys(rows, column, definition.is_v2))]
        entries = sum(map(len, found))
        groups = estimated_groups(entries, source.options)
        piles: list[list[pa.Array]] = [[] for _ in range(groups)]
        for texts in found:
            for group, at in by_group(texts, groups, _hashed(definition)):
                piles[group].append(texts.take(at))
        shards = [(group, pa.concat_arrays(pile).unique()) for group, pile in enumerate(piles) if pile]
        doubled = entries > sum(len(texts) for _, texts in shards)
        return BuiltIndex(groups, _encoded(shards, source), reach=Reach.TABLE if doubled else Reach.FILE_GROUP)


def value_changes(file: WrittenFile, partition: str) -> KeyChanges:
    """The changes of entries that a file brings along.

    Raises:
        MetadataError: It brings none, so that the index could not be kept.
    """
    if partition not in file.facts.values:
        hint = "Run the write again: the table got this index after the write had begun."
        raise MetadataError(f"{file.path} was written without saying what it changes in {partition}", hint)
    return file.facts.values[partition]


def _encoded(shards: Sequence[tuple[int, pa.Array]], source: IndexSource) -> Iterator[tuple[int, KeyValues]]:
    for group, texts in shards:
        yield group, secondary_index.encode_keys(texts, source.layout)


def _hashed(definition: IndexDefinition) -> Hashed | None:
    """The second form spreads entries by their value, the first by the whole key."""
    return secondary_heads if definition.is_v2 else None


def _none() -> pa.StringArray:
    return array_of([], pa.string())
