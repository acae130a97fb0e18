"""Some columns of all rows of a file slice, logs merged: what index updates must know of rows that are there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hudimeta.formats.plain_arrays import no_rows
from hudimeta.schema import SchemaHistory, with_meta_columns
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.read_task import ReadTask, VisibleInstants, storage_options_of
from hudimeta.slices.reader import SliceReader
from hudimeta.snapshot.column_history import column_history
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import Storage
from hudimeta.table.properties import TableProperties
from hudimeta.timeline import Timeline

__all__ = ["SliceRows"]


@dataclass(frozen=True)
class SliceRows:
    """Reads file slices of one table at one moment.

    Attributes:
        storage: Rooted at the table.
        properties, schema: Of the table; data columns.
        instants: Whose log blocks count.
        history: How columns were called before, for a table that was altered; None for all others.
        storage_options: Open the source of a table that was bootstrapped.
    """

    storage: Storage
    properties: TableProperties
    schema: pa.Schema
    instants: VisibleInstants
    history: SchemaHistory | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def at(
        cls,
        storage: Storage,
        properties: TableProperties,
        schema: pa.Schema,
        timeline: Timeline,
        texts: Mapping[str, str] | None = None,
    ) -> SliceRows:
        """A reader of the table as a timeline shows it; `texts` are those of the options, of which some open stores."""
        history, stores = column_history(storage, timeline), storage_options_of(texts or {})
        return cls(storage, properties, schema, VisibleInstants.of(timeline), history, stores)

    @classmethod
    def of(cls, snapshot: Snapshot) -> SliceRows:
        """A reader of the table that a write rests on."""
        instants, stores = VisibleInstants.of(snapshot.timeline), storage_options_of(snapshot.options.texts)
        return cls(snapshot.storage, snapshot.properties, snapshot.file_schema, instants, snapshot.history, stores)

    def columns(self, file_slice: FileSlice, names: Sequence[str]) -> pa.Table:
        """The record keys and some columns of a slice's rows.

        Args:
            file_slice: The slice.
            names: Columns, or fields inside structs by dotted path, which come with their struct. Those that the table does not
                have are left out.
        """
        full = with_meta_columns(self.schema)
        wanted = dict.fromkeys([KEY_COLUMN, *(name.partition(".")[0] for name in names)])
        columns = tuple(name for name in wanted if name in full.names)
        properties = dict(self.properties)
        task = ReadTask(
            self.storage.root,
            properties,
            full,
            self.schema,
            columns,
            None,
            self.instants,
            history=self.history,
            storage_options=self.storage_options,
        )
        return pa.concat_tables([no_rows(task.output_schema), *SliceReader(task, self.storage).tables(file_slice)])
