"""How the rows of a write become files, and how it reads those that are there: writers, formats, readers, look-up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.config import options as keys
from hudimeta.indexes.column_stats.columns import statistics_after
from hudimeta.indexes.expression_index.facts import index_timezone
from hudimeta.indexes.facts import WantedFacts, refuse_values_spelled_anew
from hudimeta.indexes.log_facts import LogFacts
from hudimeta.indexes.registry import wanted_facts
from hudimeta.keys import KeyGenerator
from hudimeta.keys.timestamp_partition import time_settings
from hudimeta.schema import (
    SchemaChange,
    change_notes,
    check_compatible,
    check_key_texts,
    refuse_texts,
    table_avro_schema,
    with_meta_columns,
)
from hudimeta.slices.slice_keys import (
    SliceKeys,
    read_live_keys,
    read_ordering,
    slice_of,
)
from hudimeta.slices.slice_rows import SliceRows
from hudimeta.slices.stored_rows import StoredRowsReader, codable_columns
from hudimeta.snapshot.opened_ahead import open_ahead
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.snapshot.table_schema import files_hold
from hudimeta.table.column_defaults import column_defaults
from hudimeta.table.key_file import KeyFile, KeyReader
from hudimeta.timeline import Timeline
from hudimeta.types import TableType
from hudimeta.write.base_files import BaseFileWriter, FileFormat, parquet_settings
from hudimeta.write.change_files import ChangeFormat
from hudimeta.write.key_lookup import KeyLookup
from hudimeta.write.learned_keys import learned
from hudimeta.write.log_files import LogFileWriter, LogForm
from hudimeta.write.record_window import TableWindow

if TYPE_CHECKING:
    from hudimeta.commit.session import WriteSession

__all__ = ["TableFiles"]


class TableFiles:
    """The files of a table as one write makes them: what reads the rows that are stored, and what writes new ones.

    Args:
        session: The write.
        snapshot: The table as it sees it.
    """

    def __init__(self, session: WriteSession, snapshot: Snapshot) -> None:
        self._session, self.snapshot = session, snapshot

    @classmethod
    def at(cls, session: WriteSession, timeline: Timeline) -> TableFiles:
        """Of the table as a timeline shows it."""
        return cls(session, session.snapshot_at(timeline))

    @classmethod
    def now(cls, session: WriteSession) -> TableFiles:
        """Of the table as it is: lists the timeline."""
        return cls(session, open_ahead(session.snapshot_now()))

    @property
    def _asks_for_schema_on_read(self) -> bool:
        options = self._session.options
        return options.is_set(keys.SCHEMA_ON_READ) and options.get(keys.SCHEMA_ON_READ)

    def evolve(self, incoming: pa.Schema) -> SchemaChange:
        """The schema after rows of another schema were written; the report will say what is another.

        Raises:
            SchemaError: Rows that do not fit; a column would become text, and no option asks for that.
        """
        properties = self._session.properties
        options, notes = self._session.options, self._session.notes
        lenient = bool(options.get(keys.NULL_FOR_MISSING))
        change = check_compatible(self.snapshot.file_schema, files_hold(incoming, properties), allow_missing=lenient)
        check_key_texts(change, (*properties.record_keys, *properties.partition_fields))
        if change.widened:
            refuse_values_spelled_anew(change, self.facts_wanted())
        if options.get(keys.SCHEMA_WIDEN) != "any" and not self._asks_for_schema_on_read:
            refuse_texts(change)
        defaults = column_defaults(properties)
        notes += [line for line in change_notes(change, defaults) if line not in notes]
        return change

    def generator(self) -> KeyGenerator:
        """The key generator, with what only the stored table can tell."""
        return self._generator

    @cached_property
    def _generator(self) -> KeyGenerator:
        # Hudi stores the settings of times with the generator TIMESTAMP, but not with CUSTOM: there every writer gives them.
        given = time_settings(self._session.options.texts)
        found = learned(KeyGenerator.from_properties({**given, **self._session.properties}), self.snapshot)
        if not self._session.properties.drop_partition_columns:
            return found
        schema = self.snapshot.schema
        return replace(found, unstored=tuple(schema.arrow.field(name) for name in schema.dropped))

    @cached_property
    def lookup(self) -> KeyLookup:
        """The table's index."""
        return KeyLookup(self._session, self)

    @cached_property
    def window(self) -> TableWindow:
        """The table's record window."""
        return TableWindow(self._session, self)

    def key_reader(self, *, alive: bool) -> KeyReader:
        """A reader of the keys of file slices.

        Args:
            alive: Leave out keys that log files have deleted. Whoever looks in one partition may take them for keys that are
                there where they are nowhere else, since a file group is as good as any; over several partitions they would
                misplace rows.
        """
        properties, storage = self._session.properties, self._session.storage
        reader = SliceRows.of(self.snapshot)
        if properties.populate_meta:
            stored = SliceKeys(storage, self._log_keys_rate())
            return partial(read_live_keys, stored, reader) if alive else stored
        generator = self.generator()
        return lambda file, _: generator.record_keys(reader.columns(slice_of(file), generator.told_by))

    def _log_keys_rate(self) -> float | None:
        """False positives of what log files tell of their keys; None where they neither tell nor are asked."""
        options = self._session.options
        return options.get(keys.BLOOM_FPP) if options.get(keys.LOG_KEYS) and self._session.properties.populate_meta else None

    def read_base(self, schema: pa.Schema) -> StoredRowsReader:
        """A reader of base files, in a schema with meta columns; with record keys, stored or not."""
        session, codable = self._session, self.codable(schema)
        virtual = None if session.properties.populate_meta else self.generator()
        sources = None
        if session.properties.bootstrap_base_path is not None:
            sources = SliceRows.of(self.snapshot)
        return StoredRowsReader(session.storage, schema, self.snapshot.history, virtual, codable, sources)

    def codable(self, schema: pa.Schema) -> frozenset[str]:
        """Columns whose texts nobody looks at when rows are written; see `codable_columns`."""
        session, facts = self._session, self.facts_wanted()
        if facts.expressions or session.properties.cdc_enabled:
            return frozenset()
        return codable_columns(schema, session.rules, [column for _, column, _ in facts.values])

    def log_writer(self, instant: str, schema: pa.Schema) -> LogFileWriter | None:
        """The writer of log files for a write at `instant`; None for a copy-on-write table.

        Where columns have a history, Apache Hudi 1.2.0 finds no keys of a global index in slices with a Parquet block. There
        rows stand in Avro blocks unless an option says otherwise, without the Parquet block that tells their keys.
        """
        session = self._session
        if session.properties.type is not TableType.MERGE_ON_READ:
            return None
        options, rate = session.options, self._log_keys_rate()
        kind = options.get(keys.LOG_BLOCK_FORMAT) or "parquet"
        if self.snapshot.history is not None or self._asks_for_schema_on_read:
            kind = kind if options.is_set(keys.LOG_BLOCK_FORMAT) else "avro"
            rate = rate if kind == "parquet" else None
        form = LogForm(kind, options.get(keys.LOG_BLOCK_BYTES), options.get(keys.LOG_FILE_BYTES))
        return LogFileWriter(session.storage, instant, self.file_format(schema), form, rate)

    def ordering_reader(self) -> Callable[[KeyFile, pa.StringArray], tuple[pa.Array, ...]]:
        """A reader of the ordering values that keys have in a file slice."""
        fields = self._session.rules.delete_fields
        virtual = None if self.snapshot.properties.populate_meta else self.generator()
        return partial(read_ordering, SliceRows.of(self.snapshot), fields, virtual)

    def log_facts(self) -> LogFacts | None:
        """What indexes want to know of log files; None where they want nothing."""
        session, wanted = self._session, self.facts_wanted()
        if session.properties.type is not TableType.MERGE_ON_READ or not (wanted.keys or wanted.values):
            return None
        reader = SliceRows.of(self.snapshot)
        return LogFacts(wanted, session.rules, lambda file, names: reader.columns(slice_of(file), names))

    def writer(self, instant: str, schema: pa.Schema) -> BaseFileWriter:
        """The writer of base files for a write at `instant`; `schema` are the data columns after it."""
        return BaseFileWriter(
            self._session.storage, instant, self.file_format(schema), with_meta_columns(schema), self._session.rules
        )

    def file_format(self, schema: pa.Schema) -> FileFormat:
        """How base files of this table are written."""
        session = self._session
        columns: tuple[str, ...] = ()
        regime = "V1"
        definition = statistics_after(
            self.snapshot.metadata, self.snapshot.file_schema, schema, session.options.get(keys.COLUMN_STATS_MAX)
        )
        if definition is not None:
            columns, regime = definition.source_fields, "V2" if definition.is_v2 else "V1"
        facts = self.facts_wanted()
        return FileFormat(
            table_avro_schema(schema, session.properties.name, meta_columns=True),
            parquet_settings(session.options, filtered=facts.bloom or self.window.settings is not None),
            columns,
            regime,
            facts,
            self._change_format(schema),
            session.properties.populate_meta,
            session.in_task,
        )

    def facts_wanted(self) -> WantedFacts:
        """What the table's indexes want to know of every file."""
        zone, metadata = index_timezone(self._session.options, self._session.properties), self.snapshot.metadata
        wanted = WantedFacts() if metadata is None else wanted_facts(metadata, zone)
        return wanted if self.window.settings is None else replace(wanted, keys=True)

    def _change_format(self, schema: pa.Schema) -> ChangeFormat | None:
        properties = self._session.properties
        if not properties.cdc_enabled:
            return None
        return ChangeFormat(properties.cdc_mode, table_avro_schema(schema, properties.name))
