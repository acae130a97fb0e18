"""The metadata partition `record_index`: each record key and the file group that it lives in.

A commit adds the keys that its files added, with their new home, and removes those that its files have lost, or the file groups
that it replaced, unless they have a new home. Updates in place, compactions and cleans change nothing.

**Doubled keys.** Inserts do not look keys up, so one may come to live in two file groups; the index can name one of them only,
as Hudi's does, and a reader that believed it would lose the row in the other. So an index that is proven complete asks itself
for the keys that a commit adds: one that has another home already is doubled, and the proof is over. Beyond
`hudimeta.index.proof.max.keys` added keys that question is not asked, and the proof is over as well, unless the index was empty
and no key comes twice among the added ones. A key twice in one file group is no harm: its home is right for both rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import MetadataError
from hudimeta.formats.hfile import KeyValues
from hudimeta.metadata import record_index
from hudimeta.metadata.delta import PartitionDelta, by_group
from hudimeta.read.merge_rules import KEY_COLUMN
from hudimeta.timeline.clock import parse_instant
from hudimeta.write.index_facts import KeyChanges
from hudimeta.write.index_updates.protocol import BuiltIndex, CleanChange, CommitChange, IndexDelta, IndexSource
from hudimeta.write.written_file import WrittenFile

__all__ = ["RecordIndex", "estimated_groups", "key_changes"]

_BYTES_A_RECORD = 48
"""What Hudi takes a record for when it plans the number of file groups."""


class RecordIndex:
    """See `IndexMaintainer`."""

    def keeps(self, partition: str) -> bool:
        """See `IndexMaintainer`."""
        return partition == record_index.PARTITION

    def delta(self, partition: str, change: CommitChange) -> IndexDelta:
        """See the head of the module."""
        if change.same_rows:
            return IndexDelta()
        changes = [(file, key_changes(file)) for file in change.written]
        homes = _homes([(file, facts.added) for file, facts in changes])
        maybe = _homes([(file, facts.maybe_added) for file, facts in changes])
        lost = pa.concat_arrays([change.replaced_keys, *(facts.removed for _, facts in changes)]).unique()
        proven = partition in change.proven
        asked = homes["record_key"] if proven and len(homes) <= change.proof_limit else pa.chunked_array([], pa.string())
        known = _known(change, pa.concat_arrays([_one(asked), _one(maybe["record_key"])]).unique())
        added = pa.concat_tables([homes, _unknown(maybe, known)])
        rows = _last_of_each(added)
        twice = len(rows) < len(added)
        note = _why_doubled(added, known, lost, change, len(homes), twice) if proven else ""
        gone = lost.filter(pc.invert(pc.is_in(lost, value_set=_one(rows["record_key"])))) if len(lost) else lost
        rows = rows.append_column("instant_ms", _instants(rows, parse_instant(change.instant, change.properties.zone)))
        part = PartitionDelta(partition, record_index.encode_values(rows, change.layout), gone)
        return IndexDelta([part] if len(part) else [], not note, note)

    def cleaned(self, partition: str, change: CleanChange) -> IndexDelta:
        """Nothing: a clean takes no row."""
        return IndexDelta()

    def build(self, partition: str, source: IndexSource) -> BuiltIndex:
        """The keys of all rows of the newest file slices."""
        found = source.slice_rows([])
        records = sum(len(rows) for _, rows in found)
        groups = estimated_groups(records, source.options)
        piles: list[list[pa.Table]] = [[] for _ in range(groups)]
        for one, rows in found:
            texts = _one(rows[KEY_COLUMN])
            time = parse_instant(one.base_instant, source.properties.zone)
            for group, at in by_group(texts, groups):
                homes = _home(texts.take(at), one.partition_path, one.file_id)
                piles[group].append(homes.append_column("instant_ms", _instants(homes, time)))
        shards = [(group, _last_of_each(pa.concat_tables(pile))) for group, pile in enumerate(piles) if pile]
        doubled = records > sum(len(rows) for _, rows in shards)
        return BuiltIndex(groups, _encoded(shards, source), not doubled)


def _encoded(shards: Sequence[tuple[int, pa.Table]], source: IndexSource) -> Iterator[tuple[int, KeyValues]]:
    for group, rows in shards:
        yield group, record_index.encode_values(rows, source.layout)


def estimated_groups(records: int, options: Options) -> int:
    """How many file groups a record index of so many records gets, for good: Hudi's estimate and its options."""
    least, most = max(1, options.get(keys.RECORD_INDEX_MIN_GROUPS)), max(1, options.get(keys.RECORD_INDEX_MAX_GROUPS))
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


def _home(texts: pa.Array, partition_path: str, file_id: str) -> pa.Table:
    """Keys with one home: record_key, partition_path string, file_id dictionary."""
    ids = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(texts), np.int32)), pa.array([file_id], pa.string()))
    return pa.table([texts, pa.repeat(pa.scalar(partition_path, pa.string()), len(texts)), ids], schema=_HOMES)


_HOMES = pa.schema(record_index.SCHEMA.field(name) for name in ("record_key", "partition_path", "file_id"))


def _homes(changes: Sequence[tuple[WrittenFile, pa.Array]]) -> pa.Table:
    parts = [_home(texts, file.partition_path, file.file_id) for file, texts in changes if len(texts)]
    return pa.concat_tables([_HOMES.empty_table(), *parts]).unify_dictionaries()


def _known(change: CommitChange, wanted: pa.Array) -> pa.Table:
    """What the index says of some keys; nothing is asked of one that holds no record."""
    if not len(wanted) or not change.table.named_groups(record_index.PARTITION):
        return record_index.SCHEMA.empty_table()
    return change.table.record_index(wanted)


def _unknown(maybe: pa.Table, known: pa.Table) -> pa.Table:
    """Those of which the index does not say that very home."""
    if not len(maybe) or not len(known):
        return maybe
    return maybe.filter(pc.invert(pc.is_in(_places(maybe), value_set=_places(known))))


def _places(rows: pa.Table) -> pa.Array:
    """Key and home as one text."""
    ids = rows["file_id"].cast(pa.string())
    return _one(pc.binary_join_element_wise(rows["record_key"], rows["partition_path"], ids, "\0"))


def _why_doubled(
    added: pa.Table, known: pa.Table, lost: pa.Array, change: CommitChange, inserted: int, twice: bool
) -> str:
    """Why a key may live in two file groups after the commit; "" when none does.

    Args:
        added: Keys with their new homes. known: What the index says of keys. lost: Keys that leave their old homes.
        change: The commit. inserted: How many keys it adds for certain. twice: A key is among `added` more than once.
    """
    if twice and len(_one(added["record_key"]).unique()) < len(_one(_places(added)).unique()):
        return "rows with the same key were added to several file groups"
    if len(known) and len(added):
        elsewhere = known.filter(pc.invert(pc.is_in(_places(known), value_set=_places(added))))
        staying = elsewhere.filter(pc.invert(pc.is_in(elsewhere["record_key"], value_set=lost)))
        if pc.any(pc.is_in(staying["record_key"], value_set=_one(added["record_key"]))).as_py():
            return "keys were added that live in another file group already"
    if inserted > change.proof_limit and change.table.named_groups(record_index.PARTITION):
        return f"{inserted:,} keys were added, too many to look for them (see {keys.INDEX_PROOF_KEYS.key})"
    return ""


def _last_of_each(rows: pa.Table) -> pa.Table:
    """The last row of each key."""
    coded = _one(rows["record_key"]).dictionary_encode()
    if len(coded.dictionary) == len(rows):
        return rows
    last = np.zeros(len(coded.dictionary), np.int64)
    last[coded.indices.to_numpy()] = np.arange(len(rows))
    return rows.take(pa.array(np.sort(last)))


def _instants(rows: pa.Table, time: int) -> pa.Array:
    return pa.repeat(pa.scalar(time, pa.int64()), len(rows))


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
