"""A table at one moment: its properties, its timeline as listed, and what follows from the two for reads and for writes.

Opening costs two requests (the properties, the listing of the timeline); everything else is asked for when it is needed and
kept, because nothing that a snapshot shows can change: files are never overwritten, and instants only ever grow.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudimeta.cached import cached_property
from hudimeta.config import Options
from hudimeta.config.options import LISTING_RETURNED, PARTITIONS, PLAN_CACHE, SCHEMA_ON_READ
from hudimeta.errors import SchemaUnknown, TableNotFound
from hudimeta.snapshot.listing import StorageListing, TableListing, open_kept_metadata, open_metadata
from hudimeta.snapshot.opened_ahead import properties_and_timeline
from hudimeta.storage import CountingStorage
from hudimeta.table import properties as table_properties
from hudimeta.table.modes import MetadataModes
from hudimeta.table.properties import TableProperties
from hudimeta.timeline import Timeline, normalise_instant
from hudimeta.types import LEGACY_VERSION, Action, QueryType

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.metadata import MetadataTable
    from hudimeta.plan_cache import PlanCache
    from hudimeta.schema import SchemaHistory
    from hudimeta.snapshot.table_schema import TableSchema
    from hudimeta.table.key_file import KeyFile
    from hudimeta.table.visibility import Visibility

__all__ = ["Snapshot"]


_FILES = "files"


@dataclass(frozen=True)
class WithoutIndexes:
    """A snapshot of which indexes were taken: `anew` are those of them that were built anew meanwhile."""

    snapshot: Snapshot
    anew: tuple[str, ...]


class Snapshot:
    """What a reader sees, or what a write rests on; never changes. Make one with `Snapshot.open` or, for a write, `for_write`.

    Attributes:
        storage: Rooted at the table.
        properties, timeline: Of the table.
        options: What the user gave.
        as_of: Requested time that the reader stands at, 17 digits; None for the latest.
        unseen: Requested times of completed writes that it does not show though they are not later than `as_of`.
        for_writes: A write rests on it: what every commit keeps counts (the metadata table, older names of columns), whatever
            options say of reads.
        seconds: What opening took.
        told_slices: What `slices` told of the whole table, where that is little.
    """

    def __init__(
        self,
        storage: CountingStorage,
        properties: TableProperties,
        timeline: Timeline,
        options: Options,
        as_of: str | None = None,
        seconds: float = 0.0,
    ) -> None:
        self.storage, self.properties, self.timeline, self.options = storage, properties, timeline, options
        self.as_of, self.seconds = as_of, seconds
        self.unseen: frozenset[str] = frozenset()
        self.for_writes = False
        self._notes: list[str] = []
        self._parent: Snapshot | None = None
        self._as_now = False
        self.told_slices: pa.Table | None = None

    @classmethod
    def open(cls, storage: CountingStorage, options: Options, as_of: str | None = None) -> Snapshot:
        """Read the properties and list the timeline.

        Args:
            storage: Rooted at the table.
            options: Table options.
            as_of: Time travel, in any spelling that `as.of.instant` takes.

        Raises:
            TableNotFound: There is no table. TableError and below: it cannot be read, or not as of that moment.
        """
        begin = time.perf_counter()
        properties, timeline = properties_and_timeline(storage)
        if properties.is_metadata_table:
            raise TableNotFound(
                storage.root, "this is the metadata table of another table, which hudimeta.Table(<that table>).metadata reads"
            )
        snapshot = cls(storage, properties, timeline, options, seconds=time.perf_counter() - begin)
        return snapshot if as_of is None else snapshot.at(as_of)

    @classmethod
    def for_write(
        cls, storage: CountingStorage, properties: TableProperties, timeline: Timeline, options: Options, notes: list[str]
    ) -> Snapshot:
        """The table as a write sees it; no request.

        Args:
            storage: Rooted at the table.
            properties: Of the table.
            timeline: Of the table.
            options: Of the write.
            notes: Gets a line for the write's report where storage had to be listed.
        """
        snapshot = cls(storage, properties, timeline, options)
        snapshot.for_writes, snapshot._notes = True, notes
        return snapshot

    def for_reading(self) -> Snapshot:
        """This moment as reads see it, for which options may leave out the metadata table.

        What a write reads it stores, or goes by: no option leaves out rows, or values that stand under older names.
        """
        if not self.for_writes:
            return self
        options = self.options.without(PARTITIONS).having({SCHEMA_ON_READ.key: "true"})
        return Snapshot(self.storage, self.properties, self.timeline, options)

    def refreshed(self, *, changed: bool = False) -> Snapshot:
        """The snapshot of now: this one when the timeline, listed again, is the same. One request, two after a change.

        Args:
            changed: The caller has changed the table: the properties are read again as well, since a change of the table's
                version leaves the instants and builds the metadata table anew.

        Raises:
            TableNotFound: The table is gone.
        """
        begin = time.perf_counter()
        timeline = self.properties.load_timeline(self.storage)
        same = bool(timeline.instants) and timeline.instants == self.timeline.instants
        if same and not changed:
            return self
        properties = table_properties.load(self.storage)
        if (same or not (timeline.instants or self.timeline.instants)) and dict(properties) == dict(self.properties):
            return self  # and not another table without instants, that has taken its place
        if properties.timeline_folder != self.properties.timeline_folder:
            timeline = properties.load_timeline(self.storage)
        return Snapshot(self.storage, properties, timeline, self.options, seconds=time.perf_counter() - begin)

    def with_metadata(self) -> Snapshot:
        """This snapshot asking the metadata table also where reads only compare it: for whoever asks about that table."""
        if not self.modes.validated:
            return self
        options = self.options.having({LISTING_RETURNED.key: "false"})
        return Snapshot(self.storage, self.properties, self.timeline, options, self.as_of, self.seconds)

    def at(self, as_of: str, *, check: bool = True, unseen: Iterable[str] = (), as_now: bool = False) -> Snapshot:
        """This snapshot as of an earlier moment; shares everything that was read.

        Args:
            as_of: In any spelling that `as.of.instant` takes.
            check: Refuse moments whose files are cleaned.
            unseen: Writes that were requested by then, and count as not yet completed.
            as_now: Show the columns of this snapshot, instead of those of the moment.

        Raises:
            ConfigError: No such moment.
            TableError: The cleaner has removed files that the moment needs.
        """
        given = str(as_of).strip()
        known = any(instant.time == given for instant in self.timeline.instants)
        moment = given if known else normalise_instant(given, self.properties.zone)
        snapshot = Snapshot(self.storage, self.properties, self.timeline, self.options, moment)
        snapshot._parent, snapshot.unseen = self, frozenset(unseen)
        snapshot._as_now = as_now or snapshot.is_latest
        if check:
            snapshot._refuse_cleaned()
        return snapshot

    @property
    def of_now(self) -> Snapshot:
        """The newest moment that is known: this snapshot, or the one that it is of an earlier moment of."""
        return self if self._parent is None else self._parent.of_now

    @cached_property
    def earliest_kept(self) -> str:
        """The earliest requested time whose files cleaning has kept; "" when nothing was cleaned. One request at most."""
        cleans = [i for i in self.timeline.completed if i.action is Action.CLEAN]
        return (self.timeline.metadata(cleans[-1]).get("earliestCommitToRetain") or "") if cleans else ""

    def _refuse_cleaned(self) -> None:
        if self.is_latest or self.as_of in self.timeline.savepoints:  # cleaning spares what a savepoint shows
            return
        from hudimeta.snapshot.cleaned import refuse_cleaned

        refuse_cleaned(self, self.of_now)

    # What is listed

    @cached_property
    def _metadata(self) -> tuple[MetadataTable | None, str]:
        if self._parent is not None:
            return self._parent._metadata
        if self.for_writes:
            return open_kept_metadata(self.storage, self.properties, self.timeline)
        return open_metadata(self.storage, self.properties, self.timeline, self.modes)

    @property
    def modes(self) -> MetadataModes:
        """How the metadata table is used, by options and by the table's own word."""
        return MetadataModes.of(self.options, self.properties)

    @property
    def metadata(self) -> MetadataTable | None:
        """The metadata table; None when it does not answer, see `listing_reason`."""
        return self._metadata[0]

    @property
    def listing_reason(self) -> str:
        """Why storage is listed instead of asking the metadata table; "" when it is not."""
        return self._metadata[1]

    def without_changed_indexes(self, failed: str) -> WithoutIndexes | None:
        """This snapshot without the indexes that are not those of its moment any more. Two requests.

        Args:
            failed: Metadata partition that could not be read. It was dropped and built anew if the table has moved.

        Returns:
            None when no index is left out.
        """
        metadata = self.metadata
        if metadata is None:
            return None
        named = table_properties.load(self.storage).metadata_partitions
        moved = self.properties.load_timeline(self.storage).instants != self.timeline.instants
        anew = tuple(name for name in metadata.ready if name == failed != _FILES and name in named) if moved else ()
        left = tuple(name for name in metadata.ready if name in named and name not in anew)
        if left == metadata.ready:
            return None
        other = copy(self)
        other.__dict__.update(_metadata=(metadata.having(left), self.listing_reason), listing=self.listing)
        return WithoutIndexes(other, anew)

    @cached_property
    def listing(self) -> TableListing:
        """Where partitions and files are looked up."""
        if self._parent is not None:
            return self._parent.listing
        if self.metadata is None and self.for_writes:
            self._notes.append("the table has no metadata table: its folders were listed")
        return self.metadata or StorageListing(self.storage, self.timeline)

    def files(self, partitions: Sequence[str] | None = None) -> pa.Table:
        """All files, superseded ones included: partition_path, name, size.

        Args:
            partitions: Only of these, where the table has them; None for all.
        """
        if partitions is not None:
            partitions = sorted(set(partitions) & set(self.listing.partitions().to_pylist()))
        return self.listing.files(partitions)

    # What is visible

    @cached_property
    def latest_write(self) -> str | None:
        """Requested time of the newest visible write; None without any."""
        seen = (i.time for i in self.timeline.writes if i.time not in self.unseen)
        return max((time for time in seen if self.as_of is None or time <= self.as_of), default=None)

    @property
    def is_latest(self) -> bool:
        """False when there are completed writes that this snapshot does not show."""
        if self.unseen:
            return False
        return self.as_of is None or all(i.time <= self.as_of for i in self.timeline.writes)

    @property
    def logs_name_base(self) -> bool:
        """True for tables whose log files bear the instant of their base file."""
        return self.properties.version <= LEGACY_VERSION

    @cached_property
    def visibility(self) -> Visibility:
        """Which files and log blocks count. One request for each completed replacecommit on the active timeline."""
        from hudimeta.table.visibility import Visibility

        found = Visibility.of(self.timeline, self.as_of, self.logs_name_base)
        return found.without(self.unseen) if self.unseen else found

    def slices(self, partitions: Sequence[str] | None = None, query_type: QueryType = QueryType.SNAPSHOT) -> pa.Table:
        """The visible file slices.

        Args:
            partitions: Partition paths; None for all.
            query_type: READ_OPTIMIZED gives every file group's newest base file and no log files.

        Returns:
            Columns of `table.slices.slices_schema()`, one row a file group.
        """
        from hudimeta.snapshot.visible_slices import visible_slices

        return visible_slices(self, partitions, query_type)

    @cached_property
    def kept_plan(self) -> PlanCache | None:
        """The kept plan of the newest moment; None for earlier ones and for writes, without a metadata table or the option."""
        if self.for_writes or self.options.get(PLAN_CACHE) == "off" or not self.is_latest or self.metadata is None:
            return None
        from hudimeta.plan_cache import PlanCache

        return PlanCache(self.storage, self.metadata, self.options, lambda: self.visibility)

    @property
    def plan_remarks(self) -> tuple[str, ...]:
        """What was used of kept plans, or why nothing was; for reports. Nothing where they were not asked for."""
        if self.kept_plan is not None:
            return tuple(self.kept_plan.remarks)
        if self.for_writes or self.options.get(PLAN_CACHE) == "off":
            return ()
        of_now = "" if self.is_latest else "they are of the newest moment"
        return (f"no kept plan: {of_now or 'they rest on the metadata table, which is not asked'}",)

    def partitions(self) -> pa.StringArray:
        """Partition paths, sorted; [""] for a table without partitions."""
        found = self.kept_plan.partitions() if self.kept_plan is not None else None
        return self.listing.partitions() if found is None else found

    def key_files(self, partitions: Sequence[str] | None = None, *, key_ranges: bool = False) -> dict[str, list[KeyFile]]:
        """`slices` as the look-up of keys sees them, by partition path.

        Args:
            partitions: Only these; None for all.
            key_ranges: With the smallest and largest key of each, which costs a look-up.
        """
        from hudimeta.snapshot.key_files import key_files

        return key_files(self, partitions, key_ranges=key_ranges)

    def file_slices(self) -> pa.Table:
        """`slices` for people: without log files that hold nothing visible (in version 6 only their blocks tell)."""
        slices = self.slices()
        if not self.logs_name_base:
            return slices
        from hudimeta.snapshot.legacy_logs import without_invisible_logs

        return without_invisible_logs(slices, self.timeline, self.as_of)

    @cached_property
    def schema(self) -> TableSchema:
        """The table's columns: those of the newest write that is shown. One request, two for earlier moments."""
        from hudimeta.snapshot.table_schema import as_it_was, resolve_schema

        if self._parent is None:
            return resolve_schema(self)
        return self._parent.schema if self._as_now else as_it_was(self._parent.schema, self)

    @cached_property
    def file_schema(self) -> pa.Schema:
        """Data columns as the table's files hold them, in stored types: what the rows of a write are brought to.

        Raises:
            SchemaUnknown: A table without a commit and without a schema in its properties.
            CorruptFileError: The newest write knows the table as another one.
        """
        from hudimeta.snapshot.table_schema import file_schema, refuse_foreign_write

        refuse_foreign_write(self.properties, self.timeline)
        found = file_schema(self.properties, self.timeline)
        if found is None:
            raise SchemaUnknown
        return found

    @cached_property
    def history(self) -> SchemaHistory | None:
        """How columns were called before the table was altered; None for tables that never were, or with the option off.

        One LIST and one GET for altered tables, nothing for others. Writes know it whatever the option says. Reads need none
        while names lead to all columns: then statistics, indexes and Spark's own scans serve them as before. As of an earlier
        moment it ends with the columns of that moment, whose names may lead elsewhere than those of today.
        """
        if self._parent is not None and self._as_now:
            return self._parent.history
        found = self.of_now._whole_history
        found = found if found is None or self.as_of is None else found.until(self.as_of)
        return None if found is not None and found.goes_by_names and not self.of_now.for_writes else found

    @cached_property
    def _whole_history(self) -> SchemaHistory | None:
        if not (self.for_writes or self.options.get(SCHEMA_ON_READ)):
            return None
        from hudimeta.snapshot.column_history import column_history

        return column_history(self.storage, self.timeline)
