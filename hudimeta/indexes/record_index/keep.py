"""The metadata partition `record_index`: each record key and the file group that it lives in.

A commit adds the keys that its files added, with their new location, and removes those that its files have lost, or the file
groups that it replaced, unless they have a new location. Updates in place, compactions and cleans change nothing; a clustering
gives all keys of its files their new location, and asks for none: what was proven complete stays so.

**Doubled keys.** Inserts do not look keys up, so one may come to live in two file groups; the index can name one of them only,
as Hudi's does, and a reader that believed it would lose the row in the other. So an index that is proven complete asks itself
for the keys that a commit adds: one that has another location already is doubled, and the proof is over. Beyond
`hudimeta.index.proof.max.keys` added keys that question is not asked, and the proof is over as well, unless the index was empty
and no key comes twice among the added ones. A key twice in one file group is no harm: its location is right for both rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import MetadataError, UnsupportedFeature
from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.plain_arrays import array_of, no_rows, scalar_of, single_array
from hudimeta.indexes.changed_meanwhile import none_changed
from hudimeta.indexes.facts import KeyChanges
from hudimeta.indexes.protocol import BuiltIndex, CleanChange, CommitChange, IndexDelta, IndexSource, Reach
from hudimeta.indexes.removed_meanwhile import check_not_removed_later
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metadata import MetadataTable, answers, record_index
from hudimeta.metadata.delta import PartitionDelta, by_group
from hudimeta.metadata.group_files import data_partition_of, spelling_in, spelt_in_ids
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.timeline import parse_instant

__all__ = ["RecordIndexKeep", "estimated_groups", "key_changes", "too_many"]

_BYTES_A_RECORD = 48
"""What Hudi takes a record for when it plans the number of file groups."""

_MOST_SPELLING_BYTES = 180
"""Of a partition in the name of a file, which has 255 at most."""

_DROP_HINT = (
    "Drop the record index (t.metadata.drop_index('record_index')): what one of the two writes the other does not know."
)


class RecordIndexKeep:
    """See `IndexMaintainer`."""

    def keeps(self, partition: str) -> bool:
        """See `IndexMaintainer`."""
        return partition == record_index.PARTITION

    def delta(self, partition: str, change: CommitChange) -> IndexDelta:
        """See the head of the module."""
        if change.same_rows and not change.moves_rows:
            return IndexDelta()
        scope = _Scope.of(change)
        changes = [(file, key_changes(file)) for file in change.written]
        locations = _locations([(file, facts.added) for file, facts in changes])
        maybe = _locations([(file, facts.maybe_added) for file, facts in changes])
        lost = _lost(change, changes)
        proven, inserted = partition in change.proven, 0 if change.moves_rows else len(locations)
        asked = locations["record_key"] if proven and 0 < inserted <= change.proof_limit else pa.chunked_array([], pa.string())
        known = _known(change, pa.concat_arrays([single_array(asked), single_array(maybe["record_key"])]).unique())
        added = pa.concat_tables([locations, _without(maybe, known, _places)])
        rows = _last_of_each(added, scope.names)
        check_not_removed_later(change, partition, _keys(rows))
        twice = len(rows) < len(added)
        note = _why_doubled(added, known, lost, change, inserted, twice, scope.names) if proven else ""
        gone = _without(lost, rows, scope.names)
        rows = rows.append_column("instant_ms", _instants(rows, parse_instant(change.instant, change.properties.zone)))
        parts = [part for part in scope.parts(rows, gone, change) if len(part)]
        return IndexDelta(parts, not note, note)

    def holds(self, partition: str, change: CommitChange, now: MetadataTable) -> bool:
        """Where no other commit changed one of its keys: what the index says of them is what it was compared with."""
        if change.same_rows and not change.moves_rows:
            return True
        facts = [key_changes(file) for file in change.written]
        # Whether too many keys end the proof depends on the index being empty.
        too_many = partition in change.proven and sum(len(one.added) for one in facts) > change.proof_limit
        if too_many or any(change.replaced.values()):  # rows may have come to what it replaces
            return change.timeline.completed == now.data_timeline.completed
        return none_changed(change, now.data_timeline, [keys for one in facts for keys in one.every])

    def cleaned(self, partition: str, change: CleanChange) -> IndexDelta:
        """Nothing: a clean takes no row."""
        return IndexDelta()

    def build(self, partition: str, source: IndexSource) -> BuiltIndex:
        """The keys of all rows of the newest file slices."""
        definition = source.definitions.get(partition)
        found = source.entries([], lambda rows: single_array(rows[KEY_COLUMN]))
        if definition is not None and definition.is_partitioned:
            return _built_by_partition(found, source)
        groups = estimated_groups(_count(found), source.options)
        shards = _shards(found, groups, source)
        doubled = _count(found) > sum(len(rows) for _, rows in shards)
        return BuiltIndex(groups, _encoded(shards, source), not doubled, Reach.TABLE if doubled else Reach.FILE_GROUP)


_Found = Sequence[tuple[FileSlice, pa.Array]]
"""File slices, each with the record keys of its rows."""


def _count(found: _Found) -> int:
    return sum(len(texts) for _, texts in found)


def _shards(found: _Found, groups: int, source: IndexSource) -> list[tuple[int, pa.Table]]:
    """The locations of the keys that each file group gets, those without keys left out; a doubled key has one."""
    piles: list[list[pa.Table]] = [[] for _ in range(groups)]
    for one, texts in found:
        time = parse_instant(one.base_instant, source.properties.zone)
        for group, at in by_group(texts, groups):
            locations = _location(texts.take(at), one.partition_path, one.file_id)
            piles[group].append(locations.append_column("instant_ms", _instants(locations, time)))
    return [(group, _last_of_each(pa.concat_tables(pile), _keys)) for group, pile in enumerate(piles) if pile]


def _built_by_partition(found: _Found, source: IndexSource) -> BuiltIndex:
    """An index for each partition, with as many file groups as its rows suggest or as it has already."""
    of_path: dict[str, list[tuple[FileSlice, pa.Array]]] = {}
    for one, texts in found:
        of_path.setdefault(one.partition_path, []).append((one, texts))
    spellings = {data_partition_of(spelling): spelling for spelling in source.groups}
    counts, shards = dict(source.groups), list[tuple[str, int, pa.Table]]()
    for path, own in sorted(of_path.items()):
        spelling = spellings.get(path) or _new_spelling(path)
        groups = counts.setdefault(spelling, estimated_groups(_count(own), source.options, by_partition=True))
        shards += [(spelling, number, rows) for number, rows in _shards(own, groups, source)]
    first = dict(zip(counts, accumulate(counts.values(), initial=0), strict=False))
    placed = [(first[spelling] + number, rows) for spelling, number, rows in shards]
    complete = _count(found) == sum(len(rows) for _, rows in placed)
    return BuiltIndex(sum(counts.values()), _encoded(placed, source), complete, by_partition=counts)


@dataclass(frozen=True)
class _Scope:
    """Where a key is unique: in the table, or in its partition.

    Attributes:
        groups: By partition path how ids of its file groups spell it, and their number, for an index by partition; None for one
            over the table.
    """

    groups: Mapping[str, tuple[str, int]] | None

    @classmethod
    def of(cls, change: CommitChange) -> _Scope:
        definition = change.table.index_definitions.get(record_index.PARTITION)
        if definition is None or not definition.is_partitioned:
            return cls(None)
        listed = change.table.file_groups(record_index.PARTITION)
        counts = Counter(spelling_in(record_index.PARTITION, group.file_id) or "" for group in listed)
        groups = {data_partition_of(spelling): (spelling, count) for spelling, count in counts.items()}
        if len(groups) < len(counts):
            doubled = sorted(counts.keys() - {spelling for spelling, _ in groups.values()})
            raise MetadataError(f"the record index has two sets of file groups for one partition: {doubled}", _DROP_HINT)
        return cls(groups)

    def names(self, rows: pa.Table) -> pa.Array:
        """What makes each row's key unique."""
        if self.groups is None:
            return _keys(rows)
        return single_array(pc.binary_join_element_wise(rows["partition_path"], rows["record_key"], scalar_of("\0")))

    def parts(self, rows: pa.Table, gone: pa.Table, change: CommitChange) -> Iterator[PartitionDelta]:
        """New records and removed keys, of the table or of each partition."""
        index = record_index.PARTITION
        if self.groups is None:
            yield PartitionDelta(index, record_index.encode_values(rows, change.layout), _keys(gone))
            return
        for path in sorted({*_paths(rows), *_paths(gone)}):
            own, left = (table.filter(pc.equal(table["partition_path"], path)) for table in (rows, gone))
            spelling, count = self.groups.get(path) or (_new_spelling(path), 0)
            if len(own) or count:
                records, groups = record_index.encode_values(own, change.layout), count or change.least_groups
                yield PartitionDelta(index, records, _keys(left), None, spelling, groups, begins=not count)


def _new_spelling(path: str) -> str:
    """How ids of file groups spell a partition that has none yet; refused where there can be none."""
    spelling = spelt_in_ids(path)
    if len(spelling.encode()) > _MOST_SPELLING_BYTES:
        hint = f"Use one record index for the whole table, or partition paths of up to {_MOST_SPELLING_BYTES} encoded bytes."
        raise UnsupportedFeature(f"a record index by partition for the partition {path!r}", hint)
    return spelling


def _encoded(shards: Sequence[tuple[int, pa.Table]], source: IndexSource) -> Iterator[tuple[int, KeyValues]]:
    for group, rows in shards:
        yield group, record_index.encode_values(rows, source.layout)


def estimated_groups(records: int, options: Options, *, by_partition: bool = False) -> int:
    """How many file groups a record index of so many records gets, for good: Hudi's estimate and its options.

    Args:
        records: In the index.
        options: Of whoever makes it.
        by_partition: They are those of one partition, which has file groups of its own.
    """
    bounds = (keys.RECORD_INDEX_MIN_GROUPS, keys.RECORD_INDEX_MAX_GROUPS)
    if by_partition:
        bounds = (keys.RECORD_INDEX_LEAST_OF_PARTITION, keys.RECORD_INDEX_MOST_OF_PARTITION)
    least, most = (max(1, options.get(bound)) for bound in bounds)
    if least >= most:
        return least
    expected = math.ceil(records * options.get(keys.RECORD_INDEX_GROWTH))
    return max(least, min(most, expected // max(1, options.get(keys.RECORD_INDEX_GROUP_BYTES) // _BYTES_A_RECORD)))


def key_changes(file: WrittenFile) -> KeyChanges:
    """The key changes that a file brings along.

    Raises:
        MetadataError: It brings none, so that no index of keys could be kept.
    """
    if file.facts.keys is None:
        hint = "Run the write again: the table got a record index after this write had begun."
        raise MetadataError(f"{file.path} was written without saying which keys it changes", hint)
    return file.facts.keys


def _location(texts: pa.Array, partition_path: str, file_id: str) -> pa.Table:
    """Keys with one location: record_key, partition_path string, file_id dictionary."""
    ids = pa.DictionaryArray.from_arrays(array_of(np.zeros(len(texts), np.int32)), array_of([file_id], pa.string()))
    return pa.table([texts, pa.repeat(scalar_of(partition_path, pa.string()), len(texts)), ids], schema=_HOMES)


_HOMES = pa.schema(record_index.SCHEMA.field(name) for name in ("record_key", "partition_path", "file_id"))


def _locations(changes: Sequence[tuple[WrittenFile, pa.Array]]) -> pa.Table:
    parts = [_location(texts, file.partition_path, file.file_id) for file, texts in changes if len(texts)]
    return pa.concat_tables([no_rows(_HOMES), *parts]).unify_dictionaries()


def _known(change: CommitChange, wanted: pa.Array) -> pa.Table:
    """What the index says of some keys; nothing is asked of one that holds no record."""
    if not len(wanted) or not change.table.named_groups(record_index.PARTITION):
        return no_rows(record_index.SCHEMA)
    return answers.record_locations(change.table, wanted)


def _lost(change: CommitChange, changes: Sequence[tuple[WrittenFile, KeyChanges]]) -> pa.Table:
    """Keys that leave a file group, with its partition path: record_key, partition_path."""
    found = [(file.partition_path, facts.removed) for file, facts in changes]
    gone = [] if change.moves_rows else change.replaced_rows
    found += [(one.partition_path, single_array(rows[KEY_COLUMN])) for one, rows in gone]
    schema = pa.schema([_HOMES.field("record_key"), _HOMES.field("partition_path")])
    tables = [pa.table([keys, pa.repeat(scalar_of(path, pa.string()), len(keys))], schema=schema) for path, keys in found]
    return pa.concat_tables([no_rows(schema), *(table for table in tables if len(table))])


def _without(rows: pa.Table, others: pa.Table, names: Callable[[pa.Table], pa.Array]) -> pa.Table:
    """Rows whose name none of the others has, each name once."""
    once = _last_of_each(rows, names)
    if not len(once) or not len(others):
        return once
    return once.filter(pc.invert(pc.is_in(names(once), value_set=names(others))))


def _keys(rows: pa.Table) -> pa.StringArray:
    return single_array(rows["record_key"])


def _paths(rows: pa.Table) -> list[str]:
    paths: list[str] = single_array(rows["partition_path"]).unique().to_pylist()
    return paths


def _places(rows: pa.Table) -> pa.Array:
    """Key and location as one text."""
    ids = rows["file_id"].cast(pa.string())
    return single_array(pc.binary_join_element_wise(rows["record_key"], rows["partition_path"], ids, scalar_of("\0")))


def _why_doubled(
    added: pa.Table,
    known: pa.Table,
    lost: pa.Table,
    change: CommitChange,
    inserted: int,
    twice: bool,
    names: Callable[[pa.Table], pa.Array],
) -> str:
    """Why a key may live in two file groups after the commit; "" when none does.

    Args:
        added: Keys with their new locations.
        known: What the index says of keys.
        lost: Keys that leave their old locations.
        change: The commit.
        inserted: How many keys it adds for certain.
        twice: A key is among `added` more than once.
        names: What makes the key of a row unique.
    """
    if twice and len(names(added).unique()) < len(_places(added).unique()):
        return "rows with the same key were added to several file groups"
    if len(known) and len(added):
        elsewhere = known.filter(pc.invert(pc.is_in(_places(known), value_set=_places(added))))
        staying = elsewhere.filter(pc.invert(pc.is_in(names(elsewhere), value_set=names(lost))))
        if pc.any(pc.is_in(names(staying), value_set=names(added))).as_py():
            return "keys were added that live in another file group already"
    if inserted > change.proof_limit and change.table.named_groups(record_index.PARTITION):
        return too_many(inserted)
    return ""


def too_many(inserted: int) -> str:
    """Why a commit of so many new keys ends the proof."""
    return f"{inserted:,} keys were added, too many to look for them (see {keys.INDEX_PROOF_KEYS.key})"


def _last_of_each(rows: pa.Table, names: Callable[[pa.Table], pa.Array]) -> pa.Table:
    """The last row of each name, sorted by it: so are records, which are then not sorted again."""
    if len(rows) < 2:
        return rows
    named = names(rows)
    order = pc.sort_indices(named)  # equal names stay in the order of their rows
    named = named.take(order)
    ends = pc.not_equal(named[1:], named[:-1])
    if not pc.all(ends).as_py():
        order = pa.concat_arrays([order[:-1].filter(ends), order[-1:]])
    return rows.take(order)


def _instants(rows: pa.Table, time: int) -> pa.Array:
    return pa.repeat(scalar_of(time, pa.int64()), len(rows))
