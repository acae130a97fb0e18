"""Reading a metadata table: what partitions and files a table has, and what its indexes know, with few requests.

Opening costs one request, the listing of the metadata table's timeline. Everything else is read when it is asked for and kept:
a `MetadataTable` shows one moment, that of the listing, and the files of that moment never change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.errors import IndexDropped, IndexNotReady, MetadataOutOfSync
from hudimeta.formats.plain_arrays import no_rows, texts
from hudimeta.metadata import files
from hudimeta.metadata.beginnings import INIT_BELOW
from hudimeta.metadata.cleaned_since import cleaned_since
from hudimeta.metadata.file_listing import FileListing
from hudimeta.metadata.group_files import FileGroup
from hudimeta.metadata.groups import GroupFinder
from hudimeta.metadata.index_definitions import load_definitions
from hudimeta.metadata.kept import kept_for
from hudimeta.metadata.keys import NO_PARTITION, from_key_partition, to_key_partition
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.metadata.slice_files import SliceFiles
from hudimeta.metadata.strays import check_in_step, unfinished
from hudimeta.metering import Metric, meter_of
from hudimeta.redaction import hidden
from hudimeta.storage.at_once import ahead, beside
from hudimeta.timeline import Timeline
from hudimeta.types import LEGACY_VERSION, Instant

if TYPE_CHECKING:
    from hudimeta.formats.hfile import KeyValues
    from hudimeta.metadata.index_definitions import IndexDefinition
    from hudimeta.metadata.index_reader import IndexReader, Logged
    from hudimeta.metadata.listing_history import ListingHistory
    from hudimeta.metadata.record import RecordLayout
    from hudimeta.storage import Storage
    from hudimeta.table.properties import TableProperties

__all__ = ["MetadataTable"]

Answer = TypeVar("Answer")
Shaped = TypeVar("Shaped")


class MetadataTable:
    """The metadata table of one data table, as of the moment that it was opened. Make one with `MetadataTable.open`.

    Attributes:
        timeline: Of the metadata table.
        data_timeline: Of the data table.
        ready: Names of the partitions that are complete, sorted.
        unfinished: Indexes that the table names though they were never finished, and the instant of each.
        version: Of the table.
    """

    def __init__(self, storage: Storage, properties: TableProperties, data_timeline: Timeline, timeline: Timeline) -> None:
        legacy = properties.version <= LEGACY_VERSION
        self.timeline, self.data_timeline = timeline, data_timeline
        self._table_storage, self._properties = storage, properties
        inner = storage.sub(METADATA_ROOT)
        self.unfinished: Mapping[str, str] = unfinished(inner, properties.metadata_partitions, data_timeline, timeline)
        self.ready: tuple[str, ...] = tuple(sorted({*properties.metadata_partitions} - self.unfinished.keys()))
        self.version = properties.version
        self._meter = meter_of(storage)
        self._finder = GroupFinder(inner, timeline, data_timeline, len(self.ready), logs_name_base=legacy)
        kept = kept_for(storage, self.ready, self._finder.initialisers)
        self._sources = SliceFiles(inner, legacy, kept, self._finder.is_visible)
        self._listing = FileListing(self._finder, self._sources, self._meter, kept.rows)
        self._partitions: pa.StringArray | None = None
        self._checked: set[str] = set()

    @classmethod
    def open(
        cls,
        storage: Storage,
        properties: TableProperties,
        data_timeline: Timeline,
        earlier: MetadataTable | None = None,
        *,
        to_write: bool = False,
    ) -> MetadataTable:
        """Open the metadata table of a table: one request.

        Args:
            storage: Rooted at the data table.
            properties: Of the data table.
            data_timeline: Of the data table, listed *before*: an instant that completes between the two listings must not be
                taken for one that never began.
            earlier: The same as it was before; what was read for it is not read again.
            to_write: Whoever writes needs the definitions of indexes: of a far-away table they are asked for meanwhile.

        Raises:
            IndexNotReady: The table has none.
            MetadataOutOfSync: It has no completed instant, or lacks a completed write.
        """
        if not properties.has_metadata_table:
            raise IndexNotReady(files.PARTITION, "not built: the table has no metadata table")
        legacy = properties.version <= LEGACY_VERSION
        folder = ".hoodie" if legacy else ".hoodie/timeline"
        inner = storage.sub(METADATA_ROOT)
        defined = ahead(lambda: load_definitions(storage, properties.index_defs_path), storage) if to_write else None
        timeline = Timeline.load(inner, folder, 1 if legacy else 2, zone=properties.zone, place=METADATA_ROOT)
        if not timeline.writes:
            raise MetadataOutOfSync(files.PARTITION, "any completed instant")
        check_in_step(data_timeline, timeline)
        table = cls(storage, properties, data_timeline, timeline)
        if defined is not None and (found := defined()) is not None:
            table.index_definitions = found
        if earlier is not None:
            table._follow(earlier)
        table._listing.name_again([] if legacy else cleaned_since(storage, properties, data_timeline, timeline))
        return table

    def __reduce__(self) -> tuple[object, ...]:
        """In another process it reads files anew, and lists nothing."""
        made_of = (self._table_storage, self._properties, self.data_timeline, self.timeline)
        return type(self), made_of, {"ready": self.ready}

    def __repr__(self) -> str:
        return f"MetadataTable({hidden(self._table_storage.root)}: {', '.join(self.ready)})"

    def _follow(self, earlier: MetadataTable) -> None:
        """Take over what was read for an earlier moment: files of this folder never change, unless one was laid out anew."""
        self.timeline.following(earlier.timeline)
        if self.is_laid_out_as(earlier):
            self._sources.follow(earlier._sources, earlier._finder.is_visible)

    @property
    def delta_commits(self) -> tuple[Instant, ...]:
        """Completed delta commits that count, oldest first."""
        return self._finder.delta_commits

    def is_laid_out_as(self, other: MetadataTable) -> bool:
        """Whether both have the same partitions, which nobody built anew between the two."""
        return (self.ready, self._finder.initialisers) == (other.ready, other._finder.initialisers)

    def having(self, names: Iterable[str]) -> MetadataTable:
        """This metadata table as if only these partitions were complete; shares everything that was read."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.ready = tuple(names)
        return other

    @property
    def laid_out(self) -> tuple[Instant, ...]:
        """Delta commits before all time: each laid partitions of the metadata table out, at its completion."""
        return tuple(i for i in self._finder.initialisers if i.time < INIT_BELOW)

    def open_listing(self, index: str | None = None) -> None:
        """Read what every look-up of files needs, and find the file groups of an index, if it is ready."""
        self._listing.open()
        if index in self.ready:
            self._finder.numbered(index)

    def find_listing(self) -> None:
        """Find the base file of the listing."""
        _ = self._listing.has_base

    def find_indexes(self, names: Iterable[str]) -> None:
        """Find the base files of some indexes, which older commits may name than those of the listing."""
        for name in names:
            self._finder.found_ahead(name)

    def partitions(self) -> pa.StringArray:
        """Partition paths of the table, sorted; [""] for a table without partitions that has files."""
        self._meter.add(Metric.LOOKUP_PARTITIONS_COUNT)
        if self._partitions is None:
            self._partitions = texts([from_key_partition(k) for k in self._listing.partitions().to_pylist()])
        return self._partitions

    def files(self, partitions: Sequence[str] | None = None) -> pa.Table:
        """Files of the table: base, log and CDC files of committed instants, superseded and replaced ones included.

        Args:
            partitions: Partition paths ("" for a table without partitions): one look-up each. None reads all.

        Returns:
            partition_path string, name string, size int64; in no particular order.
        """
        self._meter.add(Metric.LOOKUP_FILES_COUNT)
        if partitions is None:
            found = self._listing.all()
        else:
            found = self._listing.of_partitions([to_key_partition(p) for p in partitions]) if partitions else _no_files()
        return found.set_column(0, "partition_path", paths_of(found.column("key")))

    def file_pieces(self) -> Iterator[pa.Table]:
        """Files of all partitions, see `files`, those of a partition together: some at a time where the listing is large."""
        self._meter.add(Metric.LOOKUP_FILES_COUNT)
        for found in self._listing.all_in_pieces():
            yield found.set_column(0, "partition_path", paths_of(found.column("key")))

    @property
    def listing_history(self) -> ListingHistory:
        """What `files` rests on, and what changed it."""
        from hudimeta.metadata.listing_history import ListingHistory

        return ListingHistory(self._finder, self._listing)

    # Indexes

    def lookup(self, partition: str, keys: pa.Array) -> pa.Table:
        """Live records of some keys, logs merged; file groups and blocks that cannot hold one are not read.

        Args:
            partition: Metadata partition of an index.
            keys: Keys of records (string), each once.

        Returns:
            The columns of the kind's codec.

        Raises:
            IndexNotReady: The table has no such partition.
            MetadataOutOfSync: It was dropped, or built anew, meanwhile.
        """
        self.require(partition)
        return self._indexes.lookup(partition, keys)

    def prefixed(self, partition: str, prefixes: Sequence[bytes] | pa.Array, *, every: bool = False) -> pa.Table:
        """Live records whose keys begin with any prefix, logs merged.

        Args:
            partition: Metadata partition of an index.
            prefixes: Beginnings of keys, each once; of a secondary index an array of binary.
            every: See `IndexReader.prefixed`.

        Returns:
            The columns of the kind's codec.

        Raises:
            IndexNotReady: The table has no such partition.
        """
        from hudimeta.metadata.secondary_index import PREFIX

        self.require(partition)
        if partition.startswith(PREFIX):
            return self._indexes.sharded_prefixes(partition, prefixes, by_prefix=self.index_definitions[partition].is_v2)
        return self._indexes.prefixed(partition, prefixes, every=every)

    def prefixed_pieces(self, partition: str, prefixes: Sequence[bytes], shaped: Callable[[pa.Table], Shaped]) -> list[Shaped]:
        """What a function makes of the records of `prefixed`, some at a time: for many records of which little is wanted.

        Raises:
            IndexNotReady: The table has no such partition.
        """
        self.require(partition)
        return self._indexes.prefixed_pieces(partition, prefixes, shaped)

    def removed_later(self, partition: str, instant: str, keys: pa.Array) -> pa.Array:
        """Keys (string) of an index that writes with later instants removed, as far as readers would prefer their word.

        Args:
            partition: Metadata partition of an index.
            instant: The others are later.
            keys: Those that are asked for (string): of these all are told that were removed, of others some may be.

        Raises:
            IndexNotReady: The table has no such index.
        """
        self.require(partition)
        return self._indexes.removed_after(partition, instant, keys)

    def logged(self, partition: str, instants: frozenset[str]) -> Logged | None:
        """What log files of some instants say of an index; None where one has none, as when it was merged into base files.

        Raises:
            IndexNotReady: The table has no such index.
        """
        self.require(partition)
        return self._indexes.logged(partition, instants)

    # Everything

    def records(self, partition: str) -> pa.Table:
        """All live records of a metadata partition, logs merged.

        Returns:
            `files`: partition_path, name, size. Else the columns of the kind's codec, such as `column_stats.SCHEMA`.

        Raises:
            IndexNotReady: The table has no such partition.
        """
        self.require(partition)
        if partition == files.PARTITION:
            return self.files()
        return self._indexes.scan(partition)

    def record_schema(self, partition: str) -> pa.Schema:
        """The columns of `records(partition)`; reads no record.

        Raises:
            IndexNotReady: The table has no such partition.
        """
        from hudimeta.metadata.kinds import codec_of

        self.require(partition)
        if partition == files.PARTITION:
            return _no_files().rename_columns(["partition_path", "name", "size"]).schema
        return codec_of(partition, self._definition).schema

    def named_groups(self, partition: str, surely: bool = False) -> tuple[FileGroup, ...]:
        """The newest slices of the file groups that commits name, those without any record left out; no LIST.

        Args:
            partition: Metadata partition.
            surely: With one LIST where commits are archived, which may have begun the partition anew.
        """
        self.require(partition)
        found = self._finder.listed(partition) if surely and self._finder.is_archived else self._finder.named(partition)
        return tuple(group for group in found if group.base is not None or group.logs)

    def group_pieces(self, partition: str, group: FileGroup, layout: RecordLayout) -> Iterator[KeyValues]:
        """Live records of one file group, logs merged, as a base file of some layout holds them: in pieces, in their order."""
        self.require(partition)
        if partition == files.PARTITION:
            return self._listing.cells(layout)
        return self._indexes.pieces(partition, group, layout)

    def all_groups(self, partition: str) -> tuple[FileGroup, ...]:
        """The newest slices of all file groups of a metadata partition; a LIST only where no commit says how many there are."""
        self.require(partition)
        return self._finder.numbered(partition)

    def taken_out(self, partition: str) -> frozenset[str]:
        """Ids of file groups that an index had before it went to fewer; nobody may use them again yet."""
        return self._finder.taken_out(partition)

    def group_count(self, partition: str) -> int:
        """How many file groups a metadata partition has; see `all_groups`."""
        self.require(partition)
        return self._finder.count(partition)

    def file_groups(self, partition: str) -> tuple[FileGroup, ...]:
        """The same by one LIST, once."""
        self.require(partition)
        return self._finder.listed(partition)

    @cached_property
    def index_definitions(self) -> Mapping[str, IndexDefinition]:
        """Definitions of the indexes by metadata partition; empty when the table has no such file."""
        return load_definitions(self._table_storage, self._properties.index_defs_path)

    @cached_property
    def _indexes(self) -> IndexReader:
        from hudimeta.metadata.index_reader import IndexReader

        return IndexReader(self._finder, self._sources, self._definition)

    def _definition(self, partition: str) -> IndexDefinition | None:
        return self.index_definitions.get(partition)

    def of_index(self, partition: str, ask: Callable[[], Answer]) -> Answer:
        """What is asked of an index, whose LIST did not meet a drop half-way: with groups gone, keys are sought in wrong ones.

        Raises:
            IndexDropped: The table's properties do not name the index any more; a drop takes it out of them first.
        """
        found = beside(ask, lambda: self._check_not_dropped(partition), self._table_storage)
        self._check_not_dropped(partition)  # it may have been listed just now
        return found

    def _check_not_dropped(self, partition: str) -> None:
        if partition in self._checked or not self._finder.is_listed(partition):
            return
        self.check_named(partition, "its files")
        self._checked.add(partition)

    def check_named(self, partition: str, missing: str) -> None:
        """Make sure that what an index lacks is not what a drop took away since the properties were read: one request.

        Raises:
            IndexDropped: The table's properties do not name the index any more.
        """
        from hudimeta.table.properties import load

        if partition not in load(self._table_storage).metadata_partitions:
            raise IndexDropped(partition, missing)

    def require(self, partition: str) -> None:
        """Refuse a partition that is not complete. Raises IndexNotReady."""
        if partition not in self.ready:
            building = partition in self.unfinished or partition in self._properties.metadata_partitions_inflight
            raise IndexNotReady(partition, "still being built" if building else "not built")


def _no_files() -> pa.Table:
    return files.live(no_rows(files.SCHEMA))


def paths_of(keys: pa.ChunkedArray) -> pa.ChunkedArray:
    """Keys of `files` as partition paths."""
    import pyarrow.compute as pc

    none, here = texts([NO_PARTITION, ""])
    return pc.if_else(pc.equal(keys, none), here, keys)
