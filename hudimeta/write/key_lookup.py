"""The look-up of one write: the table's index, as the write sees the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.cached import cached_property
from hudimeta.config import options as keys
from hudimeta.errors import CommitConflict, ConfigError, CorruptFileError, IndexNotReady, MetadataError, NotFound
from hudimeta.indexes.bloom_filters.look_up import BloomFiltersLookUp
from hudimeta.indexes.bucket.consistent_hashing import HashRings
from hudimeta.indexes.bucket.look_up import BucketLookUp, Buckets, SimpleBuckets, looks_bucketed
from hudimeta.indexes.bucket.partition_rules import PartitionRules, load_rules, remove_taken_back
from hudimeta.indexes.choice import BucketSettings, IndexChoice, choose_index, named_index
from hudimeta.indexes.record_index.look_up import RecordIndexLookUp
from hudimeta.indexes.record_window.look_up import RecordWindowLookUp
from hudimeta.indexes.simple.look_up import SimpleLookUp
from hudimeta.indexes.tagging import Index, IndexKind, NewGroups, Tagging
from hudimeta.keys import PartitionLayout
from hudimeta.metadata import answers, record_index
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.snapshot.opened_ahead import list_ahead
from hudimeta.snapshot.partition_columns import is_slashed
from hudimeta.storage.at_once import ahead, waiting_engine
from hudimeta.table.key_file import FilesOf, KeyFile, RunAll
from hudimeta.table.properties import load as load_properties
from hudimeta.timeline import Timeline
from hudimeta.types import Action, Operation, TableType
from hudimeta.write.batch import KeyedBatch, concatenated
from hudimeta.write.combining import combine
from hudimeta.write.doubled_keys import of_live_rows, of_own_groups, of_read_groups, refuse_gone
from hudimeta.write.moves import Settled, settle_partitions

if TYPE_CHECKING:
    from hudimeta.commit.session import WriteSession
    from hudimeta.metadata.index_definitions import IndexDefinition
    from hudimeta.slices.merge_rules import MergeRules
    from hudimeta.write.table_files import TableFiles

__all__ = ["Found", "KeyLookup"]

_BLOOM_FILTERS, _RECORD_INDEX = "bloom_filters", "record_index"


@dataclass(frozen=True)
class Found:
    """What a look-up came to.

    Attributes:
        settled: The rows, where each of them goes, and what leaves other partitions.
        files: Latest slices of the batch's partitions, for placing new rows.
        unmatched: Rows that delete a key which the table does not have, as far as the index can tell.
        asked, hits: Keys looked up, keys found.
        text: The same in words.
    """

    settled: Settled
    files: Mapping[str, Sequence[KeyFile]]
    unmatched: int
    asked: int
    hits: int
    text: str

    @property
    def batch(self) -> KeyedBatch:
        """The rows, each with the partition that it goes to."""
        return self.settled.batch


class KeyLookup:
    """Finds the rows of a write by key.

    Args:
        session: The write.
        table: The table as it sees it.
    """

    def __init__(self, session: WriteSession, table: TableFiles) -> None:
        self._session, self._table = session, table
        self._files: dict[str, list[KeyFile]] = {}
        self._known: tuple[pa.StringArray, pa.Table] | None = None

    @cached_property
    def choice(self) -> IndexChoice:
        """Which index. Raises as `choose_index` does."""
        session = self._session
        return choose_index(session.options, session.properties, self._is_proven, self._definitions)

    def begin(self, batch: KeyedBatch) -> Callable[[], object]:
        """Begin to ask the metadata table of a far-away table what `tag` needs of it, while the write is put on the timeline.

        Args:
            batch: Whose keys will be looked up.

        Returns:
            What waits for it. What failed is asked again when it is needed.
        """
        snapshot, keys = self._table.snapshot, batch.keys
        if keys is None or self.choice.kind is not IndexKind.RECORD_INDEX:
            return list_ahead(snapshot)

        def look() -> None:
            if snapshot.metadata is not None:
                snapshot.metadata.open_listing(record_index.PARTITION)
                wanted = keys.unique()
                self._known = wanted, answers.record_locations(snapshot.metadata, wanted)

        return ahead(look, snapshot.storage)

    def _locations(self, wanted: pa.StringArray) -> pa.Table:
        """Where the record index has some keys."""
        (asked, found), self._known = self._known or (None, None), None
        if asked is not None and asked.equals(wanted):
            return found
        metadata = self._table.snapshot.metadata
        if metadata is None:
            raise IndexNotReady(record_index.PARTITION, "not built: the table has no metadata table")
        return answers.record_locations(metadata, wanted)

    def refuse_rescaled(self, timeline: Timeline, operation: str) -> None:
        """Raise CommitConflict when buckets are counted by other rules now: nobody would look for rows in the old ones.

        Args:
            timeline: Of now.
            operation: For the error.
        """
        buckets = self.choice.buckets
        if buckets is None or buckets.consistent:
            return
        now = load_rules(self._session.storage, timeline, load_properties(self._session.storage))
        known = self.bucket_rules
        if now is not None and (now.expressions, now.default) != (known.expressions, known.default):
            raise CommitConflict(operation, (), now.instant, what="the rules of its buckets")

    @property
    def fixes_places(self) -> bool:
        """True when the index decides in which file group a key lives, so that inserts are looked up as well."""
        return named_index(self._session.options, self._session.properties) == IndexKind.BUCKET.value

    def tag(self, batch_keys: pa.StringArray, partitions: pa.StringArray) -> tuple[Tagging, Mapping[str, Sequence[KeyFile]]]:
        """Find keys; returns where they are, and the latest slices of the partitions.

        Raises:
            MetadataError, CorruptFileError: The index cannot be used, and falling back is not allowed.
            CommitConflict: It was dropped, or built anew, meanwhile.
        """
        choice = self.choice
        try:
            tagging = self._index(choice).tag(batch_keys, partitions)
        except (MetadataError, CorruptFileError, NotFound) as error:
            if self._indexes_changed():
                did = "dropped, or built anew, meanwhile"
                raise CommitConflict("look-up", (), "another process", what=f"the {choice.kind.title}", did=did) from error
            if choice.fallback is None or isinstance(error, NotFound):
                raise
            note = f"instead of {choice.kind.title}, which failed: {error}"
            self._session.notes.append(f"keys were looked up in the files {note}")
            instead = replace(choice, kind=choice.fallback, fallback=None, note=note)
            tagging = self._index(instead).tag(batch_keys, partitions)
            choice = instead
        if choice.note:
            tagging = replace(tagging, note="; ".join(filter(None, (tagging.note, choice.note))))
        tagging = replace(tagging, live=self._tells_live_rows(choice))
        if not choice.stated and not choice.is_global:
            self._refuse_buckets()
        return tagging, self._files

    def _tells_live_rows(self, choice: IndexChoice) -> bool:
        """Whether an index tells of no key that a log has deleted.

        Indexes of one partition read none. The record index and window keep keys that were written: in a log one may have come
        late, after a delete of a newer row, so that nobody sees it.
        """
        if choice.kind is IndexKind.RECORD_INDEX or choice.window is not None:
            properties = self._session.properties
            return properties.type is not TableType.MERGE_ON_READ or not self._session.rules.by_event_time
        return choice.is_global or choice.kind is IndexKind.BUCKET

    def find(self, batch: KeyedBatch) -> Found:
        """Find a batch's keys and settle which partition each row goes to. Raises as `tag` does."""
        assert batch.keys is not None
        tagging, files = self.tag(batch.keys, batch.partitions)
        refuse_gone(batch, tagging, self._session.options.get(keys.OPERATION) or Operation.UPSERT.value)
        tagging = of_own_groups(batch, self._of_read_rows(batch, tagging))
        tagging = self._of_live_rows(batch.keys, tagging, one=True)
        if self.choice.window is not None:
            tagging = self._table.window.settled(batch, tagging, moves=self.choice.moves)
        settled = Settled.as_found(batch, tagging)
        if self.choice.is_global:
            ordering_of = self._table.ordering_reader()
            settled = settle_partitions(batch, tagging, ordering_of, self._session.rules, moves=self.choice.moves)
            if not self.choice.moves and settled.batch is not batch:
                settled = replace(settled, batch=self._as_shown(settled.batch))
        text = str(tagging) + (f"; {settled.moved:,} rows move to another partition" if settled.moved else "")
        if settled.outdated:
            text += f"; {settled.outdated:,} rows left out, because the row in another partition is newer"
        return Found(settled, files, _unmatched(batch, tagging), tagging.asked, tagging.hits, text)

    def held(self, batch: KeyedBatch) -> tuple[Tagging, Mapping[str, Sequence[KeyFile]]]:
        """Find keys that the table has rows of, each of which a new row would double. Returns and raises as `tag` does."""
        assert batch.keys is not None
        tagging, files = self.tag(batch.keys, batch.partitions)
        return self._of_live_rows(batch.keys, tagging, one=False), files

    def _of_live_rows(self, batch_keys: pa.StringArray, tagging: Tagging, *, one: bool) -> Tagging:
        if tagging.live:
            return tagging
        return of_live_rows(batch_keys, tagging, self._table.key_reader(alive=True), self._run_all, one=one)

    def _of_read_rows(self, batch: KeyedBatch, tagging: Tagging) -> Tagging:
        read = self._table.key_reader(alive=True)
        return of_read_groups(batch, tagging, self._table.snapshot.key_files, read, self._run_all)

    def one_a_key(self, batch: KeyedBatch, rules: MergeRules) -> KeyedBatch:
        """One row for each key, in its partition or in the whole table, as far as the index holds keys to be unique.

        Args:
            batch: Rows of a write.
            rules: See `combining_rules`.
        """
        if self.choice.window is None:
            return combine(batch, rules, whole_table=self.choice.is_global)
        apart = self._table.window.apart(batch, self._files_of)
        if not apart.any():
            return combine(batch, rules, whole_table=True)
        together = combine(batch.take(np.flatnonzero(~apart)), rules, whole_table=True)
        return concatenated([together, combine(batch.take(np.flatnonzero(apart)), rules)])

    def _as_shown(self, batch: KeyedBatch) -> KeyedBatch:
        """Rows that stay in their partition though its column changed hold the partition's value, as all others there do.

        Readers, Apache Hudi's too, show of most types what the path states, and of others what the file holds.
        """
        properties, rows = self._session.properties, batch.rows
        fields = properties.partition_fields
        if (
            properties.drop_partition_columns
            or is_slashed(properties)
            or not {name.partition(".")[0] for name in fields} <= set(rows.column_names)
        ):
            return batch
        stays = pc.not_equal(self._table.generator().partition_paths(rows), batch.partitions)
        paths = batch.partitions.dictionary_encode()
        stated = PartitionLayout.from_properties(properties).values(paths.dictionary, rows.schema)
        fixed = {*properties.record_keys, *(name.partition(".")[0] for name in self._session.rules.ordering_fields)}
        for name in (name for name in stated.column_names if name in rows.column_names and name not in fixed):
            own, at = rows.column(name), rows.schema.get_field_index(name)
            value = stated.column(name).combine_chunks().take(paths.indices)
            field = rows.schema.field(at)
            differs = stays if field.nullable else pc.and_(stays, pc.is_valid(value))
            rows = rows.set_column(at, field, pc.if_else(differs, value, own))
        return replace(batch, rows=rows)

    def new_groups(self, batch: KeyedBatch) -> NewGroups | None:
        """Where the rows of an overwrite must go; None when they may go anywhere."""
        if not self.fixes_places or batch.keys is None:
            return None
        return self._bucket_index.new_groups(batch.keys, batch.partitions)

    @cached_property
    def _bucket_index(self) -> BucketLookUp:
        """One for the whole write, so that each bucket is begun once."""
        settings = self.choice.buckets
        assert settings is not None
        return BucketLookUp(self._files_of, self._buckets(settings))

    def _index(self, choice: IndexChoice) -> Index:
        read = self._table.key_reader(alive=choice.is_global)
        if choice.buckets is not None:
            return self._bucket_index
        if choice.kind is IndexKind.RECORD_INDEX:
            return RecordIndexLookUp(
                self._locations, self._files_of, partitioned=not choice.is_global, unproven=choice.unproven
            )
        if choice.window is not None:
            return RecordWindowLookUp(partial(self._table.window.opened, self._files_of), partial(self._bloom_over, alive=True))
        if choice.kind in (IndexKind.BLOOM, IndexKind.GLOBAL_BLOOM):
            return self._bloom_over(self._files_with_ranges, is_global=choice.is_global)
        return SimpleLookUp(self._files_with_ranges, read, self._run_all, is_global=choice.is_global)

    @property
    def _run_all(self) -> RunAll:
        """Reads keys of files side by side: of a far-away store of more than there are cores, since that mostly waits."""
        return waiting_engine(self._session.engine, self._session.storage).map

    def _bloom_over(self, files_of: FilesOf, *, is_global: bool = False, alive: bool = False) -> BloomFiltersLookUp:
        metadata, filters = self._table.snapshot.metadata, None
        if metadata is not None and _BLOOM_FILTERS in metadata.ready:
            filters = partial(answers.file_filters, metadata)
        read = self._table.key_reader(alive=is_global or alive)
        return BloomFiltersLookUp(files_of, read, self._run_all, filters, is_global=is_global)

    def _buckets(self, settings: BucketSettings) -> Buckets:
        timeline = self._table.snapshot.timeline
        if settings.consistent:
            return HashRings(self._session.storage, timeline, settings.count, settings.fields)
        remove_taken_back(self._session.storage, timeline)
        together = self._session.concurrency.non_blocking is not None
        read = None if self._states_buckets else self._stored_keys
        return SimpleBuckets(self.bucket_rules, settings.fields, timeline if together else None, read)

    def _stored_keys(self, file: KeyFile) -> pa.StringArray:
        found = self._table.key_reader(alive=False)(file, None)
        return pa.array([], pa.string()) if found is None else found

    @cached_property
    def bucket_rules(self) -> PartitionRules:
        """How many buckets partitions have: by the table's rules, as in Apache Hudi; options count where it has none.

        Raises:
            ConfigError: Rules in options for a table that was created without.
        """
        settings = self.choice.buckets
        assert settings is not None
        asked = PartitionRules(settings.rules, settings.count)
        found = load_rules(self._session.storage, self._table.snapshot.timeline, self._session.properties)
        if found is None:
            given = self._session.options.get(keys.BUCKET_RULES)
            if given and given != self._session.properties.get(keys.BUCKET_RULES.key) and self._states_buckets:
                hint = "Call Table.rescale_buckets first: rows lie in other buckets so far."
                raise ConfigError(keys.BUCKET_RULES.key, given, "the rules of the table, which has none", hint)
            return asked.check()
        if settings.stated and (found.expressions, found.default) != (asked.expressions, asked.default):
            self._session.notes.append("buckets go by the rules of the table, not by options of the write, which differ")
        return found

    @property
    def _states_buckets(self) -> bool:
        """Whether the table says how many buckets it has, as those that hudimeta creates do."""
        return keys.BUCKET_COUNT.key in self._session.properties

    def _files_of(self, partitions: Sequence[str] | None) -> Mapping[str, Sequence[KeyFile]]:
        self._files = self._table.snapshot.key_files(partitions)
        return self._files

    def _files_with_ranges(self, partitions: Sequence[str] | None) -> Mapping[str, Sequence[KeyFile]]:
        self._files = self._table.snapshot.key_files(partitions, key_ranges=True)
        return self._files

    def _indexes_changed(self) -> bool:
        """True when the table has other indexes than the snapshot: dropping one leaves no instant, building one does."""
        session, metadata = self._session, self._table.snapshot.metadata
        if metadata is None:
            return False
        if set(load_properties(session.storage).metadata_partitions) != set(metadata.ready):
            return True
        seen = set(self._table.snapshot.timeline.completed)
        now = session.properties.load_timeline(session.storage)
        return any(i.action is Action.INDEXING and i not in seen for i in now.completed)

    def _is_proven(self) -> bool:
        metadata = self._table.snapshot.metadata
        return metadata is not None and bool(proven_indexes(metadata, [_RECORD_INDEX]))

    def _definitions(self) -> Mapping[str, IndexDefinition]:
        metadata = self._table.snapshot.metadata
        return metadata.index_definitions if metadata is not None else {}

    def _refuse_buckets(self) -> None:
        """Refuse to put keys anywhere in a table of buckets: writers that compute a key's bucket would not find them."""
        if not looks_bucketed([file.file_id for files in self._files.values() for file in files]):
            return
        raise ConfigError(
            keys.INDEX_TYPE.key,
            None,
            "the index of the table's other writers: its file groups look like buckets",
            "Set hoodie.index.type=BUCKET and hoodie.bucket.index.num.buckets, or SIMPLE if no writer uses buckets.",
        )


def _unmatched(batch: KeyedBatch, tagging: Tagging) -> int:
    """Deletes whose key is not there; where the index cannot tell, those that belong to no file group."""
    there = batch.deleted.copy()
    there[tagging.row] = False
    return int(there.sum())
