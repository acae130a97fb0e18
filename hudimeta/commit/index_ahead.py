"""An index made before the lock is taken, and what has changed since.

Under the lock a record of an index costs as much as before it: to find, to encode, to pack. So all of it is made of a look at
the table without the lock. What was committed since is made of the file groups that are not the same any more: their entries
now, their entries then, and what is only in one of the two. It goes into log files on top.

That holds where records tell of one file group, or of one partition, each (`Reach`), and no entry lives in two file groups.
Otherwise, or where columns or definitions are others meanwhile, nobody knows the difference, and all of it is made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.plain_arrays import single_array
from hudimeta.indexes.protocol import BuiltIndex, IndexSource, Reach
from hudimeta.indexes.registry import maintainer_for
from hudimeta.metadata.delta import PartitionDelta
from hudimeta.metadata.writer import EncodedBase, MetadataWriter
from hudimeta.table.file_names import parse_names

__all__ = ["ChangesSince", "IndexAhead", "changes_since", "every_group", "make_ahead", "of_so_many"]


@dataclass(frozen=True)
class IndexAhead:
    """An index as it was when it was made.

    Attributes:
        partition: Metadata partition.
        source: The table as it was.
        groups, complete, reach: See `BuiltIndex`.
        files: The base file of each file group; none where nothing but all of it can be made again.
        keys: Of the records of each file group.
    """

    partition: str
    source: IndexSource
    groups: int
    complete: bool
    reach: Reach
    files: Sequence[EncodedBase]
    keys: Mapping[int, pa.Array]

    @property
    def records(self) -> int:
        """How many it has."""
        return sum(map(len, self.keys.values()))


@dataclass(frozen=True)
class ChangesSince:
    """What is to be written on top of an index that was made ahead.

    Attributes:
        groups: By file group.
        more: By how many records the index grows.
    """

    groups: Mapping[int, PartitionDelta]
    more: int


def make_ahead(partition: str, instant: str, source: IndexSource, writer: MetadataWriter) -> IndexAhead:
    """Make all of an index; the lock is not needed.

    Args:
        partition: Metadata partition.
        instant: At which it is going to be published.
        source: The table as it is.
        writer: Encodes its files.
    """
    built = maintainer_for(partition).build(partition, source)
    ids = built.file_ids(partition)
    files: list[EncodedBase] = []
    found: dict[int, pa.Array] = {}
    for group, records in every_group(built.groups, built.content):
        if built.reach is not Reach.TABLE:
            files.append(writer.encode_base(partition, ids[group], instant, records))
            found[group] = records.keys
    return IndexAhead(partition, source, built.groups, built.complete, built.reach, files, found)


def changes_since(ahead: IndexAhead, now: IndexSource) -> ChangesSince | None:
    """What an index that was made ahead lacks; None where all of it must be made again.

    Args:
        ahead: The index.
        now: The table as it is.
    """
    then = ahead.source
    same = (then.schema, then.definitions, then.layout) == (now.schema, now.definitions, now.layout)
    if ahead.reach is Reach.TABLE or not same:
        return None
    places = _changed(then, now)
    before, after = (_only(one, places, ahead) for one in (then, now))
    if not len(before.listing) and not len(after.listing):
        return ChangesSince({}, 0)
    maintainer = maintainer_for(ahead.partition)
    added, lost = (
        maintainer.build(ahead.partition, replace(one, other=other)) for one, other in ((after, before), (before, after))
    )
    if Reach.TABLE in (added.reach, lost.reach) or {added.groups, lost.groups} != {ahead.groups}:
        return None
    return _joined(ahead, added, lost)


def _joined(ahead: IndexAhead, added: BuiltIndex, lost: BuiltIndex) -> ChangesSince | None:
    fresh, stale = dict(added.content), dict(lost.content)
    found: dict[int, PartitionDelta] = {}
    more = 0
    for group in sorted(fresh.keys() | stale.keys()):
        records, gone = (one.get(group, KeyValues.empty()) for one in (fresh, stale))
        removed = _without(gone.keys, records.keys)
        new = _without(records.keys, gone.keys)
        if _any_in(new, ahead.keys.get(group)):
            return None  # an entry of a file group that stays as it was: which of the two counts all of the table must say
        found[group] = PartitionDelta(ahead.partition, records, removed.cast(pa.string()))
        more += len(new) - len(removed)
    return ChangesSince({group: part for group, part in found.items() if len(part)}, more)


def _without(some: pa.Array, others: pa.Array) -> pa.Array:
    return some.filter(pc.invert(pc.is_in(some, value_set=others.cast(some.type)))) if len(some) and len(others) else some


def _any_in(some: pa.Array, others: pa.Array | None) -> bool:
    return others is not None and bool(len(some)) and bool(pc.any(pc.is_in(some, value_set=others.cast(some.type))).as_py())


# Which part of the table is not the same any more


def _changed(then: IndexSource, now: IndexSource) -> pa.Array:
    """Partition path and file id, as one text, of the file groups that have other files now, or are no longer visible."""
    before, after = _files(then.listing), _files(now.listing)
    changed = pa.concat_tables([_rows_without(before, after), _rows_without(after, before)])
    earlier, later = (_groups(one.timeline.replaced_file_groups()) for one in (then, now))
    return pa.chunked_array(
        [single_array(changed["place"]), _without(earlier, later), _without(later, earlier)], pa.string()
    ).unique()


def _files(listing: pa.Table) -> pa.Table:
    """Each file as one text, and the place of its file group."""
    sizes = listing["size"].cast(pa.string())
    paths = pc.binary_join_element_wise(listing["partition_path"].cast(pa.string()), listing["name"], sizes, "\0")
    return pa.table({"file": paths, "place": _places(listing)})


def _places(listing: pa.Table) -> pa.Array:
    if not len(listing):
        return pa.array([], pa.string())
    ids = parse_names(single_array(listing["name"])).file_ids.cast(pa.string())
    return pc.binary_join_element_wise(single_array(listing["partition_path"]).cast(pa.string()), ids, "\0")


def _groups(replaced: pa.Table) -> pa.Array:
    return single_array(pc.binary_join_element_wise(replaced["partition_path"], replaced["file_id"], "\0")).cast(pa.string())


def _rows_without(some: pa.Table, others: pa.Table) -> pa.Table:
    return some.filter(pc.invert(pc.is_in(some["file"], value_set=single_array(others["file"]))))


def _only(source: IndexSource, places: pa.Array, ahead: IndexAhead) -> IndexSource:
    """The table without what is as it was; whole partitions where records tell of these."""
    own = _places(source.listing)
    if ahead.reach is Reach.PARTITION:
        own, places = (_path_of(one) for one in (own, places))
    kept = source.listing.filter(pc.is_in(own, value_set=places)) if len(own) else source.listing
    return replace(source, listing=kept, options=of_so_many(source.options, ahead.groups), memory={})


def _path_of(places: pa.Array) -> pa.Array:
    if not len(places):
        return places
    return pc.list_element(pc.split_pattern(places, "\0"), 0)


# File groups


def every_group(groups: int, content: Iterable[tuple[int, KeyValues]]) -> Iterator[tuple[int, KeyValues]]:
    """Content for all file groups, nothing for those without records.

    A group without a base file would begin with whatever logs an index of the same name once had.
    """
    seen = set()
    for group, records in content:
        seen.add(group)
        yield group, records
    for group in range(groups):
        if group not in seen:
            yield group, KeyValues.empty()


def of_so_many(options: Options, groups: int) -> Options:
    """Options by which every kind of index gets so many file groups."""
    counts = (
        keys.COLUMN_STATS_GROUPS,
        keys.BLOOM_GROUPS,
        keys.EXPRESSION_GROUPS,
        keys.RECORD_INDEX_MIN_GROUPS,
        keys.RECORD_INDEX_MAX_GROUPS,
    )
    return options.having({option.key: str(groups) for option in counts})
