"""The table at the moment at which a write looks at it: what it holds, and what its files are written with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.commit.conflicts import groups_in_plans
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError
from hudimeta.indexes.column_stats.columns import files_hold, schema_of, statistics_after
from hudimeta.indexes.facts import WantedFacts
from hudimeta.indexes.log_facts import LogFacts
from hudimeta.indexes.registry import wanted_facts
from hudimeta.indexes.tagging import Tagging
from hudimeta.keys import KeyGenerator
from hudimeta.keys.timestamp_partition import PREFIXES as TIME_PREFIXES
from hudimeta.metadata import MetadataTable, answers, column_stats
from hudimeta.schema import (
    SchemaChange,
    SchemaHistory,
    check_compatible,
    check_key_texts,
    refuse_texts,
    table_avro_schema,
    told,
    with_meta_columns,
)
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.read_task import VisibleInstants, storage_options_of
from hudimeta.slices.slice_keys import (
    SliceKeys,
    read_live_keys,
    read_ordering,
    rows_may_be_in,
    slice_of,
)
from hudimeta.slices.slice_rows import SliceRows
from hudimeta.slices.stored_rows import StoredRows, StoredRowsReader, codable_columns
from hudimeta.snapshot.column_history import column_history
from hudimeta.snapshot.file_slice import slices_of
from hudimeta.table.discovery import list_table
from hudimeta.table.key_file import KeyFile, KeyReader
from hudimeta.table.remembered import refuse_other_table
from hudimeta.table.slices import build_slices
from hudimeta.table.visibility import Visibility
from hudimeta.timeline import Timeline
from hudimeta.types import FileGroupId, TableType
from hudimeta.write.base_files import BaseFileWriter, FileFormat, bloom_settings
from hudimeta.write.change_files import ChangeFormat
from hudimeta.write.key_lookup import KeyLookup
from hudimeta.write.log_files import LogFileWriter, LogForm

if TYPE_CHECKING:
    from hudimeta.write.session import WriteSession

__all__ = ["TableView"]


class TableView:
    """The table at one moment: schema, files, statistics; each asked for once, when it is needed."""

    def __init__(self, session: WriteSession, timeline: Timeline) -> None:
        self._session, self.timeline = session, timeline

    @cached_property
    def metadata(self) -> MetadataTable | None:
        """The metadata table, None where there is none."""
        session = self._session
        if not session.properties.has_metadata_table:
            return None
        return MetadataTable.open(session.storage, session.properties, self.timeline)

    @cached_property
    def schema(self) -> pa.Schema:
        """Data columns of the table.

        Raises:
            ConfigError: A table without a commit and without a schema in its properties.
        """
        for write in self.timeline.writes[-1:]:
            refuse_other_table(self._session.properties, self.timeline.metadata(write), self.timeline.path_of(write))
        found = schema_of(self._session.properties, self.timeline)
        if found is None:
            raise ConfigError("hoodie.table.create.schema", None, "a schema", "Write the first rows with Apache Hudi.")
        return found

    @cached_property
    def history(self) -> SchemaHistory | None:
        """How columns were called before, for a table that was altered; None for all others."""
        session = self._session
        return column_history(session.storage, session.properties, self.timeline)

    def evolve(self, incoming: pa.Schema) -> SchemaChange:
        """The schema after rows of another schema were written; the report will say what is another.

        Raises:
            SchemaError: Rows that do not fit; a column would become text, and no option asks for that.
        """
        properties = self._session.properties
        options, notes = self._session.options, self._session.notes
        lenient = bool(options.get(keys.NULL_FOR_MISSING))
        change = check_compatible(self.schema, files_hold(incoming, properties), allow_missing=lenient)
        check_key_texts(change, (*properties.record_keys, *properties.partition_fields))
        asked = options.is_set(keys.SCHEMA_ON_READ) and options.get(keys.SCHEMA_ON_READ)
        if options.get(keys.SCHEMA_WIDEN) != "any" and not asked:
            refuse_texts(change)
        notes += [line for line in told(change) if line not in notes]
        return change

    def files(self, partitions: Sequence[str] | None, *, key_ranges: bool = False) -> dict[str, list[KeyFile]]:
        """The latest slices, by partition path.

        Args:
            partitions: Only these; None for all.
            key_ranges: With the smallest and largest key of each, which costs a look-up.
        """
        slices = self.slices(partitions)
        asked = None if partitions is None else frozenset(partitions)
        ranges = self._key_ranges(partitions) if key_ranges else {}
        busy = groups_in_plans(self.timeline)
        found: dict[str, list[KeyFile]] = {}
        for one in slices_of(slices):
            if asked is None or one.partition_path in asked:
                low, high = _united(ranges, [*([one.base_file] if one.base_file else []), *one.log_files])
                name = one.base_file or ""
                is_busy = FileGroupId(one.partition_path, one.file_id) in busy
                files = (one.log_files, is_busy, one.log_sizes)
                file = KeyFile(one.partition_path, one.file_id, name, one.base_size, low, high, *files)
                found.setdefault(one.partition_path, []).append(file)
        return found

    def slices(self, partitions: Sequence[str] | None = None) -> pa.Table:
        """The latest file slices: columns of `table.slices.slices_schema()`; of some partitions or (None) of all."""
        return build_slices(self.listing(partitions), self.visibility())

    def listing(self, partitions: Sequence[str] | None = None) -> pa.Table:
        """All files, superseded ones included: partition_path, name, size; of some partitions or (None) of all."""
        metadata = self.metadata
        if metadata is None:
            self._session.notes.append("the table has no metadata table: its folders were listed")
            return list_table(self._session.storage)
        known = None if partitions is None else sorted(set(partitions) & set(metadata.partitions().to_pylist()))
        return metadata.files(known)

    def visibility(self) -> Visibility:
        """Which files count."""
        return Visibility.of(self.timeline)

    def _key_ranges(self, partitions: Sequence[str] | None) -> Mapping[str, tuple[str | None, str | None]]:
        metadata = self.metadata
        if metadata is None or column_stats.PARTITION not in metadata.ready:
            return {}
        found = answers.column_stats(metadata, {KEY_COLUMN: pa.string()}, partitions)[KEY_COLUMN]
        names, lows, highs = (found[c].to_pylist() for c in ("file_name", "min", "max"))
        return {n: (low, high) for n, low, high in zip(names, lows, highs, strict=True)}

    # Steps

    def generator(self) -> KeyGenerator:
        """The key generator, with what only a row of the table can tell."""
        # Hudi stores the settings of times with the generator TIMESTAMP, but not with CUSTOM: there every writer gives them.
        given = {k: v for k, v in self._session.options.texts.items() if k.startswith(TIME_PREFIXES)}
        found = KeyGenerator.from_properties({**given, **self._session.properties})
        if not self._session.properties.populate_meta:
            return found.of_an_empty_table()  # nothing is stored that a key could differ from
        if not found.needs_row_to_learn:
            return found
        reader = SliceRows.at(
            self._session.storage, self._session.properties, self.schema, self.timeline, self._session.options.texts
        )
        for file in rows_may_be_in([file for files in self.files(None).values() for file in files]):
            rows = reader.columns(slice_of(file), found.record_fields)
            if rows.num_rows:
                return found.learned_from(rows)
        return found.of_an_empty_table()

    @cached_property
    def lookup(self) -> KeyLookup:
        """The table's index."""
        return KeyLookup(self._session, self)

    def tag(self, batch_keys: pa.StringArray, partitions: pa.StringArray) -> tuple[Tagging, Mapping[str, Sequence[KeyFile]]]:
        """Find keys; returns where they are, and the latest slices of the partitions. See `KeyLookup.tag`."""
        return self.lookup.tag(batch_keys, partitions)

    def key_reader(self, *, alive: bool) -> KeyReader:
        """A reader of the keys of file slices.

        Args:
            alive: Leave out keys that log files have deleted. Whoever looks in one partition may take them for keys that are
                there, since their rows would come to the same file group; over several partitions they would misplace rows.
        """
        properties, storage = self._session.properties, self._session.storage
        reader = SliceRows.at(storage, properties, self.schema, self.timeline, self._session.options.texts)
        if properties.populate_meta:
            stored = SliceKeys(storage, self._log_keys_rate())
            return partial(read_live_keys, stored, reader) if alive else stored
        generator = self.generator()
        return lambda file, _: generator.record_keys(reader.columns(slice_of(file), generator.record_fields))

    def _log_keys_rate(self) -> float | None:
        """False positives of what log files tell of their keys; None where they neither tell nor are asked."""
        options = self._session.options
        return options.get(keys.BLOOM_FPP) if options.get(keys.LOG_KEYS) and self._session.properties.populate_meta else None

    def read_base(self, schema: pa.Schema) -> Callable[[str, str, int], StoredRows]:
        """A reader of base files: all rows, in a schema with meta columns; with record keys, stored or not."""
        session, facts = self._session, self.facts_wanted()
        virtual = None if session.properties.populate_meta else self.generator()
        codable: frozenset[str] = frozenset()
        if not (facts.expressions or session.properties.cdc_enabled):
            codable = codable_columns(schema, session.rules, [column for _, column, _ in facts.values])
        sources = None
        if session.properties.bootstrap_base_path is not None:
            sources = SliceRows.at(session.storage, session.properties, self.schema, self.timeline, session.options.texts)
        return StoredRowsReader(session.storage, schema, self.history, virtual, codable, sources)

    def log_writer(self, instant: str, schema: pa.Schema) -> LogFileWriter | None:
        """The writer of log files for a write at `instant`; None for a copy-on-write table."""
        session = self._session
        if session.properties.type is not TableType.MERGE_ON_READ:
            return None
        options = session.options
        form = LogForm(
            options.get(keys.LOG_BLOCK_FORMAT) or "parquet", options.get(keys.LOG_BLOCK_BYTES), options.get(keys.LOG_FILE_BYTES)
        )
        return LogFileWriter(session.storage, instant, self.file_format(schema), form, self._log_keys_rate())

    def ordering_reader(self) -> Callable[[KeyFile, pa.StringArray], tuple[pa.Array, ...]]:
        """A reader of the ordering values that keys have in a file slice."""
        session = self._session
        fields = session.rules.ordering_fields if session.rules.by_event_time else ()
        instants = VisibleInstants(frozenset(self.timeline.completion_times), self.timeline.first_active_write)
        virtual = None if session.properties.populate_meta else self.generator()
        stores = storage_options_of(session.options.texts)
        of_table = (session.storage, session.properties, self.schema, instants, fields, self.history, virtual, stores)
        return partial(read_ordering, *of_table)

    def log_facts(self) -> LogFacts | None:
        """What indexes want to know of log files; None where they want nothing."""
        session, metadata = self._session, self.metadata
        wanted = WantedFacts() if metadata is None else wanted_facts(metadata)
        if session.properties.type is not TableType.MERGE_ON_READ or not (wanted.keys or wanted.values):
            return None
        reader = SliceRows.at(session.storage, session.properties, self.schema, self.timeline, session.options.texts)
        return LogFacts(wanted, session.rules, lambda file, names: reader.columns(slice_of(file), names))

    def writer_schema(self, schema: pa.Schema) -> pa.Schema:
        """Columns of base files: `schema` with the meta columns in front."""
        return with_meta_columns(schema)

    def writer(self, instant: str, schema: pa.Schema) -> BaseFileWriter:
        """The writer of base files for a write at `instant`; `schema` are the data columns after it."""
        return BaseFileWriter(
            self._session.storage, instant, self.file_format(schema), self.writer_schema(schema), self._session.rules
        )

    def file_format(self, schema: pa.Schema) -> FileFormat:
        """How base files of this table are written."""
        session = self._session
        columns: tuple[str, ...] = ()
        regime = "V1"
        definition = statistics_after(self.metadata, self.schema, schema, session.options.get(keys.COLUMN_STATS_MAX))
        if definition is not None:
            columns, regime = definition.source_fields, "V2" if definition.is_v2 else "V1"
        return FileFormat(
            table_avro_schema(schema, session.properties.name, meta_columns=True),
            session.options.get(keys.COMPRESSION) or "zstd",
            bloom_settings(session.options),
            columns,
            regime,
            self.facts_wanted(),
            self._change_format(schema),
            session.properties.populate_meta,
            session.in_task,
        )

    def facts_wanted(self) -> WantedFacts:
        """What the table's indexes want to know of every file."""
        zone = self._session.options.get(keys.INDEX_TIMEZONE) or "UTC"
        return WantedFacts() if self.metadata is None else wanted_facts(self.metadata, zone)

    def _change_format(self, schema: pa.Schema) -> ChangeFormat | None:
        properties = self._session.properties
        if not properties.cdc_enabled:
            return None
        return ChangeFormat(properties.cdc_mode, table_avro_schema(schema, properties.name))


def _united(ranges: Mapping[str, tuple[str | None, str | None]], names: Sequence[str]) -> tuple[str | None, str | None]:
    """Key range of several files, unknown when that of one is; files of deletes hold no row and do not count."""
    found = [ranges.get(name, (None, None)) for name in names]
    if any(low is None or high is None for low, high in found):
        return None, None
    return min((low for low, _ in found if low is not None), default=None), max(
        (high for _, high in found if high is not None), default=None
    )
